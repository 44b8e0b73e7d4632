//! Properties of a model's nodes: labels in errors, opsets, types, attributes.

use std::collections::HashMap;
use std::rc::Rc;

use truecast_core::DType;
use truecast_core::spec::onnx::{self, Attributes, DataType, Operator};
use truecast_io::Escaped;
use truecast_io::onnx::{Attribute, AttributeValue, Function, Node, OpsetImport, ValueType, default_opset};

use super::error::NodeError;

/// Label of a node in errors: its name, else the name of its first output.
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

pub(super) fn opset(imports: &[OpsetImport]) -> Result<u32, NodeError> {
    let version = default_opset(imports).ok_or(NodeError::NoOpset)?;
    u32::try_from(version).map_err(|_| NodeError::Opset { version })
}

/// Row in the table of ONNX's numbered types; some types cannot be converted.
pub(super) type ElementType = &'static DataType;

/// Type of a value, or the reason why the value cannot be converted. Boxed to keep the many values small.
pub(super) type Known = Result<ElementType, Box<NodeError>>;

pub(super) fn declared(kind: &ValueType) -> Result<Option<ElementType>, NodeError> {
    match kind {
        ValueType::Unknown | ValueType::Tensor { elem_type: 0, .. } => Ok(None),
        ValueType::Tensor { elem_type: code, .. } => {
            DataType::of_code(*code).map(Some).ok_or(NodeError::UnknownElementType { code: *code })
        }
        ValueType::NoTensor => Err(NodeError::NoTensor),
    }
}

/// Declared element type of a value whose elements are read. Fails for a type that cannot be converted.
pub(super) fn declared_type(kind: &ValueType) -> Result<Option<DType>, NodeError> {
    let row = declared(kind)?;
    row.map(|row| row.dtype.ok_or(NodeError::ElementType { name: row.name })).transpose()
}

pub(super) struct Callable<'a> {
    pub(super) function: &'a Function,
    attributes: HashMap<&'a str, Option<&'a AttributeValue>>,
}

impl<'a> Callable<'a> {
    pub(super) fn new(function: &'a Function) -> Callable<'a> {
        let required = function.attributes.iter().map(|name| (name.as_str(), None));
        let optional = function.attribute_defaults.iter().map(|a| (a.name.as_str(), Some(&a.value)));
        Callable { function, attributes: required.chain(optional).collect() }
    }
}

/// Attributes to which a function's body may refer: attributes of the call, then the function's defaults.
#[derive(Default)]
pub(super) struct Bindings<'a> {
    given: HashMap<&'a str, &'a AttributeValue>,
    callable: Option<Rc<Callable<'a>>>,
}

impl<'a> Bindings<'a> {
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

    /// Value of an attribute. `None` for a reference without a value, which counts as a missing attribute.
    pub(super) fn resolve(&self, attribute: &'a Attribute) -> Result<Option<&'a AttributeValue>, NodeError> {
        let AttributeValue::Reference(name) = &attribute.value else { return Ok(Some(&attribute.value)) };
        let default = || self.callable.as_ref()?.attributes.get(name.as_str()).copied().flatten();
        Ok(self.given.get(name.as_str()).copied().or_else(default))
    }
}

/// Reads the attributes of a conversion and checks them for the opset. `value` returns an attribute's value; `None`
/// counts as missing.
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

pub(super) fn raw(value: &AttributeValue) -> onnx::AttributeValue<'_> {
    match value {
        AttributeValue::Int(value) => onnx::AttributeValue::Int(*value),
        AttributeValue::String(text) => onnx::AttributeValue::String(text),
        other => onnx::AttributeValue::Other(kind_name(other)),
    }
}

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

/// Inputs of a node, which must have exactly `expected` inputs, none omitted.
pub(super) fn operands(node: &Node, expected: usize) -> Result<&[String], NodeError> {
    required("input", "inputs", &node.inputs, expected)
}

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
