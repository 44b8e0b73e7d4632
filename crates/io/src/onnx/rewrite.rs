//! A model that stores some of its tensors in other types and is otherwise the same file.
//!
//! A changed tensor is stored under another name, and a Cast back to the old type produces the value. Every node,
//! subgraph and output that refers to the value therefore stays unchanged, byte for byte. Only messages with a change
//! are rebuilt, with the lengths around them; all other fields, known or not, are copied. The changes are chosen
//! elsewhere. Read first: `docs/spec/onnx.md §3.10`.

use std::ops::Range;

use foldhash::{HashMap, HashMapExt, HashSet};
use truecast_core::DType;

use super::emit;
use super::inventory::{Listed, Names, Role, constant, stored_name, visit_nodes};
use super::model::{Attribute, AttributeValue, Function, Graph, Model, Node, SparseTensor, ValueInfo, default_opset};
use super::rope::Rope;
use super::tensor::{DATA_FIELDS, TensorProto, field};
use super::wire::{Field, Fields, Wire};
use crate::error::ReadError;
use crate::error::onnx::ProtoError;

/// Maximum size of a protobuf message.
pub(crate) const MAX_MODEL_BYTES: u64 = i32::MAX as u64;
/// Smaller tensors stay inside a model whose other tensors move out (`docs/spec/onnx.md §3.8`).
const LEAST_EXTERNAL_BYTES: u64 = 1024;
/// Alignment of tensors in a file of external data, for mapping (`docs/spec/onnx.md §3.6`).
const EXTERNAL_ALIGNMENT: u64 = 4096;

/// Changes to make.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Type of each listed tensor in the new file.
    pub dtypes: Vec<DType>,
    /// Least version of the default domain's operator set: imports of a lower version are raised to it. A scope that
    /// gets a Cast but lacks this import imports this version.
    pub opset: Option<i64>,
    /// New `ir_version`, if it is raised.
    pub ir_version: Option<i64>,
}

/// Destination of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// No destination: the tensor's message is copied unchanged.
    Untouched,
    /// `raw_data`.
    Inside,
    /// The file of external data, at this offset.
    Outside(u64),
}

/// A planned model: its pieces and the destination of each tensor's elements.
#[derive(Clone, Debug)]
pub(crate) struct Rewritten {
    pub(crate) rope: Rope,
    pub(crate) places: Vec<Place>,
    /// Name of each listed tensor in the new file's list.
    pub(crate) names: Vec<String>,
    /// Length of the file of external data; 0 if the model does not have this file.
    pub(crate) external_bytes: u64,
}

/// Plans the new model. Each tensor stays inside or outside the file. If the file would be too long for protobuf,
/// larger tensors move outside.
pub(crate) fn rewrite(
    wire: Wire,
    model: &Model,
    listed: &[Listed],
    changes: &Changes,
    location: &str,
) -> Result<Rewritten, ReadError<ProtoError>> {
    let mut rewriter = Rewriter::new(wire, model, listed, changes, location);
    rewriter.plan();
    for is_crowded in [false, true] {
        let external_bytes = rewriter.place(is_crowded);
        let rope = rewriter.model()?;
        if rope.bytes <= MAX_MODEL_BYTES || is_crowded {
            let Rewriter { places, names, .. } = rewriter;
            return Ok(Rewritten { rope, places, names, external_bytes });
        }
    }
    unreachable!("the second layout is the last")
}

struct Rewriter<'a> {
    wire: Wire,
    model: &'a Model,
    listed: &'a [Listed],
    changes: &'a Changes,
    location: &'a str,
    /// Index of each listed tensor, by the start of its message.
    by_start: HashMap<u64, usize>,
    places: Vec<Place>,
    /// Name of each listed tensor in the new file's list.
    names: Vec<String>,
    /// New names, by the start of the message: for tensors, for outputs of Constants, and for graph inputs, with the
    /// number of the input's new type.
    tensor_names: HashMap<u64, String>,
    output_names: HashMap<u64, String>,
    inputs: HashMap<u64, (String, i64)>,
    /// Casts to insert, by the start of their scope's message and the index of the node that they precede.
    casts: HashMap<(u64, usize), Vec<Vec<u8>>>,
    taken: Names<'a>,
    /// Bodies with a changed tensor: 0 for the main graph, or the number of a function.
    changed_bodies: HashSet<usize>,
}

enum Change {
    Keep,
    Drop,
    Replace(Rope),
}

impl Change {
    /// Returns the change of a field, which is rebuilt if it has new content.
    fn content(number: u32, content: Option<Rope>) -> Change {
        content.map_or(Change::Keep, |content| {
            let mut rope = Rope::default();
            rope.field(number, content);
            Change::Replace(rope)
        })
    }

    fn bytes(bytes: Vec<u8>) -> Change {
        let mut rope = Rope::default();
        rope.push(bytes);
        Change::Replace(rope)
    }
}

impl<'a> Rewriter<'a> {
    fn new(wire: Wire, model: &'a Model, listed: &'a [Listed], changes: &'a Changes, location: &'a str) -> Self {
        let by_start = listed.iter().enumerate().map(|(i, l)| (l.tensor.content.start, i)).collect();
        let is_changed = |(l, dtype): &(&Listed, &DType)| Some(**dtype) != l.tensor.dtype();
        let changed = listed.iter().zip(&changes.dtypes).filter(is_changed);
        Rewriter {
            wire,
            model,
            listed,
            changes,
            location,
            by_start,
            places: Vec::new(),
            names: listed.iter().map(|l| l.name.clone()).collect(),
            tensor_names: HashMap::new(),
            output_names: HashMap::new(),
            inputs: HashMap::new(),
            casts: HashMap::new(),
            taken: names_in(model),
            changed_bodies: changed.map(|(l, _)| l.body).collect(),
        }
    }

    // Decides all changes before the layout.

    fn plan(&mut self) {
        let raised = |version: Option<i64>| version.max(self.changes.opset).unwrap_or(1);
        let graph_opset = raised(default_opset(&self.model.opset_imports));
        let bodies: Vec<_> =
            self.model.functions.iter().map(|f| (f, raised(default_opset(&f.opset_imports)))).collect();
        self.plan_graph(&self.model.graph, graph_opset);
        for (function, opset) in bodies {
            self.plan_nodes(&function.nodes, function.content.start, opset);
        }
    }

    fn plan_graph(&mut self, graph: &'a Graph, opset: i64) {
        let changed: Vec<_> = graph.initializers.iter().filter_map(|t| Some((t, self.changed(t)?))).collect();
        let first_uses = if changed.is_empty() { HashMap::new() } else { first_uses(&graph.nodes) };
        let inputs: HashMap<&str, &ValueInfo> = graph.inputs.iter().map(|input| (input.name.as_str(), input)).collect();
        for (tensor, index) in changed {
            let stored = self.store(&tensor.name, index);
            // The Cast comes directly before the first use of its result, so that a runtime need not hold the result
            // longer.
            let before = first_uses.get(tensor.name.as_str()).copied().unwrap_or(graph.nodes.len());
            self.cast(graph.content.start, before, &tensor.name, &stored, tensor, opset);
            if let Some(input) = inputs.get(tensor.name.as_str()) {
                let code = emit::code_of(self.changes.dtypes[index]);
                self.inputs.insert(input.content.start, (stored.clone(), code));
            }
            self.tensor_names.insert(tensor.content.start, stored);
        }
        self.plan_nodes(&graph.nodes, graph.content.start, opset);
    }

    fn plan_nodes(&mut self, nodes: &'a [Node], scope: u64, opset: i64) {
        for (i, node) in nodes.iter().enumerate() {
            if let Some((output, tensor)) = constant(node)
                && let Some(index) = self.changed(tensor)
            {
                let stored = self.store(output, index);
                self.cast(scope, i + 1, output, &stored, tensor, opset);
                self.output_names.insert(node.content.start, stored);
            }
            for graph in node.attributes.iter().flat_map(|attribute| attribute.value.graphs()) {
                self.plan_graph(graph, opset);
            }
        }
    }

    /// Returns the index of a tensor if its type changes.
    fn changed(&self, tensor: &TensorProto) -> Option<usize> {
        let index = *self.by_start.get(&tensor.content.start)?;
        (self.is_changed(index)).then_some(index)
    }

    fn is_changed(&self, index: usize) -> bool {
        Some(self.changes.dtypes[index]) != self.listed[index].tensor.dtype()
    }

    /// Chooses the name for a value's stored elements.
    fn store(&mut self, value: &str, index: usize) -> String {
        let stored = self.taken.take(stored_name(value, self.changes.dtypes[index]));
        self.names[index] = format!("{}{stored}", self.listed[index].scope);
        stored
    }

    fn cast(&mut self, scope: u64, before: usize, value: &str, stored: &str, tensor: &TensorProto, opset: i64) {
        let name = self.taken.take(format!("{value}.cast"));
        let to = tensor.dtype().expect("listed tensors have a type");
        let cast = emit::cast(&name, stored, value, to, opset);
        self.casts.entry((scope, before)).or_default().push(cast);
    }

    /// Decides the place of each tensor's elements; if `is_crowded`, larger tensors move outside. Returns the length of
    /// the file of external data.
    fn place(&mut self, is_crowded: bool) -> u64 {
        let mut end = 0u64;
        let place = |(index, listed): (usize, &Listed)| {
            let bytes = self.bytes(index);
            let may_leave = bytes >= LEAST_EXTERNAL_BYTES && listed.role != Role::Part;
            if listed.location().is_some() || (is_crowded && may_leave) {
                let offset = end.next_multiple_of(EXTERNAL_ALIGNMENT);
                end = offset + bytes;
                Place::Outside(offset)
            } else if self.is_changed(index) {
                Place::Inside
            } else {
                Place::Untouched
            }
        };
        self.places = self.listed.iter().enumerate().map(place).collect();
        end
    }

    /// Returns the length of a tensor's elements in the new file.
    fn bytes(&self, index: usize) -> u64 {
        let described = self.listed[index].tensor.describe(None);
        described.map_or(0, |tensor| crate::Tensor { dtype: self.changes.dtypes[index], ..tensor }.bytes())
    }

    // Rebuilding of messages, from the outermost to the innermost. The result is `None` for a message without a change.

    fn message(
        &mut self,
        content: &Range<u64>,
        mut change: impl FnMut(&mut Self, &Field) -> Result<Change, ReadError<ProtoError>>,
    ) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let (mut rope, mut is_changed) = (Rope::default(), false);
        let mut fields = Fields::new(content.clone());
        while let Some(field) = fields.next(&mut self.wire)? {
            match change(self, &field)? {
                Change::Keep => {
                    rope.copy(field.span);
                    continue;
                }
                Change::Drop => {}
                Change::Replace(new) => rope.append(new),
            }
            is_changed = true;
        }
        Ok(is_changed.then_some(rope))
    }

    fn model(&mut self) -> Result<Rope, ReadError<ProtoError>> {
        let model = self.model;
        let Changes { opset, ir_version, .. } = *self.changes;
        let (mut functions, mut imports) = ((1..).zip(&model.functions), model.opset_imports.iter());
        let mut lacks_ir_version = ir_version.is_some();
        let all = self.wire.all();
        let rope = self.message(&all, |this, field| match (field.number, ir_version) {
            (1, Some(version)) => {
                lacks_ir_version = false;
                Ok(Change::bytes(emit::int(1, version)))
            }
            (7, _) => Ok(Change::content(7, this.graph(&model.graph)?)),
            (8, _) => this.import(field, imports.next().filter(|i| i.is_default_domain()).map(|i| i.version)),
            (25, _) => {
                let (body, function) = functions.next().expect("parsed before");
                Ok(Change::content(25, this.function(body, function)?))
            }
            _ => Ok(Change::Keep),
        })?;
        let mut rope = rope.unwrap_or_else(|| Rope::copy_of(all));
        if let Some(version) = ir_version.filter(|_| lacks_ir_version) {
            rope.push(emit::int(1, version));
        }
        let lacks_import = default_opset(&model.opset_imports).is_none() && self.changed_bodies.contains(&0);
        if let Some(version) = opset.filter(|_| lacks_import) {
            rope.push(emit::bytes(8, emit::int(2, version)));
        }
        Ok(rope)
    }

    /// Rebuilds an import of the default domain with the raised version.
    fn import(&mut self, field: &Field, version: Option<i64>) -> Result<Change, ReadError<ProtoError>> {
        let raised = self.changes.opset.filter(|&opset| version.is_some_and(|version| version < opset));
        let Some(raised) = raised else { return Ok(Change::Keep) };
        let content = field.bytes()?;
        let changed = self.message(&content, |_, field| match field.number {
            2 => Ok(Change::bytes(emit::int(2, raised))),
            _ => Ok(Change::Keep),
        })?;
        // An omitted version is 0.
        let changed = changed.unwrap_or_else(|| Rope::copy_of(content).followed_by(emit::int(2, raised)));
        Ok(Change::content(field.number, Some(changed)))
    }

    /// Rebuilds a function; `body` is its number, from 1.
    fn function(&mut self, body: usize, function: &'a Function) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let mut nodes = Nodes::new(function.content.start, &function.nodes);
        let (mut imports, mut defaults) = (function.opset_imports.iter(), function.attribute_defaults.iter());
        let rope = self.message(&function.content, |this, field| match field.number {
            7 => nodes.next(this, field),
            9 => this.import(field, imports.next().filter(|i| i.is_default_domain()).map(|i| i.version)),
            11 => Ok(Change::content(11, this.attribute(defaults.next().expect("parsed before"))?)),
            _ => Ok(Change::Keep),
        })?;
        let rope = nodes.end(self, 7, &function.content, rope);
        let import = self.changes.opset.filter(|_| default_opset(&function.opset_imports).is_none());
        // A body that gets no Cast needs no import, if it does not have one already.
        let has_casts = self.changed_bodies.contains(&body);
        Ok(match (rope, import) {
            (Some(rope), Some(version)) if has_casts => Some(rope.followed_by(emit::bytes(9, emit::int(2, version)))),
            (rope, _) => rope,
        })
    }

    fn graph(&mut self, graph: &'a Graph) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let mut nodes = Nodes::new(graph.content.start, &graph.nodes);
        let (mut initializers, mut inputs) = (graph.initializers.iter(), graph.inputs.iter());
        let mut sparse = graph.sparse_initializers.iter();
        let rope = self.message(&graph.content, |this, field| match field.number {
            1 => nodes.next(this, field),
            5 => Ok(Change::content(5, this.tensor(initializers.next().expect("parsed before"))?)),
            11 => Ok(Change::content(11, this.input(inputs.next().expect("parsed before"))?)),
            15 => Ok(Change::content(15, this.sparse(sparse.next().expect("parsed before"))?)),
            _ => Ok(Change::Keep),
        })?;
        Ok(nodes.end(self, 1, &graph.content, rope))
    }

    fn node(&mut self, node: &'a Node) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let output = self.output_names.get(&node.content.start).cloned();
        let mut attributes = node.attributes.iter();
        self.message(&node.content, |this, field| match (field.number, &output) {
            (2, Some(output)) => Ok(Change::bytes(emit::bytes(2, output))),
            (5, _) => Ok(Change::content(5, this.attribute(attributes.next().expect("parsed before"))?)),
            _ => Ok(Change::Keep),
        })
    }

    fn attribute(&mut self, attribute: &'a Attribute) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let mut at = 0;
        let mut next = || {
            at += 1;
            at - 1
        };
        self.message(&attribute.content, |this, field| {
            let content = match (field.number, &attribute.value) {
                (5, AttributeValue::Tensor(tensor)) => this.tensor(tensor)?,
                (6, AttributeValue::Graph(graph)) => this.graph(graph)?,
                (10, AttributeValue::Tensors(tensors)) => this.tensor(&tensors[next()])?,
                (11, AttributeValue::Graphs(graphs)) => this.graph(&graphs[next()])?,
                (22, AttributeValue::Sparse(sparse)) => this.sparse(sparse)?,
                (23, AttributeValue::Sparses(all)) => this.sparse(&all[next()])?,
                _ => None,
            };
            Ok(Change::content(field.number, content))
        })
    }

    fn sparse(&mut self, sparse: &'a SparseTensor) -> Result<Option<Rope>, ReadError<ProtoError>> {
        self.message(&sparse.content, |this, field| match field.number {
            1 => Ok(Change::content(1, this.tensor(&sparse.values)?)),
            2 => Ok(Change::content(2, this.tensor(&sparse.indices)?)),
            _ => Ok(Change::Keep),
        })
    }

    /// Rebuilds an input whose default is stored in another type: the input gets the name and type of the stored
    /// default.
    fn input(&mut self, input: &ValueInfo) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let Some((name, code)) = self.inputs.get(&input.content.start).cloned() else { return Ok(None) };
        self.message(&input.content, |this, field| match field.number {
            1 => Ok(Change::bytes(emit::bytes(1, &name))),
            2 => {
                let kind = this.message(&field.bytes()?, |this, field| match field.number {
                    1 => {
                        let tensor = this.message(&field.bytes()?, |_, field| match field.number {
                            1 => Ok(Change::bytes(emit::int(1, code))),
                            _ => Ok(Change::Keep),
                        })?;
                        Ok(Change::content(1, tensor))
                    }
                    _ => Ok(Change::Keep),
                })?;
                Ok(Change::content(2, kind))
            }
            _ => Ok(Change::Keep),
        })
    }

    /// Rebuilds a tensor's fields for name, type and data; all other fields are kept.
    fn tensor(&mut self, tensor: &TensorProto) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let Some(&index) = self.by_start.get(&tensor.content.start) else { return Ok(None) };
        let place = self.places[index];
        if place == Place::Untouched {
            return Ok(None);
        }
        let bytes = self.bytes(index);
        let mut payload = Rope::default();
        match place {
            Place::Outside(offset) => payload.push(emit::external(self.location, offset, bytes)),
            _ => {
                payload.push(emit::head(field::RAW_DATA, bytes));
                payload.elements(index, bytes);
            }
        }
        // The new payload replaces the first old field with data; other old fields with data are dropped.
        let mut payload = Some(payload);
        let mut name = self.tensor_names.get(&tensor.content.start).cloned();
        let is_renamed = name.is_some();
        let code = emit::code_of(self.changes.dtypes[index]);
        let rope = self.message(&tensor.content, |_, found| match found.number {
            field::DATA_TYPE => Ok(Change::bytes(emit::int(field::DATA_TYPE, code))),
            field::NAME if is_renamed => {
                Ok(name.take().map_or(Change::Drop, |name| Change::bytes(emit::bytes(field::NAME, name))))
            }
            field::EXTERNAL_DATA => Ok(payload.take().map_or(Change::Drop, Change::Replace)),
            field::DATA_LOCATION => Ok(Change::Drop),
            number if DATA_FIELDS.iter().any(|(data, _)| *data == number) => {
                Ok(payload.take().map_or(Change::Drop, Change::Replace))
            }
            _ => Ok(Change::Keep),
        })?;
        let mut rope = rope.unwrap_or_default();
        if let Some(payload) = payload {
            rope.append(payload);
        }
        if let Some(name) = name {
            rope.push(emit::bytes(field::NAME, name));
        }
        Ok(Some(rope))
    }
}

/// Nodes of a scope being copied, with the Casts between them.
struct Nodes<'a> {
    scope: u64,
    nodes: &'a [Node],
    at: usize,
}

impl<'a> Nodes<'a> {
    fn new(scope: u64, nodes: &'a [Node]) -> Nodes<'a> {
        Nodes { scope, nodes, at: 0 }
    }

    /// Returns the change of the next node, which is in `field`. The Casts that precede the node come first.
    fn next(&mut self, rewriter: &mut Rewriter<'a>, field: &Field) -> Result<Change, ReadError<ProtoError>> {
        let node = &self.nodes[self.at];
        let casts = self.casts(rewriter, field.number);
        self.at += 1;
        let new = rewriter.node(node)?;
        if casts.is_empty() {
            return Ok(Change::content(field.number, new));
        }
        let mut rope = Rope::default();
        rope.push(casts);
        match new {
            Some(content) => rope.field(field.number, content),
            None => rope.copy(field.span.clone()),
        }
        Ok(Change::Replace(rope))
    }

    /// Adds the Casts that follow the last node.
    fn end(self, rewriter: &Rewriter<'a>, number: u32, content: &Range<u64>, rope: Option<Rope>) -> Option<Rope> {
        let casts = self.casts(rewriter, number);
        if casts.is_empty() {
            return rope;
        }
        Some(rope.unwrap_or_else(|| Rope::copy_of(content.clone())).followed_by(casts))
    }

    fn casts(&self, rewriter: &Rewriter<'a>, number: u32) -> Vec<u8> {
        let casts = rewriter.casts.get(&(self.scope, self.at));
        casts.into_iter().flatten().flat_map(|cast| emit::bytes(number, cast)).collect()
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
