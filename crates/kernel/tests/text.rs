//! Fast conversions from and to text against `truecast_core::text`, bit for bit and byte for byte.

use truecast_core::DType::{self, *};
use truecast_core::exact::decode;
use truecast_core::policy::{IntOverflow, NanRule, Overflow, Subnormals, TextStyle};
use truecast_core::spec::{ieee, onnx};
use truecast_core::text::{parse_one, print_one, read};
use truecast_core::{CastSpec, Exact, Layout, Outcome, Rounding};
use truecast_kernel::text::{TextCaster, TextError, Texts};
use truecast_testkit::{digits::one_less, random::seed};

fn numeric() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|t| t.is_numeric())
}

fn width(dtype: DType) -> usize {
    dtype.bits_in(Layout::Bytes).unwrap() as usize / 8
}

fn elements(dtype: DType, codes: &[u64]) -> Vec<u8> {
    let bytes = |code: &u64| dtype.storage_of_code(*code).to_le_bytes();
    codes.iter().flat_map(|code| bytes(code).into_iter().take(width(dtype))).collect()
}

fn print(spec: &CastSpec, codes: &[u64]) -> Texts {
    let mut texts = Texts::default();
    TextCaster::new(spec).unwrap().print(&elements(spec.src, codes), &mut texts).unwrap();
    texts
}

/// In both styles.
fn check_printing(spec: &CastSpec, codes: &[u64]) {
    for style in TextStyle::ALL {
        let mut spec = *spec;
        spec.policy.text = style;
        let texts = print(&spec, codes);
        assert_eq!(texts.len(), codes.len());
        for (text, code) in texts.iter().zip(codes) {
            let expected = print_one(&spec, *code).unwrap();
            assert_eq!(text, expected.as_bytes(), "{} {code:x}", spec.src);
        }
    }
}

#[test]
fn every_narrow_code_is_printed_as_defined() {
    for src in numeric().filter(|t| t.code_bits() <= 16) {
        let codes: Vec<u64> = (0..1 << src.code_bits()).collect();
        check_printing(&onnx_or_ieee(src, String), &codes);
    }
}

/// ONNX if ONNX has the types, else `ieee`.
fn onnx_or_ieee(src: DType, dst: DType) -> CastSpec {
    onnx::Cast::to(dst).resolve(src).or_else(|_| ieee::Cast::to(dst).resolve(src)).unwrap()
}

#[test]
fn wide_codes_are_printed_as_defined() {
    let mut random = random("wide_codes");
    for src in [F32, F64, Tf32, I32, U32, I48, I64, U64] {
        let bits = src.code_bits();
        let mut codes: Vec<u64> = (0..1500).map(|_| random.u64(..) >> (64 - bits)).collect();
        codes.extend((0..1500).map(|_| short_decimal(src, &mut random)));
        // Ends; powers of two, where intervals are asymmetric; powers of ten, where notations change; and neighbors.
        let ends = [0, 1, 2, (1u64 << (bits - 1)) - 1, 1 << (bits - 1), u64::MAX >> (64 - bits)];
        let powers_of_two = (0..bits).map(|i| 1 << i);
        let powers_of_ten = (-324..310).map(|e| code_of(src, &format!("1e{e}")));
        let fields = (0..2048u64).filter_map(|e| match src {
            F64 => Some(e << 52),
            F32 if e < 256 => Some(e << 23),
            _ => None,
        });
        for code in ends.into_iter().chain(powers_of_two).chain(powers_of_ten).chain(fields) {
            codes.extend([code.wrapping_sub(1), code, code.wrapping_add(1)].map(|c| c & (u64::MAX >> (64 - bits))));
        }
        check_printing(&onnx_or_ieee(src, String), &codes);
    }
}

/// Element nearest to a decimal of few digits.
fn short_decimal(src: DType, random: &mut fastrand::Rng) -> u64 {
    let digits = random.u64(1..100_000);
    code_of(src, &format!("{digits}e{}", random.i32(-25..25)))
}

fn code_of(dst: DType, text: &str) -> u64 {
    parse_one(&ieee::Cast::to(dst).resolve(String).unwrap(), text.as_bytes()).unwrap().code().unwrap()
}

#[test]
fn what_is_printed_reads_back() {
    let mut random = random("reads_back");
    for dtype in [F32, F64, F16, Bf16, I32, U64, I64, F8E4M3Fn, F6E3M2, Bool] {
        let bits = dtype.code_bits();
        let codes: Vec<u64> =
            (0..200_000).map(|_| random.u64(..) >> (64 - bits)).filter(|c| !is_nan(dtype, *c)).collect();
        let texts = print(&onnx_or_ieee(dtype, String), &codes);
        let mut back = vec![0; codes.len() * width(dtype)];
        TextCaster::new(&ieee::Cast::to(dtype).resolve(String).unwrap())
            .unwrap()
            .parse(texts.iter(), &mut back)
            .unwrap();
        assert!(back == elements(dtype, &codes), "{dtype}");
    }
}

fn is_nan(dtype: DType, code: u64) -> bool {
    dtype.is_float() && matches!(decode(dtype, code), Exact::Nan { .. })
}

/// Texts of every kind. They are short and long, valid and invalid, and include midpoints of every type and neighbors
/// of midpoints.
fn texts(random: &mut fastrand::Rng) -> Vec<std::string::String> {
    let mut all: Vec<std::string::String> =
        "0 -0 0.0 -0e5 1 -1 inf -INF nan -nan 1e400 -1e400 1e-400 1e-46 18446744073709551615 \
        18446744073709551616 18446744073709551617 9223372036854775807.99999 1e63 1e64 \
        340282366920938463463374607431768211457 0.00000000000000000000000000000000000000000000000001 2.5 \
        -2.5 65519.9999999999999999999 65520 1e6 464 464.0000000000000000001 248 61440 0.3 2.7 -0.9 \
        9007199254740993 9007199254740992.99999999999999999999 5e-324 2.4703282292062327208e-324 1e-45 \
        7.006492321624085e-46 7.0064923216240854e-46 1.7976931348623158079e308 1.7976931348623157e308 \
        3.4028235677973366e38 3.4028235677973367e38 5.877472e-39 8.8162076311671563e-39 1.5 1.75 \
        999999999999999999999999999999999999999999 0.1000000000000000055511151231257827021181583404541015625 \
        170141183460469231731687303715884105728 170141183460469231731687303715884105729 \
        255134775190703847597530955573826158592"
            .split_whitespace()
            .chain([" 1.5\n"])
            .map(Into::into)
            .collect();
    for _ in 0..100 {
        let bits = random.u64(..);
        let (wide, narrow) = (f64::from_bits(bits), f32::from_bits(bits as u32));
        let small = (random.f64() - 0.5) * 2f64.powi(random.i32(-12..12));
        let digits = random.u64(..) >> random.u32(0..64);
        all.push(format!("{digits}"));
        all.push(format!("{digits}e{}", random.i32(-30..30)));
        all.push(format!("-{digits}.{}e{}", random.u64(..), random.i32(-330..310)));
        if wide.is_finite() {
            all.extend([format!("{wide:e}"), format!("{wide:.17e}"), format!("{wide:.25e}")]);
        }
        if narrow.is_finite() {
            all.extend([format!("{narrow}"), format!("{narrow:.8e}"), format!("{narrow:.150}")]);
        }
        all.extend([format!("{small}"), format!("{small:.4}"), format!("{small:.30}")]);
        // Exact midpoints of types with at most 11 bits of precision. Also texts that differ from a midpoint by one
        // unit in a late digit.
        let middle = (random.i32(1..4096) as f64 + 0.5) * 2f64.powi(random.i32(-30..8));
        let exact = format!("{middle:.60}");
        all.extend([format!("{exact}1"), format!("-{exact}0001"), one_less(&exact), exact]);
    }
    all
}

#[test]
fn texts_are_parsed_as_defined() {
    let mut random = random("parsed");
    let texts = texts(&mut random);
    let mut specs: Vec<CastSpec> = Vec::new();
    for dst in numeric() {
        specs.push(ieee::Cast::to(dst).resolve(String).unwrap());
        specs.extend(onnx::Cast::to(dst).resolve(String));
        specs.extend(onnx::Cast { saturate: Some(false), ..onnx::Cast::to(dst) }.resolve(String));
    }
    for round_mode in onnx::RoundMode::ALL {
        for saturate in [true, false] {
            let cast = onnx::Cast { saturate: Some(saturate), round_mode: Some(round_mode), ..onnx::Cast::to(F8E8M0) };
            specs.push(cast.resolve(String).unwrap());
        }
    }
    for rounding in Rounding::ALL {
        for dst in [F32, F64, F16, F8E4M3Fn, I32, U64, I4] {
            let rounding = Some(rounding);
            let other = ieee::Cast {
                overflow: Overflow::Saturate,
                int_overflow: IntOverflow::Saturate,
                subnormals: Subnormals::Flush,
                rounding,
                ..ieee::Cast::to(dst)
            };
            specs.extend([ieee::Cast { rounding, ..ieee::Cast::to(dst) }, other].map(|c| c.resolve(String).unwrap()));
        }
    }
    for spec in &specs {
        let caster = TextCaster::new(spec).unwrap();
        let mut element = vec![0; width(spec.dst)];
        for text in &texts {
            let expected = parse_one(spec, text.as_bytes());
            let mut seen = None;
            let actual = caster.parse_seen([text], &mut element, |reading| seen = Some(reading));
            match expected {
                Ok(Outcome::Defined(code) | Outcome::Undefined { code, .. }) => {
                    assert_eq!(actual, Ok(()), "{text} to {spec:?}");
                    assert_eq!(element, elements(spec.dst, &[code]), "{text} to {spec:?}");
                    let seen = seen.unwrap();
                    assert_eq!(Ok(seen.encoded.outcome(spec.undefined)), expected, "{text} to {spec:?}");
                    let exact = read(spec.dst, text.as_bytes()).unwrap().to_exact();
                    assert_eq!(is_element(seen.value, spec.dst, code), is_element(exact, spec.dst, code), "{text}");
                }
                Ok(Outcome::Refused { .. }) => {
                    assert!(matches!(actual, Err(TextError::Refused { .. })), "{text} to {spec:?}")
                }
                Err(_) => assert!(matches!(actual, Err(TextError::Malformed { .. })), "{text} to {spec:?}"),
            }
        }
    }
}

fn is_element(value: Exact, dtype: DType, code: u64) -> bool {
    let odd = |exact| match exact {
        Exact::Finite { neg, sig, exp, sticky: false } if sig != 0 => {
            Some((neg, sig >> sig.trailing_zeros(), exp + sig.trailing_zeros() as i32))
        }
        _ => None,
    };
    odd(value).is_some() && odd(value) == odd(decode(dtype, code))
}

/// `docs/spec/onnx.md §6.5`: "an error names the flat element index".
#[test]
fn the_first_bad_element_is_named() {
    let parser = TextCaster::new(&onnx::Cast::to(F32).resolve(String).unwrap()).unwrap();
    let error = parser.parse(["1", "2", "0x10", "x"], &mut [0; 16]).unwrap_err();
    assert_eq!(error.to_string(), "element 2 is \"0x10\": unexpected character at byte 1");
    let parser = TextCaster::new(&onnx::Cast::to(I8).resolve(String).unwrap()).unwrap();
    assert!(matches!(parser.parse(["1", "inf"], &mut [0; 2]), Err(TextError::Malformed { index: 1, .. })));
    let strict = ieee::Cast { int_overflow: IntOverflow::Error, ..ieee::Cast::to(I8) }.resolve(String).unwrap();
    let error = TextCaster::new(&strict).unwrap().parse(["1", "128"], &mut [0; 2]).unwrap_err();
    assert_eq!(error.to_string(), "element 1 is \"128\": the value is out of the destination's range");
    let quiet = ieee::Cast { nan: NanRule::Error, ..ieee::Cast::to(String) }.resolve(F32).unwrap();
    let codes = elements(F32, &[0, 0x7fc00000]);
    let error = TextCaster::new(&quiet).unwrap().print(&codes, &mut Texts::default()).unwrap_err();
    assert!(matches!(error, TextError::Unprintable { index: 1, .. }));
}

#[test]
fn lengths_must_fit() {
    let parser = TextCaster::new(&onnx::Cast::to(F32).resolve(String).unwrap()).unwrap();
    for room in [0, 4, 7, 9, 12] {
        assert!(matches!(parser.parse(["1", "2"], &mut vec![0; room]), Err(TextError::Length { .. })), "{room}");
    }
    assert_eq!(parser.parse(["1", "2"], &mut [0; 8]), Ok(()));
    let printer = TextCaster::new(&onnx::Cast::to(String).resolve(F32).unwrap()).unwrap();
    assert!(matches!(printer.print(&[0; 7], &mut Texts::default()), Err(TextError::Length { .. })));
    for (src, dst) in [(F32, F16), (String, String), (C64, C64)] {
        let spec = onnx_or_copy(src, dst);
        assert!(TextCaster::new(&spec).is_err(), "{src} to {dst}");
    }
}

fn onnx_or_copy(src: DType, dst: DType) -> CastSpec {
    onnx::Cast::to(dst).resolve(src).unwrap_or(CastSpec::copy(src))
}

/// `TRUECAST_SEED` repeats a run.
fn random(test: &str) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed(test))
}
