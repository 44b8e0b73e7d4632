//! Rescaling of 8-bit inputs with many scales in 32-bit arithmetic. Shorter multipliers give the same results.

use super::arithmetic::{Arithmetic, mode};
use super::pass::Pass;
use super::requirement::is_safe;
use crate::level::{Level, Task};
use truecast_core::rescale::{Channel, RescaleSpec, RoundingMode};

/// Pass in 32 bits. `None` if some scale needs more bits, or some input fails a requirement.
pub(super) fn in_32_bits(spec: &RescaleSpec, level: Level) -> Option<Box<dyn Pass>> {
    if spec.channels.len() == 1 || !is_safe(spec) {
        return None;
    }
    let shorter = |channel: &Channel| {
        let short = shortened(channel)?;
        let same = SameResults {
            scale: *channel,
            short,
            rounds_twice: spec.rounding == RoundingMode::Double,
            first: (spec.input.min() as i64) - spec.input_zp,
        };
        level.run(same).then_some(short)
    };
    let channels: Vec<Channel> = spec.channels.iter().map(shorter).collect::<Option<_>>()?;
    Some(match spec.output.bits {
        8 => Box::new(Arithmetic::<u8, u8, { mode::IN_32_BITS }>::new(spec, &channels, level)),
        16 => Box::new(Arithmetic::<u8, u16, { mode::IN_32_BITS }>::new(spec, &channels, level)),
        _ => Box::new(Arithmetic::<u8, u32, { mode::IN_32_BITS }>::new(spec, &channels, level)),
    })
}

/// Rounds a scale to a multiplier of at most 22 bits and a shift of at most 30. `None` if the shift would be 0. For
/// values of 9 bits, the product plus half is then below 2^31.
fn shortened(&Channel { multiplier, shift }: &Channel) -> Option<Channel> {
    let bits = 32 - multiplier.leading_zeros() as i32;
    let dropped = (bits - 22).max(i32::from(shift) - 30).max(0);
    let shift = i32::from(shift) - dropped;
    let half = if dropped == 0 { 0 } else { 1i64 << (dropped - 1) };
    let multiplier = (i64::from(multiplier) + half) >> dropped;
    (shift >= 1).then_some(Channel { multiplier: multiplier as i32, shift: shift as i8 })
}

/// Test whether two scales give the same results for 256 consecutive inputs.
struct SameResults {
    scale: Channel,
    short: Channel,
    rounds_twice: bool,
    first: i64,
}

impl Task for SameResults {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let rounded = |v: i64, Channel { multiplier, shift }: Channel, first: i64| {
            let half = (1i64 << (shift - 1)) + if v < 0 { -first } else { first };
            (v * i64::from(multiplier) + half) >> shift
        };
        let first = if self.rounds_twice && self.scale.shift > 31 { 1 << 30 } else { 0 };
        let differs = |v| (rounded(v, self.scale, first) != rounded(v, self.short, 0)) as u32;
        (0..256).fold(0, |any, i| any | differs(self.first + i)) == 0
    }
}
