//! Targets of a model whose names are known.

use super::arrangement::Arrangement;
use super::hyperparameters::Dimensions;
use super::names::{Numbers, Role, is_always_f32, layer, left_out, role};
use super::view::{Part, Piece, Target, Values};
use super::{Item, Match};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use truecast_io::{Escaped, counted};

/// Targets in the order of the source; notes are about tensors that are left out.
pub(super) fn targets(dimensions: Dimensions<'_>, all: Vec<Item>) -> Result<Match, String> {
    let architecture = dimensions.architecture;
    let mut notes = said_of_left_out(architecture, &all);
    let (mut later, mut all_parts) = (0, Vec::<(String, Vec<Part>)>::new());
    let mut places: HashMap<String, usize> = HashMap::new();
    for item in all {
        if layer(&item.name).zip(dimensions.layers).is_some_and(|(layer, layers)| layer >= layers) {
            // DeepSeek stores layers that predict further tokens after the others.
            if architecture != "deepseek2" {
                return Err(format!("tensor {} is of a layer beyond num_hidden_layers", Escaped(&item.name)));
            }
            later += 1;
            continue;
        }
        let (results, Numbers { expert, .. }) = match role(architecture, &item.name) {
            Role::Mapped(results, numbers) => (results, numbers),
            Role::Computed | Role::OtherMode => continue,
            Role::Unknown => {
                return Err(format!("tensor {} is not known for architecture {architecture}", Escaped(&item.name)));
            }
        };
        for (name, how) in results {
            // Dense weights of fused experts have one row for each input.
            let has_input_rows = matches!(item.values, Values::Plain(_));
            let found = Arrangement::new(&name, how, &item.shape, dimensions, has_input_rows).ok_or_else(|| {
                format!("the shape {:?} of tensor {} does not fit the model", item.shape, Escaped(&item.name))
            })?;
            let piece = Piece { values: item.values.clone(), order: found.order() };
            let place = *places.entry(name.clone()).or_insert(all_parts.len());
            if place == all_parts.len() {
                all_parts.push((name, Vec::new()));
            }
            all_parts[place].1.push(Part { expert, shape: found.shape, dtype: item.dtype, piece });
        }
    }
    let target = |(name, parts): (String, Vec<Part>)| {
        let add = (architecture.starts_with("gemma") && name.ends_with("norm.weight")).then_some(1.0);
        let target = Target { add, ..Target::of_parts(&name, parts)? };
        let is_f32 = add.is_some() || is_always_f32(&name, &target.tensor.shape);
        Ok::<_, String>(if is_f32 { target.widened() } else { target })
    };
    let targets = all_parts.into_iter().map(target).collect::<Result<Vec<_>, _>>()?;
    check(dimensions, &targets)?;
    if later > 0 {
        let tensors = counted(later, "tensor");
        notes.push(format!(
            "{tensors} of layers that predict further tokens are left out; llama.cpp does not load them"
        ));
    }
    Ok(Match { targets, notes })
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
fn check(dimensions: Dimensions<'_>, targets: &[Target]) -> Result<(), String> {
    let shapes: HashMap<&str, &[u64]> = targets.iter().map(|of| (&*of.tensor.name, &*of.tensor.shape)).collect();
    for needed in ["token_embd.weight", "output_norm.weight"] {
        if !shapes.contains_key(needed) {
            return Err(format!("no tensor is the source of {needed}"));
        }
    }
    let mut layers = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (name, shape) in &shapes {
        let of_heads = |heads: u64| dimensions.head.and_then(|head| head.checked_mul(heads));
        let expected = match name.rsplit('.').nth(1).unwrap_or_default() {
            "token_embd" => dimensions.tokens,
            "attn_q" => of_heads(dimensions.heads),
            "attn_k" => of_heads(dimensions.kv_heads),
            part if part.ends_with("_exps") => dimensions.experts,
            _ => None,
        };
        if expected.is_some_and(|expected| shape.first() != Some(&expected)) {
            return Err(format!("{} has shape {shape:?}, which does not fit the configuration", Escaped(name)));
        }
        if let Some((layer, part)) = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
            layers.entry(part).or_default().insert(layer);
        }
    }
    let Some(all) = dimensions.layers else { return Ok(()) };
    for (part, of) in layers {
        // The first layers of DeepSeek have no experts.
        let is_of_some =
            dimensions.architecture == "deepseek2" && (part.contains("ffn_") || part.contains("exp_probs"));
        if of.len() as u64 != all && (!is_of_some || part.contains("norm")) {
            return Err(format!("{} of {all} layers have no {part}", all.abs_diff(of.len() as u64)));
        }
    }
    Ok(())
}
