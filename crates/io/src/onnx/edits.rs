//! Names and Casts of a model that stores some of its tensors in other types (`docs/spec/onnx.md §3.10`).

use foldhash::{HashMap, HashMapExt, HashSet};
use truecast_core::DType;

use super::emit;
use super::inventory::{Listed, Names, Role, constant, stored_name, visit_nodes};
use super::model::{Graph, Model, Node, ValueInfo, default_opset};
use super::rewrite::Place;
use super::tensor::TensorProto;

/// Alignment of tensors in a file of external data, for mapping (`docs/spec/onnx.md §3.6`).
const EXTERNAL_ALIGNMENT: u64 = 4096;

/// The listed tensors of a model, with their types in the new model.
pub(super) struct Tensors<'a> {
    listed: &'a [Listed],
    dtypes: &'a [DType],
    /// Index of each tensor, by the start of its message.
    by_start: HashMap<u64, usize>,
    /// Bodies with a changed tensor: 0 for the main graph, or the number of a function.
    changed_bodies: HashSet<usize>,
}

impl<'a> Tensors<'a> {
    pub(super) fn new(listed: &'a [Listed], dtypes: &'a [DType]) -> Self {
        let by_start = listed.iter().enumerate().map(|(i, l)| (l.tensor.content.start, i)).collect();
        let mut tensors = Tensors { listed, dtypes, by_start, changed_bodies: HashSet::default() };
        let changed = (0..listed.len()).filter(|&index| tensors.is_changed(index));
        tensors.changed_bodies = changed.map(|index| listed[index].body).collect();
        tensors
    }

    pub(super) fn index(&self, tensor: &TensorProto) -> Option<usize> {
        self.by_start.get(&tensor.content.start).copied()
    }

    pub(super) fn is_body_changed(&self, body: usize) -> bool {
        self.changed_bodies.contains(&body)
    }

    /// Returns the number of a tensor's type in the new model.
    pub(super) fn type_code(&self, index: usize) -> i64 {
        emit::code_of(self.dtypes[index])
    }

    /// Returns the length of a tensor's elements in the new model.
    pub(super) fn bytes(&self, index: usize) -> u64 {
        let described = self.listed[index].tensor.describe(None);
        described.map_or(0, |tensor| crate::Tensor { dtype: self.dtypes[index], ..tensor }.bytes())
    }

    /// Returns the place of each tensor's elements, and the length of the file of external data. Tensors inside the
    /// model with at least `least_moved_bytes` move outside.
    pub(super) fn place(&self, least_moved_bytes: u64) -> (Vec<Place>, u64) {
        let mut end = 0u64;
        let place = |(index, listed): (usize, &Listed)| {
            let bytes = self.bytes(index);
            let moves = bytes >= least_moved_bytes && listed.role != Role::Part;
            if listed.location().is_some() || moves {
                let offset = end.next_multiple_of(EXTERNAL_ALIGNMENT);
                end = offset + bytes;
                Place::Outside(offset)
            } else if self.is_changed(index) {
                Place::Inside
            } else {
                Place::Untouched
            }
        };
        (self.listed.iter().enumerate().map(place).collect(), end)
    }

    /// Returns the index of a tensor if its type changes.
    fn changed(&self, tensor: &TensorProto) -> Option<usize> {
        self.index(tensor).filter(|&index| self.is_changed(index))
    }

    fn is_changed(&self, index: usize) -> bool {
        Some(self.dtypes[index]) != self.listed[index].tensor.dtype()
    }
}

/// Names and Casts of the new model.
pub(super) struct Edits {
    /// Name of each listed tensor in the new file's list.
    pub(super) names: Vec<String>,
    /// New names, by the start of the message: for tensors, for outputs of Constants, and for graph inputs, with the
    /// number of the input's new type.
    pub(super) tensor_names: HashMap<u64, String>,
    pub(super) output_names: HashMap<u64, String>,
    pub(super) inputs: HashMap<u64, (String, i64)>,
    /// Casts to insert, by the start of their scope's message and the index of the node that they precede.
    pub(super) casts: HashMap<(u64, usize), Vec<Vec<u8>>>,
}

impl Edits {
    /// Plans the edits; `opset` is the least version of the operator set.
    pub(super) fn plan(model: &Model, tensors: &Tensors<'_>, opset: Option<i64>) -> Edits {
        let edits = Edits {
            names: tensors.listed.iter().map(|listed| listed.name.clone()).collect(),
            tensor_names: HashMap::new(),
            output_names: HashMap::new(),
            inputs: HashMap::new(),
            casts: HashMap::new(),
        };
        let mut planner = Planner { tensors, taken: names_in(model), edits };
        let raised = |version: Option<i64>| version.max(opset).unwrap_or(1);
        planner.graph(&model.graph, raised(default_opset(&model.opset_imports)));
        for function in &model.functions {
            let opset = raised(default_opset(&function.opset_imports));
            planner.nodes(&function.nodes, Scope { start: function.content.start, opset });
        }
        planner.edits
    }
}

/// A graph or a function: the start of its message, and the version of its operator set.
#[derive(Clone, Copy)]
struct Scope {
    start: u64,
    opset: i64,
}

struct Planner<'a> {
    tensors: &'a Tensors<'a>,
    taken: Names<'a>,
    edits: Edits,
}

impl<'a> Planner<'a> {
    fn graph(&mut self, graph: &'a Graph, opset: i64) {
        let scope = Scope { start: graph.content.start, opset };
        let changed = graph.initializers.iter().filter_map(|tensor| Some((tensor, self.tensors.changed(tensor)?)));
        let changed: Vec<_> = changed.collect();
        let first_uses = if changed.is_empty() { HashMap::new() } else { first_uses(&graph.nodes) };
        let inputs: HashMap<&str, &ValueInfo> = graph.inputs.iter().map(|input| (input.name.as_str(), input)).collect();
        for (tensor, index) in changed {
            // The Cast comes directly before the first use of its result, so that a runtime need not hold the result
            // longer.
            let before = first_uses.get(tensor.name.as_str()).copied().unwrap_or(graph.nodes.len());
            let stored = self.store(&tensor.name, index, scope, before);
            if let Some(input) = inputs.get(tensor.name.as_str()) {
                self.edits.inputs.insert(input.content.start, (stored.clone(), self.tensors.type_code(index)));
            }
            self.edits.tensor_names.insert(tensor.content.start, stored);
        }
        self.nodes(&graph.nodes, scope);
    }

    fn nodes(&mut self, nodes: &'a [Node], scope: Scope) {
        for (i, node) in nodes.iter().enumerate() {
            if let Some((output, tensor)) = constant(node)
                && let Some(index) = self.tensors.changed(tensor)
            {
                let stored = self.store(output, index, scope, i + 1);
                self.edits.output_names.insert(node.content.start, stored);
            }
            for graph in node.attributes.iter().flat_map(|attribute| attribute.value.graphs()) {
                self.graph(graph, scope.opset);
            }
        }
    }

    /// Chooses the name of a value's stored elements, and adds the Cast to the value before a node.
    fn store(&mut self, value: &str, index: usize, scope: Scope, before: usize) -> String {
        let Tensors { listed, dtypes, .. } = self.tensors;
        let stored = self.taken.take(stored_name(value, dtypes[index]));
        self.edits.names[index] = format!("{}{stored}", listed[index].scope);
        let name = self.taken.take(format!("{value}.cast"));
        let to = listed[index].tensor.dtype().expect("listed tensors have a type");
        let cast = emit::cast(&name, &stored, value, to, scope.opset);
        self.edits.casts.entry((scope.start, before)).or_default().push(cast);
        stored
    }
}

/// Returns the index of the first node that uses each value of a graph, directly or in a subgraph.
fn first_uses(nodes: &[Node]) -> HashMap<&str, usize> {
    let mut first = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        visit_nodes(std::slice::from_ref(node), &mut |inner| {
            let graphs = inner.attributes.iter().flat_map(|attribute| attribute.value.graphs());
            let outputs = graphs.flat_map(|graph| &graph.outputs).map(|output| output.name.as_str());
            for name in inner.inputs.iter().map(String::as_str).chain(outputs) {
                first.entry(name).or_insert(i);
            }
        });
    }
    first
}

/// Returns the names of all values and nodes in a model.
fn names_in(model: &Model) -> Names<'_> {
    fn graph<'a>(graph: &'a Graph, names: &mut Names<'a>) {
        let infos = graph.inputs.iter().chain(&graph.outputs).chain(&graph.value_infos);
        infos.for_each(|info| names.insert(&info.name));
        graph.initializers.iter().for_each(|tensor| names.insert(&tensor.name));
        graph.sparse_initializers.iter().for_each(|sparse| names.insert(&sparse.values.name));
        nodes(&graph.nodes, names);
    }
    fn nodes<'a>(all: &'a [Node], names: &mut Names<'a>) {
        for node in all {
            names.insert(&node.name);
            node.inputs.iter().chain(&node.outputs).for_each(|name| names.insert(name));
            node.attributes.iter().flat_map(|attribute| attribute.value.graphs()).for_each(|g| graph(g, names));
        }
    }
    let mut names = Names::default();
    graph(&model.graph, &mut names);
    for function in &model.functions {
        function.inputs.iter().chain(&function.outputs).for_each(|name| names.insert(name));
        nodes(&function.nodes, &mut names);
    }
    names
}
