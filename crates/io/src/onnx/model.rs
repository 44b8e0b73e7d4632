//! The structure of a model: graphs, nodes, attributes, functions. Tensors are descriptions; their elements stay in
//! the file. [`super::parse`] builds the structure.

use std::ops::Range;

use super::tensor::TensorProto;

/// A model without the elements of its tensors.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// `ir_version`; 0 if the file does not state it.
    pub ir_version: i64,
    /// `producer_name`.
    pub producer_name: String,
    /// The operator sets, in the order of the file.
    pub opset_imports: Vec<OpsetImport>,
    /// The graph.
    pub graph: Graph,
    /// Model-local functions.
    pub functions: Vec<Function>,
    /// Whether the file has `training_info`, which is kept unread.
    pub has_training_info: bool,
}

/// An operator set and its version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpsetImport {
    /// Domain; empty for the default domain, which is also called `ai.onnx`.
    pub domain: String,
    /// The version.
    pub version: i64,
}

impl OpsetImport {
    /// Whether the import is of the default domain.
    pub fn is_default_domain(&self) -> bool {
        is_default_domain(&self.domain)
    }
}

/// Whether a domain is the default domain, `""` or `ai.onnx`.
pub fn is_default_domain(domain: &str) -> bool {
    matches!(domain, "" | "ai.onnx")
}

/// Identity of a function in calls: domain, name, overload. The domain is empty for both names of the default domain.
pub type Identity<'a> = (&'a str, &'a str, &'a str);

fn identity<'a>(domain: &'a str, name: &'a str, overload: &'a str) -> Identity<'a> {
    (if is_default_domain(domain) { "" } else { domain }, name, overload)
}

/// Version of the default domain among imports.
pub fn default_opset(imports: &[OpsetImport]) -> Option<i64> {
    imports.iter().find(|import| import.is_default_domain()).map(|import| import.version)
}

/// A graph, or a subgraph in an attribute.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Name.
    pub name: String,
    /// Nodes in file order, which is an order of evaluation.
    pub nodes: Vec<Node>,
    /// Inputs.
    pub inputs: Vec<ValueInfo>,
    /// Outputs.
    pub outputs: Vec<ValueInfo>,
    /// Types of other values.
    pub value_infos: Vec<ValueInfo>,
    /// Constants; an initializer named like an input is the input's default.
    pub initializers: Vec<TensorProto>,
    /// Sparse constants; each has the name of its tensor `values`.
    pub sparse_initializers: Vec<SparseTensor>,
    pub(crate) content: Range<u64>,
}

/// A model-local function.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Name; the `op_type` of calling nodes.
    pub name: String,
    /// Domain.
    pub domain: String,
    /// Distinguishes functions with the same name and domain.
    pub overload: String,
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Names of the outputs.
    pub outputs: Vec<String>,
    /// Names of attributes without a default.
    pub attributes: Vec<String>,
    /// Attributes with their defaults.
    pub attribute_defaults: Vec<Attribute>,
    /// The body.
    pub nodes: Vec<Node>,
    /// The operator sets of the body.
    pub opset_imports: Vec<OpsetImport>,
    pub(crate) content: Range<u64>,
}

impl Function {
    /// Identity by which nodes call the function.
    pub fn identity(&self) -> Identity<'_> {
        identity(&self.domain, &self.name, &self.overload)
    }
}

/// One operation.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Name; may be empty.
    pub name: String,
    /// Operator or function.
    pub op_type: String,
    /// Domain of the operator.
    pub domain: String,
    /// Overload of a function.
    pub overload: String,
    /// Names of the inputs; empty for an omitted input.
    pub inputs: Vec<String>,
    /// Names of the outputs; empty for an omitted output.
    pub outputs: Vec<String>,
    /// Attributes.
    pub attributes: Vec<Attribute>,
    pub(crate) content: Range<u64>,
}

impl Node {
    /// Name of the node's operator, if the operator is in the default domain.
    pub fn default_operator(&self) -> Option<&str> {
        is_default_domain(&self.domain).then_some(self.op_type.as_str())
    }

    /// Identity of the function that the node calls. The model may lack this function.
    pub fn identity(&self) -> Identity<'_> {
        identity(&self.domain, &self.op_type, &self.overload)
    }

    /// Value of the attribute with this name.
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &attribute.value)
    }
}

/// A named attribute of a node.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Name.
    pub name: String,
    /// Value.
    pub value: AttributeValue,
    pub(crate) content: Range<u64>,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(missing_docs)] // The variants are the types of AttributeProto.
pub enum AttributeValue {
    Float(f32),
    Int(i64),
    String(Vec<u8>),
    Tensor(Box<TensorProto>),
    Graph(Box<Graph>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Strings(Vec<Vec<u8>>),
    Tensors(Vec<TensorProto>),
    Graphs(Vec<Graph>),
    Sparse(Box<SparseTensor>),
    Sparses(Vec<SparseTensor>),
    Type,
    Types,
    /// In a function: name of the function's attribute that gives the value.
    Reference(String),
}

impl AttributeValue {
    /// Graphs in the value.
    pub fn graphs(&self) -> &[Graph] {
        match self {
            AttributeValue::Graph(graph) => std::slice::from_ref(graph),
            AttributeValue::Graphs(graphs) => graphs,
            _ => &[],
        }
    }
}

/// A sparse tensor: two tensors and a shape.
#[derive(Clone, Debug)]
pub struct SparseTensor {
    /// Nonzero elements.
    pub values: TensorProto,
    /// Positions of the nonzero elements.
    pub indices: TensorProto,
    /// Dimensions, not checked.
    pub dims: Vec<i64>,
    pub(crate) content: Range<u64>,
}

/// The name and type of a value.
#[derive(Clone, Debug, Default)]
pub struct ValueInfo {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: ValueType,
    pub(crate) content: Range<u64>,
}

/// The type of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ValueType {
    /// Not stated in the file.
    #[default]
    Unknown,
    /// A tensor that is not sparse.
    Tensor {
        /// `TensorProto.DataType`; 0 if not stated.
        elem_type: i64,
        /// The dimensions, if the rank is stated.
        shape: Option<Vec<Dimension>>,
    },
    /// A sequence, map, optional or sparse tensor.
    NoTensor,
}

/// One dimension of a value's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// A number; some files have negative numbers.
    Value(i64),
    /// A symbol; not empty.
    Named(String),
    /// Neither a number nor a symbol.
    Unknown,
}

impl Dimension {
    /// Dimension with this symbol; unknown if the symbol is empty.
    pub(crate) fn named(symbol: String) -> Dimension {
        if symbol.is_empty() { Dimension::Unknown } else { Dimension::Named(symbol) }
    }
}
