//! Names of schemes for `--from-scheme` and `--scheme` (`docs/spec/checkpoints.md §5.6`).
//!
//! A name has a family and parameters, `ct:pack-quantized,bits=4,group=32`. [`crate::catalogue`] has the tensors of
//! each scheme, and reads them.

mod parameters;

use std::fmt;
use std::str::FromStr;

use truecast_core::DType;
use truecast_core::scaled::{BlockType, Layout};
use truecast_core::spelling::alternatives;

pub use parameters::{Parameter, Parameters, ScaleType, Strategy};

/// A family of schemes; each format within a scheme is its own family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs)] // The variants are the names of the table below.
pub enum Family {
    Plain,
    Fp8Block,
    Fp8Tensor,
    Fp8Channel,
    DeepSeekV4,
    GptOss,
    CtFloatQuantized,
    CtNaiveQuantized,
    CtIntQuantized,
    CtPackQuantized,
    CtNvfp4,
    CtMxfp4,
    CtMxfp6,
    CtMxfp8,
    ModelOptFp8,
    ModelOptFp8PerChannel,
    ModelOptFp8Blocks,
    ModelOptNvfp4,
    ModelOptNvfp4Weights,
    ModelOptNvfp4Awq,
    ModelOptNvfp4Svd,
    ModelOptNvfp4Fp8,
    ModelOptMxfp8,
    ModelOptMxfp4,
    ModelOptAwq,
    ModelOptInt8,
    ComfyScaledFp8,
    ComfyFp8E4M3,
    ComfyFp8E5M2,
    ComfyFp8Rows,
    ComfyFp8Blocks,
    ComfyNvfp4,
    ComfyMxfp8,
    ComfyInt8,
    ComfyInt8Blocks,
    Torchao,
    Mxfp8,
    Awq,
    Gptq,
    GptqV2,
    BitNet,
    MlxAffine,
    MlxMxfp4,
    MlxNvfp4,
    MlxMxfp8,
    MistralFp8,
    FbgemmFp8,
    BnbNf4,
    BnbFp4,
    BnbInt8,
    ModelSlim,
    QuarkFp4,
    QuarkFp6E2M3,
    QuarkFp6E3M2,
    QuarkFp8,
    QuarkInt4,
    QuarkInt4Order,
    QuarkUint4,
    QuarkUint4Order,
    QuarkInt8,
    /// Rows of these blocks in a GGUF file (§9).
    Gguf(BlockType),
}

/// Support for writing a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writing {
    /// Read-only.
    Never,
    /// From dense tensors, and by relayout.
    Yes,
    /// From tensors with equal values in another packing.
    Relayout,
    /// From any tensors, into a GGUF file.
    Gguf,
}

/// Common name of a scheme's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The variants are the names.
pub enum Kind {
    Fp8,
    Int8,
    Int4,
    Mx,
    Nvfp4,
    Gguf,
    Other,
}

impl Kind {
    /// Every kind, in the order of lists.
    pub const ALL: [Kind; 7] = [Kind::Fp8, Kind::Mx, Kind::Nvfp4, Kind::Int8, Kind::Int4, Kind::Gguf, Kind::Other];

    /// Name in lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Fp8 => "fp8",
            Kind::Int8 => "int8",
            Kind::Int4 => "int4 and other widths",
            Kind::Mx => "MX (mxfp4, mxfp6, mxfp8)",
            Kind::Nvfp4 => "NVFP4",
            Kind::Gguf => "GGUF",
            Kind::Other => "other",
        }
    }
}

struct Row {
    family: Family,
    name: &'static str,
    parameters: &'static [Parameter],
    writing: Writing,
    kind: Kind,
    /// Codes, and elements per scale; empty for blocks of GGUF files, which describe themselves.
    stored: &'static str,
}

const fn gguf(name: &'static str, block: BlockType, writing: Writing) -> Row {
    Row { family: Family::Gguf(block), name, parameters: &[], writing, kind: Kind::Gguf, stored: "" }
}

use Kind::{Fp8, Int4, Int8, Mx, Nvfp4, Other};
use Parameter::{Bits, Block, Group, Scale, Strategy as By, Symmetric};
use Writing::{Never, Relayout, Yes};

/// Every family: name, parameters, support for writing, kind, and stored form.
const TABLE: &[Row] = &[
    row("plain", Family::Plain, &[], Yes, Other, "values as they are"),
    row("fp8-block", Family::Fp8Block, &[Block, Scale], Yes, Fp8, "e4m3, block 128x128"),
    row("fp8-tensor", Family::Fp8Tensor, &[], Yes, Fp8, "e4m3, tensor"),
    row("fp8-channel", Family::Fp8Channel, &[Scale], Yes, Fp8, "e4m3, row"),
    row("deepseek-v4", Family::DeepSeekV4, &[Block], Never, Fp8, "e4m3, block; e2m1, 32"),
    row("gpt-oss", Family::GptOss, &[], Yes, Mx, "e2m1, 32"),
    row("ct:float-quantized", Family::CtFloatQuantized, &[By, Block, Group, Scale], Yes, Fp8, "e4m3, by strategy"),
    row("ct:naive-quantized", Family::CtNaiveQuantized, &[By, Block, Group], Never, Fp8, "8 bits, by strategy"),
    row(
        "ct:int-quantized",
        Family::CtIntQuantized,
        &[By, Block, Group, Symmetric, Scale],
        Yes,
        Int8,
        "8 bits, by strategy",
    ),
    row(
        "ct:pack-quantized",
        Family::CtPackQuantized,
        &[Bits, By, Group, Symmetric, Scale],
        Yes,
        Int4,
        "4, 8 bits, group, row",
    ),
    row("ct:nvfp4-pack-quantized", Family::CtNvfp4, &[], Yes, Nvfp4, "e2m1, 16"),
    row("ct:mxfp4-pack-quantized", Family::CtMxfp4, &[], Yes, Mx, "e2m1, 32"),
    row("ct:mxfp6-pack-quantized", Family::CtMxfp6, &[], Yes, Mx, "6 bits, 32"),
    row("ct:mxfp8-quantized", Family::CtMxfp8, &[], Yes, Mx, "e4m3, 32"),
    row("modelopt:FP8", Family::ModelOptFp8, &[], Yes, Fp8, "e4m3, tensor"),
    row("modelopt:FP8_PER_CHANNEL_PER_TOKEN", Family::ModelOptFp8PerChannel, &[], Yes, Fp8, "e4m3, row"),
    row("modelopt:FP8_PB_WO", Family::ModelOptFp8Blocks, &[Block], Yes, Fp8, "e4m3, block 128x128"),
    row("modelopt:NVFP4", Family::ModelOptNvfp4, &[], Yes, Nvfp4, "e2m1, 16"),
    row("modelopt:W4A16_NVFP4", Family::ModelOptNvfp4Weights, &[], Yes, Nvfp4, "e2m1, 16"),
    row("modelopt:NVFP4_AWQ", Family::ModelOptNvfp4Awq, &[], Never, Nvfp4, "e2m1, 16"),
    row("modelopt:NVFP4_SVD", Family::ModelOptNvfp4Svd, &[], Never, Nvfp4, "e2m1, 16"),
    row("modelopt:W4A8_NVFP4_FP8", Family::ModelOptNvfp4Fp8, &[], Never, Nvfp4, "e2m1, 16"),
    row("modelopt:MXFP8", Family::ModelOptMxfp8, &[], Yes, Mx, "e4m3, 32"),
    row("modelopt:MXFP4", Family::ModelOptMxfp4, &[], Never, Mx, "e2m1, 32"),
    row("modelopt:W4A16_AWQ", Family::ModelOptAwq, &[Group], Never, Int4, "4 bits, group"),
    row("modelopt:W8A16", Family::ModelOptInt8, &[], Never, Int8, "8 bits, row"),
    row("comfy-scaled-fp8", Family::ComfyScaledFp8, &[], Never, Fp8, "e4m3 or e5m2, tensor"),
    row("comfy:float8_e4m3fn", Family::ComfyFp8E4M3, &[], Yes, Fp8, "e4m3, tensor"),
    row("comfy:float8_e5m2", Family::ComfyFp8E5M2, &[], Yes, Fp8, "e5m2, tensor"),
    row("comfy:float8_e4m3fn_rowwise", Family::ComfyFp8Rows, &[], Never, Fp8, "e4m3, row"),
    row("comfy:float8_e4m3fn_blockwise", Family::ComfyFp8Blocks, &[Group], Never, Fp8, "e4m3, group"),
    row("comfy:nvfp4", Family::ComfyNvfp4, &[], Yes, Nvfp4, "e2m1, 16"),
    row("comfy:mxfp8", Family::ComfyMxfp8, &[], Yes, Mx, "e4m3, 32"),
    row("comfy:int8_tensorwise", Family::ComfyInt8, &[], Never, Int8, "8 bits, tensor"),
    row("comfy:int8_blockwise", Family::ComfyInt8Blocks, &[Group], Never, Int8, "8 bits, group"),
    row("torchao", Family::Torchao, &[], Never, Other, "fp8, int8, MX, NVFP4"),
    row("mxfp8", Family::Mxfp8, &[], Yes, Mx, "e4m3, 32"),
    row("awq", Family::Awq, &[Group], Never, Int4, "4 bits, group"),
    row("gptq", Family::Gptq, &[Bits, Group], Never, Int4, "2 to 8 bits, group"),
    row("gptq_v2", Family::GptqV2, &[Bits, Group], Never, Int4, "2 to 8 bits, group"),
    row("bitnet", Family::BitNet, &[], Never, Other, "2 bits, tensor"),
    row("mlx:affine", Family::MlxAffine, &[Bits, Group], Never, Int4, "2 to 8 bits, group"),
    row("mlx:mxfp4", Family::MlxMxfp4, &[], Relayout, Mx, "e2m1, 32"),
    row("mlx:nvfp4", Family::MlxNvfp4, &[], Never, Nvfp4, "e2m1, 16"),
    row("mlx:mxfp8", Family::MlxMxfp8, &[], Relayout, Mx, "e4m3, 32"),
    row("mistral-fp8", Family::MistralFp8, &[Block], Never, Fp8, "e4m3, tensor or block"),
    row("fbgemm-fp8", Family::FbgemmFp8, &[], Never, Fp8, "e4m3, row"),
    row("bnb:nf4", Family::BnbNf4, &[], Never, Int4, "nf4, 64"),
    row("bnb:fp4", Family::BnbFp4, &[], Never, Int4, "fp4, 64"),
    row("bnb:int8", Family::BnbInt8, &[], Never, Int8, "8 bits, row"),
    row("modelslim", Family::ModelSlim, &[Group], Never, Int8, "8 bits, row, group"),
    row("quark:fp4", Family::QuarkFp4, &[], Never, Mx, "e2m1, 32"),
    row("quark:fp6_e2m3", Family::QuarkFp6E2M3, &[], Never, Mx, "e2m3, 32"),
    row("quark:fp6_e3m2", Family::QuarkFp6E3M2, &[], Never, Mx, "e3m2, 32"),
    row("quark:fp8_e4m3", Family::QuarkFp8, &[By, Block, Group], Never, Fp8, "e4m3, by strategy"),
    row("quark:int4", Family::QuarkInt4, &[By, Group], Never, Int4, "4 bits, group, row"),
    row("quark:int4-order", Family::QuarkInt4Order, &[By, Group], Never, Int4, "4 bits, group, row"),
    row("quark:uint4", Family::QuarkUint4, &[By, Group], Never, Int4, "4 bits, group, row"),
    row("quark:uint4-order", Family::QuarkUint4Order, &[By, Group], Never, Int4, "4 bits, group, row"),
    row("quark:int8", Family::QuarkInt8, &[By, Group], Never, Int8, "8 bits, by strategy"),
    gguf("gguf:Q4_0", BlockType::Q4_0, Writing::Never),
    gguf("gguf:Q4_1", BlockType::Q4_1, Writing::Never),
    gguf("gguf:Q5_0", BlockType::Q5_0, Writing::Never),
    gguf("gguf:Q5_1", BlockType::Q5_1, Writing::Never),
    gguf("gguf:Q8_0", BlockType::Q8_0, Writing::Gguf),
    gguf("gguf:Q2_K", BlockType::Q2_K, Writing::Never),
    gguf("gguf:Q3_K", BlockType::Q3_K, Writing::Never),
    gguf("gguf:Q4_K", BlockType::Q4_K, Writing::Never),
    gguf("gguf:Q5_K", BlockType::Q5_K, Writing::Never),
    gguf("gguf:Q6_K", BlockType::Q6_K, Writing::Never),
    gguf("gguf:MXFP4", BlockType::Mxfp4, Writing::Gguf),
    gguf("gguf:NVFP4", BlockType::Nvfp4, Writing::Never),
];

/// Other spellings of a family: ModelOpt's names for the same tensors (`docs/spec/checkpoints.md §4.5`).
const ALIASES: &[(&str, Family)] =
    &[("modelopt:W4A8_MXFP4_FP8", Family::ModelOptMxfp4), ("modelopt:W8A8_SQ_PER_CHANNEL", Family::ModelOptInt8)];

impl Family {
    /// Every family, in the order of `docs/spec/checkpoints.md §4`; blocks of GGUF files last.
    pub fn all() -> impl Iterator<Item = Family> {
        rows().map(|row| row.family)
    }

    fn row(self) -> &'static Row {
        rows().find(|row| row.family == self).expect("every family has a row")
    }

    /// The name, without parameters.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// True for ModelOpt's NVFP4, with any activations.
    pub(crate) fn is_modelopt_nvfp4(self) -> bool {
        use Family::{ModelOptNvfp4, ModelOptNvfp4Awq, ModelOptNvfp4Fp8, ModelOptNvfp4Svd, ModelOptNvfp4Weights};
        [ModelOptNvfp4, ModelOptNvfp4Weights, ModelOptNvfp4Awq, ModelOptNvfp4Svd, ModelOptNvfp4Fp8].contains(&self)
    }

    /// True if tensors, not a configuration, declare the scheme.
    pub(crate) fn is_told_by_tensors(self) -> bool {
        [Family::Torchao, Family::BnbNf4, Family::BnbFp4].contains(&self)
    }

    /// Support for writing.
    pub fn writing(self) -> Writing {
        self.row().writing
    }

    /// Parameters that may follow its name.
    pub fn parameters(self) -> &'static [Parameter] {
        self.row().parameters
    }

    /// Kind of its format.
    pub fn kind(self) -> Kind {
        self.row().kind
    }

    /// Codes, and elements per scale or the scaled part of a tensor: `e4m3, block 128x128`.
    ///
    /// # Examples
    /// ```
    /// let scheme: truecast_schemes::Scheme = "gguf:Q8_0".parse()?;
    /// assert_eq!(scheme.family.stored(), "8.5 bits, 32");
    /// # Ok::<(), truecast_schemes::SchemeError>(())
    /// ```
    pub fn stored(self) -> String {
        match self {
            Family::Gguf(block) => {
                let bits = block.bytes() as f64 * 8.0 / block.elements() as f64;
                format!("{bits} bits, {}", block.group())
            }
            _ => self.row().stored.into(),
        }
    }

    /// The package that writes it, or the models published in it.
    pub fn used_by(self) -> &'static str {
        let package = self.name().split(':').next().unwrap_or_default();
        match package {
            "plain" => "",
            "ct" | "fp8-channel" => "compressed-tensors",
            "modelopt" => "ModelOpt",
            "comfy" | "comfy-scaled-fp8" => "ComfyUI",
            "mlx" => "MLX",
            "gguf" => "llama.cpp",
            "mistral-fp8" => "Mistral",
            "fp8-block" | "fp8-tensor" => "DeepSeek, Qwen",
            "deepseek-v4" => "DeepSeek V4",
            "fbgemm-fp8" => "FBGEMM",
            "awq" => "AutoAWQ",
            "gptq" | "gptq_v2" => "GPTQ",
            "bitnet" => "BitNet",
            "bnb" => "bitsandbytes",
            "modelslim" => "ModelSlim",
            "quark" => "AMD Quark",
            "mxfp8" => "miles, MiniMax",
            other => other,
        }
    }

    /// Family by name without parameters; ModelOpt's algorithms and blocks of GGUF files in any case.
    pub(crate) fn of_name(name: &str) -> Option<Family> {
        let is_named = |known: &str| match known.starts_with("modelopt:") || known.starts_with("gguf:") {
            true => known.eq_ignore_ascii_case(name),
            false => known == name,
        };
        let aliases = ALIASES.iter().copied();
        rows().map(|row| (row.name, row.family)).chain(aliases).find(|(known, _)| is_named(known)).map(|(_, f)| f)
    }
}

/// A scheme: a family with parameters.
///
/// # Examples
/// ```
/// use truecast_schemes::{Family, Scheme};
/// let scheme: Scheme = "ct:pack-quantized,bits=4,group=32".parse()?;
/// assert_eq!((scheme.family, scheme.parameters.bits, scheme.parameters.group), (Family::CtPackQuantized, Some(4), Some(32)));
/// assert_eq!(scheme.to_string(), "ct:pack-quantized,bits=4,group=32");
/// assert_eq!("fp8-block:64x128".parse::<Scheme>()?.parameters.block, Some([64, 128]));
/// assert!("awq,bits=4".parse::<Scheme>().is_err()); // AWQ has no other width
/// # Ok::<(), truecast_schemes::SchemeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scheme {
    /// Its family.
    pub family: Family,
    /// Its parameters; `None` if unspecified.
    pub parameters: Parameters,
}

impl Default for Scheme {
    fn default() -> Scheme {
        Scheme::PLAIN
    }
}

/// Error of an invalid scheme name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum SchemeError {
    /// Unknown family.
    #[error("unknown scheme {name:?}")]
    Unknown { name: String },
    /// A name for several schemes.
    #[error("{name} is not one scheme: {}", alternatives(choices))]
    Ambiguous { name: String, choices: &'static [&'static str] },
    /// A parameter that the family lacks.
    #[error("scheme {family} has no parameter {name:?}{}", listed(known))]
    NoParameter { family: &'static str, name: String, known: &'static [Parameter] },
    /// A value that the parameter cannot have.
    #[error("scheme {family}: {name}={value:?}, expected {expected}")]
    Value { family: &'static str, name: &'static str, value: String, expected: &'static str },
    /// A repeated parameter.
    #[error("scheme {family}: {name} is given twice")]
    Twice { family: &'static str, name: &'static str },
}

fn listed(parameters: &[Parameter]) -> String {
    match parameters {
        [] => "; it has none".to_owned(),
        _ => format!("; it has {}", parameters.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ")),
    }
}

impl Scheme {
    /// The family without parameters.
    pub const fn of(family: Family) -> Scheme {
        Scheme { family, parameters: Parameters::NONE }
    }

    /// The scheme of unquantized tensors.
    pub const PLAIN: Scheme = Scheme::of(Family::Plain);

    /// Fills open parameters from a stored tensor.
    pub(crate) fn as_stored(self, layout: &Layout) -> Scheme {
        let found = Parameters::of_layout(layout);
        let mut parameters = self.parameters;
        let is_open = |parameters: Parameters| {
            parameters.strategy.is_none() && parameters.block.is_none() && parameters.group.is_none()
        };
        let blocks_are_open = is_open(self.parameters);
        for parameter in self.family.row().parameters {
            match parameter {
                Bits => parameters.bits = parameters.bits.or(found.bits),
                Symmetric => parameters.symmetric = parameters.symmetric.or(found.symmetric),
                Scale => parameters.scale = parameters.scale.or(found.scale),
                By if blocks_are_open => parameters.strategy = found.strategy,
                Block if blocks_are_open => parameters.block = found.block,
                Group if blocks_are_open => parameters.group = found.group,
                _ => {}
            }
        }
        Scheme { parameters, ..self }
    }

    /// The same package's scheme that quantizes activations at run time only.
    pub fn weights_only(self) -> Option<Scheme> {
        match self.family {
            Family::ModelOptFp8 => Some(Scheme::of(Family::ModelOptFp8PerChannel)),
            Family::ModelOptNvfp4 => Some(Scheme::of(Family::ModelOptNvfp4Weights)),
            _ => None,
        }
    }

    /// Sets scales to the type of the weights, if the scheme's own writer does so and nothing else was specified
    /// (`docs/spec/checkpoints.md §7.1`).
    pub fn with_scales_of(self, weights: DType) -> Scheme {
        let stores_it = matches!(
            self.family,
            Family::Fp8Channel | Family::CtFloatQuantized | Family::CtIntQuantized | Family::CtPackQuantized
        );
        let scale = ScaleType::of(weights).filter(|_| stores_it);
        Scheme { parameters: Parameters { scale: self.parameters.scale.or(scale), ..self.parameters }, ..self }
    }

    /// True for unquantized tensors.
    pub fn is_plain(&self) -> bool {
        self.family == Family::Plain
    }
}

impl FromStr for Scheme {
    type Err = SchemeError;

    fn from_str(text: &str) -> Result<Scheme, SchemeError> {
        let (name, parameters) = text.split_once(',').map_or((text, None), |(name, rest)| (name, Some(rest)));
        // `fp8-block:64x128` is short for `fp8-block,block=64x128`.
        let (name, block) = match name.rsplit_once(':') {
            Some((family, block)) if block.starts_with(|c: char| c.is_ascii_digit()) => (family, Some(block)),
            _ => (name, None),
        };
        let family = Family::of_name(name).ok_or_else(|| SchemeError::Unknown { name: name.to_owned() })?;
        let row = family.row();
        let mut scheme = Scheme::of(family);
        let block = block.map(|block| ("block", block));
        let given = parameters.into_iter().flat_map(|p| p.split(',')).map(|p| p.split_once('=').unwrap_or((p, "")));
        for (name, value) in block.into_iter().chain(given) {
            let parameter = row.parameters.iter().copied().find(|p| p.name() == name).ok_or_else(|| {
                SchemeError::NoParameter { family: row.name, name: name.to_owned(), known: row.parameters }
            })?;
            if scheme.parameters.shown(parameter).is_some() {
                return Err(SchemeError::Twice { family: row.name, name: parameter.name() });
            }
            scheme.parameters.set(parameter, value).ok_or_else(|| SchemeError::Value {
                family: row.name,
                name: parameter.name(),
                value: value.to_owned(),
                expected: parameter.expected(),
            })?;
        }
        Ok(scheme)
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.family.name())?;
        for &parameter in self.family.row().parameters {
            match self.parameters.shown(parameter) {
                Some(value) if parameter == Block && self.family == Family::Fp8Block => write!(f, ":{value}")?,
                Some(value) => write!(f, ",{}={value}", parameter.name())?,
                None => {}
            }
        }
        Ok(())
    }
}
