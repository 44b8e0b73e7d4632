//! Definition of quantization against the formulas of `docs/spec/checkpoints.md §7` in the machine's f32.

use truecast_core::DType::{self, Bf16, F4E2M1, F6E2M3, F8E4M3Fn, F8E5M2, F8E8M0, F16, F32};
use truecast_core::format::{self, F8E4M3FN};
use truecast_core::policy::Overflow;
use truecast_core::scaled::*;
use truecast_core::spec::ieee;
use truecast_core::{CastPolicy, CastSpec, cast_one};
use truecast_testkit::random::Random;

/// Saturating cast from f32.
fn code(dst: DType, x: f32) -> u64 {
    let spec = ieee::Cast::to(dst).resolve(F32).unwrap();
    let policy = CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, ..spec.policy };
    cast_one(&CastSpec { policy, ..spec }, x.to_bits().into()).code().unwrap()
}

fn value(src: DType, code: u64) -> f32 {
    f32::from_bits(cast_one(&ieee::Cast::to(F32).resolve(src).unwrap(), code).code().unwrap() as u32)
}

fn blocks(random: &mut Random, n: usize) -> Vec<Vec<f32>> {
    let mut blocks = vec![vec![0.0; n], vec![-0.0; n], vec![1.0; n], vec![f32::from_bits(1); n], vec![f32::MAX; n]];
    for i in 0..300 {
        let scale = ((random.next() % 60) as f32 - 40.0).exp2();
        let x =
            (0..n).map(|_| (random.next() as u32 as f32 / 4.3e9 - 0.5) * scale * if i % 3 == 0 { 448.0 } else { 1.0 });
        blocks.push(x.collect());
    }
    for i in 0..200u32 {
        // Largest magnitudes at and next to the thresholds of the scale rules, and small values that are ties.
        let eighths = 1.0 + i as f32 / 200.0;
        let mut block: Vec<f32> = (0..n).map(|j| j as f32 * 0.125 - 1.5).collect();
        block[0] = [eighths * 4.0, 7.0, -7.0, 6.0, 448.0, 7.5, 464.0, f32::from_bits(0x40df_ffff)][i as usize % 8];
        blocks.push(block);
    }
    blocks
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn amax_of(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |a, x| f32::max(a, x.abs()))
}

fn check(planes: &Planes, how: &Quantization, global: f32, x: &[f32], scale: u64, zero: u64, codes: &[u64]) {
    let got = planes.quantize(how, global.to_bits(), &bits(x)).unwrap();
    let expected = Quantized { scale, zero, codes: codes.to_vec() };
    assert_eq!(got, expected, "{planes:?} {how:?} {global} {x:?}");
}

/// §7.2.
#[test]
fn fp8() {
    let mut random = Random::new("fp8");
    for x in blocks(&mut random, 24) {
        for (codes, largest) in [(F8E4M3Fn, 448.0), (F8E5M2, 57344.0)] {
            for scales in [F32, Bf16] {
                let a = amax_of(&x);
                let s = if a == 0.0 { 1.0 } else { (a / largest).max(f32::MIN_POSITIVE) };
                let scale = code(scales, s);
                let s = value(scales, scale);
                let expected: Vec<u64> = x.iter().map(|x| code(codes, x / s)).collect();
                let planes = Planes::times(Plane::of(codes), Plane::of(scales), [1, 24]);
                check(&planes, &Quantization::default(), 1.0, &x, scale, 0, &expected);
            }
        }
        // Type ue8m0, stored as f32 and as E8M0.
        let d = (amax_of(&x) / 448.0).to_bits();
        let b = ((d >> 23) + u32::from(d << 9 != 0)).min(246); // 448 times 2^119 is the largest within f32
        let s = value(F8E8M0, b.into());
        let expected: Vec<u64> = x.iter().map(|x| code(F8E4M3Fn, (f64::from(*x) / f64::from(s)) as f32)).collect();
        let planes = |scales| Planes::times(Plane::of(F8E4M3Fn), Plane::of(scales), [1, 24]);
        check(&planes(F8E8M0), &Quantization::default(), 1.0, &x, b.into(), 0, &expected);
        let how = Quantization { power_of_two: true, ..Quantization::default() };
        check(&planes(F32), &how, 1.0, &x, s.to_bits().into(), 0, &expected);
    }
}

/// Table of §7.3: from this fraction of `a` in [1, 2), the exponent is one higher.
#[test]
fn mx_rules() {
    use MxScale::{Auto, Ct, Even, Floor, Rceil};
    let never = f32::INFINITY;
    let next = |x: f32| f32::from_bits(x.to_bits() + 1);
    let table: [(MxScale, [Option<f32>; 5]); 5] = [
        (Auto, [1.75, 1.9375, 1.875, next(1.75), next(1.75)].map(Some)),
        (Floor, [Some(never); 5]),
        (Rceil, [1.5, 1.875, 1.75, 1.75, 1.75].map(|x| Some(next(x)))),
        (Even, [1.75, 1.9375, 1.875, 1.9375, 1.875].map(Some)),
        (Ct, [Some(1.75), Some(1.9375), None, Some(1.75), None]),
    ];
    let formats = [format::F4E2M1, format::F6E2M3, format::F6E3M2, F8E4M3FN, format::F8E5M2];
    for (rule, row) in table {
        for (f, threshold) in formats.iter().zip(row) {
            let byte = |a: f32| rule.byte(f, a.to_bits());
            let Some(threshold) = threshold else {
                assert_eq!(byte(1.5), None, "{rule:?} {f:?}");
                continue;
            };
            let floor = 127 - f.emax();
            for a in [1.0, 1.25, 1.5, next(1.5), 1.75, next(1.75), 1.874, 1.875, next(1.875), 1.9375, 1.99] {
                let expected = floor + i32::from(a >= threshold);
                assert_eq!(byte(a), Some(expected as u8), "{rule:?} {f:?} {a}");
                assert_eq!(byte(a * 1024.0), Some(expected as u8 + 10), "{rule:?} {f:?} {a}");
            }
            assert_eq!(byte(0.0), Some(0));
            assert_eq!(byte(f32::from_bits(1)), Some(0));
            assert!(byte(f32::MAX).is_some_and(|b| b < 255));
        }
    }
}

#[test]
fn mx_codes() {
    let mut random = Random::new("mx_codes");
    for x in blocks(&mut random, 32) {
        for codes in [F4E2M1, F6E2M3, F8E4M3Fn] {
            let f = Code::Float(codes).format().unwrap();
            for (_, mx) in MxScale::ALL {
                let b = mx.byte(&f, amax_of(&x).to_bits()).unwrap();
                // The product of an f32 and a power of two is exact in f64.
                let inverse = (127.0 - f64::from(b)).exp2();
                let expected: Vec<u64> = x.iter().map(|x| code(codes, (f64::from(*x) * inverse) as f32)).collect();
                let planes = Planes::times(Plane::of(codes), Plane::of(F8E8M0), [1, 32]);
                let how = Quantization { mx, ..Quantization::default() };
                check(&planes, &how, 1.0, &x, b.into(), 0, &expected);
            }
        }
    }
}

/// Both columns of §7.4.
#[test]
fn nvfp4() {
    let mut random = Random::new("nvfp4");
    for x in blocks(&mut random, 16) {
        for of_tensor in [1.0, 7.0, 1e-3, 300.0, 2688.0] {
            let with = |rule| Planes {
                global: Some(Global { rule, block: [1, 16] }),
                ..Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn), [1, 16])
            };
            let (a, tensor) = (amax_of(&x), f32::max(of_tensor, amax_of(&x)));
            let g = f32::from_bits(GlobalRule::Times.of_amax(tensor.to_bits()).unwrap());
            assert_eq!(g, tensor / 2688.0);
            let scale = if a == 0.0 { 0x38 } else { code(F8E4M3Fn, (a / (6.0 * g)).clamp(1.0 / 512.0, 448.0)) };
            let t = value(F8E4M3Fn, scale) * g;
            let expected: Vec<u64> = x.iter().map(|x| code(F4E2M1, x / t)).collect();
            check(&with(GlobalRule::Times), &Quantization::default(), g, &x, scale, 0, &expected);

            let g = f32::from_bits(GlobalRule::Divide.of_amax(tensor.to_bits()).unwrap());
            assert_eq!(g, 2688.0 / tensor);
            let scale = if a == 0.0 { 0x20 } else { code(F8E4M3Fn, g * (a / 6.0)) };
            let scale = if scale == 0 { 0x20 } else { scale };
            let t = value(F8E4M3Fn, scale) / g;
            let expected: Vec<u64> = x.iter().map(|x| code(F4E2M1, x / t)).collect();
            check(&with(GlobalRule::Divide), &Quantization::default(), g, &x, scale, 0, &expected);
        }
    }
    assert_eq!(GlobalRule::Times.of_amax(0), Ok((1.0f32 / 2688.0).to_bits()));
    assert_eq!(GlobalRule::Divide.of_amax(0), Ok(1.0f32.to_bits()));
    assert!(GlobalRule::Amax.of_amax(0).is_err());
}

/// §7.5.
#[test]
fn integers() {
    let mut random = Random::new("integers");
    for x in blocks(&mut random, 32) {
        for b in [2u8, 3, 4, 5, 8] {
            let (low_q, high_q) = (-(1i32 << (b - 1)), (1i32 << (b - 1)) - 1);
            let clamp = |v: f32| v.clamp(low_q as f32, high_q as f32).round_ties_even() as i32;
            let half = 1i32 << (b - 1);
            for (scales, epsilon) in [(F32, 2f32.powi(-23)), (Bf16, 2f32.powi(-7))] {
                let packed = Plane { code: Code::unsigned(b), packing: Packing::WORDS };
                let base = Planes::times(packed, Plane::of(scales), [1, 32]);
                let a = amax_of(&x);
                let s = if a == 0.0 { epsilon } else { a / (((1 << b) - 1) as f32 / 2.0) };
                let scale = code(scales, s).max(1);
                let s = value(scales, scale);
                let expected: Vec<u64> = x.iter().map(|x| (clamp(x / s) + half) as u64).collect();
                let planes = Planes { zero: Zero::Constant(half), ..base };
                check(&planes, &Quantization::default(), 1.0, &x, scale, half as u64, &expected);

                let low = x.iter().fold(0.0, |a: f32, x| a.min(*x));
                let high = x.iter().fold(0.0, |a: f32, x| a.max(*x));
                let s = if a == 0.0 { epsilon } else { (high - low) / ((1 << b) - 1) as f32 };
                let scale = code(scales, s).max(1);
                let s = value(scales, scale);
                let z = clamp(low_q as f32 - low / s);
                let expected: Vec<u64> = x.iter().map(|x| (clamp(x / s + z as f32) + half) as u64).collect();
                let plane = Plane { code: Code::unsigned(b), packing: Packing::Columns { word: 32 } };
                let planes = Planes { zero: Zero::Grid { plane, plus: 0 }, ..base };
                check(&planes, &Quantization::default(), 1.0, &x, scale, (z + half) as u64, &expected);
            }
        }
        let int8 = Plane { code: Code::signed(8), packing: Packing::BYTES };
        let planes = Planes::times(int8, Plane::of(F32), [1, 32]);
        let a = amax_of(&x);
        let s = if a == 0.0 { 2f32.powi(-23) } else { a / 127.5 };
        let s = if s == 0.0 { f32::from_bits(1) } else { s };
        let clamp = |v: f32| v.clamp(-128.0, 127.0).round_ties_even() as i32;
        let expected: Vec<u64> = x.iter().map(|x| clamp(x / s) as u64 & 0xff).collect();
        check(&planes, &Quantization::default(), 1.0, &x, s.to_bits().into(), 0, &expected);
    }
}

/// §3.6.
#[test]
fn values_that_are_not_finite() {
    let planes = Planes::times(Plane::of(F4E2M1), Plane::of(F8E8M0), [1, 4]);
    let x = bits(&[f32::NEG_INFINITY, 3.0, f32::NAN, f32::INFINITY]);
    let refused = planes.quantize(&Quantization::default(), 0, &x);
    assert_eq!(refused, Err(ScaledError::NotFinite { index: 0 }));
    let how = Quantization { nonfinite: NonFinite::Saturate, ..Quantization::default() };
    let got = planes.quantize(&how, 0, &x).unwrap();
    assert_eq!(got, Quantized { scale: 126, zero: 0, codes: vec![0xf, 0x7, 0x0, 0x7] }); // 3 = 6 * 2^-1
    let int4 = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
    let planes = Planes { zero: Zero::Constant(8), ..Planes::times(int4, Plane::of(F32), [1, 4]) };
    assert_eq!(planes.quantize(&how, 0, &x).unwrap().codes, [0, 15, 8, 15]);
}

/// The best scale is never worse than the formula's scale, and sometimes better.
#[test]
fn search() {
    let mut random = Random::new("search");
    let int4 = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
    let nvfp4 = Planes {
        global: Some(Global { rule: GlobalRule::Times, block: [1, 32] }),
        ..Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn), [1, 32])
    };
    let targets = [
        Planes::times(Plane::of(F4E2M1), Plane::of(F8E8M0), [1, 32]),
        Planes { zero: Zero::Constant(8), ..Planes::times(int4, Plane::of(Bf16), [1, 32]) },
        Planes::times(Plane::of(F8E4M3Fn), Plane::of(F16), [1, 32]),
        nvfp4,
    ];
    for planes in targets {
        let mut better = 0;
        for x in blocks(&mut random, 32).into_iter().skip(5).take(60) {
            let error = |got: &Quantized| -> f64 {
                let s = value(
                    match planes.scales.plane.code {
                        Code::Float(dtype) => dtype,
                        Code::Int(_) | Code::Book(_) => unreachable!(),
                    },
                    got.scale,
                );
                let s = if planes.global.is_some() { s * 0.01 } else { s };
                let of = |code: &u64| match planes.codes.code {
                    Code::Float(dtype) => value(dtype, *code),
                    Code::Int(_) => *code as f32 - 8.0,
                    Code::Book(_) => unreachable!(),
                };
                x.iter().zip(&got.codes).map(|(x, c)| (f64::from(of(c) * s) - f64::from(*x)).powi(2)).sum()
            };
            // `Rceil` leaves the most room for improvement.
            let formula = Quantization { mx: MxScale::Rceil, ..Quantization::default() };
            let [formula, best] = [formula, Quantization { search: Search::Mse, ..formula }]
                .map(|how| error(&planes.quantize(&how, 0.01f32.to_bits(), &bits(&x)).unwrap()));
            assert!(best <= formula, "{planes:?} {x:?}: {best} {formula}");
            better += u32::from(best < formula);
        }
        assert!(better > 5, "{planes:?}: {better}");
    }
}

#[test]
fn what_is_only_read() {
    let how = Quantization::default();
    let refused = |planes: Planes| {
        let got = planes.quantize(&how, 0, &[0]);
        assert!(matches!(got, Err(ScaledError::Layout { .. })), "{planes:?}: {got:?}");
    };
    let nvfp4 = Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn), [1, 16]);
    refused(Planes { global: Some(Global { rule: GlobalRule::Amax, block: [1, 16] }), ..nvfp4 });
    let int4 = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
    refused(Planes { zero: Zero::Constant(7), ..Planes::times(int4, Plane::of(F32), [1, 32]) });
    refused(Planes::times(int4, Plane::of(F8E8M0), [1, 32]));
    let mut block = [0; 82];
    assert!(BlockType::IQ2_S.quantize(NonFinite::Error, &[0; 256], &mut block).is_err());
}
