//! Known limits of programs that load quantized checkpoints. `docs/loads.md` has the evidence.

use truecast_io::Tensor;

use crate::model::{LLAMA4, Model};
use crate::scheme::{Family, Scheme};
use Families::{DeclaredExcept, These};

#[derive(Clone, Copy, Debug)]
enum When {
    Always,
    /// Rows or columns are not a multiple of this number.
    Ragged(u64),
    Asymmetric,
    /// The scheme has zero points, and the model's type is listed.
    AsymmetricIn(&'static [&'static str]),
    /// Weight of experts that loaders keep in one tensor.
    Expert,
    /// Weight that loaders join with other weights in one layer, such as q, k and v, or gate and up.
    Fused,
    ModelTypes(&'static [&'static str]),
    /// The model is loaded by diffusers.
    Diffusers,
}

#[derive(Clone, Copy, Debug)]
enum Families {
    These(&'static [Family]),
    /// Every family that a configuration declares, except one.
    DeclaredExcept(Family),
}

/// A known limit of a loader.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    families: Families,
    when: When,
    /// Program and release.
    pub program: &'static str,
    /// Effect on the tensor.
    pub what: &'static str,
}

const TRANSFORMERS: &str = "transformers 5.24.0";
const VLLM: &str = "vLLM 0.33.0";
const DIFFUSERS: &str = "diffusers 0.42.1";
const PACKED: &[Family] = &[Family::CtPackQuantized, Family::CtNvfp4, Family::CtMxfp4, Family::CtMxfp6];

/// Model types whose code reads a layer's `weight`, which a packed layer lacks.
const TOUCH_WEIGHTS: &[&str] = &[
    "altclip_vision_model", "deformable_detr", "dinov3_vit", "falcon", "falcon_mamba", "gpt_bigcode", "mamba",
    "mamba2", "mt5", "recurrent_gemma", "rwkv", "t5", "umt5", "xlstm",
];

const TABLE: &[Limit] = &[
    Limit {
        families: These(&[Family::Fp8Block]),
        when: When::Ragged(128),
        program: TRANSFORMERS,
        what: "does not dequantize blocks of fewer than 128 rows or columns: it fails or gives wrong values",
    },
    Limit {
        families: These(&[Family::Fp8Block]),
        when: When::Ragged(128),
        program: VLLM,
        what: "does not load blocks of fewer than 128 rows or columns if it holds several weights in one layer",
    },
    Limit {
        families: These(&[Family::CtPackQuantized, Family::CtIntQuantized]),
        when: When::Asymmetric,
        program: TRANSFORMERS,
        what: "does not load zero points",
    },
    Limit {
        families: These(&[Family::CtIntQuantized, Family::CtMxfp8]),
        when: When::Expert,
        program: TRANSFORMERS,
        what: "does not load experts of this format",
    },
    Limit {
        families: These(&[Family::CtNvfp4]),
        when: When::Expert,
        program: TRANSFORMERS,
        what: "ignores the global scale of experts, so their values are wrong",
    },
    Limit {
        families: These(&[Family::Fp8Tensor]),
        when: When::Always,
        program: VLLM,
        what: "does not load fp8-tensor; it loads fp8-channel and ct:float-quantized,strategy=tensor",
    },
    Limit {
        families: These(&[Family::Mxfp8]),
        when: When::Always,
        program: VLLM,
        what: "does not load mxfp8; it loads modelopt:MXFP8 and ct:mxfp8-quantized",
    },
    Limit { families: These(&[Family::CtMxfp6]), when: When::Always, program: VLLM, what: "does not load MXFP6" },
    Limit {
        families: These(&[Family::ModelOptFp8PerChannel, Family::ModelOptFp8Blocks]),
        when: When::Expert,
        program: VLLM,
        what: "loads experts of ModelOpt's FP8 with one scale only",
    },
    Limit {
        families: These(&[Family::ModelOptFp8]),
        when: When::Fused,
        program: VLLM,
        what: "rounds weights that it holds in one layer, such as q, k and v, again, with the largest of their scales",
    },
    Limit {
        families: These(PACKED),
        when: When::ModelTypes(TOUCH_WEIGHTS),
        program: TRANSFORMERS,
        what: "does not load packed weights of this kind of model",
    },
    Limit {
        families: These(&[Family::Fp8Block, Family::CtFloatQuantized]),
        when: When::ModelTypes(&["dinov2", "dinov2_with_registers", "depth_anything", "depth_pro"]),
        program: TRANSFORMERS,
        what: "joins layers of this kind of model, but not their scales: it fails",
    },
    Limit {
        families: These(&[Family::Fp8Block]),
        when: When::ModelTypes(&["dbrx", "jetmoe", "nemo_speechlm"]),
        program: TRANSFORMERS,
        what: "asks the configuration of this kind of model for a key that it lacks: it fails",
    },
    Limit {
        families: These(&[Family::CtPackQuantized]),
        when: When::AsymmetricIn(LLAMA4),
        program: VLLM,
        what: "reorders the rows of q and k, but not their zero points, so their values are wrong",
    },
    Limit {
        families: These(&[Family::ModelOptFp8Blocks]),
        when: When::ModelTypes(LLAMA4),
        program: VLLM,
        what: "does not load the scales of q and k of this kind of model: it fails",
    },
    Limit {
        families: DeclaredExcept(Family::ModelOptFp8PerChannel),
        when: When::Diffusers,
        program: DIFFUSERS,
        what: "does not load this declaration; of modelopt:FP8_PER_CHANNEL_PER_TOKEN it loads single files",
    },
    Limit {
        families: These(&[Family::ModelOptFp8PerChannel]),
        when: When::Diffusers,
        program: DIFFUSERS,
        what: "loads it by from_single_file with BFLQuantizationConfig, not by from_pretrained",
    },
    Limit {
        families: These(&[Family::ComfyFp8E4M3, Family::ComfyFp8E5M2, Family::ComfyNvfp4, Family::ComfyMxfp8]),
        when: When::Diffusers,
        program: DIFFUSERS,
        what: "ignores the scales, so the values are wrong; ComfyUI loads single files",
    },
];

impl Families {
    fn contains(self, family: Family) -> bool {
        match self {
            These(families) => families.contains(&family),
            DeclaredExcept(except) => {
                // Markers in the tensors declare ComfyUI's schemes, and block types those of GGUF.
                let is_declared = !family.name().starts_with("comfy") && family != Family::Plain && !family.is_gguf();
                is_declared && family != except
            }
        }
    }
}

impl Limit {
    /// Returns the limits that apply to a weight of a model, quantized in a scheme.
    pub fn applicable(scheme: Scheme, weight: &Tensor, model: &Model<'_>) -> impl Iterator<Item = &'static Limit> {
        let splits_experts = model.splits_experts(scheme.family);
        let is_asymmetric = scheme.parameters.symmetric == Some(false);
        let is_one_of = |types: &[&str]| model.model_type().is_some_and(|of| types.contains(&of));
        TABLE.iter().filter(move |limit| {
            limit.families.contains(scheme.family)
                && match limit.when {
                    When::Always => true,
                    When::Ragged(block) => weight.shape.iter().rev().take(2).any(|size| !size.is_multiple_of(block)),
                    When::Asymmetric => is_asymmetric,
                    When::AsymmetricIn(types) => is_asymmetric && is_one_of(types),
                    When::Fused => weight.name.contains(".q_proj.") || weight.name.contains(".gate_proj."),
                    When::Expert => weight.name.contains(".experts.") && !splits_experts,
                    When::ModelTypes(types) => is_one_of(types),
                    // Its configurations state the class, and no type.
                    When::Diffusers => model.value("_class_name").is_some(),
                }
        })
    }
}
