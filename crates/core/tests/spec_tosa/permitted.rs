//! The printed permitted set equals the set of codes that pass the checker (`docs/spec/tosa.md §6`), for every code.

use std::ops::RangeInclusive;
use truecast_core::DType::{self, *};
use truecast_core::cast_one;
use truecast_core::permitted::NanComparison::{self, Bits, Class};
use truecast_core::spec::tosa::Cast;
use truecast_core::spec::tosa::block::{BLOCK, BlockCast, Direction};
use truecast_core::spec::tosa::check::{Profile, Verdict, block, cast};

fn ranges(codes: impl Iterator<Item = u64>) -> Vec<RangeInclusive<u64>> {
    let mut all: Vec<RangeInclusive<u64>> = Vec::new();
    for code in codes {
        match all.last_mut() {
            Some(last) if *last.end() + 1 == code => *last = *last.start()..=code,
            _ => all.push(code..=code),
        }
    }
    all
}

fn assert_sets(src: DType, dst: DType, inputs: impl IntoIterator<Item = u64>, nan: NanComparison) {
    let spec = Cast::to(dst).resolve(src).unwrap();
    for input in inputs {
        let verdicts: Vec<Verdict> =
            (0..1 << dst.code_bits()).map(|actual| cast::check(&spec, input, actual, nan)).collect();
        for profile in Profile::ALL {
            let every = (0u64..).zip(&verdicts).filter(|(_, verdict)| profile.passes(**verdict)).map(|(code, _)| code);
            let ours = cast::permitted(&spec, input, nan, |v| profile.passes(v));
            assert_eq!(ours, ranges(every), "{src} {input:#x} to {dst}, {}", profile.name());
        }
    }
}

/// f32 inputs at and around the values of a destination. There is an input for every kind of value.
fn singles(dst: DType) -> Vec<u64> {
    let widened = Cast::to(F32).resolve(dst).unwrap();
    let last = (1u64 << (dst.code_bits() - 1)) - 1;
    let some: Vec<u64> = match dst.code_bits() {
        8 => (0..=last).collect(),
        _ => [0, 1, 2, 0x3ff, 0x400, 0x401, 0x7f, 0x80, 0x3c00, 0x7bfe, 0x7bff, 0x7c00, 0x7f7f, 0x7f80, last].into(),
    };
    let centers = some.into_iter().map(|code| cast_one(&widened, code).code().unwrap());
    let steps = [0i64, 1, -1, 1 << 11, 1 << 12, -(1 << 12), 1 << 15, -(1 << 15), 1 << 19];
    let mut all: Vec<u64> = centers.flat_map(|c| steps.map(|d| c.wrapping_add_signed(d) & 0x7fff_ffff)).collect();
    all.extend([1, 2, 0x7f_ffff, 0x80_0000, 0x80_0001, 0x7f7f_ffff, 0x7f80_0000, 0x7f80_0001, 0x477f_e000]);
    all.sort_unstable();
    all.dedup();
    all.iter().enumerate().map(|(i, x)| if i % 3 == 0 { x | 1 << 31 } else { *x }).collect()
}

#[test]
fn to_bytes() {
    for dst in [F8E4M3Fn, F8E5M2] {
        for nan in [Class, Bits] {
            assert_sets(F16, dst, (0..0x10000).step_by(13), nan);
            assert_sets(Bf16, dst, (0..0x10000).step_by(13), nan);
            assert_sets(F32, dst, singles(dst), nan);
        }
    }
    assert_sets(F16, I8, (0..0x10000).step_by(97), Class);
    assert_sets(I16, I8, (0..0x10000).step_by(97), Class);
    assert_sets(I8, Bool, 0..256, Class);
}

#[test]
fn to_fp16_from_bytes() {
    assert_sets(F8E4M3Fn, F16, 0..256, Class);
    assert_sets(F8E5M2, F16, (0..256).filter(|x| x % 2 == 0 || x & 0x7c == 0), Class);
}

#[test]
fn to_bf16_from_bytes() {
    assert_sets(F8E4M3Fn, Bf16, (0..256).filter(|x| x % 2 == 1 || x & 0x78 == 0), Class);
    assert_sets(F8E5M2, Bf16, 0..256, Class);
}

#[test]
fn to_16_bits() {
    for dst in [F16, Bf16] {
        assert_sets(F32, dst, singles(dst), Class);
        assert_sets(F32, dst, [0x7f80_0001, 0x7fc0_0000, 0xffff_ffff, 0x477f_f000, 0x3f80_8000], Bits);
        let integers =
            [0i32, 1, -1, 257, 2049, 65488, 65489, 65504, 65519, 65520, -65520, 65536, 65568, 16973823, i32::MAX];
        assert_sets(I32, dst, integers.map(|i| u64::from(i as u32)), Class);
    }
    assert_sets(F32, I16, [0, 0x3fc0_0000, 0x7fc0_0000, 0x4700_0000, 0xff80_0000], Class);
}

/// By hand, from §6.5.
#[test]
fn some_sets() {
    let spec = Cast::to(F8E4M3Fn).resolve(F32).unwrap();
    let permitted = |x: f32, profile: Profile| cast::permitted(&spec, x.to_bits().into(), Class, |v| profile.passes(v));
    assert_eq!(permitted(448.0, Profile::Strict), [0x7e..=0x7e]);
    assert_eq!(permitted(448.0, Profile::Spec1_0), [0x7d..=0x7e]);
    assert_eq!(permitted(470.0, Profile::Spec1_0), [0x7e..=0x7f, 0xff..=0xff]);
    let wide = Cast::to(F32).resolve(F16).unwrap();
    let codes = cast::permitted(&wide, 0x0001, Class, |v| Profile::Spec1_0.passes(v));
    assert_eq!(codes, [0..=0, 0x337f_fffe..=0x3380_0000]); // flushed, or one ulp of 2^-24 below it
}

/// For 32 bits, only the ends, NaN codes, and codes near the exact result are checked.
#[test]
fn to_32_bits() {
    let spec = Cast::to(F32).resolve(F8E4M3Fn).unwrap();
    let nan = cast::permitted(&spec, 0x7f, Class, |v| Profile::Spec1_0.passes(v));
    assert_eq!(nan, [0x7f80_0001..=0x7fff_ffff, 0xff80_0001..=0xffff_ffff]);
    let one = cast::permitted(&spec, 0x38, Class, |v| Profile::Spec1_0.passes(v));
    assert_eq!(one, [0x3f7f_fffe..=0x3f80_0000]);
    let integer = Cast::to(I32).resolve(F32).unwrap();
    let any = cast::permitted(&integer, 0x7fc0_0000, Class, |v| Profile::Strict.passes(v));
    assert_eq!(any, [0..=0xffff_ffff], "NaN to an integer is unpredictable");
}

#[test]
fn from_blocks() {
    for (element, step) in [(F4E2M1, 1), (F8E4M3Fn, 37), (F8E5M2, 41), (MxInt8, 43)] {
        for plain in [F8E4M3Fn, F8E5M2, F16, Bf16] {
            let cast = BlockCast { direction: Direction::FromBlocks, element, plain };
            let codes = (0..1u64 << element.code_bits()).step_by(step);
            let scales = [0u8, 100, 112, 127, 134, 143, 254, 255];
            for (code, scale) in codes.flat_map(|code| scales.map(|scale| (code, scale))) {
                if plain.code_bits() == 16 && (code + u64::from(scale)) % 4 != 0 {
                    continue; // 65,536 codes are checked for each
                }
                let verdicts: Vec<Verdict> = (0..1 << plain.code_bits())
                    .map(|actual| block::check_from_block(&cast, scale, code, actual))
                    .collect();
                for profile in [Profile::Strict, Profile::Spec1_1Draft, Profile::ArmVerifier2026_8] {
                    let passes = |(_, verdict): &(u64, &Verdict)| profile.passes(**verdict);
                    let every = (0u64..).zip(&verdicts).filter(passes).map(|(code, _)| code);
                    let ours = block::permitted_from_block(&cast, scale, code, |v| profile.passes(v));
                    assert_eq!(ours, ranges(every), "{element} {code:#x} * {scale} to {plain}, {}", profile.name());
                }
            }
        }
    }
}

#[test]
fn in_blocks() {
    for element in [F4E2M1, F6E3M2, F6E2M3, F8E4M3Fn, F8E5M2, MxInt8] {
        let cast = BlockCast { direction: Direction::ToBlocks, element, plain: F32 };
        for top in [0f32, 1.5, 7.3, 464.0, 1e30, f32::NAN] {
            let mut input = [u64::from(0.3f32.to_bits()); BLOCK];
            input[5] = top.to_bits().into();
            let (exact_scale, exact) = cast.to_block(&input);
            for scale in [exact_scale, exact_scale.wrapping_sub(1), exact_scale.wrapping_add(1), 0, 255] {
                for (profile, at) in Profile::ALL.into_iter().flat_map(|profile| [(profile, 0), (profile, 5)]) {
                    let with = |code| {
                        let mut block = exact;
                        block[at] = code;
                        block::check_to_block(&cast, &input, scale, &block).1[at]
                    };
                    let every = (0..1 << element.code_bits()).filter(|&code| profile.passes(with(code)));
                    let ours = block::permitted_in_block(&cast, &input, scale, at, |v| profile.passes(v));
                    assert_eq!(ours, ranges(every), "{element} {top} {scale} {}", profile.name());
                }
            }
        }
    }
}
