//! Description of graphs.

use truecast_io::Escaped;

use super::read::{Graph, RescaleAttribute, op};
use super::value::element_type;
use crate::description::{Constant, Conversion, Description};

/// Describes the graphs of all blocks in a file.
pub fn describe(graphs: &[Graph<'_>]) -> Description {
    let mut all = Description::default();
    for graph in graphs {
        let (major, minor, patch) = graph.version;
        all.version = Some(format!("TOSA {major}.{minor}.{patch}"));
        for operator in &graph.operators {
            let name = op::name(operator.op);
            *all.operators.entry(name.clone()).or_default() += 1;
            match operator.op {
                op::CONST | op::CONST_SHAPE => all.constants.extend(operator.outputs.iter().map(|name| {
                    let shape = graph.tensors.get(name).map_or("?".into(), |tensor| format!("{:?}", tensor.shape));
                    Constant { name: (*name).into(), dtype: type_name(graph, name), shape }
                })),
                number if op::CONVERSIONS.contains(&number) => {
                    // Only the first operand and the first result are values. The others are scales, or constants of
                    // a RESCALE.
                    let from = operator.inputs.first().map_or("?".into(), |name| type_name(graph, name));
                    let to = operator.outputs.first().map_or("?".into(), |name| type_name(graph, name));
                    let place = operator.outputs.first().map_or(String::new(), |name| Escaped(name).to_string());
                    let operation = name + &operator.rescale.map_or(String::new(), attributes);
                    all.conversions.push(Conversion { place, operation, from, to, legality: None });
                }
                _ => {}
            }
        }
    }
    all
}

fn type_name(graph: &Graph<'_>, name: &str) -> String {
    let element = graph.tensors.get(name).and_then(|tensor| element_type(tensor).ok());
    element.map_or("?".into(), |element| element.to_string())
}

/// Attributes with the names of the text form; unset flags are omitted.
fn attributes(attribute: RescaleAttribute) -> String {
    let RescaleAttribute { scale32, rounding_mode, per_channel, input_unsigned, output_unsigned } = attribute;
    let rounding = ["SINGLE_ROUND", "INEXACT_ROUND", "DOUBLE_ROUND"].get((rounding_mode as usize).wrapping_sub(1));
    let flags = [
        (scale32, "scale32"),
        (per_channel, "per_channel"),
        (input_unsigned, "input_unsigned"),
        (output_unsigned, "output_unsigned"),
    ];
    let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| name);
    let rounding = rounding.map_or(format!("rounding_mode {rounding_mode}"), |name| name.to_string());
    std::iter::once(rounding.as_str()).chain(flags).map(|word| format!(" {word}")).collect()
}
