//! A specification with its options, before the types are known: what `--spec` and the policies say.

use std::fmt;
use truecast_core::policy::NanRule;
use truecast_core::spec::{SpecError, ieee, onnx, openvino, tile, tosa};
use truecast_core::{CastSpec, DType};

/// Which standard decides, and how its options are set.
///
/// # Examples
/// ```
/// use truecast::{DType, request::Request};
/// let cast = Request::default().resolve(DType::F32, DType::F16)?;
/// assert_eq!(cast.dst, DType::F16);
/// # Ok::<(), truecast::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The standard.
    pub standard: Standard,
    /// Overrides what becomes of a NaN's sign and payload; works with every standard (`docs/interfaces.md §2`).
    pub nan: Option<NanRule>,
}

/// A standard with its own options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standard {
    /// ONNX Cast.
    Onnx {
        /// Opset of the default domain.
        opset: u32,
        /// `saturate`.
        saturate: Option<bool>,
        /// `round_mode`.
        round_mode: Option<onnx::RoundMode>,
    },
    /// OpenVINO Convert, which has no options.
    OpenVino,
    /// Tile IR; the destination of the cast is replaced by that of each pair.
    Tile {
        /// Attributes, profile and options.
        cast: tile::Cast,
        /// The release as it was asked for.
        rules: tile::Rules,
    },
    /// TOSA CAST.
    Tosa {
        /// Version, profiles and extensions.
        target: tosa::Target,
    },
    /// Free policies; the destination of the cast is replaced by that of each pair.
    Ieee(ieee::Cast),
}

impl Default for Request {
    /// ONNX at its newest opset, without options.
    fn default() -> Self {
        let standard = Standard::Onnx { opset: onnx::NEWEST_OPSET, saturate: None, round_mode: None };
        Request { standard, nan: None }
    }
}

impl Request {
    /// Settles every question for a pair.
    ///
    /// # Errors
    /// What the standard forbids.
    pub fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError> {
        let mut cast = match self.standard {
            Standard::Onnx { opset, saturate, round_mode } => {
                onnx::Cast { saturate, round_mode, opset, ..onnx::Cast::to(dst) }.resolve(src)?
            }
            Standard::OpenVino => openvino::Convert::to(dst).resolve(src)?,
            Standard::Tile { cast, .. } => tile::Cast { to: dst, ..cast }.resolve(src)?,
            Standard::Tosa { target } => tosa::Cast { target, ..tosa::Cast::to(dst) }.resolve(src)?,
            Standard::Ieee(options) => ieee::Cast { to: dst, ..options }.resolve(src)?,
        };
        if let Some(nan) = self.nan {
            cast.policy.nan = nan;
        }
        Ok(cast)
    }
}

/// `onnx@28 saturate=0`, `ieee overflow=saturate`: the specification, its version, and the options that were set.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options: Vec<(&str, Option<String>)> = Vec::new();
        match self.standard {
            Standard::Onnx { opset, saturate, round_mode } => {
                write!(f, "onnx@{opset}")?;
                options.push(("saturate", saturate.map(|s| (s as u8).to_string())));
                options.push(("round_mode", round_mode.map(|mode| mode.name().into())));
            }
            Standard::OpenVino => write!(f, "openvino@{}", openvino::VERSION)?,
            Standard::Tile { cast, .. } => {
                write!(f, "tile@{} profile={}", cast.release, cast.profile.name())?;
                options.push(("rounding", cast.rounding.map(|mode| mode.name().into())));
                options.push(("saturating", cast.saturating.then(|| "true".into())));
                options.extend(cast.options.names().map(|name| ("tile-option", Some(name.into()))));
            }
            Standard::Tosa { target } => write!(f, "tosa@{}", target.version.name())?,
            Standard::Ieee(cast) => {
                let defaults = ieee::Cast::to(cast.to);
                write!(f, "ieee")?;
                options.push(("rounding", cast.rounding.map(|r| r.name().into())));
                options.push(("overflow", changed(cast.overflow, defaults.overflow)));
                options.push(("inf", cast.inf.map(|inf| lower_case(&inf))));
                options.push(("int-overflow", changed(cast.int_overflow, defaults.int_overflow)));
                options.push(("nan-to-int", changed(cast.nan_to_int, defaults.nan_to_int)));
                options.push(("subnormals", changed(cast.subnormals, defaults.subnormals)));
            }
        }
        options.push(("nan", self.nan.as_ref().map(lower_case)));
        options
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .try_for_each(|(n, v)| write!(f, " {n}={v}"))
    }
}

fn changed<T: PartialEq + fmt::Debug>(value: T, default: T) -> Option<String> {
    (value != default).then(|| lower_case(&value))
}

/// The policies are spelled on the command line as their variants are.
fn lower_case(policy: &impl fmt::Debug) -> String {
    format!("{policy:?}").to_lowercase()
}
