//! Implementation choices (`docs/spec/tosa.md §3.9`): the checker permits every result under the text.

use truecast_core::DType::{self, *};
use truecast_core::spec::tosa::check::Profile;
use truecast_core::spec::tosa::check::tensor::CastCheck;
use truecast_core::spec::tosa::{Cast, Freedoms, Target, Version};
use truecast_core::{CastSpec, cast_one};

fn all() -> Vec<Freedoms> {
    let words = ["flush-f16", "flush-bf16", "flush-f32", "toward-zero"];
    let named = |set: usize| (0..4).filter(|i| set >> i & 1 == 1).map(|i| words[i]).collect::<Vec<_>>().join("+");
    std::iter::once(Freedoms::STRICT).chain((1..16).map(|set| named(set).parse().unwrap())).collect()
}

fn with(freedoms: Freedoms, src: DType, dst: DType) -> CastSpec {
    Cast { freedoms, ..Cast::to(dst) }.resolve(src).unwrap()
}

/// Inputs of a source type. A type of at most 16 bits has all codes. f32 has both sides of all boundaries of f32 and of
/// the narrower types.
fn inputs(src: DType) -> Vec<u64> {
    if src != F32 {
        return (0..1 << src.code_bits()).collect();
    }
    let mut all: Vec<u64> = (0..32).flat_map(|bit| [1u64 << bit, (1 << bit) - 1]).collect();
    for exponent in 0..=255u64 {
        for fraction in (0..23).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, 0x7f_ffff ^ (1 << bit)]) {
            all.extend([exponent << 23 | fraction, (exponent << 23 | fraction).wrapping_sub(1) & 0xffff_ffff]);
        }
        // Quarters of a unit of each destination at the top of the binade, where results overflow.
        all.extend(
            (0..64u64).flat_map(|step| [0xffff, 0x3ff, 0xfffff].map(|m| exponent << 23 | ((m * step) & 0x7f_ffff))),
        );
    }
    all.iter().flat_map(|x| [*x, x ^ 1 << 31]).collect()
}

const FLOATS: [DType; 5] = [F8E4M3Fn, F8E5M2, F16, Bf16, F32];

#[test]
fn whatever_is_chosen_is_permitted() {
    let mut pairs = 0;
    for src in FLOATS {
        let inputs = inputs(src);
        for dst in FLOATS.into_iter().filter(|dst| Cast::to(*dst).resolve(src).is_ok()) {
            pairs += 1;
            let strict = with(Freedoms::STRICT, src, dst);
            // Choices without effect give the same cast, which is checked once.
            let mut specs: Vec<CastSpec> = all().into_iter().map(|freedoms| with(freedoms, src, dst)).collect();
            specs.sort_by_key(|spec| format!("{spec:?}"));
            specs.dedup();
            for spec in specs {
                let mut check = CastCheck::new(strict, Profile::Spec1_0, 1);
                let mut differs = false;
                for &x in &inputs {
                    let result = cast_one(&spec, x).code().unwrap();
                    differs |= cast_one(&strict, x).code() != Some(result);
                    check.push(x, result);
                }
                let findings = check.findings;
                assert!(findings.passes(), "{src} to {dst}, {:?}: {:?}", spec.policy, findings.failures);
                assert_eq!(findings.mixed_flush, None, "{src} to {dst}, {:?}", spec.policy);
                assert_eq!(differs, spec != strict, "{src} to {dst}, {:?}", spec.policy);
            }
        }
    }
    assert_eq!(pairs, 16);
}

fn bits(x: f32) -> u64 {
    x.to_bits().into()
}

/// By hand, from §2.3 and §6.5.
#[test]
fn what_each_choice_gives() {
    let code = |words: &str, src, dst, x| cast_one(&with(words.parse().unwrap(), src, dst), x).code().unwrap();
    for (words, src, dst, input, expected) in [
        ("strict", F32, F16, bits(2f32.powi(-15)), 0x0200),
        ("flush", F32, F16, bits(2f32.powi(-15)), 0x0000),
        ("flush-f16", F32, F16, bits(-2f32.powi(-15)), 0x8000),
        ("flush-f32", F32, F16, bits(2f32.powi(-15)), 0x0200),
        ("flush-bf16", F32, F16, bits(2f32.powi(-15)), 0x0200),
        // Just below the smallest normal: nearest even gives the normal, truncation gives a subnormal.
        ("flush", F32, F16, 0x387f_ffff, 0x0400),
        ("toward-zero", F32, F16, 0x387f_ffff, 0x03ff),
        ("flush+toward-zero", F32, F16, 0x387f_ffff, 0x0000),
        // fp8 keeps its subnormals. Subnormals of an fp16 source may be flushed.
        ("flush", F32, F8E5M2, bits(2f32.powi(-16)), 0x0001),
        ("flush", F16, F8E5M2, 0x0200, 0x0000),
        ("strict", F16, F8E5M2, 0x0200, 0x0002),
        ("flush", F8E5M2, F16, 0x0001, 0x0000),
        ("flush", F8E5M2, F32, 0x0001, bits(2f32.powi(-16))),
        ("flush-f16", F16, F32, 0x8001, 0x8000_0000),
        ("flush-f32", F32, Bf16, 0x007f_ffff, 0x0000),
        ("flush-bf16", F32, Bf16, 0x007f_ffff, 0x0080),
        // Overflow starts where the truncated value exceeds the largest finite value.
        ("toward-zero", F32, F16, bits(65535.996), 0x7bff),
        ("toward-zero", F32, F16, bits(65536.0), 0x7c00),
        ("toward-zero", F32, F16, bits(-1e30), 0xfc00),
        ("toward-zero", F32, F8E4M3Fn, bits(479.9), 0x7e),
        ("toward-zero", F32, F8E4M3Fn, bits(480.0), 0x7f),
        ("toward-zero", F16, F8E5M2, 0x7bff, 0x7b),
        ("toward-zero", F32, Bf16, 0x3f80_ffff, 0x3f80),
        ("toward-zero", F32, F16, bits(f32::INFINITY), 0x7c00),
        ("toward-zero", F32, F16, bits(1e-9), 0x0000),
    ] {
        assert_eq!(code(words, src, dst, input), expected, "{words}: {src} {input:#x} to {dst}");
    }
}

#[test]
fn other_pairs_have_no_choice() {
    let types = [Bool, I8, I16, I32, I64, F8E4M3Fn, F8E5M2, F16, Bf16, F32];
    for (src, dst) in types.iter().flat_map(|&src| types.map(|dst| (src, dst))) {
        let cast = Cast { target: Target::of(Version::V1_1), ..Cast::to(dst) };
        let Ok(strict) = cast.resolve(src) else { continue };
        for freedoms in all() {
            let chosen = Cast { freedoms, ..cast }.resolve(src).unwrap();
            assert!(chosen == strict || (src.is_float() && dst.is_float()), "{src} to {dst}");
        }
    }
}

#[test]
fn names() {
    for freedoms in all() {
        assert_eq!(freedoms.to_string().parse(), Ok(freedoms));
    }
    let shown = |text: &str| text.parse::<Freedoms>().unwrap().to_string();
    assert_eq!(shown("strict"), "strict");
    assert_eq!(shown("toward-zero+flush-f32+flush-f16+flush-bf16"), "flush+toward-zero");
    assert_eq!(shown("toward-zero+flush-f16"), "flush-f16+toward-zero");
    for text in ["", "Flush", "flush+", "strict+flush", "spec-1.0", "flush,toward-zero"] {
        let message = text.parse::<Freedoms>().unwrap_err().to_string();
        assert!(message.contains("flush-bf16") && message.contains("§3.9"), "{text}: {message}");
    }
    // `strict`, the only name shared with the profiles of `check`, has the same meaning.
    let common: Vec<&str> =
        Profile::ALL.map(Profile::name).into_iter().filter(|n| n.parse::<Freedoms>().is_ok()).collect();
    assert_eq!(common, ["strict"]);
}
