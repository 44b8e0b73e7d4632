//! What the nodes of a model say, whoever asks: how errors name them, which opset governs them, their attributes.

use std::collections::HashMap;
use std::rc::Rc;

use truecast_core::DType;
use truecast_core::spec::onnx::{self, Attributes, DataType, Operator};
use truecast_io::Shown;
use truecast_io::onnx::{Attribute, AttributeValue, Function, Node, OpsetImport, ValueType, default_opset};

use super::error::NodeError;

/// How errors name a node: by its name, or by its first output.
pub(super) fn label(node: &Node) -> String {
    let operator = match node.default_operator() {
        Some(operator) => operator.to_string(),
        None => format!("{}.{}", node.domain, node.op_type),
    };
    let operator = operator.escape_debug();
    match (node.name.as_str(), node.outputs.first()) {
        ("", Some(output)) => format!("node that gives {} ({operator})", Shown(output)),
        (name, _) => format!("node {} ({operator})", Shown(name)),
    }
}

/// The opset of the default domain.
pub(super) fn opset(imports: &[OpsetImport]) -> Result<u32, NodeError> {
    let version = default_opset(imports).ok_or(NodeError::NoOpset)?;
    u32::try_from(version).map_err(|_| NodeError::Opset { version })
}

/// The element type that a number stands for.
pub(super) fn element_type(code: i64) -> Result<DType, String> {
    match DataType::of_code(code) {
        Some(DataType { dtype: Some(dtype), .. }) => Ok(*dtype),
        Some(row) => Err(format!("elements of type {} are not read", row.name)),
        None => Err(format!("unknown element type {code}")),
    }
}

/// The element type of a declared value; `None` if the model does not say.
pub(super) fn declared_type(kind: &ValueType) -> Result<Option<DType>, String> {
    match kind {
        ValueType::Unknown | ValueType::Tensor { elem_type: 0, .. } => Ok(None),
        ValueType::Tensor { elem_type, .. } => element_type(*elem_type).map(Some),
        ValueType::NoTensor => Err("is a sequence, map, optional or sparse tensor; only tensors are converted".into()),
    }
}

/// A function with its attributes by name.
pub(super) struct Callable<'a> {
    pub(super) function: &'a Function,
    /// The default of each, if it has one.
    attributes: HashMap<&'a str, Option<&'a AttributeValue>>,
}

impl<'a> Callable<'a> {
    pub(super) fn new(function: &'a Function) -> Callable<'a> {
        let required = function.attributes.iter().map(|name| (name.as_str(), None));
        let optional = function.attribute_defaults.iter().map(|a| (a.name.as_str(), Some(&a.value)));
        Callable { function, attributes: required.chain(optional).collect() }
    }
}

/// The attributes that a function's body may refer to: those of the call, and its own defaults.
#[derive(Default)]
pub(super) struct Bindings<'a> {
    given: HashMap<&'a str, &'a AttributeValue>,
    callable: Option<Rc<Callable<'a>>>,
}

impl<'a> Bindings<'a> {
    /// What a call of a function binds, itself within `outer`.
    pub(super) fn of_call(
        callable: &Rc<Callable<'a>>,
        call: &'a Node,
        outer: &Bindings<'a>,
    ) -> Result<Self, NodeError> {
        let mut given = HashMap::new();
        for attribute in &call.attributes {
            let name = attribute.name.as_str();
            if !callable.attributes.contains_key(name) {
                let why = format!("function {} has no such attribute", Shown(&callable.function.name));
                return Err(NodeError::Attribute { name: name.into(), why });
            }
            if let Some(value) = outer.resolve(attribute)? {
                given.insert(name, value);
            }
        }
        Ok(Bindings { given, callable: Some(callable.clone()) })
    }

    /// The value of an attribute; `None` for a reference to what neither the call nor a default gives, which is as if
    /// the attribute were not there.
    pub(super) fn resolve(&self, attribute: &'a Attribute) -> Result<Option<&'a AttributeValue>, NodeError> {
        let AttributeValue::Reference(name) = &attribute.value else { return Ok(Some(&attribute.value)) };
        let default = || self.callable.as_ref()?.attributes.get(name.as_str()).copied().flatten();
        Ok(self.given.get(name.as_str()).copied().or_else(default))
    }
}

/// The attributes of a conversion, checked against the version in force.
pub(super) fn attributes<'a>(
    operator: Operator,
    opset: u32,
    node: &'a Node,
    bindings: &Bindings<'a>,
) -> Result<Attributes, NodeError> {
    let mut given = Vec::with_capacity(node.attributes.len());
    for attribute in &node.attributes {
        if let Some(value) = bindings.resolve(attribute)? {
            given.push((attribute.name.as_str(), raw(value)));
        }
    }
    Ok(Attributes::read(operator, opset, given)?)
}

fn raw(value: &AttributeValue) -> onnx::AttributeValue<'_> {
    match value {
        AttributeValue::Int(value) => onnx::AttributeValue::Int(*value),
        AttributeValue::String(text) => onnx::AttributeValue::String(text),
        other => onnx::AttributeValue::Other(kind_name(other)),
    }
}

/// The name of an attribute's type in `AttributeProto`.
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

/// Checks that a node has as many inputs or outputs as its operator; those that are left out at the end count too.
pub(super) fn count(what: &'static str, names: &[String], expected: usize) -> Result<(), NodeError> {
    match names.len() == expected {
        true => Ok(()),
        false => Err(NodeError::Count { what, found: names.len(), expected }),
    }
}
