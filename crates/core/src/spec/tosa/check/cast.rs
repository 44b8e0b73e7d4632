//! One element of a plain CAST. Source: `docs/spec/tosa.md §6.4` to §6.7.

use super::super::binary64::{exponent, pow2, value};
use super::Verdict;
use crate::dtype::{DType, Kind};
use crate::exact::{Exact, Outcome, cast_one, decode};
use crate::format::{FloatFormat, IntFormat};
use crate::permit::NanComparison;
use crate::policy::CastSpec;
use std::ops::RangeInclusive;

/// Judges `actual` as the result of casting `input`. Compared bit for bit, a NaN that is exact as a NaN but has another sign
/// or payload than truecast's is a violation.
///
/// # Examples
/// ```
/// use truecast_core::spec::tosa::{Cast, check::{cast::judge, Verdict}};
/// use truecast_core::{permit::NanComparison::Class, DType};
/// let cast = Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
/// assert_eq!(judge(&cast, 448f32.to_bits().into(), 0x7e, Class), Verdict::Exact);
/// assert_eq!(judge(&cast, 448f32.to_bits().into(), 0x7f, Class), Verdict::AllowedByVerifierOnly); // NaN for 448
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
pub fn judge(spec: &CastSpec, input: u64, actual: u64, nan: NanComparison) -> Verdict {
    let exact = match cast_one(spec, input) {
        Outcome::Undefined { .. } => return Verdict::Unpredictable,
        Outcome::Defined(code) => code,
        // By `--nan error`, which is no rule of TOSA's: nothing is the result of a NaN.
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

/// Equal codes, any two NaNs, any two codes of true.
pub(super) fn is_same(dtype: DType, a: u64, b: u64) -> bool {
    a == b || decode(dtype, a) == decode(dtype, b) || (is_nan(dtype, a) && is_nan(dtype, b))
}

fn is_nan(dtype: DType, code: u64) -> bool {
    matches!(decode(dtype, code), Exact::Nan { .. })
}

/// fp16, bf16 and fp32: the types whose subnormals may be flushed. Source: `docs/spec/tosa.md §2.3`.
pub(super) fn may_flush(f: &FloatFormat) -> bool {
    f.bits() >= 16
}

pub(super) fn max_value(f: &FloatFormat) -> f64 {
    value(crate::exact::decode_float(f, f.max_code()))
}

/// `ulp_T` of a finite value. Source: `docs/spec/tosa.md §1.5`.
pub(super) fn ulp(f: &FloatFormat, r: f64) -> f64 {
    if r == 0.0 || !r.is_finite() { 0.0 } else { pow2(exponent(r).max(f.emin()) - f.man_bits as i32) }
}

/// Set S of `docs/spec/tosa.md §6.5`.
///
/// Sums here are exact where a decision is near: a value so small that binary64 absorbs it is far from every bound but
/// those of its own size, which are no sums.
fn text_permits(src: &FloatFormat, x: Exact, dst: &FloatFormat, out: Exact) -> bool {
    let (neg, abs) = match x {
        Exact::Nan { .. } => return matches!(out, Exact::Nan { .. }),
        Exact::Inf { neg } => return is_overflow_value(dst, neg, out),
        Exact::Finite { neg, sig: 0, .. } => return matches!(out, Exact::Finite { neg: n, sig: 0, .. } if n == neg),
        Exact::Finite { neg, .. } => (neg, value(x).abs()),
    };
    let max = max_value(dst);
    let beyond = max + ulp(dst, max); // what truncation overflows at
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

/// Infinity of that sign; any NaN in a type without infinity.
fn is_overflow_value(dst: &FloatFormat, neg: bool, out: Exact) -> bool {
    match dst.inf_code() {
        Some(_) => out == Exact::Inf { neg },
        None => matches!(out, Exact::Nan { .. }),
    }
}

/// Truncation overflows only where rounding to nearest does.
fn nearest_overflows(dst: &FloatFormat, abs: f64) -> bool {
    let (sig, exp) = dst.overflow_threshold();
    let threshold = sig as f64 * pow2(exp);
    abs > threshold || (abs == threshold && dst.max_code() & 1 == 1)
}

/// Predicate V of `docs/spec/tosa.md §6.4`: what Arm's verifier accepts, in binary64 as it calculates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    format: FloatFormat,
    /// Of the reference, which is made positive.
    negative: bool,
    nan: bool,
    low: f64,
    high: f64,
}

impl Window {
    /// `up` and `low` in units in the last place of `r`.
    pub(super) fn of_ulps(format: &FloatFormat, r: f64, up: f64, low: f64) -> Self {
        let ulp = ulp(format, r);
        Self::new(format, r, up * ulp, low * ulp)
    }

    /// `up` and `low` as differences.
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

/// The codes that pass `accepts`, as ranges in ascending order.
///
/// Every code of 16 bits or fewer is asked; of wider types the neighbours of the exact result, the ends and the specials,
/// which is where permitted codes lie.
pub fn permitted(
    spec: &CastSpec,
    input: u64,
    nan: NanComparison,
    accepts: impl Fn(Verdict) -> bool,
) -> Vec<RangeInclusive<u64>> {
    let exact = cast_one(spec, input).code().unwrap_or(0);
    let passes = |code: &u64| accepts(judge(spec, input, *code, nan));
    ranges(candidates(spec.dst, exact).into_iter().filter(passes))
}

/// Every code of 16 bits or fewer; of wider types those around the exact one, the ends and the specials. Ascending.
pub(super) fn candidates(dtype: DType, exact: u64) -> Vec<u64> {
    let bits = dtype.code_bits();
    if bits <= 16 {
        return (0..1 << bits).collect();
    }
    let mask = u64::MAX >> (64 - bits);
    let mut centres = vec![exact];
    match dtype.kind() {
        Kind::Float(f) => {
            centres.extend([0, f.max_code(), f.min_normal_code()].map(|m| [m, m | f.sign_bit()]).concat())
        }
        Kind::Int(IntFormat { .. }) => {}
        _ => unreachable!("no other type has more than 16 bits"),
    }
    let near = |c: u64| (-4i64..=4).map(move |d| c.wrapping_add_signed(d) & mask);
    let mut codes: Vec<u64> = centres.into_iter().flat_map(near).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

pub(super) fn ranges(codes: impl IntoIterator<Item = u64>) -> Vec<RangeInclusive<u64>> {
    let mut all: Vec<RangeInclusive<u64>> = Vec::new();
    for code in codes {
        match all.last_mut() {
            Some(last) if *last.end() + 1 == code => *last = *last.start()..=code,
            _ => all.push(code..=code),
        }
    }
    all
}
