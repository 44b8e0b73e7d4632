//! Scales of activations: which target has them, what they are called, and how one scheme's is made of another's. None of them
//! changes a weight (`docs/spec/checkpoints.md §7.8`).

use truecast_core::DType::{self, F32};
use truecast_io::Tensor;

use crate::modules::module_of;
use crate::scheme::Family;
use crate::write::{Content, Output};

/// How a scheme stores the scale of a layer's inputs, which follows from their largest magnitude.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActivationScale {
    /// The end of the name.
    end: &'static str,
    /// The largest magnitude is the scale times this, or this over the scale.
    most: f64,
    is_divisor: bool,
    shape: &'static [u64],
}

/// Which layers of a scheme have such scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All: loaders read memory that nothing was written to where one is missing.
    Required,
    /// All or none: the configuration says which.
    AllOrNone,
    /// Those for which it is known.
    Optional,
}

const FP8: ActivationScale = ActivationScale { end: "input_scale", most: 448.0, is_divisor: false, shape: &[] };
const NVFP4: ActivationScale = ActivationScale { end: "input_scale", most: 2688.0, is_divisor: false, shape: &[] };
const NVFP4_DIVISOR: ActivationScale =
    ActivationScale { end: "input_global_scale", most: 2688.0, is_divisor: true, shape: &[1] };

impl ActivationScale {
    /// What a scheme that is written has.
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

    /// What a stored tensor is, of a module whose codes are of this type, and the module; `None` if its name says otherwise.
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

    /// The same as this scheme stores it: of another's scale. Bits stay where both mean the same.
    pub fn of_scale(self, scale: f32, other: ActivationScale) -> f32 {
        match (self.most, self.is_divisor) == (other.most, other.is_divisor) {
            true => scale,
            false => self.of_amax(if other.is_divisor {
                other.most / f64::from(scale)
            } else {
                other.most * f64::from(scale)
            }),
        }
    }

    /// The scale for inputs of this largest magnitude.
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

    /// The tensor that holds it beside a weight: one value, or one for each matrix of a stack.
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
