//! §6, §7 and §8.1 to §8.9.
#![allow(clippy::excessive_precision)] // neighbors of a limit are written with all their digits

use super::*;
use truecast_core::Outcome;
use truecast_core::spec::tile::meaning::{
    INFINITE, INTEGER_OVERFLOW, NAN_TO_E4M3, NO_SIGN, NO_ZERO, NOT_A_NUMBER, NOT_ZERO, OUT_OF_RANGE, PROMISE_BROKEN,
    RAW_ENCODING,
};

fn meaning(conversion: Conversion, src: &str, dst: &str, profile: Profile, options: &Options) -> Meaning {
    let (src, dst) = (element(src), element(dst));
    conversion.check_pair(src, dst, Release::NEWEST, profile, options).unwrap_or_else(|e| panic!("{e}"));
    conversion.meaning(src, dst, profile, options).unwrap_or_else(|e| panic!("{e}"))
}

fn of(conversion: Conversion, src: &str, dst: &str, profile: Profile, code: u64) -> Element {
    meaning(conversion, src, dst, profile, &OFF).element(code)
}

/// The result is defined in every profile.
fn everywhere(conversion: Conversion, src: &str, dst: &str, code: u64, expected: u64) {
    for profile in Profile::ALL {
        let outcome = of(conversion, src, dst, profile, code).outcome;
        let what = format!("{conversion:?} {src} {code:X} to {dst}, {}", profile.name());
        assert_eq!(outcome, Outcome::Defined(expected), "{what}: expected {expected:X}");
    }
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or_else(|_| panic!("{text}"))
}

const P15: f32 = 0.000030517578125; // 2^-15

fn power(exponent: i32) -> f32 {
    2f64.powi(exponent) as f32
}

/// §8.1. Columns: e4m3 sat, nonsat; e5m2 sat, nonsat; f16; bf16; tf32 E/A/Z; e2m1; e8m0 Z/P; ue5m3. The `nonsat`
/// columns are for itof, in [`itof_values`].
#[test]
fn f32_to_small_floats() {
    let rows: [(f32, [&str; 8]); 20] = [
        (0.25, ["28", "34", "3400", "3E80", "1F400", "0", "7D/7D", "68"]),
        (0.75, ["34", "3A", "3A00", "3F40", "1FA00", "2", "7E/7F", "74"]),
        (2.5, ["42", "41", "4100", "4020", "20100", "4", "80/81", "82"]),
        (3.5, ["46", "43", "4300", "4060", "20300", "6", "80/81", "86"]),
        (5.0, ["4A", "45", "4500", "40A0", "20500", "6", "81/82", "8A"]),
        (448.0, ["7E", "5F", "5F00", "43E0", "21F00", "7", "87/88", "BE"]),
        (464.0, ["7E", "5F", "5F40", "43E8", "21F40", "7", "87/88", "BE"]),
        (464.0 + P15, ["7E", "5F", "5F40", "43E8", "21F40", "7", "87/88", "BF"]),
        (57344.0, ["7E", "7B", "7B00", "4760", "23B00", "7", "8E/8F", "F6"]),
        (61439.0, ["7E", "7B", "7B80", "4770", "23B80/23B80/23B7F", "7", "8E/8F", "F7"]),
        (61440.0, ["7E", "7B", "7B80", "4770", "23B80", "7", "8E/8F", "F7"]),
        (65519.0, ["7E", "7B", "7BFF", "4780", "23BFF", "7", "8E/8F", "F8"]),
        (65520.0, ["7E", "7B", "7C00", "4780", "23C00/23C00/23BFF", "7", "8E/8F", "F8"]),
        (1e9, ["7E", "7B", "7C00", "4E6E", "27373", "7", "9C/9D", "FE"]),
        (power(-10), ["00", "14", "1400", "3A80", "1D400", "0", "75/75", "28"]),
        (1.5 * power(-10), ["01", "16", "1600", "3AC0", "1D600", "0", "75/76", "2C"]),
        (power(-17), ["00", "00", "0080", "3700", "1B800", "0", "6E/6E", "01"]),
        (1.0 + power(-11), ["38", "3C", "3C00", "3F80", "1FC00/1FC01/1FC00", "2", "7F/80", "78"]),
        (1.0 + power(-11) + power(-23), ["38", "3C", "3C01", "3F80", "1FC01/1FC01/1FC00", "2", "7F/80", "78"]),
        (f32::from_bits(1), ["00", "00", "0000", "0000", "00000", "0", "00/00", "00"]),
    ];
    assert_eq!((464.0f32 + P15).to_bits(), 0x43E80001);
    for (x, [e4m3, e5m2, f16, bf16, tf32, e2m1, e8m0, ue5m3]) in rows {
        let code = u64::from(x.to_bits());
        let plain = [("e4m3", e4m3), ("e5m2", e5m2), ("f16", f16), ("bf16", bf16), ("e2m1", e2m1), ("ue5m3", ue5m3)];
        for (dst, expected) in plain {
            everywhere(ftof('E'), "f32", dst, code, hex(expected));
            if dst != "ue5m3" {
                let sign = 1 << (number(dst).code_bits() - 1);
                everywhere(ftof('E'), "f32", dst, code | 1 << 31, hex(expected) | sign);
            }
        }
        let tf32: Vec<_> = tf32.split('/').map(hex).collect();
        for (i, letter) in "EAZ".chars().enumerate() {
            everywhere(ftof(letter), "f32", "tf32", code, *tf32.get(i).unwrap_or(&tf32[0]));
        }
        let (zero, positive) = e8m0.split_once('/').unwrap();
        everywhere(ftof('Z'), "f32", "e8m0", code, hex(zero));
        everywhere(ftof('P'), "f32", "e8m0", code, hex(positive));
    }
}

/// Lines below the table of §8.1.
#[test]
fn more_e8m0_and_e2m1() {
    let f32_power = |e: i32, m: f64| u64::from(((m * 2f64.powi(e)) as f32).to_bits());
    let rows = [
        (f32_power(0, 1.0), 0x7f, 0x7f),
        (f32_power(0, 1.5), 0x7f, 0x80),
        (f32_power(2, 1.5), 0x81, 0x82),
        (f32_power(-126, 1.0), 1, 1),
        (f32_power(-127, 1.5), 0, 1),
        (f32_power(-127, 1.0), 0, 0),
        (f32_power(-128, 1.0), 0, 0),
        (f32_power(127, 1.0), 0xfe, 0xfe),
        (f32_power(127, 1.5), 0xfe, 0xfe),
    ];
    for (code, zero, positive) in rows {
        everywhere(ftof('Z'), "f32", "e8m0", code, zero);
        everywhere(ftof('P'), "f32", "e8m0", code, positive);
    }
    for (x, expected) in [(1.25f32, 2), (1.75, 4), (7.0, 7), (9.0, 7), (-5.0, 0xe)] {
        everywhere(ftof('E'), "f32", "e2m1", x.to_bits().into(), expected);
    }
}

/// §8.2.
#[test]
fn directed_rounding() {
    let f64_to_f32 = [
        ("3FB999999999999A", ["3DCCCCCD", "3DCCCCCC", "3DCCCCCC", "3DCCCCCD"]),
        ("BFB999999999999A", ["BDCCCCCD", "BDCCCCCC", "BDCCCCCD", "BDCCCCCC"]),
        ("3FF0000010000000", ["3F800000", "3F800000", "3F800000", "3F800001"]),
        ("7E37E43C8800759C", ["7F800000", "7F7FFFFF", "7F7FFFFF", "7F800000"]),
        ("FE37E43C8800759C", ["FF800000", "FF7FFFFF", "FF800000", "FF7FFFFF"]),
        ("01A56E1FC2F8F359", ["00000000", "00000000", "00000000", "00000001"]),
        ("81A56E1FC2F8F359", ["80000000", "80000000", "80000001", "80000000"]),
    ];
    for (x, results) in f64_to_f32 {
        for (letter, expected) in "EZNP".chars().zip(results) {
            everywhere(ftof(letter), "f64", "f32", hex(x), hex(expected));
        }
    }
    let f32_to_tf32 = [
        ("3F801000", ["1FC00", "1FC01", "1FC00"]),
        ("3F803000", ["1FC02", "1FC02", "1FC01"]),
        ("BF801000", ["5FC00", "5FC01", "5FC00"]),
        ("00001000", ["00000", "00001", "00000"]),
        ("00001001", ["00001", "00001", "00000"]),
        ("7F7FEFFF", ["3FBFF", "3FBFF", "3FBFF"]),
        ("7F7FF000", ["3FC00", "3FC00", "3FBFF"]),
        ("7F7FFFFF", ["3FC00", "3FC00", "3FBFF"]),
    ];
    for (x, results) in f32_to_tf32 {
        for (letter, expected) in "EAZ".chars().zip(results) {
            everywhere(ftof(letter), "f32", "tf32", hex(x), hex(expected));
        }
    }
    let billion = u64::from(1e9f32.to_bits());
    everywhere(ftof('E'), "f32", "f16", billion, 0x7C00);
    everywhere(ftof('Z'), "f32", "f16", billion, 0x7BFF);
    everywhere(ftof('E'), "f32", "bf16", 0x7F7FFFFF, 0x7F80);
    everywhere(ftof('Z'), "f32", "bf16", 0x7F7FFFFF, 0x7F7F);
    let below = u64::from(65519.99609375f32.to_bits());
    everywhere(ftof('E'), "f32", "bf16", below, 0x4780);
    everywhere(ftof('Z'), "f32", "bf16", below, 0x477F);
}

/// §8.3: correct result, then the result of a released tool that rounds twice.
#[test]
fn single_rounding() {
    let legacy = Options { legacy_double_rounding: true, ..OFF };
    let check = |conversion: Conversion, src: &str, dst: &str, code: u64, correct: &str, double: &str| {
        everywhere(conversion, src, dst, code, hex(correct));
        let twice = meaning(conversion, src, dst, Profile::Spec, &legacy).element(code).outcome;
        assert_eq!(twice, Outcome::Defined(hex(double)), "{src} {code:X} to {dst}");
    };
    let floats = [
        ("3FF0020000001000", "tf32", "1FC01", "1FC00"),
        ("3FF1000000001000", "e4m3", "39", "38"),
        ("3FF1000000001000", "ue5m3", "79", "78"),
        ("3FF2000000001000", "e5m2", "3D", "3C"),
        ("4014000000000400", "e2m1", "7", "6"),
    ];
    for (x, dst, correct, double) in floats {
        check(ftof('E'), "f64", dst, hex(x), correct, double);
    }
    let integers = [
        ("i32", 1074266113u64, "tf32", "27401", "27400"),
        ("i32", 16785409, "tf32", "25C01", "25C00"),
        ("i64", (1 << 60) + (1 << 49) + 1, "tf32", "2EC01", "2EC00"),
        ("i64", 72339069014638593, "bf16", "5B81", "5B81"), // no released tool rounds this one twice
        ("i32", 2305, "e5m2", "69", "68"),
        ("i32", 3839, "e5m2", "6B", "6C"),
        ("i32", 53263, "e5m2", "7B", "7A"),
        ("i32", 2177, "ue5m3", "D1", "D0"),
        ("i32", 4353, "ue5m3", "D9", "D8"),
        ("i32", 70000, "ue5m3", "F9", "FE"),
    ];
    for (src, n, dst, correct, double) in integers {
        check(itof(Signedness::Signed), src, dst, n, correct, double);
    }
    // Through f16, 108 positive integers give a wrong e5m2.
    let once = meaning(itof(Signedness::Signed), "i32", "e5m2", Profile::Hw, &OFF);
    let twice = meaning(itof(Signedness::Signed), "i32", "e5m2", Profile::Hw, &legacy);
    assert_eq!((0..70_000).filter(|&n| once.element(n) != twice.element(n)).count(), 108);
}

/// §8.4.
#[test]
fn decoding() {
    let columns = [
        ("f64", 'E'),
        ("f32", 'E'),
        ("tf32", 'E'),
        ("bf16", 'E'),
        ("f16", 'E'),
        ("f16", 'Z'),
        ("e4m3", 'E'),
        ("e5m2", 'E'),
    ];
    let rows = [
        ("e8m0", "00", ["3800000000000000", "00400000", "00200", "0040", "0000", "0000", "00", "00"]),
        ("e8m0", "01", ["3810000000000000", "00800000", "00400", "0080", "0000", "0000", "00", "00"]),
        ("e8m0", "7F", ["3FF0000000000000", "3F800000", "1FC00", "3F80", "3C00", "3C00", "38", "3C"]),
        ("e8m0", "FE", ["47E0000000000000", "7F000000", "3F800", "7F00", "7C00", "7BFF", "7E", "7B"]),
        ("ue5m3", "FE", ["40FC000000000000", "47E00000", "23F00", "47E0", "7C00", "7BFF", "7E", "7B"]),
        ("ue5m3", "01", ["3EE0000000000000", "37000000", "1B800", "3700", "0080", "0080", "00", "00"]),
        ("e2m1", "7", ["4018000000000000", "40C00000", "20600", "40C0", "4600", "4600", "4C", "46"]),
        ("e2m1", "F", ["C018000000000000", "C0C00000", "60600", "C0C0", "C600", "C600", "CC", "C6"]),
    ];
    for (src, code, results) in rows {
        for ((dst, letter), expected) in columns.iter().zip(results) {
            everywhere(ftof(*letter), src, dst, hex(code), hex(expected));
        }
    }
}

/// §8.5.
#[test]
fn nan_and_signed_zero() {
    let columns = ["f16", "bf16", "tf32", "f64", "e5m2", "e4m3", "e8m0", "ue5m3", "e2m1"];
    let rows = [
        ("7FC00000", ["7E00", "7FC0", "3FE00", "7FF8000000000000", "7E", "7F", "FF", "FF", "7"]),
        ("FFC12345", ["FE09", "FFC1", "7FE09", "FFF82468A0000000", "FE", "FF", "FF", "FF", "7"]),
        ("7F800001", ["7E00", "7FC0", "3FE00", "7FF8000020000000", "7E", "7F", "FF", "FF", "7"]),
        ("80000000", ["8000", "8000", "40000", "8000000000000000", "80", "80", "00", "00", "8"]),
    ];
    for (code, results) in rows {
        for (dst, expected) in columns.iter().zip(results) {
            let letter = if *dst == "e8m0" { 'Z' } else { 'E' };
            everywhere(ftof(letter), "f32", dst, hex(code), hex(expected));
        }
        everywhere(ftof('Z'), "f32", "tf32", hex(code), hex(results[2]));
    }
    let away = |profile| of(ftof('A'), "f32", "tf32", profile, 0x7F800001).outcome;
    assert_eq!(away(Profile::Hw), Outcome::Defined(0x3FC00)); // Inf: D8
    assert_eq!(away(Profile::Spec), Outcome::Defined(0x3FE00));
    // §6.13: sign and leading payload bits of an f64 NaN.
    for (dst, expected) in [("f16", 0xFE00), ("bf16", 0xFFC0), ("f32", 0xFFC00000)] {
        everywhere(ftof('E'), "f64", dst, 0xFFF0000000000001, expected);
    }
}

/// U3, U5, U6, and the options for them.
#[test]
fn options_of_ftof() {
    let nan = 0xFFC12345;
    for profile in Profile::ALL {
        assert_eq!(of(ftof('E'), "f32", "e4m3", profile, nan).note, Some(NAN_TO_E4M3), "a note in every profile");
    }
    let with =
        |options: &Options, dst, code| meaning(ftof('E'), "f32", dst, Profile::Spec, options).element(code).outcome;
    let literal = Options { e4m3_nan_spec_literal: true, ..OFF };
    assert_eq!(with(&literal, "e4m3", nan), Outcome::Defined(0x7E));
    assert_eq!(with(&literal, "e5m2", nan), Outcome::Defined(0xFE));
    let inf = Options { preserve_inf: true, ..OFF };
    assert_eq!(with(&inf, "e5m2", 0x7F800000), Outcome::Defined(0x7C));
    assert_eq!(with(&inf, "e5m2", 0xFF800000), Outcome::Defined(0xFC));
    assert_eq!(with(&inf, "e5m2", 1e9f32.to_bits().into()), Outcome::Defined(0x7B), "finite values still saturate");
    assert_eq!(with(&OFF, "e5m2", 0xFF800000), Outcome::Defined(0xFB));
    assert_eq!(with(&inf, "e4m3", 0x7F800000), Outcome::Defined(0x7E));
    let canonical = Options { canonical_nan: true, ..OFF };
    for (dst, expected) in [("f16", 0x7E00), ("bf16", 0x7FC0), ("tf32", 0x3FE00), ("e5m2", 0x7E), ("e4m3", 0x7F)] {
        assert_eq!(with(&canonical, dst, nan), Outcome::Defined(expected), "{dst}");
    }
    assert_eq!(with(&canonical, "f64", nan), Outcome::Defined(0x7FF8000000000000));
    assert_eq!(with(&canonical, "f16", (-1f32).to_bits().into()), Outcome::Defined(0xBC00), "numbers keep their sign");
}

/// U5 and the witness of §6.7.4.
#[test]
fn types_without_sign() {
    let undefined = |code| Outcome::Undefined { code, reason: NO_SIGN };
    let minus_five = u64::from((-5f32).to_bits());
    for profile in [Profile::Spec, Profile::Seed] {
        assert_eq!(of(ftof('E'), "f32", "ue5m3", profile, minus_five).outcome, undefined(0x8A));
        assert_eq!(of(ftof('E'), "f32", "ue5m3", profile, 0xFF800000).outcome, undefined(0xFE));
        assert_eq!(of(ftof('Z'), "f32", "e8m0", profile, minus_five).outcome, undefined(0x81));
        assert_eq!(of(ftof('P'), "f32", "e8m0", profile, minus_five).outcome, undefined(0x82));
        assert_eq!(of(ftof('P'), "f32", "e8m0", profile, 0xFF800000).outcome, undefined(0xFE));
        for zero in [0, 1 << 31] {
            let to_e8m0 = of(ftof('Z'), "f32", "e8m0", profile, zero);
            assert_eq!((to_e8m0.outcome, to_e8m0.note), (Outcome::Defined(0), Some(NO_ZERO)));
            let to_ue5m3 = of(ftof('E'), "f32", "ue5m3", profile, zero);
            assert_eq!((to_ue5m3.outcome, to_ue5m3.note), (Outcome::Defined(0), None));
        }
    }
    assert_eq!(of(ftof('P'), "f32", "e8m0", Profile::Hw, minus_five).outcome, Outcome::Defined(0x82));
    assert_eq!(of(ftof('Z'), "f32", "e8m0", Profile::Hw, 0), Element { outcome: Outcome::Defined(0), note: None });
    let witness = (-(1.0 + 2f64.powi(-40))).to_bits();
    assert_eq!(of(ftof('P'), "f64", "e8m0", Profile::Hw, witness).outcome, Outcome::Defined(0x7F));
    assert_eq!(of(ftof('P'), "f64", "e8m0", Profile::Spec, witness).outcome, undefined(0x80));
}

/// `text` is `U7F / D2C / D7F`, the results in spec, hw and seed, or it is one result for all three. U is undefined, D
/// is defined.
fn cell(text: &str, conversion: Conversion, src: &str, dst: &str, code: u64, reason: &'static str) {
    let width = number(dst).code_bits();
    let parts: Vec<_> = text.split('/').collect();
    for (i, profile) in Profile::ALL.into_iter().enumerate() {
        let part = parts.get(i).unwrap_or(&parts[0]);
        let (kind, digits) = part.split_at(1);
        let value = match digits.strip_prefix("i") {
            Some(decimal) => decimal.parse::<i128>().unwrap() as u64,
            None => hex(digits),
        };
        let expected = match kind {
            "D" => Outcome::Defined(value),
            "U" => Outcome::Undefined { code: value, reason },
            _ => panic!("{text}"),
        };
        assert!(width == 64 || value >> width == 0);
        let what = format!("{conversion:?} {src} {code:X} to {dst}, {}", profile.name());
        assert_eq!(of(conversion, src, dst, profile, code).outcome, expected, "{what}");
    }
}

/// §8.6. Digits with prefix `i` are decimal.
#[test]
fn ftoi_values() {
    use Signedness::{Signed, Unsigned};
    let columns =
        [("i8", Signed), ("i8", Unsigned), ("i16", Signed), ("i32", Signed), ("i32", Unsigned), ("i64", Signed)];
    const MAX64: &str = "U7FFFFFFFFFFFFFFF/D7FFFFFFFFFFFFFFF/D7FFFFFFFFFFFFFFF";
    let rows: [(f32, [&str; 6]); 13] = [
        (127.9, ["D7F", "D7F", "D007F", "D0000007F", "D0000007F", "D7F"]),
        (-128.5, ["D80", "U00/D00/D00", "DFF80", "DFFFFFF80", "U0/D0/D0", "Di-128"]),
        (-0.9, ["D00", "D00", "D0000", "D0", "D0", "D0"]),
        (300.0, ["U7F/D2C/D7F", "UFF/D2C/DFF", "D012C", "D12C", "D12C", "D12C"]),
        (510.0, ["U7F/DFE/D7F", "UFF/DFE/DFF", "D01FE", "D1FE", "D1FE", "D1FE"]),
        (-200.0, ["U80/D38/D80", "U00/D00/D00", "DFF38", "DFFFFFF38", "U0/D0/D0", "Di-200"]),
        (-1.0, ["DFF", "U00/D00/D00", "DFFFF", "DFFFFFFFF", "U0/D0/D0", "Di-1"]),
        (1e6, ["U7F/DFF/D7F", "UFF/DFF/DFF", "U7FFF/D7FFF/D7FFF", "DF4240", "DF4240", "DF4240"]),
        (
            3e9,
            [
                "U7F/DFF/D7F", "UFF/DFF/DFF", "U7FFF/D7FFF/D7FFF", "U7FFFFFFF/D7FFFFFFF/D7FFFFFFF", "DB2D05E00",
                "DB2D05E00",
            ],
        ),
        (
            1e20,
            [
                "U7F/DFF/D7F", "UFF/DFF/DFF", "U7FFF/D7FFF/D7FFF", "U7FFFFFFF/D7FFFFFFF/D7FFFFFFF",
                "UFFFFFFFF/DFFFFFFFF/DFFFFFFFF", MAX64,
            ],
        ),
        (
            f32::INFINITY,
            [
                "U7F/DFF/U7F", "UFF/DFF/UFF", "U7FFF/D7FFF/U7FFF", "U7FFFFFFF/D7FFFFFFF/U7FFFFFFF",
                "UFFFFFFFF/DFFFFFFFF/UFFFFFFFF", "U7FFFFFFFFFFFFFFF/D7FFFFFFFFFFFFFFF/U7FFFFFFFFFFFFFFF",
            ],
        ),
        (
            f32::NEG_INFINITY,
            [
                "U80/D00/U80", "U00/D00/U00", "U8000/D8000/U8000", "U80000000/D80000000/U80000000", "U0/D0/U0",
                "U8000000000000000/D8000000000000000/U8000000000000000",
            ],
        ),
        (
            f32::NAN,
            ["U00/D00/D00", "U00/D00/D00", "U0000/D0000/D0000", "U0/D0/D0", "U0/D0/D0", "U0/D8000000000000000/D0"],
        ),
    ];
    for (x, cells) in rows {
        let reason = if x.is_nan() {
            NOT_A_NUMBER
        } else if x.is_infinite() {
            INFINITE
        } else {
            OUT_OF_RANGE
        };
        for ((dst, signedness), text) in columns.into_iter().zip(cells) {
            cell(text, ftoi(signedness, false), "f32", dst, x.to_bits().into(), reason);
            if !x.is_nan() {
                cell(text, ftoi(signedness, false), "f64", dst, f64::from(x).to_bits(), reason);
            }
        }
    }
    // An f64 source differs only for NaN.
    let nan = f64::NAN.to_bits();
    for signedness in [Signed, Unsigned] {
        cell("U00/D00/D00", ftoi(signedness, false), "f64", "i8", nan, NOT_A_NUMBER);
        cell("U0/D8000/D0", ftoi(signedness, false), "f64", "i16", nan, NOT_A_NUMBER);
        cell("U0/D80000000/D0", ftoi(signedness, false), "f64", "i32", nan, NOT_A_NUMBER);
        cell("U0/D8000000000000000/D0", ftoi(signedness, false), "f64", "i64", nan, NOT_A_NUMBER);
    }
    // Unsigned i64.
    let all = "FFFFFFFFFFFFFFFF";
    let u64_of = |text: String, x: f32, reason| {
        cell(&text, ftoi(Unsigned, false), "f32", "i64", x.to_bits().into(), reason);
    };
    u64_of(format!("U{all}/D{all}/D{all}"), 1e20, OUT_OF_RANGE);
    u64_of(format!("U{all}/D{all}/U{all}"), f32::INFINITY, INFINITE);
    u64_of("U0/D0/D0".into(), -1.0, OUT_OF_RANGE);
    u64_of("U0/D8000000000000000/D0".into(), f32::NAN, NOT_A_NUMBER);
}

/// §8.6, the line on `saturating`.
#[test]
fn saturating_ftoi() {
    let rows: [(f32, &str, u64, u64); 9] = [
        (300.0, "i8", 0x7F, 0xFF),
        (-200.0, "i8", 0x80, 0x00),
        (1e6, "i16", 0x7FFF, 0xFFFF),
        (3e9, "i32", 0x7FFFFFFF, 0xB2D05E00),
        (1e20, "i32", 0x7FFFFFFF, 0xFFFFFFFF),
        (f32::INFINITY, "i8", 0x7F, 0xFF),
        (f32::NEG_INFINITY, "i16", 0x8000, 0),
        (f32::NAN, "i64", 0, 0),
        (0.5, "i8", 0, 0),
    ];
    for (x, dst, signed, unsigned) in rows {
        everywhere(ftoi(Signedness::Signed, true), "f32", dst, x.to_bits().into(), signed);
        everywhere(ftoi(Signedness::Unsigned, true), "f32", dst, x.to_bits().into(), unsigned);
    }
    everywhere(ftoi(Signedness::Unsigned, true), "f32", "i8", (-1f32).to_bits().into(), 0);
    everywhere(ftoi(Signedness::Signed, true), "f32", "i32", 1 << 31, 0);
}

/// §8.7, and the options of §6.8.5.
#[test]
fn ftoi_to_i1() {
    let f32_rows: [(f32, &str, &str); 7] = [
        (0.5, "D1/D1/D0", "D1/D1/D0"),
        (1.0, "U1/D1/D0", "D1/D1/D1"),
        (-1.0, "D1/D1/D1", "U1/D1/D0"),
        (5.0, "U1/D1/D0", "U1/D1/D1"),
        (-0.0, "D0/D0/D0", "D0/D0/D0"),
        (f32::INFINITY, "U1/D1/U0", "U1/D1/U1"),
        (f32::NAN, "U1/D1/D0", "U1/D1/D0"),
    ];
    for (x, signed, unsigned) in f32_rows {
        let reason = match x {
            _ if x.is_nan() => NOT_A_NUMBER,
            _ if x.is_infinite() => INFINITE,
            _ => OUT_OF_RANGE,
        };
        cell(signed, ftoi(Signedness::Signed, false), "f32", "i1", x.to_bits().into(), reason);
        cell(unsigned, ftoi(Signedness::Unsigned, false), "f32", "i1", x.to_bits().into(), reason);
    }
    for signedness in Signedness::ALL {
        let to_i1 = |src, profile, code| of(ftoi(signedness, false), src, "i1", profile, code);
        cell("D0/D1/D0", ftoi(signedness, false), "e4m3", "i1", 0x80, OUT_OF_RANGE);
        cell("D1/D0/D0", ftoi(signedness, false), "e8m0", "i1", 0x00, OUT_OF_RANGE);
        assert_eq!(to_i1("f32", Profile::Spec, 0.5f32.to_bits().into()).note, Some(NOT_ZERO));
        assert_eq!(to_i1("e8m0", Profile::Spec, 0).note, Some(NOT_ZERO));
        assert_eq!(to_i1("e4m3", Profile::Spec, 0x80).note, None);
        assert_eq!(to_i1("e4m3", Profile::Hw, 0x80).note, Some(RAW_ENCODING));
        assert_eq!(to_i1("e8m0", Profile::Hw, 0).note, Some(RAW_ENCODING));
        assert_eq!(to_i1("f16", Profile::Hw, 0x8000).outcome, Outcome::Defined(0)); // by value
        for narrow in ["tf32", "e4m3", "e5m2", "e2m1"] {
            let minus_zero = 1 << (number(narrow).code_bits() - 1);
            assert_eq!(to_i1(narrow, Profile::Hw, minus_zero).outcome, Outcome::Defined(1), "{narrow}");
        }
        // With `saturating`, every element is defined, and has a note if the clamp changes its value.
        let flagged = |profile, x: f32| of(ftoi(signedness, true), "f32", "i1", profile, x.to_bits().into());
        for x in [0.5, f32::NAN] {
            let element = flagged(Profile::Spec, x);
            assert_eq!((element.outcome, element.note), (Outcome::Defined(1), Some(NOT_ZERO)), "{x}");
        }
        assert_eq!(flagged(Profile::Seed, f32::NAN).outcome, Outcome::Defined(0));
        let clamped = (signedness == Signedness::Unsigned) as u64; // signed clamps to [-1, 0]
        assert_eq!(flagged(Profile::Seed, 5.0).outcome, Outcome::Defined(clamped));
        assert_eq!(flagged(Profile::Spec, 5.0).note.is_some(), clamped == 0);
    }
    let truncate = Options { i1_ftoi_truncate: true, ..OFF };
    let of = |x: f32| {
        meaning(ftoi(Signedness::Unsigned, false), "f32", "i1", Profile::Spec, &truncate)
            .element(x.to_bits().into())
            .outcome
    };
    assert_eq!(of(0.5), Outcome::Defined(0));
    assert_eq!(of(1.9), Outcome::Defined(1));
    assert_eq!(of(5.0), Outcome::Undefined { code: 1, reason: OUT_OF_RANGE });
    assert_eq!(of(-1.0), Outcome::Undefined { code: 0, reason: OUT_OF_RANGE });
    assert_eq!(of(f32::INFINITY), Outcome::Undefined { code: 1, reason: INFINITE });
    assert_eq!(of(f32::NAN), Outcome::Undefined { code: 0, reason: NOT_A_NUMBER });
}

/// §8.8. `spec/hw` where the results differ. A leading U of ue5m3 is undefined in spec.
#[test]
fn itof_values() {
    let columns = ["e4m3", "e5m2", "e2m1", "ue5m3", "f16", "bf16", "tf32", "f32"];
    let rows: [(i128, [&str; 8]); 18] = [
        (5, ["4A", "45", "6", "8A", "4500", "40A0", "20500", "40A00000"]),
        (-5, ["CA", "C5", "E", "U8A/8A", "C500", "C0A0", "60500", "C0A00000"]),
        (449, ["7E", "5F", "7", "BE", "5F04", "43E0", "21F04", "43E08000"]),
        (464, ["7E", "5F", "7", "BE", "5F40", "43E8", "21F40", "43E80000"]),
        (465, ["7F/7E", "5F", "7", "BF", "5F44", "43E8", "21F44", "43E88000"]),
        (-465, ["FF/FE", "DF", "F", "UBF/BF", "DF44", "C3E8", "61F44", "C3E88000"]),
        (61439, ["7F/7E", "7B", "7", "F7", "7B80", "4770", "23B80", "476FFF00"]),
        (61440, ["7F/7E", "7C/7B", "7", "F7", "7B80", "4770", "23B80", "47700000"]),
        (65519, ["7F/7E", "7C/7B", "7", "F8", "7BFF", "4780", "23BFF", "477FEF00"]),
        (65520, ["7F/7E", "7C/7B", "7", "F8", "7C00", "4780", "23C00", "477FF000"]),
        (118784, ["7F/7E", "7C/7B", "7", "FE", "7C00", "47E8", "23F40", "47E80000"]),
        (118785, ["7F/7E", "7C/7B", "7", "FF/FE", "7C00", "47E8", "23F40", "47E80080"]),
        (1000000, ["7F/7E", "7C/7B", "7", "FF/FE", "7C00", "4974", "24BA1", "49742400"]),
        (-1000000, ["FF/FE", "FC/FB", "F", "UFF/FE", "FC00", "C974", "64BA1", "C9742400"]),
        (16777217, ["7F/7E", "7C/7B", "7", "FF/FE", "7C00", "4B80", "25C00", "4B800000"]),
        (2147483647, ["7F/7E", "7C/7B", "7", "FF/FE", "7C00", "4F00", "27800", "4F000000"]),
        (4294967295, ["7F/7E", "7C/7B", "7", "FF/FE", "7C00", "4F80", "27C00", "4F800000"]),
        (u64::MAX as i128, ["7F/7E", "7C/7B", "7", "FF/FE", "7C00", "5F80", "2FC00", "5F800000"]),
    ];
    for (n, cells) in rows {
        let signedness = if n > i64::MAX as i128 { Signedness::Unsigned } else { Signedness::Signed };
        for (dst, text) in columns.into_iter().zip(cells) {
            let (spec, hw) = text.split_once('/').unwrap_or((text, text));
            for profile in Profile::ALL {
                let element = of(itof(signedness), "i64", dst, profile, n as u64);
                let expected = match (profile, spec.strip_prefix('U')) {
                    (Profile::Hw, _) => Outcome::Defined(hex(hw)),
                    (_, Some(code)) => Outcome::Undefined { code: hex(code), reason: NO_SIGN },
                    (_, None) => Outcome::Defined(hex(spec)),
                };
                assert_eq!(element.outcome, expected, "{n} to {dst}, {}", profile.name());
                // §6.9: a note for every small float that overflows with a defined result.
                let limit = match dst {
                    "e4m3" => 465,
                    "e5m2" => 61440,
                    "e2m1" => 7,
                    "ue5m3" if n > 0 => 118785,
                    _ => i128::MAX,
                };
                let noted = profile != Profile::Hw && n.abs() >= limit;
                assert_eq!(element.note, noted.then_some(INTEGER_OVERFLOW), "{n} to {dst}, {}", profile.name());
            }
        }
    }
    for (signedness, f32_code, f64_code) in
        [(Signedness::Signed, 0xBF800000, 0xBFF0000000000000), (Signedness::Unsigned, 0x3F800000, 0x3FF0000000000000)]
    {
        everywhere(itof(signedness), "i1", "f32", 1, f32_code);
        everywhere(itof(signedness), "i1", "f64", 1, f64_code);
        everywhere(itof(signedness), "i32", "e4m3", 0, 0); // U21: +0
    }
}

/// §8.9.
#[test]
fn integer_width() {
    for (src, code, dst, signed, unsigned) in
        [("i1", 1, "i32", 0xFFFFFFFF, 1), ("i8", 0x80, "i16", 0xFF80, 0x0080), ("i4", 8, "i8", 0xF8, 0x08)]
    {
        everywhere(Conversion::Exti { signedness: Signedness::Signed }, src, dst, code, signed);
        everywhere(Conversion::Exti { signedness: Signedness::Unsigned }, src, dst, code, unsigned);
    }
    // A row has the result, then whether the promises no_signed_wrap and no_unsigned_wrap hold. The promise no_wrap
    // holds if both of these hold.
    let rows: [(&str, i64, &str, u64, bool, bool); 7] = [
        ("i32", 300, "i8", 0x2C, false, false),
        ("i32", 200, "i8", 0xC8, false, true),
        ("i32", -1, "i8", 0xFF, true, false),
        ("i32", -128, "i8", 0x80, true, false),
        ("i32", 2, "i1", 0, false, false),
        ("i32", -1, "i1", 1, true, false),
        ("i32", 1, "i1", 1, false, true),
    ];
    let i4 = ("i8", 0x10, "i4", 0, false, false);
    for (src, n, dst, code, nsw, nuw) in rows.into_iter().chain([i4]) {
        let kept = [
            (IntegerOverflow::None, true),
            (IntegerOverflow::NoSignedWrap, nsw),
            (IntegerOverflow::NoUnsignedWrap, nuw),
            (IntegerOverflow::NoWrap, nsw && nuw),
        ];
        for (overflow, kept) in kept {
            let source = n as u64 & (u64::MAX >> (64 - number(src).code_bits()));
            for profile in Profile::ALL {
                let expected = match kept || profile == Profile::Hw {
                    true => Outcome::Defined(code),
                    false => Outcome::Undefined { code, reason: PROMISE_BROKEN },
                };
                let found = of(Conversion::Trunci { overflow }, src, dst, profile, source).outcome;
                assert_eq!(found, expected, "{n} {src} to {dst} {overflow}");
            }
        }
    }
}

/// §6.6, literally. no_signed_wrap holds if every dropped bit equals the top bit of the result, and no_unsigned_wrap if
/// every dropped bit is zero. no_wrap holds if both hold.
#[test]
fn promises_bit_by_bit() {
    for (dst, width) in [("i1", 1), ("i4", 4), ("i8", 8)] {
        for n in 0..1u64 << 16 {
            let low = n & ((1 << width) - 1);
            let dropped = n >> width;
            let ones = (1 << (16 - width)) - 1;
            let top = low >> (width - 1);
            let nsw = dropped == if top == 1 { ones } else { 0 };
            let nuw = dropped == 0;
            let kept = [true, nsw, nuw, nsw && nuw];
            for (&overflow, kept) in IntegerOverflow::ALL.iter().zip(kept) {
                let outcome = of(Conversion::Trunci { overflow }, "i16", dst, Profile::Spec, n).outcome;
                assert_eq!(outcome.code(), Some(low), "{n:x}");
                assert_eq!(matches!(outcome, Outcome::Defined(_)), kept, "{n:x} to {dst} {overflow}");
            }
        }
    }
}

/// §6.4, §6.10: bits are copied, also of NaN.
#[test]
fn copied_bits() {
    for (src, dst, code) in [
        ("f32", "i32", 0x7F800001),
        ("i32", "f32", 0xFFC12345),
        ("f32", "f32", 0x7F800001),
        ("e4m3", "e5m2", 0xFF),
        ("i1", "i1", 1),
        ("tf32", "tf32", 0x7FFFF),
        ("e2m1", "e2m1", 0xF),
        ("f64", "i64", u64::MAX),
    ] {
        everywhere(Conversion::Bitcast, src, dst, code, code);
    }
    everywhere(Conversion::IntToPtr, "i64", "ptr i8", u64::MAX, u64::MAX);
    everywhere(Conversion::PtrToInt, "ptr f32", "i64", 1 << 63, 1 << 63);
    everywhere(Conversion::PtrToPtr, "ptr f32", "ptr i8", 5, 5);
    let word = Options { tf32_as_32_bit: true, ..OFF };
    let with = |src, dst, code| meaning(Conversion::Bitcast, src, dst, Profile::Spec, &word).element(code).outcome;
    assert_eq!(with("tf32", "i32", 0x1FC01), Outcome::Defined(0x1FC01 << 13));
    assert_eq!(with("i32", "tf32", (0x1FC01 << 13) | 0x1FFF), Outcome::Defined(0x1FC01));
    assert_eq!(with("f32", "i32", 0x1FFF), Outcome::Defined(0x1FFF));
}

/// U24: release 13.2 accepts the operation, but no source defines the result.
#[test]
fn no_value_for_nearest_even_to_e8m0() {
    let value = |conversion: Conversion, src, dst| {
        let pair = (element(src), element(dst));
        assert_eq!(conversion.check_pair(pair.0, pair.1, Release::V13_2, Profile::Spec, &OFF), Ok(()));
        let violation = conversion.meaning(pair.0, pair.1, Profile::Spec, &OFF).unwrap_err();
        (violation.code(), violation.to_string())
    };
    let (code, message) = value(ftof('E'), "f32", "e8m0");
    assert_eq!(code, "T008");
    // The message has only the requested release.
    let expected = "nearest_even from f32 to f8E8M0FNU passes the verifiers before 13.3 but has no value; use zero";
    assert!(message.contains(expected), "{message}");
    assert_eq!(value(itof(Signedness::Signed), "i32", "e8m0").0, "T012");
}
