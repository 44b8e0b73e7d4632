//! Parses protobuf fields into the structure of a model, with a function for each message. Field numbers:
//! `docs/spec/onnx.md §3.1` and the public `onnx.proto`.

use std::ops::Range;

use super::model::*;
use super::parser::{Parser, Read, once};
use super::tensor::{self, TensorProto};
use crate::error::onnx::ProtoError;
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

impl Parser {
    pub(crate) fn model(&mut self, content: Range<u64>) -> Read<Model> {
        let mut model = Model::default();
        let mut graph = None;
        self.visit_fields(content.clone(), &mut |parser, field| {
            match field.number {
                1 => model.ir_version = field.int()?,
                2 => model.producer_name = parser.text(field.bytes()?)?,
                7 => {
                    let found = parser.graph(field.bytes()?)?;
                    once(&mut graph, found, &field, "ModelProto")?;
                }
                8 => model.opset_imports.push(parser.opset(field.bytes()?)?),
                20 => {
                    field.bytes()?;
                    model.has_training_info = true;
                }
                25 => model.functions.push(parser.function(field.bytes()?)?),
                _ => {}
            }
            Ok(())
        })?;
        let missing = ProtoError::Missing { offset: content.start, message: "the model", field: "graph" };
        model.graph = graph.ok_or(missing)?;
        one_version_each(content.start, &model.opset_imports)?;
        one_of_each_name(&model.functions)?;
        Ok(model)
    }

    fn opset(&mut self, content: Range<u64>) -> Read<OpsetImport> {
        self.charge::<OpsetImport>(content.start)?;
        let mut import = OpsetImport::default();
        self.visit_fields(content, &mut |parser, field| {
            match field.number {
                1 => import.domain = parser.text(field.bytes()?)?,
                2 => import.version = field.int()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(import)
    }

    fn function(&mut self, content: Range<u64>) -> Read<Function> {
        self.charge::<Function>(content.start)?;
        let mut function = Function { content: content.clone(), ..Function::default() };
        self.visit_fields(content, &mut |parser, field| {
            match field.number {
                1 => function.name = parser.text(field.bytes()?)?,
                4 => function.inputs.push(parser.text(field.bytes()?)?),
                5 => function.outputs.push(parser.text(field.bytes()?)?),
                6 => function.attributes.push(parser.text(field.bytes()?)?),
                7 => function.nodes.push(parser.node(field.bytes()?)?),
                9 => function.opset_imports.push(parser.opset(field.bytes()?)?),
                10 => function.domain = parser.text(field.bytes()?)?,
                11 => function.attribute_defaults.push(parser.attribute(field.bytes()?)?),
                13 => function.overload = parser.text(field.bytes()?)?,
                _ => {}
            }
            Ok(())
        })?;
        one_version_each(function.content.start, &function.opset_imports)?;
        Ok(function)
    }

    fn graph(&mut self, content: Range<u64>) -> Read<Graph> {
        self.charge::<Graph>(content.start)?;
        let mut graph = Graph { content: content.clone(), ..Graph::default() };
        self.visit_fields(content, &mut |parser, field| {
            match field.number {
                1 => graph.nodes.push(parser.node(field.bytes()?)?),
                2 => graph.name = parser.text(field.bytes()?)?,
                5 => graph.initializers.push(tensor::parse(parser, field.bytes()?)?),
                11 => graph.inputs.push(parser.value_info(field.bytes()?)?),
                12 => graph.outputs.push(parser.value_info(field.bytes()?)?),
                13 => graph.value_infos.push(parser.value_info(field.bytes()?)?),
                15 => graph.sparse_initializers.push(parser.sparse(field.bytes()?)?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(graph)
    }

    fn node(&mut self, content: Range<u64>) -> Read<Node> {
        self.charge::<Node>(content.start)?;
        let mut node = Node { content: content.clone(), ..Node::default() };
        self.visit_fields(content, &mut |parser, field| {
            match field.number {
                1 => node.inputs.push(parser.text(field.bytes()?)?),
                2 => node.outputs.push(parser.text(field.bytes()?)?),
                3 => node.name = parser.text(field.bytes()?)?,
                4 => node.op_type = parser.text(field.bytes()?)?,
                5 => node.attributes.push(parser.attribute(field.bytes()?)?),
                7 => node.domain = parser.text(field.bytes()?)?,
                8 => node.overload = parser.text(field.bytes()?)?,
                _ => {}
            }
            Ok(())
        })?;
        if node.op_type.is_empty() {
            let offset = node.content.start;
            return Err(ProtoError::Missing { offset, message: "a node", field: "op_type" }.into());
        }
        // There may be millions of nodes, and a growing list has room for at least four items.
        node.inputs.shrink_to_fit();
        node.outputs.shrink_to_fit();
        node.attributes.shrink_to_fit();
        Ok(node)
    }

    fn value_info(&mut self, content: Range<u64>) -> Read<ValueInfo> {
        self.charge::<ValueInfo>(content.start)?;
        let mut info = ValueInfo { content: content.clone(), ..ValueInfo::default() };
        let mut kind = None;
        self.visit_fields(content, &mut |parser, field| {
            match field.number {
                1 => info.name = parser.text(field.bytes()?)?,
                2 => once(&mut kind, parser.value_type(field.bytes()?)?, &field, "ValueInfoProto")?,
                _ => {}
            }
            Ok(())
        })?;
        info.kind = kind.unwrap_or_default();
        Ok(info)
    }

    fn value_type(&mut self, content: Range<u64>) -> Read<ValueType> {
        // The fields of this oneof exclude each other: the last one counts.
        let mut tensor = None;
        let mut is_other = false;
        self.visit_fields(content, &mut |parser, field| {
            match field.number {
                1 => {
                    once(&mut tensor, parser.tensor_type(field.bytes()?)?, &field, "TypeProto")?;
                    is_other = false;
                }
                4 | 5 | 7 | 8 | 9 => {
                    field.bytes()?;
                    (tensor, is_other) = (None, true);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(if is_other { ValueType::NoTensor } else { tensor.unwrap_or_default() })
    }

    fn tensor_type(&mut self, content: Range<u64>) -> Read<ValueType> {
        let (mut elem_type, mut shape) = (0, None);
        self.visit_fields(content, &mut |parser, field| {
            match field.number {
                1 => elem_type = field.int()?,
                2 => once(&mut shape, parser.shape(field.bytes()?)?, &field, "TypeProto.Tensor")?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(ValueType::Tensor { elem_type, shape })
    }

    fn shape(&mut self, content: Range<u64>) -> Read<Vec<Dimension>> {
        let mut shape = Vec::new();
        self.visit_fields(content, &mut |parser, field| {
            if field.number == 1 {
                parser.charge::<Dimension>(field.span.start)?;
                let mut dimension = Dimension::Unknown;
                parser.visit_fields(field.bytes()?, &mut |parser, field| {
                    match field.number {
                        1 => dimension = Dimension::Value(field.int()?),
                        2 => dimension = Dimension::named(parser.text(field.bytes()?)?),
                        _ => {}
                    }
                    Ok(())
                })?;
                shape.push(dimension);
            }
            Ok(())
        })?;
        Ok(shape)
    }

    fn sparse(&mut self, content: Range<u64>) -> Read<SparseTensor> {
        let (mut values, mut indices, mut dims) = (None, None, Vec::new());
        self.visit_fields(content.clone(), &mut |parser, field| {
            match field.number {
                1 => once(&mut values, tensor::parse(parser, field.bytes()?)?, &field, "SparseTensorProto")?,
                2 => once(&mut indices, tensor::parse(parser, field.bytes()?)?, &field, "SparseTensorProto")?,
                3 => parser.numbers(&field, &mut dims)?,
                _ => {}
            }
            Ok(())
        })?;
        let missing = |field| ProtoError::Missing { offset: content.start, message: "a sparse tensor", field };
        let (values, indices) = (values.ok_or(missing("values"))?, indices.ok_or(missing("indices"))?);
        Ok(SparseTensor { values, indices, dims, content })
    }

    fn attribute(&mut self, content: Range<u64>) -> Read<Attribute> {
        self.charge::<Attribute>(content.start)?;
        let mut stated = StatedAttribute::default();
        self.visit_fields(content.clone(), &mut |parser, field| {
            match field.number {
                1 => stated.name = parser.text(field.bytes()?)?,
                2 => stated.float = Some(field.float()?),
                3 => stated.int = Some(field.int()?),
                4 => stated.string = Some(parser.copy(field.bytes()?)?),
                5 => once(&mut stated.tensor, tensor::parse(parser, field.bytes()?)?, &field, "AttributeProto")?,
                6 => once(&mut stated.graph, parser.graph(field.bytes()?)?, &field, "AttributeProto")?,
                7 => parser.floats(&field, &mut stated.floats)?,
                8 => parser.numbers(&field, &mut stated.ints)?,
                9 => stated.strings.push(parser.copy(field.bytes()?)?),
                10 => stated.tensors.push(tensor::parse(parser, field.bytes()?)?),
                11 => stated.graphs.push(parser.graph(field.bytes()?)?),
                14 => stated.is_type = field.bytes().map(|_| true)?,
                15 => stated.is_types = field.bytes().map(|_| true)?,
                20 => stated.kind = field.int()?,
                21 => stated.reference = parser.text(field.bytes()?)?,
                22 => once(&mut stated.sparse, parser.sparse(field.bytes()?)?, &field, "AttributeProto")?,
                23 => stated.sparses.push(parser.sparse(field.bytes()?)?),
                _ => {}
            }
            Ok(())
        })?;
        stated.settle(content)
    }
}

/// Refuses two versions of one domain, because readers disagree about the version that counts.
fn one_version_each(offset: u64, imports: &[OpsetImport]) -> Result<(), ProtoError> {
    let mut versions = HashMap::new();
    for import in imports {
        let domain = if import.is_default_domain() { "ai.onnx" } else { &import.domain };
        let first = *versions.entry(domain).or_insert(import.version);
        if first != import.version {
            let (domain, second) = (domain.into(), import.version);
            return Err(ProtoError::TwoVersions { offset, domain, first, second });
        }
    }
    Ok(())
}

/// Refuses two functions with one identity, because calls cannot distinguish them.
fn one_of_each_name(functions: &[Function]) -> Result<(), ProtoError> {
    let mut names = HashSet::new();
    for function in functions {
        if !names.insert(function.identity()) {
            let Function { name, domain, overload, content, .. } = function.clone();
            return Err(ProtoError::TwoFunctions { offset: content.start, name, domain, overload });
        }
    }
    Ok(())
}

#[derive(Default)]
struct StatedAttribute {
    name: String,
    reference: String,
    kind: i64,
    float: Option<f32>,
    int: Option<i64>,
    string: Option<Vec<u8>>,
    tensor: Option<TensorProto>,
    graph: Option<Graph>,
    sparse: Option<SparseTensor>,
    floats: Vec<f32>,
    ints: Vec<i64>,
    strings: Vec<Vec<u8>>,
    tensors: Vec<TensorProto>,
    graphs: Vec<Graph>,
    sparses: Vec<SparseTensor>,
    is_type: bool,
    is_types: bool,
}

impl StatedAttribute {
    /// Type of the attribute, inferred from its value if not stated (allowed in IR version 1).
    fn kind(&self) -> i64 {
        let filled = [
            (1, self.float.is_some()),
            (2, self.int.is_some()),
            (3, self.string.is_some()),
            (4, self.tensor.is_some()),
            (5, self.graph.is_some()),
            (6, !self.floats.is_empty()),
            (7, !self.ints.is_empty()),
            (8, !self.strings.is_empty()),
            (9, !self.tensors.is_empty()),
            (10, !self.graphs.is_empty()),
            (11, self.sparse.is_some()),
            (12, !self.sparses.is_empty()),
            (13, self.is_type),
            (14, self.is_types),
        ];
        match self.kind {
            0 => filled.into_iter().find(|(_, filled)| *filled).map_or(0, |(kind, _)| kind),
            stated => stated,
        }
    }

    fn settle(self, content: Range<u64>) -> Read<Attribute> {
        let offset = content.start;
        let wrong = |why| ProtoError::Attribute { offset, name: self.name.clone(), why };
        let value = if !self.reference.is_empty() {
            AttributeValue::Reference(self.reference)
        } else {
            match self.kind() {
                // A value equal to its default may be omitted.
                1 => AttributeValue::Float(self.float.unwrap_or_default()),
                2 => AttributeValue::Int(self.int.unwrap_or_default()),
                3 => AttributeValue::String(self.string.unwrap_or_default()),
                4 => AttributeValue::Tensor(Box::new(self.tensor.ok_or(wrong("no tensor"))?)),
                5 => AttributeValue::Graph(Box::new(self.graph.ok_or(wrong("no graph"))?)),
                6 => AttributeValue::Floats(self.floats),
                7 => AttributeValue::Ints(self.ints),
                8 => AttributeValue::Strings(self.strings),
                9 => AttributeValue::Tensors(self.tensors),
                10 => AttributeValue::Graphs(self.graphs),
                11 => AttributeValue::Sparse(Box::new(self.sparse.ok_or(wrong("no sparse tensor"))?)),
                12 => AttributeValue::Sparses(self.sparses),
                13 => AttributeValue::Type,
                14 => AttributeValue::Types,
                0 => return Err(wrong("neither a type nor a value").into()),
                _ => return Err(wrong("a type that is not in the specification, which has 1 to 14").into()),
            }
        };
        Ok(Attribute { name: self.name, value, content })
    }
}
