//! TOSA graphs of CONST, CONST_SHAPE, IDENTITY, CAST and RESCALE: evaluated operator by operator, since a graph has one of
//! three results (valid, error, unpredictable) and values may be block-scaled. Reference: `docs/spec/tosa.md §6.1`, §8.
//!
//! [`value`] is what flows, `operator` what happens to it, `check` what may happen at all.

mod check;
mod error;
mod operator;
pub mod read;
pub mod value;

use std::collections::HashMap;

use truecast_core::spec::tosa::{Freedoms, Target, Version};
use truecast_kernel::CastOptions;

use crate::OpenResults;
pub use check::{Judged, judge};
use check::{Rules, place};
pub use error::{FileError, GraphError};
use read::Graph;
use value::{Declared, declared};
pub use value::{ElementType, Value};

/// What the version of a file has, with every profile and extension, at level 8K.
pub fn target_of(graph: &Graph<'_>) -> Target {
    Target::of(if graph.version.1 >= 1 { Version::V1_1 } else { Version::V1_0 })
}

/// What came of a graph: its outputs by name, and the conversions that met values which the specification leaves open.
pub type Evaluated<'a> = (Vec<(&'a str, Value)>, Vec<OpenResults>);

/// Evaluates a graph, whose operators are all looked at before the first element is asked for.
///
/// `provide` is asked for every input, by name and declaration. `freedoms` are what plain CASTs between floats may choose. Cost: a value lives from its making to its last use.
///
/// # Errors
/// [`GraphError`], and whatever `provide` returns.
pub fn evaluate<'a, E: From<GraphError>>(
    graph: &Graph<'a>,
    target: &Target,
    freedoms: Freedoms,
    exec: &CastOptions,
    mut provide: impl FnMut(&str, &Declared) -> Result<Value, E>,
) -> Result<Evaluated<'a>, E> {
    check::check_structure(graph, target)?;
    let mut uses: HashMap<&str, usize> = HashMap::new();
    let operands = graph.operators.iter().flat_map(|operator| operator.inputs.iter());
    operands.chain(&graph.outputs).for_each(|name| *uses.entry(name).or_default() += 1);
    let mut values: HashMap<&str, Value> = HashMap::new();
    let mut left_open = Vec::new();
    for name in &graph.inputs {
        let declared = declared(graph, name)?;
        let value = provide(name, &declared)?;
        check_fed(name, &declared, &value)?;
        values.insert(name, value);
    }
    for (index, operator) in graph.operators.iter().enumerate() {
        let place = place(index, operator);
        let (results, open) = {
            let inputs: Vec<&Value> = operator
                .inputs
                .iter()
                .map(|name| values.get(name).ok_or_else(|| no_value(name)))
                .collect::<Result<_, _>>()?;
            let outputs: Vec<Declared> =
                operator.outputs.iter().map(|name| declared(graph, name)).collect::<Result<_, _>>()?;
            let rules = Rules { place: &place, target, freedoms };
            operator::apply(graph, operator, rules, exec, &inputs, &outputs)?
        };
        left_open.extend(open);
        for name in &operator.inputs {
            release(&mut uses, &mut values, name);
        }
        for (name, value) in operator.outputs.iter().zip(results) {
            if values.insert(name, value).is_some() {
                return Err(GraphError::Tensor { name: (*name).into(), what: "two operators give it".into() }.into());
            }
        }
    }
    let take = |name: &&'a str| {
        let value = values.get(name).cloned().ok_or_else(|| no_value(name))?;
        Ok((*name, value))
    };
    let outputs = graph.outputs.iter().map(take).collect::<Result<_, E>>()?;
    Ok((outputs, left_open))
}

fn no_value(name: &str) -> GraphError {
    GraphError::Tensor { name: name.into(), what: "is used before it has a value".into() }
}

fn release<'a>(uses: &mut HashMap<&'a str, usize>, values: &mut HashMap<&'a str, Value>, name: &'a str) {
    if let Some(left) = uses.get_mut(name) {
        *left -= 1;
        if *left == 0 {
            values.remove(name);
        }
    }
}

fn check_fed(name: &str, declared: &Declared, value: &Value) -> Result<(), GraphError> {
    let wrong = |what: String| Err(GraphError::Tensor { name: name.into(), what });
    if value.element != declared.element {
        return wrong(format!("elements are {}, the graph declares {}", value.element, declared.element));
    }
    if value.shape != declared.shape {
        return wrong(format!("shape is {:?}, the graph declares {:?}", value.shape, declared.shape));
    }
    if !value.is_consistent() {
        return wrong("the elements do not fill the shape".into());
    }
    Ok(())
}
