//! Stochastic rounding of arrays against the definition: every pair, level and policy; lengths, offsets and parts.
//! Exact values are unchanged, and the mean error is zero.

mod shared;

use shared::codes::{elements, numeric, packed, unpacked};
use shared::{levels, strongest};
use std::num::NonZeroUsize;
use truecast_core::exact::{RandomBits, last_place};
use truecast_core::policy::*;
use truecast_core::{CastPolicy, CastSpec, DType, Layout, Outcome, cast_one, spec::ieee::Cast};
use truecast_kernel::{CastError, CastOptions, Counting, Counts, Elements, ElementsMut, Level, StochasticCaster};

fn caster(spec: &CastSpec, level: Level, seed: u64) -> StochasticCaster {
    let exec = CastOptions { level, threads: NonZeroUsize::MIN, ..CastOptions::default() };
    StochasticCaster::new(spec, seed, &exec).unwrap()
}

fn run(caster: &StochasticCaster, src: &[u8], len: usize, first: u64) -> Result<Vec<u8>, CastError> {
    let CastSpec { src: from, dst: to, .. } = *caster.spec();
    let mut dst = vec![0xaa; to.bytes_in(Layout::Packed, len as u64).unwrap() as usize];
    caster.cast_parts(Elements::new(from, len, src)?, ElementsMut::new(to, len, &mut dst)?, first)?;
    Ok(dst)
}

fn expected(spec: &CastSpec, seed: u64, index: u64, storage: u64) -> Result<u64, Condition> {
    let code = spec.src.code_of_storage(storage);
    match cast_one(&spec.with_random_bits(code, RandomBits::of_element(seed, index)), code) {
        Outcome::Defined(code) | Outcome::Undefined { code, .. } => Ok(spec.dst.storage_of_code(code)),
        Outcome::Refused { condition } => Err(condition),
    }
}

fn policies() -> [CastPolicy; 7] {
    let base = CastPolicy::IEEE;
    [
        base,
        CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, nan: NanRule::Canonical, ..base },
        CastPolicy { int_overflow: IntOverflow::Saturate, nan_to_int: NanToInt::Saturate, ..base },
        CastPolicy { subnormals: Subnormals::Flush, relu: true, ..base },
        CastPolicy { range: RangeTest::Source, negative: Unrepresentable::Magnitude, ..base },
        CastPolicy { via: Some(DType::F16), vanishing: Unrepresentable::Smallest, ..base },
        CastPolicy { scale_exponent: 3, ..base },
    ]
}

#[test]
fn every_pair_policy_and_level() {
    for src in numeric() {
        // Uses a quarter of the elements of wide sources.
        let step = if src.storage_bits() > Some(16) { 4 } else { 1 };
        let elements: Vec<u64> = elements(src).into_iter().step_by(step).collect();
        let bytes = packed(src, &elements);
        for dst in numeric().filter(|dst| last_place(*dst).is_some()) {
            for policy in policies() {
                let spec = CastSpec { src, dst, policy, undefined: &[], clause: "" };
                let results: Vec<Vec<u8>> = levels()
                    .into_iter()
                    .map(|level| run(&caster(&spec, level, 42), &bytes, elements.len(), 3).unwrap())
                    .collect();
                for (i, element) in elements.iter().enumerate() {
                    let want = expected(&spec, 42, 3 + i as u64, *element).unwrap();
                    for (result, level) in results.iter().zip(levels()) {
                        let got = unpacked(dst, result, i);
                        assert_eq!(got, want, "{src} -> {dst} at {level}, {element:#x}, {policy:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn all_codes_of_16_bits() {
    let elements: Vec<u64> = (0..=0xffff).collect();
    for src in [DType::F16, DType::Bf16] {
        let bytes = packed(src, &elements);
        for dst in [DType::F8E4M3Fn, DType::F8E5M2, DType::F4E2M1, DType::F6E2M3, DType::F8E8M0, DType::I8] {
            let spec = Cast::to(dst).resolve(src).unwrap();
            for (seed, level) in (0..4).flat_map(|seed| levels().into_iter().map(move |level| (seed, level))) {
                let result = run(&caster(&spec, level, seed), &bytes, elements.len(), 0).unwrap();
                for (i, element) in elements.iter().enumerate() {
                    let want = expected(&spec, seed, i as u64, *element).unwrap();
                    assert_eq!(unpacked(dst, &result, i), want, "{src} -> {dst} at {level}, {element:#x}");
                }
            }
        }
    }
}

#[test]
fn lengths_offsets_and_layouts() {
    for (src, dst) in [
        (DType::F32, DType::F8E4M3Fn),
        (DType::Bf16, DType::F4E2M1),
        (DType::F4E2M1, DType::U3),
        (DType::F32, DType::F16),
    ] {
        let spec = Cast::to(dst).resolve(src).unwrap();
        for level in levels() {
            let caster = caster(&spec, level, 1);
            for (len, first) in (0..70).chain([1023, 1024, 1025, 2049]).flat_map(|len| [(len, 0), (len, (1 << 40) + 5)])
            {
                let elements: Vec<u64> = elements(src).into_iter().cycle().skip(len).take(len).collect();
                let source = [vec![0x55; 3], packed(src, &elements)].concat();
                for layout in [Layout::Packed, Layout::Bytes] {
                    let n = dst.bytes_in(layout, len as u64).unwrap() as usize;
                    let mut target = vec![0xc7; 5 + n + 8];
                    let room = ElementsMut::with_layout(dst, layout, len, &mut target[5..5 + n]).unwrap();
                    caster.cast_parts(Elements::new(src, len, &source[3..]).unwrap(), room, first).unwrap();
                    assert!(target[..5].iter().chain(&target[5 + n..]).all(|byte| *byte == 0xc7), "canaries");
                    let results = Elements::with_layout(dst, layout, len, &target[5..5 + n]).unwrap();
                    for (i, element) in elements.iter().enumerate() {
                        assert_eq!(results.storage(i), expected(&spec, 1, first + i as u64, *element).unwrap());
                    }
                }
            }
        }
    }
}

/// A value is refused if it overflows with its own random bits. Values between the two ranges may be refused or not.
#[test]
fn the_first_refused_element_is_named() {
    let policy = CastPolicy { overflow: Overflow::Error, ..CastPolicy::IEEE };
    let spec = CastSpec { src: DType::F32, dst: DType::F8E4M3Fn, policy, undefined: &[], clause: "" };
    // 450 is 1/16 of a step beyond the largest value.
    let elements = vec![u64::from(450f32.to_bits()); 100_000];
    for seed in 0..4 {
        let refused = elements.iter().enumerate().find(|(i, x)| expected(&spec, seed, *i as u64, **x).is_err());
        let result = run(&caster(&spec, strongest(), seed), &packed(DType::F32, &elements), elements.len(), 0);
        let Err(CastError::Value { index, condition: Condition::Overflow, .. }) = result else { panic!("{result:?}") };
        assert_eq!(Some(index), refused.map(|(i, _)| i));
    }
}

fn weights(len: usize) -> Vec<u64> {
    let mut random = truecast_testkit::random::Random::seeded(1);
    let mut next = || (random.next() >> 40) as f32 / (1 << 24) as f32 - 0.5;
    (0..len).map(|i| (next() * [0.01, 1.0, 30.0][i % 3]).to_bits().into()).collect()
}

#[test]
fn parts_and_threads_change_nothing() {
    let values = weights(200_000);
    let bytes = packed(DType::F32, &values);
    for to in [DType::F8E4M3Fn, DType::I8, DType::Bf16] {
        let spec = Cast::to(to).resolve(DType::F32).unwrap();
        let one = caster(&spec, strongest(), 42);
        let whole = run(&one, &bytes, values.len(), 0).unwrap();
        let parts = [0..1, 1..65_537, 65_537..131_070, 131_070..200_000]
            .map(|part| run(&one, &bytes[part.start * 4..part.end * 4], part.len(), part.start as u64).unwrap());
        assert!(whole == parts.concat(), "{to}");
        let threads = CastOptions { threads: NonZeroUsize::new(7).unwrap(), ..CastOptions::default() };
        let several = StochasticCaster::new(&spec, 42, &threads).unwrap();
        assert!(whole == run(&several, &bytes, values.len(), 0).unwrap(), "{to}");
        assert!(whole != run(&caster(&spec, strongest(), 43), &bytes, values.len(), 0).unwrap(), "{to}: another seed");
    }
}

#[test]
fn the_mean_error_is_zero() {
    let values = weights(300_000);
    let bytes = packed(DType::F32, &values);
    for to in [DType::F8E4M3Fn, DType::F8E5M2, DType::F4E2M1, DType::F6E2M3, DType::Bf16, DType::F16, DType::I8] {
        let spec = Cast::to(to).resolve(DType::F32).unwrap();
        let back = Cast::to(DType::F64).resolve(to).unwrap();
        let largest = [(DType::F4E2M1, 6.0), (DType::F6E2M3, 7.5)].into_iter().find(|(t, _)| *t == to);
        let result = run(&caster(&spec, strongest(), 7), &bytes, values.len(), 0).unwrap();
        let errors: Vec<f64> = values
            .iter()
            .enumerate()
            .map(|(i, x)| (f64::from(f32::from_bits(*x as u32)), to.code_of_storage(unpacked(to, &result, i))))
            .filter(|(x, _)| largest.is_none_or(|(_, largest)| x.abs() <= largest))
            .map(|(x, code)| f64::from_bits(cast_one(&back, code).code().unwrap()) - x)
            .collect();
        let n = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / n;
        let deviation = (errors.iter().map(|e| e * e).sum::<f64>() / n).sqrt() / n.sqrt();
        assert!(mean.abs() <= 5.0 * deviation, "{to}: mean {mean:e}, deviation {deviation:e}");
        assert!(deviation > 0.0, "{to}");
    }
}

#[test]
fn exact_values_stay() {
    let values = (-448..=448).step_by(64).map(|x| x as f32).chain([f32::INFINITY, -0.0]);
    let values: Vec<u64> = values.map(|x| x.to_bits().into()).collect();
    let spec = Cast::to(DType::F8E4M3Fn).resolve(DType::F32).unwrap();
    for seed in 0..50 {
        let expected =
            [0xfe, 0xfc, 0xfa, 0xf8, 0xf4, 0xf0, 0xe8, 0x00, 0x68, 0x70, 0x74, 0x78, 0x7a, 0x7c, 0x7e, 0x7f, 0x80];
        assert_eq!(run(&caster(&spec, strongest(), seed), &packed(DType::F32, &values), 17, 0).unwrap(), expected);
    }
}

/// An element is out of range if its own rounding is out of range. Tested next to integers, where floor and ceil round.
#[test]
fn an_element_counts_by_its_own_rounding() {
    const OPEN: &[Undefined] = &[Undefined::any(Condition::Overflow, "open")];
    let values: Vec<f32> =
        (0..100_000u32).map(|i| (i % 997) as f32 / 996.0 * 4.0 - 2.0 + [127.0, -128.0][i as usize % 2]).collect();
    let elements: Vec<u64> = values.iter().map(|x| x.to_bits().into()).collect();
    let source = packed(DType::F32, &elements);
    let exec = CastOptions { counting: Counting::Full, ..CastOptions::default() };
    for (int_overflow, undefined) in [
        (IntOverflow::Wrap, &[][..]),
        (IntOverflow::Saturate, &[]),
        (IntOverflow::Wrap, OPEN),
        (IntOverflow::Saturate, OPEN),
    ] {
        let policy = CastPolicy { int_overflow, ..CastPolicy::IEEE };
        let spec = CastSpec { src: DType::F32, dst: DType::I8, policy, undefined, clause: "" };
        let mut dst = vec![0; values.len()];
        let (from, to) = (Elements::new(DType::F32, dst.len(), &source).unwrap(), &mut dst[..]);
        let parts = StochasticCaster::new(&spec, 5, &exec)
            .unwrap()
            .cast_parts(from, ElementsMut::new(DType::I8, values.len(), to).unwrap(), 0)
            .unwrap();
        let away = spec.stochastic_roundings()[1];
        let is_out = |(i, x): (usize, &f32)| {
            let code = x.to_bits().into();
            let is_away = spec.with_random_bits(code, RandomBits::of_element(5, i as u64)) == away;
            let rounded = if is_away { x.abs().ceil() } else { x.abs().floor() }.copysign(*x);
            !(-128.0..=127.0).contains(&rounded)
        };
        let expected = values.iter().enumerate().filter(|one| is_out(*one)).count() as u64;
        let sum = |of: fn(&Counts) -> u64| parts.iter().map(of).sum::<u64>();
        let is_wrap = int_overflow == IntOverflow::Wrap;
        assert_eq!(sum(|c| c.wrapped), if is_wrap { expected } else { 0 });
        assert_eq!(sum(|c| c.saturated), if is_wrap { 0 } else { expected });
        assert_eq!(sum(|c| c.undefined), if undefined.is_empty() { 0 } else { expected });
        assert!(expected > 1000 && sum(|c| c.elements) == values.len() as u64);
    }
}

/// To a float: 450 is 1/16 of a step beyond the largest value.
#[test]
fn clamped_floats_are_counted() {
    let policy = CastPolicy { overflow: Overflow::Saturate, ..CastPolicy::IEEE };
    let spec = CastSpec { src: DType::F32, dst: DType::F8E4M3Fn, policy, undefined: &[], clause: "" };
    let elements = vec![u64::from(450f32.to_bits()); 70_000];
    let exec = CastOptions { counting: Counting::Full, ..CastOptions::default() };
    let (source, mut dst) = (packed(DType::F32, &elements), vec![0; elements.len()]);
    let (from, len) = (Elements::new(DType::F32, elements.len(), &source).unwrap(), elements.len());
    let caster = StochasticCaster::new(&spec, 0, &exec).unwrap();
    let parts = caster.cast_parts(from, ElementsMut::new(DType::F8E4M3Fn, len, &mut dst).unwrap(), 9).unwrap();
    let nonfinite = CastSpec { policy: CastPolicy::IEEE, ..spec };
    let expected =
        (0..len as u64).filter(|i| expected(&nonfinite, 0, 9 + i, 450f32.to_bits().into()) == Ok(0x7f)).count();
    assert_eq!(parts.iter().map(|c| c.saturated).sum::<u64>(), expected as u64);
    assert!((4000..5000).contains(&expected) && dst.iter().all(|code| *code == 0x7e));
}

#[test]
fn a_type_without_a_last_place_is_refused() {
    for dst in [DType::Nf4, DType::Bool, DType::C64] {
        let spec = CastSpec { dst, ..CastSpec::copy(DType::F32) };
        assert!(StochasticCaster::new(&spec, 0, &CastOptions::default()).is_err(), "{dst}");
        // A conversion to the same type is a copy.
        let (copy, bytes) = (CastSpec::copy(dst), [1; 8]);
        let len = 64 / dst.storage_bits().unwrap() as usize;
        assert_eq!(run(&caster(&copy, strongest(), 0), &bytes, len, 0).unwrap(), bytes, "{dst}");
    }
}
