//! The leading 64 bits of a decimal, without big integers: the idea of Clinger, Eisel and Lemire, for any destination.
//!
//! A decimal of at most 19 digits is `w * 10^e`. The result is exact, or 64 bits and sticky, which is enough for one
//! rounding into any format of at most 62 bits of precision; where that cannot be told here, [`leading_bits`] says
//! `None` and the definition decides.
//!
//! 1. `0 <= e <= 27`: `w * 5^e` fits 128 bits.
//! 2. `-27 <= e < 0` and `5^-e` divides `w`: the quotient is the significand.
//! 3. Otherwise the value is not a dyadic number of 64 bits. (The odd part of `w * 5^e` is at least `5^28 > 2^64`; and no
//!    power of five above `5^27` divides a 64-bit `w`.) So it lies strictly between two neighbors, and a product that
//!    bounds it within the gap between them is enough: [`POWERS`] has lower bounds, [`SLACK`] says how far they may be off.

use truecast_core::Exact;
use truecast_core::decimal::Decimal;

/// Every `w * 10^e` with 64-bit `w` is below half of the smallest f64 for smaller exponents, and above every f64 for
/// larger ones.
const LEAST: i64 = -342;
const GREATEST: i64 = 308;
/// The largest power of five below 2^64.
const MAX_SMALL: i64 = 27;
const MAX_DIGITS: usize = 19;

/// `5^k`.
const SMALL: [u64; MAX_SMALL as usize + 1] = {
    let mut powers = [1; MAX_SMALL as usize + 1];
    let mut k = 1;
    while k < powers.len() {
        powers[k] = powers[k - 1] * 5;
        k += 1;
    }
    powers
};

/// Lower bounds `t` of `10^e = t * 2^(floor(log2(10^e)) - 127)`, with the top bit set. Each step from `e = 0` loses less
/// than two units of the last place, so none is off by more than 2 * 342 * 2 units (a unit is at most twice as large,
/// relatively, as that in which it was lost).
static POWERS: [u128; (GREATEST - LEAST) as usize + 1] = {
    let mut powers = [1u128 << 127; (GREATEST - LEAST) as usize + 1];
    let one = -LEAST as usize;
    let mut i = one + 1;
    while i < powers.len() {
        let t = powers[i - 1];
        // 10/8, or 10/16 where that is 2^128 or more.
        powers[i] = match t.checked_add(t >> 2) {
            Some(sum) => sum,
            None => (t >> 1) + (t >> 3),
        };
        i += 1;
    }
    let mut i = one;
    while i > 0 {
        let t = powers[i];
        // 16/10, or 8/10 where that is 2^128 or more.
        let (quotient, rest) = (t / 5, t % 5);
        powers[i - 1] = if t >= 5 << 125 { quotient * 4 + rest * 4 / 5 } else { quotient * 8 + rest * 8 / 5 };
        i -= 1;
    }
    powers
};

/// A bound, with room to spare, of the error of a product of a 64-bit significand and a power, in units of `2^64` of the
/// product of 192 bits, doubled if that was shifted.
const SLACK: u64 = 1 << 13;

/// The value, if it is easily had.
#[inline]
pub(crate) fn leading_bits(decimal: &Decimal<'_>) -> Option<Exact> {
    let Significand { w, e, is_cut } = significand(decimal)?;
    if is_cut { None } else { product(decimal.neg, w, e) }
}

/// Values below and above one of more digits, if they are easily had: its first 19, and those and one.
pub(crate) fn bounds(decimal: &Decimal<'_>) -> Option<[Exact; 2]> {
    let Significand { w, e, is_cut } = significand(decimal)?;
    if !is_cut {
        return None;
    }
    Some([product(decimal.neg, w, e)?, product(decimal.neg, w + 1, e)?])
}

/// `w * 10^e`.
#[inline]
fn product(neg: bool, w: u64, e: i64) -> Option<Exact> {
    if w == 0 {
        return Some(Exact::Finite { neg, sig: 0, exp: 0, sticky: false });
    }
    if (0..=MAX_SMALL).contains(&e) {
        let product = w as u128 * SMALL[e as usize] as u128;
        let surplus = 64u32.saturating_sub(product.leading_zeros());
        let sticky = product & ((1 << surplus) - 1) != 0;
        return Some(Exact::Finite { neg, sig: (product >> surplus) as u64, exp: e as i32 + surplus as i32, sticky });
    }
    if (-MAX_SMALL..0).contains(&e) && w.is_multiple_of(SMALL[-e as usize]) {
        return Some(Exact::Finite { neg, sig: w / SMALL[-e as usize], exp: e as i32, sticky: false });
    }
    if !(LEAST..=GREATEST).contains(&e) {
        return None;
    }
    let power = POWERS[(e - LEAST) as usize];
    let zeros = w.leading_zeros();
    let w = w << zeros;
    // The upper 128 of 192 bits.
    let product = w as u128 * (power >> 64) + ((w as u128 * (power as u64) as u128) >> 64);
    let shift = product.leading_zeros();
    let product = product << shift;
    (product as u64).checked_add(SLACK)?;
    // floor(e * log2(10)), exact in this range
    let exponent = ((e * 217_706) >> 16) as i32 - 127;
    let exp = exponent + 128 - zeros as i32 - shift as i32;
    Some(Exact::Finite { neg, sig: (product >> 64) as u64, exp, sticky: true })
}

/// The first 19 significant digits of a decimal.
struct Significand {
    w: u64,
    /// Power of ten of the last of them.
    e: i64,
    /// There are more, and they are not all zero.
    is_cut: bool,
}

/// `None` if the exponent overflows.
#[inline]
fn significand(decimal: &Decimal<'_>) -> Option<Significand> {
    let Decimal { mut whole, mut fraction, exponent, .. } = *decimal;
    let mut e = exponent.checked_sub(fraction.len() as i64)?;
    if whole.len() + fraction.len() > MAX_DIGITS {
        whole = &whole[zeros(whole.iter())..];
        if whole.is_empty() {
            fraction = &fraction[zeros(fraction.iter())..];
        }
        let behind = zeros(fraction.iter().rev());
        fraction = &fraction[..fraction.len() - behind];
        let before = if fraction.is_empty() { zeros(whole.iter().rev()) } else { 0 };
        whole = &whole[..whole.len() - before];
        e = e.checked_add((behind + before) as i64)?;
    }
    let surplus = (whole.len() + fraction.len()).saturating_sub(MAX_DIGITS);
    if surplus > 0 {
        // The last digit is not zero.
        e = e.checked_add(surplus as i64)?;
        let kept = fraction.len().saturating_sub(surplus);
        whole = &whole[..whole.len() - (surplus - (fraction.len() - kept))];
        fraction = &fraction[..kept];
    }
    let push = |w: u64, digit: &u8| w * 10 + (digit - b'0') as u64;
    let w = fraction.iter().fold(whole.iter().fold(0, push), push);
    Some(Significand { w, e, is_cut: surplus > 0 })
}

fn zeros<'a>(digits: impl Iterator<Item = &'a u8>) -> usize {
    digits.take_while(|digit| **digit == b'0').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::decimal::{Number, scan};

    fn both(text: &str) -> (Option<Exact>, Exact) {
        let Ok(Number::Decimal(decimal)) = scan(text.as_bytes()) else { panic!("{text}") };
        (leading_bits(&decimal), decimal.to_exact())
    }

    /// The same value as a full 64-bit significand.
    fn full(exact: Exact) -> Exact {
        let Exact::Finite { neg, sig, exp, sticky } = exact else { panic!("finite") };
        let zeros = if sig == 0 { 0 } else { sig.leading_zeros() };
        Exact::Finite { neg, sig: sig << zeros, exp: if sig == 0 { 0 } else { exp - zeros as i32 }, sticky }
    }

    /// Against long division: every power of the table, with the significands that are hardest to multiply.
    #[test]
    fn every_power() {
        let mut decided = 0;
        for e in LEAST..=GREATEST {
            for w in
                [1, 3, 5, 7, 9, 1 << 63, (1 << 63) - 1, 9_999_999_999_999_999_999, 1234567890123456789, 5u64.pow(27)]
            {
                let (quick, slow) = both(&format!("{w}e{e}"));
                if let Some(quick) = quick {
                    decided += 1;
                    assert_eq!(full(quick), full(slow), "{w}e{e}");
                }
            }
        }
        assert_eq!(decided, 651 * 10, "none of these is near a boundary");
    }

    #[test]
    fn random_decimals() {
        let mut random = fastrand::Rng::with_seed(6);
        for _ in 0..100_000 {
            let w = random.u64(0..10u64.pow(19)) >> random.u32(0..64);
            let text = format!("{w}e{}", random.i64(LEAST..=GREATEST));
            let (quick, slow) = both(&text);
            assert_eq!(quick.map(full), Some(full(slow)), "{text}");
        }
    }

    /// In units of the last of 64 bits the bounds are close, and the value lies between them.
    #[test]
    fn bounds_enclose() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let (a, b) = (random.u64(..), random.u64(1 << 40..));
            let text = match random.u32(0..3) {
                0 => format!("{a}{b}e{}", random.i64(-330..280)),
                1 => format!("{a}.{b}e{}", random.i64(-330..280)),
                _ => format!("0.000{a}{b}"),
            };
            let Ok(Number::Decimal(decimal)) = scan(text.as_bytes()) else { panic!("{text}") };
            let Some(bounds) = bounds(&decimal) else {
                assert!(leading_bits(&decimal).is_some(), "{text}");
                continue;
            };
            let scaled = |exact| match full(exact) {
                Exact::Finite { sig, exp, sticky, .. } => (exp, sig, sticky),
                _ => panic!("finite"),
            };
            let [below, value, above] = [bounds[0], decimal.to_exact(), bounds[1]].map(scaled);
            assert!(below <= value && value <= above, "{text}");
            assert!(below.0 != above.0 || above.1 - below.1 < 32, "{text}");
        }
    }

    #[test]
    fn zeros_do_not_count_as_digits() {
        for text in [
            "0.00000000000000000000000000000000000000125",
            "125000000000000000000000000000000000000000",
            "1.25000000000000000000000000000000000000000",
            "00000000000000000000000000000000000000001.5e3",
            "0.000000000000000000000000000000000000000",
        ] {
            let (quick, slow) = both(text);
            assert_eq!(quick.map(full), Some(full(slow)), "{text}");
        }
        assert!(both("1.0000000000000000000000001").0.is_none(), "only bounded");
        assert!(both("1e400").0.is_none() && both("1e-99999999999999999999").0.is_none());
    }
}
