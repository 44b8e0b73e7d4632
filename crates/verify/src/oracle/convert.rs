//! Conversion of one code: rules in order of application. Sources: `docs/spec/onnx.md §4`, `docs/spec/openvino.md §6`.

use std::cmp::Ordering;

use super::dyadic::Magnitude;
use super::format::{Class, Format, NF4_THRESHOLDS, NF4_VALUES, Specials, Type, Value, all_ones, f32_value};
use super::policy::{
    IntOverflow, Nan, NanSubstitute, NanToInt, Negative, OnRange, Policy, Range, Rounding, Subnormals, Vanishing,
};

/// Converts one code of `src` to a code of `dst`.
///
/// Result: the code under `policy`, or `None` if an `Error` rule refuses the conversion. Bits of `code` above the width
/// of `src` are ignored. Cost: a search among the values of `dst`.
pub fn convert(src: Type, dst: Type, policy: &Policy, code: u64) -> Option<u64> {
    if let Some(via) = policy.via {
        let each = Policy { via: None, ..*policy };
        let second = Policy { scale_exponent: 0, ..each };
        return convert(via, dst, &second, convert(src, via, &each, code)?);
    }
    let code = src.mask(code);
    let result = match src.decode(code) {
        Value::Nan { .. } if policy.nan == Nan::Error => None,
        Value::Nan { .. } if policy.relu => convert_nan(src, dst, &Policy { nan: Nan::Canonical, ..*policy }, false, 0),
        Value::Inf { negative: true } | Value::Finite { negative: true, .. } if policy.relu => {
            convert_finite(dst, policy, false, Magnitude::ZERO)
        }
        Value::Nan { .. } if policy.nan == Nan::Keep && src == dst => Some(code),
        Value::Nan { negative, fraction } => convert_nan(src, dst, policy, negative, fraction),
        Value::Inf { negative } => convert_inf(dst, policy, negative),
        // A value, so that zero has a sign even if the source format has no code for -0.
        Value::Finite { negative, .. }
            if policy.subnormals != Subnormals::FlushResult && is_flushed(src, policy, code) =>
        {
            convert_finite(dst, policy, negative, Magnitude::ZERO)
        }
        Value::Finite { negative, magnitude } => {
            convert_finite(dst, policy, negative, magnitude.times_power_of_two(policy.scale_exponent))
        }
    };
    result.map(|code| match dst.class() {
        Class::Float(format) if policy.subnormals != Subnormals::FlushSource && is_flushed(dst, policy, code) => {
            format.encode(code & format.sign(true) != 0, 0)
        }
        _ => code,
    })
}

fn is_flushed(of: Type, policy: &Policy, code: u64) -> bool {
    match of.class() {
        Class::Float(format) => {
            policy.subnormals != Subnormals::Keep && format.is_subnormal(code & all_ones(format.magnitude_bits()))
        }
        _ => false,
    }
}

fn convert_nan(src: Type, dst: Type, policy: &Policy, negative: bool, fraction: u64) -> Option<u64> {
    match dst.class() {
        Class::Float(format) => Some(match format.specials {
            Specials::Ieee => {
                let quiet = 1 << (format.fraction_bits - 1);
                let payload = match src.class() {
                    // The fractions are left-aligned.
                    Class::Float(from) if policy.nan == Nan::Keep && from.specials == Specials::Ieee => {
                        let at_top = fraction << (64 - from.fraction_bits);
                        at_top >> (64 - format.fraction_bits)
                    }
                    _ => 0,
                };
                format.sign(negative) | (all_ones(format.exponent_bits) << format.fraction_bits) | quiet | payload
            }
            Specials::Fn | Specials::Fnuz => nan_of(format, negative),
            Specials::Finite => match (policy.nan_substitute, negative) {
                (NanSubstitute::ZeroFlipped, _) => format.sign(!negative),
                (NanSubstitute::MaxSigned, _) => format.encode(negative, format.max_finite()),
                (NanSubstitute::MaxPositive, _) => format.max_finite(),
                (NanSubstitute::CodeZero, _) => 0,
            },
        }),
        Class::MxInt8 => Some(match (policy.nan_substitute, negative) {
            (NanSubstitute::ZeroFlipped | NanSubstitute::CodeZero, _) => 0,
            (NanSubstitute::MaxSigned, true) => 0x80,
            (NanSubstitute::MaxSigned, false) | (NanSubstitute::MaxPositive, _) => 0x7F,
        }),
        Class::Nf4 => Some(match (policy.nan_substitute, negative) {
            (NanSubstitute::ZeroFlipped, _) => 7,
            (NanSubstitute::MaxSigned, true) | (NanSubstitute::CodeZero, _) => 0,
            (NanSubstitute::MaxSigned, false) | (NanSubstitute::MaxPositive, _) => 0xF,
        }),
        Class::Int { signed, bits } => match policy.nan_to_int {
            NanToInt::Zero => Some(0),
            NanToInt::Saturate => Some(code_of_integer(integer_bounds(signed, bits).1, bits)),
            NanToInt::Indefinite => Some(if signed { 1 << (bits - 1) } else { all_ones(bits) }),
            NanToInt::TopBit => Some(1 << (bits - 1)),
            NanToInt::Error => None,
        },
        Class::Bool => Some(1),
    }
}

fn convert_inf(dst: Type, policy: &Policy, negative: bool) -> Option<u64> {
    match dst.class() {
        Class::Float(_) | Class::MxInt8 | Class::Nf4 if policy.inf == OnRange::Error => None,
        Class::Float(format) if negative && !format.signed => match policy.negative {
            Negative::Smallest => Some(0),
            Negative::Nan => Some(nan_of(format, false)),
            Negative::Magnitude => beyond_max(format, policy.inf, false),
            Negative::Error => None,
        },
        Class::Float(format) => beyond_max(format, policy.inf, negative),
        Class::MxInt8 => Some(if negative { 0x80 } else { 0x7F }),
        Class::Nf4 => Some(if negative { 0 } else { 0xF }),
        Class::Int { signed, bits } => {
            let (min, max) = integer_bounds(signed, bits);
            match policy.int_overflow {
                IntOverflow::Wrap => Some(0),
                IntOverflow::Saturate => Some(code_of_integer(if negative { min } else { max }, bits)),
                IntOverflow::SaturateToF32 => {
                    Some(code_of_integer(nearest_f32_within(if negative { min } else { max }), bits))
                }
                IntOverflow::Indefinite => Some(if signed { 1 << (bits - 1) } else { all_ones(bits) }),
                IntOverflow::Error => None,
            }
        }
        Class::Bool => Some(1),
    }
}

fn convert_finite(dst: Type, policy: &Policy, negative: bool, x: Magnitude) -> Option<u64> {
    match dst.class() {
        Class::Float(format) => convert_to_float(dst, format, policy, negative, x),
        Class::Int { signed, bits } => convert_to_integer(signed, bits, policy, negative, x),
        Class::Bool => Some(u64::from(!x.is_zero())),
        Class::MxInt8 => convert_to_mxint8(policy, negative, x),
        Class::Nf4 => convert_to_nf4(policy, negative, x),
    }
}

// -------------------- float formats

fn convert_to_float(dst: Type, format: Format, policy: &Policy, negative: bool, x: Magnitude) -> Option<u64> {
    if x.is_zero() {
        return if format.has_zero { Some(format.encode(negative, 0)) } else { vanishing(format, policy) };
    }
    if negative && !format.signed {
        return match policy.negative {
            Negative::Smallest => Some(0),
            Negative::Nan => Some(nan_of(format, false)),
            Negative::Magnitude => convert_to_float(dst, format, policy, false, x),
            Negative::Error => None,
        };
    }
    let max = format.max_finite();
    if policy.range == Range::Source {
        if x > format.value(max) {
            return beyond_max(format, policy.overflow, negative);
        }
        if !format.has_zero && x < format.value(0) {
            return vanishing(format, policy);
        }
    }
    match round_to_grid(dst, format, policy.to_float, negative, x) {
        None => vanishing(format, policy),
        Some(code) if code <= max => Some(format.encode(negative, code)),
        Some(_) => {
            let inward = match policy.to_float {
                Rounding::TowardZero | Rounding::ToOdd => true,
                Rounding::Up => negative,
                Rounding::Down => !negative,
                Rounding::NearestEven | Rounding::NearestAway | Rounding::NearestUp | Rounding::AwayFromZero => false,
            };
            let rule = match policy.overflow {
                OnRange::Nonfinite if inward => OnRange::Saturate,
                rule => rule,
            };
            beyond_max(format, rule, negative)
        }
    }
}

/// Magnitude code to which a nonzero x rounds; a code above the largest finite one means overflow. `None` if the result
/// would be zero, but the format has no zero.
fn round_to_grid(dst: Type, format: Format, rounding: Rounding, negative: bool, x: Magnitude) -> Option<u64> {
    let upper_code = dst.count_not_above(format, x);
    // In a format without zero, 0 is the neighbor below the smallest value, and counts as an odd code.
    let (lower, lower_is_odd) = match upper_code.checked_sub(1) {
        Some(lower_code) => (format.value(lower_code), lower_code % 2 == 1),
        None => (Magnitude::ZERO, true),
    };
    if x == lower || upper_code > format.max_finite() + 1 {
        return upper_code.checked_sub(1);
    }
    let middle = lower.midpoint(format.value(upper_code));
    if goes_up(rounding, negative, x.cmp(&middle), lower_is_odd) { Some(upper_code) } else { upper_code.checked_sub(1) }
}

/// True if a value between two neighbors rounds to the larger magnitude.
fn goes_up(rounding: Rounding, negative: bool, to_middle: Ordering, lower_is_odd: bool) -> bool {
    match rounding {
        Rounding::NearestEven => to_middle == Ordering::Greater || (to_middle == Ordering::Equal && lower_is_odd),
        Rounding::NearestAway => to_middle != Ordering::Less,
        Rounding::NearestUp => to_middle == Ordering::Greater || (to_middle == Ordering::Equal && !negative),
        Rounding::TowardZero => false,
        Rounding::AwayFromZero => true,
        Rounding::Up => !negative,
        Rounding::Down => negative,
        Rounding::ToOdd => !lower_is_odd,
    }
}

/// Code for infinity, or for a finite value that is too large.
fn beyond_max(format: Format, rule: OnRange, negative: bool) -> Option<u64> {
    let max = format.encode(negative, format.max_finite());
    match rule {
        OnRange::Error => None,
        OnRange::Saturate => Some(max),
        OnRange::Nonfinite | OnRange::NonfiniteAlways => Some(match format.specials {
            Specials::Ieee => format.sign(negative) | (format.max_finite() + 1),
            Specials::Fn | Specials::Fnuz => nan_of(format, negative),
            Specials::Finite => max,
        }),
    }
}

fn nan_of(format: Format, negative: bool) -> u64 {
    match format.specials {
        Specials::Fnuz => format.sign(true),
        _ => format.sign(negative) | all_ones(format.magnitude_bits()),
    }
}

fn vanishing(format: Format, policy: &Policy) -> Option<u64> {
    match policy.vanishing {
        Vanishing::Smallest => Some(0),
        Vanishing::Nan => Some(nan_of(format, false)),
        Vanishing::Error => None,
    }
}

// -------------------- integers

/// Rounds x to an integer. `None` if the magnitude is 2^127 or more; x is then a multiple of 2^64.
fn round_to_integer(rounding: Rounding, negative: bool, x: Magnitude) -> Option<i128> {
    let floor = x.floor()?;
    let up = x != Magnitude::new(floor, 0) && {
        let middle = Magnitude::new(2 * floor + 1, -1);
        goes_up(rounding, negative, x.cmp(&middle), floor % 2 == 1)
    };
    let magnitude = floor as i128 + i128::from(up);
    Some(if negative { -magnitude } else { magnitude })
}

fn integer_bounds(signed: bool, bits: u32) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Bound of an integer range. If the bound is not an f32 value, the next f32 toward zero.
fn nearest_f32_within(bound: i128) -> i128 {
    let near = bound as f32;
    let beyond = (near as i128).unsigned_abs() > bound.unsigned_abs();
    (if !beyond {
        near
    } else if bound < 0 {
        near.next_up()
    } else {
        near.next_down()
    }) as i128
}

/// t modulo 2^bits: two's complement of an integer in range, wrapped code of any other integer.
fn code_of_integer(t: i128, bits: u32) -> u64 {
    t.rem_euclid(1 << bits) as u64
}

fn convert_to_integer(signed: bool, bits: u32, policy: &Policy, negative: bool, x: Magnitude) -> Option<u64> {
    let (min, max) = integer_bounds(signed, bits);
    let rounded = round_to_integer(policy.to_int, negative, x);
    if let Some(t) = rounded
        && min <= t
        && t <= max
    {
        return Some(code_of_integer(t, bits));
    }
    match policy.int_overflow {
        // A magnitude of 2^127 or more is a multiple of 2^64, and thus of 2^bits.
        IntOverflow::Wrap => Some(rounded.map_or(0, |t| code_of_integer(t, bits))),
        IntOverflow::Saturate => Some(code_of_integer(if negative { min } else { max }, bits)),
        IntOverflow::SaturateToF32 => Some(code_of_integer(nearest_f32_within(if negative { min } else { max }), bits)),
        IntOverflow::Indefinite => Some(if signed { 1 << (bits - 1) } else { all_ones(bits) }),
        IntOverflow::Error => None,
    }
}

// -------------------- mxint8 and nf4

fn convert_to_mxint8(policy: &Policy, negative: bool, x: Magnitude) -> Option<u64> {
    let rounded = round_to_integer(policy.to_float, negative, x.times_power_of_two(6));
    match rounded {
        Some(n @ -128..=127) => Some(code_of_integer(n, 8)),
        _ if policy.overflow == OnRange::Error => None,
        _ => Some(if negative { 0x80 } else { 0x7F }),
    }
}

fn convert_to_nf4(policy: &Policy, negative: bool, x: Magnitude) -> Option<u64> {
    let compare = |bits: u32| compare_with(negative, x, f32_value(bits));
    if x > Magnitude::new(1, 0) {
        return if policy.overflow == OnRange::Error { None } else { Some(if negative { 0 } else { 0xF }) };
    }
    // For -1 <= x <= 1 both neighbors exist. Both are the same code if x is a code value.
    let below = NF4_VALUES.iter().rposition(|&value| compare(value) != Ordering::Less)? as u64;
    let above = NF4_VALUES.iter().position(|&value| compare(value) != Ordering::Greater)? as u64;
    Some(match policy.to_float {
        Rounding::NearestEven | Rounding::NearestAway | Rounding::NearestUp => {
            NF4_THRESHOLDS.iter().filter(|&&threshold| compare(threshold) == Ordering::Greater).count() as u64
        }
        Rounding::Down => below,
        Rounding::Up => above,
        Rounding::TowardZero => {
            if negative {
                above
            } else {
                below
            }
        }
        Rounding::AwayFromZero => {
            if negative {
                below
            } else {
                above
            }
        }
        Rounding::ToOdd => {
            if below == above || below % 2 == 1 {
                below
            } else {
                above
            }
        }
    })
}

/// Compares ±x with a finite value. -0 equals +0.
fn compare_with(negative: bool, x: Magnitude, value: Value) -> Ordering {
    let Value::Finite { negative: other_negative, magnitude } = value else { return Ordering::Equal };
    match (negative && !x.is_zero(), other_negative && !magnitude.is_zero()) {
        (false, false) => x.cmp(&magnitude),
        (true, true) => magnitude.cmp(&x),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}
