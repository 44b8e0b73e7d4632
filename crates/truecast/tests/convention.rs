//! Names of conventions: wrong implementations, made from the reference definition and from bit operations, must be
//! recognized.

use truecast::check::{CastFindings, Check};
use truecast::convention::{Convention, Flush};
use truecast::permitted::NanComparison;
use truecast::policy::{IntOverflow, Overflow};
use truecast::spec::{ieee, onnx, table, tosa};
use truecast::vectors::{Extent, inputs, inputs_scaled};
use truecast::{CastSpec, DType, Elements, Layout, Rounding, cast_one};
use truecast_testkit::random::Random;

fn bytes(dtype: DType, codes: &[u64]) -> Vec<u8> {
    let width = dtype.bits_in(Layout::Bytes).unwrap() as usize / 8;
    codes.iter().flat_map(|code| dtype.storage_of_code(*code).to_le_bytes()[..width].to_vec()).collect()
}

/// Findings for an implementation, on the boundary vectors of a pair.
fn judge(spec: &CastSpec, implementation: impl Fn(u64) -> u64) -> CastFindings {
    let codes = inputs_scaled(spec.src, spec.dst, &[spec.policy.scale_exponent], Extent::Boundary).unwrap();
    let results: Vec<u64> = codes.iter().map(|code| implementation(*code)).collect();
    judge_results(spec, &codes, &results)
}

fn judge_results(spec: &CastSpec, codes: &[u64], results: &[u64]) -> CastFindings {
    let (x, y) = (bytes(spec.src, codes), bytes(spec.dst, results));
    let x = Elements::with_layout(spec.src, Layout::Bytes, codes.len(), &x).unwrap();
    let y = Elements::with_layout(spec.dst, Layout::Bytes, codes.len(), &y).unwrap();
    let mut check = Check::new(*spec, NanComparison::Class, 3);
    check.judge(&x, &y);
    let mut candidates = check.candidates();
    check.refute(&mut candidates, &x, &y);
    check.finish(&candidates)
}

fn right(spec: &CastSpec, code: u64) -> u64 {
    cast_one(spec, code).code().unwrap()
}

fn onnx(src: DType, dst: DType) -> CastSpec {
    onnx::Cast::to(dst).resolve(src).unwrap()
}

fn unsaturated(src: DType, dst: DType) -> CastSpec {
    onnx::Cast { saturate: Some(false), ..onnx::Cast::to(dst) }.resolve(src).unwrap()
}

fn ieee(src: DType, dst: DType) -> CastSpec {
    ieee::Cast::to(dst).resolve(src).unwrap()
}

/// Expects a single group, whose convention explains every element.
#[track_caller]
fn is_named(findings: &CastFindings, convention: Convention) {
    let [group] = findings.groups.as_slice() else { panic!("{:?}", findings.groups) };
    assert!(findings.wrong > 0);
    assert_eq!((group.convention, group.count, group.explains_all), (Some(convention), findings.wrong, true));
    assert_eq!(group.first.len() as u64, findings.wrong.min(3));
    assert_eq!(group.first[..], findings.violations[..]);
}

#[test]
fn right_results_have_no_groups() {
    for (src, dst) in [(DType::F32, DType::F8E4M3Fn), (DType::F64, DType::F16), (DType::F32, DType::I4)] {
        let spec = onnx(src, dst);
        let findings = judge(&spec, |code| right(&spec, code));
        assert_eq!((findings.wrong, findings.groups.len(), findings.compared), (0, 0, 0));
    }
}

#[test]
fn rounded_twice() {
    for (src, intermediate, dst) in [
        (DType::F32, DType::F16, DType::F8E4M3Fn),
        (DType::F32, DType::Bf16, DType::F16),
        (DType::F64, DType::F32, DType::F16),
        (DType::F64, DType::F32, DType::Bf16),
        (DType::I64, DType::F64, DType::F32),
    ] {
        let spec = onnx(src, dst);
        let (first, second) = (ieee(src, intermediate), onnx(intermediate, dst));
        is_named(&judge(&spec, |code| right(&second, right(&first, code))), Convention::Through(intermediate));
    }
}

/// If the elements cannot distinguish two conventions, both are named.
#[test]
fn intermediates_that_look_alike() {
    let spec = onnx(DType::F32, DType::F8E4M3Fn);
    let (first, second) = (ieee(DType::F32, DType::Bf16), onnx(DType::Bf16, DType::F8E4M3Fn));
    let findings = judge(&spec, |code| right(&second, right(&first, code)));
    is_named(&findings, Convention::Through(DType::F16));
    assert_eq!(findings.groups[0].alike, [Convention::Through(DType::Bf16)]);
}

#[test]
fn other_roundings() {
    let spec = onnx(DType::F32, DType::F8E5M2);
    for rounding in [Rounding::TowardZero, Rounding::AwayFromZero, Rounding::Up, Rounding::Down, Rounding::NearestAway]
    {
        let wrong = CastSpec { policy: truecast::CastPolicy { to_float: rounding, ..spec.policy }, ..spec };
        is_named(&judge(&spec, |code| right(&wrong, code)), Convention::Rounded(rounding));
    }
    // TOSA rounds to nearest even; `as` in Rust truncates and saturates.
    let spec = tosa::Cast::to(DType::I8).resolve(DType::F32).unwrap();
    let truncated = |code: u64| f32::from_bits(code as u32) as i8 as u8 as u64;
    is_named(&judge(&spec, truncated), Convention::Rounded(Rounding::TowardZero));
}

/// The high half of an f32 is a truncated bf16, except for NaNs with a payload in the low half.
#[test]
fn bits_of_the_pattern() {
    let spec = onnx(DType::F32, DType::Bf16);
    is_named(&judge(&spec, |code| code >> 16), Convention::OnPattern(Rounding::TowardZero));
    let nearest = |code: u64| (code + 0x7fff + (code >> 16 & 1)) >> 16 & 0xffff;
    is_named(&judge(&spec, nearest), Convention::OnPattern(Rounding::NearestEven));
}

#[test]
fn saturated_or_not() {
    let [saturating, plain] = [onnx, unsaturated].map(|of| of(DType::F32, DType::F8E4M3Fn));
    let found = judge(&saturating, |code| right(&plain, code));
    is_named(&found, Convention::OutOfRange(Overflow::Nonfinite));
    assert_eq!(found.groups[0].convention.unwrap().name(), "out-of-range-nonfinite");
    is_named(&judge(&plain, |code| right(&saturating, code)), Convention::OutOfRange(Overflow::Saturate));
    let only = |code: u64| right(if f32::from_bits(code as u32).is_infinite() { &plain } else { &saturating }, code);
    is_named(&judge(&saturating, only), Convention::Infinity(Overflow::Nonfinite));
}

#[test]
fn flushed_subnormals() {
    let spec = onnx(DType::F32, DType::F16);
    let results = |code: u64| match right(&spec, code) {
        result if result & 0x7fff < 0x400 => result & 0x8000,
        result => result,
    };
    is_named(&judge(&spec, results), Convention::Flushed(Flush::Results));
    let spec = onnx(DType::F16, DType::F32);
    let sources = |code: u64| right(&spec, if code & 0x7fff < 0x400 { code & 0x8000 } else { code });
    is_named(&judge(&spec, sources), Convention::Flushed(Flush::Sources));
}

/// Implementations that scale in the opposite direction, or do not scale.
#[test]
fn other_scales() {
    let scaled = |n: i16| {
        let arm = table::Cast::find("arm", None).unwrap().unwrap();
        table::Cast { to: DType::F8E4M3Fn, scale_exponent: Some(n.into()), ..arm }.resolve(DType::F32).unwrap()
    };
    for wrong in [0, 3] {
        let results = |code: u64| right(&scaled(wrong), code);
        is_named(&judge(&scaled(-3), results), Convention::Scaled(wrong));
    }
    let spec = scaled(-3);
    let through = |code: u64| {
        let to_f16 = CastSpec { dst: DType::F16, policy: spec.policy, undefined: &[], ..spec };
        let from_f16 = CastSpec { src: DType::F16, ..scaled(0) };
        right(&from_f16, right(&to_f16, code))
    };
    is_named(&judge(&spec, through), Convention::Through(DType::F16));
}

#[test]
fn integers_out_of_range() {
    let spec = ieee(DType::F64, DType::I16); // wraps
    let saturated = |code: u64| f64::from_bits(code) as i16 as u16 as u64;
    is_named(&judge(&spec, saturated), Convention::IntegerOverflow(IntOverflow::Saturate));
    // x86's cvttsd2si gives this result, of which only the low half counts.
    let indefinite = |code: u64| {
        let value = f64::from_bits(code).trunc();
        let held = if (-2147483648.0..=2147483647.0).contains(&value) { value as i32 } else { i32::MIN };
        held as u16 as u64
    };
    is_named(&judge(&spec, indefinite), Convention::Indefinite(DType::I32));
    let spec = onnx(DType::I32, DType::I8);
    let saturated = |code: u64| (code as u32 as i32).clamp(-128, 127) as u8 as u64;
    is_named(&judge(&spec, saturated), Convention::IntegerOverflow(IntOverflow::Saturate));
}

#[test]
fn wide_integers_through_narrow_ones() {
    use IntOverflow::{Saturate, Wrap};
    type Wrong = (DType, DType, fn(u64) -> u64, Convention);
    let wrong: [Wrong; 4] = [
        (
            DType::F32,
            DType::I64,
            |x| f32::from_bits(x as u32) as i32 as u64,
            Convention::ThroughInteger(DType::I32, Saturate),
        ),
        (DType::F64, DType::U64, |x| f64::from_bits(x) as u32 as u64, Convention::ThroughInteger(DType::U32, Saturate)),
        (DType::I64, DType::U64, |x| x as i32 as u64, Convention::ThroughInteger(DType::I32, Wrap)),
        (DType::U64, DType::I64, |x| x as u32 as u64, Convention::ThroughInteger(DType::U32, Wrap)),
    ];
    for (src, dst, results, convention) in wrong {
        is_named(&judge(&onnx(src, dst), results), convention);
    }
}

/// An implementation without NaN and infinities: the codes are read as numbers.
#[test]
fn special_codes_as_numbers() {
    for (src, bias, t) in [(DType::F8E5M2, 15, 2), (DType::F16, 15, 10), (DType::F8E4M3Fn, 7, 3), (DType::Bf16, 127, 7)]
    {
        let number = |code: u64| {
            let sign = src.code_bits() - 1;
            let (e, f) = ((code & ((1 << sign) - 1)) >> t, (code & ((1 << t) - 1)) as f64);
            let value = f64::from(1 << t) * f64::from(u8::from(e > 0)) + f;
            (value * 2f64.powi(e.max(1) as i32 - bias - t)).to_bits() | code >> sign << 63
        };
        is_named(&judge(&ieee(src, DType::F64), number), Convention::SpecialsAsNumbers);
    }
}

#[test]
fn codes_of_other_types() {
    let (fn_, fnuz) = (DType::F8E4M3Fn, DType::F8E4M3Fnuz);
    let (spec, wrong) = (onnx(DType::F32, fn_), onnx(DType::F32, fnuz));
    is_named(&judge(&spec, |code| right(&wrong, code)), Convention::ResultWrittenAs(fnuz));
    let (spec, wrong) = (ieee(fn_, DType::F16), ieee(DType::F8E4M3Ieee, DType::F16));
    is_named(&judge(&spec, |code| right(&wrong, code)), Convention::SourceReadAs(DType::F8E4M3Ieee));
    let (spec, wrong) = (onnx(DType::I8, DType::F32), onnx(DType::U8, DType::F32));
    is_named(&judge(&spec, |code| right(&wrong, code)), Convention::SourceReadAs(DType::U8));
    let spec = onnx(DType::F16, DType::Bf16);
    is_named(&judge(&spec, |code| code), Convention::BitsKept);
    is_named(
        &judge(&spec, |code| u64::from((right(&spec, code) as u16).swap_bytes())),
        Convention::ResultBytesReversed,
    );
}

#[test]
fn halves_of_bytes_exchanged() {
    let spec = onnx(DType::U4, DType::F32);
    let codes: Vec<u64> = (0..16).flat_map(|a| (0..16).flat_map(move |b| [a, b])).collect();
    let results: Vec<u64> = (0..codes.len()).map(|i| right(&spec, codes[i ^ 1])).collect();
    is_named(&judge_results(&spec, &codes, &results), Convention::PairsExchanged);
}

#[test]
fn the_sign_of_zero() {
    let spec = onnx(DType::F32, DType::F16);
    let unsigned = |code: u64| right(&spec, code) & if right(&spec, code) & 0x7fff == 0 { 0x7fff } else { 0xffff };
    is_named(&judge(&spec, unsigned), Convention::PositiveZero);
}

#[test]
fn two_errors_at_once() {
    let spec = onnx(DType::F32, DType::F8E4M3Fn);
    let (first, second) = (ieee(DType::F32, DType::F16), unsaturated(DType::F16, DType::F8E4M3Fn));
    let findings = judge(&spec, |code| right(&second, right(&first, code)));
    let named: Vec<_> = findings.groups.iter().map(|g| g.convention).collect();
    let (overflow, twice) = (Convention::OutOfRange(Overflow::Nonfinite), Convention::Through(DType::F16));
    assert!(named == [Some(overflow), Some(twice)] || named == [Some(twice), Some(overflow)], "{named:?}");
    assert_eq!(findings.groups.iter().map(|g| g.count).sum::<u64>(), findings.wrong);
    assert!(findings.groups.iter().all(|g| !g.explains_all && !g.first.is_empty()));
    for group in &findings.groups {
        for violation in &group.first {
            let (truecast::check::ElementValue::Code(x), truecast::check::ElementValue::Code(y)) =
                (&violation.input, &violation.actual)
            else {
                panic!("numbers have codes")
            };
            let given = group.convention.unwrap().result(&spec, *x, None).unwrap();
            assert!(given == *y || (given & 0x7f == 0x7f && y & 0x7f == 0x7f), "{violation:?}");
        }
    }
}

#[test]
fn wrong_in_places() {
    let spec = onnx(DType::F32, DType::F8E5M2);
    let codes = inputs(spec.src, spec.dst, Extent::Boundary).unwrap();
    let wrong = CastSpec { policy: truecast::CastPolicy { to_float: Rounding::TowardZero, ..spec.policy }, ..spec };
    // Every fourth element is wrong, as in a loop with a remainder.
    let result = |(i, code): (usize, &u64)| right(if i % 4 == 3 { &wrong } else { &spec }, *code);
    let results: Vec<u64> = codes.iter().enumerate().map(result).collect();
    let findings = judge_results(&spec, &codes, &results);
    let [group] = findings.groups.as_slice() else { panic!("{:?}", findings.groups) };
    assert_eq!(group.convention, Some(Convention::Rounded(Rounding::TowardZero)));
    assert!(!group.explains_all && group.count == findings.wrong);
}

#[test]
fn garbage_is_unexplained() {
    let mut random = Random::seeded(0);
    for (src, dst) in [(DType::F32, DType::F8E4M3Fn), (DType::F32, DType::F16), (DType::F64, DType::I8)] {
        let spec = ieee(src, dst);
        let codes = inputs(src, dst, Extent::Boundary).unwrap();
        let mask = u64::MAX >> (64 - dst.code_bits());
        let results: Vec<u64> = codes.iter().map(|_| random.next() & mask).collect();
        let findings = judge_results(&spec, &codes, &results);
        assert!(findings.wrong > 500);
        let [group] = findings.groups.as_slice() else { panic!("{src} to {dst}: {:?}", findings.groups) };
        assert_eq!((group.convention, group.count, group.explains_all), (None, findings.wrong, false));
    }
}

#[test]
fn reasons_of_what_is_open() {
    let spec = onnx(DType::F32, DType::I4);
    let codes = [2.5f32, 1e9, f32::NAN, 2.0].map(|x| u64::from(x.to_bits()));
    let findings = judge_results(&spec, &codes, &[2, 0, 0, 2]);
    let reasons: Vec<_> =
        findings.reasons.iter().map(|(why, count)| (why.ends_with("U5"), why.ends_with("U1"), *count)).collect();
    assert_eq!(reasons, [(true, false, 1), (false, true, 2)]);
}

/// Values beyond 448 become NaN, although values up to 464 round to 448.
#[test]
fn values_beyond_the_largest_become_nan() {
    let spec = onnx(DType::F32, DType::F8E4M3Fn);
    let convert = |code: u64| match f32::from_bits(code as u32).abs() > 448.0 {
        true => 0x7f | (code >> 24 & 0x80),
        false => right(&spec, code),
    };
    let codes: Vec<u64> = [1.0f32, 449.0, -463.0, 448.0, 465.0, 500.0, -1e9].map(|x| x.to_bits().into()).into();
    let results: Vec<u64> = codes.iter().map(|code| convert(*code)).collect();
    is_named(&judge_results(&spec, &codes, &results), Convention::BeyondLargest);
    // Some codes of another type are not a convention.
    let twin = onnx(DType::F32, DType::F8E4M3Fnuz);
    let codes: Vec<u64> = [1.0f32, 3.0, 5.0, 7.0].map(|x| x.to_bits().into()).into();
    let mixed = |(i, code): (usize, &u64)| right(if i < 2 { &twin } else { &spec }, *code);
    let results: Vec<u64> = codes.iter().enumerate().map(mixed).collect();
    let groups = judge_results(&spec, &codes, &results).groups;
    assert!(groups.iter().all(|group| group.convention != Some(Convention::ResultWrittenAs(DType::F8E4M3Fnuz))));
}
