//! Tables of `docs/spec/onnx.md §1, §4, §5` as literal rows. Section numbers refer to the page.
//!
//! A number in a row is the exact value of the source element. Every source type of the row's class that holds the
//! value is tested.
#![allow(clippy::excessive_precision)] // neighbors of a limit are written with all their digits

use truecast_core::DType::{self, *};
use truecast_core::dtype::Kind;
use truecast_core::exact::decode;
use truecast_core::spec::SpecError;
use truecast_core::spec::onnx::{Cast, NEWEST_OPSET, Operator, RoundMode};
use truecast_core::{Exact, Outcome, cast_one, spec::interpretations};

const F: [DType; 4] = [F64, F32, F16, Bf16];
const F8: [DType; 4] = [F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz];
const FN: [DType; 3] = [F4E2M1, F6E2M3, F6E3M2];
const INTEGERS: [DType; 12] = [I2, U2, I4, U4, I8, U8, I16, U16, I32, U32, I64, U64];
const ALL: [DType; 25] = [
    F64, F32, F16, Bf16, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, F4E2M1, F6E2M3, F6E3M2, I2, U2, I4, U4, I8,
    U8, I16, U16, I32, U32, I64, U64, Bool,
];
const INF: f64 = f64::INFINITY;

// ---- §1: versions, types, attributes ----

/// §1.2: first opset, Cast version, added types.
const GATES: [(u32, u32, &[DType]); 10] = [
    (1, 1, &[Bool, F64, F32, F16, I8, I16, I32, I64, U8, U16, U32, U64]),
    (6, 6, &[]),
    (9, 9, &[String]),
    (13, 13, &[Bf16]),
    (19, 19, &F8),
    (21, 21, &[I4, U4]),
    (23, 23, &[F4E2M1]),
    (24, 24, &[F8E8M0]),
    (25, 25, &[I2, U2]),
    (28, 28, &[F6E2M3, F6E3M2]),
];

#[test]
fn types_per_opset() {
    let totals = [(1, 12), (6, 12), (9, 13), (13, 14), (19, 18), (21, 20), (23, 21), (24, 22), (25, 24), (28, 26)]; // §1.1
    for opset in 1..=28 {
        let rows = || GATES.iter().filter(|(first, ..)| *first <= opset);
        let version = rows().next_back().unwrap().1;
        assert_eq!(Operator::Cast.version_at(opset), Ok(version), "opset {opset}");
        let allowed: Vec<DType> = rows().flat_map(|(_, _, types)| types.iter().copied()).collect();
        assert_eq!(totals.iter().find(|t| t.0 == version).unwrap().1, allowed.len(), "opset {opset}");
        for src in DType::ALL {
            for dst in DType::ALL {
                let result = Cast { opset, ..Cast::to(dst) }.resolve(src);
                match (allowed.contains(&src), allowed.contains(&dst)) {
                    (true, true) => {
                        let spec = result.unwrap_or_else(|e| panic!("opset {opset}, {src} to {dst}: {e}"));
                        assert_eq!((spec.src, spec.dst), (src, dst));
                    }
                    _ => assert!(matches!(result, Err(SpecError::Type { .. })), "opset {opset}, {src} to {dst}"),
                }
            }
        }
    }
    for opset in [0, 29, u32::MAX] {
        assert!(matches!(Operator::Cast.version_at(opset), Err(SpecError::Version { .. })), "opset {opset}");
        assert!(matches!(Cast { opset, ..Cast::to(F32) }.resolve(F32), Err(SpecError::Version { .. })));
    }
    assert_eq!(Cast::to(F32).opset, 28); // §1.8: when no opset is given
}

/// §1.3: `saturate` exists from opset 19, `round_mode` from 24. An earlier use is an error for every destination. An
/// attribute without effect is accepted.
#[test]
fn attributes_per_opset() {
    for opset in 1..=28 {
        for dst in ALL {
            let plain = Cast { opset, ..Cast::to(dst) };
            let Ok(default) = plain.resolve(F32) else { continue };
            for saturate in [true, false] {
                let result = Cast { saturate: Some(saturate), ..plain }.resolve(F32);
                match result {
                    Ok(spec) => {
                        assert!(opset >= 19);
                        let applies = F8.contains(&dst) || dst == F8E8M0;
                        assert_eq!(spec == default, saturate || !applies, "{dst}");
                    }
                    Err(e) => {
                        assert!(opset < 19 && matches!(e, SpecError::Attribute { name: "saturate", .. }), "{e}");
                    }
                }
            }
            for mode in RoundMode::ALL {
                match (Cast { round_mode: Some(mode), ..plain }.resolve(F32)) {
                    Ok(spec) => {
                        assert!(opset >= 24);
                        assert_eq!(spec == default, mode == RoundMode::Up || dst != F8E8M0, "{dst}");
                    }
                    Err(e) => {
                        assert!(opset < 24 && matches!(e, SpecError::Attribute { name: "round_mode", .. }), "{e}");
                    }
                }
            }
        }
    }
}

#[test]
fn round_mode_strings() {
    let modes = [("up", RoundMode::Up), ("down", RoundMode::Down), ("nearest", RoundMode::Nearest)];
    for (text, mode) in modes {
        assert_eq!(text.parse(), Ok(mode));
        assert_eq!(mode.name(), text);
    }
    for text in ["", "Up", "UP", "Nearest", "nearest ", "nearest_even", "zero"] {
        assert!(matches!(text.parse::<RoundMode>(), Err(SpecError::Attribute { name: "round_mode", .. })), "{text:?}");
    }
    assert_eq!(RoundMode::default(), RoundMode::Up);
}

// ---- §4.3: to F ----

/// Value, destination, code.
#[test]
fn to_f() {
    // Thresholds of §2.5, ±Inf beyond a threshold, signed zero, gradual underflow.
    let two = |e: i32| 2f64.powi(e);
    let rows: &[(DType, f64, u64)] = &[
        (F16, 65519.99999999999, 0x7bff), // §5 row 11
        (F16, 65520.0, 0x7c00),
        (F16, -65520.0, 0xfc00),
        (F16, 65504.0, 0x7bff),
        (F16, two(-24), 0x0001),
        (F16, two(-25), 0x0000),
        (F16, -two(-25), 0x8000),
        (F16, two(-25).next_up(), 0x0001),
        (F16, 3.0 * two(-25), 0x0002),
        (F32, two(128) - two(103), 0x7f80_0000),
        (F32, (two(128) - two(103)).next_down(), 0x7f7f_ffff),
        (F32, two(-149), 0x0000_0001),
        (F32, two(-150), 0),
        (F32, -two(-150), 0x8000_0000),
        (F32, two(-150).next_up(), 1),
        (Bf16, two(128) - two(119), 0x7f80),
        (Bf16, -two(128) + two(119), 0xff80),
        (Bf16, (two(128) - two(119)).next_down(), 0x7f7f),
        (Bf16, two(-133), 0x0001),
        (Bf16, two(-134), 0x0000),
        (Bf16, two(-134).next_up(), 0x0001),
        (F64, 0.0, 0),
        (F64, -0.0, 1 << 63),
        (F32, -0.0, 0x8000_0000),
        (F16, -0.0, 0x8000),
        (Bf16, -0.0, 0x8000),
        (F64, INF, 0x7ff0 << 48),
        (F32, -INF, 0xff80_0000),
        (F16, INF, 0x7c00),
        (Bf16, -INF, 0xff80),
        (F32, 1e300, 0x7f80_0000),
        (Bf16, 0.48033666610717773, 0x3ef6), // §5 row 15, FLOAT 0.48033667
    ];
    for &(dst, x, expected) in rows {
        for src in holding(x, &F) {
            check(src, x, Cast::to(dst), expected);
        }
    }
    let integers: &[(DType, i128, DType, u64)] = &[
        (I64, 65519, F16, 0x7bff),
        (I64, 65520, F16, 0x7c00),
        (I32, 16842753, Bf16, 0x4b81), // §5 row 11
        (U64, u64::MAX as i128, F32, 0x5f80_0000),
        (I64, i64::MIN as i128, F64, 0xc3e0 << 48),
        (I64, (1 << 53) + 1, F64, 0x4340 << 48),
        (I64, (1 << 24) + 1, F32, 0x4b80_0000),
        (U8, 255, F16, 0x5bf8),
        (I4, -8, F32, 0xc100_0000),
        (I2, -2, Bf16, 0xc000),
        (U2, 3, F64, 0x4008 << 48),
        (I8, 0, F32, 0),
        (Bool, 1, F64, 0x3ff0 << 48),
        (Bool, 1, F32, 0x3f80_0000),
        (Bool, 1, F16, 0x3c00),
        (Bool, 1, Bf16, 0x3f80),
        (Bool, 0, F32, 0),
    ];
    for &(src, x, dst, expected) in integers {
        assert_eq!(run(src, x as u64, Cast::to(dst)), expected, "{src} {x} to {dst}");
    }
}

#[test]
fn e8m0_to_f() {
    for (dst, expected) in [(F32, 0x0040_0000), (Bf16, 0x0040), (F64, 0x3800_0000_0000_0000)] {
        assert_eq!(run(F8E8M0, 0, Cast::to(dst)), expected, "{dst}");
    }
    for code in 0..=0x66 {
        assert_eq!(run(F8E8M0, code, Cast::to(F16)), 0, "{code:02x}");
    }
    for (code, expected) in [(0x67, 0x0001), (0x68, 0x0002), (0x7f, 0x3c00), (0x8e, 0x7800)] {
        assert_eq!(run(F8E8M0, code, Cast::to(F16)), expected, "{code:02x}");
    }
    for code in 0x8f..=0xfe {
        assert_eq!(run(F8E8M0, code, Cast::to(F16)), 0x7c00, "{code:02x}");
    }
    for (dst, quiet) in [(F64, 0x7ff8 << 48), (F32, 0x7fc0_0000), (F16, 0x7e00), (Bf16, 0x7fc0)] {
        assert_eq!(run(F8E8M0, 0xff, Cast::to(dst)), quiet, "{dst}");
    }
}

/// "F8 and FN to any F are exact" (§2.2, §4.3). An FNUZ NaN becomes the negative quiet NaN.
#[test]
fn f8_and_fn_to_f_are_exact() {
    for src in F8.into_iter().chain(FN) {
        for code in 0..1 << src.code_bits() {
            let exact = decode(src, code);
            if matches!(exact, Exact::Nan { .. }) {
                continue;
            }
            for dst in F {
                assert_eq!(number(decode(dst, run(src, code, Cast::to(dst)))).to_bits(), number(exact).to_bits());
            }
        }
    }
    for src in [F8E4M3Fnuz, F8E5M2Fnuz] {
        for (dst, expected) in [(F64, 0xfff8 << 48), (F32, 0xffc0_0000), (F16, 0xfe00), (Bf16, 0xffc0)] {
            assert_eq!(run(src, 0x80, Cast::to(dst)), expected, "{src} NaN to {dst}");
        }
    }
}

// ---- §4.4: to bool ----

#[test]
fn to_bool() {
    for src in ALL {
        if src.code_bits() > 16 {
            continue;
        }
        for code in 0..1u64 << src.code_bits() {
            let zero = match src {
                F8E8M0 => false, // 2^-127 is not zero: §5 row 14
                F8E4M3Fnuz | F8E5M2Fnuz => code == 0,
                _ if src.is_float() => code & !(1 << (src.code_bits() - 1)) == 0, // -0 too: §5 row 13
                _ => code == 0,
            };
            assert_eq!(run(src, code, Cast::to(Bool)), !zero as u64, "{src} {code:x}");
        }
    }
    let f32s = [0x0000_0001, 0x8000_0001, 0x007f_ffff, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0x7f80_0001, 0x3f80_0000];
    for code in f32s {
        assert_eq!(run(F32, code, Cast::to(Bool)), 1, "{code:08x}");
    }
    for (src, code, expected) in [
        (F32, 0, 0),
        (F32, 0x8000_0000, 0),
        (F64, 0, 0),
        (F64, 1 << 63, 0),
        (F64, 1, 1),
        (F64, 0x7ff0_0000_0000_0001, 1),
        (I32, 36, 1),
        (I32, 2, 1),
        (I32, 256, 1),
        (I64, 1 << 32, 1),
        (U64, 1 << 63, 1),
        (I64, 0, 0),
    ] {
        assert_eq!(run(src, code, Cast::to(Bool)), expected, "{src} {code:x}");
    }
}

// ---- §4.5: to integers ----

/// Integer or bool sources: the low N bits.
#[test]
fn integer_to_integer() {
    let rows: &[(DType, i128, DType, i128)] = &[
        (I16, 200, I8, -56),
        (U8, 200, I4, -8),
        (I4, -8, U4, 8),
        (I4, -8, U8, 248),
        (I8, -1, U64, u64::MAX as i128),
        (U64, u64::MAX as i128, I64, -1),
        (I64, -1 << 63, I32, 0),
        (I2, -2, I64, -2),
        (U2, 3, I2, -1),
        (Bool, 1, I2, 1),
        (Bool, 1, U64, 1),
        (Bool, 0, I8, 0),
    ];
    for &(src, x, dst, expected) in rows {
        let outcome = outcome(src, x as u64, Cast::to(dst));
        assert_eq!(outcome, Outcome::Defined(low_bits(expected, dst)), "{src} {x} to {dst}");
    }
    for (src, dst) in pairs(&INTEGERS, &INTEGERS) {
        let Kind::Int(f) = src.kind() else { unreachable!() };
        for code in (0..1 << f.bits.min(8)).chain([0x7fff, 0x8000, u32::MAX as u64, 1 << 31, 1 << 63, u64::MAX]) {
            let value = f.value(code);
            let expected = Outcome::Defined(low_bits(value, dst));
            assert_eq!(outcome(src, code & f.mask(), Cast::to(dst)), expected, "{src} {value} to {dst}");
        }
    }
}

/// "From floating point, in range": toward zero. `-0.99 to UINT8 is 0 and -128.9 to INT8 is -128`.
#[test]
fn float_to_integer_in_range() {
    let rows: &[(f64, DType, i128)] = &[
        (2.999, I8, 2),
        (-2.5, I8, -2),
        (-2.5, I4, -2), // §5 row 6
        (2.5, I4, 2),
        (1.5, I4, 1),
        (3.5, U4, 3),
        (0.5, I4, 0),
        (1.75, U2, 1),
        (-1.5, I2, -1),
        (-0.99, I32, 0),
        (-0.99, U8, 0),
        (-0.99, U4, 0),
        (-128.9, I8, -128),
        (127.9, I8, 127),
        (255.9, U8, 255),
        (7.9, I4, 7),
        (-8.9, I4, -8),
        (15.9, U4, 15),
        (65535.9, U16, 65535),
        (2147483647.5, I32, i32::MAX as i128),
        (4294967295.5, U32, u32::MAX as i128),
        (-9223372036854775808.0, I64, i64::MIN as i128),
        (9223372036854774784.0, I64, 9223372036854774784),
        (18446744073709549568.0, U64, 18446744073709549568),
        (-0.0, I8, 0),
        (1e-300, U64, 0),
    ];
    for &(x, dst, expected) in rows {
        let result = outcome(F64, x.to_bits(), Cast::to(dst));
        assert_eq!(result.code(), Some(low_bits(expected, dst)), "{x} to {dst}");
    }
}

const P64: i128 = 1 << 64;

/// Table of §4.5: source, then `wrap` to INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64. Decimal values are
/// typed as on the page.
#[rustfmt::skip]
const WRAP: [(f64, [i128; 8]); 9] = [
    (3e9,  [0, 0, 24064, 24064, -1294967296, 3000000000, 3000000000, 3000000000]),
    (-3e9, [0, 0, -24064, 41472, 1294967296, 1294967296, -3000000000, 18446744070709551616]),
    (5e9,  [0, 0, -3584, 61952, 705032704, 705032704, 5000000000, 5000000000]),
    (9300000300729368576.0,    [0, 0, 0, 0, 0, 0, -9146743772980183040, 9300000300729368576]),
    (-100000002004087734272.0, [0, 0, 0, 0, 0, 0, -7766281635539976192, 10680462438169575424]),
    (1e30, [0; 8]),
    (f64::NAN, [0; 8]),
    (INF, [0; 8]),
    (-INF, [0; 8]),
];

#[test]
fn float_to_integer_wraps() {
    let columns = [I8, U8, I16, U16, I32, U32, I64, U64];
    for (x, row) in WRAP {
        let x = x as f32; // "FLOAT sources; identical for DOUBLE, FLOAT16 and BFLOAT16 where representable"
        let sources = [vec![F32, F64], if x.is_nan() || x.is_infinite() { vec![F16, Bf16] } else { vec![] }].concat();
        for src in sources {
            for (dst, expected) in columns.into_iter().zip(row).chain([I4, U4, I2, U2].map(|t| (t, 0))) {
                assert_eq!(run(src, code_of(src, x as f64), Cast::to(dst)), low_bits(expected, dst), "{x} to {dst}");
            }
        }
    }
    // "finite, abs < 2^31", and the examples in the text.
    #[rustfmt::skip]
    let examples: &[(f64, DType, i128)] = &[
        (300.0, I8, 44), (-129.0, I8, 127), (-1.0, U8, 255), (-1.0, U16, 65535), (-1.0, U32, 4294967295),
        (-1.0, U64, P64 - 1), (9.0, I4, -7), (-1.0, U4, 15), (3.0, I2, -1), (-9.0, I4, 7), (8.0, I4, -8), (-9.0, U4, 7),
    ];
    for &(x, dst, expected) in examples {
        for src in holding(x, &ALL[..12]) {
            assert_eq!(run(src, code_of(src, x), Cast::to(dst)), low_bits(expected, dst), "{src} {x} to {dst}");
        }
    }
    for dst in INTEGERS {
        for (src, nan) in [(F8E8M0, 0xff), (F8E4M3Fn, 0x7f), (F8E4M3Fnuz, 0x80), (F8E5M2, 0x7d), (F64, 0xfff8 << 48)] {
            assert_eq!(run(src, nan, Cast::to(dst)), 0, "{src} NaN to {dst}");
        }
    }
}

/// "From E8M0": codes below 7F give 0. Codes out of range are powers of two and wrap to 0. FF is NaN.
#[test]
fn e8m0_to_integer() {
    for dst in INTEGERS {
        for code in 0..=0xffu64 {
            let power = code.wrapping_sub(0x7f);
            let expected = if power < dst.code_bits() as u64 { 1 << power } else { 0 };
            assert_eq!(run(F8E8M0, code, Cast::to(dst)), expected, "{code:02x} to {dst}");
        }
    }
}

// ---- §4.6: to F8 ----

/// Table of §4.6. A row is x, then the results in E4M3FN, E4M3FNUZ, E5M2 and E5M2FNUZ under sat=1, then the results
/// under sat=0.
#[rustfmt::skip]
const TO_F8: [(f64, [u64; 8]); 16] = [
    (0.0,     [0x00, 0x00, 0x00, 0x00,  0x00, 0x00, 0x00, 0x00]),
    (-0.0,    [0x80, 0x00, 0x80, 0x00,  0x80, 0x00, 0x80, 0x00]),
    (INF,     [0x7e, 0x7f, 0x7b, 0x7f,  0x7f, 0x80, 0x7c, 0x80]),
    (-INF,    [0xfe, 0xff, 0xfb, 0xff,  0xff, 0x80, 0xfc, 0x80]),
    // r > max, r < -max
    (1e5,     [0x7e, 0x7f, 0x7b, 0x7f,  0x7f, 0x80, 0x7c, 0x80]),
    (-1e5,    [0xfe, 0xff, 0xfb, 0xff,  0xff, 0x80, 0xfc, 0x80]),
    (3e38,    [0x7e, 0x7f, 0x7b, 0x7f,  0x7f, 0x80, 0x7c, 0x80]),
    (-3e38,   [0xfe, 0xff, 0xfb, 0xff,  0xff, 0x80, 0xfc, 0x80]),
    (61440.0, [0x7e, 0x7f, 0x7b, 0x7f,  0x7f, 0x80, 0x7c, 0x80]), // §5 row 3
    (65535.0, [0x7e, 0x7f, 0x7b, 0x7f,  0x7f, 0x80, 0x7c, 0x80]),
    (-61440.0,[0xfe, 0xff, 0xfb, 0xff,  0xff, 0x80, 0xfc, 0x80]),
    (61439.0, [0x7e, 0x7f, 0x7b, 0x7f,  0x7f, 0x80, 0x7b, 0x7f]),
    // r = 0, x tiny: negative, then positive
    (-1e-20,  [0x80, 0x00, 0x80, 0x00,  0x80, 0x00, 0x80, 0x00]),
    (1e-20,   [0x00, 0x00, 0x00, 0x00,  0x00, 0x00, 0x00, 0x00]),
    // otherwise r: values of all four types (§2.3)
    (1.0,     [0x38, 0x40, 0x3c, 0x40,  0x38, 0x40, 0x3c, 0x40]),
    (-0.5,    [0xb0, 0xb8, 0xb8, 0xbc,  0xb0, 0xb8, 0xb8, 0xbc]),
];

#[test]
fn to_f8() {
    for (x, row) in TO_F8 {
        for (i, expected) in row.into_iter().enumerate() {
            let (dst, saturate) = (F8[i % 4], i < 4);
            for opset in 19..=28 {
                let cast = Cast { saturate: Some(saturate), opset, ..Cast::to(dst) };
                for src in holding(x, &F) {
                    check(src, x, cast, expected);
                }
                for src in holding(x, &F8) {
                    let copies = src == dst && (src != F8E5M2 || !saturate); // §4.10
                    if !copies {
                        check(src, x, cast, expected);
                    }
                }
            }
        }
    }
}

/// "Overflow is decided on the rounded value": value, destination, sat=1, sat=0.
#[rustfmt::skip]
const F8_LIMITS: &[(f64, DType, u64, u64)] = &[
    (448.0, F8E4M3Fn, 0x7e, 0x7e),
    (464.0, F8E4M3Fn, 0x7e, 0x7e),
    (464.000030517578125, F8E4M3Fn, 0x7e, 0x7f),      // the next FLOAT above 464
    (464.00000000000006, F8E4M3Fn, 0x7e, 0x7f),       // §5 row 11
    (-464.00000000000006, F8E4M3Fn, 0xfe, 0xff),
    (465.0, F8E4M3Fn, 0x7e, 0x7f),
    (480.0, F8E4M3Fn, 0x7e, 0x7f), (481.0, F8E4M3Fn, 0x7e, 0x7f), (495.0, F8E4M3Fn, 0x7e, 0x7f), // §5 row 2
    (496.0, F8E4M3Fn, 0x7e, 0x7f), (-480.0, F8E4M3Fn, 0xfe, 0xff),
    (500.0, F8E4M3Fn, 0x7e, 0x7f),
    (247.0, F8E4M3Fnuz, 0x7f, 0x7f), (248.0, F8E4M3Fnuz, 0x7f, 0x80), (-248.0, F8E4M3Fnuz, 0xff, 0x80),
    (61439.0, F8E5M2, 0x7b, 0x7b), (61440.0, F8E5M2, 0x7b, 0x7c), (-61440.0, F8E5M2, 0xfb, 0xfc), // §5 row 3
    (65535.0, F8E5M2, 0x7b, 0x7c), (65536.0, F8E5M2, 0x7b, 0x7c),
    (61439.0, F8E5M2Fnuz, 0x7f, 0x7f), (61440.0, F8E5M2Fnuz, 0x7f, 0x80),
    (0.0009765625, F8E4M3Fn, 0x00, 0x00),             // 2^-10
    (0.0009765625000000002, F8E4M3Fn, 0x01, 0x01),    // §5 row 11
    (-0.0009765625, F8E4M3Fn, 0x80, 0x80),
    (0.00048828125, F8E4M3Fnuz, 0x00, 0x00), (-0.00048828125, F8E4M3Fnuz, 0x00, 0x00), // 2^-11, the result is +0
    (-0.0004882812500000001, F8E4M3Fnuz, 0x81, 0x81),
];

#[test]
fn f8_limits() {
    for &(x, dst, saturated, not) in F8_LIMITS {
        for (saturate, expected) in [(true, saturated), (false, not)] {
            let cast = Cast { saturate: Some(saturate), ..Cast::to(dst) };
            for src in holding(x, &F).into_iter().chain(holding(x, &INTEGERS)) {
                check(src, x, cast, expected); // "Integers, bool and strings: the same table on the exact value"
            }
        }
    }
    for dst in F8 {
        let one = [0x38, 0x40, 0x3c, 0x40][F8.iter().position(|&t| t == dst).unwrap()]; // §4.2, §2.3
        assert_eq!(run(Bool, 1, Cast::to(dst)), one, "{dst}");
        assert_eq!(run(Bool, 0, Cast::to(dst)), 0, "{dst}");
    }
}

// ---- §4.7: to E8M0 ----

const TINY: f64 = f64::from_bits((1023 - 127) << 52); // 2^-127
const HUGE: f64 = f64::from_bits((1023 + 127) << 52); // 2^127

/// Second table of §4.7, "results for all six attribute combinations". A row is x, then the results of up, down and
/// nearest under sat=1, then the results under sat=0. The reference implementation deviates in some rows (third table;
/// §5 rows 9, 10, 19, 20).
#[rustfmt::skip]
const TO_E8M0: &[(f64, [u64; 6])] = &[
    (0.0,          [0x00, 0x00, 0x00, 0xff, 0xff, 0xff]),
    (-0.0,         [0x00, 0x00, 0x00, 0xff, 0xff, 0xff]),
    (1.401298464324817e-45, [0x00, 0x00, 0x00, 0xff, 0xff, 0xff]), // 2^-149
    (0.75 * TINY,  [0x00, 0x00, 0x00, 0xff, 0xff, 0xff]),
    (TINY,         [0x00, 0x00, 0x00, 0x00, 0x00, 0x00]),
    (1.25 * TINY,  [0x01, 0x00, 0x00, 0x01, 0x00, 0x00]),
    (1.5 * TINY,   [0x01, 0x00, 0x01, 0x01, 0x00, 0x01]),
    (1.75 * TINY,  [0x01, 0x00, 0x01, 0x01, 0x00, 0x01]),
    (2.0 * TINY,   [0x01, 0x01, 0x01, 0x01, 0x01, 0x01]),
    (2.5 * TINY,   [0x02, 0x01, 0x01, 0x02, 0x01, 0x01]),
    (3.0 * TINY,   [0x02, 0x01, 0x02, 0x02, 0x01, 0x02]),
    (1.0,          [0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f]),
    (1.25,         [0x80, 0x7f, 0x7f, 0x80, 0x7f, 0x7f]),
    (1.5,          [0x80, 0x7f, 0x80, 0x80, 0x7f, 0x80]),
    (1.75,         [0x80, 0x7f, 0x80, 0x80, 0x7f, 0x80]),
    (HUGE,         [0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe]),
    (1.00000011920928955078125 * HUGE, [0xfe, 0xfe, 0xfe, 0xff, 0xff, 0xff]), // the next FLOAT
    (1.25 * HUGE,  [0xfe, 0xfe, 0xfe, 0xff, 0xff, 0xff]),
    (1.5 * HUGE,   [0xfe, 0xfe, 0xfe, 0xff, 0xff, 0xff]),
    (f32::MAX as f64, [0xfe, 0xfe, 0xfe, 0xff, 0xff, 0xff]),
    (INF,          [0xfe, 0xfe, 0xfe, 0xff, 0xff, 0xff]),
    (-1.0,         [0x00, 0x00, 0x00, 0xff, 0xff, 0xff]),
    (-1.5,         [0x00, 0x00, 0x00, 0xff, 0xff, 0xff]),
    (-INF,         [0x00, 0x00, 0x00, 0xff, 0xff, 0xff]),
    (1.125,        [0x80, 0x7f, 0x7f, 0x80, 0x7f, 0x7f]), // the historical defect under the tables
    (5.0,          [0x82, 0x81, 0x81, 0x82, 0x81, 0x81]),
    // §5 row 11: no intermediate FLOAT
    (1.0000000000000002, [0x80, 0x7f, 0x7f, 0x80, 0x7f, 0x7f]),
    (1.4999999999999998, [0x80, 0x7f, 0x7f, 0x80, 0x7f, 0x7f]),
    (1.0000000000000002 * HUGE, [0xfe, 0xfe, 0xfe, 0xff, 0xff, 0xff]),
];

#[test]
fn to_e8m0() {
    for &(x, row) in TO_E8M0 {
        for (cast, expected) in e8m0_casts().into_iter().zip(row) {
            for src in ALL.into_iter().filter(|&t| t != F8E8M0) {
                if holds(src, x) {
                    check(src, x, cast, expected);
                }
            }
        }
    }
    for cast in e8m0_casts() {
        for (src, nan) in [(F64, 0x7ff8 << 48), (F64, 0xfff0_0000_0000_0001), (F32, 0x7fc0_0000), (F32, 0xffc0_0000)] {
            assert_eq!(run(src, nan, cast), 0xff, "{src} NaN, {cast:?}");
        }
        for (src, nan) in [(F16, 0x7e00), (F8E4M3Fn, 0xff), (F8E5M2, 0x7d), (F8E4M3Fnuz, 0x80), (F8E5M2Fnuz, 0x80)] {
            assert_eq!(run(src, nan, cast), 0xff, "{src} NaN, {cast:?}");
        }
        // §4.2: true becomes 7F; false converts like +0.
        assert_eq!(run(Bool, 1, cast), 0x7f);
        assert_eq!(run(Bool, 0, cast), if cast.saturate == Some(true) { 0x00 } else { 0xff });
        // §4.10, §5 row 10: E8M0 to E8M0 copies.
        for code in 0..=0xff {
            assert_eq!(outcome(F8E8M0, code, cast), Outcome::Defined(code), "{cast:?}");
        }
    }
}

/// First table of §4.7, on every BFLOAT16 and FLOAT16 code.
#[test]
fn e8m0_rule() {
    for (src, cast) in [Bf16, F16].into_iter().flat_map(|s| e8m0_casts().map(|c| (s, c))) {
        let saturate = cast.saturate.unwrap();
        let no_room = if saturate { 0x00 } else { 0xff };
        for code in 0..=0xffff {
            let x = match decode(src, code) {
                Exact::Nan { .. } => f64::NAN,
                exact => number(exact),
            };
            let expected = if x.is_nan() {
                0xff
            } else if x > HUGE {
                if saturate { 0xfe } else { 0xff }
            } else if x < TINY {
                no_room
            } else {
                let down = (x.to_bits() >> 52) + 127 - 1023; // x is a normal f64
                let fraction = x.to_bits() << 12; // in units of 2^-64 of the binade
                match cast.round_mode.unwrap() {
                    RoundMode::Up => down + (fraction != 0) as u64,
                    RoundMode::Down => down,
                    RoundMode::Nearest => down + (fraction >> 63),
                }
            };
            assert_eq!(run(src, code, cast), expected, "{src} {code:04x} = {x:e}, {cast:?}");
        }
    }
}

// ---- §4.8: to FN ----

#[test]
fn to_fn() {
    #[rustfmt::skip]
    let rows: &[(f64, DType, u64)] = &[
        // "E2M1 ties"
        (0.25, F4E2M1, 0x0), (0.75, F4E2M1, 0x2), (1.25, F4E2M1, 0x2), (1.75, F4E2M1, 0x4), (2.5, F4E2M1, 0x4),
        (3.5, F4E2M1, 0x6), (5.0, F4E2M1, 0x6), (-0.25, F4E2M1, 0x8),
        (0.25000000000000006, F4E2M1, 0x1), (5.000000000000001, F4E2M1, 0x7), (-5.0, F4E2M1, 0xe),
        // clamp, also Inf; signed zero; tiny values
        (6.0, F4E2M1, 0x7), (7.0, F4E2M1, 0x7), (1e30, F4E2M1, 0x7), (-1e30, F4E2M1, 0xf), (INF, F4E2M1, 0x7),
        (-INF, F4E2M1, 0xf), (-0.0, F4E2M1, 0x8), (-1e-30, F4E2M1, 0x8), (1e-30, F4E2M1, 0x0),
        (7.5, F6E2M3, 0x1f), (7.75, F6E2M3, 0x1f), (1e30, F6E2M3, 0x1f), (-INF, F6E2M3, 0x3f), (INF, F6E2M3, 0x1f),
        (-0.0, F6E2M3, 0x20), (-1e-30, F6E2M3, 0x20), (0.0625, F6E2M3, 0x00), (-0.0625, F6E2M3, 0x20),
        (0.06250000000000001, F6E2M3, 0x01), (7.25, F6E2M3, 0x1e), (7.26, F6E2M3, 0x1f),
        (28.0, F6E3M2, 0x1f), (30.0, F6E3M2, 0x1f), (1e30, F6E3M2, 0x1f), (-INF, F6E3M2, 0x3f), (INF, F6E3M2, 0x1f),
        (-0.0, F6E3M2, 0x20), (-1e-30, F6E3M2, 0x20), (0.03125, F6E3M2, 0x00), (-0.03125, F6E3M2, 0x20),
        (0.031250000000000007, F6E3M2, 0x01), (26.0, F6E3M2, 0x1e), (26.1, F6E3M2, 0x1f),
    ];
    for &(x, dst, expected) in rows {
        for src in ALL.into_iter().filter(|&t| t != Bool && t != dst && holds(t, x)) {
            for saturate in [None, Some(true), Some(false)] {
                check(src, x, Cast { saturate, ..Cast::to(dst) }, expected); // "`saturate` has no effect"
            }
        }
    }
    for (dst, one) in [(F4E2M1, 0x2), (F6E2M3, 0x08), (F6E3M2, 0x0c)] {
        assert_eq!(run(Bool, 1, Cast::to(dst)), one, "{dst}");
        assert_eq!(run(Bool, 0, Cast::to(dst)), 0, "{dst}");
    }
}

// ---- §4.9: NaN ----

/// Table of §4.9. A row is (destination, code for NaN with sign 0, code for NaN with sign 1).
#[rustfmt::skip]
const NAN: [(DType, u64, u64); 13] = [
    (F64, 0x7ff8000000000000, 0xfff8000000000000), (F32, 0x7fc00000, 0xffc00000), (F16, 0x7e00, 0xfe00),
    (Bf16, 0x7fc0, 0xffc0), (F8E4M3Fn, 0x7f, 0xff), (F8E5M2, 0x7e, 0xfe), (F8E4M3Fnuz, 0x80, 0x80),
    (F8E5M2Fnuz, 0x80, 0x80), (F8E8M0, 0xff, 0xff), (F4E2M1, 0x8, 0x0), (F6E2M3, 0x20, 0x00), (F6E3M2, 0x20, 0x00),
    (Bool, 1, 1),
];

/// NaN codes without payload below the quiet bit: type, code, sign. An FNUZ NaN counts as negative, an E8M0 NaN as
/// positive.
#[rustfmt::skip]
const NAN_SOURCES: [(DType, u64, bool); 15] = [
    (F64, 0x7ff8 << 48, false), (F64, 0xfff8 << 48, true), (F32, 0x7fc00000, false), (F32, 0xffc00000, true),
    (F16, 0x7e00, false), (F16, 0xfe00, true), (Bf16, 0x7fc0, false), (Bf16, 0xffc0, true), (F8E5M2, 0x7e, false),
    (F8E5M2, 0xfe, true), (F8E4M3Fn, 0x7f, false), (F8E4M3Fn, 0xff, true), (F8E4M3Fnuz, 0x80, true),
    (F8E5M2Fnuz, 0x80, true), (F8E8M0, 0xff, false),
];

#[test]
fn nan() {
    for (src, code, neg) in NAN_SOURCES {
        for (dst, positive, negative) in NAN {
            for saturate in [true, false] {
                // §5 rows 4, 5: both modes keep the sign
                let expected = if neg { negative } else { positive };
                let cast = Cast { saturate: Some(saturate), ..Cast::to(dst) };
                assert_eq!(run(src, code, cast), expected, "{src} {code:x} to {dst}, saturate {saturate}");
            }
        }
        for dst in INTEGERS {
            assert_eq!(run(src, code, Cast::to(dst)), 0, "{src} {code:x} to {dst}");
        }
    }
    // Examples, and consequences of "keeps the leading payload bits that fit".
    #[rustfmt::skip]
    let payloads = [
        (F32, 0x7fc00000, F8E5M2, 0x7e), (F32, 0x7fe00000, F8E5M2, 0x7f), (F32, 0x7f800001, F16, 0x7e00),
        (Bf16, 0x7fc1, F32, 0x7fc10000),
        (F32, 0xff802000, F16, 0xfe01), (F16, 0x7c01, F32, 0x7fc02000), (F16, 0x7c01, F64, 0x7ff8040000000000),
        (F64, 0x7ff0000000000001, F32, 0x7fc00000), (F64, 0xfff7ffffffffffff, F32, 0xffffffff),
        (F8E5M2, 0x7d, F32, 0x7fe00000), (F8E5M2, 0xff, F16, 0xff00),
        // Canonical, because F8 sources or destinations have no payloads.
        (F32, 0x7fe00001, F8E4M3Fn, 0x7f), (F32, 0xffe00001, F8E4M3Fnuz, 0x80), (F8E4M3Fn, 0xff, F64, 0xfff8 << 48),
    ];
    for (src, code, dst, expected) in payloads {
        assert_eq!(run(src, code, Cast::to(dst)), expected, "{src} {code:x} to {dst}");
    }
}

#[test]
fn nan_stays_nan() {
    for (src, dst) in pairs(&[F16, Bf16, F8E5M2, F8E4M3Fn], &[F64, F32, F16, Bf16, F8E5M2, F8E4M3Fn]) {
        for code in 0..1u64 << src.code_bits() {
            let Exact::Nan { neg, .. } = decode(src, code) else { continue };
            if src == dst {
                continue;
            }
            let result = run(src, code, Cast::to(dst));
            assert!(matches!(decode(dst, result), Exact::Nan { neg: n, .. } if n == neg), "{src} {code:x} to {dst}");
            let canonical = NAN.iter().find(|r| r.0 == dst).unwrap().1;
            assert_eq!(result & canonical, canonical, "{src} {code:x} to {dst} is quiet");
        }
    }
}

// ---- §4.10: same type ----

#[test]
fn same_type_copies() {
    for dtype in ALL {
        let wide = dtype.code_bits() > 16;
        #[rustfmt::skip]
        let edges = [
            0, 1, u64::MAX, 1 << 63, 0x7f800000, 0x7f800001, 0xff800001, 0x80000000, 0x7ff0000000000001,
            0xfff0000000000001, 0x8000000000000001, 0x7fffffff, 0x123456789abcdef0,
        ];
        let codes = if wide { edges.to_vec() } else { (0..1 << dtype.code_bits()).collect() };
        for code in codes {
            let code = if dtype.code_bits() == 64 { code } else { code & ((1 << dtype.code_bits()) - 1) };
            for saturate in [true, false] {
                let cast = Cast { saturate: Some(saturate), ..Cast::to(dtype) };
                let expected = match (dtype, saturate, code) {
                    (F8E5M2, true, 0x7c) => 0x7b, // §5 row 12
                    (F8E5M2, true, 0xfc) => 0xfb,
                    (F8E5M2, true, 0x7d..=0x7f) => 0x7e,
                    (F8E5M2, true, 0xfd..=0xff) => 0xfe,
                    _ => code,
                };
                assert_eq!(outcome(dtype, code, cast), Outcome::Defined(expected), "{dtype} {code:x}");
            }
        }
    }
    for byte in 0..=0xff {
        assert_eq!(run(Bool, byte, Cast::to(Bool)), (byte != 0) as u64); // "normalizes nonzero bytes to 01"
    }
}

// ---- §4.11: undefined results ----

/// Converts sources to every destination under all attributes. Sources of at most 16 bits have all codes, and other
/// sources have edge values.
#[test]
fn undefined_results() {
    for src in ALL {
        let codes: Vec<u64> = match src {
            _ if src.code_bits() <= 16 => (0..1 << src.code_bits()).collect(),
            F32 | F64 => wide_edges().into_iter().map(|x| code_of(src, x)).collect(),
            _ => {
                (0..64).flat_map(|b| [1 << b, (1 << b) - 1, u64::MAX << b]).map(|c| low_bits(c as i128, src)).collect()
            }
        };
        for dst in ALL {
            for cast in attribute_sets(dst, NEWEST_OPSET) {
                check_undefined(src, &codes, cast);
            }
        }
    }
}

/// U6: at opsets 19 to 23, the text says NaN, but all implementations saturate.
#[test]
fn infinities_to_fnuz_are_undefined_before_opset_24() {
    let codes: Vec<u64> = wide_edges().into_iter().map(|x| code_of(F32, x)).collect();
    for opset in 19..=28 {
        for dst in [F8E4M3Fnuz, F8E5M2Fnuz] {
            for cast in attribute_sets(dst, opset) {
                check_undefined(F32, &codes, cast);
            }
        }
    }
}

fn check_undefined(src: DType, codes: &[u64], cast: Cast) {
    let spec = cast.resolve(src).unwrap();
    for &code in codes {
        let expected = undefined_id(src, decode(src, code), cast);
        match (cast_one(&spec, code), expected) {
            (Outcome::Defined(_), None) => {}
            (Outcome::Undefined { reason, .. }, Some(id)) if reason.split([' ', ',']).any(|w| w == id) => {}
            (outcome, _) => panic!("{src} {code:x} with {cast:?}: {outcome:?}, the page says {expected:?}"),
        }
    }
}

/// §4.11, row by row.
fn undefined_id(src: DType, x: Exact, cast: Cast) -> Option<&'static str> {
    let (dst, saturate, mode) = (cast.to, cast.saturate.unwrap_or(true), cast.round_mode.unwrap_or_default());
    let (nan, infinite) = (matches!(x, Exact::Nan { .. }), matches!(x, Exact::Inf { .. }));
    let x = if nan { f64::NAN } else { number(x) };
    if src == dst {
        return None; // §4.10
    }
    if let (Kind::Int(f), true) = (dst.kind(), src.is_float()) {
        let fits = x.trunc() >= f.min() as f64 && x.trunc() < (f.max() + 1) as f64; // powers of two: exact
        return match (fits, x.fract() != 0.0) {
            (false, _) => Some("U1"),
            (true, true) if f.bits <= 4 => Some("U5"),
            _ => None,
        };
    }
    if dst == F8E8M0 && !nan {
        let column = (saturate, mode) == (true, RoundMode::Up) || (saturate, mode) == (false, RoundMode::Nearest);
        return match x {
            _ if x.is_sign_negative() => Some("U2"),
            _ if !column && !(TINY..=HUGE).contains(&x) => Some("U3"),
            _ => None,
        };
    }
    match dst {
        F4E2M1 | F6E2M3 | F6E3M2 if nan => Some("U4"),
        F8E4M3Fnuz | F8E5M2Fnuz if infinite && saturate && cast.opset < 24 => Some("U6"),
        _ => None,
    }
}

/// `interpretations` lists equivalent sets of attributes once. For a cast to the same type, only E5M2 has two (§4.10).
#[test]
fn interpretations_of_a_copy() {
    for dtype in ALL {
        let sets = interpretations(dtype, dtype).into_iter().filter(|i| i.spec == "onnx").count();
        assert_eq!(sets, if dtype == F8E5M2 { 2 } else { 1 }, "{dtype}");
    }
    let sets = |dst| interpretations(F32, dst).into_iter().filter(|i| i.spec == "onnx").map(|i| i.attributes);
    assert_eq!(sets(F16).collect::<Vec<_>>(), [""]);
    assert_eq!(sets(F8E4M3Fn).collect::<Vec<_>>(), ["saturate=1", "saturate=0"]);
    assert_eq!(sets(F8E8M0).count(), 6);
    assert_eq!(sets(F8E3M4).count(), 0);
}

fn outcome(src: DType, code: u64, cast: Cast) -> Outcome {
    cast_one(&cast.resolve(src).unwrap(), code)
}

fn run(src: DType, code: u64, cast: Cast) -> u64 {
    outcome(src, code, cast).code().expect("ONNX never refuses a value")
}

fn check(src: DType, x: f64, cast: Cast, expected: u64) {
    assert_eq!(run(src, code_of(src, x), cast), expected, "{src} {x:e} with {cast:?}, want {expected:02x}");
}

fn pairs(sources: &[DType], destinations: &[DType]) -> Vec<(DType, DType)> {
    sources.iter().flat_map(|&s| destinations.iter().map(move |&d| (s, d))).collect()
}

fn e8m0_casts() -> [Cast; 6] {
    let cast = |saturate, mode| Cast { saturate: Some(saturate), round_mode: Some(mode), ..Cast::to(F8E8M0) };
    use RoundMode::*;
    [(true, Up), (true, Down), (true, Nearest), (false, Up), (false, Down), (false, Nearest)].map(|(s, m)| cast(s, m))
}

fn attribute_sets(dst: DType, opset: u32) -> Vec<Cast> {
    let modes: &[Option<RoundMode>] =
        if opset >= 24 { &[Some(RoundMode::Up), Some(RoundMode::Down), Some(RoundMode::Nearest)] } else { &[None] };
    let modes = if dst == F8E8M0 { modes } else { &modes[..1] };
    let sets = modes.iter().flat_map(|&m| [true, false].map(|s| (Some(s), m)));
    sets.map(|(saturate, round_mode)| Cast { saturate, round_mode, opset, ..Cast::to(dst) }).collect()
}

/// Edge values that FLOAT holds, each with both signs. They are limits of integers, of E8M0 and of floats, then
/// fractions, Inf and NaN.
fn wide_edges() -> Vec<f64> {
    let mut all =
        vec![0.0, f64::NAN, INF, f32::MAX as f64, f32::MIN_POSITIVE as f64, 2f64.powi(-149), 0.5, 2.5, 1e30f32 as f64];
    for e in (-130..=127).filter(|e: &i32| e.abs() < 70 || e.abs() > 120) {
        let x = 2f64.powi(e) as f32;
        all.extend([x.next_down() as f64, x as f64, x.next_up() as f64, 1.5 * x as f64]);
    }
    all.iter().flat_map(|&x| [x, -x]).collect()
}

fn low_bits(x: i128, dst: DType) -> u64 {
    x as u64 & (u64::MAX >> (64 - dst.code_bits()))
}

fn number(exact: Exact) -> f64 {
    let (neg, magnitude) = match exact {
        Exact::Inf { neg } => (neg, INF),
        Exact::Finite { neg, sig, exp, sticky: false } => (neg, sig as f64 * 2f64.powi(exp)),
        _ => panic!("{exact:?} is not a number"),
    };
    if neg { -magnitude } else { magnitude }
}

/// Code of a value that the type holds exactly. Hardware or a search finds it, not the code under test.
fn find_code(dtype: DType, x: f64) -> Option<u64> {
    let same = |y: f64| y.to_bits() == x.to_bits();
    match dtype {
        F64 => Some(x.to_bits()),
        F32 => Some((x as f32).to_bits() as u64).filter(|_| same(x as f32 as f64) || x.is_nan()),
        Bf16 => find_code(F32, x).filter(|c| c & 0xffff == 0).map(|c| c >> 16),
        _ => match dtype.kind() {
            Kind::Int(f) => {
                let integer = x == x.trunc() && !(x == 0.0 && x.is_sign_negative()) && x.abs() < 1e30;
                let n = x as i128;
                (integer && (f.min()..=f.max()).contains(&n)).then(|| low_bits(n, dtype))
            }
            Kind::Bool => (x == 1.0 || same(0.0)).then_some(x as u64),
            // By search; tests/formats.rs checks decoding against the formula.
            _ => (0..1 << dtype.code_bits()).find(|&c| match decode(dtype, c) {
                Exact::Nan { .. } => x.is_nan(),
                exact => same(number(exact)),
            }),
        },
    }
}

fn code_of(dtype: DType, x: f64) -> u64 {
    find_code(dtype, x).unwrap_or_else(|| panic!("{dtype} does not hold {x:e}"))
}

fn holds(dtype: DType, x: f64) -> bool {
    find_code(dtype, x).is_some()
}

fn holding(x: f64, types: &[DType]) -> Vec<DType> {
    types.iter().copied().filter(|&t| holds(t, x)).collect()
}
