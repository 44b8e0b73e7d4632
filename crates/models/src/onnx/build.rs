//! Builds a graph from the structure of a model: resolves names and types, expands functions.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use truecast_core::DType;
use truecast_core::policy::TextStyle;
use truecast_core::spec::onnx::Operator;
use truecast_io::onnx::{self, Identity, ModelFile, Node, ValueInfo, ValueType};

use super::constant::{self, Constants};
use super::error::{ModelError, NodeError};
use super::node::{self, Bindings, Callable, declared_type, label, opset};
use crate::graph::{Dimension, Graph, ValueId};

/// Limit on expanded nodes, far above real models, because a chain of functions expands exponentially.
const MAX_NODES: usize = 1 << 20;
/// Limit on the inputs, outputs and attributes of all expanded nodes, which bounds the cost of expansion.
const MAX_PARTS: usize = 1 << 23;
/// Limit on nested function calls, which keeps the recursion within the stack.
const MAX_CALLS: usize = 128;

/// Builds the graph of a model that consists of conversions. Text is written in the notation `text`.
///
/// # Errors
/// The first node that is not a conversion, or that the model's opset forbids. A value that contradicts its
/// declaration.
pub fn build(file: &Arc<ModelFile>, text: TextStyle) -> Result<Graph, ModelError> {
    let model = file.model();
    let mut builder = Builder {
        functions: model.functions.iter().map(|f| (f.identity(), Rc::new(Callable::new(f)))).collect(),
        file,
        text,
        constants: Constants::new(file),
        labels: HashMap::new(),
        graph: Graph::default(),
        calls: Vec::new(),
        nodes: 0,
        parts: 0,
    };
    let mut scope = Scope::default();
    builder.constants_and_inputs(&model.graph, &mut scope)?;
    let body = Body { opset: opset(&model.opset_imports), bindings: Bindings::default() };
    for node in &model.graph.nodes {
        builder.node(node, &body, &mut scope)?;
    }
    for info in &model.graph.value_infos {
        if let Some(value) = scope.find(&info.name).ok().flatten() {
            let wrong = |e: NodeError| ModelError::value("value_info", &info.name, e.to_string());
            builder.check_declared(info, builder.graph.dtype(value)).map_err(wrong)?;
        }
    }
    let mut names = HashSet::new();
    for output in &model.graph.outputs {
        if !names.insert(&output.name) {
            return Err(ModelError::value("output", &output.name, "is listed twice"));
        }
        builder.output(output, &scope)?;
    }
    Ok(builder.graph)
}

/// `None` for a function's parameter that the call omits.
#[derive(Default)]
struct Scope<'a>(HashMap<&'a str, Option<ValueId>>);

impl<'a> Scope<'a> {
    fn define(&mut self, name: &'a str, value: Option<ValueId>) -> Result<(), NodeError> {
        match self.0.insert(name, value) {
            None => Ok(()),
            Some(_) => Err(NodeError::DefinedTwice { name: name.into() }),
        }
    }

    fn find(&self, name: &str) -> Result<Option<ValueId>, NodeError> {
        match (name, self.0.get(name)) {
            ("", _) => Ok(None),
            (_, Some(value)) => Ok(*value),
            (_, None) => Err(NodeError::Undefined { name: name.into() }),
        }
    }

    /// Values of a node's inputs, of which none may be omitted.
    fn inputs(&self, node: &Node, expected: usize) -> Result<Vec<ValueId>, NodeError> {
        let names = node::operands(node, expected)?.iter().enumerate();
        names.map(|(index, name)| self.find(name)?.ok_or(NodeError::LeftOut { what: "input", index })).collect()
    }
}

struct Body<'a> {
    opset: Result<u32, NodeError>,
    bindings: Bindings<'a>,
}

struct Builder<'a> {
    file: &'a Arc<ModelFile>,
    text: TextStyle,
    functions: HashMap<Identity<'a>, Rc<Callable<'a>>>,
    constants: Constants<'a>,
    labels: HashMap<*const Node, Arc<str>>,
    graph: Graph,
    calls: Vec<Rc<Callable<'a>>>,
    nodes: usize,
    parts: usize,
}

impl<'a> Builder<'a> {
    fn constants_and_inputs(&mut self, graph: &'a onnx::Graph, scope: &mut Scope<'a>) -> Result<(), ModelError> {
        if let Some(sparse) = graph.sparse_initializers.first() {
            return Err(ModelError::value("initializer", &sparse.values.name, "sparse tensors are not converted"));
        }
        let mut defaults = HashMap::new();
        for tensor in &graph.initializers {
            let wrong = |why: String| ModelError::value("initializer", &tensor.name, why);
            let constant = constant::stored(self.file, tensor).map_err(|e| wrong(e.to_string()))?;
            if defaults.insert(tensor.name.as_str(), constant).is_some() {
                return Err(wrong("is defined twice".into()));
            }
        }
        for input in &graph.inputs {
            let wrong = |why: String| ModelError::value("input", &input.name, why);
            let dtype = declared_type(&input.kind).map_err(|e| wrong(e.to_string()))?;
            let dtype = dtype.ok_or_else(|| wrong("the model does not state its element type".into()))?;
            let default = match defaults.remove(input.name.as_str()) {
                Some((found, _)) if found != dtype => {
                    let why = NodeError::declared(found, dtype).to_string();
                    return Err(ModelError::value("initializer", &input.name, why));
                }
                default => default.map(|(_, elements)| elements),
            };
            let shape = declared_shape(&input.kind).map_err(wrong)?;
            let value = self.graph.input(&input.name, dtype, shape, default);
            scope.define(&input.name, Some(value)).map_err(|e| wrong(e.to_string()))?;
        }
        for tensor in &graph.initializers {
            if let Some((dtype, elements)) = defaults.remove(tensor.name.as_str()) {
                let value = self.graph.constant(tensor.name.as_str(), dtype, elements);
                let wrong = |e: NodeError| ModelError::value("initializer", &tensor.name, e.to_string());
                scope.define(&tensor.name, Some(value)).map_err(wrong)?;
            }
        }
        Ok(())
    }

    fn output(&mut self, output: &ValueInfo, scope: &Scope<'_>) -> Result<(), ModelError> {
        let wrong = |why: String| ModelError::value("output", &output.name, why);
        let value = scope.find(&output.name).ok().flatten().ok_or_else(|| wrong("no node produces it".into()))?;
        let found = self.graph.dtype(value);
        self.check_declared(output, found).map_err(|e| wrong(e.to_string()))?;
        self.graph.output(&output.name, value, declared_shape(&output.kind).map_err(wrong)?);
        Ok(())
    }

    fn check_declared(&self, info: &ValueInfo, found: DType) -> Result<(), NodeError> {
        match declared_type(&info.kind)? {
            Some(declared) if declared != found => Err(NodeError::declared(found, declared)),
            _ => Ok(()),
        }
    }

    fn node(&mut self, node: &'a Node, body: &Body<'a>, scope: &mut Scope<'a>) -> Result<(), ModelError> {
        let in_node = |cause| ModelError::Node { node: label(node), cause };
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(in_node(NodeError::TooMany { what: "nodes", limit: MAX_NODES }));
        }
        // A function of the model takes precedence over an operator of the same name.
        let callable = self.functions.get(&node.identity()).cloned();
        let parameters = callable.as_ref().map_or(0, |callable| callable.function.inputs.len());
        self.parts += node.inputs.len() + node.outputs.len() + node.attributes.len() + parameters;
        if self.parts > MAX_PARTS {
            return Err(in_node(NodeError::TooMany { what: "inputs, outputs and attributes", limit: MAX_PARTS }));
        }
        if let Some(callable) = callable {
            return self.call(&callable, node, body, scope);
        }
        let value = self.operator(node, body, scope).map_err(in_node)?;
        scope.define(node::result(node).map_err(in_node)?, Some(value)).map_err(in_node)
    }

    fn operator(&mut self, node: &'a Node, body: &Body<'a>, scope: &Scope<'a>) -> Result<ValueId, NodeError> {
        let operator = node.default_operator().ok_or(NodeError::Unsupported)?;
        match operator {
            "Identity" => {
                let input = scope.inputs(node, 1)?[0];
                match node.attributes.first() {
                    None => Ok(input),
                    Some(attribute) => {
                        let why = "Identity has no attributes".into();
                        Err(NodeError::Attribute { name: attribute.name.clone(), why })
                    }
                }
            }
            "Constant" => {
                scope.inputs(node, 0)?;
                let (dtype, elements) = self.constants.of_node(body.opset.clone()?, node, &body.bindings)?;
                let label = self.label(node);
                Ok(self.graph.constant(label, dtype, elements))
            }
            _ => {
                let operator = Operator::of_name(operator).ok_or(NodeError::Unsupported)?;
                let opset = body.opset.clone()?;
                let value = |attribute| Ok(body.bindings.resolve(attribute)?.map(node::raw));
                let attributes = node::attributes(operator, opset, node, value)?;
                let inputs = scope.inputs(node, operator.n_inputs())?;
                let (input, target) = (inputs[0], inputs.get(1).map(|&like| self.graph.dtype(like)));
                let cast = attributes.cast(operator, opset, target).expect("a Cast has `to`, a CastLike a target");
                let mut spec = cast.resolve(self.graph.dtype(input))?;
                if spec.dst == DType::String {
                    spec.policy.text = self.text;
                }
                let label = self.label(node);
                Ok(self.graph.cast(label, spec, input))
            }
        }
    }

    fn label(&mut self, node: &'a Node) -> Arc<str> {
        self.labels.entry(std::ptr::from_ref(node)).or_insert_with(|| label(node).into()).clone()
    }

    fn call(
        &mut self,
        callable: &Rc<Callable<'a>>,
        node: &'a Node,
        body: &Body<'a>,
        scope: &mut Scope<'a>,
    ) -> Result<(), ModelError> {
        let function = callable.function;
        let in_node = |cause| ModelError::Node { node: label(node), cause };
        if self.calls.iter().any(|open| Rc::ptr_eq(open, callable)) {
            return Err(in_node(NodeError::Recursion { function: function.name.clone() }));
        }
        if self.calls.len() == MAX_CALLS {
            return Err(in_node(NodeError::TooDeep { limit: MAX_CALLS }));
        }
        for (what, given, known) in
            [("inputs", &node.inputs, &function.inputs), ("outputs", &node.outputs, &function.outputs)]
        {
            if given.len() > known.len() {
                return Err(in_node(NodeError::Count { what, found: given.len(), expected: known.len() }));
            }
        }
        let mut inner = Scope::default();
        for (index, parameter) in function.inputs.iter().enumerate() {
            let argument = node.inputs.get(index).map_or("", String::as_str);
            let value = scope.find(argument).map_err(in_node)?;
            inner.define(parameter, value).map_err(in_node)?;
        }
        let bindings = Bindings::of_call(callable, node, &body.bindings).map_err(in_node)?;
        let inner_body = Body { opset: opset(&function.opset_imports), bindings };
        self.calls.push(callable.clone());
        for inner_node in &function.nodes {
            self.node(inner_node, &inner_body, &mut inner)?;
        }
        self.calls.pop();
        for (name, output) in node.outputs.iter().zip(&function.outputs) {
            let missing = || NodeError::NoResult { function: function.name.clone(), output: output.clone() };
            let value = inner.find(output).ok().flatten().ok_or_else(missing).map_err(in_node)?;
            if !name.is_empty() {
                scope.define(name, Some(value)).map_err(in_node)?;
            }
        }
        Ok(())
    }
}

fn declared_shape(kind: &ValueType) -> Result<Option<Vec<Dimension>>, String> {
    let ValueType::Tensor { shape: Some(shape), .. } = kind else { return Ok(None) };
    let dimension = |dimension: &onnx::Dimension| match dimension {
        onnx::Dimension::Value(n) => {
            u64::try_from(*n).map(Dimension::Known).map_err(|_| format!("has the dimension {n}"))
        }
        onnx::Dimension::Named(name) => Ok(Dimension::Named(name.clone())),
        onnx::Dimension::Unknown => Ok(Dimension::Any),
    };
    shape.iter().map(dimension).collect::<Result<_, _>>().map(Some)
}
