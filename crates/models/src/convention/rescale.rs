//! Deviations of other implementations from TOSA's RESCALE, as data.

use std::fmt;
use truecast_core::round::Remainder;
use truecast_core::spec::tosa::rescale::{RescaleSpec, RoundingMode};
use truecast_core::{IntFormat, Rounding};

/// One deviation from a RESCALE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RescaleConvention {
    /// The value is rounded by another mode of the specification.
    Mode(RoundingMode),
    /// The value is rounded once, in this direction.
    Rounded(Rounding),
    /// Results out of range keep their low bits.
    Wrapped,
    /// The input's zero point is not subtracted.
    NoInputZeroPoint,
    /// The output's zero point is not added.
    NoOutputZeroPoint,
    /// The input is read as signed instead of unsigned, or the reverse.
    InputSign,
    /// The result is clamped to the range of the type with the other signedness.
    OutputSign,
}

impl RescaleConvention {
    /// Conventions that can change a result.
    pub fn all(spec: &RescaleSpec) -> Vec<RescaleConvention> {
        use RescaleConvention::*;
        let modes = [RoundingMode::Single, RoundingMode::Double].into_iter();
        let current = if spec.rounding == RoundingMode::Inexact { RoundingMode::Single } else { spec.rounding };
        let mut all: Vec<_> = modes.filter(|mode| *mode != current).map(Mode).collect();
        let roundings =
            [Rounding::Down, Rounding::TowardZero, Rounding::NearestEven, Rounding::NearestAway, Rounding::Up];
        all.extend(roundings.map(Rounded));
        all.push(Wrapped);
        if spec.input_zp != 0 {
            all.push(NoInputZeroPoint);
        }
        if spec.output_zp != 0 {
            all.push(NoOutputZeroPoint);
        }
        all.extend([InputSign, OutputSign]);
        all
    }

    /// RESCALE with the convention applied, for [`RescaleConvention::result`].
    #[must_use]
    pub fn changed(self, spec: &RescaleSpec) -> RescaleSpec {
        use RescaleConvention::*;
        let other = |f: IntFormat| IntFormat { signed: !f.signed, ..f };
        let mut changed = spec.clone();
        match self {
            Mode(rounding) => changed.rounding = rounding,
            NoInputZeroPoint => changed.input_zp = 0,
            NoOutputZeroPoint => changed.output_zp = 0,
            InputSign => changed.input = other(spec.input),
            OutputSign => changed.output = other(spec.output),
            // Requirement R5 limits results to 32 bits, so clamping to 64 bits has no effect.
            Wrapped => changed.output = IntFormat { bits: 64, signed: true },
            Rounded(_) => {}
        }
        changed
    }

    /// Result of the convention for an element, reduced to the bits of `output`. `None` if the arithmetic overflows.
    ///
    /// # Panics
    /// If the RESCALE does not have the channel.
    #[must_use]
    pub fn result(self, changed: &RescaleSpec, output: IntFormat, channel: usize, code: u64) -> Option<u64> {
        let result = match self {
            RescaleConvention::Rounded(rounding) => rounded(changed, rounding, channel, code)?,
            _ => changed.rescale_one(channel, code).ok()?.code,
        };
        Some(result & output.mask())
    }

    /// Stable name, for scripts.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            RescaleConvention::Mode(mode) => format!("mode-{}", mode.name()),
            RescaleConvention::Rounded(rounding) => format!("rounded-{rounding}"),
            RescaleConvention::Wrapped => "wrapped".into(),
            RescaleConvention::NoInputZeroPoint => "no-input-zero-point".into(),
            RescaleConvention::NoOutputZeroPoint => "no-output-zero-point".into(),
            RescaleConvention::InputSign => "input-sign".into(),
            RescaleConvention::OutputSign => "output-sign".into(),
        }
    }
}

/// Text after "as if".
impl fmt::Display for RescaleConvention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RescaleConvention::Mode(mode) => write!(f, "rounded by the mode {}", mode.name()),
            RescaleConvention::Rounded(Rounding::Down) => f.write_str("shifted without rounding (rounded down)"),
            RescaleConvention::Rounded(Rounding::TowardZero) => f.write_str("truncated (rounded toward zero)"),
            RescaleConvention::Rounded(rounding) => write!(f, "rounded {rounding}"),
            RescaleConvention::Wrapped => f.write_str("results out of range keep their low bits (wrap)"),
            RescaleConvention::NoInputZeroPoint => f.write_str("the input zero point was not subtracted"),
            RescaleConvention::NoOutputZeroPoint => f.write_str("the output zero point was not added"),
            RescaleConvention::InputSign => f.write_str("the input was read with the other signedness"),
            RescaleConvention::OutputSign => f.write_str("the result was clamped to the other signedness"),
        }
    }
}

/// Computes `(input - zero point) * multiplier / 2^shift`, rounded once, plus the output zero point, clamped. `None` if
/// the shift is not from 1 to 62.
fn rounded(spec: &RescaleSpec, rounding: Rounding, channel: usize, code: u64) -> Option<u64> {
    let scale = spec.channels[channel];
    let shift = u32::try_from(scale.shift).ok().filter(|shift| (1..=62).contains(shift))?;
    let product = (spec.input.value(code) - i128::from(spec.input_zp)) * i128::from(scale.multiplier);
    let (neg, magnitude) = (product < 0, product.unsigned_abs());
    let (kept, rest, half) = (magnitude >> shift, magnitude & ((1 << shift) - 1), 1u128 << (shift - 1));
    let remainder = match rest {
        0 => Remainder::Zero,
        _ if rest < half => Remainder::BelowHalf,
        _ if rest == half => Remainder::Half,
        _ => Remainder::AboveHalf,
    };
    let magnitude = (kept + rounding.increments(neg, kept & 1 == 1, remainder) as u128) as i128;
    let offset = if neg { -magnitude } else { magnitude } + i128::from(spec.output_zp);
    Some(spec.output.code(offset.clamp(spec.output.min(), spec.output.max())))
}
