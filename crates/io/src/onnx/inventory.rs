//! Every tensor of a model, wherever it is (`docs/spec/onnx.md §3.9`), under a name of its own.
//!
//! A value of the main graph keeps its name. In a subgraph it is preceded by `NODE/ATTRIBUTE/`, in a function by
//! `DOMAIN:FUNCTION/`; a tensor that is no value is called `NODE/ATTRIBUTE`. A name that occurs again gets a number.
//! Text and COMPLEX128 cannot be converted and are left out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use truecast_core::DType;

use super::model::{AttributeValue, Graph, Model, Node, SparseTensor};
use super::tensor::{Payload, TensorProto};

/// One tensor of a model.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name in lists: unique in the file.
    pub name: String,
    /// What precedes names of its scope in the list; empty in the main graph.
    pub(crate) scope: String,
    /// What it is to the model.
    pub role: Role,
    /// Its description.
    pub tensor: TensorProto,
}

/// What a tensor is to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// An initializer, or the `value` of a Constant: a value that nodes refer to by name.
    Value {
        /// The operators that take it as an input, with their domains unless that is the default one.
        consumers: BTreeSet<String>,
        /// It is the default of an input of the graph.
        is_input: bool,
        /// It is the `value` of a Constant, not an initializer.
        is_constant: bool,
    },
    /// A part of an attribute or of a sparse tensor: its type is part of what the node means.
    Part,
}

/// The tensors of a model in the order of its structure.
pub(crate) fn list(model: &Model) -> Vec<Listed> {
    let mut list = Inventory::default();
    let consumers = consumers_of(&model.graph.nodes);
    list.graph(&model.graph, "", &consumers);
    for function in &model.functions {
        let domain = function.domain.as_str();
        let prefix = format!("{domain}:{}/", function.name);
        let consumers = consumers_of(&function.nodes);
        list.nodes(&function.nodes, &prefix, &consumers);
        for attribute in &function.attribute_defaults {
            list.parts(&attribute.value, &format!("{prefix}{}", attribute.name));
        }
    }
    list.found
}

/// Who takes each value. A subgraph may take values of the graphs around it, so it counts with them.
type Consumers = HashMap<String, BTreeSet<String>>;

fn consumers_of(nodes: &[Node]) -> Consumers {
    let mut consumers = Consumers::new();
    visit_nodes(nodes, &mut |node| {
        let operator = operator(node);
        for input in node.inputs.iter().filter(|name| !name.is_empty()) {
            consumers.entry(input.clone()).or_default().insert(operator.clone());
        }
    });
    consumers
}

/// How often each operator occurs, by its name with its domain unless that is the default one; functions included.
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

/// Calls `visit` with every node, those of subgraphs included.
pub fn visit_nodes<'a>(nodes: &'a [Node], visit: &mut impl FnMut(&'a Node)) {
    for node in nodes {
        visit(node);
        for graph in node.attributes.iter().flat_map(|attribute| attribute.value.graphs()) {
            visit_nodes(&graph.nodes, visit);
        }
    }
}

#[derive(Default)]
struct Inventory {
    found: Vec<Listed>,
    names: Names,
}

impl Inventory {
    fn add(&mut self, scope: &str, name: &str, role: Role, tensor: &TensorProto) {
        if tensor.dtype().is_none_or(|dtype| dtype == DType::String) {
            return;
        }
        let name = self.names.take(format!("{scope}{name}"));
        self.found.push(Listed { name, scope: scope.into(), role, tensor: tensor.clone() });
    }

    fn graph(&mut self, graph: &Graph, prefix: &str, consumers: &Consumers) {
        let inputs: HashSet<&str> = graph.inputs.iter().map(|input| input.name.as_str()).collect();
        for tensor in &graph.initializers {
            let role = Role::Value {
                consumers: consumers.get(&tensor.name).cloned().unwrap_or_default(),
                is_input: inputs.contains(tensor.name.as_str()),
                is_constant: false,
            };
            self.add(prefix, &tensor.name, role, tensor);
        }
        for sparse in &graph.sparse_initializers {
            self.sparse(sparse, &format!("{prefix}{}", sparse.values.name));
        }
        self.nodes(&graph.nodes, prefix, consumers);
    }

    fn nodes(&mut self, nodes: &[Node], prefix: &str, consumers: &Consumers) {
        for (i, node) in nodes.iter().enumerate() {
            if let Some((output, tensor)) = constant(node) {
                let consumers = consumers.get(output).cloned().unwrap_or_default();
                self.add(prefix, output, Role::Value { consumers, is_input: false, is_constant: true }, tensor);
                continue;
            }
            let name = if node.name.is_empty() { format!("{}{i}", node.op_type) } else { node.name.clone() };
            for attribute in &node.attributes {
                let path = format!("{prefix}{name}/{}", attribute.name);
                for graph in attribute.value.graphs() {
                    self.graph(graph, &format!("{path}/"), consumers);
                }
                self.parts(&attribute.value, &path);
            }
        }
    }

    /// The tensors of an attribute, but not those of its graphs.
    fn parts(&mut self, value: &AttributeValue, path: &str) {
        let mut part = |tensor| self.add(path, "", Role::Part, tensor);
        match value {
            AttributeValue::Tensor(tensor) => part(tensor),
            AttributeValue::Tensors(tensors) => tensors.iter().for_each(part),
            AttributeValue::Sparse(sparse) => self.sparse(sparse, path),
            AttributeValue::Sparses(all) => all.iter().for_each(|sparse| self.sparse(sparse, path)),
            _ => {}
        }
    }

    fn sparse(&mut self, sparse: &SparseTensor, path: &str) {
        self.add(path, "/values", Role::Part, &sparse.values);
        self.add(path, "/indices", Role::Part, &sparse.indices);
    }
}

/// The output and the tensor of a Constant.
pub(crate) fn constant(node: &Node) -> Option<(&str, &TensorProto)> {
    match (node.default_operator(), node.outputs.as_slice(), node.attribute("value")) {
        (Some("Constant"), [output], Some(AttributeValue::Tensor(tensor))) => Some((output, tensor)),
        _ => None,
    }
}

/// Names that are taken, with the number that was last given to each.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, u64>);

impl Names {
    /// Takes a name as it is.
    pub(crate) fn insert(&mut self, name: &str) {
        self.0.entry(name.into()).or_insert(1);
    }

    /// Takes a name that is not taken: the given one, or that with a number.
    pub(crate) fn take(&mut self, name: String) -> String {
        let mut number = self.0.get(&name).copied().unwrap_or(0);
        let mut unused = name.clone();
        while self.0.contains_key(&unused) {
            number += 1;
            unused = format!("{name}.{number}");
        }
        self.0.insert(name, number.max(1));
        self.insert(&unused);
        unused
    }
}

/// The name under which a value's elements are stored as a type.
pub(crate) fn stored_name(value: &str, dtype: DType) -> String {
    format!("{value}.{dtype}")
}

/// The name of the value for which each tensor stands: what a Cast makes of it, if that is how it got its name.
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
        let value = casts.get(listed.name.strip_prefix(&listed.scope)?)?;
        let dtype = listed.tensor.dtype()?;
        listed.name[listed.scope.len()..]
            .starts_with(&stored_name(value, dtype))
            .then(|| format!("{}{value}", listed.scope))
    };
    listed.iter().map(|listed| value(listed).unwrap_or_else(|| listed.name.clone())).collect()
}

impl Listed {
    /// The file that holds its elements, if that is not the model.
    pub fn location(&self) -> Option<&str> {
        match &self.tensor.payload {
            Payload::External(external) => Some(&external.location),
            _ => None,
        }
    }
}
