//! Finds tensors that are inputs of given operators, directly or through functions. Results that are computed from a
//! tensor do not count.

use super::inventory::{Listed, visit_nodes};
use super::model::{Model, Node};
use foldhash::{HashMap, HashMapExt, HashSet};

/// Name of a value in a body: 0 is the main graph, `i + 1` is function `i`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ScopedName<'a> {
    body: usize,
    name: &'a str,
}

/// For each listed tensor, whether it is an input of `operators`, named as by [`ModelFile::operators`].
///
/// [`ModelFile::operators`]: super::ModelFile::operators
pub(crate) fn are_inputs_of(model: &Model, listed: &[Listed], operators: &[&str]) -> Vec<bool> {
    let functions: HashMap<_, _> = model.functions.iter().zip(1..).map(|(f, body)| (f.identity(), body)).collect();
    let mut worklist = Worklist::default();
    // Arguments of each function's parameters, over all calls.
    let mut arguments: HashMap<ScopedName<'_>, Vec<ScopedName<'_>>> = HashMap::new();
    let bodies = std::iter::once(&model.graph.nodes).chain(model.functions.iter().map(|function| &function.nodes));
    for (body, nodes) in bodies.enumerate() {
        visit_nodes(nodes, &mut |node| {
            let inputs = || node.inputs.iter().map(String::as_str).enumerate().filter(|(_, name)| !name.is_empty());
            if operators.iter().any(|operator| is_called(node, operator)) {
                inputs().for_each(|(_, name)| worklist.push(ScopedName { body, name }));
            }
            if let Some(&callee) = functions.get(&node.identity()) {
                let parameters = &model.functions[callee - 1].inputs;
                for (index, name) in inputs() {
                    let Some(parameter) = parameters.get(index) else { continue };
                    let parameter = ScopedName { body: callee, name: parameter };
                    arguments.entry(parameter).or_default().push(ScopedName { body, name });
                }
            }
        });
    }
    // Follows every reached parameter to its arguments, until no new value is reached.
    while let Some(parameter) = worklist.pending.pop() {
        arguments.remove(&parameter).into_iter().flatten().for_each(|argument| worklist.push(argument));
    }
    let is_seen = |listed: &Listed| worklist.seen.contains(&ScopedName { body: listed.body, name: &listed.value });
    listed.iter().map(is_seen).collect()
}

#[derive(Default)]
struct Worklist<'a> {
    seen: HashSet<ScopedName<'a>>,
    pending: Vec<ScopedName<'a>>,
}

impl<'a> Worklist<'a> {
    fn push(&mut self, value: ScopedName<'a>) {
        if self.seen.insert(value) {
            self.pending.push(value);
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
