//! A model that stores some of its tensors in other types and is otherwise the same file.
//!
//! A changed tensor is stored under another name, and a Cast back to the old type produces the value. Every node,
//! subgraph and output that refers to the value therefore stays unchanged, byte for byte. Only messages with a change
//! are rebuilt, with the lengths around them; all other fields, known or not, are copied. The changes are chosen
//! elsewhere. Read first: `docs/spec/onnx.md §3.10`, then `edits`.

use std::ops::Range;

use truecast_core::DType;

use super::edits::{Edits, Tensors};
use super::emit;
use super::inventory::Listed;
use super::model::default_opset;
use super::model::{Attribute, AttributeValue, Function, Graph, Model, Node, OpsetImport, SparseTensor, ValueInfo};
use super::rope::Rope;
use super::tensor::{DATA_FIELDS, TensorProto, field};
use super::wire::{Field, Fields, Wire};
use crate::error::ReadError;
use crate::error::onnx::ProtoError;

/// Maximum size of a protobuf message.
pub(crate) const MAX_MODEL_BYTES: u64 = i32::MAX as u64;
/// Smaller tensors stay inside a model whose other tensors move out (`docs/spec/onnx.md §3.8`).
const LEAST_EXTERNAL_BYTES: u64 = 1024;
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
    mut wire: Wire,
    model: &Model,
    listed: &[Listed],
    changes: &Changes,
    location: &str,
) -> Result<Rewritten, ReadError<ProtoError>> {
    let tensors = Tensors::new(listed, &changes.dtypes);
    let edits = Edits::plan(model, &tensors, changes.opset);
    let mut rebuild = |places: &[Place]| {
        let mut rebuilder = Rebuilder { wire: &mut wire, tensors: &tensors, edits: &edits, changes, places, location };
        rebuilder.model(model)
    };
    let (mut places, mut external_bytes) = tensors.place(u64::MAX);
    let mut rope = rebuild(&places)?;
    if rope.bytes > MAX_MODEL_BYTES {
        (places, external_bytes) = tensors.place(LEAST_EXTERNAL_BYTES);
        rope = rebuild(&places)?;
    }
    Ok(Rewritten { rope, places, names: edits.names, external_bytes })
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

/// Rebuilds messages, from the outermost to the innermost. The result is `None` for a message without a change.
struct Rebuilder<'a> {
    wire: &'a mut Wire,
    tensors: &'a Tensors<'a>,
    edits: &'a Edits,
    changes: &'a Changes,
    places: &'a [Place],
    /// Name of the file of external data.
    location: &'a str,
}

impl Rebuilder<'_> {
    fn message(
        &mut self,
        content: &Range<u64>,
        mut change: impl FnMut(&mut Self, &Field) -> Result<Change, ReadError<ProtoError>>,
    ) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let (mut rope, mut is_changed) = (Rope::default(), false);
        let mut fields = Fields::new(content.clone());
        while let Some(field) = fields.next(self.wire)? {
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

    fn model(&mut self, model: &Model) -> Result<Rope, ReadError<ProtoError>> {
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
            (8, _) => this.import(field, imports.next()),
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
        let lacks_import = default_opset(&model.opset_imports).is_none() && self.tensors.is_body_changed(0);
        if let Some(version) = opset.filter(|_| lacks_import) {
            rope.push(emit::bytes(8, emit::int(2, version)));
        }
        Ok(rope)
    }

    /// Rebuilds an import of the default domain with the raised version.
    fn import(&mut self, field: &Field, import: Option<&OpsetImport>) -> Result<Change, ReadError<ProtoError>> {
        let version = import.filter(|import| import.is_default_domain()).map(|import| import.version);
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
    fn function(&mut self, body: usize, function: &Function) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let mut nodes = Nodes::new(function.content.start, &function.nodes);
        let (mut imports, mut defaults) = (function.opset_imports.iter(), function.attribute_defaults.iter());
        let rope = self.message(&function.content, |this, field| match field.number {
            7 => nodes.next(this, field),
            9 => this.import(field, imports.next()),
            11 => Ok(Change::content(11, this.attribute(defaults.next().expect("parsed before"))?)),
            _ => Ok(Change::Keep),
        })?;
        let rope = nodes.end(self, 7, &function.content, rope);
        let import = self.changes.opset.filter(|_| default_opset(&function.opset_imports).is_none());
        // A body that gets no Cast needs no import, if it does not have one already.
        let has_casts = self.tensors.is_body_changed(body);
        Ok(match (rope, import) {
            (Some(rope), Some(version)) if has_casts => Some(rope.followed_by(emit::bytes(9, emit::int(2, version)))),
            (rope, _) => rope,
        })
    }

    fn graph(&mut self, graph: &Graph) -> Result<Option<Rope>, ReadError<ProtoError>> {
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

    fn node(&mut self, node: &Node) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let output = self.edits.output_names.get(&node.content.start).cloned();
        let mut attributes = node.attributes.iter();
        self.message(&node.content, |this, field| match (field.number, &output) {
            (2, Some(output)) => Ok(Change::bytes(emit::bytes(2, output))),
            (5, _) => Ok(Change::content(5, this.attribute(attributes.next().expect("parsed before"))?)),
            _ => Ok(Change::Keep),
        })
    }

    fn attribute(&mut self, attribute: &Attribute) -> Result<Option<Rope>, ReadError<ProtoError>> {
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

    fn sparse(&mut self, sparse: &SparseTensor) -> Result<Option<Rope>, ReadError<ProtoError>> {
        self.message(&sparse.content, |this, field| match field.number {
            1 => Ok(Change::content(1, this.tensor(&sparse.values)?)),
            2 => Ok(Change::content(2, this.tensor(&sparse.indices)?)),
            _ => Ok(Change::Keep),
        })
    }

    /// Rebuilds an input whose default is stored in another type: the input gets the name and type of the stored
    /// default.
    fn input(&mut self, input: &ValueInfo) -> Result<Option<Rope>, ReadError<ProtoError>> {
        let Some((name, code)) = self.edits.inputs.get(&input.content.start).cloned() else { return Ok(None) };
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
        let Some(index) = self.tensors.index(tensor) else { return Ok(None) };
        let place = self.places[index];
        if place == Place::Untouched {
            return Ok(None);
        }
        let bytes = self.tensors.bytes(index);
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
        let mut name = self.edits.tensor_names.get(&tensor.content.start).cloned();
        let is_renamed = name.is_some();
        let code = self.tensors.type_code(index);
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
    fn next(&mut self, rebuilder: &mut Rebuilder<'_>, field: &Field) -> Result<Change, ReadError<ProtoError>> {
        let node = &self.nodes[self.at];
        let casts = self.casts(rebuilder, field.number);
        self.at += 1;
        let new = rebuilder.node(node)?;
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
    fn end(self, rebuilder: &Rebuilder<'_>, number: u32, content: &Range<u64>, rope: Option<Rope>) -> Option<Rope> {
        let casts = self.casts(rebuilder, number);
        if casts.is_empty() {
            return rope;
        }
        Some(rope.unwrap_or_else(|| Rope::copy_of(content.clone())).followed_by(casts))
    }

    fn casts(&self, rebuilder: &Rebuilder<'_>, number: u32) -> Vec<u8> {
        let casts = rebuilder.edits.casts.get(&(self.scope, self.at));
        casts.into_iter().flatten().flat_map(|cast| emit::bytes(number, cast)).collect()
    }
}
