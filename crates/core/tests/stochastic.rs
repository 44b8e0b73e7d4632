//! Stochastic rounding against the integer arithmetic of chips, for every code and every random number.

use truecast_core::exact::{RandomBits, decode};
use truecast_core::policy::{IntOverflow, Overflow};
use truecast_core::spec::{ieee, table};
use truecast_core::{CastPolicy, CastSpec, DType, Exact, Outcome, Rounding, cast_one};

fn avx10(to: DType, overflow: Option<Overflow>) -> CastSpec {
    table::Cast { to, overflow, ..table::Cast::find("avx10", None).unwrap().unwrap() }.resolve(DType::F16).unwrap()
}

fn rounded(cast: &CastSpec, code: u64, bits: u64, count: u32) -> Option<u64> {
    cast_one(&cast.with_random_bits(code, RandomBits::new(bits, count).unwrap()), code).code()
}

fn halves() -> impl Iterator<Item = u16> {
    (0..=u16::MAX).filter(|code| code & 0x7c00 != 0x7c00)
}

/// `docs/spec/avx10.md §3.1`: the result is the upper byte of the sum.
#[test]
fn the_bias_of_avx10_to_e5m2() {
    let cast = avx10(DType::F8E5M2, None);
    for code in halves() {
        for bias in 0..=255u16 {
            let sum = u64::from(code.wrapping_add(bias) >> 8);
            assert_eq!(rounded(&cast, code.into(), bias.into(), 8), Some(sum), "{code:#x} {bias:#x}");
        }
    }
}

/// `docs/spec/avx10.md §3.1`: normal and subnormal results.
#[test]
fn the_bias_of_avx10_to_e4m3() {
    let cast = avx10(DType::F8E4M3Fn, None);
    for code in halves() {
        let (sign, magnitude) = (u64::from(code >> 15) << 7, u32::from(code & 0x7fff));
        let (field, fraction) = (magnitude >> 10, magnitude & 0x3ff);
        for bias in 0..=255u32 {
            let sum = magnitude + (bias >> 1);
            let expected = if sum >> 10 > 8 {
                let overflows = sum >> 10 > 23 || (sum >> 10 == 23 && sum & 0x3ff >= 0x380);
                if overflows { 0x7f } else { (sum - (8 << 10)) >> 7 }
            } else if field > 0 {
                (0x400 + fraction + (bias << (8 - field))) >> (16 - field)
            } else {
                (fraction + (bias << 7)) >> 15
            };
            let expected = Some(sign | u64::from(expected));
            assert_eq!(rounded(&cast, code.into(), bias.into(), 8), expected, "{code:#x} {bias:#x}");
        }
    }
}

/// `docs/spec/ptx.md §4.1`: 13 random bits are added to the 13 truncated bits.
#[test]
fn rs_of_ptx_to_f16() {
    let cast = ieee::Cast::to(DType::F16).resolve(DType::F32).unwrap();
    let mut state = 1u32;
    for _ in 0..1 << 20 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let random = state >> 19;
        // Normal results: exponents from -14 to 15.
        let exponent = 113 + (state >> 3) % 30;
        let x = exponent << 23 | (state.rotate_left(9) & 0x7f_ffff);
        let sum = ((x - (112 << 23)) + random) >> 13;
        let expected = if sum >= 0x7c00 { 0x7c00 } else { sum };
        assert_eq!(rounded(&cast, x.into(), random.into(), 13), Some(expected.into()), "{x:#x} {random:#x}");
    }
}

/// Over all random numbers, a value rounds up in proportion to its truncated part, so the mean is the value. Every
/// result is a neighbor; exact values are unchanged.
#[test]
fn the_mean_is_the_value() {
    for (to, count) in [(DType::F8E4M3Fn, 10), (DType::F8E5M2, 10), (DType::F4E2M1, 10), (DType::I8, 10)] {
        let toward = |rounding| {
            let cast = ieee::Cast { rounding: Some(rounding), ..ieee::Cast::to(to) };
            cast.resolve(DType::F16).unwrap()
        };
        let [down, up] = [Rounding::TowardZero, Rounding::AwayFromZero].map(toward);
        let cast = ieee::Cast::to(to).resolve(DType::F16).unwrap();
        for code in halves().step_by(7) {
            let code = u64::from(code);
            let ends = [cast_one(&down, code), cast_one(&up, code)];
            let [low, high] = ends.map(|end| end.code().unwrap());
            let mut ups = 0;
            for bits in 0..1 << count {
                let result = rounded(&cast, code, bits, count).unwrap();
                assert!(result == low || result == high || is_beyond(&cast, code), "{code:#x} to {to}: {result:#x}");
                ups += (result != low) as u64;
            }
            if low == high {
                assert_eq!(ups, 0, "{code:#x} to {to}");
            } else if !is_beyond(&cast, code) {
                // Fraction of a step. Its unit is 2^-count.
                let f64_of = |code, dtype| match decode(dtype, code) {
                    Exact::Finite { neg, sig, exp, .. } => (if neg { -1.0 } else { 1.0 }) * sig as f64 * 2f64.powi(exp),
                    _ => f64::NAN,
                };
                let [x, low, high] = [f64_of(code, DType::F16), f64_of(low, to), f64_of(high, to)];
                let expected = ((x - low) / (high - low) * f64::from(1 << count)).floor() as u64;
                assert_eq!(ups, expected, "{code:#x} to {to}");
            }
        }
    }
}

fn is_beyond(cast: &CastSpec, code: u64) -> bool {
    let policy = CastPolicy {
        overflow: Overflow::Error,
        int_overflow: IntOverflow::Error,
        to_float: Rounding::AwayFromZero,
        to_int: Rounding::AwayFromZero,
        ..cast.policy
    };
    matches!(cast_one(&CastSpec { policy, ..*cast }, code), Outcome::Refused { .. })
}
