//! Properties of a model's nodes: their labels in errors, opsets, types and attributes.

use std::collections::HashMap;
use std::rc::Rc;

use truecast_core::DType;
use truecast_core::spec::onnx::{self, Attributes, DataType, Operator};
use truecast_io::Escaped;
use truecast_io::onnx::{Attribute, AttributeValue, Function, Node, OpsetImport, ValueType, default_opset};

use super::error::NodeError;

/// Returns the name of a node in errors: its own, or else its first output's.
pub(super) fn label(node: &Node) -> String {
    let operator = match node.default_operator() {
        Some(operator) => operator.to_string(),
        None => format!("{}.{}", node.domain, node.op_type),
    };
    let operator = operator.escape_debug();
    match (node.name.as_str(), node.outputs.first()) {
        ("", Some(output)) => format!("node that produces {} ({operator})", Escaped(output)),
        (name, _) => format!("node {} ({operator})", Escaped(name)),
    }
}

/// Returns the imported opset of the default domain.
pub(super) fn opset(imports: &[OpsetImport]) -> Result<u32, NodeError> {
    let version = default_opset(imports).ok_or(NodeError::NoOpset)?;
    u32::try_from(version).map_err(|_| NodeError::Opset { version })
}

/// A row in the table of ONNX's numbered types, which has types that cannot be converted too.
pub(super) type ElementType = &'static DataType;

/// Type of a value, or the reason why it has no convertible type. The error is boxed to keep the many values small.
pub(super) type Known = Result<ElementType, Box<NodeError>>;

/// Returns the declared element type of a value; `None` if it is not stated.
pub(super) fn declared(kind: &ValueType) -> Result<Option<ElementType>, NodeError> {
    match kind {
        ValueType::Unknown | ValueType::Tensor { elem_type: 0, .. } => Ok(None),
        ValueType::Tensor { elem_type: code, .. } => {
            DataType::of_code(*code).map(Some).ok_or(NodeError::UnknownElementType { code: *code })
        }
        ValueType::NoTensor => Err(NodeError::NoTensor),
    }
}

/// Like [`declared`], for values whose elements are read; a type that cannot be converted is an error.
pub(super) fn declared_type(kind: &ValueType) -> Result<Option<DType>, NodeError> {
    let row = declared(kind)?;
    row.map(|row| row.dtype.ok_or(NodeError::ElementType { name: row.name })).transpose()
}

/// A function of the model, with its attributes by name.
pub(super) struct Callable<'a> {
    pub(super) function: &'a Function,
    /// Default of each attribute, if it has one.
    attributes: HashMap<&'a str, Option<&'a AttributeValue>>,
}

impl<'a> Callable<'a> {
    pub(super) fn new(function: &'a Function) -> Callable<'a> {
        let required = function.attributes.iter().map(|name| (name.as_str(), None));
        let optional = function.attribute_defaults.iter().map(|a| (a.name.as_str(), Some(&a.value)));
        Callable { function, attributes: required.chain(optional).collect() }
    }
}

/// Attributes to which a function's body may refer: the attributes of the call, and the function's defaults.
#[derive(Default)]
pub(super) struct Bindings<'a> {
    given: HashMap<&'a str, &'a AttributeValue>,
    callable: Option<Rc<Callable<'a>>>,
}

impl<'a> Bindings<'a> {
    /// Binds the attributes of a function's call in a body with the bindings `outer`.
    pub(super) fn of_call(
        callable: &Rc<Callable<'a>>,
        call: &'a Node,
        outer: &Bindings<'a>,
    ) -> Result<Self, NodeError> {
        let mut given = HashMap::new();
        for attribute in &call.attributes {
            let name = attribute.name.as_str();
            if !callable.attributes.contains_key(name) {
                let why = format!("function {} has no such attribute", Escaped(&callable.function.name));
                return Err(NodeError::Attribute { name: name.into(), why });
            }
            if let Some(value) = outer.resolve(attribute)? {
                given.insert(name, value);
            }
        }
        Ok(Bindings { given, callable: Some(callable.clone()) })
    }

    /// Returns the value of an attribute. `None` for a reference that neither the call nor a default gives a value;
    /// such an attribute counts as missing.
    pub(super) fn resolve(&self, attribute: &'a Attribute) -> Result<Option<&'a AttributeValue>, NodeError> {
        let AttributeValue::Reference(name) = &attribute.value else { return Ok(Some(&attribute.value)) };
        let default = || self.callable.as_ref()?.attributes.get(name.as_str()).copied().flatten();
        Ok(self.given.get(name.as_str()).copied().or_else(default))
    }
}

/// Reads the attributes of a conversion, and checks them against the operator's version in the opset. `value` returns
/// the value of an attribute, or `None` if it counts as missing.
pub(super) fn attributes<'a>(
    operator: Operator,
    opset: u32,
    node: &'a Node,
    value: impl Fn(&'a Attribute) -> Result<Option<onnx::AttributeValue<'a>>, NodeError>,
) -> Result<Attributes, NodeError> {
    let mut given = Vec::with_capacity(node.attributes.len());
    for attribute in &node.attributes {
        if let Some(value) = value(attribute)? {
            given.push((attribute.name.as_str(), value));
        }
    }
    Ok(Attributes::read(operator, opset, given)?)
}

/// Converts the value of an attribute to the form that [`Attributes::read`] takes.
pub(super) fn raw(value: &AttributeValue) -> onnx::AttributeValue<'_> {
    match value {
        AttributeValue::Int(value) => onnx::AttributeValue::Int(*value),
        AttributeValue::String(text) => onnx::AttributeValue::String(text),
        other => onnx::AttributeValue::Other(kind_name(other)),
    }
}

/// Returns the name of an attribute's type in `AttributeProto`.
pub(super) fn kind_name(value: &AttributeValue) -> &'static str {
    match value {
        AttributeValue::Float(_) => "FLOAT",
        AttributeValue::Int(_) => "INT",
        AttributeValue::String(_) => "STRING",
        AttributeValue::Tensor(_) => "TENSOR",
        AttributeValue::Graph(_) => "GRAPH",
        AttributeValue::Floats(_) => "FLOATS",
        AttributeValue::Ints(_) => "INTS",
        AttributeValue::Strings(_) => "STRINGS",
        AttributeValue::Tensors(_) => "TENSORS",
        AttributeValue::Graphs(_) => "GRAPHS",
        AttributeValue::Sparse(_) => "SPARSE_TENSOR",
        AttributeValue::Sparses(_) => "SPARSE_TENSORS",
        AttributeValue::Reference(_) => "a reference",
        _ => "TYPE_PROTO",
    }
}

/// Returns the inputs of a node that must have exactly `expected` inputs; an omitted input is an error.
pub(super) fn operands(node: &Node, expected: usize) -> Result<&[String], NodeError> {
    required("input", "inputs", &node.inputs, expected)
}

/// Returns the output of a node that must have exactly one.
pub(super) fn result(node: &Node) -> Result<&str, NodeError> {
    required("output", "outputs", &node.outputs, 1).map(|names| names[0].as_str())
}

fn required<'a>(
    what: &'static str,
    all: &'static str,
    names: &'a [String],
    expected: usize,
) -> Result<&'a [String], NodeError> {
    if names.len() != expected {
        return Err(NodeError::Count { what: all, found: names.len(), expected });
    }
    match names.iter().position(String::is_empty) {
        Some(index) => Err(NodeError::LeftOut { what, index }),
        None => Ok(names),
    }
}
