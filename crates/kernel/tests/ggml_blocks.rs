//! Blocks of ggml's rule: kernels, with groups side by side, against the definition, one group at a time.

mod shared;

use shared::codes::as_f32;
use truecast_core::DType::{self, Bf16, F16, F32, F64};
use truecast_core::cast_one;
use truecast_core::scaled::*;
use truecast_core::spec::ieee;
use truecast_kernel::scaled::{BlockCounts, PartsMut, Quantizer};
use truecast_kernel::{CastOptions, Counting, Level};
use truecast_testkit::random::Random;

fn written() -> impl Iterator<Item = BlockType> {
    BlockType::ALL.into_iter().filter(|block| ggml::is_written(*block))
}

/// Values of many kinds of blocks, as f32.
fn values(n: usize, random: &mut Random) -> Vec<f32> {
    let mut values = Vec::new();
    while values.len() < n {
        let (kind, magnitude) = (random.next() % 9, ((random.next() % 60) as f32 - 40.0).exp2());
        for i in 0..256 {
            let x = (random.next() as u32 as f32 / 2.2e9 - 1.0) * magnitude;
            values.push(match kind {
                0 => magnitude,
                1 if i / 16 % 3 == 0 => -0.0,
                2 => x.abs(),
                3 => (x / magnitude * 8.0).round() * magnitude,
                4 if i % 97 == 5 => x * 1e4,
                5 => f32::from_bits(random.next() as u32 & 0xbfff_ffff),
                6 => f32::from_bits(random.next() as u32 & 0x807f_ffff),
                7 => i as f32 * magnitude,
                _ => x,
            });
        }
    }
    values.truncate(n);
    values
}

fn elements(src: DType, values: &[f32]) -> Vec<u8> {
    let spec = ieee::Cast::to(src).resolve(F32).unwrap();
    let size = src.storage_bits().unwrap() as usize / 8;
    let code = |x: &f32| cast_one(&spec, x.to_bits().into()).code().unwrap().to_le_bytes();
    values.iter().flat_map(|x| code(x)[..size].to_vec()).collect()
}

fn layout(block: BlockType, rows: u64, cols: u64) -> Layout {
    Layout::new(1, [rows, cols], Coding::Blocks { block, factor: false })
}

/// Zeros, elements that become zero, saturated elements, blocks: all, without loss, to zero, with scale zero and NaN.
fn expected_counts(layout: &Layout, block: BlockType, bytes: &[u8], x: &[u32]) -> [u64; 8] {
    let parts = Parts { codes: bytes, ..Parts::default() };
    let mut counts = [0; 8];
    let steps = match block {
        BlockType::IQ4_NL | BlockType::IQ4_XS => [23.0, 24.0],
        BlockType::NVFP4 => [4.0; 2],
        _ => [1.0; 2],
    };
    let most = (0..32).map(|i| (0..=255u8).map(|byte| block.code(&[byte; 256], i)).max().unwrap()).max().unwrap();
    let least = (0..32).map(|i| (0..=255u8).map(|byte| block.code(&[byte; 256], i)).min().unwrap()).min().unwrap();
    let n = block.elements() as usize;
    for (b, (x, bytes)) in x.chunks(n).zip(bytes.chunks(block.bytes() as usize)).enumerate() {
        let (mut is_lossless, mut becomes_zero, mut is_zero) = (true, false, true);
        for (i, x) in x.iter().enumerate() {
            let (x, y) = (f32::from_bits(*x), f32::from_bits(layout.value(&parts, (b * n + i) as u64).unwrap()));
            counts[0] += u64::from(x == 0.0);
            counts[1] += u64::from(x != 0.0 && y == 0.0);
            is_lossless &= x.to_bits() == y.to_bits();
            becomes_zero |= x != 0.0;
            is_zero &= y == 0.0;
            let BlockTerms { code, scale, .. } = block.terms(bytes, i).unwrap();
            let scale = match scale {
                truecast_core::Exact::Finite { neg, sig, exp, .. } => {
                    sig as f64 * f64::from(exp).exp2() * if neg { -1.0 } else { 1.0 }
                }
                _ => continue,
            };
            let outward = (f64::from(x) - f64::from(y)) * if (code == most) == (scale >= 0.0) { 1.0 } else { -1.0 };
            let limit = scale.abs() * steps[usize::from(code == most)] / 2.0 * (1.0 + 2f64.powi(-16));
            counts[2] += u64::from((code == most || code == least) && outward > limit);
        }
        let d = ggml::scale(block, bytes) & 0x7fff;
        let flags = [true, is_lossless, is_zero && becomes_zero, d == 0, d > 0x7c00];
        counts[3..].iter_mut().zip(flags).for_each(|(count, flag)| *count += u64::from(flag));
    }
    counts
}

fn run(quantizer: &Quantizer, rows: u64, src: &[u8]) -> Result<(Vec<u8>, BlockCounts), ScaledError> {
    let mut codes = vec![0xa5; quantizer.writes(0, 0..rows)[0].bytes() as usize];
    let counts = quantizer.run(0, 0..rows, src, 0.0, PartsMut { codes: &mut codes, ..PartsMut::default() })?;
    Ok((codes, counts.total()))
}

#[test]
fn blocks_are_those_of_the_definition() {
    let mut random = Random::new("blocks_are_those_of_the_definition");
    for (block, src) in written().flat_map(|block| [F32, F16, Bf16, F64].map(|src| (block, src))) {
        // A tile has 8192 elements. The last one is shorter, or the only one is.
        for (rows, blocks) in [(1, 1), (3, 1), (3, 4), (11, 8192 / block.elements())] {
            let cols = blocks * block.elements();
            let layout = layout(block, rows, cols);
            let mut of_source = values((rows * cols) as usize, &mut random);
            if src == F16 {
                of_source.iter_mut().for_each(|x| *x = x.clamp(-65504.0, 65504.0));
            }
            let bytes = elements(src, &of_source);
            let x: Vec<u32> = as_f32(src, &bytes);
            let mut expected = vec![0; (rows * blocks * block.bytes()) as usize];
            let to = expected.chunks_mut(block.bytes() as usize);
            for (x, to) in x.chunks(block.elements() as usize).zip(to) {
                block.quantize(NonFinite::Error, x, to).unwrap();
            }
            let all = expected_counts(&layout, block, &expected, &x);
            for level in Level::available() {
                let exec = CastOptions { level, counting: Counting::Full, ..CastOptions::default() };
                let quantizer = Quantizer::new(&layout, src, &Quantization::default(), &exec).unwrap();
                assert!(!quantizer.needs_amax() && quantizer.granule() == 1 && quantizer.global(1.0).is_none());
                let (got, counts) = run(&quantizer, rows, &bytes).unwrap();
                let wrong = got.iter().zip(&expected).position(|(a, b)| a != b);
                assert_eq!(wrong, None, "{block:?} from {src} at {level}");
                let c = counts;
                let found = [
                    c.zero_in,
                    c.zero_out - c.zero_in,
                    c.saturated,
                    c.blocks,
                    c.blocks_lossless,
                    c.blocks_to_zero,
                    c.scale_zero,
                    c.scale_nan,
                ];
                assert_eq!(found, all, "{block:?} from {src} at {level}");
                assert_eq!((c.subnormal, c.scale_saturated), (0, 0));
            }
        }
    }
}

#[test]
fn blocks_by_importance_are_those_of_the_definition() {
    let mut random = Random::new("blocks_by_importance_are_those_of_the_definition");
    for (block, src) in written().flat_map(|block| [F32, Bf16].map(|src| (block, src))) {
        // Two parts of the rows, as of experts. Rows that are shorter and longer than a tile.
        for (rows, blocks) in [(2, 1), (14, 768 / block.elements()), (4, 8448 / block.elements())] {
            let cols = blocks * block.elements();
            let layout = layout(block, rows, cols);
            let bytes = elements(src, &values((rows * cols) as usize, &mut random));
            let scale = |random: &mut Random| ((random.next() % 80) as f32 - 40.0).exp2() * (random.next() % 3) as f32;
            let importance: Vec<f32> = (0..2 * cols).map(|_| scale(&mut random)).collect();
            let exec = CastOptions::default();
            let quantizer = Quantizer::new(&layout, src, &Quantization::default(), &exec).unwrap();
            let weighted = quantizer.weighted(importance.clone().into());
            if !ggml::is_weighted(block) {
                assert!(weighted.is_err(), "{block:?}");
                continue;
            }
            let mut expected = vec![0; (rows * blocks * block.bytes()) as usize];
            let of_row = expected.len() / rows as usize;
            let x = as_f32(src, &bytes);
            for (row, (x, to)) in x.chunks(cols as usize).zip(expected.chunks_mut(of_row)).enumerate() {
                let part = &importance[row / (rows as usize / 2) * cols as usize..][..cols as usize];
                ggml::quantize_row(block, NonFinite::Error, x, part, to).unwrap();
            }
            for level in Level::available() {
                let exec = CastOptions { level, counting: Counting::Full, ..CastOptions::default() };
                let quantizer = Quantizer::new(&layout, src, &Quantization::default(), &exec).unwrap();
                let quantizer = quantizer.weighted(importance.clone().into()).unwrap();
                let (got, _) = run(&quantizer, rows, &bytes).unwrap();
                assert_eq!(
                    got.iter().zip(&expected).position(|(a, b)| a != b),
                    None,
                    "{block:?} from {src} at {level}"
                );
                // Rows from another one on.
                let (first, size) = (rows / 2, bytes.len() / rows as usize);
                let mut codes = vec![0; (rows - first) as usize * of_row];
                let parts = PartsMut { codes: &mut codes, ..PartsMut::default() };
                quantizer.run(0, first..rows, &bytes[first as usize * size..], 0.0, parts).unwrap();
                assert!(codes == expected[first as usize * of_row..], "{block:?} from {src} at {level}");
            }
            for wrong in [vec![], vec![1.0; cols as usize - 1], vec![1.0; 3 * cols as usize + 1]] {
                let quantizer = Quantizer::new(&layout, src, &Quantization::default(), &exec).unwrap();
                assert!(quantizer.weighted(wrong.into()).is_err());
            }
        }
    }
}

#[test]
fn what_is_not_finite() {
    for block in written() {
        let n = block.elements() as usize;
        let mut x: Vec<f32> = (0..9000 / n * n * 2).map(|i| (i % 37) as f32 - 11.0).collect();
        (x[n + 3], x[n + 4], x[n + 5]) = (f32::NEG_INFINITY, f32::NAN, f32::INFINITY);
        let (layout, bytes) = (layout(block, 1, x.len() as u64), elements(F32, &x));
        let quantizer = |nonfinite| {
            let how = Quantization { nonfinite, ..Quantization::default() };
            Quantizer::new(&layout, F32, &how, &CastOptions { counting: Counting::Full, ..CastOptions::default() })
        };
        let refused = run(&quantizer(NonFinite::Error).unwrap(), 1, &bytes);
        assert_eq!(refused.unwrap_err(), ScaledError::NotFinite { index: n as u64 + 3 });
        let (got, counts) = run(&quantizer(NonFinite::Saturate).unwrap(), 1, &bytes).unwrap();
        assert!(counts.needs_values);
        // NaN is 0, and an infinity the largest magnitude of the block.
        let most = x[n..2 * n].iter().filter(|x| x.is_finite()).fold(0.0f32, |most, x| most.max(x.abs()));
        (x[n + 3], x[n + 4], x[n + 5]) = (-most, 0.0, most);
        let (expected, _) = run(&quantizer(NonFinite::Error).unwrap(), 1, &elements(F32, &x)).unwrap();
        assert!(got == expected, "{block:?}");
        // The error has the index in all elements, also in a later tile.
        let at = x.len() - 2;
        x[at] = f32::NAN;
        let refused = run(&quantizer(NonFinite::Error).unwrap(), 1, &elements(F32, &x));
        assert_eq!(refused.unwrap_err(), ScaledError::NotFinite { index: at as u64 });
    }
}
