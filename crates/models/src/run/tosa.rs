//! Evaluates a `.tosa` graph. Inputs and outputs are arrays of Arm's tools (`docs/spec/tosa.md §7`).

use super::error::RunError;
use super::files::{Reads, file_name};
use super::inputs::assign;
use super::model::read_up_to;
use super::outputs::{Outputs, RunOptions, RunReport, Written};
pub use crate::tosa::ElementType;
use crate::tosa::FileError;
use crate::tosa::read::{Graph, parse};
use crate::tosa::value::{Declared, scale_shape};
use crate::tosa::{Evaluated, evaluate, target_of};
use crate::{Data, Tensor};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::spec::tosa::block::SCALE;
use truecast_core::spec::tosa::{Freedoms, Target};
use truecast_io::npy::tosa::{self as array, Array};

/// Evaluates a graph and writes its outputs. Scales of a block-scaled output are written to `NAME_scale.npy`.
///
/// The default target is the version in the file with every profile and extension. `freedoms` apply to plain CASTs
/// between floats (`docs/spec/tosa.md §3.9`).
///
/// # Errors
/// [`RunError`]; the cause in [`RunError::Model`] distinguishes errors from unpredictable results.
pub fn run(
    path: &Path,
    target: Option<Target>,
    freedoms: Freedoms,
    options: &RunOptions<'_>,
) -> Result<RunReport, RunError> {
    let bytes = read_up_to(path, u64::MAX)?;
    let graph = parse(&bytes).map_err(|cause| malformed(path, cause))?;
    let target = target.unwrap_or_else(|| target_of(&graph));
    let (outputs, left_open) = results(path, &graph, &target, freedoms, options)?;
    let mut files = Outputs::new(options, Reads::new(path, [], options.inputs)?);
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

fn malformed(path: &Path, cause: FileError) -> RunError {
    RunError::Model { path: path.display().to_string(), cause: Box::new(cause.into()) }
}

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
    target: &Target,
    freedoms: Freedoms,
    options: &RunOptions<'_>,
) -> Result<Evaluated<'a>, RunError> {
    let files = assign(options.inputs, &graph.inputs)?;
    let provide = |name: &str, declared: &Declared| {
        let missing = || RunError::NotGiven { path: path.display().to_string(), name: name.into() };
        let file = files.get(name).ok_or_else(missing)?;
        let wrong =
            |cause: truecast_io::Error| RunError::TosaArray { what: "input", name: name.into(), cause: cause.into() };
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
    evaluate(graph, target, freedoms, &options.exec, provide).map_err(|failed: RunError| failed.in_file(path))
}

/// `x_scale.npy` for `x.npy`.
fn scale_file(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push("_scale.npy");
    path.with_file_name(name)
}
