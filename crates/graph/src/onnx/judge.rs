//! The legality of every conversion of a model, whatever else the model does.
//!
//! Nothing is run. Types are known where the model states them or a conversion gives them; where the type of an input is
//! not known, only what does not depend on it is judged.

use std::collections::HashMap;

use truecast_core::DType;
use truecast_core::spec::onnx::Operator;
use truecast_io::onnx::{AttributeValue, Graph, Model, Node, ValueInfo};

use super::error::NodeError;
use super::node::{self, Bindings, declared_type, element_type, label, opset};

/// A conversion that the standard forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The node, and the function that it is in if any.
    pub place: String,
    /// What is wrong.
    pub cause: NodeError,
}

/// What was found in a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Cast and CastLike nodes, in subgraphs and functions too.
    pub conversions: usize,
    /// Those of them whose input type the model does not tell.
    pub of_unknown_type: usize,
    /// Those that are illegal, in the order of the file.
    pub illegal: Vec<Finding>,
}

/// Judges the conversions of a model by the rules of an opset, or of the opset that the model and each of its functions
/// import.
pub fn judge(model: &Model, opset_asked: Option<u32>) -> Judgement {
    let governing = |imports| opset_asked.map_or_else(|| opset(imports), Ok);
    let mut judge =
        Judge { opset: governing(&model.opset_imports), place: String::new(), judgement: Judgement::default() };
    judge.graph(&model.graph, None);
    for function in &model.functions {
        judge.opset = governing(&function.opset_imports);
        judge.place = format!("function {}: ", truecast_io::Shown(&function.name));
        judge.nodes(&function.nodes, &mut Types::default());
    }
    judge.judgement
}

/// Element types of values by name: those of outer graphs are visible in inner ones.
#[derive(Default)]
struct Types<'a> {
    own: HashMap<&'a str, DType>,
    outer: Option<&'a Types<'a>>,
}

impl Types<'_> {
    fn find(&self, name: &str) -> Option<DType> {
        self.own.get(name).copied().or_else(|| self.outer?.find(name))
    }
}

struct Judge {
    opset: Result<u32, NodeError>,
    place: String,
    judgement: Judgement,
}

impl Judge {
    fn graph<'a>(&mut self, graph: &'a Graph, outer: Option<&'a Types<'a>>) {
        let mut types = Types { own: HashMap::new(), outer };
        let declared = |info: &'a ValueInfo| Some((info.name.as_str(), declared_type(&info.kind).ok()??));
        let infos = graph.inputs.iter().chain(&graph.outputs).chain(&graph.value_infos);
        types.own.extend(infos.filter_map(declared));
        types.own.extend(graph.initializers.iter().filter_map(|tensor| Some((tensor.name.as_str(), tensor.dtype()?))));
        self.nodes(&graph.nodes, &mut types);
    }

    fn nodes<'a>(&mut self, nodes: &'a [Node], types: &mut Types<'a>) {
        for node in nodes {
            for graph in node.attributes.iter().flat_map(|attribute| attribute.value.graphs()) {
                self.graph(graph, Some(types));
            }
            let given = match node.default_operator() {
                Some("Identity") => node.inputs.first().and_then(|name| types.find(name)),
                Some("Constant") => constant_type(node),
                Some(name) => match Operator::named(name) {
                    Some(operator) => self.conversion(operator, node, types),
                    None => None,
                },
                None => None,
            };
            if let (Some(dtype), Some(output)) = (given, node.outputs.first()) {
                types.own.insert(output, dtype);
            }
        }
    }

    /// Judges one conversion and tells what it gives.
    fn conversion(&mut self, operator: Operator, node: &Node, types: &Types<'_>) -> Option<DType> {
        self.judgement.conversions += 1;
        let of_input = |index: usize| types.find(node.inputs.get(index)?);
        let (src, target) = match operator {
            Operator::Cast => (of_input(0), None),
            Operator::CastLike => (of_input(0), of_input(1)),
        };
        if src.is_none() || (operator == Operator::CastLike && target.is_none()) {
            self.judgement.of_unknown_type += 1;
        }
        match legal(self.opset.clone(), operator, node, src, target) {
            Ok(given) => given,
            Err(cause) => {
                self.judgement.illegal.push(Finding { place: format!("{}{}", self.place, label(node)), cause });
                target.or_else(|| stated_target(node))
            }
        }
    }
}

/// What a conversion gives, if it is legal as far as its types are known.
fn legal(
    opset: Result<u32, NodeError>,
    operator: Operator,
    node: &Node,
    src: Option<DType>,
    target: Option<DType>,
) -> Result<Option<DType>, NodeError> {
    let opset = opset?;
    let references = node.attributes.iter().any(|a| matches!(a.value, AttributeValue::Reference(_)));
    if references {
        // A function decides when it is called; what its caller gives is judged by `run`.
        operator.version_at(opset)?;
        return Ok(None);
    }
    let attributes = node::attributes(operator, opset, node, &Bindings::default())?;
    for dtype in [src, target].into_iter().flatten() {
        operator.check_type(opset, dtype)?;
    }
    let cast = attributes.cast(operator, opset, target);
    if let (Some(cast), Some(src)) = (cast, src) {
        cast.resolve(src)?;
    }
    Ok(cast.map(|cast| cast.to))
}

/// The type that an illegal Cast asks for, so that what follows it can be judged.
fn stated_target(node: &Node) -> Option<DType> {
    match node.attribute("to")? {
        AttributeValue::Int(code) => element_type(*code).ok(),
        _ => None,
    }
}

fn constant_type(node: &Node) -> Option<DType> {
    let attribute = node.attributes.first()?;
    match &attribute.value {
        AttributeValue::Tensor(tensor) => tensor.dtype(),
        AttributeValue::Float(_) | AttributeValue::Floats(_) => Some(DType::F32),
        AttributeValue::Int(_) | AttributeValue::Ints(_) => Some(DType::I64),
        AttributeValue::String(_) | AttributeValue::Strings(_) => Some(DType::String),
        _ => None,
    }
}
