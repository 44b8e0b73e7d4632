//! Evaluates an ONNX model or an OpenVINO network, with inputs and outputs in files.

use super::error::RunError;
use super::inputs::assign;
use super::model::{Model, Parameter};
use super::outputs::{Outputs, RunOptions, RunReport};
use crate::array::{self, ArrayError};
use crate::openvino::InputHeader;
use crate::{Input, Output, Tensor, evaluate};
use std::collections::BTreeMap;
use std::path::Path;
use truecast_core::DType;
use truecast_io::Source;

impl Model {
    /// Evaluates the model and writes its outputs.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(&self, options: &RunOptions<'_>) -> Result<RunReport, RunError> {
        let RunOptions { inputs, exec, .. } = options;
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
        let mut outputs = Outputs::new(options, self.reads(inputs)?);
        // Outputs that cannot be written are detected before the evaluation.
        graph.outputs().iter().try_for_each(|output| outputs.allow(&output.name))?;
        let provide = |input: &Input| {
            let wrong = |cause| RunError::Input { name: input.name.clone(), cause: Box::new(cause) };
            let file = files.get(input.name.as_str());
            file.map(|path| array::read(path, input.dtype, exec)).transpose().map_err(wrong)
        };
        let deliver = |output: &Output, tensor: &Tensor| outputs.add_tensor(&output.name, tensor);
        let left_open = evaluate(&graph, exec, provide, deliver).map_err(|failed| failed.in_file(self.path()))?;
        Ok(RunReport { written: outputs.commit()?, left_open, warnings })
    }
}

fn feed(parameters: &[Parameter], files: &BTreeMap<&str, &Path>) -> Result<BTreeMap<String, InputHeader>, RunError> {
    let header = |path: &Path, dtype: Option<DType>| -> Result<InputHeader, ArrayError> {
        let source = match dtype {
            Some(dtype) => array::open(path, dtype)?,
            None => Source::open(path, None).map_err(ArrayError::from)?,
        };
        let tensor = array::only_tensor(&source)?;
        Ok(InputHeader { dtype: Some(tensor.dtype), rank: tensor.shape.len() })
    };
    let fed = parameters.iter().filter_map(|(name, dtype)| Some((name, header(files.get(name.as_str())?, *dtype))));
    fed.map(|(name, fed)| match fed {
        Ok(fed) => Ok((name.clone(), fed)),
        Err(cause) => Err(RunError::Input { name: name.clone(), cause: cause.into() }),
    })
    .collect()
}
