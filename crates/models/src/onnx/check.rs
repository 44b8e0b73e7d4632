//! Checks the legality of every conversion in a model, which may contain other operators too. Nothing is evaluated.
//!
//! A type is known if the model states it, a conversion produces it, or an operator derives it from its inputs
//! (`types`). Checks that need an unknown type are skipped.

use std::collections::{HashMap, HashSet};

use truecast_core::DType;
use truecast_core::spec::onnx::{self, DataType, Operator};
use truecast_core::spelling::nearest;
use truecast_io::Escaped;
use truecast_io::onnx::{Attribute, AttributeValue, Function, Graph, Identity, Model, Node, ValueInfo};

use super::error::NodeError;
use super::node::{self, ElementType, Known, declared, label, opset};
use super::types;
use crate::description::{Conversion, Legality, LegalityReport};

/// Checks the conversions of a model by the rules of opset `opset_asked`. If `opset_asked` is `None`, the opsets apply
/// that the model and each function import.
///
/// Findings are illegal conversions, misspelled conversions, and values with another type than declared.
pub fn check(model: &Model, opset_asked: Option<u32>) -> LegalityReport<NodeError> {
    checked(model, opset_asked).report
}

/// Cast and CastLike nodes of a model, checked by the opsets that the model and each function import.
#[must_use]
pub fn conversions(model: &Model) -> Vec<Conversion> {
    checked(model, None).conversions
}

fn checked(model: &Model, opset_asked: Option<u32>) -> Checker<'_> {
    let governing = |imports| opset_asked.map_or_else(|| opset(imports), Ok);
    let mut checker = Checker {
        functions: model.functions.iter().map(Function::identity).collect(),
        opset: governing(&model.opset_imports),
        place: String::new(),
        formal: HashSet::new(),
        report: LegalityReport::default(),
        conversions: Vec::new(),
    };
    checker.graph(&model.graph, None);
    for function in &model.functions {
        checker.opset = governing(&function.opset_imports);
        checker.place = format!("function {}: ", Escaped(&function.name));
        let defaults = function.attribute_defaults.iter().map(|attribute| &attribute.name);
        checker.formal = function.attributes.iter().chain(defaults).map(String::as_str).collect();
        let mut scope = Scope::default();
        function.inputs.iter().for_each(|name| drop(scope.given.insert(name, None)));
        checker.nodes(&function.nodes, &mut scope);
    }
    checker
}

/// Values of a graph by name. Values of outer graphs are visible too.
#[derive(Default)]
struct Scope<'a> {
    /// Values defined so far, with the type from their source; `None` if unknown.
    given: HashMap<&'a str, Option<Known>>,
    /// Types that the graph declares, that operators derive, or that an illegal conversion intends.
    declared: HashMap<&'a str, Known>,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name) || self.outer.is_some_and(|outer| outer.is_given(name))
    }

    fn find(&self, name: &str) -> Option<Known> {
        let given = self.given.get(name).cloned().flatten();
        given.or_else(|| self.declared.get(name).cloned()).or_else(|| self.outer?.find(name))
    }
}

struct Checker<'a> {
    functions: HashSet<Identity<'a>>,
    opset: Result<u32, NodeError>,
    place: String,
    formal: HashSet<&'a str>,
    report: LegalityReport<NodeError>,
    conversions: Vec<Conversion>,
}

impl<'m> Checker<'m> {
    fn find(&mut self, what: impl std::fmt::Display, cause: NodeError) {
        self.report.illegal.push((format!("{}{what}", self.place), cause));
    }

    fn graph<'a>(&mut self, graph: &'a Graph, outer: Option<&'a Scope<'a>>) {
        let known = |info: &'a ValueInfo| declared(&info.kind).map_err(Box::new).transpose();
        let mut scope = Scope { given: HashMap::new(), declared: HashMap::new(), outer };
        let infos = graph.value_infos.iter().chain(&graph.outputs);
        scope.declared.extend(infos.filter_map(|info| Some((info.name.as_str(), known(info)?))));
        let sparse = graph.sparse_initializers.iter().map(|sparse| sparse.values.name.as_str());
        scope.given.extend(sparse.map(|name| (name, Some(Err(NodeError::NoTensor.into())))));
        let tensors = graph.initializers.iter();
        scope.given.extend(tensors.map(|tensor| (tensor.name.as_str(), Some(Ok(tensor.data_type)))));
        for input in &graph.inputs {
            let known = known(input);
            if let (Some(Ok(declared)), Some(Some(Ok(found)))) = (&known, scope.given.get(input.name.as_str()))
                && declared != found
            {
                let cause = NodeError::declared(shown(found), shown(declared));
                self.find(format_args!("initializer {}", Escaped(&input.name)), cause);
            }
            scope.given.insert(&input.name, known);
        }
        self.nodes(&graph.nodes, &mut scope);
        self.declarations("value_info", &graph.value_infos, &scope);
        self.declarations("output", &graph.outputs, &scope);
    }

    fn declarations(&mut self, what: &str, infos: &[ValueInfo], scope: &Scope<'_>) {
        for info in infos {
            let Some(Some(Ok(found))) = scope.given.get(info.name.as_str()) else { continue };
            let cause = match declared(&info.kind) {
                Ok(Some(declared)) if declared != *found => NodeError::declared(shown(found), shown(declared)),
                Ok(_) => continue,
                Err(cause) => cause,
            };
            self.find(format_args!("{what} {}", Escaped(&info.name)), cause);
        }
    }

    fn nodes<'a>(&mut self, nodes: &'a [Node], scope: &mut Scope<'a>) {
        for node in nodes {
            for graph in node.attributes.iter().flat_map(|attribute| attribute.value.graphs()) {
                self.graph(graph, Some(scope));
            }
            let operator = node.default_operator().filter(|_| !self.functions.contains(&node.identity()));
            let known = match operator {
                Some("Identity") => node.inputs.first().and_then(|name| scope.find(name)),
                Some("Constant") => constant_type(node).map(Ok),
                Some(name) => match Operator::of_name(name) {
                    Some(operator) => self.conversion(operator, node, scope).map(Ok),
                    None => {
                        self.misspelled(name, node);
                        None
                    }
                },
                None => None,
            };
            let found = operator.map_or(Vec::new(), |name| types::outputs(name, node, &|name| scope.find(name)));
            for (output, found) in node.outputs.iter().zip(found).filter(|(name, _)| !name.is_empty()) {
                if let Some(found) = found {
                    // A derived type does not override a declaration; `declarations` checks declared types.
                    scope.declared.entry(output).or_insert(Ok(found));
                }
            }
            let mut known = Some(known);
            for output in node.outputs.iter().filter(|name| !name.is_empty()) {
                scope.given.insert(output, known.take().flatten());
            }
        }
    }

    /// Reports a node if its name differs from a conversion's by one letter; ONNX has no such operator.
    fn misspelled(&mut self, name: &str, node: &Node) {
        let known = Operator::ALL.into_iter().map(Operator::name);
        if let Some(meant) = nearest(name, known, 1) {
            self.find(label(node), NodeError::Misspelled { meant });
        }
    }

    fn conversion<'a>(&mut self, operator: Operator, node: &'a Node, scope: &mut Scope<'a>) -> Option<ElementType> {
        let known = |index: usize| scope.find(node.inputs.get(index)?);
        let mut given = node.inputs.iter().take(operator.n_inputs()).filter(|name| !name.is_empty());
        if given.any(|name| scope.find(name).is_none()) {
            self.report.of_unknown_type += 1;
        }
        let of_target = known(1).and_then(Result::ok).filter(|_| operator == Operator::CastLike);
        let stated = stated_target(node);
        let meant = stated.or(of_target);
        let legal = self.legal(operator, node, scope);
        let asked = if operator == Operator::Cast { stated } else { of_target };
        let to = legal.as_ref().map_or(asked, |given| given.and_then(DataType::of));
        let from = known(0).and_then(Result::ok);
        let legality = match &legal {
            Err(cause) => Legality::Illegal(cause.to_string()),
            Ok(_) if from.and(to).is_some() => Legality::Legal,
            Ok(_) => Legality::Unknown,
        };
        let attributes = node.attributes.iter().filter(|attribute| attribute.name != "to").map(written);
        let words: Vec<String> = std::iter::once(operator.name().into()).chain(attributes).collect();
        match legality {
            Legality::Legal => self.report.legal += 1,
            Legality::Unknown => self.report.unknown += 1,
            Legality::Illegal(_) => {}
        }
        let name = |row: Option<ElementType>| row.map_or("?", shown).into();
        let (place, operation) = (format!("{}{}", self.place, label(node)), words.join(" "));
        let (from, to_name, legality) = (name(from), name(to), Some(legality));
        self.report.conversions += 1;
        self.conversions.push(Conversion { place, operation, from, to: to_name, legality });
        match legal {
            Ok(_) => to,
            Err(cause) => {
                self.find(label(node), cause);
                if let (Some(meant), Some(output)) = (meant, node.outputs.first()) {
                    scope.declared.entry(output).or_insert(Ok(meant));
                }
                None
            }
        }
    }

    /// Result type of a conversion, if known. Fails if the known types and attributes are illegal.
    fn legal(&self, operator: Operator, node: &Node, scope: &Scope<'_>) -> Result<Option<DType>, NodeError> {
        let opset = self.opset.clone()?;
        let attributes = node::attributes(operator, opset, node, |attribute| Ok(self.value(attribute)))?;
        let mut types = [None; 2];
        for (dtype, name) in types.iter_mut().zip(node::operands(node, operator.n_inputs())?) {
            if !scope.is_given(name) {
                return Err(NodeError::Undefined { name: name.clone() });
            }
            if let Some(known) = scope.find(name) {
                *dtype = Some(operator.check_data_type(opset, known.map_err(|cause| *cause)?)?);
            }
        }
        let output = node::result(node)?;
        if scope.given.contains_key(output) {
            return Err(NodeError::DefinedTwice { name: output.into() });
        }
        let [src, target] = types;
        let cast = attributes.cast(operator, opset, target);
        if let (Some(cast), Some(src)) = (cast, src) {
            cast.resolve(src)?;
        }
        Ok(cast.map(|cast| cast.to))
    }

    /// Value of an attribute, if it is known without a call of the enclosing function.
    fn value<'a>(&self, attribute: &'a Attribute) -> Option<onnx::AttributeValue<'a>> {
        match &attribute.value {
            AttributeValue::Reference(name) => {
                self.formal.contains(name.as_str()).then_some(onnx::AttributeValue::OfCall)
            }
            value => Some(node::raw(value)),
        }
    }
}

fn shown(row: &DataType) -> &'static str {
    row.dtype.map_or(row.name, DType::name)
}

fn written(attribute: &Attribute) -> String {
    let value = match &attribute.value {
        AttributeValue::Int(value) => value.to_string(),
        AttributeValue::String(text) => Escaped(&String::from_utf8_lossy(text)).to_string(),
        AttributeValue::Reference(name) => format!("attribute {} of the call", Escaped(name)),
        other => node::kind_name(other).into(),
    };
    format!("{}={value}", attribute.name.escape_debug())
}

/// Type that a Cast requests. The nodes after an illegal Cast are checked with this type.
fn stated_target(node: &Node) -> Option<ElementType> {
    match node.attribute("to")? {
        AttributeValue::Int(code) => DataType::of_code(*code).filter(|row| row.dtype.is_some()),
        _ => None,
    }
}

fn constant_type(node: &Node) -> Option<ElementType> {
    let attribute = node.attributes.first()?;
    match &attribute.value {
        AttributeValue::Tensor(tensor) => Some(tensor.data_type),
        AttributeValue::Float(_) | AttributeValue::Floats(_) => DataType::of(DType::F32),
        AttributeValue::Int(_) | AttributeValue::Ints(_) => DataType::of(DType::I64),
        AttributeValue::String(_) | AttributeValue::Strings(_) => DataType::of(DType::String),
        _ => None,
    }
}
