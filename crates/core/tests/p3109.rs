//! IEEE P3109. Formats follow `docs/spec/p3109.md`. Projections follow §4.7.4 and §4.7.5 of the report, and are
//! computed in f64. f64 holds every value and significand of these formats.

use std::collections::BTreeSet;
use truecast_core::exact::{RandomBits, Stochastic, decode, decode_float};
use truecast_core::format::{F8E4M3FNUZ, F8E5M2FNUZ, FormatError};
use truecast_core::spec::p3109::{Domain, Format, InvalidFormat, ROUNDINGS, Saturation, Signedness};
use truecast_core::{DType, Exact, Rounding};

fn format(name: &str) -> Format {
    name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn formats(widths: core::ops::RangeInclusive<u8>) -> Vec<Format> {
    let of_width = |bits: u8| {
        let kinds = Signedness::ALL.into_iter().flat_map(|s| Domain::ALL.map(|d| (s, d)));
        kinds.flat_map(move |(s, d)| (1..=bits).filter_map(move |p| Format::new(bits, p, s, d).ok()))
    };
    widths.flat_map(of_width).collect()
}

/// K, P, signedness and domain from the name.
fn parts(format: &Format) -> (u32, u32, bool, bool) {
    let name = format.to_string();
    let (bits, rest) = name.strip_prefix("binary").unwrap().split_once('p').unwrap();
    let (precision, letters) = rest.split_at(rest.len() - 2);
    (bits.parse().unwrap(), precision.parse().unwrap(), letters.starts_with('s'), letters.ends_with('e'))
}

fn exact(x: f64) -> Exact {
    decode(DType::F64, x.to_bits())
}

fn to_f64(value: Exact) -> f64 {
    match value {
        Exact::Nan { .. } => f64::NAN,
        Exact::Inf { neg } => f64::INFINITY.copysign(if neg { -1.0 } else { 1.0 }),
        Exact::Finite { neg, sig, exp, .. } => sig as f64 * 2f64.powi(exp) * if neg { -1.0 } else { 1.0 },
    }
}

fn value(format: &Format, code: u64) -> f64 {
    to_f64(decode_float(format.float(), code))
}

/// `docs/spec/p3109.md §6`, and the codes in §3 of the report.
#[test]
fn published_facts() {
    let inf = f64::INFINITY;
    let rows = [
        ("binary8p4se", 8, vec![(0, 0.0), (0x7e, 224.0), (0x7f, inf), (0x80, f64::NAN), (0xfe, -224.0), (0xff, -inf)]),
        ("binary8p4sf", 8, vec![(1, 2f64.powi(-10)), (0x7f, 240.0), (0x80, f64::NAN), (0xff, -240.0)]),
        ("binary8p3se", 16, vec![(0x7e, 49152.0), (0x7f, inf), (0x80, f64::NAN), (0xff, -inf)]),
        ("binary8p1uf", 128, vec![(0, 0.0), (1, 2f64.powi(-127)), (0xfe, 2f64.powi(126)), (0xff, f64::NAN)]),
        ("binary8p1ue", 128, vec![(0xfd, 2f64.powi(125)), (0xfe, inf), (0xff, f64::NAN)]),
        ("binary4p2sf", 2, vec![(7, 3.0), (8, f64::NAN), (0xf, -3.0)]),
        (
            "binary3p1se",
            2,
            vec![(0, 0.0), (1, 0.5), (2, 1.0), (3, inf), (4, f64::NAN), (5, -0.5), (6, -1.0), (7, -inf)],
        ),
        ("Binary3P3UE", 1, vec![(1, 0.25), (4, 1.0), (5, 1.25), (6, inf), (7, f64::NAN)]),
    ];
    for (name, bias, codes) in rows {
        let format = format(name);
        assert_eq!((format.float().bias, format.to_string()), (bias, name.to_ascii_lowercase()));
        for (code, expected) in codes {
            let value = value(&format, code);
            assert!(value == expected || value.is_nan() && expected.is_nan(), "{name} {code:#x}: {value}");
        }
    }
    assert_eq!([format("binary8p4sf"), format("binary8p3sf")].map(|f| *f.float()), [F8E4M3FNUZ, F8E5M2FNUZ]);
}

/// A format has one zero and one NaN, both at fixed codes. Values ascend with the codes. Names and codes survive a
/// round trip.
#[test]
fn every_code() {
    let all = formats(3..=10);
    assert_eq!(all.len(), 2 * (3..=10).map(|bits| 2 * bits - 1).sum::<usize>());
    for format in &all {
        let (bits, precision, signed, extended) = parts(format);
        let f = format.float();
        assert_eq!((f.check(), f.bits(), f.precision(), f.signed), (Ok(()), bits, precision, signed));
        assert_eq!(format.to_string().parse(), Ok(*format));
        let (end, nan) = if signed { (1 << (bits - 1), 1 << (bits - 1)) } else { (1 << bits, (1 << bits) - 1) };
        let magnitudes = (0..end).filter(|code| *code != nan).map(|code| value(format, code)).collect::<Vec<_>>();
        assert_eq!((magnitudes[0], value(format, nan).is_nan()), (0.0, true), "{format}");
        assert!(magnitudes.is_sorted_by(|a, b| a < b), "{format}");
        assert_eq!(magnitudes.last() == Some(&f64::INFINITY), extended, "{format}");
        for code in 0..1 << bits {
            let value = decode_float(f, code);
            if signed && code > nan {
                assert_eq!(to_f64(value), -magnitudes[(code - nan) as usize], "{format} {code:#x}");
            }
            let code_of = |saturation| format.project(Rounding::NearestEven, saturation, value);
            assert_eq!([Saturation::Propagate, Saturation::None].map(code_of), [code; 2], "{format} {code:#x}");
            let largest = f.max_code() | (code & f.sign_bit());
            let finite = if matches!(value, Exact::Inf { .. }) { largest } else { code };
            assert_eq!(code_of(Saturation::Finite), finite, "{format} {code:#x}");
        }
    }
}

#[test]
fn formats_that_do_not_exist() {
    let rows = [
        ("binary2p1se", InvalidFormat::Bits { bits: 2 }),
        ("binary8p8se", InvalidFormat::Precision { bits: 8, precision: 8, most: 7 }),
        ("binary8p9uf", InvalidFormat::Precision { bits: 8, precision: 9, most: 8 }),
        ("binary17p1sf", InvalidFormat::Width(FormatError::Width { exp_bits: 16, man_bits: 0 })),
        ("binary255p1uf", InvalidFormat::Width(FormatError::Width { exp_bits: 255, man_bits: 0 })),
    ];
    for (name, error) in rows {
        assert_eq!(name.parse::<Format>(), Err(error), "{name}");
    }
    for name in ["", "binary", "binary8", "binary8p4", "binary8p4s", "binary8p4es", "binary8p4sé", "8p4se", "f8e4m3fn"]
    {
        assert_eq!(name.parse::<Format>(), Err(InvalidFormat::Name { name: name.into() }), "{name}");
    }
    for name in
        ["binary08p4se", "binary+8p4se", "binary8p04se", "binary8p-4se", "binary8p0uf", "binary256p4se", "binary8p4se "]
    {
        assert!(matches!(name.parse::<Format>(), Err(InvalidFormat::Name { .. })), "{name}");
    }
    let no_hidden_bit = InvalidFormat::Precision { bits: 8, precision: 0, most: 8 };
    assert_eq!(Format::new(8, 0, Signedness::Unsigned, Domain::Finite), Err(no_hidden_bit));
    assert_eq!(format("binary64p60se").float().bits(), 64);
}

#[derive(Clone, Copy)]
enum Mode {
    Fixed(&'static str),
    Random(Stochastic, u32, u64),
}

/// RoundToPrecision of §4.7.4.
fn rounded(precision: i32, bias: i32, mode: Mode, x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let log2 = ((x.to_bits() >> 52 & 0x7ff) as i32) - 1023;
    let q = log2.max(1 - bias) - precision + 1;
    let significand = x.abs() * 2f64.powi(-q);
    let (whole, rest) = (significand.floor(), significand - significand.floor());
    let is_even = if precision > 1 { whole % 2.0 == 0.0 } else { whole == 0.0 || (q + bias) % 2 == 0 };
    let away = match mode {
        Mode::Fixed("TowardZero") => false,
        Mode::Fixed("TowardPositive") => rest > 0.0 && x > 0.0,
        Mode::Fixed("TowardNegative") => rest > 0.0 && x < 0.0,
        Mode::Fixed("NearestTiesToAway") => rest >= 0.5,
        Mode::Fixed("NearestTiesToEven") => rest > 0.5 || (rest == 0.5 && !is_even),
        Mode::Fixed("ToOdd") => rest > 0.0 && is_even,
        Mode::Fixed(other) => panic!("{other}"),
        Mode::Random(variant, count, bits) => {
            let (steps, bits) = (2f64.powi(count as i32), bits as f64);
            match variant {
                Stochastic::A => (rest * steps).floor() + bits >= steps,
                Stochastic::B => (rest * steps * 2.0).floor() + 2.0 * bits + 1.0 >= 2.0 * steps,
                Stochastic::C => (rest * steps).round_ties_even() + bits >= steps,
            }
        }
    };
    (whole + f64::from(away as u8)) * 2f64.powi(q) * x.signum()
}

/// Saturate of §4.7.5, for numbers and infinities.
fn saturated((lo, hi): (f64, f64), saturation: Saturation, mode: Mode, x: f64, signed: bool, extended: bool) -> f64 {
    let is = |names: &[&str]| matches!(mode, Mode::Fixed(name) if names.contains(&name));
    if lo <= x && x <= hi {
        return x;
    }
    let (finite, end) = (x.is_finite(), if x > 0.0 { hi } else { lo });
    let has_inf = extended && (x > 0.0 || signed);
    match saturation {
        Saturation::Finite => end,
        Saturation::Propagate => {
            if finite || !has_inf {
                end
            } else {
                x
            }
        }
        Saturation::None if !finite => match has_inf {
            true => x,
            false if x < 0.0 && !signed => f64::NAN,
            false => end,
        },
        Saturation::None if x > 0.0 => {
            let stops = is(&["TowardZero", "TowardNegative"]) || (is(&["ToOdd"]) && !signed);
            if stops || !extended { hi } else { f64::INFINITY }
        }
        Saturation::None if is(&["TowardZero", "TowardPositive"]) => lo,
        Saturation::None if !signed => f64::NAN,
        Saturation::None => {
            if extended {
                f64::NEG_INFINITY
            } else {
                lo
            }
        }
    }
}

/// Values of a format, points next to and between the values, and points out of range.
fn places(values: &[f64]) -> Vec<f64> {
    let mut magnitudes: Vec<f64> = values.iter().copied().filter(|x| x.is_finite() && *x >= 0.0).collect();
    magnitudes.sort_by(f64::total_cmp);
    let [.., before, last] = magnitudes[..] else { panic!("two values") };
    magnitudes.extend([last + (last - before), 2.0 * last, 4.0 * last]);
    magnitudes.dedup();
    let mut all = vec![1e300, 1e-300, 5e-324, f64::INFINITY, f64::NAN];
    for pair in magnitudes.windows(2) {
        let at = |part: f64| pair[0] + (pair[1] - pair[0]) * part;
        all.extend([at(0.0), at(1.0 / 16.0), at(3.0 / 32.0), at(0.5), at(0.6875), at(1.0)]);
        all.extend([at(0.5).next_down(), at(0.5).next_up(), at(0.0).next_up(), at(1.0).next_down()]);
    }
    all.iter().flat_map(|x| [*x, -x]).collect()
}

#[test]
fn projections() {
    let random = |(variant, bits)| Mode::Random(variant, 3, bits);
    let variants = Stochastic::ALL.into_iter().flat_map(|variant| (0..8).map(move |bits| (variant, bits)));
    let modes = ROUNDINGS.map(|(name, _)| Mode::Fixed(name)).into_iter().chain(variants.map(random));
    let modes: Vec<Mode> = modes.collect();
    for format in formats(3..=8) {
        let (bits, precision, signed, extended) = parts(&format);
        let values: Vec<f64> = (0..1 << bits).map(|code| value(&format, code)).collect();
        let finite = || values.iter().copied().filter(|x| x.is_finite());
        let ends = (finite().fold(0.0, f64::min), finite().fold(0.0, f64::max));
        let mut seen = BTreeSet::new();
        for x in places(&values) {
            for &mode in &modes {
                let once = rounded(precision as i32, format.float().bias.into(), mode, x);
                for saturation in Saturation::ALL {
                    let code = match mode {
                        Mode::Fixed(name) => {
                            let rounding = ROUNDINGS.iter().find(|(known, _)| *known == name).unwrap().1;
                            format.project(rounding, saturation, exact(x))
                        }
                        Mode::Random(variant, count, bits) => {
                            let random = RandomBits::new(bits, count).unwrap();
                            format.project_stochastic(variant, random, saturation, exact(x))
                        }
                    };
                    let right = match x.is_nan() {
                        true => f64::NAN,
                        false => saturated(ends, saturation, mode, once, signed, extended),
                    };
                    let is_right = values[code as usize] == right || right.is_nan() && values[code as usize].is_nan();
                    assert!(is_right, "{format} {saturation} {x:e}: {code:#x}, not {right}");
                    seen.insert(code);
                }
            }
        }
        assert_eq!(seen.len(), 1 << bits, "{format}: every code is the result for something");
    }
}
