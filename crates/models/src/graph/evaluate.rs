//! Evaluation of a graph.

use std::collections::HashMap;
use std::sync::Arc;

use truecast_io::Escaped;
use truecast_kernel::CastOptions;

use super::{Dimension, Graph, Input, Output, Producer};
use crate::cast::cast;
use crate::error::Error;
use crate::evaluate::{Given, OpenResults, Program, run_program};
use crate::tensor::Tensor;

/// Evaluates a graph. Returns the conversions with results that their standard leaves open.
///
/// `provide` is called once for every input; `None` selects the default. `deliver` is called once for each output, as
/// soon as it is computed. Conversions with unused results are skipped. Each value is held until its last use.
///
/// # Errors
/// [`Error`], and errors of `provide` and `deliver`.
pub fn evaluate<E: From<Error>>(
    graph: &Graph,
    exec: &CastOptions,
    mut provide: impl FnMut(&Input) -> Result<Option<Tensor>, E>,
    mut deliver: impl FnMut(&Output, &Tensor) -> Result<(), E>,
) -> Result<Vec<OpenResults>, E> {
    let mut outputs: Vec<Vec<usize>> = vec![Vec::new(); graph.values.len()];
    graph.outputs.iter().enumerate().for_each(|(index, output)| outputs[output.value.0].push(index));
    let (provide, deliver): (Provide<'_, E>, Deliver<'_, E>) = (&mut provide, &mut deliver);
    let mut casts =
        Casts { graph, exec, provide, deliver, outputs, names: Names::default(), open: Vec::new(), delivered: 0 };
    let uses = run_program(&mut casts)?;
    // Unused inputs are loaded too, because they must match their declaration.
    for input in graph.inputs.iter().filter(|input| uses[input.value.0] == 0) {
        casts.load(input.value.0)?;
    }
    Ok(casts.open)
}

type Provide<'a, E> = &'a mut dyn FnMut(&Input) -> Result<Option<Tensor>, E>;
type Deliver<'a, E> = &'a mut dyn FnMut(&Output, &Tensor) -> Result<(), E>;

/// A graph as a program. If value `n` is the result of a conversion, step `n` computes it. Inputs and constants are
/// loaded at their first use.
struct Casts<'a, E> {
    graph: &'a Graph,
    exec: &'a CastOptions,
    provide: Provide<'a, E>,
    deliver: Deliver<'a, E>,
    outputs: Vec<Vec<usize>>,
    names: Names,
    open: Vec<OpenResults>,
    delivered: usize,
}

impl<E: From<Error>> Program for Casts<'_, E> {
    type Value = Tensor;
    type Error = E;

    fn values(&self) -> usize {
        self.graph.values.len()
    }

    fn steps(&self) -> usize {
        self.graph.values.len()
    }

    fn operands(&self, step: usize) -> Vec<usize> {
        match &self.graph.values[step].producer {
            Producer::Cast { input, .. } => vec![input.0],
            _ => Vec::new(),
        }
    }

    fn results(&self, step: usize) -> Vec<usize> {
        match &self.graph.values[step].producer {
            Producer::Cast { .. } => vec![step],
            _ => Vec::new(),
        }
    }

    fn delivered(&self, step: usize) -> Vec<usize> {
        let made = step.checked_sub(1);
        made.map_or(Vec::new(), |value| vec![value; self.outputs[value].len()])
    }

    fn load(&mut self, value: usize) -> Result<Given<Tensor>, E> {
        let graph = self.graph;
        let value = &graph.values[value];
        let label = || value.label.to_string();
        let read = |load: &dyn super::Load| {
            load.load().map_err(|cause| Error::Constant { label: label(), cause: cause.into() })
        };
        let tensor = match &value.producer {
            Producer::Input(index) => {
                let input = &graph.inputs[*index];
                let tensor = match ((self.provide)(input)?, &input.default) {
                    (Some(tensor), _) => Arc::new(tensor),
                    (None, Some(default)) => read(&**default)?,
                    (None, None) => {
                        let shape =
                            input.shape.as_ref().map_or(String::new(), |shape| format!(" {}", self.names.shown(shape)));
                        let declared = format!("{}{shape}", input.dtype);
                        return Err(Error::Missing { name: label(), declared }.into());
                    }
                };
                if tensor.dtype != input.dtype {
                    let (found, declared) = (tensor.dtype, input.dtype);
                    return Err(Error::Type { name: label(), found, declared }.into());
                }
                self.names.check("input", &input.name, &input.shape, &tensor)?;
                tensor
            }
            Producer::Constant(constant) => read(&**constant)?,
            Producer::Cast { .. } => unreachable!("values are made before their first use, and kept until their last"),
        };
        if !tensor.is_consistent() || tensor.dtype != value.dtype {
            return Err(Error::Inconsistent { name: label(), shape: tensor.shape.clone() }.into());
        }
        Ok(Some(tensor))
    }

    fn apply(&mut self, step: usize, operands: &[Given<Tensor>]) -> Result<Vec<Given<Tensor>>, E> {
        let value = &self.graph.values[step];
        let (Producer::Cast { spec, .. }, [Some(source)]) = (&value.producer, operands) else { return Ok(Vec::new()) };
        let done = cast(spec, source, self.exec, &value.label);
        let (converted, open) = done.map_err(|cause| Error::Cast { label: value.label.to_string(), cause })?;
        self.open.extend(open);
        Ok(vec![Some(converted)])
    }

    fn deliver(&mut self, _step: usize, value: usize, given: Given<Tensor>) -> Result<(), E> {
        let tensor = given.expect("every value of a graph is known");
        let outputs = &self.outputs[value];
        let output = &self.graph.outputs[outputs[self.delivered]];
        self.delivered = (self.delivered + 1) % outputs.len();
        self.names.check("output", &output.name, &output.shape, &tensor)?;
        (self.deliver)(output, &tensor)
    }
}

#[derive(Default)]
struct Names(HashMap<String, u64>);

impl Names {
    fn check(
        &mut self,
        what: &'static str,
        name: &str,
        declared: &Option<Vec<Dimension>>,
        tensor: &Tensor,
    ) -> Result<(), Error> {
        let Some(declared) = declared else { return Ok(()) };
        let fits = declared.len() == tensor.shape.len()
            && declared.iter().zip(&tensor.shape).all(|(dimension, &found)| match dimension {
                Dimension::Known(n) => *n == found,
                Dimension::Named(symbol) => *self.0.entry(symbol.clone()).or_insert(found) == found,
                Dimension::Between(least, most) => (*least..=*most).contains(&found),
                Dimension::Any => true,
            });
        if fits {
            Ok(())
        } else {
            Err(Error::Shape { what, name: name.into(), found: tensor.shape.clone(), declared: self.shown(declared) })
        }
    }

    fn shown(&self, shape: &[Dimension]) -> String {
        let dimension = |d: &Dimension| match d {
            Dimension::Known(n) => n.to_string(),
            Dimension::Named(name) => match self.0.get(name) {
                Some(n) => format!("{} = {n}", Escaped(name)),
                None => Escaped(name).to_string(),
            },
            Dimension::Between(least, u64::MAX) => format!("{least}.."),
            Dimension::Between(least, most) => format!("{least}..{most}"),
            Dimension::Any => "?".into(),
        };
        format!("[{}]", shape.iter().map(dimension).collect::<Vec<_>>().join(", "))
    }
}
