//! Evaluating a model of conversions: files in, files out.
//!
//! What a model means is `truecast-models`'s; this module feeds it from files and writes what it gives (`files`).

mod describe;
mod files;
mod model;
mod outputs;
pub mod tile;
pub mod tosa;

pub use describe::{Constant, Conversion, Description, Legality, onnx_conversions};
pub use model::{Judgement, Model, ModelKind, Rules};
pub use outputs::Written;

use crate::array::{self, ArrayError};
use crate::error::Error;
use model::Parameter;
use outputs::{Outputs, file_of};
use std::collections::BTreeMap;
use std::path::Path;
use truecast_core::DType;
use truecast_core::ErrorKind;
use truecast_io::{Existing, FileFormat, Shown, Source};
use truecast_kernel::CastOptions;
use truecast_models::openvino::InputHeader;
use truecast_models::tile::Diagnostic;
use truecast_models::{Input, OpenResults, Output, Tensor, evaluate};

/// Why a model was not evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum RunError {
    /// The extension names no kind of model.
    #[error(
        "{path}: unknown kind of model; expected .onnx, .tosa, .xml, or a Tile IR module (.mlir, .tileir, or bytecode)"
    )]
    UnknownKind { path: String },
    /// The model cannot be read.
    #[error(transparent)]
    File(#[from] truecast_io::Error),
    /// The network cannot be read.
    #[error(transparent)]
    Network(#[from] truecast_models::Error),
    /// It is not made of conversions, they are illegal, or evaluating them failed.
    #[error("{path}: {cause}")]
    Model { path: String, cause: Box<truecast_models::Error> },
    /// A Tile IR module is not read, or not legal.
    #[error("{path}:{cause}")]
    Tile { path: String, cause: Diagnostic },
    /// A module of Tile IR is larger than what is read.
    #[error("{path}: the module has more than {limit} bytes")]
    TooLarge { path: String, limit: u64 },
    /// The model is judged by the rules of another kind.
    #[error("{path}: models of this kind are checked by the rules of {fitting}")]
    Rules { path: String, fitting: &'static str },
    /// An input file is not what it should be.
    #[error("input {}: {cause}", Shown(name))]
    Input { name: String, cause: Box<ArrayError> },
    /// A file is given for what is no input, or twice.
    #[error("input {given:?}: {why}; the inputs are {inputs}")]
    NoInput { given: String, why: &'static str, inputs: String },
    /// No file is given for an input that has no default.
    #[error("{path}: input {} is not given", Shown(name))]
    NotGiven { path: String, name: String },
    /// A result would replace a file that is read.
    #[error("{path}: is read and cannot be the place of a result")]
    Read { path: String },
    /// Two results would be one file.
    #[error("{path}: two results have this place; rename one of them in the model")]
    SameOutput { path: String },
    /// An array of a graph of TOSA is not what it should be.
    #[error("{what} {}: {cause}", Shown(name))]
    TosaArray { what: &'static str, name: String, cause: Box<truecast_io::Error> },
    /// A result cannot be written.
    #[error("output {}: {cause}", Shown(name))]
    Output { name: String, cause: Box<truecast_io::Error> },
    /// A text that the chosen form would change.
    #[error("output {}: element {index} {why}, which .npy cannot hold", Shown(name))]
    Text { name: String, index: usize, why: &'static str },
}

impl RunError {
    /// Whose fault it is: the exit code follows from it (`docs/interfaces.md §5`).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            RunError::UnknownKind { .. } | RunError::Rules { .. } => ErrorKind::Usage,
            RunError::NoInput { .. } | RunError::NotGiven { .. } => ErrorKind::Usage,
            RunError::Read { .. } => ErrorKind::Usage,
            RunError::Model { cause, .. } => cause.kind(),
            RunError::Tile { .. } | RunError::TooLarge { .. } => ErrorKind::Input,
            RunError::SameOutput { .. } | RunError::Text { .. } => ErrorKind::Input,
            RunError::TosaArray { cause, .. } => cause.kind(),
            RunError::Input { cause, .. } => cause.kind(),
            RunError::File(cause) => cause.kind(),
            RunError::Network(cause) => cause.kind(),
            RunError::Output { cause, .. } => cause.kind(),
        }
    }
}

/// What came of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    /// The results.
    pub written: Vec<Written>,
    /// Conversions that met values which the specification leaves open.
    pub left_open: Vec<OpenResults>,
    /// What is odd about the model.
    pub warnings: Vec<String>,
}

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

/// The files of the inputs by name. Names and paths may hold `=`: the split is where the name of an input ends.
fn assign<'a>(given: &'a [String], inputs: &[&str]) -> Result<BTreeMap<&'a str, &'a Path>, RunError> {
    let wrong = |given: &str, why| {
        let names: Vec<_> = inputs.iter().map(|name| Shown(name).to_string()).collect();
        RunError::NoInput { given: given.into(), why, inputs: names.join(", ") }
    };
    let mut files = BTreeMap::new();
    for text in given {
        let splits = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let known = |(name, _): &(&str, &str)| inputs.contains(name);
        let (name, path) =
            splits.rev().find(known).ok_or_else(|| wrong(text, "does not begin with NAME= of an input"))?;
        if files.insert(name, Path::new(path)).is_some() {
            return Err(wrong(text, "names an input twice"));
        }
    }
    Ok(files)
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
