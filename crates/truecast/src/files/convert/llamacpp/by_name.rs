//! Targets of a model whose names are known.

use super::Item;
use super::names::{Attention, Numbers, Role, arrangement, is_always_f32, left_out, role};
use super::view::{Piece, Target, Values};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use truecast_io::{Escaped, counted};

/// Targets in the order of the source, and sentences about tensors that are left out.
pub(super) fn targets(
    architecture: &str,
    attention: Attention,
    all: Vec<Item>,
) -> Result<(Vec<Target>, Vec<String>), String> {
    let mut said = said_of_left_out(architecture, &all);
    let (mut later, mut targets) = (0, Vec::<Target>::new());
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut experts: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for item in all {
        let (results, Numbers { layer, expert }) = match role(architecture, &item.name) {
            Role::Mapped(results, numbers) => (results, numbers),
            Role::Computed | Role::OtherMode => continue,
            Role::Unknown => {
                return Err(format!("tensor {} is not known for architecture {architecture}", Escaped(&item.name)));
            }
        };
        if layer.zip(attention.layers).is_some_and(|(layer, layers)| layer >= layers) {
            // DeepSeek stores layers that predict further tokens after the others.
            if architecture != "deepseek2" {
                return Err(format!("tensor {} is of a layer beyond num_hidden_layers", Escaped(&item.name)));
            }
            later += 1;
            continue;
        }
        for (name, how) in results {
            // Dense weights of fused experts have one row for each input.
            let has_input_rows = matches!(item.values, Values::Plain(_));
            let (shape, order) = arrangement(&name, how, &item.shape, attention, has_input_rows).ok_or_else(|| {
                format!("the shape {:?} of tensor {} does not fit the model", item.shape, Escaped(&item.name))
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
                (Some(_), None) => return Err(format!("two tensors are the source of {}", Escaped(&name))),
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
    check(architecture, attention, &targets)?;
    if later > 0 {
        let tensors = counted(later, "tensor");
        said.push(format!(
            "{tensors} of layers that predict further tokens are left out; llama.cpp does not load them"
        ));
    }
    Ok((targets, said))
}

/// Sentences about tensors whose role alone leaves them out.
pub(super) fn said_of_left_out(architecture: &str, all: &[Item]) -> Vec<String> {
    let of = |role: Role| all.iter().filter(move |item| left_out(architecture, &item.name).as_ref() == Some(&role));
    let mut said = Vec::new();
    let encoders = of(Role::OtherMode).count() as u64;
    if encoders > 0 {
        let tensors = counted(encoders, "tensor");
        said.push(format!(
            "{tensors} of encoders of images or sound are left out; llama.cpp reads them from a file of their own"
        ));
    }
    if let Some(first) = of(Role::Computed).next() {
        let (tensors, first) = (counted(of(Role::Computed).count() as u64, "tensor"), Escaped(&first.name));
        said.push(format!("{tensors} (first {first}) left out; llama.cpp does not load tensors of this name"));
    }
    said
}

/// Checks that no tensor is missing, and that shapes are those of the configuration.
fn check(architecture: &str, attention: Attention, targets: &[Target]) -> Result<(), String> {
    let shapes: HashMap<&str, &[u64]> = targets.iter().map(|of| (&*of.tensor.name, &*of.tensor.shape)).collect();
    for needed in ["token_embd.weight", "output_norm.weight"] {
        if !shapes.contains_key(needed) {
            return Err(format!("no tensor is the source of {needed}"));
        }
    }
    let mut layers = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (name, shape) in &shapes {
        let of_heads = |heads: u64| attention.head.and_then(|head| head.checked_mul(heads));
        let expected = match name.rsplit('.').nth(1).unwrap_or_default() {
            "token_embd" => attention.tokens,
            "attn_q" => of_heads(attention.heads),
            "attn_k" => of_heads(attention.kv_heads),
            part if part.ends_with("_exps") => attention.experts,
            _ => None,
        };
        if expected.is_some_and(|expected| shape.first() != Some(&expected)) {
            return Err(format!("{} has shape {shape:?}, which does not fit the configuration", Escaped(name)));
        }
        if let Some((layer, part)) = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
            layers.entry(part).or_default().insert(layer);
        }
    }
    let Some(all) = attention.layers else { return Ok(()) };
    for (part, of) in layers {
        // The first layers of DeepSeek have no experts.
        let is_of_some = architecture == "deepseek2" && (part.contains("ffn_") || part.contains("exp_probs"));
        if of.len() as u64 != all && (!is_of_some || part.contains("norm")) {
            return Err(format!("{} of {all} layers have no {part}", all.abs_diff(of.len() as u64)));
        }
    }
    Ok(())
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
