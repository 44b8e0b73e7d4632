//! Conformance checker of `docs/spec/tosa.md §6`, against a literal implementation of its sets.

use crate::number::number as of;
use truecast_core::DType::{self, *};
use truecast_core::exact::{decode, decode_float};
use truecast_core::format::FloatFormat;
use truecast_core::permitted::NanComparison::Class;
use truecast_core::spec::tosa::block::{BLOCK, BlockCast, Direction};
use truecast_core::spec::tosa::check::tensor::{BlockCheck, CastCheck, Lint, RescaleCheck};
use truecast_core::spec::tosa::check::{Profile, Verdict, block, cast};
use truecast_core::spec::tosa::rescale::{Channel, RescaleSpec, RoundingMode};
use truecast_core::spec::tosa::{Cast, Target, Version};
use truecast_core::{Kind, cast_one};

fn format(dtype: DType) -> FloatFormat {
    match dtype.kind() {
        Kind::Float(f) => f,
        _ => panic!("{dtype} is no float"),
    }
}

fn max_of(f: &FloatFormat) -> f64 {
    of(decode_float(f, f.max_code()))
}

/// `floor(log2 |r|)`. Logarithms of the tested values are far from an integer, except at powers of two.
fn exponent(r: f64) -> i32 {
    let near = r.abs().log2().round() as i32;
    if r.abs() < 2f64.powi(near) { near - 1 } else { near }
}

fn ulp(f: &FloatFormat, r: f64) -> f64 {
    2f64.powi(exponent(r).max(f.emin()) - f.man_bits as i32)
}

/// Rounds `x` to a multiple of `unit`, to nearest even or toward zero. The quotient is exact.
fn multiple(x: f64, unit: f64, truncate: bool) -> f64 {
    let n = x / unit;
    (if truncate { n.trunc() } else { n.round_ties_even() }) * unit
}

/// §6.5, sentence by sentence, for finite nonzero x. `None` is the overflow value.
fn in_text_set(src: &FloatFormat, x: f64, dst: &FloatFormat, out: Option<f64>) -> bool {
    let wide = |f: &FloatFormat| f.bits() >= 16;
    let zero = 0f64.copysign(x);
    let same = |a: f64| out.is_some_and(|o| o == a && o.is_sign_negative() == a.is_sign_negative());
    if wide(src) && x.abs() < 2f64.powi(src.emin()) && same(zero) {
        return true;
    }
    for truncate in [false, true] {
        let p = multiple(x, 2f64.powi(exponent(x) - dst.man_bits as i32), truncate);
        let minsub = 2f64.powi(dst.quantum());
        let permitted = if p.abs() > max_of(dst) {
            out.is_none()
        } else if p.abs() < minsub {
            same(zero)
        } else if p.abs() < 2f64.powi(dst.emin()) {
            same(multiple(x, minsub, truncate)) || (wide(dst) && same(zero))
        } else {
            same(p)
        };
        if permitted {
            return true;
        }
    }
    let Some(o) = out else { return false };
    let ulp = ulp(dst, x);
    x.abs() <= max_of(dst)
        && o.is_sign_negative() == x.is_sign_negative()
        && x.abs() - ulp <= o.abs()
        && o.abs() <= x.abs() + ulp / 2.0
}

/// §6.4, step by step.
fn in_verifier_set(dst: &FloatFormat, r: f64, out: f64, up: f64, lo: f64) -> bool {
    if r.is_nan() {
        return out.is_nan();
    }
    let u = if r == 0.0 || r.is_infinite() { 0.0 } else { ulp(dst, r) };
    let (r, out) = if r < 0.0 { (-r, -out) } else { (r, out) };
    let (mut hi, mut low) = (r + up * u, r - lo * u);
    let max = max_of(dst);
    if hi > max {
        hi = f64::INFINITY;
    }
    if low > max {
        low = f64::INFINITY;
    }
    if low < -max {
        low = f64::NEG_INFINITY;
    }
    if dst.bits() >= 16 && out == 0.0 && low < 2f64.powi(dst.emin()) {
        return true;
    }
    if out.is_nan() {
        return dst.inf_code().is_none() && hi == f64::INFINITY;
    }
    low <= out && out <= hi
}

fn expected(src: DType, input: u64, dst: DType, actual: u64) -> Verdict {
    let (s, d) = (format(src), format(dst));
    let (x, out) = (of(decode(src, input)), of(decode(dst, actual)));
    let exact = cast_one(&Cast::to(dst).resolve(src).unwrap(), input).code().unwrap();
    if exact == actual || (out.is_nan() && of(decode(dst, exact)).is_nan()) {
        return Verdict::Exact;
    }
    let has_inf = d.inf_code().is_some();
    let text = if x.is_nan() {
        out.is_nan()
    } else if x.is_infinite() {
        if has_inf { out == x } else { out.is_nan() }
    } else if x == 0.0 {
        out == 0.0 && out.is_sign_negative() == x.is_sign_negative()
    } else if out.is_nan() {
        !has_inf && in_text_set(&s, x, &d, None)
    } else if out.is_infinite() {
        out.is_sign_negative() == x.is_sign_negative() && in_text_set(&s, x, &d, None)
    } else {
        in_text_set(&s, x, &d, Some(out))
    };
    match (text, in_verifier_set(&d, x, out, 0.5, 1.0)) {
        (true, true) => Verdict::Allowed,
        (true, false) => Verdict::AllowedByTextOnly,
        (false, true) => Verdict::AllowedByVerifierOnly,
        (false, false) => Verdict::Violation,
    }
}

fn assert_verdicts(src: DType, inputs: impl IntoIterator<Item = u64>, dst: DType, outputs: impl Fn(u64) -> Vec<u64>) {
    let spec = Cast::to(dst).resolve(src).unwrap();
    for input in inputs {
        let exact = cast_one(&spec, input).code().unwrap();
        for actual in outputs(exact) {
            let ours = cast::check(&spec, input, actual, Class);
            assert_eq!(ours, expected(src, input, dst, actual), "{src} {input:#x} to {dst} {actual:#x}");
        }
    }
}

/// Codes of both signs that are near the exact code, near the ends of the range, or near the specials.
fn neighborhood(dst: DType) -> impl Fn(u64) -> Vec<u64> {
    let f = format(dst);
    move |exact| {
        let near = (-3i64..=3).map(|d| exact.wrapping_add_signed(d) & (f.sign_bit() | f.magnitude_mask()));
        let fixed = [0, 1, f.min_normal_code(), f.max_code() - 1, f.max_code(), f.max_code() + 1, f.magnitude_mask()];
        near.chain(fixed).flat_map(|c| [c, c ^ f.sign_bit()]).collect()
    }
}

#[test]
fn fp16_and_fp8_verdicts() {
    for dst in [F8E4M3Fn, F8E5M2] {
        assert_verdicts(F16, (0..0x10000).step_by(61), dst, |_| (0..256).collect());
        assert_verdicts(F16, 0..0x10000, dst, neighborhood(dst));
    }
    assert_verdicts(F16, (0..0x10000).step_by(3), F32, neighborhood(F32));
    for dst in [F16, Bf16, F32] {
        assert_verdicts(F8E4M3Fn, 0..256, dst, neighborhood(dst));
        assert_verdicts(F8E5M2, 0..256, dst, neighborhood(dst));
    }
}

/// Inputs around every threshold of the destination. The sums are exact in binary64.
#[test]
fn fp32_and_bf16_verdicts_at_thresholds() {
    for dst in [F16, F8E4M3Fn, F8E5M2] {
        let f = format(dst);
        let values = (0..=f.max_code()).step_by(if f.bits() == 16 { 137 } else { 1 }).map(|m| of(decode_float(&f, m)));
        let edges = [max_of(&f), max_of(&f) + ulp(&f, max_of(&f)), 2f64.powi(f.emin()), 2f64.powi(f.quantum())];
        for center in values.chain(edges) {
            let unit = ulp(&f, center.max(2f64.powi(f.emin())));
            for part in [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0] {
                let bits = ((center + part * unit) as f32).to_bits();
                let inputs = [-1i32, 0, 1].map(|d| u64::from(bits.wrapping_add_signed(d)));
                let inputs = inputs.into_iter().filter(|i| *i < 0x7f80_0000);
                assert_verdicts(F32, inputs.flat_map(|i| [i, i | 1 << 31]), dst, neighborhood(dst));
            }
        }
        if dst != F16 {
            assert_verdicts(Bf16, (0..0x10000).step_by(3), dst, neighborhood(dst));
        }
    }
    let bf16_edges = [0x0080_0000u64, 0x007f_ffff, 0x0080_7fff, 0x0081_0000, 0x0000_ffff, 0x0001_0000, 0x7f7f_0000];
    let nearby = bf16_edges.into_iter().flat_map(|e| (e - 2..e + 3).flat_map(|i| [i, i | 1 << 31]));
    assert_verdicts(F32, nearby.chain([0x7f7f_8000, 0x7f7f_7fff, 0x7f7f_ffff, 0x7f80_0000]), Bf16, neighborhood(Bf16));
}

fn f32_to(dst: DType, x: f32, actual: u64) -> Verdict {
    cast::check(&Cast::to(dst).resolve(F32).unwrap(), x.to_bits().into(), actual, Class)
}

#[test]
fn wrong_outputs() {
    assert_eq!(f32_to(F8E4M3Fn, 448.0, 0x7f), Verdict::AllowedByVerifierOnly);
    assert_eq!(f32_to(F16, 65504.0, 0x7c00), Verdict::AllowedByVerifierOnly);
    assert_eq!(f32_to(F16, 2f32.powi(-14), 0x0000), Verdict::AllowedByVerifierOnly);
    assert_eq!(f32_to(F8E5M2, -0.0, 0x00), Verdict::AllowedByVerifierOnly);
    assert_eq!(f32_to(F16, -1e-9, 0x0000), Verdict::AllowedByVerifierOnly);
    // i32 to bf16, truncated. 0x102ffff is above the tie between its neighbors.
    let bf16 = Cast::to(Bf16).resolve(I32).unwrap();
    assert_eq!(cast::check(&bf16, 0x101_c000, 0x4b80, Class), Verdict::AllowedByVerifierOnly);
    assert_eq!(cast::check(&bf16, 0x102_ffff, 0x4b82, Class), Verdict::Violation);
    assert_eq!(cast::check(&bf16, 0x101_0001, 0x4b80, Class), Verdict::AllowedByVerifierOnly);
    for profile in [Profile::Strict, Profile::Spec1_0, Profile::SpecSeed202503, Profile::Spec1_1Draft] {
        assert!(!profile.passes(Verdict::AllowedByVerifierOnly), "{}", profile.name());
    }
    assert!(Profile::ArmVerifier2026_8.passes(Verdict::AllowedByVerifierOnly));
    assert!(!Profile::ArmVerifier2026_8.passes(Verdict::AllowedByTextOnly));
    assert!(Profile::ALL.iter().all(|p| p.passes(Verdict::Exact) && !p.passes(Verdict::Violation)));
}

/// A whole tensor passes the text if results are exact, truncated or uniformly flushed. Mixed flushing fails.
#[test]
fn whole_tensors() {
    let spec = Cast::to(F16).resolve(F32).unwrap();
    let inputs: Vec<u64> = (0..4000u32).map(|i| u64::from((i << 20) ^ i.rotate_right(7))).collect();
    let check = |profile, result: &dyn Fn(u64) -> u64| {
        let mut check = CastCheck::new(spec, profile, 10);
        inputs.iter().for_each(|&x| check.push(x, result(x)));
        check.findings
    };
    let exact = |x: u64| cast_one(&spec, x).code().unwrap();
    let truncated = |x: u64| {
        let policy = truecast_core::CastPolicy { to_float: truecast_core::Rounding::TowardZero, ..spec.policy };
        let code = cast_one(&truecast_core::CastSpec { policy, ..spec }, x).code().unwrap();
        let overflows = of(decode(F32, x)).abs() >= 65536.0;
        if overflows { exact(x) } else { code }
    };
    let flushed = |x: u64| if exact(x) & 0x7fff < 0x400 { exact(x) & 0x8000 } else { exact(x) };
    let mixed = |x: u64| if x & 1 == 0 { flushed(x) } else { exact(x) };
    for profile in [Profile::Spec1_0, Profile::SpecSeed202503, Profile::Spec1_1Draft] {
        for result in [&exact as &dyn Fn(u64) -> u64, &truncated, &flushed] {
            let findings = check(profile, result);
            assert!(findings.passes(), "{}: {:?}", profile.name(), findings.failures);
            assert_eq!(findings.mixed_flush, None);
        }
        let findings = check(profile, &mixed);
        assert_eq!((findings.failed, findings.passes()), (0, false), "{}", profile.name());
        assert!(findings.mixed_flush.is_some());
    }
    assert!(check(Profile::ArmVerifier2026_8, &mixed).passes());
    let strict = check(Profile::Strict, &truncated);
    assert!(!strict.passes() && strict.failures.len() == 10 && strict.failed > 10);
    assert_eq!(strict.lint(Lint::NotNearestEven), strict.failed);
    let signless = check(Profile::ArmVerifier2026_8, &|x| if exact(x) == 0x8000 { 0 } else { exact(x) });
    assert!(signless.lint(Lint::ZeroSign) > 0 && signless.passes());
}

#[test]
fn flushing_of_inputs_and_outputs_is_told_apart() {
    let spec = Cast::to(Bf16).resolve(F32).unwrap();
    let subnormal = 0x0050_0000u64; // 0x0050 in bf16, subnormal in both
    let rounds_up = 0x007f_ffffu64; // subnormal input, smallest normal output
    let passes = |pairs: &[(u64, u64)]| {
        let mut check = CastCheck::new(spec, Profile::Spec1_0, 1);
        pairs.iter().for_each(|&(x, y)| check.push(x, y));
        check.findings.passes()
    };
    assert!(passes(&[(subnormal, 0), (rounds_up, 0)])); // inputs are flushed
    assert!(passes(&[(subnormal, 0), (rounds_up, 0x80)])); // outputs are
    assert!(!passes(&[(subnormal, 0x50), (rounds_up, 0)])); // inconsistent with both
    assert!(!passes(&[(rounds_up, 0), (rounds_up, 0x80)]) || passes(&[(rounds_up, 0x80)]));
}

#[test]
fn double_rounding_is_named() {
    let mut check = CastCheck::new(Cast::to(Bf16).resolve(I32).unwrap(), Profile::Spec1_0, 1);
    check.push(16973823, 0x4b82); // through fp32
    assert_eq!(check.findings.lint(Lint::DoubleRounded), 1);
}

#[test]
fn nan_to_integer_is_unpredictable() {
    let spec = Cast::to(I8).resolve(F32).unwrap();
    assert_eq!(cast::check(&spec, 0x7fc0_0000, 0x55, Class), Verdict::Unpredictable);
    assert_eq!(cast::check(&spec, 1f32.to_bits().into(), 2, Class), Verdict::Violation);
}

fn rescale_verdict(mode: RoundingMode, profile: Profile, input: i32, actual: i32) -> bool {
    let format = |bits| truecast_core::format::IntFormat { bits, signed: true };
    let spec = RescaleSpec {
        input: format(32),
        output: format(32),
        scale32: true,
        rounding: mode,
        channels: vec![Channel { multiplier: 1 << 30, shift: 30 }],
        input_zp: 0,
        output_zp: 0,
    };
    let mut check = RescaleCheck::new(spec, profile, 1);
    check.push(input as u32 as u64, actual as u32 as u64);
    check.findings.passes()
}

/// Example in §4.6: at 2^24, the older text permits a distance of 3; releases permit 4.
#[test]
fn rescale_bounds() {
    let x = 1 << 24;
    for (profile, reach) in
        [(Profile::Strict, 0), (Profile::SpecSeed202503, 3), (Profile::Spec1_0, 4), (Profile::ArmVerifier2026_8, 4)]
    {
        for distance in 0..6 {
            for actual in [x - distance, x + distance] {
                let passes = rescale_verdict(RoundingMode::Inexact, profile, x, actual);
                assert_eq!(passes, distance <= reach, "{}: {distance}", profile.name());
            }
        }
    }
    assert!(rescale_verdict(RoundingMode::Single, Profile::Spec1_0, x, x));
    assert!(!rescale_verdict(RoundingMode::Single, Profile::ArmVerifier2026_8, x, x + 1));
}

/// §5.5: a scale far too small, with saturated elements, passes the verifier but not the draft.
#[test]
fn block_scales() {
    for (element, top) in [(F4E2M1, 0x7u64), (F6E3M2, 0x1f), (F6E2M3, 0x1f), (MxInt8, 0x7f)] {
        let cast = BlockCast { direction: Direction::ToBlocks, element, plain: F32 };
        let input = [u64::from(1f32.to_bits()); BLOCK];
        let (scale, codes) = cast.to_block(&input);
        let passes = |profile, scale, codes: [u64; BLOCK]| {
            let mut check = BlockCheck::new(cast, profile, 1);
            check.push_blocked(&input, scale, &codes);
            (check.findings.passes(), check.findings.lint(Lint::BlockSaturation))
        };
        for profile in Profile::ALL {
            assert!(passes(profile, scale, codes).0);
        }
        let far = passes(Profile::Spec1_1Draft, scale - 20, [top; BLOCK]);
        assert_eq!(far, (false, if codes[0] == top { 0 } else { BLOCK as u64 }), "{element}");
        assert!(passes(Profile::ArmVerifier2026_8, scale - 20, [top; BLOCK]).0, "{element}");
        assert!(!passes(Profile::ArmVerifier2026_8, scale + 2, codes).0, "{element}");
        assert!(!passes(Profile::Spec1_1Draft, scale, [0; BLOCK]).0, "{element}");
        // For some blocks, OCP's recipe gives half the scale, and the elements saturate.
        assert!(passes(Profile::Spec1_1Draft, scale - 1, [top; BLOCK]).0, "{element}");
        assert!(!passes(Profile::Strict, scale - 1, [top; BLOCK]).0, "{element}");
    }
    let cast = BlockCast { direction: Direction::ToBlocks, element: F8E4M3Fn, plain: F32 };
    let mut input = [0u64; BLOCK];
    input[3] = f32::NAN.to_bits().into();
    assert_eq!(block::check_to_block(&cast, &input, 0xff, &[7; BLOCK]).0, Verdict::Exact);
    assert_eq!(block::check_to_block(&cast, &input, 3, &[7; BLOCK]).0, Verdict::Allowed);
    let from = BlockCast { direction: Direction::FromBlocks, element: F4E2M1, plain: F8E4M3Fn };
    assert_eq!(block::check_from_block(&from, 127, 0x2, 0x38), Verdict::Exact);
    assert_eq!(block::check_from_block(&from, 127, 0x2, 0x39), Verdict::Allowed);
    assert_eq!(block::check_from_block(&from, 127, 0x2, 0x48), Verdict::Violation);
}

/// §1.3.
#[test]
fn profiles_by_name() {
    for profile in Profile::ALL {
        assert_eq!(profile.name().parse(), Ok(profile));
    }
    assert!("spec".parse::<Profile>().is_err());
    assert_eq!(Profile::of_version(Version::V1_1), Profile::Spec1_1Draft);
    assert_eq!(Target::of(Version::V1_0), Target::default());
}
