//! Source codes at which the result of a conversion can change: around values and midpoints of the destination. Valid
//! for every policy.

use super::dyadic::Magnitude;
use super::format::{Class, Format, NF4_THRESHOLDS, NF4_VALUES, Type, Value, all_ones, f32_value};

/// Source codes to test from `src` to `dst`; sorted, without duplicates.
///
/// A source of at most 19 bits has all its codes. Any other source has, with both signs, the codes at and around (one
/// and two ulps):
/// - each value of `dst`, and each midpoint of neighbors; for a destination of more than 16 bits a selection
/// - each power of two
/// - zeros, infinities, NaN patterns, extremes
/// - for an integer destination, some values out of range
pub fn boundaries(src: Type, dst: Type) -> Vec<u64> {
    if src.bits() <= 19 {
        return (0..=all_ones(src.bits())).collect();
    }
    let mut codes = Vec::new();
    specials(src, &mut codes);
    for mark in powers_of_two(src).into_iter().chain(marks(dst)) {
        around(src, mark, &mut codes);
    }
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Magnitudes at which the result of a conversion to `dst` can change.
fn marks(dst: Type) -> Vec<Magnitude> {
    match dst.class() {
        Class::Float(format) => {
            let beyond = format.max_finite() + 1;
            let mut marks = Vec::new();
            let mut mark = |code| {
                marks.push(format.value(code));
                marks.push(format.value(code).midpoint(format.value(code + 1)));
            };
            if dst.bits() <= 16 {
                (0..=beyond).for_each(&mut mark);
            } else {
                selected(format).into_iter().for_each(&mut mark);
            }
            // Points between zero and the smallest value.
            marks.extend((0..4).map(|k| format.value(u64::from(format.has_zero)).times_power_of_two(-k)));
            marks
        }
        Class::Int { bits, .. } => {
            let integers: Vec<u128> =
                if bits <= 16 { (0..=(1 << bits) + 2).collect() } else { selected_integers(bits) };
            let fits = |n: &u128| n.checked_shr(n.trailing_zeros()).unwrap_or(0) <= u128::from(u64::MAX);
            let values = integers.iter().filter(|n| fits(n)).map(|&n| Magnitude::new(n, 0));
            // From 2^63 on, no source has a value between two integers.
            let middles = integers.iter().filter(|n| **n < 1 << 63).map(|&n| Magnitude::new(2 * n + 1, -1));
            values.chain(middles).collect()
        }
        Class::Bool => vec![Magnitude::ZERO],
        // Includes some values beyond the range, because the largest value also has a midpoint above.
        Class::MxInt8 => (0..=260).map(|halves| Magnitude::new(halves, -7)).collect(),
        Class::Nf4 => NF4_VALUES.iter().chain(&NF4_THRESHOLDS).filter_map(|&bits| magnitude(f32_value(bits))).collect(),
    }
}

fn magnitude(value: Value) -> Option<Magnitude> {
    match value {
        Value::Finite { magnitude, .. } => Some(magnitude),
        _ => None,
    }
}

/// Magnitude codes of a wide float format. For each exponent: fractions near the ends and the middle, two alternating
/// fractions, and single-bit fractions. f64 has single-bit fractions only at few exponents.
fn selected(format: Format) -> Vec<u64> {
    let ones = all_ones(format.fraction_bits);
    let quarters = [0, ones / 4 + 1, ones / 2, ones / 2 + 1, ones / 2 + 2, ones - ones / 4];
    let ends = [1, 2, 3, ones - 2, ones - 1, ones, ones / 3, ones - ones / 3];
    let last = all_ones(format.exponent_bits) - 1;
    let one = format.bias as u64;
    let mut codes = vec![format.max_finite() + 1];
    for exponent in 0..=last {
        let base = exponent << format.fraction_bits;
        codes.extend(quarters.iter().chain(&ends).map(|fraction| base | fraction));
        // The ends, exponents around 1, and exponents at which 64-bit integers are inexact.
        let few = exponent <= 2
            || exponent >= last - 1
            || (one - 1..=one + 1).contains(&exponent)
            || (one + 52..=one + 64).contains(&exponent);
        if format.exponent_bits <= 8 || few {
            codes.extend((0..format.fraction_bits).flat_map(|bit| [base | (1 << bit), base | (ones ^ (1 << bit))]));
        }
    }
    codes
}

/// Integers that have at most a few bits more than `bits`: sums and differences of two powers of two, alternating bits,
/// and the neighbors of these.
fn selected_integers(bits: u32) -> Vec<u128> {
    let mut centers: Vec<u128> = vec![0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA];
    for high in 0..bits + 2 {
        centers.push(1 << high);
        centers.extend((0..high).flat_map(|low| [(1 << high) + (1 << low), (1 << high) - (1 << low)]));
    }
    let near = |n: u128| n.saturating_sub(2)..=n + 2;
    centers.into_iter().flat_map(near).collect()
}

/// Powers of two within the range of the type, and midpoints between them.
fn powers_of_two(src: Type) -> Vec<Magnitude> {
    let exponents = match src.class() {
        Class::Float(format) => {
            let (least, last) = (format.value(1), format.value(format.max_finite() + 1));
            (0..).map(|k| least.times_power_of_two(k)).take_while(|power| *power <= last).collect()
        }
        _ => (0..=src.bits() as i32).map(|k| Magnitude::new(1, k)).collect::<Vec<_>>(),
    };
    exponents.into_iter().flat_map(|power| [power, power.midpoint(power.times_power_of_two(1))]).collect()
}

/// Adds the codes of `src` at and around `mark`: two or three codes on each side.
fn around(src: Type, mark: Magnitude, codes: &mut Vec<u64>) {
    match src.class() {
        Class::Float(format) => {
            let max = format.max_finite();
            // The lower neighbor; a wide source always has a zero.
            let lower = src.count_not_above(format, mark).saturating_sub(1);
            for code in lower.saturating_sub(2)..=(lower + 3).min(max) {
                codes.push(code);
                codes.push(format.encode(true, code));
            }
        }
        Class::Int { signed, bits } => {
            let (min, max) =
                if signed { (-(1i128 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
            // An integer source has no codes near a value far out of range.
            let Some(floor) = mark.floor().filter(|floor| *floor <= 1 << 65) else { return };
            for n in floor as i128 - 2..=floor as i128 + 3 {
                codes.extend([n, -n].into_iter().filter(|n| min <= *n && *n <= max).map(|n| src.mask(n as u64)));
            }
        }
        // These types are not wide.
        Class::Bool | Class::MxInt8 | Class::Nf4 => {}
    }
}

fn specials(src: Type, codes: &mut Vec<u64>) {
    match src.class() {
        Class::Float(format) => {
            let infinity = format.max_finite() + 1;
            let quiet = 1u64 << (format.fraction_bits - 1);
            let mut magnitudes =
                vec![0, 1, 2, quiet * 2 - 1, quiet * 2, format.max_finite() - 1, format.max_finite(), infinity];
            // Each payload bit alone, all lower bits, and all higher bits; in a signaling and in a quiet NaN.
            for bit in 0..format.fraction_bits {
                for fraction in [1 << bit, (1 << bit) - 1, (quiet - 1) & !((1 << bit) - 1)] {
                    magnitudes
                        .extend([fraction, fraction | quiet].into_iter().filter(|f| *f != 0).map(|f| infinity | f));
                }
            }
            codes.extend(magnitudes.iter().flat_map(|&code| [code, format.sign(true) | code]));
        }
        _ => {
            let ones = all_ones(src.bits());
            let top = ones - ones / 2;
            codes.extend([0, 1, 2, ones, ones - 1, top, top + 1, top - 1, top - 2, ones / 3, ones - ones / 3]);
        }
    }
}
