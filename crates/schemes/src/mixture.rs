//! Mixtures of block types that llama.cpp names: which type each tensor of a model has
//! (`docs/spec/checkpoints.md §9.10`).
//!
//! [`ROWS`] has the types by roles, which names of tensors tell; [`KEPT`] has the tensors that stay as they are.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use truecast_core::scaled::BlockType;
use truecast_core::words;
use truecast_io::Tensor;
use truecast_io::gguf::Keys;

use BlockType::{IQ4_NL, IQ4_XS, MXFP4, NVFP4, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0};
use Mixture::{
    MostlyIq4Nl, MostlyIq4Xs, MostlyQ2K, MostlyQ2KS, MostlyQ3KL, MostlyQ3KM, MostlyQ3KS, MostlyQ4_0, MostlyQ4KM,
    MostlyQ4KS, MostlyQ5_0, MostlyQ5KM,
};
use Role::{AttentionK, AttentionOutput, AttentionV, FfnDown};
use When::{Falcon, FirstLayers, FirstTensors, MoreBits, OfEight, SharedHeads, Weighted};

/// Defines the mixtures from rows: name, type of most tensors, number in `general.file_type`.
macro_rules! mixtures {
    ($($mixture:ident = $name:literal, $base:ident, $file_type:literal;)*) => {
        words! {
            /// A mixture of block types. `S`, `M` and `L` mean a small, a medium and a large file.
            #[allow(missing_docs)] // Names as llama.cpp has them.
            pub enum Mixture { $($mixture = $name,)* }
        }

        const MIXTURES: [(BlockType, u32); Mixture::ALL.len()] = [$(($base, $file_type)),*];
    };
}

mixtures! {
    MostlyQ4_0 = "Q4_0", Q4_0, 2;
    MostlyQ4_1 = "Q4_1", Q4_1, 3;
    MostlyQ5_0 = "Q5_0", Q5_0, 8;
    MostlyQ5_1 = "Q5_1", Q5_1, 9;
    MostlyQ8_0 = "Q8_0", Q8_0, 7;
    MostlyQ2K = "Q2_K", Q2_K, 10;
    MostlyQ2KS = "Q2_K_S", Q2_K, 21;
    MostlyQ3KS = "Q3_K_S", Q3_K, 11;
    MostlyQ3KM = "Q3_K_M", Q3_K, 12;
    MostlyQ3KL = "Q3_K_L", Q3_K, 13;
    MostlyQ4KS = "Q4_K_S", Q4_K, 14;
    MostlyQ4KM = "Q4_K_M", Q4_K, 15;
    MostlyQ5KS = "Q5_K_S", Q5_K, 16;
    MostlyQ5KM = "Q5_K_M", Q5_K, 17;
    MostlyQ6K = "Q6_K", Q6_K, 18;
    MostlyIq4Nl = "IQ4_NL", IQ4_NL, 25;
    MostlyIq4Xs = "IQ4_XS", IQ4_XS, 30;
    Mxfp4Experts = "MXFP4_MOE", MXFP4, 38;
    MostlyNvfp4 = "NVFP4", NVFP4, 39;
}

/// Role of a tensor, by the first row whose text its name contains. The names of the first two are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Output,
    TokenTable,
    AttentionV,
    AttentionK,
    AttentionOutput,
    FfnUp,
    FfnGate,
    FfnDown,
    Other,
}

const ROLES: [(Role, &str); 8] = [
    (AttentionV, "attn_qkv.weight"),
    (AttentionV, "attn_kv_b.weight"),
    (AttentionV, "attn_v.weight"),
    (AttentionK, "attn_k.weight"),
    (AttentionOutput, "attn_output.weight"),
    (Role::FfnUp, "ffn_up"),
    (Role::FfnGate, "ffn_gate"),
    (FfnDown, "ffn_down"),
];

/// Condition of a row. The layer of a tensor is the number of those of its role before it; in a model of experts, the
/// number in its name.
#[derive(Clone, Copy, Debug)]
enum When {
    /// At least 4 heads share a key and value.
    SharedHeads,
    /// The layer is less than this.
    FirstTensors(u64),
    /// The layer is in the first of this many parts of the model.
    FirstLayers(u64),
    /// The layer is in the first or last eighth, or is every third between.
    MoreBits,
    /// The model has 8 experts.
    OfEight(bool),
    Falcon(bool),
    /// There is an importance matrix.
    Weighted(bool),
}

struct Row {
    role: Role,
    of: &'static [Mixture],
    /// All of these.
    when: &'static [When],
    to: BlockType,
}

const fn row(role: Role, of: &'static [Mixture], when: &'static [When], to: BlockType) -> Row {
    Row { role, of, when, to }
}

/// Types that differ from the type of most tensors. The first row that holds decides.
const ROWS: &[Row] = &[
    row(AttentionV, &[MostlyQ2K], &[SharedHeads], Q4_K),
    row(AttentionV, &[MostlyQ2K], &[], Q3_K),
    row(AttentionV, &[MostlyQ2KS], &[SharedHeads], Q4_K),
    row(AttentionV, &[MostlyQ3KM], &[FirstTensors(2)], Q5_K),
    row(AttentionV, &[MostlyQ3KM], &[], Q4_K),
    row(AttentionV, &[MostlyQ3KL], &[], Q5_K),
    row(AttentionV, &[MostlyIq4Nl, MostlyIq4Xs], &[SharedHeads], Q5_K),
    row(AttentionV, &[MostlyQ4KM, MostlyQ5KM], &[MoreBits], Q6_K),
    row(AttentionV, &[MostlyQ4KS], &[FirstTensors(4)], Q5_K),
    row(AttentionK, &Mixture::ALL, &[OfEight(true)], Q8_0),
    row(FfnDown, &[MostlyQ2K], &[], Q3_K),
    row(FfnDown, &[MostlyQ2KS], &[FirstLayers(8)], Q4_K),
    row(FfnDown, &[MostlyQ3KM], &[FirstLayers(16)], Q5_K),
    row(FfnDown, &[MostlyQ3KM], &[Falcon(false)], Q4_K),
    row(FfnDown, &[MostlyQ3KM], &[MoreBits], Q4_K),
    row(FfnDown, &[MostlyQ3KL], &[Falcon(true)], Q4_K),
    row(FfnDown, &[MostlyQ3KL], &[], Q5_K),
    row(FfnDown, &[MostlyQ4KM], &[Falcon(true), FirstLayers(16)], Q6_K),
    row(FfnDown, &[MostlyQ4KM], &[Falcon(true), MoreBits], Q5_K),
    row(FfnDown, &[MostlyQ4KM], &[Falcon(false), MoreBits], Q6_K),
    row(FfnDown, &[MostlyIq4Nl, MostlyIq4Xs], &[FirstLayers(8), Weighted(false)], Q5_K),
    row(FfnDown, &[MostlyQ4_0], &[FirstLayers(8), Weighted(true)], Q4_1),
    row(FfnDown, &[MostlyQ5_0], &[FirstLayers(8), Weighted(true)], Q5_1),
    row(FfnDown, &[MostlyQ5KM], &[MoreBits], Q6_K),
    row(FfnDown, &[MostlyQ4KS], &[Falcon(false), FirstLayers(8)], Q5_K),
    row(
        AttentionOutput,
        &[MostlyQ2K, MostlyQ3KS, MostlyQ3KM, MostlyIq4Nl, MostlyQ4KS, MostlyQ4KM, MostlyIq4Xs],
        &[Falcon(false), OfEight(true)],
        Q5_K,
    ),
    row(AttentionOutput, &[MostlyQ2K], &[Falcon(false), OfEight(false)], Q3_K),
    row(AttentionOutput, &[MostlyQ3KM], &[Falcon(false), OfEight(false)], Q4_K),
    row(AttentionOutput, &[MostlyQ3KL], &[Falcon(false), OfEight(false)], Q5_K),
    row(AttentionOutput, &[MostlyQ3KL], &[Falcon(true)], Q4_K),
];

/// Texts in names of matrices that stay as they are.
const KEPT: &[&str] = &[
    "_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj",
    "ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight", "time_mix_first.weight",
    "time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight", "time_mix_v0.weight", "time_mix_v1.weight",
    "time_mix_v2.weight", "time_mix_a0.weight", "time_mix_a1.weight", "time_mix_a2.weight", "time_mix_g1.weight",
    "time_mix_g2.weight", "time_mix_decay_w1.weight", "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight",
    "attn_rel_b.weight", ".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos", ".patch_embd",
    ".patch_merger", "a.rvq.codebook", "mm.a.code_embd",
];

/// Names of matrices that stay as they are.
const KEPT_WHOLE: [&str; 2] = ["position_embd.weight", "token_types.weight"];

const TOKENS: &str = "token_embd.weight";

/// Architectures and numbers of layers of what llama.cpp knows as a model of 70 billion weights.
const OF_70B: [(&str, u64); 6] =
    [("llama", 80), ("llama-embed", 80), ("deci", 80), ("olmo", 80), ("qwen2", 80), ("jais2", 68)];

/// Hyperparameters that decide types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hyperparameters {
    /// `general.architecture`.
    pub architecture: String,
    /// Number of layers; `None` if the file does not state it.
    pub layers: Option<u64>,
    /// Attention heads of the first layer.
    pub heads: u64,
    /// Heads of keys and values in the first layer.
    pub kv_heads: u64,
    /// Number of experts, 0 without.
    pub experts: u64,
    /// Whether there is an importance matrix.
    pub is_weighted: bool,
}

/// Form of a tensor in a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Kept,
    /// Rows of blocks.
    Blocks(BlockType),
    /// f16, because rows do not consist of whole blocks.
    Half,
}

impl Hyperparameters {
    /// Reads the keys of a GGUF file; there is no importance matrix.
    pub fn of(keys: &Keys) -> Hyperparameters {
        let architecture = keys.text("general.architecture").unwrap_or_default().to_owned();
        let number = |key: &str| keys.number(&format!("{architecture}.{key}"));
        let heads = number("attention.head_count").unwrap_or(0);
        Hyperparameters {
            layers: number("block_count"),
            heads,
            kv_heads: number("attention.head_count_kv").unwrap_or(heads),
            experts: number("expert_count").unwrap_or(0),
            is_weighted: false,
            architecture,
        }
    }

    fn is_70b(&self, layers: u64) -> bool {
        let is_it = OF_70B.contains(&(&*self.architecture, layers));
        is_it && (!self.architecture.starts_with("llama") || self.heads != self.kv_heads)
    }
}

impl Mixture {
    /// Type of most tensors.
    #[must_use]
    pub const fn base(self) -> BlockType {
        MIXTURES[self as usize].0
    }

    /// Number in `general.file_type`.
    #[must_use]
    pub const fn file_type(self) -> u32 {
        MIXTURES[self as usize].1
    }

    /// Mixture that the name of a block type means.
    #[must_use]
    pub fn of_block(block: BlockType) -> Option<Mixture> {
        match block {
            Q2_K => Some(MostlyQ2K),
            Q3_K => Some(MostlyQ3KM),
            Q4_K => Some(MostlyQ4KM),
            Q5_K => Some(MostlyQ5KM),
            block => Mixture::of_only(block),
        }
    }

    /// Mixture that comes closest to tensors of one block type.
    #[must_use]
    pub fn of_only(block: BlockType) -> Option<Mixture> {
        let of_block = Mixture::ALL.into_iter().filter(|mixture| mixture.base() == block);
        // A mixture `_S` has the fewest tensors of other types.
        of_block.min_by_key(|mixture| Reverse(mixture.name().ends_with("_S") && *mixture != MostlyQ2KS))
    }

    /// Whether a model has the names of tensors that llama.cpp gives.
    pub fn applies_to(tensors: &[Tensor]) -> bool {
        tensors.iter().any(|tensor| &*tensor.name == TOKENS)
    }

    /// Form of each tensor, by name. Shapes have the outermost dimension first.
    ///
    /// # Errors
    /// The tensor of a model of experts whose name states no layer.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, Layout, scaled::BlockType};
    /// use truecast_io::Tensor;
    /// use truecast_schemes::{Form, Hyperparameters, Mixture};
    /// let tensor = |name: &str, shape: &[u64]| Tensor {
    ///     name: name.into(), dtype: DType::F16, layout: Layout::Packed, shape: shape.into(),
    /// };
    /// let tensors = [
    ///     tensor("token_embd.weight", &[999, 512]),
    ///     tensor("blk.0.attn_v.weight", &[512, 512]),
    ///     tensor("blk.0.attn_q.weight", &[512, 96]),
    ///     tensor("blk.0.attn_norm.weight", &[512]),
    /// ];
    /// let about = Hyperparameters { layers: Some(1), heads: 8, kv_heads: 8, ..Hyperparameters::default() };
    /// let forms = Mixture::MostlyQ4KM.forms(&about, &tensors)?;
    /// let form = |name: &str| forms[name];
    /// assert_eq!(form("token_embd.weight"), Form::Blocks(BlockType::Q6_K)); // it is also the output
    /// assert_eq!(form("blk.0.attn_v.weight"), Form::Blocks(BlockType::Q6_K));
    /// assert_eq!(form("blk.0.attn_q.weight"), Form::Blocks(BlockType::Q5_0)); // instead of 256 columns
    /// assert_eq!(form("blk.0.attn_norm.weight"), Form::Kept);
    /// # Ok::<(), String>(())
    /// ```
    pub fn forms(self, about: &Hyperparameters, tensors: &[Tensor]) -> Result<HashMap<Arc<str>, Form>, String> {
        let mut ordered: Vec<&Tensor> = tensors.iter().collect();
        ordered.sort_by_key(|tensor| (layer_of(&tensor.name).map_or(0, |layer| layer + 1), &tensor.name));
        let of_role = |role: Role| ordered.iter().filter(|tensor| role_of(&tensor.name) == role).count() as u64;
        let last = ordered.iter().filter_map(|tensor| layer_of(&tensor.name)).max();
        let model = Counted {
            mixture: self,
            about,
            layers: about.layers.or(last.map(|last| last + 1)).unwrap_or(0),
            values: of_role(AttentionV),
            is_tied: of_role(Role::Output) == 0,
        };
        let (mut of_values, mut of_downs) = (0, 0);
        let mut forms = HashMap::new();
        for tensor in ordered {
            let form = if is_kept(tensor) {
                Form::Kept
            } else {
                let role = role_of(&tensor.name);
                let count = if role == AttentionV { &mut of_values } else { &mut of_downs };
                let block = model.block(tensor, role, *count)?;
                *count += u64::from([AttentionV, FfnDown].contains(&role));
                fitting(block, tensor.shape.last().copied().unwrap_or(0))
            };
            forms.insert(tensor.name.clone(), form);
        }
        Ok(forms)
    }
}

struct Counted<'a> {
    mixture: Mixture,
    about: &'a Hyperparameters,
    layers: u64,
    /// Number of tensors whose role is [`AttentionV`].
    values: u64,
    /// True if the table of tokens is also the output.
    is_tied: bool,
}

impl Counted<'_> {
    /// Type of a tensor; `before` tensors of its role come before it.
    fn block(&self, tensor: &Tensor, role: Role, before: u64) -> Result<BlockType, String> {
        let Counted { mixture, about, .. } = *self;
        let (base, is_falcon) = (mixture.base(), about.architecture == "falcon");
        let columns = tensor.shape.last().copied().unwrap_or(0);
        let is_ffn = [Role::FfnUp, Role::FfnGate, FfnDown].contains(&role);
        if role == Role::Output || self.is_tied && role == Role::TokenTable {
            let is_eight = mixture == Mixture::Mxfp4Experts || is_falcon || !columns.is_multiple_of(base.elements());
            return Ok(if is_eight || base == Q8_0 { Q8_0 } else { Q6_K });
        }
        if mixture == Mixture::Mxfp4Experts {
            let matrices = tensor.shape.iter().rev().nth(2).copied().unwrap_or(1);
            let is_expert = matrices > 1 && (about.architecture != "bailingmoe3" || is_ffn);
            return Ok(if is_expert { MXFP4 } else { Q8_0 });
        }
        let (layer, layers) = match role {
            AttentionV => (before, self.values),
            _ if !is_ffn => (0, self.layers),
            _ if about.experts > 1 => {
                let layer = layer_of(&tensor.name).filter(|layer| *layer < self.layers);
                (layer.ok_or_else(|| format!("tensor {} is in no layer of the model", tensor.name))?, self.layers)
            }
            _ => (before, self.layers),
        };
        let holds = |when: &When| match *when {
            SharedHeads => about.heads.checked_div(about.kv_heads).unwrap_or(0) >= 4,
            FirstTensors(n) => layer < n,
            FirstLayers(parts) => layer < layers / parts,
            MoreBits => {
                let eighth = layers / 8;
                layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
            }
            OfEight(is_so) => (about.experts == 8) == is_so,
            Falcon(is_so) => is_falcon == is_so,
            Weighted(is_so) => about.is_weighted == is_so,
        };
        let row = ROWS.iter().find(|row| row.role == role && row.of.contains(&mixture) && row.when.iter().all(holds));
        let block = row.map_or(base, |row| row.to);
        Ok(match (role, block) {
            (AttentionV, _) if about.experts == 8 => Q8_0,
            (AttentionV, Q3_K | Q4_K) if about.is_70b(self.layers) => Q5_K,
            _ => block,
        })
    }
}

/// Form of rows with `columns` elements: the type, or one with smaller blocks, or f16.
fn fitting(block: BlockType, columns: u64) -> Form {
    let smaller = match block {
        _ if columns.is_multiple_of(block.elements()) => return Form::Blocks(block),
        Q2_K | Q3_K => Q4_0,
        Q4_K => Q5_0,
        Q5_K => Q5_1,
        Q6_K => Q8_0,
        IQ4_XS => IQ4_NL,
        // Nothing is smaller. llama.cpp refuses the model; here the tensor is left, because it has no such target.
        _ => return Form::Blocks(block),
    };
    if columns.is_multiple_of(smaller.elements()) { Form::Blocks(smaller) } else { Form::Half }
}

fn is_kept(tensor: &Tensor) -> bool {
    let name = &*tensor.name;
    // Outer dimensions of 1 do not count.
    let rank = tensor.shape.iter().skip_while(|size| **size == 1).count();
    rank < 2 || !name.ends_with("weight") || KEPT_WHOLE.contains(&name) || KEPT.iter().any(|text| name.contains(text))
}

/// Whether a tensor is a table of tokens, which llama.cpp quantizes without importance if that has another size.
#[must_use]
pub fn is_token_table(name: &str) -> bool {
    role_of(name) == Role::TokenTable
}

fn role_of(name: &str) -> Role {
    match name {
        "output.weight" => Role::Output,
        TOKENS | "per_layer_token_embd.weight" => Role::TokenTable,
        _ => ROLES.iter().find(|(_, text)| name.contains(text)).map_or(Role::Other, |(role, _)| *role),
    }
}

/// Number of the layer in a name, as in `blk.3.attn_v.weight`.
fn layer_of(name: &str) -> Option<u64> {
    let (number, _) = name.strip_prefix("blk.")?.split_once('.')?;
    number.parse().ok()
}
