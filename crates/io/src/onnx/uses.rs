//! Finds tensors that are inputs of given operators, directly or through functions. Results that are computed from a
//! tensor do not count.

use super::inventory::{Listed, visit_nodes};
use super::model::{Model, Node};
use foldhash::{HashMap, HashMapExt, HashSet};

/// A value is (body, name in the body). The body is 0 for the main graph, or the number of a function, counted from 1.
type Place<'a> = (usize, &'a str);

/// For each listed tensor, whether it is an input of `operators`, named as by [`ModelFile::operators`].
///
/// [`ModelFile::operators`]: super::ModelFile::operators
pub(crate) fn feeding(model: &Model, listed: &[Listed], operators: &[&str]) -> Vec<bool> {
    let functions: HashMap<_, _> = model.functions.iter().zip(1..).map(|(f, body)| (f.identity(), body)).collect();
    let mut walk = Walk::default();
    let mut given: HashMap<Place<'_>, Vec<Place<'_>>> = HashMap::new();
    let bodies = std::iter::once(&model.graph.nodes).chain(model.functions.iter().map(|function| &function.nodes));
    for (body, nodes) in bodies.enumerate() {
        visit_nodes(nodes, &mut |node| {
            let inputs = || node.inputs.iter().map(String::as_str).enumerate().filter(|(_, name)| !name.is_empty());
            if operators.iter().any(|operator| is_called(node, operator)) {
                inputs().for_each(|(_, name)| walk.reach((body, name)));
            }
            if let Some(&callee) = functions.get(&node.identity()) {
                let parameters = &model.functions[callee - 1].inputs;
                for (parameter, (_, name)) in inputs().filter_map(|i| Some((parameters.get(i.0)?, i))) {
                    given.entry((callee, parameter)).or_default().push((body, name));
                }
            }
        });
    }
    // Follows every reached parameter to its arguments, until no new value is reached.
    while let Some(place) = walk.ahead.pop() {
        given.remove(&place).into_iter().flatten().for_each(|place| walk.reach(place));
    }
    listed.iter().map(|listed| walk.reached.contains(&(listed.body, listed.value.as_str()))).collect()
}

#[derive(Default)]
struct Walk<'a> {
    reached: HashSet<Place<'a>>,
    ahead: Vec<Place<'a>>,
}

impl<'a> Walk<'a> {
    fn reach(&mut self, place: Place<'a>) {
        if self.reached.insert(place) {
            self.ahead.push(place);
        }
    }
}

/// Whether the operator of `node` is called `name`. Outside the default domain, `name` is `DOMAIN.OPERATOR`.
fn is_called(node: &Node, name: &str) -> bool {
    match node.default_operator() {
        Some(operator) => operator == name,
        None => name.strip_prefix(node.domain.as_str()).and_then(|rest| rest.strip_prefix('.')) == Some(&node.op_type),
    }
}
