//! Finds a model's repeated blocks, which hold the layers to quantize, by names and ranks of tensors
//! (`docs/spec/checkpoints.md §11.3`).

use foldhash::{HashMap, HashMapExt, HashSet};
use truecast_io::Tensor;

use crate::layer::is_norm;
use crate::modules::{in_block, module_of};

#[derive(Default)]
struct Stack {
    /// Number of elements in matrices and fused experts. Convolutions do not count.
    elements: u64,
    norms: HashSet<u64>,
}

/// Without a table of tokens, the main stack has the lists with at least a tenth of the largest list's elements.
const LEAST_SHARE: u64 = 10;

/// Main stack of a model: the lists of blocks that read the model's table of tokens. Usually there is one list, or one
/// for an encoder and one for a decoder. If a model has no table of tokens, all large lists count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks<'a> {
    main: HashSet<&'a str>,
    /// True if the model has blocks, even in towers only.
    are_any: bool,
}

impl<'a> Blocks<'a> {
    /// Finds the main stack. `is_in_tower` marks tensors outside it, and `is_table` marks tables of tokens.
    pub(crate) fn find(
        tensors: impl Iterator<Item = &'a Tensor>,
        is_in_tower: impl Fn(&Tensor) -> bool,
        is_table: impl Fn(&Tensor) -> bool,
    ) -> Blocks<'a> {
        let mut stacks: HashMap<&str, Stack> = HashMap::new();
        let (mut tables, mut are_any) = (Vec::new(), false);
        for tensor in tensors {
            let module = module_of(&tensor.name);
            match in_block(module) {
                within if is_in_tower(tensor) => are_any |= within.is_some() && is_of_layers(tensor),
                Some((list, _)) => {
                    let stack = stacks.entry(list).or_default();
                    if is_of_layers(tensor) {
                        stack.elements = stack.elements.saturating_add(tensor.len());
                    }
                    stack
                        .norms
                        .extend(tensor.shape.first().filter(|_| tensor.shape.len() == 1 && is_norm(&tensor.name)));
                }
                None if is_table(tensor) => tables.push((module, tensor.shape.last().copied().unwrap_or(0))),
                None => {}
            }
        }
        // Blocks of norms and convolutions count as blocks too. Otherwise every module next to them would be
        // quantized.
        are_any |= stacks.values().any(|stack| !stack.norms.is_empty());
        stacks.retain(|_, stack| stack.elements > 0);
        // If a list has norms, lists without norms are not blocks, for example heads or embeddings.
        if stacks.values().any(|stack| !stack.norms.is_empty()) {
            stacks.retain(|_, stack| !stack.norms.is_empty());
        }
        let of_tables: HashSet<&str> =
            tables.iter().flat_map(|&(table, width)| nearest(table, width, &stacks)).collect();
        if !of_tables.is_empty() {
            return Blocks { main: of_tables, are_any: true };
        }
        let most = stacks.values().map(|stack| stack.elements).max().unwrap_or(0);
        stacks.retain(|_, stack| stack.elements >= most / LEAST_SHARE);
        Blocks { are_any: are_any || !stacks.is_empty(), main: stacks.into_keys().collect() }
    }

    /// True if a module is in the main stack, or if the model has no blocks.
    pub(crate) fn hold(&self, module: &str) -> bool {
        !self.are_any || in_block(module).is_some_and(|(list, _)| self.main.contains(list))
    }
}

/// True if a linear layer's weight or fused experts can have the shape.
fn is_of_layers(tensor: &Tensor) -> bool {
    let rank = tensor.shape.len();
    rank == 2 || rank == 3 && !tensor.name.ends_with(".weight")
}

/// Lists of blocks that read the table of tokens `table` with rows of `width` elements.
///
/// Takes the lists in the nearest module around the table that has lists, at the smallest depth. Lists with norms of
/// another width are left out, if some have norms of this width. An encoder's decoder, or a decoder's encoder, is
/// added.
fn nearest<'a>(table: &str, width: u64, stacks: &HashMap<&'a str, Stack>) -> Vec<&'a str> {
    let depth = |list: &str| list.split('.').count();
    let mut around = table;
    loop {
        around = around.rsplit_once('.').map_or("", |(outer, _)| outer);
        let is_within = |list: &str| {
            around.is_empty() || list.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let within = || stacks.keys().copied().filter(|list| is_within(list));
        if let Some(least) = within().map(depth).min() {
            let mut found: Vec<&str> = within().filter(|list| depth(list) == least).collect();
            let is_wide = |list: &&str| stacks[list].norms.contains(&width);
            if found.iter().any(is_wide) {
                found.retain(is_wide);
            }
            let other = |list: &&str| {
                let [from, to] = if list.contains("decoder") { ["decoder", "encoder"] } else { ["encoder", "decoder"] };
                list.replace(from, to)
            };
            let others = found.iter().map(other).filter_map(|list| stacks.get_key_value(list.as_str()));
            let others: Vec<&str> = others.map(|(list, _)| *list).collect();
            return [found, others].concat();
        }
        if around.is_empty() {
            return Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::{DType, Layout};

    fn tensor(name: &str, shape: &[u64]) -> Tensor {
        Tensor { name: name.into(), dtype: DType::Bf16, layout: Layout::Packed, shape: shape.into() }
    }

    /// A case is (published model, index of a module in the main stack, index of a module outside).
    #[test]
    fn the_main_stack_reads_the_table_of_tokens() {
        for (names, inside, outside) in [
            (&["model.embed_tokens", "model.layers.0.a", "model.sam_model.blocks.0.a"][..], 1, 2),
            (&["llm.model.embed_tokens", "llm.model.layers.0.a", "vpm.encoder.layers.0.a"], 1, 2),
            (&["transformer.embed", "transformer.encoder.layers.0.a", "transformer.v.x.layers.0.a"], 1, 2),
            (&["model.text.embed", "model.text.blocks.0.a", "model.region.blocks.0.a"], 1, 2),
            // An encoder next to the decoder belongs to the stack.
            (&["model.decoder.embed", "model.encoder.layers.0.a", "pooler"], 1, 2),
            (&["shared_embed", "encoder.block.0.a", "encoder.block.0.b.layers.0.c"], 2, 0),
            // Without a table all lists belong to the stack.
            (&["x", "double_blocks.0.a", "img_in"], 1, 2),
        ] {
            let weight = |name: &str| tensor(&format!("{name}.weight"), &[4, 4]);
            let decoder = weight("model.decoder.layers.0.a");
            let mut tensors: Vec<Tensor> = names.iter().map(|name| weight(name)).collect();
            tensors.extend(names[0].contains("decoder").then_some(decoder));
            let blocks = Blocks::find(tensors.iter(), |_| false, |tensor| tensor.name.contains("embed"));
            assert!(blocks.hold(names[inside]) && !blocks.hold(names[outside]), "{names:?}: {blocks:?}");
        }
    }

    /// Blocks of convolutions and norms are not a main stack, but modules next to them are outside of blocks.
    #[test]
    fn blocks_of_convolutions_are_blocks() {
        let tensors = [
            tensor("embed.weight", &[9, 8]),
            tensor("layers.0.conv.weight", &[8, 8, 1]),
            tensor("layers.0.norm.weight", &[8]),
            tensor("pooler.dense.weight", &[8, 8]),
        ];
        let blocks = Blocks::find(tensors.iter(), |_| false, |tensor| &*tensor.name == "embed.weight");
        assert!(!blocks.hold("pooler.dense") && !blocks.hold("layers.0.conv"), "{blocks:?}");
    }

    /// The list with norms of the table's width, or both lists if neither has such norms.
    #[test]
    fn the_main_stack_has_the_width_of_the_table() {
        for (width, is_main) in [(8, [true, false]), (6, [true, true])] {
            let tensors = [
                tensor("embed.weight", &[9, width]),
                tensor("layers.0.norm.weight", &[8]),
                tensor("layers.0.a.weight", &[8, 8]),
                tensor("blocks.0.norm.weight", &[4]),
                tensor("blocks.0.a.weight", &[4, 4]),
            ];
            let blocks = Blocks::find(tensors.iter(), |_| false, |tensor| &*tensor.name == "embed.weight");
            assert_eq!(["layers.0.a", "blocks.0.a"].map(|module| blocks.hold(module)), is_main, "{width}");
        }
    }
}
