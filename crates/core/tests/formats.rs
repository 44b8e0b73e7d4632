//! Descriptors, codes and names against tables typed from the reference pages.
#![allow(clippy::type_complexity)] // a table's type is its heading

use truecast_core::dtype::ParseTypeError;
use truecast_core::exact::{decode, encode};
use truecast_core::format::*;
use truecast_core::{CastPolicy, DType, Ecosystem, Exact, Kind, Layout, cast_one, spec::ieee};
use truecast_testkit::formats::{FORMATS, NF4, NF4_THRESHOLDS, SMALL_FLOATS, SPECIAL_CODES, TYPES};

/// `docs/kernels.md §3.3`. A row has p, q, T = significand * 2^exponent, and whether the maximum is odd. For each
/// usable intermediate it has the margins (p_H - p_D, q_D - q_H). `SERVES` marks a usable intermediate without numbers
/// in the page.
const SERVES: Option<(i32, i32)> = Some((0, 0));
const NO: Option<(i32, i32)> = None;
type Margins = Option<(i32, i32)>;
#[rustfmt::skip]
const DERIVED: [(&str, FloatFormat, u32, i32, (u64, i32), bool, Margins, Margins, Margins); 17] = [
    ("f64",           F64,           53, -1074, ((1 << 54) - 1, 970), true,  NO,            NO,              NO),
    ("f32",           F32,           24,  -149, ((1 << 25) - 1, 103), true,  NO,            NO,              Some((29, 925))),
    ("tf32",          TF32,          11,  -136, ((1 << 12) - 1, 116), true,  NO,            Some((13, 13)),  SERVES),
    ("bf16",          BF16,           8,  -133, ((1 << 9) - 1, 119),  true,  NO,            Some((16, 16)),  SERVES),
    ("f16",           F16,           11,   -24, (65520, 0),           true,  NO,            Some((13, 125)), SERVES),
    ("f8e5m2",        F8E5M2,         3,   -16, (61440, 0),           true,  Some((8, 8)),  Some((21, 133)), SERVES),
    ("f8e5m2fnuz",    F8E5M2FNUZ,     3,   -17, (61440, 0),           true,  Some((8, 7)),  Some((21, 132)), SERVES),
    ("f8e5m3fnu",     F8E5M3FNU,      4,   -17, (118784, 0),          false, NO,            Some((20, 132)), SERVES),
    ("f8e4m3ieee",    F8E4M3IEEE,     4,    -9, (248, 0),             true,  Some((7, 15)), Some((20, 140)), SERVES),
    ("f8e4m3fn",      F8E4M3FN,       4,    -9, (464, 0),             false, Some((7, 15)), Some((20, 140)), SERVES),
    ("f8e4m3fnuz",    F8E4M3FNUZ,     4,   -10, (248, 0),             true,  Some((7, 14)), Some((20, 139)), SERVES),
    ("f8e4m3b11fnuz", F8E4M3B11FNUZ,  4,   -13, (31, 0),              true,  Some((7, 11)), Some((20, 136)), SERVES),
    ("f8e3m4",        F8E3M4,         5,    -6, (63, -2),             true,  Some((6, 18)), Some((19, 143)), SERVES),
    ("f6e3m2",        F6E3M2,         3,    -4, (30, 0),              true,  Some((8, 20)), Some((21, 145)), SERVES),
    ("f6e2m3",        F6E2M3,         4,    -3, (31, -2),             true,  Some((7, 21)), Some((20, 146)), SERVES),
    ("f4e2m1",        F4E2M1,         2,    -1, (7, 0),               true,  Some((9, 23)), Some((22, 148)), SERVES),
    ("f8e8m0",        F8E8M0,         1,  -127, (3, 126),             false, NO,            Some((23, 22)),  SERVES),
];

#[test]
fn derived_quantities() {
    for (name, f, p, q, threshold, odd_max, f16, f32, f64) in DERIVED {
        assert_eq!(DType::parse(name).map(DType::kind), Ok(Kind::Float(f)), "{name}");
        assert_eq!(f.precision(), p, "p of {name}");
        assert_eq!(f.quantum(), q, "q of {name}");
        assert_eq!(reduced(f.overflow_threshold()), reduced(threshold), "T of {name}");
        assert_eq!(f.max_code() & 1 == 1, odd_max, "parity of the max of {name}");
        for (intermediate, expected) in [(F16, f16), (F32, f32), (F64, f64)] {
            assert_eq!(
                intermediate.is_safe_odd_intermediate_for(&f),
                expected.is_some(),
                "{intermediate:?} as an intermediate format for {name}"
            );
            if let Some(margins) = expected.filter(|_| expected != SERVES) {
                let actual =
                    (intermediate.precision() as i32 - f.precision() as i32, f.quantum() - intermediate.quantum());
                assert_eq!(actual, margins, "margins of {intermediate:?} for {name}");
            }
        }
    }
}

/// `docs/kernels.md §3.1`, conditions 1 to 3 with k = 2, each at its limit. No named format reaches these limits.
#[test]
fn intermediate_conditions() {
    let dst = |exp_bits, man_bits, bias| FloatFormat { exp_bits, man_bits, bias, ..F16 };
    let rows = [
        (dst(5, 21, 15), true, "p = 22 and p_H = 24"),
        (dst(5, 22, 15), false, "p = 23"),
        (dst(8, 7, 141), true, "q = -147 and q_H = -149"),
        (dst(8, 7, 142), false, "q = -148"),
        (dst(8, 7, 127), true, "T = 2^128 - 2^119, below max_H"),
        (dst(8, 7, 126), false, "T = 2^129 - 2^120, above max_H"),
        (FloatFormat { specials: Specials::Finite, ..dst(7, 7, 0) }, true, "T = 2^128 - 2^119 in a format without Inf"),
        (FloatFormat { specials: Specials::Finite, ..dst(7, 7, -1) }, false, "T = 2^129 - 2^120"),
    ];
    for (dst, expected, why) in rows {
        assert_eq!(F32.is_safe_odd_intermediate_for(&dst), expected, "{why}");
    }
}

/// `docs/spec/onnx.md §2.1`, `docs/spec/tile-ir.md §3.1`, `docs/kernels.md §4.6, §4.7`. Columns: bits of sign, exponent
/// and fraction; bias; code and value of the maximum; smallest normal (code, exponent of 2); Inf; canonical NaN; -0.
#[rustfmt::skip]
const PARAMETERS: [(FloatFormat, [u32; 3], i16, u64, f64, (u64, i32), Option<u64>, Option<u64>, bool); 17] = [
    (F64,           [1, 11, 52], 1023, 0x7fef_ffff_ffff_ffff, f64::MAX, (1 << 52, -1022), Some(0x7ff0 << 48), Some(0x7ff8 << 48), true),
    (F32,           [1, 8, 23], 127, 0x7f7f_ffff, f32::MAX as f64,         (0x80_0000, -126), Some(0x7f80_0000), Some(0x7fc0_0000), true),
    (TF32,          [1, 8, 10], 127, 0x3fbff, 3.4011621342146535e38,       (0x400, -126), Some(0x3fc00), Some(0x3fe00), true),
    (BF16,          [1, 8, 7],  127, 0x7f7f,  3.3895313892515355e38,       (0x80, -126),  Some(0x7f80), Some(0x7fc0), true),
    (F16,           [1, 5, 10],  15, 0x7bff,  65504.0,                     (0x400, -14),  Some(0x7c00), Some(0x7e00), true),
    (F8E5M2,        [1, 5, 2],   15, 0x7b,    57344.0,                     (0x04, -14),   Some(0x7c),   Some(0x7e),   true),
    (F8E5M2FNUZ,    [1, 5, 2],   16, 0x7f,    57344.0,                     (0x04, -15),   None,         Some(0x80),   false),
    (F8E5M3FNU,     [0, 5, 3],   15, 0xfe,    114688.0,                    (0x08, -14),   None,         Some(0xff),   false),
    (F8E4M3IEEE,    [1, 4, 3],    7, 0x77,    240.0,                       (0x08, -6),    Some(0x78),   Some(0x7c),   true),
    (F8E4M3FN,      [1, 4, 3],    7, 0x7e,    448.0,                       (0x08, -6),    None,         Some(0x7f),   true),
    (F8E4M3FNUZ,    [1, 4, 3],    8, 0x7f,    240.0,                       (0x08, -7),    None,         Some(0x80),   false),
    (F8E4M3B11FNUZ, [1, 4, 3],   11, 0x7f,    30.0,                        (0x08, -10),   None,         Some(0x80),   false),
    (F8E3M4,        [1, 3, 4],    3, 0x6f,    15.5,                        (0x10, -2),    Some(0x70),   Some(0x78),   true),
    (F6E3M2,        [1, 3, 2],    3, 0x1f,    28.0,                        (0x04, -2),    None,         None,         true),
    (F6E2M3,        [1, 2, 3],    1, 0x1f,    7.5,                         (0x08, 0),     None,         None,         true),
    (F4E2M1,        [1, 2, 1],    1, 0x7,     6.0,                         (0x2, 0),      None,         None,         true),
    (F8E8M0,        [0, 8, 0],  127, 0xfe,    1.7014118346046923e38,       (0x00, -127),  None,         Some(0xff),   false),
];

#[test]
fn parameters() {
    for (f, [sign, exp, man], bias, max_code, max, (min_normal, emin), inf, nan, negative_zero) in PARAMETERS {
        assert_eq!([f.signed as u32, f.exp_bits as u32, f.man_bits as u32], [sign, exp, man], "{f:?}");
        assert_eq!(f.bias, bias, "{f:?}");
        assert_eq!(f.bits(), sign + exp + man, "{f:?}");
        assert_eq!(f.max_code(), max_code, "{f:?}");
        assert_eq!(value(truecast_core::exact::decode_float(&f, max_code)), max, "{f:?}");
        assert_eq!(f.min_normal_code(), min_normal, "{f:?}");
        assert_eq!(f.emin(), emin, "{f:?}");
        assert_eq!(f.inf_code(), inf, "{f:?}");
        assert_eq!(f.nan_code(), nan, "{f:?}");
        assert_eq!(f.has_negative_zero(), negative_zero, "{f:?}");
        assert_eq!(f.sign_bit(), if sign == 1 { 1 << (exp + man) } else { 0 }, "{f:?}");
        assert_eq!(f.emax(), (max.to_bits() >> 52) as i32 - 1023, "{f:?}");
    }
}

#[test]
fn special_codes_of_the_8_bit_floats() {
    for (name, rows) in SPECIAL_CODES {
        let dtype = DType::parse(name).unwrap();
        for &(code, integer, exponent) in rows {
            assert_eq!(value(decode(dtype, code)), integer as f64 * 2f64.powi(exponent), "{dtype} {code:02x}");
        }
    }
    // -0, Inf and NaN; every other code is finite.
    let special = |dtype, code| match decode(dtype, code) {
        Exact::Finite { neg: true, sig: 0, .. } => "-0",
        Exact::Finite { .. } => "",
        Exact::Inf { neg: false } => "inf",
        Exact::Inf { neg: true } => "-inf",
        Exact::Nan { neg: false, .. } => "nan",
        Exact::Nan { neg: true, .. } => "-nan",
    };
    for code in 0..=0xff {
        let e4m3fn = [(0x7f, "nan"), (0xff, "-nan"), (0x80, "-0")];
        let fnuz = [(0x80, "-nan")]; // `docs/spec/onnx.md §4.9`: an FNUZ NaN is negative
        let e5m2 = [
            (0x7c, "inf"),
            (0xfc, "-inf"),
            (0x7d, "nan"),
            (0x7e, "nan"),
            (0x7f, "nan"),
            (0xfd, "-nan"),
            (0xfe, "-nan"),
            (0xff, "-nan"),
            (0x80, "-0"),
        ];
        let find = |rows: &[(u64, &'static str)]| rows.iter().find(|r| r.0 == code).map_or("", |r| r.1);
        assert_eq!(special(DType::F8E4M3Fn, code), find(&e4m3fn), "{code:02x}");
        assert_eq!(special(DType::F8E4M3Fnuz, code), find(&fnuz), "{code:02x}");
        assert_eq!(special(DType::F8E5M2Fnuz, code), find(&fnuz), "{code:02x}");
        assert_eq!(special(DType::F8E5M2, code), find(&e5m2), "{code:02x}");
        assert_eq!(special(DType::F8E8M0, code), find(&[(0xff, "nan")]), "{code:02x}");
        assert_eq!(special(DType::F8E5M3Fnu, code), find(&[(0xff, "nan")]), "{code:02x}"); // tile-ir §3.4
    }
}

#[test]
fn all_values_of_the_4_and_6_bit_floats() {
    for (name, values) in SMALL_FLOATS {
        let dtype = DType::parse(name).unwrap();
        for (code, &expected) in values.iter().enumerate() {
            let negative = code + values.len(); // the top bit
            assert_eq!(value(decode(dtype, code as u64)).to_bits(), expected.to_bits(), "{dtype} {code:x}");
            assert_eq!(value(decode(dtype, negative as u64)).to_bits(), (-expected).to_bits(), "{dtype} {negative:x}");
        }
    }
}

#[test]
fn nf4_code_book() {
    let to_nf4 = ieee::Cast::to(DType::Nf4).resolve(DType::F32).unwrap();
    let nf4 = |bits: u32| cast_one(&to_nf4, bits as u64).code();
    for (code, bits) in (0..).zip(NF4) {
        assert_eq!(value(decode(DType::Nf4, code)), f32::from_bits(bits) as f64, "{code:x}");
        assert_eq!(nf4(bits), Some(code));
    }
    // A value equal to a threshold takes the lower code (`docs/spec/openvino.md §6.8`).
    for (code, threshold) in (0..).zip(NF4_THRESHOLDS.map(f32::from_bits)) {
        assert_eq!(nf4(threshold.next_down().to_bits()), Some(code));
        assert_eq!(nf4(threshold.to_bits()), Some(code));
        assert_eq!(nf4(threshold.next_up().to_bits()), Some(code + 1));
    }
    assert_eq!(nf4((-0f32).to_bits()), Some(7));
    assert_eq!(nf4(f32::NEG_INFINITY.to_bits()), Some(0));
    assert_eq!(nf4(f32::INFINITY.to_bits()), Some(0xf));
}

/// `docs/spec/onnx.md §2.5`, nearest even: the smallest positive f64 that overflows (`None`: clamps), and the largest
/// that rounds to zero.
#[rustfmt::skip]
const THRESHOLDS: [(DType, Option<f64>, f64); 10] = [
    (DType::F32,        Some(f64::from_bits(0x47ef_ffff_f000_0000)), f64::from_bits(0x3690 << 48)), // 2^128 - 2^103, 2^-150
    (DType::F16,        Some(65520.0),               1.0 / 33554432.0),      // 2^-25
    (DType::Bf16,       Some(f64::from_bits(0x47ef_f000_0000_0000)), f64::from_bits(0x3790 << 48)), // 2^128 - 2^119, 2^-134
    (DType::F8E4M3Fn,   Some(464.00000000000006),    1.0 / 1024.0),          // > 464, 2^-10
    (DType::F8E4M3Fnuz, Some(248.0),                 1.0 / 2048.0),
    (DType::F8E5M2,     Some(61440.0),               1.0 / 131072.0),
    (DType::F8E5M2Fnuz, Some(61440.0),               1.0 / 262144.0),
    (DType::F4E2M1,     None,                        0.25),
    (DType::F6E2M3,     None,                        0.0625),
    (DType::F6E3M2,     None,                        0.03125),
];

#[test]
fn rounding_thresholds() {
    for (dst, overflows, vanishes) in THRESHOLDS {
        let Kind::Float(f) = dst.kind() else { panic!("{dst} is a float") };
        let spec = ieee::Cast::to(dst).resolve(DType::F64).unwrap();
        let cast = |x: f64| cast_one(&spec, x.to_bits()).code().unwrap();
        match overflows {
            Some(x) => {
                assert_eq!(cast(x.next_down()), f.max_code(), "below the threshold of {dst}");
                assert_eq!(Some(cast(x)), f.inf_code().or(f.nan_code()), "at the threshold of {dst}");
            }
            None => {
                for x in [value(decode(dst, f.max_code())), 1e30, f64::INFINITY] {
                    assert_eq!(cast(x), f.max_code(), "{x} to {dst}");
                    assert_eq!(cast(-x), f.max_code() | f.sign_bit(), "-{x} to {dst}");
                }
            }
        }
        assert_eq!(cast(vanishes), 0, "{dst}");
        assert_eq!(cast(vanishes.next_up()), 1, "{dst}");
        let negative_zero = if f.has_negative_zero() { f.sign_bit() } else { 0 };
        assert_eq!(cast(-vanishes), negative_zero, "{dst}");
    }
}

/// Minimum and maximum (`docs/spec/onnx.md §2.6`). The widths of other integers are in their names (`docs/interfaces.md
/// §1`).
#[rustfmt::skip]
const INTEGERS: [(DType, i128, i128); 17] = [
    (DType::I1, -1, 0), (DType::U1, 0, 1), (DType::I2, -2, 1), (DType::U2, 0, 3), (DType::U3, 0, 7),
    (DType::I4, -8, 7), (DType::U4, 0, 15), (DType::U6, 0, 63), (DType::I8, -128, 127), (DType::U8, 0, 255),
    (DType::I16, -32768, 32767), (DType::U16, 0, 65535), (DType::I32, -2147483648, 2147483647),
    (DType::U32, 0, 4294967295), (DType::I48, -140737488355328, 140737488355327),
    (DType::I64, -9223372036854775808, 9223372036854775807), (DType::U64, 0, 18446744073709551615),
];

#[test]
fn integer_ranges() {
    let integers = DType::ALL.into_iter().filter(|t| matches!(t.kind(), Kind::Int(_))).count();
    assert_eq!(integers, INTEGERS.len());
    for (dtype, min, max) in INTEGERS {
        let Kind::Int(f) = dtype.kind() else { panic!("{dtype} is an integer") };
        assert_eq!((f.min(), f.max()), (min, max), "{dtype}");
        assert_eq!((f.value(f.code(min)), f.value(f.code(max))), (min, max), "{dtype}");
        assert_eq!(f.code(-1), (max - min) as u64, "{dtype}"); // all ones
        assert_eq!(f.code(min - 1), f.code(max), "{dtype}"); // wraps
    }
}

#[test]
fn every_code_round_trips() {
    let mut seen = 0;
    for dtype in DType::ALL {
        if !dtype.is_numeric() || !(dtype.code_bits() <= 16 || dtype == DType::Tf32) {
            continue;
        }
        let copy = ieee::Cast::to(dtype).resolve(dtype).unwrap();
        for code in 0..1u64 << dtype.code_bits() {
            let exact = decode(dtype, code);
            let encoded = encode(dtype, &CastPolicy::IEEE, exact).code;
            let expected = match (exact, dtype.kind()) {
                (Exact::Nan { .. }, Kind::Float(f)) if f.specials == Specials::Ieee => code | 1 << (f.man_bits - 1), // quiet
                _ => code,
            };
            assert_eq!(encoded, Some(expected), "{dtype} {code:x}");
            assert_eq!(cast_one(&copy, code).code(), Some(code), "{dtype} {code:x} to itself"); // onnx.md §4.10
            seen += 1;
        }
    }
    // A type of n bits has 2^n codes. The types are bool, i1 u1 i2 u2 u3 i4 u4 u6, i8 u8, i16 u16, f4, two f6, nine f8,
    // f16, bf16, tf32, mxint8, nf4.
    let expected = 2 + (2 + 2 + 4 + 4 + 8 + 16 + 16 + 64) + 2 * 256 + 2 * 65536;
    assert_eq!(seen, expected + 16 + 2 * 64 + 9 * 256 + 2 * 65536 + (1 << 19) + 256 + 16);
}

/// `docs/spec/onnx.md §2.2`, in f64, which holds these values exactly.
#[test]
fn decoding_formula() {
    for dtype in DType::ALL {
        let Kind::Float(f) = dtype.kind() else { continue };
        if f.bits() > 19 {
            continue;
        }
        let page = FORMATS.into_iter().find(|page| page.name == dtype.to_string()).unwrap();
        for code in 0..1u64 << f.bits() {
            let exact = decode(dtype, code);
            if matches!(exact, Exact::Finite { .. }) {
                assert_eq!(value(exact).to_bits(), page.value(code).to_bits(), "{dtype} {code:x}");
            }
        }
    }
    for code in 0..=0xff_u64 {
        assert_eq!(value(decode(DType::MxInt8, code)), code as u8 as i8 as f64 / 64.0); // tosa.md §2.1
    }
}

/// bool and i1: any nonzero code is true, which is -1 in i1 (`docs/spec/tile-ir.md §3.2`). tf32: the code is shifted
/// left by 13 (`docs/spec/tile-ir.md §3.3`).
#[test]
fn storage_of_codes() {
    for byte in 0..=0xff {
        assert_eq!(DType::Bool.code_of_storage(byte), (byte != 0) as u64);
        assert_eq!(DType::I1.code_of_storage(byte), (byte != 0) as u64);
        assert_eq!(value(decode(DType::Bool, byte)), if byte == 0 { 0.0 } else { 1.0 });
        assert_eq!(value(decode(DType::I1, byte)), if byte == 0 { 0.0 } else { -1.0 });
    }
    assert_eq!(DType::Tf32.storage_of_code(0x3fbff), 0x7f7f_e000);
    assert_eq!(DType::Tf32.code_of_storage(0x7f7f_ffff), 0x3fbff);
    for dtype in DType::ALL {
        if dtype.code_bits() == 0 || dtype.code_bits() > 32 {
            continue;
        }
        let all = (1u64 << dtype.code_bits()) - 1;
        for code in [0, 1, all / 2, all] {
            assert_eq!(dtype.code_of_storage(dtype.storage_of_code(code)), code, "{dtype}");
        }
    }
}

/// `docs/interfaces.md §1`. A row is (type, bits in a packed buffer, bits of a code, smallest number of elements that
/// fill whole bytes).
#[rustfmt::skip]
const STORAGE: [(DType, u32, u32, usize); 38] = [
    (DType::Bool, 8, 1, 1), (DType::I1, 8, 1, 1), (DType::U1, 1, 1, 8), (DType::I2, 2, 2, 4), (DType::U2, 2, 2, 4),
    (DType::U3, 3, 3, 8), (DType::I4, 4, 4, 2), (DType::U4, 4, 4, 2), (DType::U6, 6, 6, 4), (DType::I8, 8, 8, 1),
    (DType::U8, 8, 8, 1), (DType::I16, 16, 16, 1), (DType::U16, 16, 16, 1), (DType::I32, 32, 32, 1),
    (DType::U32, 32, 32, 1), (DType::I48, 48, 48, 1), (DType::I64, 64, 64, 1), (DType::U64, 64, 64, 1),
    (DType::F4E2M1, 4, 4, 2), (DType::F6E2M3, 6, 6, 4), (DType::F6E3M2, 6, 6, 4), (DType::F8E4M3Fn, 8, 8, 1),
    (DType::F8E4M3Fnuz, 8, 8, 1), (DType::F8E5M2, 8, 8, 1), (DType::F8E5M2Fnuz, 8, 8, 1), (DType::F8E8M0, 8, 8, 1),
    (DType::F8E3M4, 8, 8, 1), (DType::F8E4M3Ieee, 8, 8, 1), (DType::F8E4M3B11Fnuz, 8, 8, 1),
    (DType::F8E5M3Fnu, 8, 8, 1), (DType::F16, 16, 16, 1), (DType::Bf16, 16, 16, 1), (DType::Tf32, 32, 19, 1),
    (DType::F32, 32, 32, 1), (DType::F64, 64, 64, 1), (DType::MxInt8, 8, 8, 1), (DType::Nf4, 4, 4, 2),
    (DType::C64, 64, 64, 1),
];

#[test]
fn packed_sizes() {
    for (dtype, bits, code_bits, granule) in STORAGE {
        assert_eq!(dtype.storage_bits(), Some(bits), "{dtype}");
        assert_eq!(dtype.code_bits(), code_bits, "{dtype}");
        assert_eq!(dtype.granule(), granule, "{dtype}");
        assert_eq!(granule as u32 * bits % 8, 0, "{dtype}");
        assert_eq!(dtype.bits_in(Layout::Packed), Some(bits));
        assert_eq!(dtype.bits_in(Layout::Bytes), Some(bits.max(8)));
        for len in [0, 1, 2, 3, 5, 7, 8, 9, 1000] {
            assert_eq!(dtype.bytes_in(Layout::Packed, len), Some((len * bits as u64).div_ceil(8)), "{dtype} x {len}");
            assert_eq!(dtype.bytes_in(Layout::Bytes, len), Some(len * bits.max(8) as u64 / 8), "{dtype} x {len}");
        }
    }
    assert_eq!(DType::ALL.len(), STORAGE.len() + 1); // and text
    assert_eq!(DType::String.storage_bits(), None);
    assert_eq!(DType::String.bytes_in(Layout::Packed, 1), None);
    assert_eq!(DType::U3.bytes_in(Layout::Packed, 5), Some(2));
    assert_eq!(DType::U6.bytes_in(Layout::Packed, 5), Some(4));
    assert_eq!(DType::U4.bytes_in(Layout::Packed, u64::MAX), Some(1 << 63));
    assert_eq!(DType::U8.bytes_in(Layout::Packed, u64::MAX), Some(u64::MAX));
    assert_eq!(DType::U16.bytes_in(Layout::Packed, u64::MAX), None);
}

#[test]
fn canonical_names() {
    let names: Vec<&str> = TYPES.split_whitespace().collect();
    assert_eq!(DType::ALL.map(DType::name).as_slice(), names);
    for (name, dtype) in names.iter().zip(DType::ALL) {
        assert_eq!(DType::parse(name), Ok(dtype));
        assert_eq!(DType::parse(&name.to_uppercase()), Ok(dtype));
        assert_eq!(dtype.to_string(), *name);
    }
}

/// Sources by ecosystem: ONNX `docs/spec/onnx.md §1.7`; OpenVINO, NumPy, PyTorch `docs/spec/openvino.md §1.2`;
/// safetensors `docs/spec/checkpoints.md §1.3`; Tile `docs/spec/tile-ir.md §3.1`; TOSA `docs/spec/tosa.md §2.1`; MLIR
/// `docs/interfaces.md §1`.
#[rustfmt::skip]
const NAMES: &[(&str, &str)] = &[
    // ONNX
    ("onnx:FLOAT", "f32"), ("onnx:UINT8", "u8"), ("onnx:INT8", "i8"), ("onnx:UINT16", "u16"), ("onnx:INT16", "i16"),
    ("onnx:INT32", "i32"), ("onnx:INT64", "i64"), ("onnx:STRING", "string"), ("onnx:BOOL", "bool"),
    ("onnx:FLOAT16", "f16"), ("onnx:DOUBLE", "f64"), ("onnx:UINT32", "u32"), ("onnx:UINT64", "u64"),
    ("onnx:COMPLEX64", "c64"), ("onnx:BFLOAT16", "bf16"), ("onnx:FLOAT8E4M3FN", "f8e4m3fn"),
    ("onnx:FLOAT8E4M3FNUZ", "f8e4m3fnuz"), ("onnx:FLOAT8E5M2", "f8e5m2"), ("onnx:FLOAT8E5M2FNUZ", "f8e5m2fnuz"),
    ("onnx:UINT4", "u4"), ("onnx:INT4", "i4"), ("onnx:FLOAT4E2M1", "f4e2m1"), ("onnx:FLOAT8E8M0", "f8e8m0"),
    ("onnx:UINT2", "u2"), ("onnx:INT2", "i2"), ("onnx:FLOAT6E2M3", "f6e2m3"), ("onnx:FLOAT6E3M2", "f6e3m2"),
    ("FLOAT8E4M3FN", "f8e4m3fn"), ("DOUBLE", "f64"), ("BFLOAT16", "bf16"), ("UINT4", "u4"),
    // OpenVINO: attribute names, then IR port precisions
    ("ov:boolean", "bool"), ("ov:u1", "u1"), ("ov:u2", "u2"), ("ov:u3", "u3"), ("ov:u4", "u4"), ("ov:u6", "u6"),
    ("ov:u8", "u8"), ("ov:u16", "u16"), ("ov:u32", "u32"), ("ov:u64", "u64"), ("ov:i4", "i4"), ("ov:i8", "i8"),
    ("ov:i16", "i16"), ("ov:i32", "i32"), ("ov:i64", "i64"), ("ov:bf16", "bf16"), ("ov:f16", "f16"),
    ("ov:f32", "f32"), ("ov:f64", "f64"), ("ov:f8e4m3", "f8e4m3fn"), ("ov:f8e5m2", "f8e5m2"),
    ("ov:f8e8m0", "f8e8m0"), ("ov:f4e2m1", "f4e2m1"), ("ov:nf4", "nf4"), ("ov:string", "string"),
    ("ov:BOOL", "bool"), ("ov:BIN", "u1"), ("ov:U2", "u2"), ("ov:U64", "u64"), ("ov:BF16", "bf16"),
    ("ov:FP16", "f16"), ("ov:FP32", "f32"), ("ov:FP64", "f64"), ("ov:F8E4M3", "f8e4m3fn"), ("ov:NF4", "nf4"),
    ("ov:STRING", "string"),
    // NumPy and ml_dtypes
    ("np:bool", "bool"), ("np:uint1", "u1"), ("np:uint2", "u2"), ("np:uint4", "u4"), ("np:uint8", "u8"),
    ("np:uint64", "u64"), ("np:int4", "i4"), ("np:int64", "i64"), ("np:bfloat16", "bf16"), ("np:float16", "f16"),
    ("np:float32", "f32"), ("np:float64", "f64"), ("np:float8_e4m3fn", "f8e4m3fn"), ("np:float8_e5m2", "f8e5m2"),
    ("np:float8_e8m0fnu", "f8e8m0"), ("np:float4_e2m1fn", "f4e2m1"), ("np:float8_e4m3", "f8e4m3ieee"),
    ("numpy:float8_e4m3fn", "f8e4m3fn"), ("float8_e4m3fn", "f8e4m3fn"), ("bfloat16", "bf16"),
    // PyTorch
    ("torch:bool", "bool"), ("torch:uint1", "u1"), ("torch:uint3", "u3"), ("torch:uint6", "u6"), ("torch:int4", "i4"),
    ("torch:bfloat16", "bf16"), ("torch:float64", "f64"), ("torch:float8_e4m3fn", "f8e4m3fn"),
    ("torch:float8_e5m2", "f8e5m2"), ("torch:float8_e8m0fnu", "f8e8m0"), ("torch:float4_e2m1fn_x2", "f4e2m1"),
    ("torch:float8_e4m3fnuz", "f8e4m3fnuz"), ("torch:float8_e5m2fnuz", "f8e5m2fnuz"), ("torch:complex64", "c64"),
    // MLIR
    ("mlir:f8E4M3FN", "f8e4m3fn"), ("mlir:f8E4M3", "f8e4m3ieee"), ("f8E4M3FN", "f8e4m3fn"),
    // safetensors
    ("st:BOOL", "bool"), ("st:F4", "f4e2m1"), ("st:F6_E2M3", "f6e2m3"), ("st:F6_E3M2", "f6e3m2"), ("st:U8", "u8"),
    ("st:I8", "i8"), ("st:F8_E5M2", "f8e5m2"), ("st:F8_E4M3", "f8e4m3fn"), ("st:F8_E8M0", "f8e8m0"),
    ("st:F8_E4M3FNUZ", "f8e4m3fnuz"), ("st:F8_E5M2FNUZ", "f8e5m2fnuz"), ("st:I16", "i16"), ("st:U16", "u16"),
    ("st:F16", "f16"), ("st:BF16", "bf16"), ("st:I32", "i32"), ("st:U32", "u32"), ("st:F32", "f32"),
    ("st:C64", "c64"), ("st:F64", "f64"), ("st:I64", "i64"), ("st:U64", "u64"), ("st:f8e4m3", "f8e4m3fn"),
    ("F8_E4M3", "f8e4m3fn"),
    // TOSA
    ("tosa:fp8e4m3_t", "f8e4m3fn"), ("fp8e4m3_t", "f8e4m3fn"), ("tosa:fp8e4m3", "f8e4m3fn"),
    ("tosa:f8e4m3", "f8e4m3fn"), ("tosa:fp8ue8m0", "f8e8m0"), ("tosa:fp6e3m2", "f6e3m2"), ("tosa:fp4e2m1", "f4e2m1"),
    ("tosa:fp8e5m2", "f8e5m2"), ("tosa:fp6e2m3", "f6e2m3"), ("tosa:bf16", "bf16"), ("tosa:mxint8", "mxint8"),
    ("tosa:i48", "i48"), ("tosa:bool", "bool"), ("tosa:fp32", "f32"), ("tosa:fp16", "f16"),
    // Tile IR
    ("tile:i1", "i1"), ("tile:i4", "i4"), ("tile:i64", "i64"), ("tile:f16", "f16"), ("tile:bf16", "bf16"),
    ("tile:tf32", "tf32"), ("tile:f64", "f64"), ("tile:f8E4M3FN", "f8e4m3fn"), ("tile:fp8e4m3fn", "f8e4m3fn"),
    ("tile:f8E5M2", "f8e5m2"), ("tile:fp8e5m2", "f8e5m2"), ("tile:f8E8M0FNU", "f8e8m0"),
    ("tile:f4E2M1FN", "f4e2m1"), ("tile:fnv8E5M3FNU", "f8e5m3fnu"), ("fp8e4m3fn", "f8e4m3fn"),
];

#[test]
fn names_of_other_ecosystems() {
    let mut wrong = Vec::new();
    for &(name, canonical) in NAMES {
        let expected = DType::ALL.into_iter().find(|t| t.name() == canonical).unwrap();
        for spelling in [name.to_string(), name.to_uppercase(), name.to_lowercase()] {
            if DType::parse(&spelling) != Ok(expected) {
                wrong.push(format!("{spelling}: {:?}, not {expected}", DType::parse(&spelling)));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn names_lead_back() {
    for (prefix, ecosystem) in Ecosystem::PREFIXES {
        for dtype in DType::ALL {
            for name in dtype.names_in(ecosystem) {
                assert_eq!(DType::parse_in(ecosystem, name), Ok(dtype), "{prefix}:{name}");
                assert_eq!(format!("{prefix}:{name}").parse(), Ok(dtype), "{prefix}:{name}");
            }
        }
    }
}

/// Names of several types, which are errors without a prefix (`docs/interfaces.md §1`). Each error must list at least
/// these types.
#[rustfmt::skip]
const AMBIGUOUS: &[(&str, &[DType])] = &[
    ("f8e4m3", &[DType::F8E4M3Fn, DType::F8E4M3Ieee]), ("f8E4M3", &[DType::F8E4M3Fn, DType::F8E4M3Ieee]),
    ("e4m3", &[DType::F8E4M3Fn, DType::F8E4M3Ieee]), ("fp8e4m3", &[DType::F8E4M3Fn, DType::F8E4M3Ieee]),
    ("fp8_e4m3", &[DType::F8E4M3Fn, DType::F8E4M3Ieee]), ("float8_e4m3", &[DType::F8E4M3Fn, DType::F8E4M3Ieee]),
    ("fp8", &[DType::F8E4M3Fn, DType::F8E5M2]), ("f8", &[DType::F8E4M3Fn, DType::F8E5M2]),
    ("float8", &[DType::F8E4M3Fn, DType::F8E5M2]), ("fp6", &[DType::F6E2M3, DType::F6E3M2]),
    ("f6", &[DType::F6E2M3, DType::F6E3M2]), ("float6", &[DType::F6E2M3, DType::F6E3M2]),
    ("fp4", &[DType::F4E2M1, DType::Nf4]), ("float4", &[DType::F4E2M1, DType::Nf4]),
    ("float", &[DType::F32, DType::F64]), ("int", &[DType::I32, DType::I64]), ("uint", &[DType::U32, DType::U64]),
];

/// A float's fields name the type, unless several types have them.
#[test]
fn names_without_widths() {
    for (fields, dtype) in [
        ("e4m3fn", DType::F8E4M3Fn),
        ("E4M3FNUZ", DType::F8E4M3Fnuz),
        ("e5m2fnuz", DType::F8E5M2Fnuz),
        ("e8m0", DType::F8E8M0),
        ("e3m2", DType::F6E3M2),
        ("e2m1", DType::F4E2M1),
    ] {
        assert_eq!(DType::parse(fields), Ok(dtype));
    }
    for other in ["e4m4", "e", "m3fn", "8e4m3fn"] {
        assert!(matches!(DType::parse(other), Err(ParseTypeError::Unknown { .. })), "{other}");
    }
}

#[test]
fn ambiguous_names() {
    for &(name, expected) in AMBIGUOUS {
        for spelling in [name.to_string(), name.to_uppercase()] {
            match DType::parse(&spelling) {
                Err(ParseTypeError::Ambiguous { name, choices }) => {
                    assert_eq!(name, spelling);
                    assert!(expected.iter().all(|t| choices.contains(t)), "{name}: {choices:?}");
                }
                other => panic!("{spelling}: {other:?}"),
            }
        }
    }
    // The error lists the choices in a form that can be typed.
    let message = DType::parse("f8e4m3").unwrap_err().to_string();
    assert!(message.contains("f8e4m3fn") && message.contains("f8e4m3ieee") && message.contains("ov:"), "{message}");
}

#[test]
fn no_bare_name_hides_a_second_meaning() {
    for dtype in DType::ALL {
        for (_, ecosystem) in Ecosystem::PREFIXES {
            for name in dtype.names_in(ecosystem) {
                match DType::parse(name) {
                    Ok(found) => assert_eq!(found, dtype, "{name}"),
                    Err(ParseTypeError::Ambiguous { choices, .. }) => assert!(choices.contains(&dtype), "{name}"),
                    Err(e) => panic!("{e}"),
                }
            }
        }
    }
}

#[test]
fn unknown_names() {
    for name in
        ["", " ", "f33", "f8e4m3fn ", "float128", "f8e4m3 fn", "COMPLEX128", "UNDEFINED", "undefined", "dynamic"]
    {
        assert_eq!(DType::parse(name), Err(ParseTypeError::Unknown { name: name.into() }));
    }
    for (text, name) in
        [("onnx:f8e4m3", "f8e4m3"), ("ov:", ""), ("st:FLOAT16", "FLOAT16"), ("torch:float8_e4m3", "float8_e4m3")]
    {
        assert_eq!(DType::parse(text), Err(ParseTypeError::Unknown { name: name.into() }), "{text}");
    }
    for (text, prefix) in [("jax:float32", "jax"), (":f32", ""), ("o:f32", "o")] {
        assert_eq!(DType::parse(text), Err(ParseTypeError::Prefix { prefix: prefix.into() }), "{text}");
    }
    assert_eq!(DType::parse("OV:f8e4m3"), Ok(DType::F8E4M3Fn)); // prefixes ignore case too
}

fn value(exact: Exact) -> f64 {
    let Exact::Finite { neg, sig, exp, sticky: false } = exact else {
        panic!("{exact:?} is not an exact finite value")
    };
    assert!(sig < 1 << 53);
    let magnitude = sig as f64 * 2f64.powi(exp);
    if neg { -magnitude } else { magnitude }
}

fn reduced((mut significand, mut exponent): (u64, i32)) -> (u64, i32) {
    while significand.is_multiple_of(2) {
        significand /= 2;
        exponent += 1;
    }
    (significand, exponent)
}
