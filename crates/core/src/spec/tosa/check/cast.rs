//! Check of one element of a plain CAST. Source: `docs/spec/tosa.md §6.4` to §6.7.

use super::super::freedoms::may_flush;
use super::Verdict;
use super::codes::{all_codes, merged, nan_codes, neighbors, where_monotone};
use crate::binary64::{exponent, pow2, value};
use crate::dtype::{DType, Kind};
use crate::exact::{Exact, Outcome, cast_one, decode};
use crate::format::FloatFormat;
use crate::permitted::NanComparison;
use crate::policy::CastSpec;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Checks `actual` as the result of casting `input`. In a bitwise comparison, a NaN with a different sign or payload
/// than the exact NaN is a violation.
///
/// # Examples
/// ```
/// use truecast_core::spec::tosa::{Cast, check::{cast::check, Verdict}};
/// use truecast_core::{permitted::NanComparison::Class, DType};
/// let cast = Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
/// assert_eq!(check(&cast, 448f32.to_bits().into(), 0x7e, Class), Verdict::Exact);
/// assert_eq!(check(&cast, 448f32.to_bits().into(), 0x7f, Class), Verdict::AllowedByVerifierOnly); // NaN for 448
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[must_use]
pub fn check(spec: &CastSpec, input: u64, actual: u64, nan: NanComparison) -> Verdict {
    let exact = match cast_one(spec, input) {
        Outcome::Undefined { .. } => return Verdict::Unpredictable,
        Outcome::Defined(code) => code,
        // Only [`NanRule::Error`] refuses a value, and TOSA does not have this rule.
        Outcome::Refused { .. } => return Verdict::Violation,
    };
    if is_same(spec.dst, exact, actual) {
        let differs = nan == NanComparison::Bits && exact != actual && is_nan(spec.dst, exact);
        return if differs { Verdict::Violation } else { Verdict::Exact };
    }
    let Kind::Float(dst) = spec.dst.kind() else { return Verdict::Violation };
    let x = decode(spec.src, input);
    match spec.src.kind() {
        // 0 and 1 are exact in every type.
        Kind::Bool => Verdict::Violation,
        Kind::Int(_) => {
            let window = |up, low| Window::of_ulps(&dst, value(x), up, low).contains(spec.dst, actual);
            Verdict::of_inexact(window(0.5, 0.5), window(0.5, 1.0))
        }
        Kind::Float(src) => Verdict::of_inexact(
            text_permits(&src, x, &dst, decode(spec.dst, actual)),
            Window::of_ulps(&dst, value(x), 0.5, 1.0).contains(spec.dst, actual),
        ),
        _ => unreachable!("no plain CAST has such a source"),
    }
}

/// Same result: equal codes, any two NaNs, or any two codes of true.
pub(super) fn is_same(dtype: DType, a: u64, b: u64) -> bool {
    a == b || decode(dtype, a) == decode(dtype, b) || (is_nan(dtype, a) && is_nan(dtype, b))
}

fn is_nan(dtype: DType, code: u64) -> bool {
    matches!(decode(dtype, code), Exact::Nan { .. })
}

pub(super) fn max_value(f: &FloatFormat) -> f64 {
    value(crate::exact::decode_float(f, f.max_code()))
}

/// `ulp_T` of a finite value. Source: `docs/spec/tosa.md §1.5`.
pub(super) fn ulp(f: &FloatFormat, r: f64) -> f64 {
    if r == 0.0 || !r.is_finite() { 0.0 } else { pow2(exponent(r).max(f.emin()) - f.man_bits as i32) }
}

/// True if `out` is in set S of `docs/spec/tosa.md §6.5`.
///
/// The sums are exact wherever the decision is close. A value that binary64 absorbs in a sum is far from every bound
/// that is a sum.
fn text_permits(src: &FloatFormat, x: Exact, dst: &FloatFormat, out: Exact) -> bool {
    let (neg, abs) = match x {
        Exact::Nan { .. } => return matches!(out, Exact::Nan { .. }),
        Exact::Inf { neg } => return is_overflow_value(dst, neg, out),
        Exact::Finite { neg, sig: 0, .. } => return matches!(out, Exact::Finite { neg: n, sig: 0, .. } if n == neg),
        Exact::Finite { neg, .. } => (neg, value(x).abs()),
    };
    let max = max_value(dst);
    let beyond = max + ulp(dst, max); // smallest value that overflows under truncation
    match out {
        Exact::Nan { .. } | Exact::Inf { .. } => is_overflow_value(dst, neg, out) && nearest_overflows(dst, abs),
        Exact::Finite { neg: out_neg, .. } if out_neg != neg => false,
        Exact::Finite { sig: 0, .. } => {
            let flushed_input = may_flush(src) && abs < pow2(src.emin());
            let flushed_output = may_flush(dst) && abs < pow2(dst.emin());
            abs <= pow2(dst.quantum()) || flushed_input || flushed_output
        }
        Exact::Finite { .. } => {
            let (out, ulp) = (value(out).abs(), ulp(dst, abs));
            let accurate = abs <= max && abs - ulp <= out && out <= abs + ulp / 2.0;
            accurate || (max < abs && abs < beyond && out == max)
        }
    }
}

/// Overflow value: infinity with the sign, or any NaN in a type without infinity.
fn is_overflow_value(dst: &FloatFormat, neg: bool, out: Exact) -> bool {
    match dst.inf_code() {
        Some(_) => out == Exact::Inf { neg },
        None => matches!(out, Exact::Nan { .. }),
    }
}

/// True if rounding to nearest overflows. Truncation overflows only for such magnitudes.
fn nearest_overflows(dst: &FloatFormat, abs: f64) -> bool {
    let (sig, exp) = dst.overflow_threshold();
    let threshold = sig as f64 * pow2(exp);
    abs > threshold || (abs == threshold && dst.max_code() & 1 == 1)
}

/// Predicate V of `docs/spec/tosa.md §6.4`: Arm's verifier, calculated in binary64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    format: FloatFormat,
    /// Sign of the reference value; `low` and `high` bound its magnitude.
    negative: bool,
    nan: bool,
    low: f64,
    high: f64,
}

impl Window {
    /// Window from `low` ulps below to `up` ulps above the magnitude of `r`.
    pub(super) fn of_ulps(format: &FloatFormat, r: f64, up: f64, low: f64) -> Self {
        let ulp = ulp(format, r);
        Self::new(format, r, up * ulp, low * ulp)
    }

    /// Window from `low` below to `up` above the magnitude of `r`.
    pub(super) fn new(format: &FloatFormat, r: f64, up: f64, low: f64) -> Self {
        let max = max_value(format);
        let beyond = |bound: f64| if bound > max { f64::INFINITY } else { bound };
        let low = beyond(r.abs() - low);
        let low = if low < -max { f64::NEG_INFINITY } else { low };
        Self { format: *format, negative: r < 0.0, nan: r.is_nan(), low, high: beyond(r.abs() + up) }
    }

    pub(super) fn contains(&self, dtype: DType, actual: u64) -> bool {
        let out = value(decode(dtype, actual));
        if self.nan {
            return out.is_nan();
        }
        let out = if self.negative { -out } else { out };
        if may_flush(&self.format) && out == 0.0 && self.low < pow2(self.format.emin()) {
            return true;
        }
        if out.is_nan() {
            return self.format.inf_code().is_none() && self.high == f64::INFINITY;
        }
        self.low <= out && out <= self.high
    }
}

impl Window {
    /// Codes in the window, as ranges in ascending order.
    pub(super) fn codes(&self, dtype: DType) -> Vec<RangeInclusive<u64>> {
        let f = &self.format;
        let top = f.inf_code().unwrap_or(f.max_code());
        let mut all = if self.contains(dtype, f.nan_code().unwrap_or(0)) { nan_codes(f) } else { Vec::new() };
        if self.nan {
            return all;
        }
        for sign in [0, f.sign_bit()] {
            let out = |magnitude: u64| {
                let value = value(decode(dtype, magnitude | sign));
                if self.negative { -value } else { value }
            };
            let inside = where_monotone(top, out, self.low, self.high);
            all.extend(inside.map(|range| *range.start() | sign..=*range.end() | sign));
            all.extend(self.contains(dtype, sign).then_some(sign..=sign));
        }
        merged(all)
    }
}

/// Returns the codes whose verdict passes `accepts`, as ranges in ascending order.
///
/// Cost: some dozens of checks for any destination. Every permitted code is near the exact code, near an end of the
/// range, or near zero. All NaN codes except the exact code get the same verdict.
pub fn permitted(
    spec: &CastSpec,
    input: u64,
    nan: NanComparison,
    accepts: impl Fn(Verdict) -> bool,
) -> Vec<RangeInclusive<u64>> {
    let passes = |code: &u64| accepts(check(spec, input, *code, nan));
    let exact = match cast_one(spec, input) {
        Outcome::Defined(code) => code,
        Outcome::Undefined { .. } if accepts(Verdict::Unpredictable) => return vec![all_codes(spec.dst)],
        Outcome::Undefined { .. } | Outcome::Refused { .. } => return Vec::new(),
    };
    let Kind::Float(f) = spec.dst.kind() else {
        return merged(neighbors(spec.dst, [exact]).filter(passes).map(|code| code..=code).collect());
    };
    let fixed = [0, f.min_normal_code(), f.max_code()].map(|magnitude| [magnitude, magnitude | f.sign_bit()]);
    let near = neighbors(spec.dst, fixed.into_iter().flatten().chain([exact]));
    let mut all: Vec<_> = near.filter(passes).map(|code| code..=code).collect();
    let nans = nan_codes(&f);
    let ends = nans.iter().flat_map(|range| [*range.start(), *range.end()]);
    if ends.into_iter().find(|code| *code != exact).is_some_and(|other| passes(&other)) {
        // The exact code was checked above.
        all.extend(nans.into_iter().flat_map(|range| without(range, exact)));
    }
    merged(all)
}

fn without(range: RangeInclusive<u64>, code: u64) -> Vec<RangeInclusive<u64>> {
    if range.contains(&code) {
        let parts = [*range.start()..code, code + 1..*range.end() + 1];
        parts.into_iter().filter(|part| !part.is_empty()).map(|part| part.start..=part.end - 1).collect()
    } else {
        vec![range]
    }
}
