//! Recognizes scales and zero points of activations and caches, which are dropped (`docs/spec/checkpoints.md §5.5`).
//!
//! A model's own parameters may have the same names. A tensor is dropped only if it accompanies a quantized weight or
//! is in an attention module, and has a usual shape.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use truecast_io::Tensor;

use super::claims::Claims;
use crate::declared;
use crate::detection::Dropped::{self, ActivationScale, CacheScale};

/// Last components of names, or the ends of these components after `_`. Each has the reason to drop the tensor.
const ENDS: [(&str, Dropped); 2] = [
    (
        "input_scale input_global_scale input_zero_point input_offset output_scale output_global_scale output_zero_point \
         activation_scale qscale_act scale_input act_quant_scale act_quant_zero_point act_per_tensor_scale quant_bias deq_scale",
        ActivationScale,
    ),
    (
        "q_scale k_scale v_scale kv_scale prob_scale q_zero_point k_zero_point v_zero_point kv_zero_point kv_cache_scale \
         kv_cache_offset",
        CacheScale,
    ),
];

const PROJECTIONS: [&str; 14] =
    ["q", "k", "v", "kv", "qkv", "qkvz", "query", "key", "value", "wq", "wk", "wv", "wkv", "wqkv"];

fn ends() -> impl Iterator<Item = (&'static str, Dropped)> {
    ENDS.into_iter().flat_map(|(all, reason)| all.split_whitespace().map(move |end| (end, reason)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A quantizer made the tensor.
    Dropped(Dropped),
    /// Only the name suggests a quantizer.
    Unclear,
    /// The name suggests no quantizer.
    Other,
}

/// Modules to which a quantizer's scales and zero points may belong.
pub(super) struct Owners {
    /// Number of matrices of each group, by the group's name and by its module.
    quantized: HashMap<String, u64>,
    /// Modules around quantized query, key or value layers. If caches are quantized, modules around any query, key or
    /// value layers, and these layers too.
    attention: HashSet<String>,
    /// Modules with a tensor whose last component is not in [`ENDS`].
    others: HashSet<String>,
    caches: Option<declared::Caches>,
}

impl Owners {
    pub(super) fn of(claims: &Claims<'_>) -> Owners {
        let caches = declared::caches(claims.index.checkpoint.documents);
        let mut owners =
            Owners { quantized: HashMap::new(), attention: HashSet::new(), others: HashSet::new(), caches };
        for group in &claims.groups {
            let matrices = group.shape.iter().rev().skip(2).product();
            owners.quantized.insert(group.name.to_string(), matrices);
            owners.quantized.insert(group.module.clone(), matrices);
            owners.add_projection(&group.module);
        }
        for number in 0..claims.index.len() {
            let (module, last) = split(&claims.index.tensor(number).name);
            if caches.is_some() && owners.add_projection(module) {
                owners.attention.insert(module.to_owned());
            }
            if !ends().any(|(end, _)| end == last) {
                owners.others.insert(module.to_owned());
            }
        }
        owners
    }

    /// Adds the module around a query, key or value layer as attention. Returns true for such a layer.
    fn add_projection(&mut self, module: &str) -> bool {
        let (parent, last) = split(module);
        let last = last.to_ascii_lowercase();
        let is_projection = last == "c_attn" || last.split('_').any(|word| PROJECTIONS.contains(&word));
        if is_projection {
            self.attention.insert(parent.to_owned());
        }
        is_projection
    }

    pub(super) fn is_quantized(&self, module: &str) -> bool {
        self.quantized.contains_key(module)
    }

    pub(super) fn verdict(&self, tensor: &Tensor) -> Verdict {
        // Some files have AMD Quark's names in memory: `q_proj.input_quantizer.scale` (§4.19).
        let name = tensor.name.replace("_quantizer.", "_");
        let (module, last) = split(&name);
        let elements: u64 = tensor.shape.iter().product();
        let (owner, reason) = match ends().find(|(end, _)| *end == last) {
            Some((_, reason)) => (self.quantized.get(module), reason),
            None => {
                let joined = |(end, reason)| Some((last.strip_suffix(end)?.strip_suffix('_')?, reason));
                let Some((front, reason)) = ends().find_map(joined) else { return Verdict::Other };
                let dot = if module.is_empty() { "" } else { "." };
                let names = [front, front.trim_start_matches('_')].map(|front| format!("{module}{dot}{front}"));
                let all = names.iter().flat_map(|name| [name.clone(), format!("{name}_weight")]);
                let Some(owner) = all.into_iter().find_map(|name| self.quantized.get(&name)) else {
                    return Verdict::Other;
                };
                (Some(owner), reason)
            }
        };
        let beside = owner.is_some_and(|matrices| [1, *matrices, 2 * *matrices].contains(&elements));
        let of_cache = reason == CacheScale
            && self.is_attention(module)
            && (elements == 1 || self.caches == Some(declared::Caches::Fine));
        if beside || of_cache { Verdict::Dropped(reason) } else { Verdict::Unclear }
    }

    /// True for an attention module, and for a module directly inside that has no tensors with other names.
    fn is_attention(&self, module: &str) -> bool {
        self.attention.contains(module) || !self.others.contains(module) && self.attention.contains(split(module).0)
    }
}

fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or(("", name))
}
