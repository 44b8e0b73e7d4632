//! Throughput of conversions between scaled layouts of checkpoints and bf16, with one thread and out of cache. The
//! limit is the fastest plain pass over memory that reads and writes about as much (`docs/kernels.md §13`, §15).

use fastrand::Rng;
use std::num::NonZeroUsize;
use truecast_cli::bench::clock::{self, Pass};
use truecast_cli::bench::{BenchError, pools};
use truecast_core::scaled::{
    BlockType, Code, Coding, Form, Global, GlobalRule, Layout, Packing, Part, Parts, Plane, Planes, Quantization,
    Scales, Zero,
};
use truecast_core::spec::ieee;
use truecast_core::{DType, Kind};
use truecast_kernel::scaled::{Dequantizer, PartsMut, Quantizer};
use truecast_kernel::{CastOptions, Level};

/// Rows and columns of the matrix.
const SIZE: u64 = 8192;
const ELEMENTS: usize = (SIZE * SIZE) as usize;

/// Returns the names of all layouts.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    layouts().into_iter().map(|(name, _)| name)
}

/// Returns the measured layouts of checkpoints (`docs/spec/checkpoints.md §4`, §9). Their names state types, blocks and
/// packings.
fn layouts() -> Vec<(&'static str, Layout)> {
    use DType::{Bf16, F4E2M1, F6E2M3, F8E4M3Fn, F8E8M0, F16, F32};
    let of = |planes| Layout::new(1, [SIZE, SIZE], Coding::Planes(planes));
    let blocks = |block| Layout::new(1, [SIZE, SIZE], Coding::Blocks { block, factor: false });
    let transposed = |planes| Layout { transposed: true, ..of(planes) };
    let (fp8, fp4) = (Plane::of(F8E4M3Fn), Plane::of(F4E2M1));
    let int = |code, packing| Plane { code, packing };
    let int4 = int(Code::unsigned(4), Packing::WORDS);
    let int8 = int(Code::signed(8), Packing::BYTES);
    let awq = int(Code::unsigned(4), Packing::Awq);
    let gptq = int(Code::unsigned(4), Packing::Columns { word: 32 });
    let grid = |plane| Zero::Grid { plane, plus: 0 };
    let mxfp4 = Planes::times(fp4, Plane::of(F8E8M0), [1, 32]);
    let nvfp4 = |codes, scales, rule| Planes {
        global: Some(Global { rule, block: [SIZE, SIZE] }),
        ..Planes::times(codes, scales, [1, 16])
    };
    let swizzled = Plane::of(F8E4M3Fn).packed(Packing::Swizzled);
    let int4_32 = Planes { zero: Zero::Constant(8), ..Planes::times(int4, Plane::of(Bf16), [1, 32]) };
    let int4_128 = Planes { scales: Scales { block: [1, 128], ..int4_32.scales }, ..int4_32 };
    vec![
        ("fp8-128x128", of(Planes::times(fp8, Plane::of(F32), [128, 128]))),
        ("fp8-128x128-e8m0", of(Planes::times(fp8, Plane::of(F8E8M0), [128, 128]))),
        ("fp8-row", of(Planes::times(fp8, Plane::of(F32), [1, SIZE]))),
        ("fp8-tensor", of(Planes::times(fp8, Plane::of(F32), [SIZE, SIZE]))),
        ("mxfp4", of(mxfp4)),
        ("mxfp4-transposed", transposed(mxfp4)),
        ("mxfp6", of(Planes::times(Plane::of(F6E2M3), Plane::of(F8E8M0), [1, 32]))),
        ("mxfp8", of(Planes::times(fp8, Plane::of(F8E8M0), [1, 32]))),
        ("nvfp4", of(nvfp4(fp4, Plane::of(F8E4M3Fn), GlobalRule::Times))),
        ("nvfp4-divide", of(nvfp4(fp4, Plane::of(F8E4M3Fn), GlobalRule::Divide))),
        ("nvfp4-swizzled", of(nvfp4(fp4.packed(Packing::HighFirst), swizzled, GlobalRule::Times))),
        ("int4-32", of(int4_32)),
        ("int4-128", of(int4_128)),
        ("int8-row", of(Planes::times(int8, Plane::of(F32), [1, SIZE]))),
        ("int8-32", of(Planes::times(int8, Plane::of(F32), [1, 32]))),
        ("affine4-64", of(Planes { form: Form::Affine, ..Planes::times(int4, Plane::of(Bf16), [1, 64]) })),
        ("awq", transposed(Planes { zero: grid(awq), ..Planes::times(awq, Plane::of(F16), [128, 1]) })),
        ("gptq", transposed(Planes { zero: grid(int4), ..Planes::times(gptq, Plane::of(F16), [128, 1]) })),
        ("q8_0", blocks(BlockType::Q8_0)),
        ("q4_0", blocks(BlockType::Q4_0)),
        ("q4_k", blocks(BlockType::Q4_K)),
        ("q6_k", blocks(BlockType::Q6_K)),
        ("gguf-mxfp4", blocks(BlockType::MXFP4)),
    ]
}

/// Measures layouts by name (all layouts, if `wanted` is empty): their conversion to bf16, and the conversion from bf16
/// if truecast can write the layout.
pub(super) fn run(wanted: &[String], level: Level, best_of: NonZeroUsize) -> Result<(), BenchError> {
    let chosen: Vec<_> =
        layouts().into_iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|w| w == name)).collect();
    let stored = |layout: &Layout| Part::ALL.map(|part| part_bytes(layout, part));
    let most = chosen.iter().map(|(_, layout)| stored(layout).iter().sum()).max().unwrap_or(0);
    let [mut parts, mut plain] = pools([most, 2 * ELEMENTS])?;
    let exec = CastOptions { level, threads: NonZeroUsize::MIN, ..CastOptions::default() };
    for (name, layout) in chosen {
        let bytes = stored(&layout);
        let n_stored = bytes.iter().sum();
        let show = |direction: &str, src: &[u8], dst: &mut [u8], conversion: Pass<'_>| {
            let plain = clock::plain_passes(&exec, proportion(src.len(), dst.len()), src, dst.len());
            let passes: Vec<_> = std::iter::once(conversion).chain(plain).collect();
            let seconds = clock::best_of(best_of, &passes, dst).expect("no pass is a cast of elements");
            let limit = seconds[1..].iter().copied().fold(f64::INFINITY, f64::min);
            let gbps = (src.len() + dst.len()) as f64 / seconds[0] / 1e9;
            println!("{name}\t{direction}\t{level}\t{gbps:.1}\t{:.2}", limit / seconds[0]);
        };
        fill(&layout, &bytes, parts.bytes_mut());
        let to_bf16 = ieee::Cast::to(DType::Bf16).resolve(DType::F32).expect("f32 becomes bf16");
        let dequantizer = Dequantizer::new(&layout, &to_bf16, &exec).expect("every layout is read");
        let windows = dequantizer.windows(0..layout.elements());
        let [codes, scales, global, zeros, biases, index, book] = split(parts.bytes(), &bytes);
        let of = Parts { codes, scales, global, zeros, biases, index, book };
        let read = |dst: &mut [u8]| {
            dequantizer.run(&windows[0], &of, dst).expect("the parts are those of the layout");
            Ok(())
        };
        show("to bf16", &parts.bytes()[..n_stored], plain.bytes_mut(), Box::new(read));
        let Ok(quantizer) = Quantizer::new(&layout, DType::Bf16, &Quantization::default(), &exec) else { continue };
        fill_bf16(plain.bytes_mut());
        let amax = quantizer.amax(plain.bytes()).expect("it is finite");
        let src = plain.bytes();
        let write = |dst: &mut [u8]| {
            let (codes, rest) = dst.split_at_mut(bytes[0]);
            let (scales, rest) = rest.split_at_mut(bytes[1]);
            let zeros = &mut rest[bytes[2]..][..bytes[3]];
            let parts = PartsMut { codes, scales, zeros };
            quantizer.run(0, 0..SIZE, src, amax, parts).expect("the parts are those of the layout");
            Ok(())
        };
        show("from bf16", src, &mut parts.bytes_mut()[..n_stored], Box::new(write));
    }
    Ok(())
}

fn part_bytes(layout: &Layout, part: Part) -> usize {
    layout.part_bytes(part).ok().flatten().unwrap_or(0) as usize
}

/// Splits a buffer into consecutive parts of these lengths.
fn split<'a>(mut all: &'a [u8], bytes: &[usize; 7]) -> [&'a [u8]; 7] {
    bytes.map(|n| {
        let (part, rest) = all.split_at(n);
        all = rest;
        part
    })
}

/// Returns the proportion of small integers that is nearest to the proportion of the bytes.
fn proportion(src: usize, dst: usize) -> (usize, usize) {
    const ALL: [(usize, usize); 9] = [(1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (1, 3), (3, 1), (2, 7), (7, 2)];
    let ratio = (src as f64 / dst as f64).ln();
    let distance = |(k, m): (usize, usize)| ((k as f64 / m as f64).ln() - ratio).abs();
    ALL.into_iter().min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap_or((1, 1))
}

/// Length after which the data repeat: in bytes for the parts of a layout, in elements for bf16.
const PERIOD: usize = 1 << 20;

/// Fills the parts of a layout with random codes, without NaN, and with scales about 2^-7.
fn fill(layout: &Layout, bytes: &[usize; 7], all: &mut [u8]) {
    let mut random = Rng::with_seed(1);
    let mut rest = all;
    for (part, n) in Part::ALL.into_iter().zip(bytes) {
        let (part_bytes, others) = rest.split_at_mut(*n);
        rest = others;
        let period = PERIOD.min(*n);
        let (first, more) = part_bytes.split_at_mut(period);
        let dtype = match (part, layout.planes().map(|planes| planes.scales.plane.code)) {
            (Part::Scales | Part::Biases, Some(Code::Float(dtype))) => Some(dtype),
            (Part::Global, _) => Some(DType::F32),
            _ => None,
        };
        match dtype.map(|dtype| (dtype.kind(), dtype.code_bits() as usize / 8)) {
            Some((Kind::Float(f), size)) => {
                for scale in first.chunks_exact_mut(size) {
                    let fraction = random.u64(..) & ((1 << f.man_bits) - 1);
                    let code = ((i32::from(f.bias) - 7).max(1) as u64) << f.man_bits | fraction;
                    scale.copy_from_slice(&code.to_le_bytes()[..size]);
                }
            }
            _ => first.iter_mut().for_each(|byte| *byte = random.u8(..) & 0xf7),
        }
        more.chunks_mut(period.max(1)).for_each(|chunk| chunk.copy_from_slice(&first[..chunk.len()]));
    }
}

/// Fills a buffer with finite values of bf16 of both signs, with magnitudes of 16 binades.
fn fill_bf16(bytes: &mut [u8]) {
    let mut random = Rng::with_seed(2);
    let (first, rest) = bytes.split_at_mut(2 * PERIOD);
    for element in first.as_chunks_mut::<2>().0 {
        let bits = random.u16(..) & 0x87ff | 0x3800;
        *element = bits.to_le_bytes();
    }
    rest.chunks_mut(2 * PERIOD).for_each(|chunk| chunk.copy_from_slice(&first[..chunk.len()]));
}
