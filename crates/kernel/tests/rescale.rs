//! RESCALE against its definition. Every type pair, signedness and mode occurs, per tensor and per channel, at every
//! level, and over threads. The first failing element and the counts are compared too.

mod shared;

use shared::{levels, strongest};
use std::num::NonZeroUsize;
use truecast_core::DType;
use truecast_core::format::IntFormat;
use truecast_core::rescale::{Channel, Requirement, RescaleSpec, RoundingMode};
use truecast_kernel::{CastOptions, Elements, ElementsMut, Level, RescaleCounts, RescaleError, Rescaler};
use truecast_testkit::random::Random;

fn signless(f: IntFormat) -> DType {
    match f.bits {
        8 => DType::I8,
        16 => DType::I16,
        32 => DType::I32,
        _ => DType::I48,
    }
}

fn packed(f: IntFormat, codes: &[u64]) -> Vec<u8> {
    codes.iter().flat_map(|c| c.to_le_bytes()[..f.bits as usize / 8].to_vec()).collect()
}

/// Every legal pair with every legal signedness: 17 pairs, and 3 pairs of i48.
fn pairs() -> Vec<(IntFormat, IntFormat)> {
    let int = |bits, unsigned: bool| IntFormat { bits, signed: !unsigned };
    let mut all = Vec::new();
    for input in [8, 16, 32, 48] {
        for output in [8, 16, 32] {
            for (iu, ou) in [(false, false), (true, false), (false, true)] {
                if (input <= 16 && output <= 16) || (!iu && !ou) {
                    all.push((int(input, iu), int(output, ou)));
                }
            }
        }
    }
    assert_eq!(all.len(), 20);
    all
}

fn zero_point(f: IntFormat, random: &mut Random) -> i64 {
    match (f.bits, f.signed) {
        (8, _) => f.value(random.next()) as i64,
        (16, false) => (random.next() % 2) as i64 * 32768,
        _ => 0,
    }
}

fn spec(input: IntFormat, output: IntFormat, mode: u32, channels: usize, random: &mut Random) -> RescaleSpec {
    let scale32 = mode < 3 && input.bits < 48;
    let bits = if scale32 { 31 } else { 15 };
    let channel = |random: &mut Random| {
        let multiplier = if random.next().is_multiple_of(3) { 1 << (bits - 1) } else { random.up_to(bits) } as i32;
        let shift = match (scale32, input.bits) {
            (true, 32) => 32 + random.next() % 31,
            (true, _) => 18 + random.next() % 45,
            (false, 48) => 32 + random.next() % 31,
            (false, _) => 16 + random.next() % 47,
        };
        Channel { multiplier, shift: shift as i8 }
    };
    RescaleSpec {
        input,
        output,
        scale32,
        rounding: if mode == 1 && scale32 { RoundingMode::Double } else { RoundingMode::Single },
        channels: (0..channels).map(|_| channel(random)).collect(),
        input_zp: zero_point(input, random),
        output_zp: zero_point(output, random),
    }
}

fn inputs(f: IntFormat, len: usize, random: &mut Random) -> Vec<u64> {
    let one = |i: usize, random: &mut Random| match i % 7 {
        0 => [0, 1, f.mask(), f.mask() >> 1, (f.mask() >> 1) + 1][i % 5],
        1 => random.up_to(f.bits.into()).wrapping_neg(),
        _ => random.up_to(f.bits.into()),
    };
    (0..len).map(|i| one(i, random) & f.mask()).collect()
}

fn expected(spec: &RescaleSpec, codes: &[u64]) -> Result<(Vec<u64>, RescaleCounts), RescaleError> {
    let mut results = Vec::new();
    let mut counts = RescaleCounts { elements: codes.len() as u64, saturated: 0 };
    for (index, &code) in codes.iter().enumerate() {
        let one = spec.rescale_one(spec.channel_of(index as u64), code);
        let one = one.map_err(|requirement| RescaleError::Unpredictable { index: index as u64, requirement })?;
        counts.saturated += one.saturated as u64;
        results.push(one.code);
    }
    Ok((results, counts))
}

fn check(spec: &RescaleSpec, exec: &CastOptions, codes: &[u64]) {
    let src = packed(spec.input, codes);
    let mut dst = vec![0xa5; codes.len() * spec.output.bits as usize / 8];
    let result = Rescaler::new(spec, exec).rescale(
        Elements::new(signless(spec.input), codes.len(), &src).unwrap(),
        ElementsMut::new(signless(spec.output), codes.len(), &mut dst).unwrap(),
    );
    match expected(spec, codes) {
        Ok((results, counts)) => {
            assert_eq!(result, Ok(counts), "{} {spec:?}", exec.level);
            let wrong = packed(spec.output, &results).iter().zip(&dst).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "{} {spec:?}", exec.level);
        }
        Err(error) => assert_eq!(result, Err(error), "{} {spec:?}", exec.level),
    }
}

fn exec(level: Level, threads: usize) -> CastOptions {
    CastOptions { level, threads: NonZeroUsize::new(threads).unwrap(), ..CastOptions::default() }
}

#[test]
fn every_pair_mode_and_level() {
    let mut random = Random::seeded(3);
    for level in levels() {
        for (input, output) in pairs() {
            for mode in 0..4 {
                for (channels, rows) in [(1, 1), (1, 777), (1, 5000), (3, 100), (64, 33), (700, 7), (2500, 3)] {
                    let spec = spec(input, output, mode, channels, &mut random);
                    let codes = inputs(input, channels * rows, &mut random);
                    check(&spec, &exec(level, 1), &codes);
                }
            }
        }
    }
}

/// All 8-bit inputs, with every input zero point: tables, and counts of saturated elements.
#[test]
fn every_byte() {
    let mut random = Random::seeded(9);
    for (input, output) in pairs().into_iter().filter(|(i, _)| i.bits == 8) {
        for round in 0..64 {
            let mut spec = spec(input, output, round % 4, 1, &mut random);
            spec.input_zp = input.value(round as u64 * 4) as i64;
            spec.channels[0].shift = 10 + (round % 25) as i8;
            let codes: Vec<u64> = (0..256u64).cycle().take(64 * 300 + 5).collect();
            levels().into_iter().for_each(|level| check(&spec, &exec(level, 1), &codes));
        }
    }
}

#[test]
fn many_rows_of_bytes() {
    let mut random = Random::seeded(77);
    let channel = |multiplier, shift| Channel { multiplier, shift };
    let ties = vec![channel(1 << 30, 31), channel(3 << 28, 33), channel(1, 10), channel(0, 62), channel(i32::MAX, 40)];
    let coarse =
        vec![channel(i32::MAX, 30), channel(0x5555_5555, 17), channel(1 << 22, 30), channel((1 << 22) + 1, 31)];
    // 31-bit multipliers whose products are 2^-9 from a tie.
    let decisive = vec![channel((1 << 30) + 1, 31), channel((1 << 30) - 1, 31), channel(1 << 29, 30)];
    for (input, output) in pairs().into_iter().filter(|(i, _)| i.bits == 8) {
        for channels in [&ties, &coarse, &decisive] {
            for rounding in [RoundingMode::Single, RoundingMode::Double] {
                let spec = RescaleSpec {
                    rounding,
                    scale32: true,
                    channels: channels.clone(),
                    ..spec(input, output, 0, 1, &mut random)
                };
                let codes = inputs(input, channels.len() * 1500, &mut random);
                levels().into_iter().for_each(|level| check(&spec, &exec(level, 1), &codes));
            }
        }
        for mode in 0..4 {
            let spec = spec(input, output, mode, 37, &mut random);
            let codes = inputs(input, 37 * 600, &mut random);
            levels().into_iter().for_each(|level| check(&spec, &exec(level, 1), &codes));
        }
    }
}

#[test]
fn short_arrays_and_threads() {
    let mut random = Random::seeded(21);
    let int = |bits| IntFormat { bits, signed: true };
    for level in levels() {
        let plain = spec(int(32), int(8), 0, 1, &mut random);
        let codes = inputs(int(32), 200, &mut random);
        (0..codes.len()).for_each(|len| check(&plain, &exec(level, 1), &codes[..len]));
        let rows = spec(int(16), int(32), 2, 5, &mut random);
        let codes = inputs(int(16), 5 * 220_000, &mut random);
        check(&rows, &exec(level, 4), &codes);
        let streaming = CastOptions { stream_above_bytes: Some(1000), ..exec(level, 2) };
        check(&plain, &streaming, &inputs(int(32), 600_011, &mut random));
        check(&spec(int(48), int(32), 3, 7, &mut random), &streaming, &inputs(int(48), 7 * 9_001, &mut random));
    }
}

#[test]
fn the_first_failure_is_named() {
    let int = |bits| IntFormat { bits, signed: true };
    let one = |multiplier, shift| vec![Channel { multiplier, shift }];
    let with = |scale32, channels, output_zp| RescaleSpec {
        input: int(32),
        output: int(8),
        scale32,
        rounding: RoundingMode::Single,
        channels,
        input_zp: 0,
        output_zp,
    };
    let len = 700_000;
    let cases = [
        (with(true, one(5, 8), 0), 127, 128u32, Requirement::Value),
        (with(false, one(1 << 14, 13), 0), 1, 0x7fff_ffff, Requirement::Scaled),
        (with(false, one(1 << 14, 14), 100), 1, 0x7fff_ffff, Requirement::Offset),
        (with(false, one(1 << 14, 14), -100), 1, 0x8000_0000, Requirement::Offset),
    ];
    for level in levels() {
        for (spec, fine, failing, requirement) in &cases {
            for index in [0, 1, 2047, 2048, 500_001, len - 1] {
                let mut codes = vec![*fine; len];
                codes[index] = u64::from(*failing);
                codes[len - 1] = u64::from(*failing);
                let src = packed(spec.input, &codes);
                let mut dst = vec![0; len];
                let result = Rescaler::new(spec, &exec(level, 3)).rescale(
                    Elements::new(DType::I32, len, &src).unwrap(),
                    ElementsMut::new(DType::I8, len, &mut dst).unwrap(),
                );
                assert_eq!(
                    result,
                    Err(RescaleError::Unpredictable { index: index as u64, requirement: *requirement }),
                    "{level}"
                );
            }
        }
        let bad = |at: usize, channel| {
            let mut channels = vec![Channel { multiplier: 1 << 30, shift: 40 }; 3000];
            channels[at] = channel;
            with(true, channels, 0)
        };
        for (channel, _) in [(Channel { multiplier: -1, shift: 30 }, 1), (Channel { multiplier: 1, shift: 63 }, 2)] {
            check(&bad(2999, channel), &exec(level, 1), &vec![1; 6000]);
        }
    }
}

/// i48 may be stored as i64. The results are those of packed i48, and larger magnitudes give an error.
#[test]
fn i48_in_i64() {
    let mut random = Random::seeded(8);
    let int = |bits| IntFormat { bits, signed: true };
    for level in levels() {
        for channels in [1, 5] {
            let spec = spec(int(48), int(16), 3, channels, &mut random);
            let codes = inputs(int(48), channels * 5000, &mut random);
            let mut values: Vec<i64> = codes.iter().map(|&c| int(48).value(c) as i64).collect();
            let run = |values: &[i64]| {
                let src: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                let mut dst = vec![0; 2 * values.len()];
                let from = Elements::new(DType::I64, values.len(), &src).unwrap();
                let to = ElementsMut::new(DType::I16, values.len(), &mut dst).unwrap();
                (Rescaler::new(&spec, &exec(level, 1)).rescale(from, to), dst)
            };
            let (results, counts) = expected(&spec, &codes).unwrap();
            assert_eq!(run(&values), (Ok(counts), packed(int(16), &results)), "{level}");
            for wide in [1 << 47, -(1 << 47) - 1, i64::MIN, i64::MAX] {
                values[4321] = wide;
                assert_eq!(run(&values).0, Err(RescaleError::Wide { index: 4321 }), "{level}");
            }
        }
    }
}

#[test]
fn parts_of_a_tensor() {
    let mut random = Random::seeded(5);
    let level = strongest();
    for (input, output) in pairs() {
        for (mode, channels) in [(0, 1), (1, 7), (2, 2500), (3, 3)] {
            for spoilt in [false, true] {
                let mut spec = spec(input, output, mode, channels, &mut random);
                if spoilt {
                    spec.channels[channels - 1].shift = 63;
                }
                let codes = inputs(input, channels * 3000usize.div_ceil(channels), &mut random);
                let rescaler = Rescaler::new(&spec, &exec(level, 1));
                let (mut results, mut counts, mut at) = (Vec::new(), RescaleCounts::default(), 0);
                let parts = loop {
                    let part = &codes[at..codes.len().min(at + 1 + (random.next() % 900) as usize)];
                    let (src, mut dst) = (packed(input, part), vec![0; part.len() * output.bits as usize / 8]);
                    let from = Elements::new(signless(input), part.len(), &src).unwrap();
                    let to = ElementsMut::new(signless(output), part.len(), &mut dst).unwrap();
                    match rescaler.rescale_part(at as u64, from, to) {
                        Ok(part) => {
                            counts.elements += part.elements;
                            counts.saturated += part.saturated;
                        }
                        Err(error) => break Err(error),
                    }
                    results.extend(dst);
                    at += part.len();
                    if at == codes.len() {
                        break Ok((results, counts));
                    }
                };
                let whole = expected(&spec, &codes).map(|(results, counts)| (packed(output, &results), counts));
                assert_eq!(parts, whole, "{spec:?}");
            }
        }
    }
}

#[test]
fn buffers_must_fit() {
    let spec =
        spec(IntFormat { bits: 8, signed: true }, IntFormat { bits: 16, signed: true }, 0, 3, &mut Random::seeded(1));
    let rescaler = Rescaler::new(&spec, &CastOptions::default());
    let rescale = |from: DType, n: usize, to: DType, m: usize| {
        let (src, mut dst) = (vec![0; n * 4], vec![0; m * 4]);
        let bytes = |t: DType, n: usize| n * t.storage_bits().unwrap() as usize / 8;
        rescaler.rescale(
            Elements::new(from, n, &src[..bytes(from, n)]).unwrap(),
            ElementsMut::new(to, m, &mut dst[..bytes(to, m)]).unwrap(),
        )
    };
    assert!(rescale(DType::I8, 6, DType::I16, 6).is_ok());
    assert!(rescale(DType::I8, 0, DType::I16, 0).is_ok());
    assert!(matches!(rescale(DType::I8, 7, DType::I16, 7), Err(RescaleError::Rows { len: 7, channels: 3 })));
    assert!(matches!(rescale(DType::I8, 6, DType::I16, 3), Err(RescaleError::Buffer(_))));
    assert!(matches!(rescale(DType::U8, 6, DType::I16, 6), Err(RescaleError::Buffer(_))));
    assert!(matches!(rescale(DType::I8, 6, DType::I8, 6), Err(RescaleError::Buffer(_))));
}
