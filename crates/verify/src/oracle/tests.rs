//! Tests with rows from the specification pages, here and in `witnesses.txt`. Also compares with `rustc_apfloat`, with
//! Rust's `as`, and with a linear scan in f64.

use super::*;
use crate::random::Random;
use truecast_testkit::formats::{SMALL_FLOATS, SPECIAL_CODES};

fn ty(name: &str) -> Type {
    Type::from_name(name).unwrap_or_else(|| panic!("no type {name}"))
}

fn default(src: &str, dst: &str, code: u64) -> Option<u64> {
    convert(ty(src), ty(dst), &Policy::default(), code)
}

fn of_f32(x: f32, dst: &str, policy: &Policy) -> Option<u64> {
    convert(Type::F32, ty(dst), policy, u64::from(x.to_bits()))
}

fn of_f64(x: f64, dst: &str, policy: &Policy) -> Option<u64> {
    convert(Type::F64, ty(dst), policy, x.to_bits())
}

fn to_float(rounding: Rounding) -> Policy {
    Policy { to_float: rounding, ..Policy::default() }
}

fn saturate() -> Policy {
    Policy { overflow: OnRange::Saturate, inf: OnRange::Saturate, ..Policy::default() }
}

fn p(k: i32) -> f64 {
    2f64.powi(k)
}

/// Random stream with a fixed seed, so that a failure repeats.
fn stream(seed: u64) -> Random {
    Random::new(seed, &[])
}

/// Random f64 with an exponent near the exponents of narrow formats, often with a short fraction.
fn near_narrow(random: &mut Random) -> f64 {
    let fraction = (random.bits() >> 12) & (u64::MAX << (random.bits() % 53));
    let exponent = 1023 - 160 + random.bits() % 320;
    f64::from_bits((random.bits() << 63) | (exponent << 52) | (fraction & ((1 << 52) - 1)))
}

#[test]
fn names() {
    for &t in Type::ALL {
        assert_eq!(Type::from_name(t.name()), Some(t));
    }
    assert_eq!(Type::from_name("f8e4m3"), None);
    assert_eq!(ty("tf32").bits(), 19);
}

/// Converts by a line of `witnesses.txt`: source, value or code, destination, non-default choices.
fn witness(src: Type, value: &str, dst: Type, choices: &[&str]) -> Option<u64> {
    let number = || match value.split_once("2^") {
        None => value.parse().expect("a number"),
        Some(("", power)) => p(power.parse().expect("a power")),
        Some(("-", power)) => -p(power.parse().expect("a power")),
        Some((factor, power)) => {
            let factor: f64 = factor.trim_end_matches('*').parse().expect("a factor");
            factor * p(power.parse().expect("a power"))
        }
    };
    let code = match (value.strip_prefix("0x"), src) {
        (Some(code), _) => u64::from_str_radix(code, 16).expect("a code"),
        (None, Type::F64) => f64::to_bits(number()),
        (None, Type::F32) => (number() as f32).to_bits().into(),
        _ => value.parse::<i64>().expect("an integer") as u64 & (u64::MAX >> (64 - src.bits())),
    };
    let mut policy = Policy::default();
    for choice in choices {
        let (field, value) = choice.split_once('=').expect("a field and a choice");
        macro_rules! set {
            ($($name:ident $choices:ident),*) => {
                match field {
                    $(stringify!($name) => {
                        let found = $choices::ALL.iter().find(|choice| format!("{choice:?}") == value);
                        policy.$name = *found.unwrap_or_else(|| panic!("no choice {value}"));
                    })*
                    _ => panic!("no field {field}"),
                }
            };
        }
        set!(
            to_float Rounding, overflow OnRange, inf OnRange, nan Nan, nan_substitute NanSubstitute,
            int_overflow IntOverflow, nan_to_int NanToInt, subnormals Subnormals, range Range, negative Negative,
            vanishing Vanishing
        );
    }
    convert(src, dst, &policy, code)
}

#[test]
fn witnesses() {
    let mut n = 0;
    for line in include_str!("witnesses.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let [src, value, dst, want, ref choices @ ..] = fields[..] else { panic!("{line}") };
        let want = (want != "refused").then(|| u64::from_str_radix(want, 16).expect("a code"));
        assert_eq!(witness(ty(src), value, ty(dst), choices), want, "{line}");
        n += 1;
    }
    assert_eq!(n, 317);
}

#[test]
fn special_codes() {
    for (name, rows) in SPECIAL_CODES {
        for &(code, integer, exponent) in rows {
            let value = integer as f64 * p(exponent);
            assert_eq!(default(name, "f64", code), Some(value.to_bits()), "{name} {code:02X}");
            assert_eq!(of_f64(value, name, &Policy::default()), Some(code), "{name} {value}");
            if value > 0.0 && name != "f8e8m0" {
                assert_eq!(default(name, "f64", code | 0x80), Some((-value).to_bits()), "{name} -{code:02X}");
            }
        }
    }
    for (name, values) in SMALL_FLOATS {
        let sign = values.len() as u64;
        for (code, value) in (0..).zip(values) {
            assert_eq!(default(name, "f64", code), Some(value.to_bits()), "{name} {code:02X}");
            assert_eq!(default(name, "f64", code | sign), Some((-value).to_bits()), "{name} -{code:02X}");
        }
    }
    // Types that the pages of ONNX do not have. The layouts of the types give the values.
    for (name, code, value) in [
        ("f8e5m3fnu", 0xFE, 114_688.0),
        ("f8e5m3fnu", 1, p(-17)),
        ("f8e4m3ieee", 0x77, 240.0),
        ("f8e3m4", 0x6F, 15.5),
        ("f8e3m4", 1, p(-6)),
        ("f8e4m3b11fnuz", 0x7F, 30.0),
        ("f8e4m3b11fnuz", 1, p(-13)),
        ("tf32", 0x1FC00, 1.0),
        ("mxint8", 0x80, -2.0),
        ("mxint8", 0x7F, 1.984375),
        ("nf4", 7, 0.0),
        ("nf4", 0, -1.0),
    ] {
        assert_eq!(default(name, "f64", code), Some(f64::to_bits(value)), "{name} {code:02X}");
        assert_eq!(of_f64(value, name, &Policy::default()), Some(code), "{name} {value}");
    }
}

#[test]
fn float8_table() {
    // spec/onnx.md §4.6: destinations as in the columns. Rows: input, codes with saturation, codes without.
    let names = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"];
    let nan = f32::NAN.abs();
    let tiny = f32::from_bits(1);
    let rows: [(f32, [u64; 4], [u64; 4]); 10] = [
        (0.0, [0, 0, 0, 0], [0, 0, 0, 0]),
        (-0.0, [0x80, 0, 0x80, 0], [0x80, 0, 0x80, 0]),
        (nan, [0x7F, 0x80, 0x7E, 0x80], [0x7F, 0x80, 0x7E, 0x80]),
        (-nan, [0xFF, 0x80, 0xFE, 0x80], [0xFF, 0x80, 0xFE, 0x80]),
        (f32::INFINITY, [0x7E, 0x7F, 0x7B, 0x7F], [0x7F, 0x80, 0x7C, 0x80]),
        (-f32::INFINITY, [0xFE, 0xFF, 0xFB, 0xFF], [0xFF, 0x80, 0xFC, 0x80]),
        (1e6, [0x7E, 0x7F, 0x7B, 0x7F], [0x7F, 0x80, 0x7C, 0x80]),
        (-1e6, [0xFE, 0xFF, 0xFB, 0xFF], [0xFF, 0x80, 0xFC, 0x80]),
        (tiny, [0, 0, 0, 0], [0, 0, 0, 0]),
        (-tiny, [0x80, 0, 0x80, 0], [0x80, 0, 0x80, 0]),
    ];
    for (x, with, without) in rows {
        for (column, name) in names.into_iter().enumerate() {
            assert_eq!(of_f32(x, name, &saturate()), Some(with[column]), "{x} {name}");
            assert_eq!(of_f32(x, name, &Policy::default()), Some(without[column]), "{x} {name}");
        }
    }
}

#[test]
fn e8m0_table() {
    // spec/onnx.md §4.7. The columns are up, down and nearest with saturation, then up, down and nearest without it.
    let clamp = Policy {
        overflow: OnRange::Saturate,
        inf: OnRange::Saturate,
        range: Range::Source,
        negative: Negative::Smallest,
        vanishing: Vanishing::Smallest,
        ..Policy::default()
    };
    let to_nan =
        Policy { range: Range::Source, negative: Negative::Nan, vanishing: Vanishing::Nan, ..Policy::default() };
    let modes = [Rounding::AwayFromZero, Rounding::TowardZero, Rounding::NearestUp];
    let max = f64::from(f32::MAX);
    let next = f64::from(f32::from_bits((p(127) as f32).to_bits() + 1));
    let (none, nan) = ([0, 0, 0, 0xFF, 0xFF, 0xFF], [0xFF; 6]);
    let beyond = [0xFE, 0xFE, 0xFE, 0xFF, 0xFF, 0xFF];
    let rows: [(f64, [u64; 6]); 29] = [
        (0.0, none),
        (-0.0, none),
        (p(-149), none),
        (0.75 * p(-127), none),
        (p(-127), [0; 6]),
        (1.25 * p(-127), [1, 0, 0, 1, 0, 0]),
        (1.5 * p(-127), [1, 0, 1, 1, 0, 1]),
        (1.75 * p(-127), [1, 0, 1, 1, 0, 1]),
        (p(-126), [1; 6]),
        (1.25 * p(-126), [2, 1, 1, 2, 1, 1]),
        (1.5 * p(-126), [2, 1, 2, 2, 1, 2]),
        (1.0, [0x7F; 6]),
        (1.25, [0x80, 0x7F, 0x7F, 0x80, 0x7F, 0x7F]),
        (1.5, [0x80, 0x7F, 0x80, 0x80, 0x7F, 0x80]),
        (1.75, [0x80, 0x7F, 0x80, 0x80, 0x7F, 0x80]),
        (p(127), [0xFE; 6]),
        (next, beyond),
        (1.25 * p(127), beyond),
        (1.5 * p(127), beyond),
        (max, beyond),
        (f64::INFINITY, beyond),
        (-1.0, none),
        (-1.5, none),
        (-p(-149), none),
        (-p(127), none),
        (-max, none),
        (-f64::INFINITY, none),
        (f64::NAN, nan),
        (-f64::NAN, nan),
    ];
    for (x, codes) in rows {
        for (column, want) in codes.into_iter().enumerate() {
            let policy = Policy { to_float: modes[column % 3], ..if column < 3 { clamp } else { to_nan } };
            assert_eq!(of_f64(x, "f8e8m0", &policy), Some(want), "{x:e} column {column}");
            assert_eq!(of_f32(x as f32, "f8e8m0", &policy), Some(want), "{x:e} column {column}");
        }
    }
}

#[test]
fn integer_table() {
    // spec/onnx.md §4.5: finite values, wrapped. Columns: i8 u8 i16 u16 i32 u32 i64 u64; 4 and 2 bits are all zero.
    let names = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"];
    let wide: [(f32, [i128; 8]); 5] = [
        (3e9, [0, 0, 24064, 24064, -1_294_967_296, 3_000_000_000, 3_000_000_000, 3_000_000_000]),
        (-3e9, [0, 0, -24064, 41472, 1_294_967_296, 1_294_967_296, -3_000_000_000, 18_446_744_070_709_551_616]),
        (5e9, [0, 0, -3584, 61952, 705_032_704, 705_032_704, 5_000_000_000, 5_000_000_000]),
        (9.3e18, [0, 0, 0, 0, 0, 0, -9_146_743_772_980_183_040, 9_300_000_300_729_368_576]),
        (-1e20, [0, 0, 0, 0, 0, 0, -7_766_281_635_539_976_192, 10_680_462_438_169_575_424]),
    ];
    for (x, values) in wide {
        for (name, value) in names.iter().zip(values) {
            let code = value as u64 & (u64::MAX >> (64 - ty(name).bits()));
            assert_eq!(of_f32(x, name, &Policy::default()), Some(code), "{x} {name}");
            assert_eq!(of_f64(f64::from(x), name, &Policy::default()), Some(code), "{x} {name}");
        }
        for name in ["i4", "u4", "i2", "u2", "i1", "u1", "u3", "u6"] {
            assert_eq!(of_f32(x, name, &Policy::default()), Some(0), "{x} {name}");
        }
    }
    for x in [1e30, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN] {
        for name in names.iter().chain(&["i48", "i4", "u4", "i2", "u2", "u3", "u6"]) {
            assert_eq!(of_f32(x, name, &Policy::default()), Some(0), "{x} {name}");
        }
    }
    use Rounding::*;
    for (rounding, want) in [
        (NearestEven, [2, 2, 2, 3, 3, 3, 4, 4, 4, -2, -2, -3, -3, -4]),
        (NearestAway, [2, 2, 3, 3, 3, 3, 4, 4, 4, -2, -3, -3, -3, -4]),
        (TowardZero, [2, 2, 2, 2, 3, 3, 3, 3, 4, -2, -2, -2, -3, -3]),
        (Up, [2, 3, 3, 3, 3, 4, 4, 4, 4, -2, -2, -2, -3, -3]),
        (Down, [2, 2, 2, 2, 3, 3, 3, 3, 4, -3, -3, -3, -3, -4]),
        (AwayFromZero, [2, 3, 3, 3, 3, 4, 4, 4, 4, -3, -3, -3, -3, -4]),
        (NearestUp, [2, 2, 3, 3, 3, 3, 4, 4, 4, -2, -2, -3, -3, -3]),
        (ToOdd, [2, 3, 3, 3, 3, 3, 3, 3, 4, -3, -3, -3, -3, -3]),
    ] {
        let quarters = [8, 9, 10, 11, 12, 13, 14, 15, 16, -9, -10, -11, -12, -14];
        for (quarter, want) in quarters.into_iter().zip(want) {
            let policy = Policy { to_int: rounding, ..Policy::default() };
            let got = of_f64(f64::from(quarter) / 4.0, "i64", &policy);
            assert_eq!(got, Some(want as u64), "{rounding:?} {quarter}/4");
        }
    }
}

#[test]
fn nan_table() {
    // spec/onnx.md §4.9.
    for (name, positive, negative) in [
        ("f64", 0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0000),
        ("f32", 0x7FC0_0000, 0xFFC0_0000),
        ("f16", 0x7E00, 0xFE00),
        ("bf16", 0x7FC0, 0xFFC0),
        ("tf32", 0x3FE00, 0x7FE00),
        ("f8e4m3fn", 0x7F, 0xFF),
        ("f8e5m2", 0x7E, 0xFE),
        ("f8e4m3ieee", 0x7C, 0xFC),
        ("f8e3m4", 0x78, 0xF8),
        ("f8e4m3fnuz", 0x80, 0x80),
        ("f8e5m2fnuz", 0x80, 0x80),
        ("f8e4m3b11fnuz", 0x80, 0x80),
        ("f8e8m0", 0xFF, 0xFF),
        ("f8e5m3fnu", 0xFF, 0xFF),
        ("f4e2m1", 8, 0),
        ("f6e2m3", 0x20, 0),
        ("f6e3m2", 0x20, 0),
        ("mxint8", 0, 0),
        ("nf4", 7, 7),
        ("i8", 0, 0),
        ("u64", 0, 0),
        ("bool", 1, 1),
    ] {
        for (src, plus, minus) in [("f32", 0x7FC0_0000, 0xFFC0_0000), ("f16", 0x7E00, 0xFE00), ("f8e4m3fn", 0x7F, 0xFF)]
        {
            assert_eq!(default(src, name, plus), Some(positive), "{src} {name}");
            assert_eq!(default(src, name, minus), Some(negative), "{src} {name}");
        }
        assert_eq!(default("f8e8m0", name, 0xFF), Some(positive), "{name}");
        assert_eq!(default("f8e4m3fnuz", name, 0x80), Some(negative), "{name}");
        let canonical = Policy { nan: Nan::Canonical, ..Policy::default() };
        assert_eq!(convert(Type::F64, ty(name), &canonical, 0xFFF0_0000_0000_0001), Some(negative), "{name}");
        assert_eq!(convert(Type::F32, ty(name), &canonical, 0x7FFF_FFFF), Some(positive), "{name}");
        let refuse = Policy { nan: Nan::Error, ..Policy::default() };
        assert_eq!(convert(Type::F32, ty(name), &refuse, 0x7FC0_0000), None, "{name}");
    }
}

#[test]
fn mxint8_and_nf4() {
    let any = Policy::default();
    let refuse = Policy { overflow: OnRange::Error, inf: OnRange::Error, ..any };
    // nf4: a value equal to a threshold gets the lower code.
    for (code, threshold) in (0..).zip(super::format::NF4_THRESHOLDS) {
        let x = f64::from(f32::from_bits(threshold));
        assert_eq!(of_f64(x, "nf4", &any), Some(code), "{x}");
        assert_eq!(of_f64(x.next_up(), "nf4", &any), Some(code + 1), "{x}");
        assert_eq!(of_f64(x, "nf4", &to_float(Rounding::Down)), Some(code), "{x}");
        assert_eq!(of_f64(x, "nf4", &to_float(Rounding::Up)), Some(code + 1), "{x}");
        assert_eq!(of_f64(x, "nf4", &to_float(Rounding::ToOdd)), Some(code | 1), "{x}");
        let toward_zero = if x < 0.0 { code + 1 } else { code };
        assert_eq!(of_f64(x, "nf4", &to_float(Rounding::TowardZero)), Some(toward_zero), "{x}");
        assert_eq!(of_f64(x, "nf4", &to_float(Rounding::AwayFromZero)), Some(2 * code + 1 - toward_zero), "{x}");
    }
    for &rounding in Rounding::ALL {
        for code in 0..16 {
            assert_eq!(convert(Type::Nf4, Type::Nf4, &to_float(rounding), code), Some(code));
        }
        for (x, code) in [(0.0, 7), (-0.0, 7), (9.0, 15), (-9.0, 0), (f64::INFINITY, 15), (-f64::INFINITY, 0)] {
            assert_eq!(of_f64(x, "nf4", &to_float(rounding)), Some(code), "{rounding:?} {x}");
        }
        assert_eq!(of_f64(1.5, "nf4", &Policy { to_float: rounding, ..refuse }), None);
    }
}

#[test]
fn every_narrow_code_survives_f64() {
    for &narrow in Type::ALL.iter().filter(|t| t.bits() <= 19) {
        for code in 0..1 << narrow.bits() {
            let here = convert(narrow, narrow, &Policy::default(), code).unwrap();
            // A byte that holds one bit is normalized.
            let normal = if matches!(narrow, Type::Bool | Type::I1) { u64::from(code != 0) } else { code };
            assert_eq!(here, normal, "{} {code:X}", narrow.name());
            let wide = convert(narrow, Type::F64, &Policy::default(), code).unwrap();
            let is_nan = f64::from_bits(wide).is_nan();
            for &rounding in Rounding::ALL {
                let back = convert(Type::F64, narrow, &to_float(rounding), wide).unwrap();
                let quiet = match narrow {
                    Type::Tf32 => 1 << 9,
                    Type::F16 => 1 << 9,
                    Type::Bf16 => 1 << 6,
                    Type::F8E5M2 => 1 << 1,
                    Type::F8E4M3Ieee => 1 << 2,
                    Type::F8E3M4 => 1 << 3,
                    _ => 0,
                };
                assert_eq!(
                    back,
                    if is_nan { normal | quiet } else { normal },
                    "{} {code:X} {rounding:?}",
                    narrow.name()
                );
            }
        }
    }
}

/// Finds the signed neighbors of x by scanning every code. The decision in f64 is exact.
fn scan(values: &[(f64, u64)], rounding: Rounding, x: f64) -> u64 {
    let below = values.iter().copied().filter(|v| v.0 <= x).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    let above = values.iter().copied().filter(|v| v.0 >= x).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    let (inner, outer) = if x < 0.0 { (above, below) } else { (below, above) };
    let nearer = |tie: (f64, u64)| {
        let middle = (below.0 + above.0) / 2.0;
        if x < middle {
            below
        } else if x > middle {
            above
        } else {
            tie
        }
    };
    let of_parity = |parity| if below.1 % 2 == parity { below } else { above };
    let chosen = match rounding {
        _ if below.0 == above.0 => below,
        Rounding::Down => below,
        Rounding::Up => above,
        Rounding::TowardZero => inner,
        Rounding::AwayFromZero => outer,
        Rounding::ToOdd => of_parity(1),
        Rounding::NearestEven => nearer(of_parity(0)),
        Rounding::NearestAway => nearer(outer),
        Rounding::NearestUp => nearer(above),
    };
    chosen.1
}

#[test]
fn agrees_with_a_linear_scan() {
    let narrow: Vec<Type> = Type::ALL.iter().copied().filter(|t| t.name().starts_with('f') && t.bits() <= 8).collect();
    assert!(!narrow.is_empty());
    let mut random = stream(0x5EED_0001);
    for dst in narrow {
        let values: Vec<(f64, u64)> = (0..1 << dst.bits())
            .map(|code| (f64::from_bits(convert(dst, Type::F64, &Policy::default(), code).unwrap()), code))
            .filter(|(value, _)| !value.is_nan() && !value.is_infinite())
            .collect();
        let largest = values.iter().map(|v| v.0).fold(0.0, f64::max);
        let least = values.iter().map(|v| v.0).fold(f64::MAX, f64::min);
        let mut inputs: Vec<f64> =
            (0..1u32 << 16).step_by(3).map(|code| f64::from(f32::from_bits(code << 16))).collect();
        inputs.extend((0..500).map(|_| near_narrow(&mut random)));
        for pair in values.iter().zip(&values[1..]) {
            let middle = (pair.0.0 + pair.1.0) / 2.0;
            inputs.extend([
                middle.next_down(),
                middle,
                middle.next_up(),
                pair.0.0.next_down(),
                pair.0.0,
                pair.0.0.next_up(),
            ]);
        }
        inputs.retain(|x| least <= *x && *x <= largest);
        for x in inputs {
            for &rounding in Rounding::ALL {
                let got = of_f64(x, dst.name(), &to_float(rounding)).unwrap();
                let want = scan(&values, rounding, x);
                let number = |code| values.iter().find(|v| v.1 == code).map(|v| v.0);
                // The linear scan may give a zero of the other sign.
                assert_eq!(number(got), number(want), "{} {x:e} {rounding:?}", dst.name());
                assert!(got == want || number(got) == Some(0.0), "{} {x:e}", dst.name());
            }
        }
    }
}

#[test]
fn agrees_with_rustc_apfloat() {
    let mut random = stream(0x5EED_0002);
    let roundings = [Rounding::NearestEven, Rounding::NearestAway, Rounding::TowardZero, Rounding::Up, Rounding::Down];
    for dst in [Type::F32, Type::F16, Type::Bf16, Type::F8E5M2, Type::F8E4M3Fn] {
        let mut codes = boundaries(Type::F64, dst);
        codes.extend((0..200_000).map(|k| if k % 4 == 0 { random.bits() } else { near_narrow(&mut random).to_bits() }));
        let mut compared = 0u64;
        for code in codes {
            for rounding in roundings {
                let Some(want) = apfloat::convert(dst, rounding, code) else { continue };
                compared += 1;
                let got = convert(Type::F64, dst, &to_float(rounding), code);
                assert_eq!(got, Some(want), "{} {:e} {rounding:?}", dst.name(), f64::from_bits(code));
            }
        }
        println!("{}: {compared} conversions compared", dst.name());
        assert!(compared > 500_000);
    }
    assert_eq!(apfloat::convert(Type::F8E4M3Fn, Rounding::Up, 0), None);
    assert_eq!(apfloat::convert(Type::F4E2M1, Rounding::NearestEven, 0), None);
}

#[test]
fn agrees_with_native_casts() {
    let mut random = stream(0x5EED_0003);
    let mut inputs = |src: Type, dst: Type| {
        let mut codes = boundaries(src, dst);
        codes.extend((0..50_000).map(|k| {
            let code =
                if k % 2 == 0 { random.bits() >> (random.bits() % 64) } else { near_narrow(&mut random).to_bits() };
            if src == Type::F32 {
                u64::from((f64::from_bits(code) as f32).to_bits())
            } else {
                code & (u64::MAX >> (64 - src.bits()))
            }
        }));
        codes
    };
    let any = Policy::default();
    let same_f32 = |got: u64, want: f32, what: &str| assert_eq!(got, u64::from(want.to_bits()), "{what} {want:e}");
    let same_f64 = |got: u64, want: f64, what: &str| assert_eq!(got, want.to_bits(), "{what} {want:e}");
    for code in inputs(Type::F64, Type::F32) {
        let x = f64::from_bits(code);
        if !x.is_nan() {
            same_f32(convert(Type::F64, Type::F32, &any, code).unwrap(), x as f32, "f64 as f32");
        }
    }
    for code in inputs(Type::F32, Type::F64) {
        let x = f32::from_bits(code as u32);
        if !x.is_nan() {
            same_f64(convert(Type::F32, Type::F64, &any, code).unwrap(), f64::from(x), "f32 as f64");
        }
    }
    for (src, dst) in [
        (Type::I64, Type::F32),
        (Type::I64, Type::F64),
        (Type::U64, Type::F32),
        (Type::U64, Type::F64),
        (Type::I32, Type::F32),
        (Type::U32, Type::F32),
    ] {
        for code in inputs(src, dst) {
            let got = convert(src, dst, &any, code).unwrap();
            match (src, dst) {
                (Type::I64, Type::F32) => same_f32(got, code as i64 as f32, "i64 as f32"),
                (Type::I64, _) => same_f64(got, code as i64 as f64, "i64 as f64"),
                (Type::U64, Type::F32) => same_f32(got, code as f32, "u64 as f32"),
                (Type::U64, _) => same_f64(got, code as f64, "u64 as f64"),
                (Type::I32, _) => same_f32(got, code as i32 as f32, "i32 as f32"),
                _ => same_f32(got, code as u32 as f32, "u32 as f32"),
            }
        }
    }
    let clamp = Policy { int_overflow: IntOverflow::Saturate, ..any };
    macro_rules! floats_to_integers {
        ($($dst:expr, $int:ty, $mask:ty;)+) => { $(
            for code in inputs(Type::F64, $dst) {
                let want = f64::from_bits(code) as $int as $mask as u64;
                assert_eq!(convert(Type::F64, $dst, &clamp, code), Some(want), "{:e}", f64::from_bits(code));
            }
            for code in inputs(Type::F32, $dst) {
                let want = f32::from_bits(code as u32) as $int as $mask as u64;
                assert_eq!(convert(Type::F32, $dst, &clamp, code), Some(want), "{:e}", f32::from_bits(code as u32));
            }
            for code in inputs(Type::I64, $dst) {
                assert_eq!(convert(Type::I64, $dst, &any, code), Some(code as i64 as $int as $mask as u64), "{code:X}");
            }
        )+ };
    }
    floats_to_integers! {
        Type::I8, i8, u8; Type::U8, u8, u8; Type::I16, i16, u16; Type::U16, u16, u16;
        Type::I32, i32, u32; Type::U32, u32, u32; Type::I64, i64, u64; Type::U64, u64, u64;
    }
}

#[test]
fn wrapping_is_modular() {
    // Exact integers far beyond 2^64, compared with repeated doubling modulo 2^64.
    let mut random = stream(0x5EED_0004);
    for _ in 0..20_000 {
        let significand = (random.bits() >> 11) | (1 << 52);
        let shift = (random.bits() % 140) as u32;
        let x = significand as f64 * p(shift as i32);
        let mut residue = significand;
        for _ in 0..shift {
            residue = residue.wrapping_add(residue);
        }
        assert_eq!(of_f64(x, "u64", &Policy::default()), Some(residue), "{x:e}");
        assert_eq!(of_f64(-x, "u64", &Policy::default()), Some(residue.wrapping_neg()), "{x:e}");
        assert_eq!(of_f64(-x, "i48", &Policy::default()), Some(residue.wrapping_neg() & ((1 << 48) - 1)), "{x:e}");
        assert_eq!(of_f64(x, "u3", &Policy::default()), Some(residue & 7), "{x:e}");
    }
    assert_eq!(of_f64(f64::MAX, "i64", &Policy::default()), Some(0));
}

#[test]
fn boundary_lists() {
    for &src in &[Type::F32, Type::F64, Type::I32, Type::U32, Type::I48, Type::I64, Type::U64] {
        for &dst in Type::ALL {
            let codes = boundaries(src, dst);
            let pair = format!("{} to {}: {}", src.name(), dst.name(), codes.len());
            assert!(codes.is_sorted_by(|a, b| a < b), "{pair}");
            assert!(codes.iter().all(|c| src.bits() == 64 || c >> src.bits() == 0), "{pair}");
            assert!(codes.len() > 100 && codes.len() < 2_000_000, "{pair}");
        }
    }
    let codes = boundaries(Type::F32, Type::F8E4M3Fn);
    for step in 0..5 {
        let code = u64::from(464f32.to_bits()) - 2 + step;
        assert!(codes.binary_search(&code).is_ok() && codes.binary_search(&(code | 0x8000_0000)).is_ok());
    }
    for code in
        [0, 0x8000_0000, 0x7F80_0000, 0xFF80_0000, 0x7F80_0001, 0x7FC0_0000, 0x7FFF_FFFF, 0xFFBF_FFFF, 1, 0x7F7F_FFFF]
    {
        assert!(codes.binary_search(&code).is_ok(), "{code:X}");
    }
    let codes = boundaries(Type::F64, Type::F16);
    for x in [65519.99999999999f64, 65520.0, p(-25), p(-25).next_up(), p(-24).next_down(), -65504.0, 1.0 + p(-11)] {
        assert!(codes.binary_search(&x.to_bits()).is_ok(), "{x:e}");
    }
    let codes = boundaries(Type::I64, Type::Bf16);
    for n in [257i64, 258, 259, -257, i64::MIN, i64::MAX, 0, (1 << 40) + (1 << 32), (1 << 40) + (1 << 32) + 1] {
        assert!(codes.binary_search(&(n as u64)).is_ok(), "{n}");
    }
    assert_eq!(boundaries(Type::Bf16, Type::F32).len(), 65536);
}

#[test]
fn nothing_panics() {
    // Every pair under every value of every choice, one choice at a time.
    let any = Policy::default();
    let mut policies = vec![any];
    policies.extend(Rounding::ALL.iter().flat_map(|&r| [Policy { to_float: r, ..any }, Policy { to_int: r, ..any }]));
    policies.extend(OnRange::ALL.iter().flat_map(|&r| [Policy { overflow: r, ..any }, Policy { inf: r, ..any }]));
    policies.extend(Nan::ALL.iter().map(|&nan| Policy { nan, ..any }));
    policies.extend(NanSubstitute::ALL.iter().map(|&nan_substitute| Policy { nan_substitute, ..any }));
    policies.extend(IntOverflow::ALL.iter().map(|&int_overflow| Policy { int_overflow, ..any }));
    policies.extend(NanToInt::ALL.iter().map(|&nan_to_int| Policy { nan_to_int, ..any }));
    policies.extend(Subnormals::ALL.iter().map(|&subnormals| Policy { subnormals, ..any }));
    policies.extend(Range::ALL.iter().map(|&range| Policy { range, ..any }));
    policies.extend(Negative::ALL.iter().map(|&negative| Policy { negative, ..any }));
    policies.extend(Vanishing::ALL.iter().map(|&vanishing| Policy { vanishing, ..any }));
    let mut random = stream(0x5EED_0005);
    for &src in Type::ALL {
        let codes: Vec<u64> =
            if src.bits() <= 8 { (0..256).collect() } else { (0..200).map(|_| random.bits()).collect() };
        for &dst in Type::ALL {
            for policy in &policies {
                for &code in &codes {
                    if let Some(result) = convert(src, dst, policy, code) {
                        assert!(dst.bits() == 64 || result >> dst.bits() == 0);
                    }
                }
            }
        }
    }
}
