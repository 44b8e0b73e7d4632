//! Decimal text to values and back, against the exact conversions of the standard library.

use truecast_core::DType::{
    self, Bf16, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E8M0, F16, F32, F64, I8, I32, I64, MxInt8, U8, U64,
};
use truecast_core::decimal::{ParseDecimalError, parse, to_decimal};
use truecast_core::exact::{decode, encode};
use truecast_core::spec::onnx;
use truecast_core::{CastPolicy, Exact};
use truecast_testkit::digits::one_less;
use truecast_testkit::random::Random;

#[rustfmt::skip]
const BOUNDARIES: &[&str] = &[
    "0", "-0", "+0", "0.0", "00000", "0e99999999999999999999", "-0e-99999999999999999999", ".0", "0.",
    "1", "+1.5", "-1.5", ".5", "5.", "010", "1e-5", "1E8", "1e+5", "0.1", "3.14", "314.15926", "123456789.123456789",
    "4.9406564584124654e-324", "5e-324", "4.9e-324", "2.5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324",
    "2.2250738585072011e-308", "2.2250738585072012e-308", "2.2250738585072014e-308",
    "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "1.797693134862315807e308",
    "1.797693134862315808e308", "1e308", "1e309", "1e400", "-1e400", "1e-400", "-1e-400", "1e401", "1e-1199", "1e-1201",
    "1e999999999", "1e-999999999", "-1e9223372036854775807", "1e-9223372036854775808", "1e99999999999999999999999",
    "1.401298464324817e-45", "7.006492321624085e-46", "7.0064923216240853e-46", "7.0064923216240854e-46",
    "1.1754943508222875e-38", "1.1754942106924411e-38", "3.4028234663852886e38", "3.4028235677973366e38",
    "340282356779733661637539395458142568447", "340282356779733661637539395458142568448", "16777217", "9007199254740993",
    "18446744073709551615", "18446744073709551616", "1000000000000000000000000000000000000000000000000000000e-54",
    "18446744073709553664", "18446744073709553665", // 2^64 + 2^11, a tie of f64, and one more: 65 bits
    "18446745173221179392", "18446745173221179393", // 2^64 + 2^40, a tie of f32, and one more
    "inf", "-inf", "+INF", "Infinity", "-iNfInItY",
];

#[test]
fn boundaries() {
    for text in BOUNDARIES {
        check(text);
    }
    for digits in [1, 19, 20, 21, 799, 800, 1199, 1200, 1201, 5000] {
        let (ones, zeros) = ("1".repeat(digits), "0".repeat(digits));
        check(&ones);
        check(&format!("{ones}e-{digits}"));
        check(&format!("0.{zeros}{ones}"));
        check(&format!("0.{zeros}{ones}e{digits}"));
        check(&format!("{zeros}{ones}.{ones}e-{}", digits - 1));
        check(&format!("1{zeros}e-{digits}"));
        check(&format!("1{zeros}.{zeros}1e-{digits}"));
        check(&format!("5e-{}", digits));
    }
}

#[test]
fn random_text() {
    let mut random = Random::new("random_text");
    for _ in 0..20_000 {
        let bits = random.next();
        check(&format!("{:e}", f64::from_bits(bits)).to_lowercase()); // shortest digits
        check(&format!("{:.16e}", f64::from_bits(bits)));
        check(&format!("{:.8e}", f32::from_bits(bits as u32)));
        let digits = random.next() % 10u64.pow((bits % 19) as u32 + 1);
        let exponent = (random.next() % 700) as i32 - 350;
        check(&format!("{digits}e{exponent}"));
        check(&format!("-{digits}.{}e{}", random.next(), exponent / 8));
        check(&format!("{digits}{}.{}", random.next(), random.next()));
    }
}

const TIE_ABOVE_MAX: [&str; 4] = [
    "1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070",
    "9633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447",
    "5730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904",
    "174497792",
];

#[test]
fn halfway_f64() {
    let mut random = Random::new("halfway_f64");
    let edges = [0, 1, 2, (1 << 52) - 1, 1 << 52, (1 << 52) + 1, f64::MAX.to_bits() - 1];
    let sample: Vec<u64> = (0..400).map(|_| random.next() % f64::MAX.to_bits()).collect();
    for bits in edges.into_iter().chain(sample) {
        check_around(&middle(f64::from_bits(bits), f64::from_bits(bits + 1)));
    }
    // The value 2^1024 - 2^970 is a tie that overflows; smaller values do not overflow.
    check_around(&format!("{}.0", TIE_ABOVE_MAX.concat()));
}

/// The middle between neighboring floats is a double, and the standard library prints every digit of a double.
#[test]
fn halfway_f32() {
    let mut random = Random::new("halfway_f32");
    let edges = [0, 1, 2, (1 << 23) - 1, 1 << 23, f32::MAX.to_bits() - 1];
    let sample: Vec<u32> = (0..2000).map(|_| (random.next() % f32::MAX.to_bits() as u64) as u32).collect();
    for bits in edges.into_iter().chain(sample) {
        let middle = (f32::from_bits(bits) as f64 + f32::from_bits(bits + 1) as f64) / 2.0;
        check_around(&format!("{middle:.1074}"));
    }
    check_around(&format!("{:.1}", 2f64.powi(128) - 2f64.powi(103))); // the overflow threshold of f32
}

fn check_around(text: &str) {
    assert!(text.contains('.'));
    check(text);
    check(&format!("-{text}"));
    check(&format!("{text}0000000001")); // just above
    check(&format!("{text}{}1", "0".repeat(2000))); // above by a digit that is not kept
    check(&just_below(text));
}

/// Subtracts one unit in the last digit, and appends nines.
fn just_below(text: &str) -> String {
    one_less(text) + &"9".repeat(30)
}

/// Decimal digits of the midpoint (a + b) / 2. Both doubles are positive.
fn middle(a: f64, b: f64) -> String {
    // Prints a and b exactly, with equal numbers of digits after the point. Then computes (a + b) * 5 / 10, digit by
    // digit.
    let digits = |x: f64| format!("{x:0>1400.1074}").into_bytes().into_iter().filter(|c| *c != b'.');
    let mut carry = 0;
    let mut sum: Vec<u8> = Vec::new();
    for (a, b) in digits(a).rev().zip(digits(b).rev()) {
        let digit = (a - b'0' + b - b'0') as u32 * 5 + carry;
        sum.push(b'0' + (digit % 10) as u8);
        carry = digit / 10;
    }
    sum.push(b'0' + carry as u8);
    let fraction = sum.len() - 1075; // the fraction has one digit more than the summands
    sum.reverse();
    let text = String::from_utf8(sum).unwrap();
    let text = format!("{}.{}", &text[..fraction], &text[fraction..]);
    format!("0{}", text.trim_start_matches('0')).trim_end_matches('0').to_string() + "0"
}

/// `docs/spec/onnx.md §6.5` and §5 row 24: one rounding from text, no intermediate double.
#[test]
fn one_rounding_from_text() {
    let witness = "1.000000059604644776257986737988403547205962240695953369140625"; // 1 + 2^-24 + 2^-60
    #[rustfmt::skip]
    let rows: &[(&str, DType, Option<bool>, u64)] = &[
        ("65519.9999999999999999999", F16, None, 0x7bff), ("65520", F16, None, 0x7c00),
        ("1.00390625000000000000001", Bf16, None, 0x3f81), ("1.00390625", Bf16, None, 0x3f80),
        ("464.0000000000000000001", F8E4M3Fn, Some(false), 0x7f), ("464", F8E4M3Fn, Some(false), 0x7e),
        (witness, F32, None, 0x3f800001),
        ("1.000000059604644775390625", F32, None, 0x3f800000), // 1 + 2^-24, the tie
        ("1.0000000596046447753906250000000000000000000000000000000000001", F32, None, 0x3f800001),
        // overflow and underflow are not errors
        ("1e400", F64, None, 0x7ff0 << 48), ("1e39", F32, None, 0x7f800000), ("1e6", F8E4M3Fn, Some(true), 0x7e),
        ("1e6", F8E4M3Fn, Some(false), 0x7f), ("1e-400", F64, None, 0), ("-1e-400", F64, None, 1 << 63),
        ("-1e-400", F8E4M3Fnuz, None, 0), ("-0", F32, None, 0x80000000),
        // integers: truncated, then wrapped
        ("100.5", I8, None, 100), ("2.718", I32, None, 2), ("1e2", U8, None, 100), ("-0.9", I8, None, 0),
        ("128", I8, None, 0x80), ("300", U8, None, 44), ("-1", U64, None, u64::MAX),
        ("18446744073709551616", U64, None, 0), ("18446744073709551615", U64, None, u64::MAX),
        ("-9223372036854775808", I64, None, 1 << 63), ("9223372036854775807.99999", I64, None, i64::MAX as u64),
        ("1e19", U64, None, 10_000_000_000_000_000_000), ("1e64", U64, None, 0),
        ("1e999999999", U64, None, 0), ("1e-999999999", U64, None, 0),
    ];
    for &(text, dst, saturate, expected) in rows {
        assert_eq!(through_onnx(text, dst, saturate), expected, "{text} to {dst}");
    }
}

#[test]
fn not_numbers() {
    for (text, neg) in [("nan", false), ("NaN", false), ("+nan", false), ("-nan", true), ("-NAN", true)] {
        assert_eq!(parse(text), Ok(Exact::Nan { neg, payload: None }), "{text}");
    }
    for (text, neg) in [("inf", false), ("+INF", false), ("-INF", true), ("Infinity", false), ("-infinity", true)] {
        assert_eq!(parse(text), Ok(Exact::Inf { neg }), "{text}");
    }
}

/// `docs/spec/onnx.md §6.4`, with the position of the first wrong byte.
#[test]
fn grammar_errors() {
    #[rustfmt::skip]
    let rows: &[(&str, usize)] = &[
        ("", 0), (" ", 0), (".", 1), ("+", 1), ("-", 1), ("-.", 2), ("1e", 2), ("1e+", 3), ("1e-x", 3), ("e5", 0),
        (".e5", 1), ("--1", 1), ("+-1", 1), ("1 1", 1), (" 1", 0), ("1 ", 1), ("1,5", 1), ("1_000", 1), ("1.5f", 3),
        ("1.5abc", 3), ("12abc", 2), ("1.2.3", 3), ("1e5.5", 3), ("1e5e5", 3), ("0x10", 1), ("0x1p3", 1),
        ("True", 0), ("Hello World!", 0), ("1\0", 1), ("\0", 0), ("１", 0), ("1２", 1), ("-é", 1), ("1e５", 2), ("∞", 0),
    ];
    for &(text, at) in rows {
        match parse(text) {
            Err(ParseDecimalError { what, at: actual }) => {
                assert_eq!(actual, at, "{text:?}");
                assert!(!what.is_empty());
                assert!(parse(text).unwrap_err().to_string().contains(&at.to_string()));
            }
            Ok(value) => panic!("{text:?} is {value:?}"),
        }
    }
    for text in ["nan(1)", "nanx", "na", "infi", "infinit", "infinityx", "in", "inf1", "- inf", "1inf", "nane5"] {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

/// Megabytes of digits are parsed in linear time and memory.
#[test]
fn hostile_length() {
    let n = 4 << 20;
    let (nines, zeros) = ("9".repeat(n), "0".repeat(n));
    assert_eq!(f64_bits(&nines), f64::INFINITY.to_bits());
    assert_eq!(f64_bits(&format!("{nines}e-{n}")), 1f64.to_bits());
    assert_eq!(f64_bits(&format!("0.{nines}")), 1f64.to_bits());
    assert_eq!(f64_bits(&format!("0.{zeros}1")), 0);
    assert_eq!(f64_bits(&format!("0.{zeros}1e{}", n + 1)), 1f64.to_bits());
    assert_eq!(f64_bits(&format!("{zeros}25e-1")), 2.5f64.to_bits());
    assert_eq!(f64_bits(&format!("25{zeros}e-{}", n + 1)), 2.5f64.to_bits());
    assert_eq!(f64_bits(&format!("1e{nines}")), f64::INFINITY.to_bits());
    assert_eq!(f64_bits(&format!("1e-{nines}")), 0);
    assert_eq!(f64_bits(&format!("1e{zeros}1")), 10f64.to_bits());
    assert_eq!(f64_bits(&format!("1.5{zeros}{}1", "0".repeat(10))), 1.5f64.to_bits());
    assert!(parse(&format!("{nines}x")).is_err_and(|e| e.at == n));
}

#[test]
fn every_digit() {
    let mut random = Random::new("every_digit");
    let edges =
        [0.0, 1.0, 0.5, 0.1, 5e-324, f64::MIN_POSITIVE, f64::MAX, 1e15, 1e16, 1e22, 1e23, 123456.0, 2f64.powi(64)];
    let sample: Vec<f64> = (0..3000).map(|_| f64::from_bits(random.next())).filter(|x| x.is_finite()).collect();
    for x in edges.into_iter().chain(sample).flat_map(|x| [x, -x]) {
        let text = to_decimal(decode(F64, x.to_bits()));
        assert_eq!(text, trimmed(&format!("{x:.1074}")));
        assert_eq!(f64_bits(&text), x.to_bits(), "{text} reads back");
    }
    for _ in 0..3000 {
        let x = f32::from_bits(random.next() as u32);
        if x.is_finite() {
            assert_eq!(to_decimal(decode(F32, x.to_bits() as u64)), trimmed(&format!("{x:.149}")));
        }
    }
    for (dtype, code, text) in [
        (F64, 0x7ff8 << 48, "nan"),
        (F32, 0xffc00000, "-nan"),
        (F8E5M2, 0x7c, "inf"),
        (F16, 0xfc00, "-inf"),
        (F32, 0x80000000, "-0"),
        (F32, 0x3dcccccd, "0.100000001490116119384765625"),
        (I64, 1 << 63, "-9223372036854775808"),
        (U64, u64::MAX, "18446744073709551615"),
        (MxInt8, 0xff, "-0.015625"),
        (F8E8M0, 0xfe, "170141183460469231731687303715884105728"),
    ] {
        assert_eq!(to_decimal(decode(dtype, code)), text);
    }
}

#[test]
fn text_round_trips() {
    for dtype in DType::ALL.into_iter().filter(|t| t.is_numeric() && t.code_bits() <= 16) {
        for code in 0..1 << dtype.code_bits() {
            let exact = decode(dtype, code);
            if let Exact::Finite { .. } = exact {
                let back = encode(dtype, &CastPolicy::IEEE, parse(&to_decimal(exact)).unwrap());
                assert_eq!(back.code, Some(code), "{dtype} {code:x}: {}", to_decimal(exact));
            }
        }
    }
}

/// The standard library rounds correctly for texts of any length.
fn check(text: &str) {
    let expected: f64 = text.parse().unwrap_or_else(|_| panic!("{text:?}"));
    if expected.is_nan() {
        return; // random bits; see `not_numbers`
    }
    let shown = || if text.len() < 100 { text.into() } else { format!("{}... ({} bytes)", &text[..100], text.len()) };
    assert_eq!(f64_bits(text), expected.to_bits(), "{} to f64", shown());
    let expected: f32 = text.parse().unwrap();
    let actual = encode(F32, &CastPolicy::IEEE, parse(text).unwrap()).code;
    assert_eq!(actual, Some(expected.to_bits() as u64), "{} to f32", shown());
}

fn f64_bits(text: &str) -> u64 {
    encode(F64, &CastPolicy::IEEE, parse(text).unwrap()).code.unwrap()
}

fn through_onnx(text: &str, dst: DType, saturate: Option<bool>) -> u64 {
    let spec = onnx::Cast { saturate, ..onnx::Cast::to(dst) }.resolve(F64).unwrap();
    encode(dst, &spec.policy, parse(text).unwrap()).code.unwrap()
}

fn trimmed(text: &str) -> &str {
    text.trim_end_matches('0').trim_end_matches('.')
}

/// Numbers beyond every element type are not computed. A typed number may be for a format of P3109.
#[test]
fn far_exponents_are_not_computed_for_elements() {
    use truecast_core::literal::{self, Literal};
    for (text, is_large) in [("1e1000", true), ("-1e4000", true), ("1e-1300", false), ("1e-4000", false)] {
        let Ok(Exact::Finite { sig, exp, sticky, .. }) = parse(text) else { panic!("{text}") };
        assert!(sig == 1 << 63 && sticky && (exp > 1100) == is_large && (exp < -1200) != is_large, "{text}: {exp}");
        let Ok(Literal::Number(Exact::Finite { exp: typed, .. })) = literal::read(text) else { panic!("{text}") };
        let decimal: i32 = text.split_once('e').unwrap().1.parse().unwrap();
        let expected = (f64::from(decimal) * std::f64::consts::LOG2_10).floor() as i32 - 63;
        assert!(typed == expected && typed != exp, "{text}: {typed}, not {expected}");
    }
}
