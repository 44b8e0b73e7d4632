//! Scales of activations, which do not affect weights (`docs/spec/checkpoints.md §7.8`): names, targets, conversion
//! between schemes.

use truecast_core::DType::{self, F32};
use truecast_io::Tensor;

use crate::modules::module_of;
use crate::scheme::Family;
use crate::write::{Content, Output};

/// Stored form of a layer's input scale, which follows from the largest magnitude of the inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActivationScale {
    /// Suffix of the tensor's name, after the module.
    end: &'static str,
    /// Relates scale and largest magnitude: `magnitude = scale * most`, or `most / scale` if `is_divisor`.
    most: f64,
    is_divisor: bool,
    shape: &'static [u64],
}

/// Layers that need an activation scale in a target scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All layers: loaders read uninitialized memory for a missing scale.
    Required,
    /// All layers or none; the configuration states which.
    AllOrNone,
    /// Layers with a known magnitude.
    Optional,
}

const FP8: ActivationScale = ActivationScale { end: "input_scale", most: 448.0, is_divisor: false, shape: &[] };
const NVFP4: ActivationScale = ActivationScale { end: "input_scale", most: 2688.0, is_divisor: false, shape: &[] };
const NVFP4_DIVISOR: ActivationScale =
    ActivationScale { end: "input_global_scale", most: 2688.0, is_divisor: true, shape: &[1] };

impl ActivationScale {
    /// Form of activation scales in a writable scheme, and the layers that need them.
    pub fn of_target(family: Family) -> Option<(ActivationScale, Need)> {
        match family {
            Family::ModelOptFp8 => Some((FP8, Need::Required)),
            Family::ModelOptNvfp4 => Some((NVFP4, Need::Required)),
            Family::CtNvfp4 => Some((NVFP4_DIVISOR, Need::AllOrNone)),
            Family::ComfyFp8E4M3 => Some((FP8, Need::Optional)),
            Family::ComfyNvfp4 => Some((NVFP4, Need::Optional)),
            _ => None,
        }
    }

    /// Module and form that a stored activation scale has, by its name and the type of the module's codes. `None` for
    /// other names.
    pub fn of_source(name: &str, codes: impl FnOnce(&str) -> Option<DType>) -> Option<(&str, ActivationScale)> {
        const ENDS: [&str; 5] = ["input_scale", "input_global_scale", "activation_scale", "qscale_act", "scale_input"];
        let (module, end) = ENDS.iter().find_map(|end| Some((name.strip_suffix(end)?, *end)))?;
        let module = module.strip_suffix(['.', '_'])?;
        match (end, codes(module)?) {
            ("input_global_scale", _) => Some((module, NVFP4_DIVISOR)),
            ("input_scale", DType::F4E2M1) => Some((module, NVFP4)),
            _ => Some((module, FP8)),
        }
    }

    /// Converts a scale from the form `other`. The bits stay if both forms have the same constant and direction.
    pub fn of_scale(self, scale: f32, other: ActivationScale) -> f32 {
        if (self.most, self.is_divisor) == (other.most, other.is_divisor) {
            scale
        } else {
            self.of_amax(if other.is_divisor { other.most / f64::from(scale) } else { other.most * f64::from(scale) })
        }
    }

    /// Scale for inputs whose largest magnitude is `amax`.
    ///
    /// # Examples
    /// ```
    /// use truecast_schemes::{ActivationScale, Family};
    /// let (scale, _) = ActivationScale::of_target(Family::ModelOptFp8).unwrap();
    /// assert_eq!(scale.of_amax(896.0), 2.0);
    /// let (divisor, _) = ActivationScale::of_target(Family::CtNvfp4).unwrap();
    /// assert_eq!((divisor.of_amax(672.0), divisor.of_scale(2.0, scale)), (4.0, 3.0));
    /// ```
    pub fn of_amax(self, amax: f64) -> f32 {
        (if self.is_divisor { self.most / amax } else { amax / self.most }) as f32
    }

    /// Tensor of activation scales that belongs to a weight. It has one value, or one value for each matrix of a stack.
    pub fn output(self, weight: &Tensor, values: &[f32]) -> Output {
        let module = module_of(&weight.name);
        let dot = if module.len() < weight.name.len() { "." } else { "_" };
        let shape = if values.len() == 1 { self.shape.to_vec() } else { vec![values.len() as u64] };
        let name = format!("{module}{dot}{}", self.end);
        let tensor =
            Tensor { name: name.into(), dtype: F32, layout: truecast_core::Layout::Packed, shape: shape.into() };
        Output { content: Content::Bytes(values.iter().flat_map(|value| value.to_le_bytes()).collect()), tensor }
    }
}
