//! `.tosa` graphs: evaluated with the arrays of Arm's tools in and out (`docs/spec/tosa.md §7`), judged, described.

use super::files::{Pending, Reads, file_name};
use super::outputs::{Outputs, Written};
use super::{Judgement, Ran, RunError, assign};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use truecast_core::DType;
use truecast_core::spec::tosa::Target;
use truecast_core::spec::tosa::block::SCALE;
pub use truecast_graph::tosa::ElementType;
use truecast_graph::tosa::value::{Declared, element_type, scale_shape};
use truecast_graph::tosa::{Evaluated, GraphError, Value, evaluate, judge as legality, target_of};
use truecast_io::Existing;
use truecast_io::tosa::array::{self, Array, ArrayError};
use truecast_io::tosa::{FileError, Graph, op, parse, parse_blocks};
use truecast_kernel::Exec;

/// The extension of the files.
pub const EXTENSION: &str = "tosa";

/// Whether a file's name says that it is a graph of TOSA.
pub fn is_tosa(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION))
}

/// Evaluates a graph and writes each output to a file of its own in `folder`, named by the output; scales of a
/// block-scaled output stand beside it (`NAME_scale.npy`).
///
/// `inputs` are of the form `NAME=FILE`. Without a target, the version that the file says decides, with every profile and
/// extension.
///
/// # Errors
/// [`RunError`]; [`RunError::Tosa`] says whether the result is an error or unpredictable.
pub fn run(
    path: &Path,
    target: Option<Target>,
    inputs: &[String],
    folder: &Path,
    existing: Existing,
    exec: &Exec,
) -> Result<Ran, RunError> {
    let bytes = read(path)?;
    let graph = parse(&bytes).map_err(|cause| malformed(path, cause))?;
    let (outputs, left_open) = results(path, &graph, target, inputs, exec)?;
    let mut files = Outputs::new(folder, existing, Reads::of(path, [], inputs));
    for (name, value) in outputs {
        for (file, dtype, array) in arrays(name, value) {
            let path = files.place(&file)?;
            let written = Written { name: name.into(), dtype, shape: array.shape.clone(), path };
            let failed =
                |cause: ArrayError| RunError::TosaArray { what: "output", name: name.into(), cause: cause.into() };
            files.add(written, |path, existing| {
                Ok(Pending::Message(array::start(path, dtype, &array, existing).map_err(failed)?))
            })?;
        }
    }
    Ok(Ran { written: files.commit()?, left_open, warnings: Vec::new() })
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, RunError> {
    let failed = |source| truecast_io::Error::Io { path: path.into(), action: "reading", source };
    Ok(std::fs::read(path).map_err(failed)?)
}

fn malformed(path: &Path, cause: FileError) -> RunError {
    RunError::TosaFile { path: path.display().to_string(), cause }
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

/// What a `.tosa` file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Major, minor and patch version, as the file says.
    pub version: (i32, i32, i32),
    /// Bytes of the file.
    pub bytes: u64,
    /// Blocks; more than one is control flow.
    pub blocks: usize,
    /// How often each operator occurs.
    pub operators: BTreeMap<String, usize>,
    /// Tensors in the order of their names, block by block.
    pub tensors: Vec<Described>,
}

/// A tensor of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Its type; the number of one that is not known.
    pub element: Result<ElementType, u32>,
    /// Its dimensions, -1 for one that is not known; `None` if not even their number is.
    pub shape: Option<Vec<i32>>,
    /// What the graph uses it for.
    pub role: Role,
    /// Bytes of a constant in the file, scales among them.
    pub bytes: u64,
}

/// What a graph uses a tensor for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is given.
    Input,
    /// It is a result of the graph.
    Output,
    /// It stands in the file.
    Constant,
    /// An operator gives it to another.
    Inner,
}

impl Role {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Input => "input",
            Role::Output => "output",
            Role::Constant => "constant",
            Role::Inner => "inner",
        }
    }
}

/// Describes a file without evaluating it.
///
/// # Errors
/// [`RunError::File`], [`RunError::TosaFile`].
pub fn describe(path: &Path) -> Result<Description, RunError> {
    let bytes = read(path)?;
    let graphs = parse_blocks(&bytes).map_err(|cause| malformed(path, cause))?;
    let mut all = Description { bytes: bytes.len() as u64, blocks: graphs.len(), ..Description::default() };
    for graph in &graphs {
        all.version = graph.version;
        for operator in &graph.operators {
            *all.operators.entry(op::name(operator.op)).or_default() += 1;
        }
        let constants: BTreeSet<&str> = graph
            .operators
            .iter()
            .filter(|operator| [op::CONST, op::CONST_SHAPE].contains(&operator.op))
            .flat_map(|operator| operator.outputs.iter().copied())
            .collect();
        let mut tensors: Vec<_> = graph.tensors.iter().collect();
        tensors.sort_by_key(|(name, _)| **name);
        all.tensors.extend(tensors.into_iter().map(|(name, tensor)| Described {
            name: (*name).into(),
            element: element_type(tensor).map_err(|_| tensor.dtype),
            shape: (!tensor.is_unranked).then(|| tensor.shape.clone()),
            role: match name {
                _ if constants.contains(name) => Role::Constant,
                _ if graph.inputs.contains(name) => Role::Input,
                _ if graph.outputs.contains(name) => Role::Output,
                _ => Role::Inner,
            },
            bytes: (tensor.data.len() + tensor.scale_data.len()) as u64,
        }));
    }
    Ok(all)
}

/// The files of an output: its elements, and its scales beside them.
fn arrays(name: &str, value: Value) -> Vec<(String, DType, Array)> {
    let stem = file_name(name);
    let Value { element, shape, codes, scales } = value;
    let scales = match element {
        ElementType::Plain(_) => None,
        ElementType::Blocks(_) => {
            let scales = Array { shape: scale_shape(&shape), codes: scales };
            Some((format!("{stem}_scale.npy"), SCALE, scales))
        }
    };
    [Some((format!("{stem}.npy"), element.dtype(), Array { shape, codes })), scales].into_iter().flatten().collect()
}

fn results<'a>(
    path: &Path,
    graph: &Graph<'a>,
    target: Option<Target>,
    inputs: &[String],
    exec: &Exec,
) -> Result<Evaluated<'a>, RunError> {
    let files = assign(inputs, &graph.inputs)?;
    let provide = |name: &str, declared: &Declared| {
        let file = files.get(name).ok_or_else(|| Failed::Missing(name.into()))?;
        let wrong = |cause| Failed::Array(name.into(), Box::new(cause));
        let Array { shape, codes } = array::read(file, declared.element.dtype()).map_err(wrong)?;
        let scales = match declared.element {
            ElementType::Plain(_) => Vec::new(),
            ElementType::Blocks(_) => array::read(&scale_file(file), SCALE).map_err(wrong)?.codes,
        };
        Ok(Value { element: declared.element, shape, codes, scales })
    };
    evaluate(graph, &target.unwrap_or_else(|| target_of(graph)), exec, provide).map_err(|failed| match failed {
        Failed::Graph(cause) => RunError::Tosa { path: path.display().to_string(), cause },
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
    Graph(Box<GraphError>),
    Array(String, Box<ArrayError>),
    Missing(String),
}

impl From<GraphError> for Failed {
    fn from(cause: GraphError) -> Failed {
        Failed::Graph(cause.into())
    }
}
