//! Layer of each tensor of a model, and whether a scheme quantizes the tensor (`docs/spec/checkpoints.md §11.3`).

use foldhash::{HashMap, HashMapExt};
use serde_json::Value;
use truecast_core::DType;
use truecast_io::Tensor;

use crate::blocks::Blocks;
use crate::layer::Layer;
use crate::modules::{in_block, module_of};
use crate::scheme::{COMPRESSED_TENSORS, Family};

/// Name components that mark a tensor of several experts, in the order of §11.3.
const EXPERTS: [&str; 3] = ["experts", "block_sparse_moe", "parallel_experts"];

/// Names of the layers of fused experts. The first layer has gate and up in one matrix, and the second is down.
const EXPERT_LAYERS: [(&str, &str); 4] =
    [("gate_up_proj", "down_proj"), ("input_linear", "output_linear"), ("fc1", "fc2"), ("w13", "w2")];

pub(crate) const LLAMA4: &[&str] = &["llama4", "llama4_text"];

/// Model types whose linear layers store one row per input, and the names of such layers.
const INPUT_ROWS: (&[&str], &[&str]) =
    (&["gpt2", "openai-gpt", "imagegpt", "decision_transformer"], &["c_attn", "q_attn", "c_proj", "c_fc"]);

/// Sections of `config.json` for the language model in a larger model.
const LANGUAGE_CONFIGS: [&str; 5] = ["text_config", "language_config", "llm_config", "thinker_config", "decoder"];

/// Tables of tokens that llama.cpp quantizes (§11.3).
const TOKENS: [&str; 5] = ["token_embd", "embed_tokens", "tok_embeddings", "word_embeddings", "wte"];

/// Words, joined by hyphens, that are names of main blocks in a model that generates images or sound, and of towers in
/// other models.
const GENERATED: &str = "vision-visual-image-audio-speech";

/// Words in names of matrices that llama.cpp does not quantize (§11.3).
const KEPT_IN_GGUF: [&str; 4] = ["altup", "laurel", "per_layer_model_proj", "attn_rel_b"];

/// A model's tensors by name, with its configuration.
#[derive(Clone, Debug)]
pub struct Model<'a> {
    pub(crate) tensors: HashMap<&'a str, &'a Tensor>,
    config: Option<&'a Value>,
    pub(crate) blocks: Blocks<'a>,
    /// True if more matrix elements have 16 bits than 32. A 32-bit matrix was then kept in f32 on purpose.
    has_half_precision: bool,
    /// True for a diffusion model, which generates images, video or sound: layers compute shift and scale from the time
    /// step, and there is no table of tokens.
    is_diffusion: bool,
}

impl<'a> Model<'a> {
    /// Builds a model from tensors with logical names and `config.json`.
    pub fn new(tensors: &'a [Tensor], config: Option<&'a Value>) -> Model<'a> {
        let mut by_name = HashMap::with_capacity(tensors.len());
        by_name.extend(tensors.iter().map(|tensor| (&*tensor.name, tensor)));
        let of_bits = |bits: u32| {
            let matrices = tensors.iter().filter(|tensor| tensor.shape.len() >= 2 && tensor.dtype.is_float());
            matrices
                .filter(|tensor| tensor.dtype.storage_bits() == Some(bits))
                .map(Tensor::len)
                .fold(0, u64::saturating_add)
        };
        let mut model = Model {
            tensors: by_name,
            config,
            blocks: Blocks::default(),
            has_half_precision: of_bits(16) > of_bits(32),
            is_diffusion: false,
        };
        let is_modulation = |tensor: &Tensor| model.by_name(tensor) == Some(Layer::Modulation);
        model.is_diffusion = tensors.iter().any(|tensor| tensor.shape.len() >= 2 && is_modulation(tensor))
            && !tensors.iter().any(|tensor| model.is_table_of_tokens(tensor));
        let is_in_tower = |tensor: &Tensor| model.by_name(tensor) == Some(Layer::Tower);
        model.blocks = Blocks::find(tensors.iter(), is_in_tower, |tensor| model.is_table_of_tokens(tensor));
        model
    }

    fn shape(&self, name: &str) -> Option<&'a [u64]> {
        self.tensors.get(name).map(|tensor| &*tensor.shape)
    }

    /// True for a diffusion model. It generates images, video or sound.
    pub fn is_diffusion(&self) -> bool {
        self.is_diffusion
    }

    /// Layer that the table finds by name and rank, for this model's type.
    pub(crate) fn by_name(&self, tensor: &Tensor) -> Option<Layer> {
        if self.is_diffusion {
            return Layer::by_name_in(&tensor.name, tensor.shape.len(), GENERATED);
        }
        let is_of_several =
            self.config.is_some_and(|config| LANGUAGE_CONFIGS.iter().any(|key| config.get(key).is_some()));
        let model_type = self.model_type().filter(|_| !is_of_several).unwrap_or_default();
        Layer::by_name_in(&tensor.name, tensor.shape.len(), model_type)
    }

    /// True for a matrix that has one row per token. Its name decides, or the size of the vocabulary.
    fn is_table_of_tokens(&self, tensor: &Tensor) -> bool {
        let [rows, _] = *tensor.shape else { return false };
        let last = module_of(&tensor.name).rsplit('.').next().unwrap_or_default();
        let vocabulary = self.value("vocab_size").and_then(Value::as_u64);
        match self.by_name(tensor) {
            Some(Layer::Embedding) => TOKENS.contains(&last) || Some(rows) == vocabulary || last == "shared",
            Some(_) => false,
            None => Some(rows) == vocabulary,
        }
    }

    /// Value of the configuration, or else of the configuration's section for the language model. `null` counts as
    /// missing.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        let config = self.config?;
        let own = |config: &'a Value| config.get(key).filter(|value| !value.is_null());
        own(config).or_else(|| LANGUAGE_CONFIGS.iter().find_map(|part| own(config.get(part)?)))
    }

    /// The configuration's `model_type`.
    pub fn model_type(&self) -> Option<&'a str> {
        self.config?.get("model_type")?.as_str()
    }

    /// Type in which a loader holds unquantized tensors: the configuration's `dtype` or `torch_dtype`, if a float of
    /// 16 or 32 bits.
    pub fn dtype(&self) -> Option<DType> {
        let text = self.value("dtype").or_else(|| self.value("torch_dtype"))?.as_str()?;
        match text.strip_prefix("torch.").unwrap_or(text) {
            "bfloat16" => Some(DType::Bf16),
            "float16" | "half" => Some(DType::F16),
            "float32" | "float" => Some(DType::F32),
            _ => None,
        }
    }

    /// Layer of a tensor. The name decides, or else the neighbors, rank and type.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, Layout};
    /// use truecast_io::Tensor;
    /// use truecast_schemes::{Model, Layer};
    /// let tensor = |name: &str, shape: &[u64]| Tensor {
    ///     name: name.into(), dtype: DType::Bf16, layout: Layout::Packed, shape: shape.into(),
    /// };
    /// let tensors = [tensor("h.0.mlp.c_fc.weight", &[8, 32]), tensor("h.0.mlp.c_fc.bias", &[32]), tensor("h.0.x.weight", &[8, 8])];
    /// let model = Model::new(&tensors, None);
    /// assert_eq!(model.layer(&tensors[0]), Layer::InputRows); // the bias has an element for each column
    /// assert_eq!(model.layer(&tensors[2]), Layer::Linear);
    /// ```
    pub fn layer(&self, tensor: &Tensor) -> Layer {
        let module = module_of(&tensor.name);
        let by_name = self.by_name(tensor).filter(|layer| *layer != Layer::Router || !self.is_beside_up(tensor));
        let layer = by_name.unwrap_or_else(|| match self.by_neighbors(tensor) {
            Layer::Linear | Layer::Experts | Layer::InputRows if !self.blocks.hold(module) => Layer::OutsideBlocks,
            layer => layer,
        });
        let is_weight = tensor.shape.len() >= 2 && module.len() < tensor.name.len();
        match layer {
            Layer::Embedding | Layer::Head | Layer::OutsideBlocks
                if self.is_diffusion && is_weight && in_block(module).is_none() =>
            {
                Layer::InputOutput
            }
            layer => layer,
        }
    }

    /// True for the gate of a gated MLP. It has the shape of `up`; a router has another shape.
    fn is_beside_up(&self, tensor: &Tensor) -> bool {
        let up = tensor.name.strip_suffix("gate.weight").and_then(|around| self.shape(&format!("{around}up.weight")));
        up == Some(&tensor.shape)
    }

    /// Layer of a tensor whose name does not decide. Neighbors, rank and type decide.
    fn by_neighbors(&self, tensor: &Tensor) -> Layer {
        let (name, rank) = (&*tensor.name, tensor.shape.len());
        let module = module_of(name);
        let (around, last) = module.rsplit_once('.').unwrap_or(("", module));
        let is_expert = |part: &str| EXPERTS.contains(&part) || part.ends_with("_exps");
        if rank == 3 && module.split('.').any(is_expert) {
            return Layer::Experts;
        }
        let is_weight = rank == 2 && (module.len() < name.len());
        if !is_weight {
            return Layer::Unknown;
        }
        let is_packed_attention = self.shape(&format!("{around}.in_proj_weight")).is_some();
        let is_type = |types: &[&str]| self.model_type().is_some_and(|model_type| types.contains(&model_type));
        let is_stored_in_f32 = self.tensors.get(name).is_some_and(|stored| stored.dtype == DType::F32);
        // I-BERT simulates quantization and stores an integer copy of each weight. Loaders keep such layers
        // unquantized.
        let integers = self.shape(&format!("{name}_integer"));
        let is_imitation = integers.is_some() && integers == self.shape(name);
        if is_packed_attention
            || is_imitation
            || self.has_half_precision && is_stored_in_f32
            || is_type(&["switch_transformers"]) && last == "wo"
        {
            return Layer::HighPrecision;
        }
        let is_named = INPUT_ROWS.1.contains(&last);
        let has_input_rows = match (self.shape(&format!("{module}.bias")), &*tensor.shape) {
            (Some([of_bias]), [rows, columns]) => of_bias == columns && of_bias != rows,
            _ => false,
        };
        if is_named && (is_type(INPUT_ROWS.0) || has_input_rows) { Layer::InputRows } else { Layer::Linear }
    }

    /// True if `--scheme` with a scheme of this family quantizes the tensor by default.
    pub fn is_quantized(&self, tensor: &Tensor, layer: Layer, family: Family) -> bool {
        let is_gguf = family.is_gguf();
        match layer {
            _ if is_gguf && KEPT_IN_GGUF.iter().any(|word| tensor.name.contains(word)) => false,
            Layer::Linear => family != Family::GptOss,
            Layer::Experts if is_gguf || self.splits_experts(family) => true,
            // Loaders of fused experts expect parameters `gate_up_proj` and `down_proj` without `.weight`.
            Layer::Experts if tensor.name.ends_with(".weight") => false,
            // Loaders of compressed-tensors support linear layers only. Only gpt-oss has a form for experts with one
            // row per input.
            Layer::Experts => {
                if self.has_input_rows(tensor) {
                    family == Family::GptOss
                } else {
                    family.used_by() != COMPRESSED_TENSORS && ![Family::Fp8Tensor, Family::GptOss].contains(&family)
                }
            }
            Layer::Head => is_gguf,
            Layer::Embedding => {
                let last = module_of(&tensor.name).rsplit('.').next().unwrap_or_default();
                is_gguf && tensor.shape.len() == 2 && TOKENS.contains(&last)
            }
            _ => false,
        }
    }

    /// True if loaders of the family expect separate layers for this model type's fused experts.
    pub fn splits_experts(&self, family: Family) -> bool {
        let is_split = |model_type| LLAMA4.contains(&model_type);
        family.used_by() == COMPRESSED_TENSORS && self.model_type().is_some_and(is_split)
    }

    /// True if the matrices of an [`Layer::Experts`] tensor have one row per input, instead of per output.
    ///
    /// Compares the sizes of the experts' two layers, or a size with the model's `hidden_size`.
    pub fn has_input_rows(&self, tensor: &Tensor) -> bool {
        let [_, rows, columns] = *tensor.shape else { return false };
        let beside = |from: &str, to: &str| {
            if tensor.name.contains(from) { self.shape(&tensor.name.replace(from, to)) } else { None }
        };
        let by_sizes =
            EXPERT_LAYERS.iter().find_map(|&(first, second)| match (beside(first, second), beside(second, first)) {
                // Shapes of the two layers (gate and up, down): [2 N, K] and [K, N], or [K, 2 N] and [N, K].
                (Some([_, of_rows, of_columns]), _) => Some(rows == *of_columns && columns == 2 * of_rows),
                (_, Some([_, of_rows, of_columns])) => Some(columns == *of_rows && *of_columns == 2 * rows),
                _ => None,
            });
        by_sizes.unwrap_or_else(|| {
            let width = self.value("hidden_size").and_then(Value::as_u64);
            let is_down = EXPERT_LAYERS.iter().any(|(_, second)| tensor.name.contains(second));
            rows != columns && width == Some(if is_down { columns } else { rows })
        })
    }
}
