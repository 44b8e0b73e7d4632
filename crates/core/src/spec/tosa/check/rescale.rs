//! Check of one element of a RESCALE. Source: `docs/spec/tosa.md §6.8`.

use super::super::rescale::{Bound, RescaleSpec, RoundingMode, inexact_interval};
use super::{Profile, Verdict};
use core::ops::RangeInclusive;

/// Checks `actual` as the result of rescaling `input`. The profile selects the bound of INEXACT_ROUND.
#[must_use]
pub fn check(spec: &RescaleSpec, profile: Profile, channel: usize, input: u64, actual: u64) -> Verdict {
    let Ok(exact) = spec.rescale_one(channel, input) else { return Verdict::Unpredictable };
    if exact.code == actual & spec.output.mask() {
        return Verdict::Exact;
    }
    if spec.rounding != RoundingMode::Inexact {
        return Verdict::Violation;
    }
    let value = spec.output.value(actual) as i64;
    let within = |bound| values(spec, channel, input, bound).contains(&value);
    Verdict::of_inexact(within(text_bound(profile)), within(Bound::Released))
}

fn text_bound(profile: Profile) -> Bound {
    match profile {
        Profile::SpecSeed202503 => Bound::Seed,
        _ => Bound::Released,
    }
}

fn values(spec: &RescaleSpec, channel: usize, input: u64, bound: Bound) -> RangeInclusive<i64> {
    let (lo, hi) = inexact_interval(spec, channel, input, bound).expect("asked of predictable elements only");
    lo..=hi
}

/// Returns the permitted values; `None` if every value is permitted because the element is unpredictable.
#[must_use]
pub fn permitted(spec: &RescaleSpec, profile: Profile, channel: usize, input: u64) -> Option<RangeInclusive<i64>> {
    let exact = spec.output.value(spec.rescale_one(channel, input).ok()?.code) as i64;
    Some(match (profile, spec.rounding) {
        (Profile::Strict, _) | (_, RoundingMode::Single | RoundingMode::Double) => exact..=exact,
        (_, RoundingMode::Inexact) => values(spec, channel, input, text_bound(profile)),
    })
}
