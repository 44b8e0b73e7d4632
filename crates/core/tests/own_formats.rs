//! Custom formats against an independent implementation. It computes values as f64 from the fields of a code, and finds
//! neighbors by search.

use core::cmp::Ordering;
use truecast_core::exact::{decode, decode_float, encode_float};
use truecast_core::format::{F16, FormatError};
use truecast_core::policy::{Condition, Overflow, Unrepresentable};
use truecast_core::{CastPolicy, DType, Exact, FloatFormat, Rounding, Specials};
use truecast_testkit::random::Random;

/// Finite value of a magnitude; exact in f64.
fn value(f: &FloatFormat, magnitude: u64) -> f64 {
    let (field, fraction) = (magnitude >> f.man_bits, magnitude & ((1 << f.man_bits) - 1));
    let fraction = fraction as f64 / (1u64 << f.man_bits) as f64;
    let bias = i32::from(f.bias);
    if f.has_zero && field == 0 {
        fraction * 2f64.powi(1 - bias)
    } else {
        (1.0 + fraction) * 2f64.powi(field as i32 - bias)
    }
}

fn numbers(f: &FloatFormat) -> u64 {
    let all = 1 << (f.exp_bits + f.man_bits);
    match f.specials {
        Specials::Ieee => all - (1 << f.man_bits),
        Specials::Fn => all - 1,
        Specials::Extended => all - 1 - u64::from(!f.signed),
        Specials::Fnuz | Specials::Finite => all,
    }
}

fn has_lone_nan(f: &FloatFormat) -> bool {
    f.signed && matches!(f.specials, Specials::Fnuz | Specials::Extended)
}

fn exact(x: f64) -> Exact {
    decode(DType::F64, x.to_bits())
}

/// Formats of 5 to 10 bits that are in no table of the crate.
fn formats() -> Vec<FloatFormat> {
    let ieee = |e, m| FloatFormat::ieee(e, m).unwrap();
    let all = vec![
        ieee(3, 3),
        ieee(2, 4),
        FloatFormat { bias: 9, ..ieee(4, 4) },
        FloatFormat { specials: Specials::Fn, signed: false, ..ieee(4, 3) },
        FloatFormat { specials: Specials::Finite, ..ieee(3, 1) },
        FloatFormat { specials: Specials::Fnuz, bias: 8, ..ieee(4, 2) },
        FloatFormat { specials: Specials::Extended, ..ieee(4, 2) },
        FloatFormat { specials: Specials::Extended, signed: false, ..ieee(3, 1) },
        // Formats without zero. They are like E8M0, but have a fraction, a sign or infinities.
        FloatFormat { specials: Specials::Fn, signed: false, has_zero: false, ..ieee(4, 3) },
        FloatFormat { specials: Specials::Finite, has_zero: false, ..ieee(3, 2) },
        FloatFormat { has_zero: false, bias: 0, ..ieee(4, 1) },
        FloatFormat { specials: Specials::Extended, signed: false, has_zero: false, ..ieee(3, 2) },
        FloatFormat { signed: false, exp_bits: 5, man_bits: 0, bias: 20, specials: Specials::Fn, has_zero: false },
    ];
    all.iter().for_each(|f| assert_eq!(f.check(), Ok(()), "{f:?}"));
    all
}

#[test]
fn binary16_by_hand() {
    let hand =
        FloatFormat { signed: true, exp_bits: 5, man_bits: 10, bias: 15, specials: Specials::Ieee, has_zero: true };
    assert_eq!((hand.check(), FloatFormat::ieee(5, 10)), (Ok(()), Ok(F16)));
    for code in 0..=0xffff {
        let value = decode_float(&hand, code);
        assert_eq!(value, decode(DType::F16, code));
        match value {
            Exact::Nan { neg, payload } => assert_eq!((neg, payload.is_some()), (code >> 15 == 1, true)),
            _ => assert_eq!(encode_float(&hand, &CastPolicy::IEEE, value).code, Some(code)),
        }
    }
}

#[test]
fn codes_by_their_fields() {
    for f in formats() {
        for magnitude in 0..numbers(&f) {
            for sign in if f.signed { vec![0, f.sign_bit()] } else { vec![0] } {
                let x = value(&f, magnitude);
                if has_lone_nan(&f) && sign != 0 && magnitude == 0 {
                    assert!(matches!(decode_float(&f, sign), Exact::Nan { .. }));
                    continue;
                }
                let read = decode_float(&f, magnitude | sign);
                assert_eq!(
                    read.cmp_value(exact(if sign != 0 { -x } else { x })),
                    Ordering::Equal,
                    "{f:?} {magnitude:#x}"
                );
                assert_eq!(
                    encode_float(&f, &CastPolicy::IEEE, read).code,
                    Some(magnitude | sign),
                    "{f:?} {magnitude:#x}"
                );
            }
        }
    }
}

/// True if a value between two neighbors rounds to the upper neighbor; `odd` is the parity of the lower neighbor's
/// code.
fn takes_upper(rounding: Rounding, neg: bool, odd: bool, to_lower: f64, to_upper: f64) -> bool {
    let tie = to_lower == to_upper;
    match rounding {
        Rounding::NearestEven => to_upper < to_lower || tie && odd,
        Rounding::NearestAway => to_upper <= to_lower,
        Rounding::NearestUp => to_upper < to_lower || tie && !neg,
        Rounding::TowardZero => false,
        Rounding::AwayFromZero => true,
        Rounding::Up => !neg,
        Rounding::Down => neg,
        Rounding::ToOdd => !odd,
    }
}

/// Code of a nonzero number, at most one step beyond the range; `None` if the number rounds below the smallest value.
fn searched(f: &FloatFormat, rounding: Rounding, x: f64) -> Option<u64> {
    let (neg, x) = (x < 0.0, x.abs());
    let lower = (0..numbers(f)).rev().find(|&m| value(f, m) <= x);
    let (below, next) = match lower {
        Some(m) if value(f, m) == x => return Some(m | if neg { f.sign_bit() } else { 0 }),
        Some(m) => (value(f, m), m + 1),
        None => (0.0, 0), // only in a format without zero: zero, then the smallest value
    };
    let above = value(f, next); // beyond the last number: the value that the code would have
    let is_odd = lower.is_none_or(|m| m % 2 == 1);
    let code = if takes_upper(rounding, neg, is_odd, x - below, above - x) { next } else { lower? };
    Some(code | if neg && (code != 0 || !f.has_zero || !has_lone_nan(f)) { f.sign_bit() } else { 0 })
}

#[test]
fn every_rounding() {
    let mut random = Random::new("own_formats");
    for f in formats() {
        let smallest = (0..numbers(&f)).map(|m| value(&f, m)).find(|x| *x > 0.0).unwrap();
        let mut places = vec![smallest / 2.0, smallest / 4.0, smallest * 0.75, smallest.next_down()];
        for m in 1..numbers(&f) {
            let (a, b) = (value(&f, m - 1), value(&f, m));
            let middle = (a + b) / 2.0;
            places.extend([b, middle, middle.next_down(), middle.next_up(), b.next_down()]);
            places.push(a + (b - a) * (random.next() >> 12) as f64 / (1u64 << 52) as f64);
        }
        places.retain(|x| *x > 0.0);
        for rounding in Rounding::ALL {
            let policy = CastPolicy { to_float: rounding, vanishing: Unrepresentable::Error, ..CastPolicy::IEEE };
            for x in places.iter().flat_map(|&x| [x, -x]).filter(|x| f.signed || *x > 0.0) {
                let got = encode_float(&f, &policy, exact(x));
                assert_eq!(got.code, searched(&f, rounding, x), "{f:?} {rounding} {x:e}");
            }
        }
    }
}

#[test]
fn beyond_the_largest() {
    for f in formats() {
        let (max, step) = (value(&f, numbers(&f) - 1), value(&f, numbers(&f)));
        let threshold = (max + step) / 2.0;
        let nonfinite = encode_float(&f, &CastPolicy::IEEE, exact(threshold.next_up()));
        assert_eq!(nonfinite.condition, Some(Condition::Overflow));
        let is_special = |code| !matches!(decode_float(&f, code), Exact::Finite { .. });
        assert_eq!(nonfinite.code.is_some_and(is_special), f.specials != Specials::Finite, "{f:?}");
        assert_eq!(encode_float(&f, &CastPolicy::IEEE, exact(threshold.next_down())).code, Some(numbers(&f) - 1));
        let saturate = CastPolicy { overflow: Overflow::Saturate, ..CastPolicy::IEEE };
        assert_eq!(encode_float(&f, &saturate, exact(1e30)).code, Some(numbers(&f) - 1), "{f:?}");
    }
}

#[test]
fn no_zero() {
    for f in formats().iter().filter(|f| !f.has_zero) {
        let zero = |vanishing| encode_float(f, &CastPolicy { vanishing, ..CastPolicy::IEEE }, exact(0.0));
        assert_eq!(zero(Unrepresentable::Smallest).code, Some(0));
        assert_eq!(zero(Unrepresentable::Error), zero(Unrepresentable::Error));
        assert_eq!(
            (zero(Unrepresentable::Error).code, zero(Unrepresentable::Error).condition),
            (None, Some(Condition::Zero))
        );
    }
}

#[test]
fn unsound() {
    let ieee = |e, m| FloatFormat::ieee(e, m).unwrap();
    let extended = FloatFormat { specials: Specials::Extended, signed: false, ..ieee(4, 3) };
    let rows = [
        (FloatFormat { exp_bits: 0, ..ieee(4, 3) }, FormatError::Width { exp_bits: 0, man_bits: 3 }),
        (FloatFormat { exp_bits: 16, ..ieee(4, 3) }, FormatError::Width { exp_bits: 16, man_bits: 3 }),
        (FloatFormat { man_bits: 61, ..ieee(2, 3) }, FormatError::Width { exp_bits: 2, man_bits: 61 }),
        (
            FloatFormat { exp_bits: 255, man_bits: 255, ..ieee(2, 3) },
            FormatError::Width { exp_bits: 255, man_bits: 255 },
        ),
        (FloatFormat { man_bits: 0, ..ieee(4, 3) }, FormatError::NoRoomForNan),
        (FloatFormat { exp_bits: 1, ..ieee(4, 3) }, FormatError::NoNormal),
        (FloatFormat { specials: Specials::Fnuz, signed: false, ..ieee(4, 3) }, FormatError::NoNegativeZero),
        (FloatFormat { specials: Specials::Fnuz, has_zero: false, ..ieee(4, 3) }, FormatError::NoNegativeZero),
        (FloatFormat { specials: Specials::Extended, has_zero: false, ..ieee(4, 3) }, FormatError::NoNegativeZero),
        (FloatFormat { exp_bits: 1, man_bits: 0, ..extended }, FormatError::NoNormal),
        (FloatFormat { exp_bits: 1, man_bits: 1, ..extended }, FormatError::NoNormal),
    ];
    for (format, error) in rows {
        assert_eq!(format.check(), Err(error));
    }
    for (exponent, fraction) in [(0, 3), (16, 3), (255, 0), (5, 255)] {
        assert!(FloatFormat::ieee(exponent, fraction).is_err());
    }
    let built_in = DType::ALL.into_iter().filter_map(|t| match t.kind() {
        truecast_core::Kind::Float(f) => Some(f),
        _ => None,
    });
    assert!(built_in.inspect(|f| assert_eq!(f.check(), Ok(()), "{f:?}")).count() > 15);
}

#[test]
fn the_widest() {
    let wide = FloatFormat { bias: i16::MAX, ..FloatFormat::ieee(15, 48).unwrap() };
    let fine = FloatFormat { bias: i16::MIN, ..FloatFormat::ieee(3, 60).unwrap() };
    for f in [wide, fine, FloatFormat::ieee(15, 48).unwrap()] {
        for code in [1, f.min_normal_code() - 1, f.min_normal_code(), f.max_code(), f.max_code() | f.sign_bit()] {
            let value = decode_float(&f, code);
            assert_eq!(encode_float(&f, &CastPolicy::IEEE, value).code, Some(code), "{f:?} {code:#x}");
        }
        for x in [f64::MAX, f64::MIN_POSITIVE, 5e-324, -1.0] {
            assert!(encode_float(&f, &CastPolicy::IEEE, exact(x)).code.is_some());
        }
    }
}

#[test]
fn one_order() {
    let mut random = Random::new("one_order");
    let mut xs = vec![0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324, f64::MAX, f64::MIN_POSITIVE];
    xs.extend((0..300).map(|_| f64::from_bits(random.next())).filter(|x| !x.is_nan()));
    xs.extend((0..200).map(|_| f64::from_bits(0x3ff0_0000_0000_0000 + random.next() % 8)));
    for &a in &xs {
        for &b in &xs {
            assert_eq!(exact(a).cmp_value(exact(b)), a.partial_cmp(&b).unwrap(), "{a:e} {b:e}");
        }
        for neg in [false, true] {
            assert_eq!(exact(a).cmp_value(Exact::Nan { neg, payload: None }), Ordering::Less);
            assert_eq!(Exact::Nan { neg, payload: Some(1) }.cmp_value(exact(a)), Ordering::Greater);
        }
    }
    let long = |sig, sticky| Exact::Finite { neg: false, sig, exp: -63, sticky };
    assert_eq!(long(1 << 63, true).cmp_value(exact(1.0)), Ordering::Greater);
    assert_eq!(long(1 << 63, true).cmp_value(long((1 << 63) + 1, false)), Ordering::Less);
    assert_eq!(long(1 << 63, true).cmp_value(long(1 << 63, true)), Ordering::Equal);
    let far = |exp| Exact::Finite { neg: true, sig: 3, exp, sticky: false };
    assert_eq!(far(90_000).cmp_value(far(-90_000)), Ordering::Less);
}
