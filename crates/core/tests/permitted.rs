//! Results that a checker accepts: the last column of `docs/spec/onnx.md §4.11`, row by row.

use truecast_core::DType::{self, *};
use truecast_core::permitted::{NanComparison, Permitted, Verdict, check_code, check_parsed, check_printed, permitted};
use truecast_core::spec::onnx::{Cast, RoundMode};
use truecast_core::{CastSpec, spec};

fn onnx(src: DType, cast: Cast) -> CastSpec {
    cast.resolve(src).unwrap()
}

fn accepted(spec: &CastSpec, x: f32) -> Vec<u64> {
    let all = 0..1u64 << spec.dst.code_bits();
    all.filter(|&code| !wrong(check_code(spec, x.to_bits().into(), code, NanComparison::Class))).collect()
}

fn wrong(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Wrong { .. })
}

#[test]
fn every_row_of_the_page() {
    let to = |dst| onnx(F32, Cast::to(dst));
    let any = |spec: &CastSpec, x| accepted(spec, x).len() == 1 << spec.dst.code_bits();
    // U1
    for x in [128.0, -129.0, 1e30, f32::INFINITY, f32::NAN] {
        assert!(any(&to(I8), x), "{x}");
    }
    assert_eq!(accepted(&to(I8), 127.9), [127]); // its truncation is in range
    assert_eq!(accepted(&to(U8), -0.5), [0]);
    // U2, U3
    let e8m0 =
        |saturate, mode| onnx(F32, Cast { saturate: Some(saturate), round_mode: Some(mode), ..Cast::to(F8E8M0) });
    for x in [-0.0, -1.0, f32::NEG_INFINITY] {
        assert!(any(&e8m0(true, RoundMode::Up), x), "{x}");
    }
    for x in [0.0, f32::INFINITY, f32::MAX, 2f32.powi(-149)] {
        assert!(any(&e8m0(true, RoundMode::Down), x) && any(&e8m0(false, RoundMode::Up), x), "{x}");
        assert_eq!(accepted(&e8m0(true, RoundMode::Up), x), [if x < 1.0 { 0 } else { 0xfe }], "{x}");
        assert_eq!(accepted(&e8m0(false, RoundMode::Nearest), x), [0xff], "{x}");
    }
    assert_eq!(accepted(&e8m0(true, RoundMode::Down), 1.5), [0x7f]);
    // U4
    for dst in [F4E2M1, F6E2M3, F6E3M2] {
        assert!(any(&to(dst), f32::NAN) && !any(&to(dst), f32::INFINITY), "{dst}");
    }
    // U5: the permitted results are those of truncation, RNE and half away from zero, each wrapped.
    let rows: [(DType, f32, &[u64]); 8] = [
        (I4, 2.5, &[2, 3]),
        (I4, 3.5, &[3, 4]),
        (I4, 2.25, &[2]),
        (I4, 2.75, &[2, 3]),
        (I4, -2.5, &[0xd, 0xe]),
        (I4, 7.5, &[7, 8]), // 8 wraps to -8
        (U2, 3.5, &[0, 3]),
        (U4, 2.0, &[2]),
    ];
    for (dst, x, codes) in rows {
        assert_eq!(accepted(&to(dst), x), codes, "{x} to {dst}");
    }
    // U6: +-FLT_MAX or NaN, before opset 24 only
    for opset in 19..=28 {
        let spec = onnx(F32, Cast { opset, ..Cast::to(F8E4M3Fnuz) });
        let both: &[u64] = if opset < 24 { &[0x7f, 0x80] } else { &[0x7f] };
        assert_eq!(accepted(&spec, f32::INFINITY), both, "opset {opset}");
        assert_eq!(accepted(&spec, 241.0), [0x7f], "opset {opset}");
    }
}

#[test]
fn nan_compares_as_a_class_unless_asked() {
    let spec = onnx(F32, Cast::to(F8E5M2));
    assert_eq!(accepted(&spec, f32::NAN), [0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff]);
    let nan = f32::NAN.to_bits().into();
    let bits: Vec<u64> = (0..256).filter(|&c| !wrong(check_code(&spec, nan, c, NanComparison::Bits))).collect();
    assert_eq!(bits, [0x7e]);
    // A NaN instead of a number is wrong in both comparisons.
    for comparison in [NanComparison::Class, NanComparison::Bits] {
        let verdict = check_code(&spec, 1f32.to_bits().into(), 0x7e, comparison);
        // 1 is in range, so the pair's clause on overflow does not apply.
        let clause = "ONNX Cast, to nearest even; docs/spec/onnx.md §4.6";
        assert_eq!(verdict, Verdict::Wrong { permitted: Permitted::Codes(vec![0x3c]), clause });
    }
}

#[test]
fn refused_values_permit_nothing() {
    let cast = spec::ieee::Cast { overflow: truecast_core::policy::Overflow::Error, ..spec::ieee::Cast::to(F16) };
    let cast = cast.resolve(F32).unwrap();
    assert_eq!(permitted(&cast, 1e30f32.to_bits().into()).0, Permitted::Codes(vec![]));
    assert!(wrong(check_code(&cast, 1e30f32.to_bits().into(), 0x7c00, NanComparison::Class)));
}

/// U7, U8, U10: any result is permitted for a text that is not a number, and for a number out of an integer's range.
/// U9: texts that read back are permitted.
#[test]
fn text() {
    let from = |dst| onnx(String, Cast::to(dst));
    let open = |verdict| matches!(verdict, Verdict::Open { .. });
    let read = |dst, text: &str, code| check_parsed(&from(dst), text.as_bytes(), code, NanComparison::Class);
    assert_eq!(read(F16, "65519.9999999999999999999", 0x7bff), Verdict::Right);
    assert!(wrong(read(F16, "65519.9999999999999999999", 0x7c00))); // result of engines (§5 row 24)
    assert!(open(read(F16, "1_000", 0x1234)) && open(read(U8, "2.718", 3)) && open(read(U8, "300", 255)));
    assert!(open(read(Bool, "0", 1)) && open(read(I8, "nan", 5)));
    assert_eq!(read(I8, "-7", 0xf9), Verdict::Right);
    assert!(wrong(read(I8, "-7", 7)));
    assert_eq!(read(F8E5M2, "-nan", 0x7f), Verdict::Right);

    let rows: [(DType, u64, &[&str], &[&str]); 6] = [
        // §6.2, §6.7: different spellings of one value
        (F32, 0x4048f5c3, &["3.14", "3.1400001", " 3.1400001049041748 ", "314e-2"], &["3.1", "pi", ""]),
        (F32, 0x80000000, &["-0.0", "-0"], &["0", "0.0"]),
        (F64, 0x7ff0 << 48, &["inf", "INF", "1e999"], &["-inf", "nan"]),
        (F16, 0x7e00, &["nan", "NaN", "-nan"], &["0", "nan(1)"]),
        (Bool, 1, &["True", "true", "1"], &["False", "0", "yes"]),
        (I64, 5, &["5", "5.0", "+5"], &["6", "5x"]),
    ];
    for (src, code, accepted, refused) in rows {
        let to_text = onnx(src, Cast::to(String));
        for text in accepted {
            assert!(open(check_printed(&to_text, code, text.as_bytes())), "{src} {code:x} as {text:?}");
        }
        for text in refused {
            assert!(wrong(check_printed(&to_text, code, text.as_bytes())), "{src} {code:x} as {text:?}");
        }
    }
}
