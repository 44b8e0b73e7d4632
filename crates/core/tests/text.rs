//! `docs/spec/onnx.md §6`: every example on the page, and properties of all elements.
#![allow(clippy::approx_constant)] // 3.14 is an example of the page

use truecast_core::DType::{self, *};
use truecast_core::decimal::ParseDecimalError;
use truecast_core::policy::{IntOverflow, NanRule, TextStyle};
use truecast_core::spec::{SpecError, ieee, onnx};
use truecast_core::text::{MAX_LEN, max_len, parse_one, print_one};
use truecast_core::{CastSpec, Exact, Outcome, Rounding, exact::decode};
use truecast_testkit::digits::one_less;
use truecast_testkit::random::Random;

// ---- number to text, §6.2 and §6.3 ----

#[test]
fn examples_of_printing() {
    #[rustfmt::skip]
    let rows: &[(DType, u64, &str)] = &[
        // §6.3
        (F64, 0x4073a28c5436b8fa, "314.15926"), (F32, 0x439d1463, "314.15927"), (F32, 0x4048f5c3, "3.14"),
        (F32, 0x3f800000, "1.0"), (F32, 0x80000000, "-0.0"), (F32, 0x38d1b717, "1e-04"), (F32, 0x3727c5ac, "1e-05"),
        (F32, 0x4996b438, "1234567.0"), (F32, 0x4ceb79a3, "123456790.0"), (F32, 0x58635fa9, "1000000000000000.0"),
        (F32, 0x60ad78ec, "1e+20"), (F32, 0x00000001, "1e-45"), (F32, 0x7f7fffff, "3.4028235e+38"),
        (F32, 0x3b200000, "0.0024414062"), (F64, 0x4120000000400000, "524288.0004882812"),
        (F32, 0x7fc00000, "nan"), (F32, 0xff800000, "-inf"),
        (F64, 0x3f1a36e2eb1c432d, "0.0001"), (F64, 0x4340000000000000, "9007199254740992.0"),
        (F64, 0x4341c37937e08000, "1e+16"), (F64, 0x3fd5555555555555, "0.3333333333333333"), (F64, 1, "5e-324"),
        (F16, 0x2e66, "0.1"), (F16, 0x7bff, "65500.0"), (F16, 0x2000, "0.007812"), (Bf16, 0x3dcd, "0.1"),
        (Bf16, 0x4974, "1000000.0"), (F8E4M3Fn, 0x7e, "448.0"), (F8E5M2, 0x01, "1.5258789e-05"),
        (F8E8M0, 0xfe, "1.7014118e+38"), (F4E2M1, 0xf, "-6.0"), (Bf16, 0x4780, "65500.0"), (I4, 8, "-8"),
        (Bool, 1, "True"),
        // §6.2: examples in the rules and in the warning
        (F32, 0x48df7194, "457612.62"), (I64, 1 << 63, "-9223372036854775808"), (F8E8M0, 0, "5.877472e-39"),
        (Bool, 0, "False"), (F32, 0, "0.0"), (F64, 0x7ff << 52, "inf"), (F16, 0xfe00, "nan"), (F8E5M2Fnuz, 0x80, "nan"),
        (F8E8M0, 0xff, "nan"),
        // §6.7: column of NumPy 1.26.4
        (F32, 0x42c80000, "100.0"), (F32, 0x00000000, "0.0"), (F64, 0x419d6f3454000000, "123456789.0"),
        (F16, 0x4248, "3.14"), (F8E4M3Fn, 0x3b, "1.375"), (F8E8M0, 0x7e, "0.5"), (U2, 3, "3"),
        (U64, u64::MAX, "18446744073709551615"), (I1, 1, "-1"), (U1, 1, "1"), (I48, 0x8000_0000_0000, "-140737488355328"),
    ];
    for &(src, code, text) in rows {
        assert_eq!(print(src, code), text, "{src} {code:x}");
    }
    // §7.6: contents of the node tests up to 1.18.
    assert_eq!(print(F32, 0.9767611f32.to_bits() as u64), "0.9767611");
}

/// §6.2 rule 9: the digits are those of the reference style, and the notation is plain.
#[test]
fn examples_of_plain_notation() {
    let zeros = |n: usize| "0".repeat(n);
    #[rustfmt::skip]
    let rows: &[(DType, u64, std::string::String)] = &[
        (F32, 0x439d1463, "314.15927".into()), (F32, 0x38d1b717, "0.0001".into()), (F32, 0x3727c5ac, "0.00001".into()),
        (F32, 0x60ad78ec, format!("1{}.0", zeros(20))), (F32, 0x7f7fffff, format!("34028235{}.0", zeros(31))),
        (F32, 0x80000001, format!("-0.{}1", zeros(44))), (F64, 0x4341c37937e08000, format!("1{}.0", zeros(16))),
        (F64, 1, format!("0.{}5", zeros(323))), (F64, 0xffef_ffff_ffff_ffff, format!("-17976931348623157{}.0", zeros(292))),
        (F64, 0x4197d78400000000, "100000000.0".into()), (F8E5M2, 0x01, "0.000015258789".into()),
        (F8E8M0, 0, format!("0.{}5877472", zeros(38))), (F8E8M0, 0xfe, format!("17014118{}.0", zeros(31))),
        (F32, 0x80000000, "-0.0".into()), (F32, 0x7fc00000, "nan".into()), (F32, 0xff800000, "-inf".into()),
        (I64, 1 << 63, "-9223372036854775808".into()), (Bool, 1, "True".into()),
    ];
    for (src, code, text) in rows {
        assert_eq!(print_plain(*src, *code), *text, "{src} {code:x}");
    }
}

fn print_plain(src: DType, code: u64) -> std::string::String {
    let mut spec = ieee::Cast::to(String).resolve(src).unwrap();
    spec.policy.text = TextStyle::Plain;
    print_one(&spec, code).unwrap()
}

#[test]
fn styles_differ_in_notation_only() {
    let mut random = Random::new("styles");
    let digits = |text: &str| {
        let mantissa = text.split('e').next().unwrap().replace(['.', '-'], "");
        mantissa.trim_matches('0').to_string()
    };
    for src in DType::ALL.into_iter().filter(|t| t.is_numeric() && t.is_float()) {
        let bits = src.code_bits();
        let mask = u64::MAX >> (64 - bits);
        let codes: Vec<u64> = match bits {
            ..=16 => (0..=mask).collect(),
            // Every power of two, subnormal ones included, with its neighbors. Also random codes.
            _ => {
                let powers = (0..bits).map(|i| 1 << i).chain((0..2048u64).map(|e| e << (bits - 12)));
                let around = powers.flat_map(|c| [c.wrapping_sub(1), c, c + 1]);
                around.chain((0..3000).map(|_| random.next())).map(|c| c & mask).collect()
            }
        };
        let from_text = ieee::Cast::to(src).resolve(String).unwrap();
        for code in codes {
            let (reference, plain) = (print(src, code), print_plain(src, code));
            assert!(plain.len() <= max_len(src, TextStyle::Plain), "{src} {code:x}: {plain}");
            if plain.contains("n") {
                assert_eq!(plain, reference);
                continue;
            }
            assert!(!plain.contains('e') && plain.contains('.'), "{src} {code:x}: {plain}");
            assert_eq!(digits(&plain), digits(&reference), "{src} {code:x}");
            assert_eq!(parse_one(&from_text, plain.as_bytes()), parse_one(&from_text, reference.as_bytes()));
        }
    }
}

/// "The fewest significant decimal digits that give back the same value", for all types of at most 16 bits. E8M0 reads
/// back with `round_mode` nearest (§6.2).
#[test]
fn narrow_types_read_back() {
    for src in DType::ALL.into_iter().filter(|t| t.is_numeric() && t.code_bits() <= 16) {
        let from_text = ieee::Cast::to(src).resolve(String).unwrap();
        for code in 0..1 << src.code_bits() {
            let text = print(src, code);
            assert!(text.len() <= MAX_LEN);
            let back = parse_one(&from_text, text.as_bytes()).unwrap().code();
            match decode(src, code) {
                Exact::Nan { .. } => assert_eq!(text, "nan"),
                _ => assert_eq!(back, Some(code), "{src} {code:x}: {text}"),
            }
        }
    }
}

#[test]
fn no_shorter_and_no_nearer() {
    for (src, codes) in [(F16, 1..0x7c00u64), (Bf16, 0x3000..0x4f00)] {
        for code in codes.step_by(7) {
            let text = print(src, code);
            let value: f64 = number(src, code);
            let written: f64 = text.parse().unwrap();
            let digits = text.split('e').next().unwrap().replace('.', "");
            let digits = digits.trim_matches('0').len();
            let reads = |text: &str| {
                let to = onnx::Cast::to(src).resolve(String).unwrap();
                parse_one(&to, text.as_bytes()).unwrap().code() == Some(code)
            };
            // Rust prints the nearest decimal for a number of digits.
            if digits > 1 {
                let shorter = format!("{value:.*e}", digits - 2);
                assert!(!reads(&shorter), "{src} {code:x}: {text}, but {shorter} is shorter");
            }
            let nearest: f64 = format!("{value:.*e}", digits - 1).parse().unwrap();
            if reads(&format!("{nearest:e}")) {
                assert!((nearest - value).abs() >= (written - value).abs() * 0.999_999, "{src} {code:x}: {text}");
            }
        }
    }
}

/// Rust's shortest digits have the same length and read back, but may differ at ties (§6.2, the warning).
#[test]
fn wide_types_print_as_many_digits_as_rust() {
    let mut random = Random::new("wide_types");
    for _ in 0..3000 {
        let (wide, narrow) = (f64::from_bits(random.next()), f32::from_bits(random.next() as u32));
        let significant = |text: &str| {
            let text = text.split(['e', 'E']).next().unwrap().replace(['.', '-'], "");
            text.trim_matches('0').len()
        };
        if wide.is_finite() {
            let text = print(F64, wide.to_bits());
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), wide.to_bits(), "{text}");
            assert_eq!(significant(&text), significant(&format!("{wide:e}")), "{text}");
            assert!(text.len() <= MAX_LEN);
        }
        if narrow.is_finite() {
            let text = print(F32, narrow.to_bits() as u64);
            assert_eq!(text.parse::<f32>().unwrap().to_bits(), narrow.to_bits(), "{text}");
            assert_eq!(significant(&text), significant(&format!("{narrow:e}")), "{text}");
        }
    }
}

#[test]
fn nan_is_refused_if_the_policy_says_so() {
    let policy = ieee::Cast { nan: NanRule::Error, ..ieee::Cast::to(String) };
    let spec = policy.resolve(F32).unwrap();
    assert!(print_one(&spec, 0x7fc00000).is_err());
    assert_eq!(print_one(&spec, 0x3f800000).as_deref(), Ok("1.0"));
}

// ---- text to number, §6.4 and §6.5 ----

#[test]
fn accepted() {
    #[rustfmt::skip]
    let rows: &[(&str, f64)] = &[
        ("1", 1.0), ("+1.5", 1.5), ("-1.5", -1.5), (".5", 0.5), ("5.", 5.0), ("010", 10.0), ("1e-5", 1e-5), ("1E8", 1e8),
        ("1e+5", 1e5), ("INF", f64::INFINITY), ("+INF", f64::INFINITY), ("-INF", f64::NEG_INFINITY),
        ("Infinity", f64::INFINITY), ("-infinity", f64::NEG_INFINITY), ("3.14", 3.14), ("1000", 1000.0),
        (" 1 ", 1.0), ("\t1", 1.0), ("1\n", 1.0), ("\u{b}1\u{c}", 1.0), ("\r\n 1 \r\n", 1.0), ("-0", -0.0), ("314.15926", 314.15926),
        ("1e400", f64::INFINITY), ("-1e400", f64::NEG_INFINITY), ("1e-400", 0.0), ("-1e-400", -0.0),
        ("18446744073709551615", 1.8446744073709552e19),
    ];
    for &(text, value) in rows {
        assert_eq!(code(text, onnx::Cast::to(F64)), value.to_bits(), "{text:?}");
    }
    for (text, bits) in [("NaN", 0x7ff8 << 48), ("nan", 0x7ff8 << 48), ("-nan", 0xfff8 << 48), ("+NAN", 0x7ff8 << 48)] {
        assert_eq!(code(text, onnx::Cast::to(F64)), bits, "{text:?}"); // §4.9
    }
}

#[test]
fn refused() {
    #[rustfmt::skip]
    let rows: &[&[u8]] = &[
        b"", b" ", b"\t\n", b".", b"1e", b"e5", b"--1", b"1 1", b"1,5", b"1_000", b"1.5f", b"1.5abc", b"12abc", b"0x10",
        b"0x1p3", b"nan(1)", b"True", b"Hello World!", "\u{663}".as_bytes(), b"1\0", b"\0", b"\xff", b"1\xff", b"\xc3\x28",
        "\u{a0}1".as_bytes(), b"abc", b"+", b"+-1", b"1e+", b"- 1", b"1.2.3", b"1e5.5", b"in", b"infinit",
    ];
    for &text in rows {
        for dst in [F64, F32, F16, F8E4M3Fn, F8E8M0, F4E2M1, I64, U2] {
            let spec = onnx::Cast::to(dst).resolve(String).unwrap();
            let error = parse_one(&spec, text).expect_err(&format!("{:?} to {dst}", text.escape_ascii().to_string()));
            assert!(error.at <= text.len() && !error.what.is_empty());
        }
    }
    let f32 = onnx::Cast::to(F32).resolve(String).unwrap();
    assert_eq!(parse_one(&f32, b"  1.5x "), Err(ParseDecimalError { what: "unexpected character", at: 5 }));
}

#[test]
fn values() {
    let saturate = |to, on| onnx::Cast { saturate: Some(on), ..onnx::Cast::to(to) };
    let mode = |mode, on| onnx::Cast { round_mode: Some(mode), ..saturate(F8E8M0, on) };
    use onnx::RoundMode::{Down, Nearest, Up};
    #[rustfmt::skip]
    let rows: &[(&str, onnx::Cast, u64)] = &[
        // §6.5
        ("1e400", onnx::Cast::to(F64), 0x7ff0 << 48), ("1e39", onnx::Cast::to(F32), 0x7f800000),
        ("65520", onnx::Cast::to(F16), 0x7c00), ("1e6", saturate(F8E4M3Fn, true), 0x7e),
        ("1e6", saturate(F8E4M3Fn, false), 0x7f), ("1e-400", onnx::Cast::to(F32), 0), ("-1e-400", onnx::Cast::to(F32), 1 << 31),
        ("-1e-400", onnx::Cast::to(F8E4M3Fnuz), 0), ("-0", onnx::Cast::to(F32), 0x80000000),
        ("100.5", onnx::Cast::to(I32), 100), ("2.718", onnx::Cast::to(I32), 2), ("1e2", onnx::Cast::to(I32), 100),
        ("-0.9", onnx::Cast::to(I32), 0), ("128", onnx::Cast::to(I8), 0x80), ("300", onnx::Cast::to(U8), 44),
        ("-1", onnx::Cast::to(U64), u64::MAX), ("18446744073709551616", onnx::Cast::to(U64), 0),
        // §6.7
        ("2.7", onnx::Cast::to(I4), 2), ("2.7", onnx::Cast::to(U4), 2), ("010", onnx::Cast::to(I32), 10),
        ("2147483648", onnx::Cast::to(I32), 0x80000000), ("18446744073709551615", onnx::Cast::to(U64), u64::MAX),
        ("18446744073709551615", onnx::Cast::to(U8), 255), ("18446744073709551615", onnx::Cast::to(I64), u64::MAX),
        ("1e6", onnx::Cast::to(F16), 0x7c00), ("1e5", onnx::Cast::to(I32), 100_000),
        // §5 row 24
        ("65519.9999999999999999999", onnx::Cast::to(F16), 0x7bff),
        ("1.00390625000000000000001", onnx::Cast::to(Bf16), 0x3f81),
        ("464.0000000000000000001", saturate(F8E4M3Fn, false), 0x7f),
        // Integers use every digit (§6.5: modulo 2^N).
        ("18446744073709551617", onnx::Cast::to(U64), 1), ("1e63", onnx::Cast::to(U64), 1 << 63), ("1e64", onnx::Cast::to(U64), 0),
        ("-18446744073709551617", onnx::Cast::to(I64), u64::MAX), ("340282366920938463463374607431768211457", onnx::Cast::to(U32), 1),
        ("3402823669209384634633746074317682114570.00001e-1", onnx::Cast::to(U32), 1),
        ("0.000000000000000000000018446744073709551617e42", onnx::Cast::to(U64), 1), ("1e-1", onnx::Cast::to(U64), 0),
        ("9e99999999999999999999", onnx::Cast::to(U64), 0), ("9e-99999999999999999999", onnx::Cast::to(U64), 0),
        // §4.7 through text
        ("1.5", mode(Up, true), 0x80), ("1.5", mode(Down, true), 0x7f), ("1.5", mode(Nearest, true), 0x80),
        ("1.4999999999999999999999", mode(Nearest, true), 0x7f), ("1.0000000000000000000000001", mode(Up, true), 0x80),
        ("0", mode(Up, true), 0), ("0", mode(Nearest, false), 0xff), ("-1", mode(Up, true), 0), ("-1", mode(Up, false), 0xff),
        ("inf", mode(Up, true), 0xfe), ("inf", mode(Up, false), 0xff), ("nan", mode(Down, true), 0xff),
        ("170141183460469231731687303715884105728", mode(Up, false), 0xfe),
        ("170141183460469231731687303715884105728.0000000001", mode(Down, false), 0xff),
        ("5.877472e-39", mode(Up, true), 0x01), ("5.877472e-39", mode(Nearest, true), 0x00), // §6.2, round trip
        // §4.6 and §4.8 through text
        ("inf", saturate(F8E4M3Fn, true), 0x7e), ("-inf", saturate(F8E5M2, false), 0xfc), ("-inf", saturate(F8E5M2Fnuz, true), 0xff),
        ("nan", onnx::Cast::to(F4E2M1), 8), ("-nan", onnx::Cast::to(F6E2M3), 0), ("5", onnx::Cast::to(F4E2M1), 6),
        ("5.0000000000000000000001", onnx::Cast::to(F4E2M1), 7),
    ];
    for &(text, cast, expected) in rows {
        assert_eq!(code(text, cast), expected, "{text} to {}", cast.to);
    }
}

/// "`inf` and `nan` texts to an integer are errors under every policy."
#[test]
fn integers_are_finite() {
    for int_overflow in [IntOverflow::Wrap, IntOverflow::Saturate, IntOverflow::Error] {
        let spec = ieee::Cast { int_overflow, ..ieee::Cast::to(I32) }.resolve(String).unwrap();
        for text in ["inf", "-inf", "nan", "Infinity", " NaN "] {
            assert!(parse_one(&spec, text.as_bytes()).is_err(), "{text}");
        }
    }
}

#[test]
fn integers_out_of_range() {
    let with = |text: &str, to, int_overflow, rounding| {
        let spec = ieee::Cast { int_overflow, rounding, ..ieee::Cast::to(to) }.resolve(String).unwrap();
        parse_one(&spec, text.as_bytes()).unwrap().code()
    };
    for (text, to, saturated) in [
        ("128", I8, 0x7f),
        ("-129", I8, 0x80),
        ("18446744073709551617", U64, u64::MAX),
        ("-1", U64, 0),
        ("1e999", I64, i64::MAX as u64),
        ("-1e999", I64, 1 << 63),
    ] {
        assert_eq!(with(text, to, IntOverflow::Saturate, None), Some(saturated), "{text}");
        assert_eq!(with(text, to, IntOverflow::Error, None), None, "{text}");
    }
    // The decimal point is at any position among the digits.
    use Rounding::{Down, NearestAway, NearestEven, TowardZero, Up};
    for (text, expected) in [
        ("2.5", [2, 2, 3, 3, 2]),
        ("250e-2", [2, 2, 3, 3, 2]),
        (".00000000000000000000025e22", [2, 2, 3, 3, 2]),
        ("2.50000000000000000000000000000000001", [2, 3, 3, 3, 2]),
        ("2.4999999999999999999999999999999", [2, 2, 2, 3, 2]),
        ("0.05", [0, 0, 0, 1, 0]),
        ("5e-1", [0, 0, 1, 1, 0]),
        ("5e-2", [0, 0, 0, 1, 0]),
        ("2", [2, 2, 2, 2, 2]),
        ("18446744073709551614.5", [u64::MAX - 1, u64::MAX - 1, u64::MAX, u64::MAX, u64::MAX - 1]),
        ("18446744073709551615.5", [u64::MAX, 0, 0, 0, u64::MAX]),
    ] {
        for (rounding, expected) in [TowardZero, NearestEven, NearestAway, Up, Down].into_iter().zip(expected) {
            assert_eq!(with(text, U64, IntOverflow::Wrap, Some(rounding)), Some(expected), "{text} {rounding}");
        }
    }
}

/// Against 128-bit integers: every digit counts, for every position of the decimal point.
#[test]
fn long_integers() {
    let mut random = Random::new("long_integers");
    for _ in 0..20_000 {
        let value = (random.next() as u128) << 64 | random.next() as u128;
        let value = value >> (random.next() % 128);
        let shift = (random.next() % 45) as usize;
        let digits = value.to_string();
        let point = digits.len().saturating_sub(shift);
        let text = format!(
            "{}.{}{}e{shift}",
            &digits[..point],
            "0".repeat(shift.saturating_sub(digits.len())),
            &digits[point..]
        );
        for (dst, mask) in [(U64, u64::MAX), (U32, 0xffff_ffff), (I48, 0xffff_ffff_ffff), (U3, 7)] {
            let plain = ieee::Cast::to(dst).resolve(String).unwrap();
            for text in [&digits, &text] {
                let outcome = parse_one(&plain, text.as_bytes()).unwrap().code();
                assert_eq!(outcome, Some(value as u64 & mask), "{text} to {dst}");
            }
        }
    }
}

/// Midpoints between neighbors of every narrow float, and one unit in the last digit of a long decimal below and above.
/// The oracle is rational.
#[test]
fn midpoints() {
    for dst in [F16, Bf16, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F6E2M3, F6E3M2, F4E2M1] {
        let spec = onnx::Cast { saturate: Some(false).filter(|_| dst.code_bits() == 8), ..onnx::Cast::to(dst) };
        let step = if dst.code_bits() == 16 { 13 } else { 1 };
        let last = (0..1u64 << (dst.code_bits() - 1)).rev().find(|c| is_finite(dst, *c)).unwrap();
        for code in (0..last).step_by(step) {
            // Exact: both values are multiples of 2^-150 below 2^128, and f64 holds the mean.
            let (below, above) = (number(dst, code), number(dst, code + 1));
            let middle = format!("{:.160}", (below + above) / 2.0);
            let even = code + (code & 1);
            for (text, expected) in [(middle.clone(), even), (one_less(&middle), code), (middle + "1", code + 1)] {
                assert_eq!(self::code(&text, spec), expected, "{dst}: {text}");
                let negative = self::code(&format!("-{text}"), spec);
                let sign = 1 << (dst.code_bits() - 1);
                let has_negative_zero = !matches!(dst, F8E4M3Fnuz | F8E5M2Fnuz);
                assert_eq!(
                    negative,
                    if expected == 0 && !has_negative_zero { 0 } else { expected | sign },
                    "{dst}: -{text}"
                );
            }
        }
    }
}

fn is_finite(dtype: DType, code: u64) -> bool {
    matches!(decode(dtype, code), Exact::Finite { .. })
}

// ---- to bool, §6.6 ----

#[test]
fn text_to_bool() {
    let spec = onnx::Cast::to(Bool).resolve(String).unwrap();
    let truth = |text: &str| parse_one(&spec, text.as_bytes()).map(|outcome| outcome.code().unwrap());
    for text in ["true", "True", "TRUE", " tRuE\n", "nan", "inf", "-inf", "0.5", "1e-400", "1", "2", "-1", " 1"] {
        assert_eq!(truth(text), Ok(1), "{text:?}");
    }
    for text in ["false", "False", " FALSE ", "0", "-0", "0.0", "0e5", ".0"] {
        assert_eq!(truth(text), Ok(0), "{text:?}");
    }
    for text in ["", " ", "yes", "truee", "t", "0x1", "true false"] {
        assert!(truth(text).is_err(), "{text:?}");
    }
}

// ---- open results, §4.11, by opset ----

#[test]
fn open_results() {
    let reason = |outcome: Outcome| match outcome {
        Outcome::Undefined { reason, .. } => Some(reason.rsplit(' ').next().unwrap()),
        _ => None,
    };
    let to =
        |text: &str, dst| reason(parse_one(&onnx::Cast::to(dst).resolve(String).unwrap(), text.as_bytes()).unwrap());
    for (text, dst, expected) in [
        ("2.5", I32, Some("U8")),
        ("128", I8, Some("U8")),
        ("100.5", U4, Some("U8")),
        ("127", I8, None),
        ("1e2", I8, None),
        ("2.5", F32, None),
        ("0.1", F32, None),
        ("1e400", F64, None),
        ("1", Bool, Some("U10")),
        ("true", Bool, Some("U10")),
        ("-1", F8E8M0, Some("U2")),
        ("nan", F4E2M1, Some("U4")),
        ("0", F8E8M0, None),
    ] {
        assert_eq!(to(text, dst), expected, "{text} to {dst}");
    }
    let printing = onnx::Cast::to(String).resolve(F32).unwrap();
    assert!(printing.undefined[0].reason.ends_with("U9"));
}

#[test]
fn text_exists_from_cast_9_on() {
    for opset in 1..9 {
        let cast = onnx::Cast { opset, ..onnx::Cast::to(F32) };
        assert!(matches!(cast.resolve(String), Err(SpecError::Type { dtype: String, .. })), "{opset}");
        let cast = onnx::Cast { opset, ..onnx::Cast::to(String) };
        assert!(matches!(cast.resolve(F32), Err(SpecError::Type { dtype: String, .. })), "{opset}");
    }
    for opset in 9..=28 {
        let cast = onnx::Cast { opset, ..onnx::Cast::to(String) };
        assert!(cast.resolve(F32).is_ok() && cast.resolve(String).is_ok(), "{opset}");
    }
    // Types that were added to ONNX later than text.
    assert!(onnx::Cast { opset: 12, ..onnx::Cast::to(Bf16) }.resolve(String).is_err());
    assert!(onnx::Cast { opset: 13, ..onnx::Cast::to(Bf16) }.resolve(String).is_ok());
}

fn print(src: DType, code: u64) -> std::string::String {
    print_one(&ieee::Cast::to(String).resolve(src).unwrap(), code).unwrap()
}

fn code(text: &str, cast: onnx::Cast) -> u64 {
    let spec: CastSpec = cast.resolve(String).unwrap();
    parse_one(&spec, text.as_bytes()).unwrap_or_else(|e| panic!("{text:?}: {e}")).code().unwrap()
}

fn number(dtype: DType, code: u64) -> f64 {
    let Exact::Finite { neg, sig, exp, .. } = decode(dtype, code) else { panic!("{dtype} {code:x}") };
    let magnitude = sig as f64 * 2f64.powi(exp);
    if neg { -magnitude } else { magnitude }
}
