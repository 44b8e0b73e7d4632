//! Throughput of scaled elements, one thread, out of cache, beside the fastest plain pass over memory that reads and
//! writes as much (`docs/kernels.md §13, §15`).
//!
//!     cargo run --release -p truecast-kernel --example scaled_throughput [LEVEL] [NAME]

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;
use truecast_core::scaled::*;
use truecast_core::spec::ieee;
use truecast_core::{DType, Kind};
use truecast_kernel::plain::{Plain, pass};
use truecast_kernel::scaled::{Dequantiser, PartsMut, Quantiser};
use truecast_kernel::{CastOptions, Level};

use DType::{Bf16, F4E2M1, F6E2M3, F8E4M3Fn, F8E8M0, F16, F32};

/// Rows and columns: 64 Mi elements, and as many rows as columns.
const SIZE: u64 = 8192;
const SAMPLES: usize = 5;

fn targets() -> Vec<(&'static str, Layout)> {
    let of = |planes| Layout::new(1, [SIZE, SIZE], Coding::Planes(planes));
    let blocks = |block| Layout::new(1, [SIZE, SIZE], Coding::Blocks { block, factor: false });
    let (fp8, fp4) = (Plane::of(F8E4M3Fn), Plane::of(F4E2M1));
    let int4 = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
    let int8 = Plane { code: Code::signed(8), packing: Packing::BYTES };
    let awq = Plane { code: Code::unsigned(4), packing: Packing::Awq };
    let gptq = Plane { code: Code::unsigned(4), packing: Packing::Columns { word: 32 } };
    let grid = |plane| Zero::Grid { plane, plus: 0 };
    let (all, transposed) = ([SIZE, SIZE], |layout: Layout| Layout { transposed: true, ..layout });
    let nvfp4 = Planes::times(fp4, Plane::of(F8E4M3Fn), [1, 16]);
    let global = |rule| Some(Global { rule, block: all });
    let mxfp4 = Planes::times(fp4, Plane::of(F8E8M0), [1, 32]);
    let int4_32 = Planes { zero: Zero::Constant(8), ..Planes::times(int4, Plane::of(Bf16), [1, 32]) };
    vec![
        ("fp8 128x128 f32", of(Planes::times(fp8, Plane::of(F32), [128, 128]))),
        ("fp8 128x128 e8m0", of(Planes::times(fp8, Plane::of(F8E8M0), [128, 128]))),
        ("fp8 row f32", of(Planes::times(fp8, Plane::of(F32), [1, SIZE]))),
        ("fp8 tensor f32", of(Planes::times(fp8, Plane::of(F32), all))),
        ("mxfp4", of(mxfp4)),
        ("mxfp4 transposed", transposed(of(mxfp4))),
        ("mxfp6", of(Planes::times(Plane::of(F6E2M3), Plane::of(F8E8M0), [1, 32]))),
        ("mxfp8", of(Planes::times(fp8, Plane::of(F8E8M0), [1, 32]))),
        ("nvfp4 modelopt", of(Planes { global: global(GlobalRule::Times), ..nvfp4 })),
        ("nvfp4 ct", of(Planes { global: global(GlobalRule::Divide), ..nvfp4 })),
        (
            "nvfp4 comfy",
            of(Planes {
                global: global(GlobalRule::Times),
                ..Planes::times(fp4.packed(Packing::HighFirst), Plane::of(F8E4M3Fn).packed(Packing::Swizzled), [1, 16])
            }),
        ),
        ("int4 group 32 bf16", of(int4_32)),
        ("int4 group 128 bf16", of(Planes { scales: Scales { block: [1, 128], ..int4_32.scales }, ..int4_32 })),
        ("int8 row f32", of(Planes::times(int8, Plane::of(F32), [1, SIZE]))),
        ("int8 group 32 f32", of(Planes::times(int8, Plane::of(F32), [1, 32]))),
        ("mlx affine 4 group 64", of(Planes { form: Form::Affine, ..Planes::times(int4, Plane::of(Bf16), [1, 64]) })),
        ("awq", transposed(of(Planes { zero: grid(awq), ..Planes::times(awq, Plane::of(F16), [128, 1]) }))),
        ("gptq", transposed(of(Planes { zero: grid(int4), ..Planes::times(gptq, Plane::of(F16), [128, 1]) }))),
        ("gguf Q8_0", blocks(BlockType::Q8_0)),
        ("gguf Q4_0", blocks(BlockType::Q4_0)),
        ("gguf Q4_K", blocks(BlockType::Q4_K)),
        ("gguf Q6_K", blocks(BlockType::Q6_K)),
        ("gguf MXFP4", blocks(BlockType::Mxfp4)),
    ]
}

/// Codes of every kind, scales about 2^-7.
fn fill(layout: &Layout) -> [Vec<u8>; 6] {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32
    };
    Part::ALL.map(|part| {
        let bytes = layout.part_bytes(part).unwrap().unwrap_or(0) as usize;
        let mut all: Vec<u8> = (0..bytes.min(1 << 20)).map(|_| random() as u8 & 0xf7).collect();
        let dtype = match (part, layout.planes()) {
            (Part::Scales | Part::Biases, Some(planes)) => match planes.scales.plane.code {
                Code::Float(dtype) => dtype,
                Code::Int(_) => F32,
            },
            _ => F32,
        };
        if matches!(part, Part::Scales | Part::Biases | Part::Global) && bytes > 0 {
            let Kind::Float(f) = dtype.kind() else { unreachable!() };
            for chunk in all.chunks_mut(dtype.storage_bits().unwrap() as usize / 8) {
                let fraction = u64::from(random()) & ((1 << f.man_bits) - 1);
                let code = ((f.bias - 6) as u64) << f.man_bits | fraction;
                chunk.copy_from_slice(&code.to_le_bytes()[..chunk.len()]);
            }
        }
        let mut whole = vec![0; bytes];
        whole.chunks_mut(1 << 20).for_each(|chunk| chunk.copy_from_slice(&all[..chunk.len()]));
        whole
    })
}

/// GB/s of the fastest of a few samples that two contenders take in turns.
fn best(bytes: usize, contenders: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; contenders.len()];
    for _ in 0..=SAMPLES {
        for (contender, least) in contenders.iter_mut().zip(&mut least) {
            let begin = Instant::now();
            contender();
            *least = least.min(begin.elapsed().as_secs_f64());
        }
    }
    least.iter().map(|seconds| bytes as f64 / seconds / 1e9).collect()
}

/// A small proportion like that of the bytes.
fn proportion(src: usize, dst: usize) -> (usize, usize) {
    let candidates = [(1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (1, 3), (3, 1), (2, 3), (3, 2), (7, 2), (2, 7)];
    let ratio = (src as f64 / dst as f64).ln();
    let distance = |(k, m): (usize, usize)| ((k as f64 / m as f64).ln() - ratio).abs();
    candidates.into_iter().min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let named = Level::available().into_iter().find(|level| args.first().is_some_and(|name| name == level.name()));
    let level = named.unwrap_or_else(Level::detect);
    let filter = args.get(usize::from(named.is_some())).cloned().unwrap_or_default();
    let exec = CastOptions { level, threads: NonZeroUsize::MIN, ..CastOptions::default() };
    let to_bf16 = ieee::Cast::to(Bf16).resolve(F32).unwrap();
    let n = (SIZE * SIZE) as usize;
    // From the first byte of a line on.
    let mut room = vec![1u8; 2 * n + 64];
    let skipped = room.as_ptr().align_offset(64);
    let dst = &mut room[skipped..][..2 * n];
    println!("{level}, one thread; 10^9 elements a second, part of the limit");
    for (name, layout) in targets().into_iter().filter(|(name, _)| name.contains(&filter)) {
        let [codes, scales, global, zeros, biases, index] = fill(&layout);
        let stored = codes.len() + scales.len() + zeros.len() + biases.len();
        let bytes = stored + 2 * n;
        let dequantiser = Dequantiser::new(&layout, &to_bf16, &exec).unwrap();
        let windows = dequantiser.windows(0..layout.elements());
        let parts =
            Parts { codes: &codes, scales: &scales, global: &global, zeros: &zeros, biases: &biases, index: &index };
        let of_limit = |reads: bool, src: &[u8], dst: &mut [u8], run: &mut dyn FnMut(&mut [u8])| {
            let shape = if reads { proportion(stored, 2 * n) } else { proportion(2 * n, stored) };
            let mut most = f64::INFINITY;
            let mut limit = 0.0;
            for how in Plain::ALL {
                let dst = std::cell::RefCell::new(&mut *dst);
                let mut plain = || pass(level, *how, shape, black_box(src), &mut dst.borrow_mut());
                let mut converts = || run(&mut dst.borrow_mut());
                let rates = best(bytes, &mut [&mut plain, &mut converts]);
                limit = f64::max(limit, rates[0]);
                most = f64::min(most, bytes as f64 / rates[1] / 1e9);
            }
            (n as f64 / most / 1e9, bytes as f64 / most / 1e9 / limit)
        };
        let (rate, part) = of_limit(true, &codes, dst, &mut |dst| {
            dequantiser.run(&windows[0], &parts, dst).unwrap();
        });
        println!("{name:24} to bf16    {rate:6.2} {part:6.2}");
        let Ok(quantiser) = Quantiser::new(&layout, Bf16, &Quantisation::default(), &exec) else { continue };
        let src: Vec<u8> = (0..n as u32)
            .flat_map(|i| (0x3c00 | i.wrapping_mul(2654435761) >> 23 << 2).to_le_bytes()[..2].to_vec())
            .collect();
        let mut out = [codes, scales, zeros];
        let (rate, part) = {
            let mut room = vec![0u8; stored];
            of_limit(false, &src, &mut room, &mut |_| {
                let [codes, scales, zeros] = &mut out;
                quantiser.run(0, 0..SIZE, &src, 1e-4, PartsMut { codes, scales, zeros }).unwrap();
            })
        };
        println!("{name:24} from bf16  {rate:6.2} {part:6.2}");
    }
}
