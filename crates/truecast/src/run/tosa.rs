//! `.tosa` graphs: evaluated with the arrays of Arm's tools in and out (`docs/spec/tosa.md §7`), judged, described.

use super::describe::{Constant, Conversion, Description};
use super::files::{Reads, file_name};
use super::outputs::{Outputs, Written};
use super::{Judgement, RunError, RunReport, assign};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::spec::tosa::block::SCALE;
use truecast_core::spec::tosa::{Freedoms, Target};
use truecast_io::npy::tosa::{self as array, Array};
use truecast_io::{Existing, Shown, open_regular};
use truecast_kernel::CastOptions;
pub use truecast_models::tosa::ElementType;
use truecast_models::tosa::FileError;
use truecast_models::tosa::read::{Graph, RescaleAttribute, op, parse, parse_blocks};
use truecast_models::tosa::value::{Declared, element_type, scale_shape};
use truecast_models::tosa::{Evaluated, evaluate, judge as legality, target_of};
use truecast_models::{Data, Tensor};

/// The extension of the files.
pub const EXTENSION: &str = "tosa";

/// Evaluates a graph and writes each output to a file of its own in `folder`, named by the output; scales of a
/// block-scaled output stand beside it (`NAME_scale.npy`).
///
/// `inputs` are of the form `NAME=FILE`. Without a target, the version that the file says decides, with every profile and
/// extension. `freedoms` concern plain CASTs between floats (`docs/spec/tosa.md §3.9`).
///
/// # Errors
/// [`RunError`]; [`RunError::Model`] says whether the result is an error or unpredictable.
pub fn run(
    path: &Path,
    target: Option<Target>,
    freedoms: Freedoms,
    inputs: &[String],
    folder: &Path,
    existing: Existing,
    exec: &CastOptions,
) -> Result<RunReport, RunError> {
    let bytes = read(path)?;
    let graph = parse(&bytes).map_err(|cause| malformed(path, cause))?;
    let target = target.unwrap_or_else(|| target_of(&graph));
    let (outputs, left_open) = results(path, &graph, (&target, freedoms), inputs, exec)?;
    let mut files = Outputs::new(folder, existing, Reads::of(path, [], inputs));
    for (name, value) in outputs {
        for (file, dtype, array) in arrays(name, Arc::unwrap_or_clone(value)) {
            let path = files.place(&file)?;
            let written = Written { name: name.into(), dtype, shape: array.shape.clone(), path };
            let failed = |cause: truecast_io::Error| RunError::TosaArray {
                what: "output",
                name: name.into(),
                cause: cause.into(),
            };
            files.add(written, |path, existing| {
                Ok(array::start(path, dtype, &array, existing).map_err(failed)?.into())
            })?;
        }
    }
    Ok(RunReport { written: files.commit()?, left_open, warnings: Vec::new() })
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, RunError> {
    let failed = |source| truecast_io::Error::Io { path: path.into(), action: "reading", source };
    let (mut file, found) = open_regular(path)?;
    let mut bytes = Vec::new();
    let room = usize::try_from(found.len()).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(room).map_err(|_| failed(std::io::ErrorKind::OutOfMemory.into()))?;
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn malformed(path: &Path, cause: FileError) -> RunError {
    RunError::Model { path: path.display().to_string(), cause: Box::new(cause.into()) }
}

/// Judges every conversion of every block.
pub(super) fn judge(path: &Path, bytes: &[u8], target: Option<Target>) -> Result<Judgement, RunError> {
    let mut all = Judgement::default();
    for graph in &parse_blocks(bytes).map_err(|cause| malformed(path, cause))? {
        let judged = legality(graph, &target.unwrap_or_else(|| target_of(graph)));
        all.conversions += judged.conversions;
        all.of_unknown_type += judged.of_unknown_type;
        all.illegal.extend(judged.illegal.into_iter().map(|(place, error)| (place, error.reason())));
    }
    Ok(all)
}

/// Describes every block.
pub(super) fn describe(path: &str, bytes: &[u8]) -> Result<Description, RunError> {
    let graphs = parse_blocks(bytes).map_err(|cause| malformed(Path::new(path), cause))?;
    let mut all = Description::default();
    for graph in &graphs {
        let (major, minor, patch) = graph.version;
        all.version = Some(format!("TOSA {major}.{minor}.{patch}"));
        for operator in &graph.operators {
            let name = op::name(operator.op);
            *all.operators.entry(name.clone()).or_default() += 1;
            match operator.op {
                op::CONST | op::CONST_SHAPE => all.constants.extend(operator.outputs.iter().map(|name| {
                    let shape = graph.tensors.get(name).map_or("?".into(), |tensor| format!("{:?}", tensor.shape));
                    Constant { name: (*name).into(), dtype: type_name(graph, name), shape }
                })),
                op::CAST | op::RESCALE | op::CAST_TO_BLOCK_SCALED | op::CAST_FROM_BLOCK_SCALED => {
                    // The others are what scales, not what is scaled.
                    let from = operator.inputs.first().map_or("?".into(), |name| type_name(graph, name));
                    let to = operator.outputs.first().map_or("?".into(), |name| type_name(graph, name));
                    let place = operator.outputs.first().map_or(String::new(), |name| Shown(name).to_string());
                    let operation = name + &operator.rescale.map_or(String::new(), attributes);
                    all.conversions.push(Conversion { place, operation, from, to, legality: None });
                }
                _ => {}
            }
        }
    }
    Ok(all)
}

fn type_name(graph: &Graph<'_>, name: &str) -> String {
    let element = graph.tensors.get(name).and_then(|tensor| element_type(tensor).ok());
    element.map_or("?".into(), |element| element.to_string())
}

/// As the text calls them; a flag that is not set is left out.
fn attributes(attribute: RescaleAttribute) -> String {
    let RescaleAttribute { scale32, rounding_mode, per_channel, input_unsigned, output_unsigned } = attribute;
    let rounding = ["SINGLE_ROUND", "INEXACT_ROUND", "DOUBLE_ROUND"].get((rounding_mode as usize).wrapping_sub(1));
    let flags = [
        (scale32, "scale32"),
        (per_channel, "per_channel"),
        (input_unsigned, "input_unsigned"),
        (output_unsigned, "output_unsigned"),
    ];
    let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| name);
    let rounding = rounding.map_or(format!("rounding_mode {rounding_mode}"), |name| name.to_string());
    std::iter::once(rounding.as_str()).chain(flags).map(|word| format!(" {word}")).collect()
}

/// The files of an output: its elements, and its scales beside them.
fn arrays(name: &str, tensor: Tensor) -> Vec<(String, DType, Array)> {
    let stem = file_name(name);
    let Tensor { dtype, shape, data } = tensor;
    let (codes, scales) = match data {
        Data::Blocks { codes, scales } => {
            let scales = Array { shape: scale_shape(&shape), codes: scales };
            (codes, Some((format!("{stem}_scale.npy"), SCALE, scales)))
        }
        data => (Tensor { dtype, shape: shape.clone(), data }.codes().into_owned(), None),
    };
    [Some((format!("{stem}.npy"), dtype, Array { shape, codes })), scales].into_iter().flatten().collect()
}

fn results<'a>(
    path: &Path,
    graph: &Graph<'a>,
    (target, freedoms): (&Target, Freedoms),
    inputs: &[String],
    exec: &CastOptions,
) -> Result<Evaluated<'a>, RunError> {
    let files = assign(inputs, &graph.inputs)?;
    let provide = |name: &str, declared: &Declared| {
        let file = files.get(name).ok_or_else(|| Failed::Missing(name.into()))?;
        let wrong = |cause| Failed::Array(name.into(), Box::new(cause));
        let Array { shape, codes } = array::read(file, declared.element.dtype()).map_err(wrong)?;
        let data = match declared.element {
            ElementType::Plain(_) => Data::Codes(codes),
            ElementType::Blocks(_) => {
                let scales = array::read(&scale_file(file), SCALE).map_err(wrong)?.codes;
                Data::Blocks { codes, scales }
            }
        };
        Ok(Tensor { dtype: declared.element.dtype(), shape, data })
    };
    evaluate(graph, target, freedoms, exec, provide).map_err(|failed| match failed {
        Failed::Model(cause) => RunError::Model { path: path.display().to_string(), cause },
        Failed::Array(name, cause) => RunError::TosaArray { what: "input", name, cause },
        Failed::Missing(name) => RunError::NotGiven { path: path.display().to_string(), name },
    })
}

/// `x.npy` has its scales in `x_scale.npy`.
fn scale_file(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push("_scale.npy");
    path.with_file_name(name)
}

/// What ends an evaluation.
enum Failed {
    Model(Box<truecast_models::Error>),
    Array(String, Box<truecast_io::Error>),
    Missing(String),
}

impl From<truecast_models::Error> for Failed {
    fn from(cause: truecast_models::Error) -> Failed {
        Failed::Model(cause.into())
    }
}
