//! Names of schemes for `--from-scheme` and `--scheme` (`docs/spec/checkpoints.md §5.6`). A name is a family with
//! parameters: `ct:pack-quantized,bits=4,group=32`. [`crate::catalogue`] describes the tensors of each scheme.

mod parameters;

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use truecast_core::DType;
use truecast_core::scaled::{BlockType, Layout};
use truecast_core::spelling::alternatives;

use crate::mixture::Mixture;

pub use parameters::{Parameter, Parameters, ScaleType, Strategy};

/// Package whose configuration declares several schemes.
pub(crate) const COMPRESSED_TENSORS: &str = "compressed-tensors";

/// Sources from which truecast writes a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writing {
    /// None: the scheme is read-only.
    Never,
    /// Unquantized tensors, and by relayout other schemes.
    Yes,
    /// Schemes other than the source's, by relayout: equal values in another packing.
    Relayout,
    /// Any tensors, if the destination is a GGUF file.
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
    /// Codes, and elements per scale; empty for GGUF, where the block type implies them.
    stored: &'static str,
}

use Kind::{Fp8, Int4, Int8, Mx, Nvfp4, Other};
use Parameter::{Bits, Block, Group, Scale, Strategy as By, Symmetric};
use Writing::{Never, Relayout, Yes};

/// Defines [`Family`] and its table. A row has name, parameters, writing, kind, stored form.
macro_rules! families {
    ($($family:ident = $name:literal $parameters:tt $writing:ident $kind:ident $stored:literal;)*) => {
        /// A family of schemes: one format of a package, with any parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[allow(missing_docs)] // The variants are named after the schemes.
        pub enum Family {
            $($family,)*
            /// Tensors of a GGUF file that are rows of these blocks (§9).
            Gguf(BlockType),
            /// Tensors of a GGUF file, with blocks by the names of tensors (§9.10).
            Mixture(Mixture),
        }

        const TENSORS: &[Row] = &[$(Row {
            family: Family::$family,
            name: $name,
            parameters: &$parameters,
            writing: $writing,
            kind: $kind,
            stored: $stored,
        }),*];
    };
}

families! {
    Plain = "plain" [] Yes Other "values as they are";
    Fp8Block = "fp8-block" [Block, Scale] Yes Fp8 "e4m3, block 128x128";
    Fp8Tensor = "fp8-tensor" [] Yes Fp8 "e4m3, tensor";
    Fp8Channel = "fp8-channel" [Scale] Yes Fp8 "e4m3, row";
    DeepSeekV4 = "deepseek-v4" [Block] Never Fp8 "e4m3, block; e2m1, 32";
    GptOss = "gpt-oss" [] Yes Mx "e2m1, 32";
    CtFloatQuantized = "ct:float-quantized" [By, Block, Group, Scale] Yes Fp8 "e4m3, by strategy";
    CtNaiveQuantized = "ct:naive-quantized" [By, Block, Group] Never Fp8 "8 bits, by strategy";
    CtIntQuantized = "ct:int-quantized" [By, Block, Group, Symmetric, Scale] Yes Int8 "8 bits, by strategy";
    CtPackQuantized = "ct:pack-quantized" [Bits, By, Group, Symmetric, Scale] Yes Int4 "4, 8 bits, group, row";
    CtNvfp4 = "ct:nvfp4-pack-quantized" [] Yes Nvfp4 "e2m1, 16";
    CtMxfp4 = "ct:mxfp4-pack-quantized" [] Yes Mx "e2m1, 32";
    CtMxfp6 = "ct:mxfp6-pack-quantized" [] Yes Mx "6 bits, 32";
    CtMxfp8 = "ct:mxfp8-quantized" [] Yes Mx "e4m3, 32";
    ModelOptFp8 = "modelopt:FP8" [] Yes Fp8 "e4m3, tensor";
    ModelOptFp8PerChannel = "modelopt:FP8_PER_CHANNEL_PER_TOKEN" [] Yes Fp8 "e4m3, row";
    ModelOptFp8Blocks = "modelopt:FP8_PB_WO" [Block] Yes Fp8 "e4m3, block 128x128";
    ModelOptNvfp4 = "modelopt:NVFP4" [] Yes Nvfp4 "e2m1, 16";
    ModelOptNvfp4Weights = "modelopt:W4A16_NVFP4" [] Yes Nvfp4 "e2m1, 16";
    ModelOptNvfp4Awq = "modelopt:NVFP4_AWQ" [] Never Nvfp4 "e2m1, 16";
    ModelOptNvfp4Svd = "modelopt:NVFP4_SVD" [] Never Nvfp4 "e2m1, 16";
    ModelOptNvfp4Fp8 = "modelopt:W4A8_NVFP4_FP8" [] Never Nvfp4 "e2m1, 16";
    ModelOptMxfp8 = "modelopt:MXFP8" [] Yes Mx "e4m3, 32";
    ModelOptMxfp4 = "modelopt:MXFP4" [] Never Mx "e2m1, 32";
    ModelOptAwq = "modelopt:W4A16_AWQ" [Group] Never Int4 "4 bits, group";
    ModelOptInt8 = "modelopt:W8A16" [] Never Int8 "8 bits, row";
    ComfyScaledFp8 = "comfy-scaled-fp8" [] Never Fp8 "e4m3 or e5m2, tensor";
    ComfyFp8E4M3 = "comfy:float8_e4m3fn" [] Yes Fp8 "e4m3, tensor";
    ComfyFp8E5M2 = "comfy:float8_e5m2" [] Yes Fp8 "e5m2, tensor";
    ComfyFp8Rows = "comfy:float8_e4m3fn_rowwise" [] Never Fp8 "e4m3, row";
    ComfyFp8Blocks = "comfy:float8_e4m3fn_blockwise" [Group] Never Fp8 "e4m3, group";
    ComfyNvfp4 = "comfy:nvfp4" [] Yes Nvfp4 "e2m1, 16";
    ComfyMxfp8 = "comfy:mxfp8" [] Yes Mx "e4m3, 32";
    ComfyInt8 = "comfy:int8_tensorwise" [] Never Int8 "8 bits, tensor";
    ComfyInt8Blocks = "comfy:int8_blockwise" [Group] Never Int8 "8 bits, group";
    Torchao = "torchao" [] Never Other "fp8, int8, MX, NVFP4";
    Mxfp8 = "mxfp8" [] Yes Mx "e4m3, 32";
    Awq = "awq" [Group] Never Int4 "4 bits, group";
    Gptq = "gptq" [Bits, Group] Never Int4 "2 to 8 bits, group";
    GptqV2 = "gptq_v2" [Bits, Group] Never Int4 "2 to 8 bits, group";
    BitNet = "bitnet" [] Never Other "2 bits, tensor";
    MlxAffine = "mlx:affine" [Bits, Group] Never Int4 "2 to 8 bits, group";
    MlxMxfp4 = "mlx:mxfp4" [] Relayout Mx "e2m1, 32";
    MlxNvfp4 = "mlx:nvfp4" [] Never Nvfp4 "e2m1, 16";
    MlxMxfp8 = "mlx:mxfp8" [] Relayout Mx "e4m3, 32";
    MistralFp8 = "mistral-fp8" [Block] Never Fp8 "e4m3, tensor or block";
    FbgemmFp8 = "fbgemm-fp8" [] Never Fp8 "e4m3, row";
    BnbNf4 = "bnb:nf4" [] Never Int4 "nf4, 64";
    BnbFp4 = "bnb:fp4" [] Never Int4 "fp4, 64";
    BnbInt8 = "bnb:int8" [] Never Int8 "8 bits, row";
    ModelSlim = "modelslim" [Group] Never Int8 "8 bits, row, group";
    QuarkFp4 = "quark:fp4" [] Never Mx "e2m1, 32";
    QuarkFp6E2M3 = "quark:fp6_e2m3" [] Never Mx "e2m3, 32";
    QuarkFp6E3M2 = "quark:fp6_e3m2" [] Never Mx "e3m2, 32";
    QuarkFp8 = "quark:fp8_e4m3" [By, Block, Group] Never Fp8 "e4m3, by strategy";
    QuarkInt4 = "quark:int4" [By, Group] Never Int4 "4 bits, group, row";
    QuarkInt4Order = "quark:int4-order" [By, Group] Never Int4 "4 bits, group, row";
    QuarkUint4 = "quark:uint4" [By, Group] Never Int4 "4 bits, group, row";
    QuarkUint4Order = "quark:uint4-order" [By, Group] Never Int4 "4 bits, group, row";
    QuarkInt8 = "quark:int8" [By, Group] Never Int8 "8 bits, by strategy";
}

/// Rows of block types, and of mixtures with other names.
static GGUF: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let row = |family, name: &str, writing| {
        let name = format!("gguf:{name}").leak();
        Row { family, name, parameters: &[], writing, kind: Kind::Gguf, stored: "" }
    };
    let writing = |block: BlockType| if block.is_written() { Writing::Gguf } else { Never };
    let blocks = BlockType::ALL.map(|block| row(Family::Gguf(block), block.name(), writing(block)));
    let is_other = |mixture: &Mixture| BlockType::ALL.iter().all(|block| block.name() != mixture.name());
    let mixtures = Mixture::ALL.into_iter().filter(is_other);
    let mixtures = mixtures.map(|mixture| row(Family::Mixture(mixture), mixture.name(), Writing::Gguf));
    blocks.into_iter().chain(mixtures).collect()
});

fn rows() -> impl Iterator<Item = &'static Row> {
    TENSORS.iter().chain(&*GGUF)
}

/// Other names of a family: ModelOpt's names for the same tensors (`docs/spec/checkpoints.md §4.5`).
const ALIASES: &[(&str, Family)] =
    &[("modelopt:W4A8_MXFP4_FP8", Family::ModelOptMxfp4), ("modelopt:W8A8_SQ_PER_CHANNEL", Family::ModelOptInt8)];

impl Family {
    /// Lists every family in the order of `docs/spec/checkpoints.md §4`, then the blocks of GGUF files.
    pub fn all() -> impl Iterator<Item = Family> {
        rows().map(|row| row.family)
    }

    fn row(self) -> &'static Row {
        rows().find(|row| row.family == self).expect("every family has a row")
    }

    /// Name without parameters.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Name of ModelOpt's algorithm, for its families.
    pub(crate) fn modelopt_algorithm(self) -> Option<&'static str> {
        self.name().strip_prefix("modelopt:")
    }

    /// True for ModelOpt's NVFP4 with any quantization of activations.
    pub(crate) fn is_modelopt_nvfp4(self) -> bool {
        use Family::{ModelOptNvfp4, ModelOptNvfp4Awq, ModelOptNvfp4Fp8, ModelOptNvfp4Svd, ModelOptNvfp4Weights};
        [ModelOptNvfp4, ModelOptNvfp4Weights, ModelOptNvfp4Awq, ModelOptNvfp4Svd, ModelOptNvfp4Fp8].contains(&self)
    }

    /// True if descriptions of single tensors declare the scheme, instead of a configuration.
    pub(crate) fn is_told_by_tensors(self) -> bool {
        [Family::Torchao, Family::BnbNf4, Family::BnbFp4].contains(&self)
    }

    /// Sources from which truecast writes the family.
    pub fn writing(self) -> Writing {
        self.row().writing
    }

    /// Parameters that may follow the name.
    pub fn parameters(self) -> &'static [Parameter] {
        self.row().parameters
    }

    /// Kind of the format.
    pub fn kind(self) -> Kind {
        self.row().kind
    }

    /// Text about codes and elements per scale: `e4m3, block 128x128`.
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
            Family::Mixture(mixture) => format!("mostly {}", mixture.base().name()),
            _ => self.row().stored.into(),
        }
    }

    /// Block type of most tensors of a mixture; other families are their own.
    #[must_use]
    pub fn base(self) -> Family {
        if let Family::Mixture(mixture) = self { Family::Gguf(mixture.base()) } else { self }
    }

    /// Mixture of a family for models with llama.cpp's names: the name of a block type means one too.
    pub fn mixture(self) -> Option<Mixture> {
        match self {
            Family::Gguf(block) => Mixture::of_block(block),
            Family::Mixture(mixture) => Some(mixture),
            _ => None,
        }
    }

    /// True for block types of GGUF files, and mixtures of these.
    pub fn is_gguf(self) -> bool {
        matches!(self, Family::Gguf(_) | Family::Mixture(_))
    }

    /// Package that writes the family, or models published in it.
    pub fn used_by(self) -> &'static str {
        let package = self.name().split(':').next().unwrap_or_default();
        match package {
            "plain" => "",
            "ct" | "fp8-channel" => COMPRESSED_TENSORS,
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

    /// Family of a name without parameters. Case does not matter in ModelOpt's algorithms and GGUF's block types.
    pub(crate) fn of_name(name: &str) -> Option<Family> {
        let is_named = |known: &str| {
            let ignores_case = known.starts_with("modelopt:") || known.starts_with("gguf:");
            known == name || ignores_case && known.eq_ignore_ascii_case(name)
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
    /// Family of the scheme.
    pub family: Family,
    /// Parameters of the scheme; `None` if not specified.
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
    #[error("unknown scheme {name:?}")]
    Unknown { name: String },
    #[error("{name} is not one scheme: {}", alternatives(choices))]
    Ambiguous { name: String, choices: &'static [&'static str] },
    #[error("scheme {family} has no parameter {name:?}{}", listed(known))]
    NoParameter { family: &'static str, name: String, known: &'static [Parameter] },
    #[error("scheme {family}: {name}={value:?}, expected {expected}")]
    Value { family: &'static str, name: &'static str, value: String, expected: &'static str },
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
    /// Makes the scheme of a family without parameters.
    pub const fn of(family: Family) -> Scheme {
        Scheme { family, parameters: Parameters::NONE }
    }

    /// The scheme of unquantized tensors.
    pub const PLAIN: Scheme = Scheme::of(Family::Plain);

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

    /// Scheme of the same package that has no stored scales of activations. `None` for other families.
    pub fn weights_only(self) -> Option<Scheme> {
        match self.family {
            Family::ModelOptFp8 => Some(Scheme::of(Family::ModelOptFp8PerChannel)),
            Family::ModelOptNvfp4 => Some(Scheme::of(Family::ModelOptNvfp4Weights)),
            _ => None,
        }
    }

    /// Sets the type of scales to the type of the weights, if the scheme's own writer does so
    /// (`docs/spec/checkpoints.md §7.1`). A specified type stays.
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
