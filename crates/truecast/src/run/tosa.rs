//! Evaluating a `.tosa` graph: the arrays of Arm's tools in and out (`docs/spec/tosa.md §7`).

use super::files::{Pending, Reads, file_name};
use super::outputs::{Outputs, Written};
use super::{RunError, assign};
use std::path::{Path, PathBuf};
use truecast_core::DType;
use truecast_core::spec::tosa::Target;
use truecast_core::spec::tosa::block::SCALE;
use truecast_graph::tosa::value::{Declared, scale_shape};
use truecast_graph::tosa::{ElementType, GraphError, Value, evaluate, target_of};
use truecast_io::Existing;
use truecast_io::tosa::array::{self, Array, ArrayError};
use truecast_io::tosa::{Graph, parse};
use truecast_kernel::Exec;

/// The extension of the files.
pub const EXTENSION: &str = "tosa";

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
) -> Result<Vec<Written>, RunError> {
    let in_file = |action| move |source| truecast_io::Error::Io { path: path.into(), action, source };
    let bytes = std::fs::read(path).map_err(in_file("reading"))?;
    let graph = parse(&bytes).map_err(|cause| RunError::TosaFile { path: path.display().to_string(), cause })?;
    let outputs = results(path, &graph, target, inputs, exec)?;
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
    files.commit()
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
) -> Result<Vec<(&'a str, Value)>, RunError> {
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
        Failed::Missing(name) => RunError::NoInput {
            given: String::new(),
            why: "an input is missing",
            inputs: truecast_io::Shown(&name).to_string(),
        },
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
