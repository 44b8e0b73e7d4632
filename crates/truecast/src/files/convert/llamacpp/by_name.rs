//! Targets of a model whose names are known.

use super::Item;
use super::names::{Attention, Numbers, Role, arrangement, is_always_f32, role};
use super::view::{Piece, Target, Values};
use std::collections::{BTreeMap, HashMap};
use truecast_io::Escaped;

/// Targets in the order of the source, and the number of tensors that are left out.
pub(super) fn targets(architecture: &str, attention: Attention, all: Vec<Item>) -> Result<(Vec<Target>, u64), String> {
    let (mut left_out, mut targets) = (0, Vec::<Target>::new());
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut experts: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for item in all {
        let (results, Numbers { layer, expert }) = match role(architecture, &item.name) {
            Role::Mapped(results, numbers) => (results, numbers),
            Role::Computed => continue,
            Role::OtherMode => {
                left_out += 1;
                continue;
            }
            Role::Unknown => {
                return Err(format!("tensor {} is not known for architecture {architecture}", Escaped(&item.name)));
            }
        };
        if layer.zip(attention.layers).is_some_and(|(layer, layers)| layer >= layers) {
            left_out += 1;
            continue;
        }
        for (name, how) in results {
            // Dense weights of fused experts have one row for each input.
            let has_input_rows = matches!(item.values, Values::Plain(_));
            let (shape, order) = arrangement(&name, how, &item.shape, attention, has_input_rows).ok_or_else(|| {
                format!("the shape {:?} of tensor {} does not fit config.json", item.shape, Escaped(&item.name))
            })?;
            let piece = Piece { values: item.values.clone(), order };
            let place = *places.entry(name.clone()).or_insert(targets.len());
            match (targets.get_mut(place), expert) {
                (None, _) => {
                    let add = (architecture.starts_with("gemma") && name.ends_with("norm.weight")).then_some(1.0);
                    let target = Target { add, ..Target::new(&name, &shape, item.dtype, piece) };
                    let is_f32 = add.is_some() || is_always_f32(&name, &shape);
                    targets.push(if is_f32 { target.widened() } else { target });
                }
                (Some(target), Some(_)) if target.from == item.dtype && *target.tensor.shape == *shape => {
                    target.pieces.push(piece);
                }
                _ => return Err(format!("the parts of {} have different types or shapes", Escaped(&name))),
            }
            if let Some(expert) = expert {
                experts.entry(place).or_default().push(expert);
            }
        }
    }
    for (place, numbers) in experts {
        stack(&mut targets[place], &numbers)?;
    }
    Ok((targets, left_out))
}

/// Stacks the matrices of all experts.
pub(super) fn stack(target: &mut Target, numbers: &[u64]) -> Result<(), String> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|at| numbers[*at]);
    if order.iter().enumerate().any(|(expert, at)| numbers[*at] != expert as u64) {
        return Err(format!("experts of {} are missing", Escaped(&target.tensor.name)));
    }
    let mut pieces: Vec<Option<Piece>> = std::mem::take(&mut target.pieces).into_iter().map(Some).collect();
    target.pieces = order.into_iter().filter_map(|at| pieces[at].take()).collect();
    target.tensor.shape = [&[numbers.len() as u64], &*target.tensor.shape].concat().into();
    Ok(())
}
