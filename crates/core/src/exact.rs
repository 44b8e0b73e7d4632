//! The definition: decode, round once, encode.
//!
//! [`cast_one`] is what a conversion means. Every fast path is tested against it, bit for bit. Integer arithmetic only;
//! nothing here names a standard, and nothing here is fast. Read it beside `docs/spec/onnx.md §4` and
//! `docs/kernels.md §1` (whose letters `p t q emin` are used below).
//!
//! Its functions are inlined into one, so that a value stays in registers: whole sweeps of 2^32 elements wait for it.

use crate::dtype::{DType, Kind};
use crate::format::{CodeBook, F32, FixedFormat, FloatFormat, IntFormat, Specials};
use crate::policy::*;
use crate::round::{Remainder, Rounding};

/// A number with nothing lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exact {
    /// Not a number. `payload` holds the fraction bits, the quiet bit on top (bit 63); `None` if the format it came from
    /// has no payload.
    Nan {
        /// Sign.
        neg: bool,
        /// Fraction bits from bit 63 down.
        payload: Option<u64>,
    },
    /// Infinity.
    Inf {
        /// Sign.
        neg: bool,
    },
    /// `(-1)^neg * sig * 2^exp`; with `sticky`, more than that but less than `sig + 1`. `sig == 0` is a signed zero.
    /// A sticky value has a 64-bit `sig`, so that no floating-point destination keeps its last bit; integers take the
    /// digits of a text instead ([`crate::text`]). Exponents lie within ±100,000.
    Finite {
        /// Sign.
        neg: bool,
        /// Significand.
        sig: u64,
        /// Exponent of the last bit of `sig`.
        exp: i32,
        /// The value lies strictly between `sig` and `sig + 1`.
        sticky: bool,
    },
}

/// What one conversion gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The one right code.
    Defined(u64),
    /// The specification gives no single answer; `code` is the documented one.
    Undefined {
        /// The documented code.
        code: u64,
        /// The clause that leaves it open.
        reason: &'static str,
    },
    /// An `error` policy applies to this value.
    Refused {
        /// What is wrong with the value.
        condition: Condition,
    },
}

impl Outcome {
    /// The code, unless the cast was refused.
    #[must_use]
    pub const fn code(self) -> Option<u64> {
        match self {
            Outcome::Defined(code) | Outcome::Undefined { code, .. } => Some(code),
            Outcome::Refused { .. } => None,
        }
    }
}

/// A code, or the refusal of an `error` policy, and the property that a standard may leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The code; `None` if an `error` policy refuses the value, which then has a condition.
    pub code: Option<u64>,
    /// The property of the value that matters for this destination, if any.
    pub condition: Option<Condition>,
}

impl Encoded {
    const fn plain(code: u64) -> Self {
        Self { code: Some(code), condition: None }
    }
    const fn at(condition: Condition, code: Option<u64>) -> Self {
        Self { code, condition: Some(condition) }
    }

    /// What it is to a standard that leaves these open.
    #[inline]
    #[must_use]
    pub fn outcome(self, undefined: &[Undefined]) -> Outcome {
        let Some(code) = self.code else {
            return Outcome::Refused { condition: self.condition.expect("what is refused has a reason") };
        };
        match undefined.iter().find(|u| u.condition == Condition::Any || self.condition == Some(u.condition)) {
            Some(u) => Outcome::Undefined { code, reason: u.reason },
            None => Outcome::Defined(code),
        }
    }
}

/// Converts one code: decode, round once, encode.
///
/// Shapes: `code` is right-aligned, [`DType::code_bits`] wide (higher bits are ignored; bool and i1: nonzero is true).
/// Result: the definition. Source: [`CastSpec::clause`].
///
/// # Panics
/// If the source or destination is complex and they differ, which no [`CastSpec`] of `spec/` asks for; or text, which
/// [`crate::text`] converts.
///
/// # Examples
/// ```
/// use truecast_core::{spec::ieee, cast_one, DType, Outcome};
/// let spec = ieee::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
/// assert_eq!(cast_one(&spec, 464f32.to_bits().into()), Outcome::Defined(0x7e)); // a tie, to the even code of 448
/// assert_eq!(cast_one(&spec, 465f32.to_bits().into()), Outcome::Defined(0x7f)); // overflow: no Inf, so NaN
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[inline]
#[must_use]
pub fn cast_one(spec: &CastSpec, code: u64) -> Outcome {
    let CastSpec { src, dst, policy, undefined, .. } = spec;
    if src == dst && !src.is_numeric() {
        return Outcome::Defined(code);
    }
    let value = flush_source(decode(*src, code), *src, policy);
    if src == dst && policy.nan == NanRule::Keep && matches!(value, Exact::Nan { .. }) {
        return Outcome::Defined(code & code_mask(*src)); // a cast to the same type copies bits
    }
    encode(*dst, policy, value).outcome(undefined)
}

fn code_mask(dtype: DType) -> u64 {
    u64::MAX >> (64 - dtype.code_bits())
}

/// The exact value of a code.
///
/// # Panics
/// If `dtype` is complex or text.
///
/// # Examples
/// ```
/// use truecast_core::{exact::decode, DType, Exact};
/// assert_eq!(decode(DType::F8E8M0, 0), Exact::Finite { neg: false, sig: 1, exp: -127, sticky: false });
/// assert_eq!(decode(DType::F8E4M3Fnuz, 0x80), Exact::Nan { neg: true, payload: None });
/// ```
#[inline(always)]
#[must_use]
pub fn decode(dtype: DType, code: u64) -> Exact {
    match dtype.kind() {
        Kind::Bool => integer((code != 0) as i128, 0),
        Kind::Int(f) if f.bits == 1 && f.signed => integer(-((code != 0) as i128), 0),
        Kind::Int(f) => integer(f.value(code), 0),
        Kind::Fixed(f) => integer(f.int.value(code), -(f.frac_bits as i32)),
        Kind::Book(book) => decode_float(&F32, book.values[(code & 15) as usize] as u64),
        Kind::Float(f) => decode_float(&f, code),
        Kind::Complex(_) | Kind::String => panic!("{dtype} has no numeric value"),
    }
}

const fn integer(value: i128, exp: i32) -> Exact {
    Exact::Finite { neg: value < 0, sig: value.unsigned_abs() as u64, exp, sticky: false }
}

/// `s eeee ffff`: the value is `f * 2^q` in the lowest binade, `(2^t + f) * 2^(q + e - 1)` above it.
#[inline(always)]
#[must_use]
pub fn decode_float(f: &FloatFormat, code: u64) -> Exact {
    let neg = code & f.sign_bit() != 0;
    let magnitude = code & f.magnitude_mask();
    if f.specials == Specials::Fnuz && neg && magnitude == 0 {
        return Exact::Nan { neg: true, payload: None };
    }
    let fraction = magnitude & ((1 << f.man_bits) - 1);
    if magnitude > f.max_code() {
        return match f.inf_code() {
            Some(inf) if inf == magnitude => Exact::Inf { neg },
            Some(_) => Exact::Nan { neg, payload: Some(fraction << (64 - f.man_bits)) },
            None => Exact::Nan { neg, payload: None },
        };
    }
    let field = (magnitude >> f.man_bits) as i32;
    let (sig, steps) = match field {
        _ if !f.has_zero => (1, field),
        0 => (fraction, 0),
        _ => (fraction | 1 << f.man_bits, field - 1),
    };
    Exact::Finite { neg, sig, exp: f.quantum() + steps, sticky: false }
}

/// Subnormals read as zero, if the policy says so.
#[inline(always)]
pub(crate) fn flush_source(value: Exact, src: DType, policy: &CastPolicy) -> Exact {
    match (value, src.kind(), policy.subnormals.flushes_source()) {
        (Exact::Finite { neg, sig, exp, .. }, Kind::Float(f), true) if sig < f.min_normal_code() => {
            Exact::Finite { neg, sig: 0, exp, sticky: false }
        }
        _ => value,
    }
}

/// Rounds a value once into `dst`.
///
/// # Panics
/// If `dtype` is complex or text.
#[inline(always)]
#[must_use]
pub fn encode(dst: DType, policy: &CastPolicy, value: Exact) -> Encoded {
    if let (Exact::Nan { .. }, NanRule::Error) = (value, policy.nan) {
        return Encoded::at(Condition::Nan, None);
    }
    match dst.kind() {
        Kind::Bool => Encoded::plain(!matches!(value, Exact::Finite { sig: 0, sticky: false, .. }) as u64),
        Kind::Int(f) => encode_int(f, policy, value),
        Kind::Float(f) => encode_float(&f, policy, value),
        Kind::Fixed(f) => encode_fixed(f, policy, value),
        Kind::Book(book) => encode_book(book, policy, value),
        Kind::Complex(_) | Kind::String => panic!("{dst} takes no numeric value"),
    }
}

/// `floor(sig * 2^(exp - q))` and what is left, in units of `2^q`. The floor must fit 64 bits.
#[inline(always)]
fn split(sig: u64, exp: i32, sticky: bool, q: i32) -> (u64, Remainder) {
    let shift = q - exp;
    debug_assert!(!sticky || shift > 0, "a sticky value is finer than any destination");
    if shift <= 0 {
        return (sig << -shift, Remainder::Zero);
    }
    // One bit below `sig` holds the sticky bit, so that one half stays exactly one half.
    let wide = (sig as u128) << 1 | sticky as u128;
    let s = (shift as u32 + 1).min(127);
    let (rest, half) = (wide & ((1 << s) - 1), 1 << (s - 1));
    let remainder = match rest {
        0 => Remainder::Zero,
        _ if rest < half => Remainder::BelowHalf,
        _ if rest == half => Remainder::Half,
        _ => Remainder::AboveHalf,
    };
    ((wide >> s) as u64, remainder)
}

/// Exponent of the leading bit.
const fn leading(sig: u64, exp: i32) -> i32 {
    exp + 63 - sig.leading_zeros() as i32
}

// ---- integers ----

/// Source: `docs/spec/onnx.md §4.5`.
fn encode_int(f: IntFormat, policy: &CastPolicy, value: Exact) -> Encoded {
    match value {
        Exact::Nan { .. } => Encoded::at(
            Condition::Nan,
            match policy.nan_to_int {
                NanToInt::Zero => Some(0),
                NanToInt::Saturate => Some(f.code(f.max())),
                NanToInt::Error => None,
            },
        ),
        Exact::Inf { neg } => Encoded::at(
            Condition::Infinite,
            match policy.int_overflow {
                IntOverflow::Wrap => Some(0),
                IntOverflow::Saturate => Some(int_bound(f, neg)),
                IntOverflow::Error => None,
            },
        ),
        Exact::Finite { neg, sig, exp, sticky } => encode_whole(f, policy, neg, Whole::of(sig, exp, sticky)),
    }
}

/// Rounds a finite value of any size into an integer.
pub(crate) fn encode_whole(f: IntFormat, policy: &CastPolicy, neg: bool, whole: Whole) -> Encoded {
    let Integral { low, magnitude, exact } = whole.round(neg, policy.to_int);
    let limit = if neg { f.min().unsigned_abs() } else { f.max() as u128 };
    let code = f.code(if neg { -(low as i128) } else { low as i128 });
    if magnitude.is_some_and(|m| m <= limit) {
        return Encoded { code: Some(code), condition: (!exact).then_some(Condition::Fraction) };
    }
    Encoded::at(
        Condition::Overflow,
        match policy.int_overflow {
            IntOverflow::Wrap => Some(code),
            IntOverflow::Saturate => Some(int_bound(f, neg)),
            IntOverflow::Error => None,
        },
    )
}

const fn int_bound(f: IntFormat, neg: bool) -> u64 {
    f.code(if neg { f.min() } else { f.max() })
}

/// A magnitude cut at the point.
pub(crate) struct Whole {
    /// The part before the point, modulo 2^64.
    pub low: u64,
    /// That part is below 2^64.
    pub fits: bool,
    /// The part behind the point.
    pub remainder: Remainder,
}

impl Whole {
    fn of(sig: u64, exp: i32, sticky: bool) -> Whole {
        if exp >= 0 {
            let low = if exp < 64 { sig << exp } else { 0 };
            let fits = sig == 0 || leading(sig, exp) < 64;
            return Whole { low, fits, remainder: if sticky { Remainder::BelowHalf } else { Remainder::Zero } };
        }
        let (low, remainder) = split(sig, exp, sticky, 0);
        Whole { low, fits: true, remainder }
    }

    fn round(self, neg: bool, rounding: Rounding) -> Integral {
        let Whole { low, fits, remainder } = self;
        let more = rounding.increments(neg, low & 1 == 1, remainder) as u64;
        Integral {
            low: low.wrapping_add(more),
            magnitude: fits.then_some(low as u128 + more as u128),
            exact: remainder == Remainder::Zero,
        }
    }
}

struct Integral {
    /// The magnitude modulo 2^64.
    low: u64,
    /// The magnitude, if it is at most 2^64.
    magnitude: Option<u128>,
    exact: bool,
}

// ---- floats ----

/// Source: `docs/spec/onnx.md §4.3, §4.6, §4.7, §4.8`.
#[inline(always)]
fn encode_float(f: &FloatFormat, policy: &CastPolicy, value: Exact) -> Encoded {
    match value {
        Exact::Nan { neg, payload } => {
            let condition = f.nan_code().is_none().then_some(Condition::Nan);
            Encoded { code: Some(nan(f, policy, neg, payload)), condition }
        }
        Exact::Inf { neg: true } if !f.signed && policy.inf != Overflow::Error => {
            unrepresentable(f, policy.negative, Condition::Negative, || {
                beyond_max(f, policy.inf, Condition::Negative, false)
            })
        }
        Exact::Inf { neg } => beyond_max(f, policy.inf, Condition::Infinite, neg),
        Exact::Finite { neg, sig: 0, sticky: false, .. } => {
            let negative_zero = neg && !f.signed;
            if f.has_zero {
                return Encoded {
                    code: Some(signed(f, 0, neg)),
                    condition: negative_zero.then_some(Condition::NegativeZero),
                };
            }
            let condition = if negative_zero { Condition::NegativeZero } else { Condition::Zero };
            vanish(f, policy, condition)
        }
        Exact::Finite { neg: true, sig, exp, sticky } if !f.signed => {
            unrepresentable(f, policy.negative, Condition::Negative, || {
                let magnitude = encode_finite(f, policy, false, sig, exp, sticky);
                Encoded { condition: Some(Condition::Negative), ..magnitude }
            })
        }
        Exact::Finite { neg, sig, exp, sticky } => encode_finite(f, policy, neg, sig, exp, sticky),
    }
}

/// Rounds a nonzero finite value. With `n` units of `2^q` (hidden bit included), the magnitude's code is
/// `n + (binades above the lowest) * 2^t`: a carry out of the fraction runs into the exponent, as it must.
#[inline(always)]
fn encode_finite(f: &FloatFormat, policy: &CastPolicy, neg: bool, sig: u64, exp: i32, sticky: bool) -> Encoded {
    let t = f.man_bits as i32;
    let q = (leading(sig, exp) - t).max(f.quantum());
    let (n, remainder) = split(sig, exp, sticky, q);
    // A format without zero has its smallest value, n = 1 in the lowest binade, at code 0.
    let floor = n as i128 + ((q - f.quantum()) as i128) * (1 << t) - !f.has_zero as i128;
    let max = f.max_code() as i128;

    if policy.range == RangeTest::Source {
        if floor > max || (floor == max && remainder != Remainder::Zero) {
            return beyond_max(f, policy.overflow, Condition::Overflow, neg);
        }
        if floor < 0 {
            return vanish(f, policy, Condition::Underflow);
        }
    }

    let code = floor + policy.to_float.increments(neg, floor & 1 != 0, remainder) as i128;
    if code < 0 {
        return vanish(f, policy, Condition::Underflow);
    }
    if code > max {
        return match policy.overflow {
            Overflow::Error => Encoded::at(Condition::Overflow, None),
            rule if rule != Overflow::NonfiniteAlways && policy.to_float.stops_at_max(neg) => {
                Encoded::at(Condition::Overflow, Some(signed(f, f.max_code(), neg)))
            }
            rule => beyond_max(f, rule, Condition::Overflow, neg),
        };
    }
    let flushed = policy.subnormals.flushes_result() && (code as u64) < f.min_normal_code();
    let condition = (floor < 0).then_some(Condition::Underflow);
    Encoded { code: Some(signed(f, if flushed { 0 } else { code as u64 }, neg)), condition }
}

/// The code of a magnitude with a sign; formats without -0 lose the sign of zero.
#[inline]
fn signed(f: &FloatFormat, magnitude: u64, neg: bool) -> u64 {
    let keeps_sign = magnitude != 0 || f.has_negative_zero();
    if neg && keeps_sign { magnitude | f.sign_bit() } else { magnitude }
}

fn beyond_max(f: &FloatFormat, rule: Overflow, condition: Condition, neg: bool) -> Encoded {
    let max = signed(f, f.max_code(), neg);
    let code = match (rule, f.inf_code(), f.nan_code()) {
        (Overflow::Error, ..) => return Encoded::at(condition, None),
        (Overflow::Saturate, ..) | (_, None, None) => max,
        (Overflow::Nonfinite | Overflow::NonfiniteAlways, Some(inf), _) => signed(f, inf, neg),
        (Overflow::Nonfinite | Overflow::NonfiniteAlways, None, Some(nan)) => signed(f, nan, neg),
    };
    Encoded::at(condition, Some(code))
}

/// Nothing is left of the magnitude, so converting it gives the smallest value.
fn vanish(f: &FloatFormat, policy: &CastPolicy, condition: Condition) -> Encoded {
    unrepresentable(f, policy.vanishing, condition, || Encoded::at(condition, Some(0)))
}

fn unrepresentable(
    f: &FloatFormat,
    rule: Unrepresentable,
    condition: Condition,
    magnitude: impl FnOnce() -> Encoded,
) -> Encoded {
    match rule {
        Unrepresentable::Smallest => Encoded::at(condition, Some(0)),
        Unrepresentable::Nan => Encoded::at(condition, f.nan_code()),
        Unrepresentable::Magnitude => magnitude(),
        Unrepresentable::Error => Encoded::at(condition, None),
    }
}

/// The one NaN rule. Source: `ARCHITECTURE.md` §8, `docs/spec/onnx.md §4.9`.
fn nan(f: &FloatFormat, policy: &CastPolicy, neg: bool, payload: Option<u64>) -> u64 {
    let Some(canonical) = f.nan_code() else {
        return match policy.nan_substitute {
            NanSubstitute::ZeroFlipped => signed(f, 0, !neg),
            NanSubstitute::MaxSigned => signed(f, f.max_code(), neg),
            NanSubstitute::MaxPositive => f.max_code(),
            NanSubstitute::CodeZero => 0,
        };
    };
    let code = match (payload, f.inf_code(), policy.nan) {
        (Some(bits), Some(_), NanRule::Keep) => canonical | bits >> (64 - f.man_bits),
        _ => canonical,
    };
    if neg { code | f.sign_bit() } else { code }
}

// ---- fixed point and code books ----

/// Source: `docs/spec/tosa.md §2.1` and its block-scaled casts: round, then clamp; there is no Inf and no NaN.
fn encode_fixed(f: FixedFormat, policy: &CastPolicy, value: Exact) -> Encoded {
    match value {
        Exact::Nan { neg, .. } => {
            let code = match policy.nan_substitute {
                NanSubstitute::ZeroFlipped | NanSubstitute::CodeZero => 0,
                NanSubstitute::MaxSigned => int_bound(f.int, neg),
                NanSubstitute::MaxPositive => int_bound(f.int, false),
            };
            Encoded::at(Condition::Nan, Some(code))
        }
        Exact::Inf { neg } => end(policy.inf, Condition::Infinite, int_bound(f.int, neg)),
        Exact::Finite { neg, sig, exp, sticky } => {
            let steps = Whole::of(sig, exp + f.frac_bits as i32, sticky).round(neg, policy.to_float);
            let limit = if neg { f.int.min().unsigned_abs() } else { f.int.max() as u128 };
            match steps.magnitude {
                Some(m) if m <= limit => Encoded::plain(f.int.code(if neg { -(m as i128) } else { m as i128 })),
                _ => end(policy.overflow, Condition::Overflow, int_bound(f.int, neg)),
            }
        }
    }
}

/// Beyond the range of a type without Inf and NaN: its end, whatever `overflow` says short of `error`.
fn end(rule: Overflow, condition: Condition, code: u64) -> Encoded {
    Encoded::at(condition, if rule == Overflow::Error { None } else { Some(code) })
}

/// Source: `docs/spec/openvino.md §6.8`: a nearest rounding counts the thresholds that the value strictly exceeds. The
/// other roundings choose between the neighbouring values.
fn encode_book(book: &CodeBook, policy: &CastPolicy, value: Exact) -> Encoded {
    let last = book.values.len() as u64 - 1;
    let neg = match value {
        Exact::Nan { neg, .. } => {
            let code = match policy.nan_substitute {
                NanSubstitute::ZeroFlipped => book.zero_code,
                NanSubstitute::CodeZero => 0,
                NanSubstitute::MaxSigned if neg => 0,
                NanSubstitute::MaxSigned | NanSubstitute::MaxPositive => last,
            };
            return Encoded::at(Condition::Nan, Some(code));
        }
        Exact::Inf { neg } => return end(policy.inf, Condition::Infinite, if neg { 0 } else { last }),
        Exact::Finite { neg, .. } => neg,
    };
    let exceeded = |bits: &[u32]| bits.iter().filter(|&&b| f32_cmp(value, b) == core::cmp::Ordering::Greater).count();
    let below = exceeded(&book.values) as u64; // values strictly below the source
    if below > last {
        return end(policy.overflow, Condition::Overflow, last);
    }
    if f32_cmp(value, book.values[below as usize]) == core::cmp::Ordering::Equal {
        return Encoded::plain(below);
    }
    if below == 0 {
        return end(policy.overflow, Condition::Overflow, 0);
    }
    let (down, up) = (below - 1, below);
    let (toward_zero, away) = if neg { (up, down) } else { (down, up) };
    Encoded::plain(match policy.to_float {
        Rounding::NearestEven | Rounding::NearestAway | Rounding::NearestUp => exceeded(&book.thresholds) as u64,
        Rounding::Down => down,
        Rounding::Up => up,
        Rounding::TowardZero => toward_zero,
        Rounding::AwayFromZero => away,
        Rounding::ToOdd => down | 1, // neighbours differ by one: the odd one of them
    })
}

/// Compares a finite value with a finite f32.
fn f32_cmp(value: Exact, bits: u32) -> core::cmp::Ordering {
    let Exact::Finite { neg, sig, exp, sticky } = value else { unreachable!("finite by the caller") };
    let Exact::Finite { neg: b_neg, sig: b_sig, exp: b_exp, .. } = decode_float(&F32, bits as u64) else {
        unreachable!("code books are finite")
    };
    let sign = |neg: bool, zero: bool| {
        if zero {
            0
        } else if neg {
            -1
        } else {
            1
        }
    };
    let (a_sign, b_sign) = (sign(neg, sig == 0 && !sticky), sign(b_neg, b_sig == 0));
    if a_sign != b_sign || a_sign == 0 {
        return a_sign.cmp(&b_sign);
    }
    // Align the f32 on the grid of the value: its 24 bits fit 64 once the leading exponents are equal.
    let magnitude = leading(sig, exp).cmp(&leading(b_sig, b_exp)).then_with(|| {
        let (a, b) = ((sig as u128) << 1 | sticky as u128, (b_sig as u128) << 1);
        let shift = b_exp - exp;
        if shift >= 0 { a.cmp(&(b << shift)) } else { (a << -shift).cmp(&b) }
    });
    if neg { magnitude.reverse() } else { magnitude }
}
