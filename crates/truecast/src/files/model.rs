//! Conversion of tensors in an ONNX model. Read first: `docs/spec/onnx.md §3.10`, §3.11.

use crate::files::convert::planned::Planned;
use crate::files::error::{Cause, Error};
use crate::files::select::Eligibility;
use foldhash::{HashSet, HashSetExt};
use std::path::Path;
use truecast_core::DType;
use truecast_core::spec::onnx::{Cast, NEWEST_OPSET, Raised, ir_version_of, raised};
use truecast_io::onnx::{Changes, Listed, Model, ModelFile, Node, OpsetImport, Role, default_opset, visit_nodes};

/// Operators that require constants, or that amplify the errors of their inputs. A rule must name the inputs of these
/// operators; otherwise the inputs are kept.
const SENSITIVE: [&str; 10] = [
    "ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv", "QLinearMatMul",
    "QuantizeLinear", "Resize", "Upsample", "com.microsoft.MatMulNBits",
];

/// Types of Cast that no version of Constant supports (`docs/spec/onnx.md §3.10`).
const NOT_IN_CONSTANTS: [DType; 2] = [DType::F6E2M3, DType::F6E3M2];

/// Before this IR version, every initializer is also an input of the graph.
const INITIALIZERS_ARE_NO_INPUTS_SINCE: i64 = 4;

/// Permitted changes of each tensor (`docs/spec/onnx.md §3.10`).
pub(crate) fn eligibilities(file: &ModelFile, min_elements: u64) -> Vec<Eligibility> {
    let listed = file.tensors().iter().zip(file.feeding(&SENSITIVE));
    listed.map(|(listed, is_sensitive)| eligibility(file.model(), listed, is_sensitive, min_elements)).collect()
}

fn eligibility(model: &Model, listed: &Listed, is_sensitive: bool, min_elements: u64) -> Eligibility {
    let Role::Value { is_input, .. } = listed.role else { return Eligibility::Kept };
    let is_weight = listed.tensor.dtype().is_some_and(DType::is_float)
        && listed.tensor.dims.len() >= 2
        && listed.tensor.len() >= min_elements;
    let is_interface = is_input && model.ir_version >= INITIALIZERS_ARE_NO_INPUTS_SINCE;
    if is_weight && !is_interface && !is_sensitive { Eligibility::Converted } else { Eligibility::ByRule }
}

/// Changes to the model that the `planned` tensors require.
///
/// # Errors
/// A conversion that every opset lacks, training information, an opset raise that would change the meaning of a node.
pub(crate) fn changes(path: &Path, file: &ModelFile, planned: &[&Planned]) -> Result<Changes, Error> {
    let model = file.model();
    let dtypes = planned.iter().map(|tensor| tensor.target.dtype).collect();
    let changed: Vec<_> = planned.iter().filter(|tensor| tensor.target.dtype != tensor.from).collect();
    let mut needed = 1;
    for tensor in &changed {
        let since = cast_since(tensor.target.dtype, tensor.from);
        let since = since.map_err(|cause| Error::tensor(path, &tensor.name, cause))?;
        needed = needed.max(since);
    }
    if changed.is_empty() {
        return Ok(Changes { dtypes, opset: None, ir_version: None });
    }
    let refused = |why: String| Error::Model { path: path.display().to_string(), why };
    for (tensor, listed) in planned.iter().zip(file.tensors()) {
        let is_constant = matches!(listed.role, Role::Value { is_constant: true, .. });
        if is_constant && NOT_IN_CONSTANTS.contains(&tensor.target.dtype) {
            let (name, dtype) = (truecast_io::Escaped(&tensor.name), tensor.target.dtype);
            let why = format!("tensor {name}: a Constant cannot be {dtype} in any opset; keep it as it is");
            return Err(refused(why));
        }
    }
    if model.has_training_info {
        return Err(refused(
            "training information refers to initializers by name; only models for inference are converted".into(),
        ));
    }
    let is_below = |imports: &[OpsetImport]| default_opset(imports).is_some_and(|version| version < needed);
    let gets_casts: HashSet<Option<usize>> = planned
        .iter()
        .zip(file.tensors())
        .filter(|(tensor, _)| tensor.target.dtype != tensor.from)
        .map(|(_, listed)| listed.function())
        .collect();
    let lacks = |imports, body| default_opset(imports).is_none() && gets_casts.contains(&body);
    let functions = || model.functions.iter().enumerate().map(|(i, f)| (f.opset_imports.as_slice(), Some(i)));
    let mut bodies = functions().chain([(model.opset_imports.as_slice(), None)]);
    let opset = bodies.any(|(imports, body)| is_below(imports) || lacks(imports, body)).then_some(needed);
    if let Some(opset) = opset {
        check_raise(model, opset).map_err(refused)?;
    }
    let tensors_need = if needed >= IR_VERSIONS_OF_TYPES_SINCE { ir_version_of(needed) } else { 1 };
    let ir_version = opset.map_or(1, ir_version_of).max(tensors_need);
    Ok(Changes { dtypes, opset, ir_version: Some(ir_version).filter(|&v| v > model.ir_version) })
}

pub(crate) fn raise_warning(path: &Path, model: &Model, opset: i64) -> Option<String> {
    let functions = model.functions.iter().map(|f| default_opset(&f.opset_imports));
    let versions = functions.chain([default_opset(&model.opset_imports)]).flatten();
    let from = versions.filter(|&version| version < opset).min()?;
    let path = path.display();
    Some(format!(
        "{path}: opset {from} becomes {opset}, because the type needs it; every node has the same meaning in both"
    ))
}

/// First opset whose new types require an IR version (`docs/spec/onnx.md §1.6`).
const IR_VERSIONS_OF_TYPES_SINCE: i64 = 19;

/// First opset whose Cast converts `stored` back to `dtype`.
fn cast_since(stored: DType, dtype: DType) -> Result<i64, Cause> {
    let resolve = |opset| Cast { opset, ..Cast::to(dtype) }.resolve(stored);
    match (1..=NEWEST_OPSET).find(|&opset| resolve(opset).is_ok()) {
        Some(opset) => Ok(opset.into()),
        None => Err(resolve(NEWEST_OPSET).expect_err("no opset has it").into()),
    }
}

/// Checks that every node of the default domain keeps its meaning under opset `to`.
fn check_raise(model: &Model, to: i64) -> Result<(), String> {
    let functions = model.functions.iter().map(|f| (f.nodes.as_slice(), default_opset(&f.opset_imports)));
    let graph = (model.graph.nodes.as_slice(), default_opset(&model.opset_imports));
    for (nodes, from) in functions.chain([graph]) {
        let Some(from) = from.filter(|&from| from < to) else { continue };
        let (mut wrong, mut seen) = (None, HashSet::new());
        visit_nodes(nodes, &mut |node| {
            if wrong.is_none() && seen.insert((&node.domain, &node.op_type)) {
                wrong = changed_meaning(node, from, to);
            }
        });
        if let Some(why) = wrong {
            return Err(why);
        }
    }
    Ok(())
}

fn changed_meaning(node: &Node, from: i64, to: i64) -> Option<String> {
    let operator = node.default_operator()?;
    let why = match raised(operator, from, to) {
        Raised::Same => return None,
        Raised::ChangedAt(at) => format!("has another meaning from opset {at} on"),
        Raised::Unknown => "is not known".into(),
    };
    let name = truecast_io::Escaped(&node.name);
    Some(format!(
        "the type needs opset {to} and the model has {from}, but {} of node {name} {why}; convert the model to opset {to} first, with onnx.version_converter, or choose a type that opset {from} has",
        truecast_io::Escaped(operator)
    ))
}
