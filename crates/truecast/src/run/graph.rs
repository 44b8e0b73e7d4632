//! Evaluating an ONNX model or an OpenVINO network: files in, files out.

use super::error::RunError;
use super::inputs::assign;
use super::model::{Model, Parameter};
use super::outputs::{Outputs, RunReport, file_of};
use crate::array::{self, ArrayError};
use crate::error::Error;
use std::collections::BTreeMap;
use std::path::Path;
use truecast_core::DType;
use truecast_io::{Existing, FileFormat, Source};
use truecast_kernel::CastOptions;
use truecast_models::openvino::InputHeader;
use truecast_models::{Input, Output, Tensor, evaluate};

impl Model {
    /// Evaluates the model and writes each output to a file of its own in `folder`, named by the output. All of them
    /// appear when everything has succeeded.
    ///
    /// `inputs` are of the form `NAME=FILE`. `kind` is [`FileFormat::Npy`] or [`FileFormat::TensorProto`].
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(
        &self,
        inputs: &[String],
        folder: &Path,
        kind: FileFormat,
        existing: Existing,
        exec: &CastOptions,
    ) -> Result<RunReport, RunError> {
        let fed = match self.open_parameters() {
            Some(parameters) => {
                let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
                feed(&parameters, &assign(inputs, &names)?)?
            }
            None => BTreeMap::new(),
        };
        let (graph, warnings) = self.graph(&fed)?;
        let names: Vec<&str> = graph.inputs().iter().map(|input| input.name.as_str()).collect();
        let files = assign(inputs, &names)?;
        let mut outputs = Outputs::new(folder, existing, self.reads(inputs));
        // What stands in the way is seen before the work.
        graph.outputs().iter().try_for_each(|output| outputs.allow(&file_of(&output.name, kind)))?;
        let left_open = evaluate(
            &graph,
            exec,
            |input: &Input| match files.get(input.name.as_str()) {
                Some(path) => array::read(path, input.dtype, exec)
                    .map(Some)
                    .map_err(|cause| Failed::Input(input.name.clone(), cause.into())),
                None => Ok(None),
            },
            |output: &Output, tensor: &Tensor| {
                outputs.add_tensor(&output.name, tensor, kind, exec).map_err(Failed::Output)
            },
        )
        .map_err(|failed| match failed {
            Failed::Model(cause) => RunError::Model { path: self.shown(), cause },
            Failed::Input(name, cause) => RunError::Input { name, cause },
            Failed::Output(error) => error,
        })?;
        Ok(RunReport { written: outputs.commit()?, left_open, warnings })
    }
}

/// What ends an evaluation.
enum Failed {
    Model(Box<truecast_models::Error>),
    Input(String, Box<ArrayError>),
    Output(RunError),
}

impl From<truecast_models::Error> for Failed {
    fn from(cause: truecast_models::Error) -> Failed {
        Failed::Model(cause.into())
    }
}

/// What the headers of files say of the parameters that they are for.
fn feed(parameters: &[Parameter], files: &BTreeMap<&str, &Path>) -> Result<BTreeMap<String, InputHeader>, RunError> {
    let header = |path: &Path, dtype: Option<DType>| -> Result<InputHeader, ArrayError> {
        let source = match dtype {
            Some(dtype) => array::open(path, dtype)?,
            None => Source::open(path, None).map_err(Error::from)?,
        };
        match source.tensors() {
            [tensor] => Ok(InputHeader { dtype: Some(tensor.dtype), rank: tensor.shape.len() }),
            tensors => Err(ArrayError::NotOne { path: path.display().to_string(), tensors: tensors.len() }),
        }
    };
    let fed = parameters.iter().filter_map(|(name, dtype)| Some((name, header(files.get(name.as_str())?, *dtype))));
    fed.map(|(name, fed)| match fed {
        Ok(fed) => Ok((name.clone(), fed)),
        Err(cause) => Err(RunError::Input { name: name.clone(), cause: cause.into() }),
    })
    .collect()
}
