//! Parameters of schemes, such as block, width and group.

use truecast_core::DType;
use truecast_core::scaled::{Code, Layout, Zero};
use truecast_core::words;

words! {
    /// A parameter of a scheme's name.
    pub enum Parameter {
        /// `block=MxK`
        Block = "block",
        /// `bits=N`
        Bits = "bits",
        /// `group=N`
        Group = "group",
        /// `strategy=tensor|channel|group|block`
        Strategy = "strategy",
        /// `symmetric=true|false`
        Symmetric = "symmetric",
        /// `scale=f32|bf16|f16|ue8m0`
        Scale = "scale",
    }
}

impl Parameter {
    /// Accepted values, as text for an error.
    pub const fn expected(self) -> &'static str {
        match self {
            Parameter::Block => "two numbers such as 128x128",
            Parameter::Bits => "a number from 1 to 8",
            Parameter::Group => "a number from 1 to 2^31",
            Parameter::Strategy => "tensor, channel, group or block",
            Parameter::Symmetric => "true or false",
            Parameter::Scale => "f32, bf16, f16 or ue8m0",
        }
    }
}

words! {
    /// Elements that share a scale (`docs/spec/checkpoints.md §3.1`).
    #[allow(missing_docs)] // Named as in the page's table.
    pub enum Strategy {
        Tensor = "tensor",
        Channel = "channel",
        Group = "group",
        Block = "block",
    }

    /// Type of written scales.
    #[allow(missing_docs)] // Named after the types.
    pub enum ScaleType {
        F32 = "f32",
        Bf16 = "bf16",
        F16 = "f16",
        /// Powers of two, in the scheme's own type.
        Ue8m0 = "ue8m0",
    }
}

impl ScaleType {
    pub(crate) fn of(dtype: DType) -> Option<ScaleType> {
        ScaleType::ALL.into_iter().find(|scale| scale.dtype() == dtype)
    }

    /// Element type of the scales.
    pub fn dtype(self) -> DType {
        match self {
            ScaleType::F32 => DType::F32,
            ScaleType::Bf16 => DType::Bf16,
            ScaleType::F16 => DType::F16,
            ScaleType::Ue8m0 => DType::F8E8M0,
        }
    }
}

/// Parameters of a scheme, `None` where neither a name nor a configuration specifies one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// Rows and columns per block; not 0.
    pub block: Option<[u64; 2]>,
    /// Bits per code, 1 to 8.
    pub bits: Option<u32>,
    /// Elements per group; not 0.
    pub group: Option<u64>,
    /// Elements that share a scale.
    pub strategy: Option<Strategy>,
    /// True if the codes have no zero points.
    pub symmetric: Option<bool>,
    /// Type of written scales.
    pub scale: Option<ScaleType>,
}

/// Maximum group, and maximum side of a block. The product of two fits in u64.
const MOST: u64 = 1 << 31;

impl Parameters {
    /// No parameter is specified.
    pub const NONE: Parameters =
        Parameters { block: None, bits: None, group: None, strategy: None, symmetric: None, scale: None };

    pub(super) fn of_layout(layout: &Layout) -> Parameters {
        let mut found = Parameters::NONE;
        let Some(planes) = layout.planes() else { return found };
        if let Code::Int(format) = planes.codes.code {
            found.bits = Some(format.bits.into());
            found.symmetric = Some(!matches!(planes.zero, Zero::Grid { .. }));
        }
        if let Code::Float(dtype) = planes.scales.plane.code {
            found.scale = ScaleType::of(dtype);
        }
        let mut block = planes.scales.block;
        if layout.transposed {
            block.reverse();
        }
        let [rows, cols] = layout.out();
        let whole = [rows * layout.matrices, cols];
        (found.strategy, found.block, found.group) = match block {
            [m, k] if m >= whole[0] && k >= whole[1] && whole[0] > 1 => (Some(Strategy::Tensor), None, None),
            [1, k] if k >= cols => (Some(Strategy::Channel), None, None),
            [1, k] => (Some(Strategy::Group), None, Some(k)),
            _ => (Some(Strategy::Block), Some(block), None),
        };
        found
    }

    pub(crate) fn set(&mut self, parameter: Parameter, value: &str) -> Option<()> {
        let number = |text: &str| text.parse().ok().filter(|n| (1..=MOST).contains(n));
        match parameter {
            Parameter::Block => {
                let (rows, columns) = value.split_once('x')?;
                self.block = Some([number(rows)?, number(columns)?]);
            }
            Parameter::Bits => self.bits = Some(value.parse().ok().filter(|bits| (1..=8).contains(bits))?),
            Parameter::Group => self.group = Some(number(value)?),
            Parameter::Strategy => self.strategy = Some(Strategy::of_name(value)?),
            Parameter::Symmetric => self.symmetric = Some(value.parse().ok()?),
            Parameter::Scale => self.scale = Some(ScaleType::of_name(value)?),
        }
        Some(())
    }

    pub(crate) fn shown(&self, parameter: Parameter) -> Option<String> {
        match parameter {
            Parameter::Block => self.block.map(|[rows, columns]| format!("{rows}x{columns}")),
            Parameter::Bits => self.bits.map(|bits| bits.to_string()),
            Parameter::Group => self.group.map(|group| group.to_string()),
            Parameter::Strategy => self.strategy.map(|strategy| strategy.to_string()),
            Parameter::Symmetric => self.symmetric.map(|symmetric| symmetric.to_string()),
            Parameter::Scale => self.scale.map(|scale| scale.to_string()),
        }
    }

    pub(crate) fn or(self, other: Parameters) -> Parameters {
        Parameters {
            block: self.block.or(other.block),
            bits: self.bits.or(other.bits),
            group: self.group.or(other.group),
            strategy: self.strategy.or(other.strategy),
            symmetric: self.symmetric.or(other.symmetric),
            scale: self.scale.or(other.scale),
        }
    }
}
