//! Every tensor of a model (`docs/spec/onnx.md §3.9`), with a unique name: `VALUE` in the main graph,
//! `NODE/ATTRIBUTE/VALUE` in a subgraph, `DOMAIN:FUNCTION/VALUE` in a function. A tensor that is not a value is
//! called `NODE/ATTRIBUTE`.
//!
//! A node without a name is called by its operator and its number among unnamed nodes. A repeated name gets a number.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet};
use truecast_core::DType;

use super::model::{Attribute, AttributeValue, Graph, Model, Node, SparseTensor};
use super::parser::Budget;
use super::tensor::{Payload, TensorProto};
use crate::error::onnx::ProtoError;

/// One tensor of a model.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Name in lists, unique in the file.
    pub name: String,
    /// Prefix of all names in the tensor's scope; empty in the main graph.
    pub(crate) scope: Arc<str>,
    /// Name by which nodes refer to the tensor; empty if it is not a value.
    pub(crate) value: String,
    /// 0 for the main graph, or the number of a function (from 1).
    pub(crate) body: usize,
    /// Role in the model.
    pub role: Role,
    /// Description.
    pub tensor: TensorProto,
}

/// Role of a tensor in a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A value that nodes name: an initializer, or the `value` of a Constant.
    Value {
        /// Whether the value is the default of a graph input.
        is_input: bool,
        /// Whether the value is the `value` of a Constant.
        is_constant: bool,
    },
    /// A part of an attribute, or a part of a sparse tensor. The node's meaning depends on the part's type.
    Part,
}

/// Number of times that the budget counts a listed name: for the list, the plan, the written file and the report. A
/// node's name also begins every name in its subgraphs.
const COPIES_OF_A_NAME: u64 = 8;

#[derive(Debug, Default)]
pub(crate) struct Tensors {
    pub(crate) listed: Vec<Listed>,
    pub(crate) texts: Vec<Listed>,
}

pub(crate) fn list(model: &Model, budget: &mut Budget) -> Result<Tensors, ProtoError> {
    let mut list = Inventory { budget, found: Tensors::default(), names: Names::default(), body: 0 };
    list.graph(&model.graph, "")?;
    for function in &model.functions {
        list.body += 1;
        let prefix = format!("{}:{}/", function.domain, function.name);
        list.nodes(&function.nodes, &prefix.as_str().into())?;
        for attribute in &function.attribute_defaults {
            if let Some(path) = list.path(&prefix, "", attribute)? {
                list.parts(&attribute.value, &path)?;
            }
        }
    }
    Ok(list.found)
}

/// Returns how many nodes each operator has, also in subgraphs and functions. The key of an operator outside the
/// default domain includes its domain.
pub(crate) fn operators(model: &Model) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let bodies = model.functions.iter().map(|function| &function.nodes);
    for nodes in bodies.chain([&model.graph.nodes]) {
        visit_nodes(nodes, &mut |node| *counts.entry(operator(node)).or_default() += 1);
    }
    counts
}

fn operator(node: &Node) -> String {
    match node.default_operator() {
        Some(operator) => operator.to_string(),
        None => format!("{}.{}", node.domain, node.op_type),
    }
}

/// Calls `visit` for every node, including those in subgraphs.
pub fn visit_nodes<'a>(nodes: &'a [Node], visit: &mut impl FnMut(&'a Node)) {
    for node in nodes {
        visit(node);
        for graph in node.attributes.iter().flat_map(|attribute| attribute.value.graphs()) {
            visit_nodes(&graph.nodes, visit);
        }
    }
}

struct Inventory<'a> {
    budget: &'a mut Budget,
    found: Tensors,
    names: Names<'static>,
    body: usize,
}

impl Inventory<'_> {
    fn add(&mut self, scope: &Arc<str>, value: &str, role: Role, tensor: &TensorProto) -> Result<(), ProtoError> {
        self.charge(scope.len() + value.len(), tensor)?;
        self.push(format!("{scope}{value}"), scope.clone(), value, role, tensor);
        Ok(())
    }

    fn add_part(&mut self, path: &str, suffix: &str, tensor: &TensorProto) -> Result<(), ProtoError> {
        self.charge(path.len() + suffix.len(), tensor)?;
        self.push(format!("{path}{suffix}"), "".into(), "", Role::Part, tensor);
        Ok(())
    }

    fn charge(&mut self, name: usize, tensor: &TensorProto) -> Result<(), ProtoError> {
        let bytes = size_of::<Listed>() as u64 + COPIES_OF_A_NAME * name as u64;
        self.budget.charge(tensor.content.start, bytes)
    }

    fn push(&mut self, name: String, scope: Arc<str>, value: &str, role: Role, tensor: &TensorProto) {
        let list = match tensor.dtype() {
            None => return,
            Some(DType::String) => &mut self.found.texts,
            Some(_) => &mut self.found.listed,
        };
        let (name, body) = (self.names.take(name), self.body);
        list.push(Listed { name, scope, value: value.into(), body, role, tensor: tensor.clone() });
    }

    fn graph(&mut self, graph: &Graph, prefix: &str) -> Result<(), ProtoError> {
        let scope = Arc::from(prefix);
        let inputs: HashSet<&str> = graph.inputs.iter().map(|input| input.name.as_str()).collect();
        for tensor in &graph.initializers {
            let role = Role::Value { is_input: inputs.contains(tensor.name.as_str()), is_constant: false };
            self.add(&scope, &tensor.name, role, tensor)?;
        }
        for sparse in &graph.sparse_initializers {
            self.sparse(sparse, &format!("{prefix}{}", sparse.values.name))?;
        }
        self.nodes(&graph.nodes, &scope)
    }

    fn nodes(&mut self, nodes: &[Node], scope: &Arc<str>) -> Result<(), ProtoError> {
        let mut unnamed = 0;
        for node in nodes {
            let number = unnamed;
            unnamed += usize::from(node.name.is_empty());
            if let Some((output, tensor)) = constant(node) {
                self.add(scope, output, Role::Value { is_input: false, is_constant: true }, tensor)?;
                continue;
            }
            let name = match node.name.as_str() {
                "" => format!("{}{number}/", node.op_type),
                name => format!("{name}/"),
            };
            for attribute in &node.attributes {
                let Some(path) = self.path(scope, &name, attribute)? else { continue };
                for graph in attribute.value.graphs() {
                    self.graph(graph, &format!("{path}/"))?;
                }
                self.parts(&attribute.value, &path)?;
            }
        }
        Ok(())
    }

    /// Prefix of names inside an attribute; `None` if the attribute cannot hold tensors. Charged to the budget,
    /// because a name can be as long as the file.
    fn path(&mut self, scope: &str, node: &str, attribute: &Attribute) -> Result<Option<String>, ProtoError> {
        use AttributeValue::*;
        if !matches!(attribute.value, Tensor(_) | Tensors(_) | Graph(_) | Graphs(_) | Sparse(_) | Sparses(_)) {
            return Ok(None);
        }
        let len = scope.len() + node.len() + attribute.name.len();
        self.budget.charge(attribute.content.start, len as u64)?;
        Ok(Some(format!("{scope}{node}{}", attribute.name)))
    }

    fn parts(&mut self, value: &AttributeValue, path: &str) -> Result<(), ProtoError> {
        match value {
            AttributeValue::Tensor(tensor) => self.add_part(path, "", tensor),
            AttributeValue::Tensors(tensors) => tensors.iter().try_for_each(|tensor| self.add_part(path, "", tensor)),
            AttributeValue::Sparse(sparse) => self.sparse(sparse, path),
            AttributeValue::Sparses(all) => all.iter().try_for_each(|sparse| self.sparse(sparse, path)),
            _ => Ok(()),
        }
    }

    fn sparse(&mut self, sparse: &SparseTensor, path: &str) -> Result<(), ProtoError> {
        self.add_part(path, "/values", &sparse.values)?;
        self.add_part(path, "/indices", &sparse.indices)
    }
}

pub(crate) fn constant(node: &Node) -> Option<(&str, &TensorProto)> {
    match (node.default_operator(), node.outputs.as_slice(), node.attributes.as_slice()) {
        (Some("Constant"), [output], [Attribute { name, value: AttributeValue::Tensor(tensor), .. }])
            if name == "value" =>
        {
            Some((output, tensor))
        }
        _ => None,
    }
}

/// Names in use, each with the last number appended to it.
#[derive(Debug, Default)]
pub(crate) struct Names<'a>(HashMap<Cow<'a, str>, u64>);

impl<'a> Names<'a> {
    pub(crate) fn insert(&mut self, name: impl Into<Cow<'a, str>>) {
        self.0.entry(name.into()).or_insert(1);
    }

    /// Returns an unused name, now in use: `name`, or `name` with a number.
    pub(crate) fn take(&mut self, name: String) -> String {
        let mut number = self.0.get(name.as_str()).copied().unwrap_or(0);
        let mut unused = name.clone();
        while self.0.contains_key(unused.as_str()) {
            number += 1;
            unused = format!("{name}.{number}");
        }
        self.0.insert(name.into(), number.max(1));
        self.insert(unused.clone());
        unused
    }
}

/// Name of a tensor that stores a value's elements in another type.
pub(crate) fn stored_name(value: &str, dtype: DType) -> String {
    format!("{value}.{dtype}")
}

/// Name of the value that each tensor stores. For a tensor with a [`stored_name`], it is the name of its Cast's result.
/// For all other tensors, it is the tensor's name.
pub(crate) fn value_names(model: &Model, listed: &[Listed]) -> Vec<String> {
    let mut casts: HashMap<&str, &str> = HashMap::new();
    let bodies = model.functions.iter().map(|function| &function.nodes);
    for nodes in bodies.chain([&model.graph.nodes]) {
        visit_nodes(nodes, &mut |node| {
            if let (Some("Cast"), [stored], [value]) = (node.default_operator(), &node.inputs[..], &node.outputs[..]) {
                casts.insert(stored, value);
            }
        });
    }
    let value = |listed: &Listed| {
        let Role::Value { .. } = listed.role else { return None };
        let value = casts.get(listed.name.strip_prefix(&*listed.scope)?)?;
        let dtype = listed.tensor.dtype()?;
        listed.name[listed.scope.len()..]
            .starts_with(&stored_name(value, dtype))
            .then(|| format!("{}{value}", listed.scope))
    };
    listed.iter().map(|listed| value(listed).unwrap_or_else(|| listed.name.clone())).collect()
}

impl Listed {
    /// Index of the function that contains the tensor.
    pub fn function(&self) -> Option<usize> {
        self.body.checked_sub(1)
    }

    /// Location of the tensor's elements outside the model file.
    pub fn location(&self) -> Option<&str> {
        match &self.tensor.payload {
            Payload::External(external) => Some(&external.location),
            _ => None,
        }
    }
}
