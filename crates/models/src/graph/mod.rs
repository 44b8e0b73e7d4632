//! A graph of conversions, built value by value in dependency order. Types are resolved during building; shapes and
//! elements become known with the inputs.

mod evaluate;

pub use evaluate::evaluate;

use std::fmt;
use std::sync::Arc;

use truecast_core::{CastSpec, DType};

use crate::error::Error;
use crate::tensor::Tensor;

/// A value of a graph: an input, a constant or the result of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueId(pub(crate) usize);

/// One dimension of a declared shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// This number.
    Known(u64),
    /// Any number, but equal for all dimensions of this name.
    Named(String),
    /// A number in this range, both ends included.
    Between(u64, u64),
    /// Any number.
    Any,
}

/// Elements that are loaded when they are needed.
pub trait Load: fmt::Debug + Send + Sync {
    /// Loads the tensor, whose type the graph declares.
    ///
    /// # Errors
    /// All errors of reading the elements.
    fn load(&self) -> Result<Arc<Tensor>, Error>;
}

impl Load for Arc<Tensor> {
    fn load(&self) -> Result<Arc<Tensor>, Error> {
        Ok(self.clone())
    }
}

/// An input of a graph.
#[derive(Debug)]
pub struct Input {
    /// Name.
    pub name: String,
    /// Required type.
    pub dtype: DType,
    /// Required shape, if declared.
    pub shape: Option<Vec<Dimension>>,
    /// Value if none is supplied.
    pub default: Option<Arc<dyn Load>>,
    pub(crate) value: ValueId,
}

/// An output of a graph.
#[derive(Debug)]
pub struct Output {
    /// Name.
    pub name: String,
    /// Type of the output's value.
    pub dtype: DType,
    /// Declared shape.
    pub shape: Option<Vec<Dimension>>,
    pub(crate) value: ValueId,
}

#[derive(Debug)]
pub(crate) enum Producer {
    /// Index of the input.
    Input(usize),
    Constant(Arc<dyn Load>),
    Cast {
        spec: CastSpec,
        input: ValueId,
    },
}

#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) dtype: DType,
    /// Name in errors. All expansions of a function's node share one label.
    pub(crate) label: Arc<str>,
    pub(crate) producer: Producer,
}

/// A graph of conversions. A node that returns its input unchanged adds no value.
///
/// # Examples
/// ```
/// use truecast_core::{spec::onnx::Cast, DType};
/// use truecast_models::{Data, Error, Graph, Tensor, evaluate};
/// use truecast_kernel::CastOptions;
///
/// let mut graph = Graph::default();
/// let x = graph.input("x", DType::F32, None, None);
/// let y = graph.cast("y", Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?, x);
/// graph.output("y", y, None);
///
/// let fed = Tensor { dtype: DType::F32, shape: vec![1], data: Data::Codes(465f32.to_le_bytes().into()) };
/// let mut results = Vec::new();
/// evaluate::<Error>(
///     &graph,
///     &CastOptions::default(),
///     |_| Ok(Some(fed.clone())),
///     |_, tensor| Ok(results.push(tensor.clone())),
/// )?;
/// assert_eq!(results[0].data, Data::Codes(vec![0x7e])); // saturates to 448
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Graph {
    pub(crate) values: Vec<Value>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
}

impl Graph {
    fn add(&mut self, dtype: DType, label: impl Into<Arc<str>>, producer: Producer) -> ValueId {
        self.values.push(Value { dtype, label: label.into(), producer });
        ValueId(self.values.len() - 1)
    }

    /// Adds an input.
    pub fn input(
        &mut self,
        name: &str,
        dtype: DType,
        shape: Option<Vec<Dimension>>,
        default: Option<Arc<dyn Load>>,
    ) -> ValueId {
        let value = self.add(dtype, name, Producer::Input(self.inputs.len()));
        self.inputs.push(Input { name: name.into(), dtype, shape, default, value });
        value
    }

    /// Adds a constant.
    pub fn constant(&mut self, label: impl Into<Arc<str>>, dtype: DType, elements: Arc<dyn Load>) -> ValueId {
        self.add(dtype, label, Producer::Constant(elements))
    }

    /// Adds a conversion.
    ///
    /// # Panics
    /// If `input` does not have the source type of `spec`.
    pub fn cast(&mut self, label: impl Into<Arc<str>>, spec: CastSpec, input: ValueId) -> ValueId {
        assert_eq!(self.dtype(input), spec.src, "a conversion takes the type that it was resolved for");
        self.add(spec.dst, label, Producer::Cast { spec, input })
    }

    /// Makes a value an output.
    pub fn output(&mut self, name: &str, value: ValueId, shape: Option<Vec<Dimension>>) {
        self.outputs.push(Output { name: name.into(), dtype: self.dtype(value), shape, value });
    }

    /// Type of a value.
    pub fn dtype(&self, value: ValueId) -> DType {
        self.values[value.0].dtype
    }

    /// Inputs in the order in which they were added.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Outputs in the order in which they were added.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Conversions in evaluation order, each with its name in errors.
    pub fn casts(&self) -> impl Iterator<Item = (&str, &CastSpec)> {
        self.values.iter().filter_map(|value| match &value.producer {
            Producer::Cast { spec, .. } => Some((&*value.label, spec)),
            _ => None,
        })
    }
}
