//! Evaluates a graph. All operators are checked before the first element is computed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use truecast_core::spec::tosa::{Freedoms, Target};
use truecast_kernel::CastOptions;

use super::check::{Rules, check_structure, place};
use super::error::GraphError;
use super::operator::{Applied, Context};
use super::read::Graph;
use super::value::{Declared, ElementType, declared};
use crate::error::Error;
use crate::evaluate::{Given, OpenResults, Program, run_program};
use crate::tensor::Tensor;

/// Outputs by name, and the conversions with results that the specification leaves open.
pub type Evaluated<'a> = (Vec<(&'a str, Arc<Tensor>)>, Vec<OpenResults>);

/// Evaluates a graph.
///
/// `provide` returns an input by name and declaration. `freedoms` are choices that the specification leaves open for
/// plain CASTs between floats. Each value is held until its last use.
///
/// # Errors
/// [`Error::Tosa`], [`Error::Undefined`], and errors of `provide`.
pub fn evaluate<'a, E: From<Error>>(
    graph: &Graph<'a>,
    target: &Target,
    freedoms: Freedoms,
    exec: &CastOptions,
    mut provide: impl FnMut(&str, &Declared) -> Result<Tensor, E>,
) -> Result<Evaluated<'a>, E> {
    check_structure(graph, target).map_err(Error::from)?;
    let mut operators = Operators {
        graph,
        target,
        freedoms,
        exec,
        names: HashMap::new(),
        given: HashMap::new(),
        made: HashSet::new(),
        open: Vec::new(),
        outputs: Vec::new(),
    };
    let operands = graph.operators.iter().flat_map(|operator| operator.inputs.iter().chain(&operator.outputs));
    for name in operands.chain(&graph.outputs).chain(&graph.inputs) {
        let next = operators.names.len();
        operators.names.entry(name).or_insert(next);
    }
    for name in &graph.inputs {
        let declared = declared(graph, name).map_err(Error::from)?;
        let tensor = provide(name, &declared)?;
        check_input(name, &declared, &tensor).map_err(Error::from)?;
        operators.given.insert(operators.names[name], tensor.into());
        operators.made.insert(name);
    }
    run_program(&mut operators).map_err(Error::from)?;
    Ok((operators.outputs, operators.open))
}

/// A graph as a program: names are values, operators are steps.
struct Operators<'g, 'a> {
    graph: &'g Graph<'a>,
    target: &'g Target,
    freedoms: Freedoms,
    exec: &'g CastOptions,
    names: HashMap<&'a str, usize>,
    given: HashMap<usize, Arc<Tensor>>,
    made: HashSet<&'a str>,
    open: Vec<OpenResults>,
    outputs: Vec<(&'a str, Arc<Tensor>)>,
}

impl Operators<'_, '_> {
    fn numbers(&self, names: &[&str]) -> Vec<usize> {
        names.iter().map(|name| self.names[name]).collect()
    }
}

impl Program for Operators<'_, '_> {
    type Value = Tensor;
    type Error = GraphError;

    fn values(&self) -> usize {
        self.names.len()
    }

    fn steps(&self) -> usize {
        self.graph.operators.len()
    }

    fn operands(&self, step: usize) -> Vec<usize> {
        self.numbers(&self.graph.operators[step].inputs)
    }

    fn results(&self, step: usize) -> Vec<usize> {
        self.numbers(&self.graph.operators[step].outputs)
    }

    fn delivered(&self, step: usize) -> Vec<usize> {
        if step == self.steps() { self.numbers(&self.graph.outputs) } else { Vec::new() }
    }

    /// True, because an error in any operator is an error of the graph.
    fn does_every_step(&self) -> bool {
        true
    }

    fn load(&mut self, value: usize) -> Result<Given<Tensor>, GraphError> {
        Ok(self.given.remove(&value))
    }

    fn apply(&mut self, step: usize, operands: &[Given<Tensor>]) -> Result<Vec<Given<Tensor>>, GraphError> {
        let operator = &self.graph.operators[step];
        let known = |(name, given): (&&str, _)| Option::as_ref(given).ok_or_else(|| no_value(name));
        let inputs = operator.inputs.iter().zip(operands).map(known).collect::<Result<Vec<_>, _>>()?;
        let outputs = operator.outputs.iter().map(|name| declared(self.graph, name)).collect::<Result<Vec<_>, _>>()?;
        let place = place(step, operator);
        let rules = Rules { place: &place, target: self.target, freedoms: self.freedoms };
        let context = Context { graph: self.graph, operator, rules, exec: self.exec };
        let Applied { results, open } = context.apply(&inputs, &outputs)?;
        self.open.extend(open);
        for name in &operator.outputs {
            if !self.made.insert(name) {
                return Err(GraphError::Tensor { name: (*name).into(), what: "two operators produce it".into() });
            }
        }
        Ok(results.into_iter().map(Some).collect())
    }

    fn deliver(&mut self, _step: usize, _value: usize, given: Given<Tensor>) -> Result<(), GraphError> {
        let name = self.graph.outputs[self.outputs.len()];
        self.outputs.push((name, given.ok_or_else(|| no_value(name))?));
        Ok(())
    }
}

fn no_value(name: &str) -> GraphError {
    GraphError::Tensor { name: name.into(), what: "is used before it has a value".into() }
}

fn check_input(name: &str, declared: &Declared, tensor: &Tensor) -> Result<(), GraphError> {
    let wrong = |what: String| Err(GraphError::Tensor { name: name.into(), what });
    let element = ElementType::of(tensor);
    if element != declared.element {
        return wrong(format!("elements are {element}, the graph declares {}", declared.element));
    }
    if tensor.shape != declared.shape {
        return wrong(format!("shape is {:?}, the graph declares {:?}", tensor.shape, declared.shape));
    }
    if !tensor.is_consistent() {
        return wrong("the elements do not fill the shape".into());
    }
    Ok(())
}
