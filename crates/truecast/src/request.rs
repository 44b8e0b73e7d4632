//! A specification with its options, before the types are known: what `--spec` and the policies say.

use truecast_core::policy::NanRule;
use truecast_core::spec::{SpecError, ieee, onnx, openvino};
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
            Standard::Ieee(options) => ieee::Cast { to: dst, ..options }.resolve(src)?,
        };
        if let Some(nan) = self.nan {
            cast.policy.nan = nan;
        }
        Ok(cast)
    }
}
