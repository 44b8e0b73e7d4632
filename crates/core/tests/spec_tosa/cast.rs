//! Legality and results of plain casts: `docs/spec/tosa.md §3`.

use crate::page::{hex, integer, table};
use truecast_core::DType::{self, *};
use truecast_core::spec::tosa::{Cast, Feature, Features, Target, Version};
use truecast_core::spec::{SpecError, interpretations};
use truecast_core::{Exact, Outcome, cast_one, exact::decode};

const TYPES: [DType; 10] = [Bool, I8, I16, I32, I64, F8E4M3Fn, F8E5M2, F16, Bf16, F32];

fn named(name: &str) -> DType {
    DType::parse_in(truecast_core::Ecosystem::Tosa, name)
        .or_else(|_| DType::parse_in(truecast_core::Ecosystem::Tosa, &format!("{name}_t")))
        .unwrap()
}

fn at(version: Version, dst: DType) -> Cast {
    Cast { target: Target::of(version), ..Cast::to(dst) }
}

/// §3.2: each pair requires exactly the extensions in its cell of the table.
#[test]
fn legality_of_1_0() {
    let rows = table("### 3.2", "| in");
    let mut legal = 0;
    for row in &rows[1..] {
        for (dst, cell) in rows[0][1..].iter().zip(&row[1..]) {
            let (src, dst) = (named(&row[0]), named(dst));
            let needed: Vec<Feature> = cell
                .split('&')
                .filter_map(|letter| match letter {
                    "I" => Some(Feature::ProInt),
                    "F" => Some(Feature::ProFp),
                    "B" => Some(Feature::ExtBf16),
                    "4" => Some(Feature::ExtFp8E4M3),
                    "5" => Some(Feature::ExtFp8E5M2),
                    "-" => None,
                    other => panic!("unknown letter {other}"),
                })
                .collect();
            legal += !needed.is_empty() as usize;
            check_needs(Version::V1_0, src, dst, &needed);
        }
    }
    assert_eq!(legal, 46);
}

fn check_needs(version: Version, src: DType, dst: DType, needed: &[Feature]) {
    let with = |enabled| Cast { target: Target { enabled, ..Target::of(version) }, ..Cast::to(dst) }.resolve(src);
    if needed.is_empty() {
        let result = with(Features::of(Feature::ALL));
        assert!(matches!(result, Err(SpecError::Pair { .. })), "{src} to {dst}: {result:?}");
        return;
    }
    let spec = with(Features::of(needed)).unwrap_or_else(|e| panic!("{src} to {dst}: {e}"));
    assert_eq!((spec.src, spec.dst), (src, dst));
    for &one in needed {
        let message = with(Features::of(Feature::ALL).without(Features::of(&[one]))).unwrap_err().to_string();
        assert!(message.contains(one.name()), "{src} to {dst}: {message}");
    }
}

/// §3.3: the draft has 52 plain pairs, 1.0 has 46.
#[test]
fn additions_of_the_draft() {
    let added = [
        (Bool, F32, Feature::ProFp),
        (F32, Bool, Feature::ProFp),
        (Bool, I64, Feature::ExtInt64),
        (I32, I64, Feature::ExtInt64),
        (I64, Bool, Feature::ExtInt64),
        (I64, I32, Feature::ExtInt64),
    ];
    for (src, dst, feature) in added {
        check_needs(Version::V1_1, src, dst, &[feature]);
        assert!(at(Version::V1_0, dst).resolve(src).is_err(), "{src} to {dst}");
    }
    let pairs = TYPES.iter().flat_map(|&s| TYPES.map(|d| (s, d)));
    assert_eq!(pairs.filter(|&(s, d)| at(Version::V1_1, d).resolve(s).is_ok()).count(), 46 + 6);
}

#[test]
fn types_that_tosa_lacks() {
    for dtype in [I4, I48, U8, F64, F8E4M3Fnuz, F8E8M0, MxInt8, String] {
        assert!(matches!(at(Version::V1_1, dtype).resolve(F32), Err(SpecError::Type { .. })), "{dtype}");
        assert!(matches!(at(Version::V1_1, F32).resolve(dtype), Err(SpecError::Type { .. })), "{dtype}");
    }
    assert!(matches!(at(Version::V1_0, I32).resolve(I64), Err(SpecError::Type { .. })));
}

/// The error for a pair of a later version names that version. For other pairs, the error suggests another
/// specification.
#[test]
fn where_a_missing_pair_is() {
    let message = |version, src, dst| at(version, dst).resolve(src).unwrap_err().to_string();
    for (src, dst) in [(I64, I32), (I32, I64), (Bool, I64), (Bool, F32), (F32, Bool)] {
        let said = message(Version::V1_0, src, dst);
        assert!(said.ends_with("; tosa@1.1 has it"), "{src} to {dst}: {said}");
        assert!(at(Version::V1_1, dst).resolve(src).is_ok());
    }
    for (src, dst) in [(I64, F32), (U8, F32), (F64, F32)] {
        let said = message(Version::V1_0, src, dst);
        assert!(!said.contains("has it"), "{src} to {dst}: {said}");
    }
    let said = message(Version::V1_1, F16, Bf16);
    assert!(said.contains("no version of TOSA has this CAST"), "{said}");
}

#[test]
fn versions_by_name() {
    for (text, version) in
        [("1.0", Version::V1_0), ("1.0.2", Version::V1_0), ("1.1", Version::V1_1), ("1.1.0-draft", Version::V1_1)]
    {
        assert_eq!(text.parse(), Ok(version));
    }
    for text in ["", "1", "1.0.3", "0.90", "2.0", "1.01"] {
        assert!(text.parse::<Version>().is_err(), "{text}");
    }
}

/// §3.4 C4, §3.5.
#[test]
fn unsigned_inputs() {
    let cast = |version, src, dst, unsigned| Cast { input_unsigned: Some(unsigned), ..at(version, dst) }.resolve(src);
    assert!(cast(Version::V1_0, I8, F32, false).is_err());
    assert_eq!(cast(Version::V1_1, I8, F32, false).unwrap().src, I8);
    for src in [F32, Bool] {
        let dst = if src == F32 { I8 } else { I32 };
        assert!(cast(Version::V1_1, src, dst, true).unwrap_err().to_string().contains("C4"));
    }
    let one = |src, dst, code| cast_one(&cast(Version::V1_1, src, dst, true).unwrap(), code);
    assert_eq!(one(I8, I16, 0xff), Outcome::Defined(0x00ff));
    assert_eq!(one(I16, I8, 0xff80), Outcome::Defined(0x80));
    assert_eq!(one(I16, F16, 65519), Outcome::Defined(0x7bff));
    assert_eq!(one(I16, F16, 65520), Outcome::Defined(0x7c00));
    assert_eq!(one(I32, F32, 0xffff_ffff), Outcome::Defined(0x4f80_0000));
}

/// Expects any NaN if the expected result is NaN, else the equal code.
fn assert_golden(src: DType, dst: DType, input: u64, expected: Option<u64>) {
    let outcome = cast_one(&Cast::to(dst).resolve(src).unwrap(), input);
    match expected {
        Some(code) => assert_eq!(outcome, Outcome::Defined(code), "{src} {input:#x} to {dst}"),
        None => assert!(
            matches!(decode(dst, outcome.code().unwrap()), Exact::Nan { .. }),
            "{src} {input:#x} to {dst}: {outcome:x?}"
        ),
    }
}

/// §3.8.
#[test]
fn golden_floats() {
    let rows = table("### 3.8", "fp32 to the narrower");
    assert!(rows.len() > 50);
    for row in &rows[1..] {
        for (dst, cell) in [F16, Bf16, F8E4M3Fn, F8E5M2].into_iter().zip(&row[2..]) {
            assert_golden(F32, dst, hex(&row[0]), (cell != "NaN").then(|| hex(cell)));
        }
    }
}

#[test]
fn golden_floats_to_integers() {
    let rows = table("### 3.8", "fp32 to integers");
    for row in &rows[1..] {
        let input = f32::to_bits(row[0].to_lowercase().parse().unwrap()).into();
        for (dst, cell) in [I8, I16, I32].into_iter().zip(&row[1..]) {
            assert_golden(F32, dst, input, Some(integer(cell) as u64 & (u64::MAX >> (64 - dst.code_bits()))));
        }
    }
    for src in [F32, F16, Bf16] {
        let spec = Cast::to(I8).resolve(src).unwrap();
        let nan = truecast_core::format::F32.nan_code().unwrap() >> (32 - src.code_bits());
        let nan = if src == F16 { 0x7e00 } else { nan };
        assert!(matches!(cast_one(&spec, nan), Outcome::Undefined { code: 0, .. }), "{src}");
    }
}

#[test]
fn golden_integers() {
    let rows = table("### 3.8", "Integer to integer");
    for row in &rows[1..] {
        for (input, cell) in rows[0][1..].iter().zip(&row[1..]) {
            let (dst, input) = (named(&row[0]), integer(input) as u32 as u64);
            let expected = match cell.as_str() {
                "false" => 0,
                "true" => 1,
                number => integer(number) as u64 & (u64::MAX >> (64 - dst.code_bits())),
            };
            assert_golden(I32, dst, input, Some(expected));
        }
    }
    let wrap = at(Version::V1_1, I32).resolve(I64).unwrap();
    for (input, expected) in [(1i64 << 31, -1i64 << 31), (-(1 << 31) - 1, (1 << 31) - 1), ((1 << 32) + 5, 5)] {
        assert_eq!(cast_one(&wrap, input as u64), Outcome::Defined(expected as u32 as u64));
    }
}

#[test]
fn golden_integers_to_floats() {
    let rows = table("### 3.8", "i32 to floating-point");
    for row in &rows[1..] {
        for (dst, cell) in [F32, F16, Bf16].into_iter().zip(&row[1..]) {
            let outcome = cast_one(&Cast::to(dst).resolve(I32).unwrap(), integer(&row[0]) as u32 as u64);
            let value = decode(dst, outcome.code().unwrap());
            let expected = match cell.as_str() {
                "Inf" => Exact::Inf { neg: false },
                "-Inf" => Exact::Inf { neg: true },
                number => {
                    let n = integer(number);
                    let (sig, exp) = match value {
                        Exact::Finite { exp, .. } if exp >= 0 => (n.unsigned_abs() >> exp, exp),
                        Exact::Finite { exp, .. } => (n.unsigned_abs() << -exp, exp),
                        other => panic!("{} to {dst}: {other:?}", row[0]),
                    };
                    Exact::Finite { neg: n < 0, sig, exp, sticky: false }
                }
            };
            assert_eq!(value, expected, "{} to {dst}", row[0]);
        }
    }
}

/// §3.5: casts to and from bool.
#[test]
fn truth_values() {
    let spec = at(Version::V1_1, Bool).resolve(F32).unwrap();
    for (bits, truth) in [(0u64, 0), (0x8000_0000, 0), (1, 1), (0x7fc0_0000, 1), (0xff80_0000, 1)] {
        assert_eq!(cast_one(&spec, bits), Outcome::Defined(truth), "{bits:#x}");
    }
    let spec = at(Version::V1_1, F32).resolve(Bool).unwrap();
    assert_eq!(cast_one(&spec, 1), Outcome::Defined(0x3f80_0000));
}

/// `explain` lists the oldest version with the pair.
#[test]
fn interpretations_of_pairs() {
    let of = |src, dst| {
        interpretations(src, dst).into_iter().filter(|i| i.spec == "tosa").map(|i| i.version).collect::<Vec<_>>()
    };
    assert_eq!(of(F32, F8E4M3Fn), ["1.0"]);
    assert_eq!(of(I32, I64), ["1.1"]);
    assert!(of(F16, Bf16).is_empty());
}
