//! Every tensor of a model, wherever it is (`docs/spec/onnx.md §3.9`), under a name of its own.
//!
//! A value of the main graph keeps its name. In a subgraph it is preceded by `NODE/ATTRIBUTE/`, in a function by
//! `DOMAIN:FUNCTION/`; a tensor that is no value is called `NODE/ATTRIBUTE`. A name that occurs again gets a number.
//! Text and COMPLEX128 cannot be converted and are left out.

use std::collections::{BTreeSet, HashMap, HashSet};

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
        let operator = match node.default_operator() {
            Some(operator) => operator.to_string(),
            None => format!("{}.{}", node.domain, node.op_type),
        };
        for input in node.inputs.iter().filter(|name| !name.is_empty()) {
            consumers.entry(input.clone()).or_default().insert(operator.clone());
        }
    });
    consumers
}

/// Calls `visit` with every node, those of subgraphs included.
pub(crate) fn visit_nodes<'a>(nodes: &'a [Node], visit: &mut impl FnMut(&'a Node)) {
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
    names: HashSet<String>,
}

impl Inventory {
    fn add(&mut self, scope: &str, name: &str, role: Role, tensor: &TensorProto) {
        if tensor.dtype().is_none_or(|dtype| dtype == DType::String) {
            return;
        }
        let name = unique(format!("{scope}{name}"), &self.names);
        self.names.insert(name.clone());
        self.found.push(Listed { name, scope: scope.into(), role, tensor: tensor.clone() });
    }

    fn graph(&mut self, graph: &Graph, prefix: &str, consumers: &Consumers) {
        let inputs: HashSet<&str> = graph.inputs.iter().map(|input| input.name.as_str()).collect();
        for tensor in &graph.initializers {
            let role = Role::Value {
                consumers: consumers.get(&tensor.name).cloned().unwrap_or_default(),
                is_input: inputs.contains(tensor.name.as_str()),
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
                self.add(prefix, output, Role::Value { consumers, is_input: false }, tensor);
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

/// A name that is not taken: itself, or itself with a number.
pub(crate) fn unique(name: String, taken: &HashSet<String>) -> String {
    if !taken.contains(&name) {
        return name;
    }
    let numbered = |i: usize| format!("{name}.{i}");
    (2..).map(numbered).find(|name| !taken.contains(name)).expect("there are more numbers than names")
}

impl Listed {
    /// Its elements are in another file.
    pub(crate) fn is_external(&self) -> bool {
        matches!(self.tensor.payload, Payload::External(_))
    }
}
