//! Quantization: kernels against `truecast_core::scaled`, block by block, at every level.

#![allow(clippy::single_range_in_vec_init)] // pieces are lists of ranges

mod shared;

use shared::codes::as_f32;
use std::ops::Range;
use truecast_core::DType::{self, Bf16, F4E2M1, F6E2M3, F8E4M3Fn, F8E5M2, F8E8M0, F16, F32, F64};
use truecast_core::scaled::*;
use truecast_core::spec::ieee;
use truecast_core::{Kind, cast_one};
use truecast_kernel::scaled::{BlockCounts, Dequantizer, PartsMut, Quantizer};
use truecast_kernel::{CastOptions, Counting, Level};
use truecast_testkit::random::Random;

/// Codes of a type. They have many magnitudes, zeros, blocks of zeros, and the smallest and the largest value.
fn source(src: DType, shape: [u64; 2], random: &mut Random) -> Vec<u8> {
    let size = src.storage_bits().unwrap() as usize / 8;
    let Kind::Float(f) = src.kind() else { unreachable!() };
    let mut bytes = Vec::new();
    for row in 0..shape[0] {
        let magnitude = ((random.next() % 24) as f64 - 18.0).exp2();
        for col in 0..shape[1] {
            let x = (random.next() as u32 as f64 / 4.3e9 - 0.5) * magnitude;
            let x = if random.next().is_multiple_of(50) { x * 37.0 } else { x };
            let x = if row % 7 == 3 && col / 32 % 3 == 1 { -0.0 } else { x };
            let code = match random.next() % 4000 {
                0 => 1,
                1 if src == F64 => f64::from(f32::MAX).to_bits(), // what is beyond is no f32
                1 => f.max_code(),
                2 => f.min_normal_code() - 1,
                _ => cast_one(&ieee::Cast::to(src).resolve(F64).unwrap(), x.to_bits()).code().unwrap(),
            };
            bytes.extend_from_slice(&code.to_le_bytes()[..size]);
        }
    }
    bytes
}

type Stored = [Vec<u8>; 3];

fn expected(layout: &Layout, how: &Quantization, global: f32, values: &[u32]) -> Stored {
    let mut stored =
        [Part::Codes, Part::Scales, Part::Zeros].map(|p| vec![0; layout.part_bytes(p).unwrap().unwrap_or(0) as usize]);
    let (cols, shape) = (layout.cols as usize, [layout.rows, layout.cols]);
    let planes = match layout.coding {
        Coding::Planes(planes) => planes,
        Coding::Blocks { block, .. } => {
            let blocks = stored[0].chunks_mut(block.bytes() as usize);
            for (values, bytes) in values.chunks(block.elements() as usize).zip(blocks) {
                block.quantize(how.nonfinite, values, bytes).unwrap();
            }
            return stored;
        }
        _ => unreachable!(),
    };
    let block = planes.scales.block;
    let grid = layout.grid(block);
    let clip = |i: u64, block: u64, n: u64| (i * block)..((i + 1) * block).min(n);
    for at in (0..grid[0]).flat_map(|i| (0..grid[1]).map(move |j| [i, j])) {
        let (rows, of_cols) = (clip(at[0], block[0], layout.rows), clip(at[1], block[1], layout.cols));
        let places: Vec<[u64; 2]> = rows.flat_map(|r| of_cols.clone().map(move |c| [r, c])).collect();
        let x: Vec<u32> = places.iter().map(|[r, c]| values[*r as usize * cols + *c as usize]).collect();
        let Quantized { scale, zero, codes } = planes.quantize(how, global.to_bits(), &x).unwrap();
        let set = |plane: Plane, shape, at, bytes: &mut [u8], code| {
            plane.packing.set(plane.code.bits(), shape, at, bytes, code);
        };
        for (place, code) in places.iter().zip(codes) {
            set(planes.codes, shape, *place, &mut stored[0], code);
        }
        set(planes.scales.plane, grid, at, &mut stored[1], scale);
        if let Zero::Grid { plane, .. } = planes.zero {
            set(plane, grid, at, &mut stored[2], zero);
        }
    }
    stored
}

/// Counts of §10, computed one by one from the definition.
fn expected_counts(
    layout: &Layout,
    global: f32,
    [codes, scales, zeros]: &Stored,
    src: DType,
    bytes: &[u8],
) -> [u64; 8] {
    let global = global.to_le_bytes();
    let parts = Parts { codes, scales, zeros, global: &global, ..Parts::default() };
    let size = src.storage_bits().unwrap() as usize / 8;
    let x = |i: u64| number(Code::Float(src), little_endian(&bytes[i as usize * size..][..size]));
    let y = |i: u64| number(Code::Float(F32), layout.value(&parts, i).unwrap().into());
    let mut counts = [0; 8];
    let [subnormal, saturated, blocks, blocks_lossless, scale_saturated, scale_zero, blocks_to_zero, scale_nan] =
        &mut counts;
    for (elements, code, (scale_code, scale), t, zero) in blocks_of(layout, global, &parts) {
        let mut ordered: Vec<f64> = (0..1 << code.bits()).map(|c| number(code, c) - zero).collect();
        ordered.retain(|value| value.is_finite());
        ordered.sort_by(f64::total_cmp);
        let last = ordered.len() - 1;
        let ends = [(ordered[last], ordered[last - 1], 1.0), (ordered[0], ordered[1], -1.0)];
        *blocks += 1;
        let is_same = |(x, y): (f64, f64)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
        *blocks_lossless += u64::from(elements.iter().all(|(i, _)| is_same((x(*i), y(*i)))));
        let value = number(scale_code, scale);
        let format = scale_code.format().unwrap();
        *scale_zero += u64::from(value == 0.0);
        *blocks_to_zero +=
            u64::from(elements.iter().all(|(i, _)| y(*i) == 0.0) && elements.iter().any(|(i, _)| x(*i) != 0.0));
        *scale_nan += u64::from(value.is_nan());
        if value.abs() == number(scale_code, format.max_code()) {
            let reach = ends.map(|(end, next, sign)| sign * (end + (end - next) / 2.0)).into_iter().fold(0.0, f64::max);
            *scale_saturated += u64::from(elements.iter().any(|(i, _)| x(*i).abs() > reach * t.abs()));
        }
        for (i, c) in elements {
            let of_code = number(code, c) - zero;
            if let Some(f) = code.format() {
                let magnitude = c & f.magnitude_mask();
                *subnormal += u64::from(magnitude != 0 && magnitude < f.min_normal_code());
            }
            for (end, next, sign) in ends {
                let half_step = (end - next).abs() / 2.0;
                let is_beyond =
                    sign * (x(i) - y(i)) > half_step * t * (1.0 + 2f64.powi(-16)) && sign * (x(i) - y(i)) > 0.0;
                let counts = layout.planes().is_some() || code.bits() == 4;
                *saturated += u64::from(counts && of_code == end && is_beyond);
            }
        }
    }
    counts
}

/// A block is (elements with their codes, type of the codes, stored scale, factor of codes, zero point).
type BlockOf = (Vec<(u64, u64)>, Code, (Code, u64), f64, f64);

/// Blocks with elements of the tensor.
fn blocks_of(layout: &Layout, global: [u8; 4], parts: &Parts<'_>) -> Vec<BlockOf> {
    let [rows, cols] = layout.kept;
    let planes = match layout.coding {
        Coding::Planes(planes) => planes,
        Coding::Blocks { block, .. } => {
            let of_block = |(b, bytes): (usize, &[u8])| {
                let (code, scale, size) = match block {
                    BlockType::Q8_0 => (Code::signed(8), Code::Float(F16), 2),
                    _ => (Code::Float(F4E2M1), Code::Float(F8E8M0), 1),
                };
                let code_of = |i: usize| match block {
                    BlockType::Q8_0 => bytes[2 + i],
                    _ => bytes[1 + i % 16] >> (i / 16 * 4) & 15,
                };
                let elements = (0..32).map(|i| ((b * 32 + i) as u64, code_of(i).into())).collect();
                let stored = little_endian(&bytes[..size]);
                (elements, code, (scale, stored), number(scale, stored), 0.0)
            };
            return parts.codes.chunks(block.bytes() as usize).enumerate().map(of_block).collect();
        }
        _ => unreachable!(),
    };
    let (plane, block) = (planes.scales.plane, planes.scales.block);
    let grid = layout.grid(block);
    let clip = |i: u64, block: u64, n: u64| (i * block).min(n)..((i + 1) * block).min(n);
    let all = (0..grid[0]).flat_map(|i| (0..grid[1]).map(move |j| [i, j]));
    let of_block = |at: [u64; 2]| {
        let (of_rows, of_cols) = (clip(at[0], block[0], rows), clip(at[1], block[1], cols));
        let places = of_rows.flat_map(|row| of_cols.clone().map(move |col| [row, col]));
        let shape = [layout.rows, layout.cols];
        let code_of = |[row, col]: [u64; 2]| (row * cols + col, planes.codes.get(shape, [row, col], parts.codes));
        let stored = plane.get(grid, at, parts.scales);
        let (scale, global) = (number(plane.code, stored) as f32, f32::from_le_bytes(global));
        let scale = match planes.global.map(|global| global.rule) {
            None => scale,
            Some(GlobalRule::Divide) => scale / global,
            Some(_) => scale * global,
        };
        let zero = match planes.zero {
            Zero::None => 0.0,
            Zero::Constant(zero) => zero.into(),
            Zero::Grid { plane, plus } => number(plane.code, plane.get(grid, at, parts.zeros)) + f64::from(plus),
        };
        (places.map(code_of).collect(), planes.codes.code, (plane.code, stored), scale.into(), zero)
    };
    all.map(of_block).filter(|(elements, ..): &BlockOf| !elements.is_empty()).collect()
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte))
}

fn number(code: Code, bits: u64) -> f64 {
    match code {
        Code::Int(f) => f.value(bits) as f64,
        Code::Book(_) => f64::NAN,
        Code::Float(src) => {
            let spec = ieee::Cast::to(F64).resolve(src).unwrap();
            f64::from_bits(cast_one(&spec, bits).code().unwrap())
        }
    }
}

fn array_of(counts: BlockCounts) -> [u64; 8] {
    let c = counts.total();
    [
        c.subnormal, c.saturated, c.blocks, c.blocks_lossless, c.scale_saturated, c.scale_zero, c.blocks_to_zero,
        c.scale_nan,
    ]
}

/// Quantizes rows in pieces, and stores each part at its position.
fn quantize(q: &Quantizer, amax: f32, src: &[u8], pieces: &[Range<u64>]) -> Result<Stored, ScaledError> {
    Ok(quantize_and_count(q, amax, src, pieces)?.0)
}

fn quantize_and_count(
    q: &Quantizer,
    amax: f32,
    src: &[u8],
    pieces: &[Range<u64>],
) -> Result<(Stored, BlockCounts), ScaledError> {
    let layout = q.layout();
    let row_bytes = src.len() / layout.rows as usize;
    let mut stored = [Part::Codes, Part::Scales, Part::Zeros]
        .map(|p| vec![0xa5; layout.part_bytes(p).unwrap().unwrap_or(0) as usize]);
    let mut counts = BlockCounts::default();
    for rows in pieces {
        let mut parts: Stored = Default::default();
        let writes = q.writes(0, rows.clone());
        let index = |part| [Part::Codes, Part::Scales, Part::Zeros].iter().position(|p| *p == part).unwrap();
        for write in &writes {
            assert_eq!(write.count, 1, "{layout:?}");
            parts[index(write.part)] = vec![0x5a; write.bytes() as usize];
        }
        let [codes, scales, zeros] = &mut parts;
        let of_rows = &src[rows.start as usize * row_bytes..rows.end as usize * row_bytes];
        counts.add(&q.run(0, rows.clone(), of_rows, amax, PartsMut { codes, scales, zeros })?);
        for write in &writes {
            let part = &parts[index(write.part)];
            stored[index(write.part)][write.first as usize..][..part.len()].copy_from_slice(part);
        }
    }
    Ok((stored, counts))
}

fn check(layout: Layout, src: DType, how: Quantization, random: &mut Random) {
    let bytes = source(src, [layout.rows, layout.cols], random);
    check_source(layout, src, how, &bytes, random);
}

fn check_source(layout: Layout, src: DType, how: Quantization, bytes: &[u8], random: &mut Random) {
    let values = as_f32(src, bytes);
    let amax = amax(how.nonfinite, &values).unwrap();
    let mut wanted: Option<(Stored, [u64; 8])> = None;
    for level in Level::available() {
        let exec = CastOptions { level, ..CastOptions::default() };
        let quantizer = Quantizer::new(&layout, src, &how, &exec).unwrap();
        assert_eq!(quantizer.amax(bytes).map(f32::to_bits), Ok(amax));
        let amax = f32::from_bits(amax);
        let global = quantizer.global(amax).unwrap_or(1.0);
        let (expected, expected_counts) = wanted.get_or_insert_with(|| {
            let stored = expected(&layout, &how, global, &values);
            let counts = expected_counts(&layout, global, &stored, src, bytes);
            (stored, counts)
        });
        let granule = quantizer.granule();
        let one_scale = |p: &Planes| p.scales.block[0] > 1 && layout.grid(p.scales.block) == [1, 1];
        let needs_amax = layout.planes().is_some_and(one_scale) || quantizer.global(1.0).is_some();
        assert_eq!(quantizer.needs_amax(), needs_amax, "{layout:?}");
        let cut = (random.next() % layout.rows.div_ceil(granule) * granule).min(layout.rows);
        let past_caches = CastOptions { stream_above_bytes: Some(0), ..exec };
        let streaming = Quantizer::new(&layout, src, &how, &past_caches).unwrap();
        let counts = CastOptions { counting: Counting::Full, ..past_caches };
        let counting = Quantizer::new(&layout, src, &how, &counts).unwrap();
        let (whole, pieces) = (vec![0..layout.rows], vec![0..cut, cut..layout.rows]);
        let cases = [(&quantizer, &whole), (&streaming, &whole), (&streaming, &pieces)];
        for (quantizer, pieces) in cases.into_iter().chain([(&counting, &whole), (&counting, &pieces)]) {
            let (got, counts) = quantize_and_count(quantizer, amax, bytes, pieces).unwrap();
            let counted = if std::ptr::eq(quantizer, &counting) { *expected_counts } else { [0; 8] };
            assert_eq!(array_of(counts), counted, "{layout:?} {how:?} from {src} at {level} in {pieces:?}");
            for (part, (got, expected)) in got.iter().zip(&*expected).enumerate() {
                let wrong = got.iter().zip(expected).position(|(a, b)| a != b);
                if let Some(at) = wrong {
                    panic!(
                        "{layout:?} {how:?} from {src} at {level}: part {part}, byte {at}: {:02x}, not {:02x}",
                        got[at], expected[at]
                    );
                }
            }
        }
    }
}

fn layout(shape: [u64; 2], planes: Planes) -> Layout {
    Layout::new(1, shape, Coding::Planes(planes))
}

/// Layouts that have threshold tables for bf16, and values without extremes. Rows are whole groups of 64 and a rest.
/// Blocks are inside groups, or have many rows. All blocks share one table, or each scale code or each block has its
/// own.
#[test]
fn codes_of_bf16_by_steps() {
    let mut random = Random::new("codes_of_bf16_by_steps");
    let (fp4, fp8) = (Plane::of(F4E2M1), Plane::of(F8E4M3Fn));
    let nvfp4 = |rule, block| Planes {
        global: Some(Global { rule, block: [u64::MAX, u64::MAX] }),
        ..Planes::times(fp4, fp8, [1, block])
    };
    let nvfp4_high = Planes { codes: fp4.packed(Packing::HighFirst), ..nvfp4(GlobalRule::Times, 16) };
    let cases = [
        ([130, 320], Planes::times(fp8, Plane::of(F32), [128, 128])),
        ([130, 200], Planes::times(fp8, Plane::of(Bf16), [128, 128])),
        ([3, 8192], Planes::times(fp8, Plane::of(F32), [1, 8192])),
        ([70, 192], Planes::times(fp8, Plane::of(F16), [70, 192])),
        ([9, 352], Planes::times(fp8, Plane::of(F8E8M0), [1, 32])),
        ([9, 352], Planes::times(fp4, Plane::of(F8E8M0), [1, 32])),
        ([9, 336], nvfp4(GlobalRule::Times, 16)),
        ([9, 384], nvfp4(GlobalRule::Divide, 32)),
        ([9, 384], nvfp4(GlobalRule::Divide, 128)),
        ([9, 400], nvfp4_high),
    ];
    for (shape, mut planes) in cases {
        if let Some(global) = &mut planes.global {
            global.block = shape;
        }
        for power_of_two in [false, true] {
            let mut x = || -> u16 {
                let mask = if random.next().is_multiple_of(3) { !0 } else { !0x1f };
                let magnitude = (0x3a00 + (random.next() % 0x600) as u16) & mask;
                let x = if random.next().is_multiple_of(9) { magnitude - 0x600 } else { magnitude };
                x | (random.next() as u16 & 0x8000)
            };
            let mut bytes: Vec<u8> = (0..shape[0] * shape[1]).flat_map(|_| x().to_le_bytes()).collect();
            // A block of zeros of both signs.
            bytes[..64].iter_mut().enumerate().for_each(|(i, byte)| *byte = if i % 4 == 1 { 0x80 } else { 0 });
            let how = Quantization { power_of_two, ..Quantization::default() };
            check_source(layout(shape, planes), Bf16, how, &bytes, &mut random);
        }
    }
}

const FORMULA: Quantization =
    Quantization { mx: MxScale::Rceil, nonfinite: NonFinite::Error, search: Search::Formula, power_of_two: false };

#[test]
fn fp8() {
    let mut random = Random::new("fp8");
    for shape in [[1, 1], [127, 129], [129, 192], [256, 576]] {
        for src in [Bf16, F32] {
            for scales in [F32, F8E8M0, Bf16] {
                let planes = Planes::times(Plane::of(F8E4M3Fn), Plane::of(scales), [128, 128]);
                check(layout(shape, planes), src, FORMULA, &mut random);
            }
        }
    }
    for block in [[1, 192], [30, 192], [99, 200], [1, 32], [3, 7]] {
        for src in [F16, F64] {
            let planes = Planes::times(Plane::of(F8E5M2), Plane::of(F16), block);
            check(layout([30, 192], planes), src, FORMULA, &mut random);
            let planes = Planes::times(Plane::of(F8E4M3Fn), Plane::of(F32), block);
            check(layout([30, 192], planes), src, Quantization { power_of_two: true, ..FORMULA }, &mut random);
        }
    }
}

#[test]
fn mx() {
    let mut random = Random::new("mx");
    for codes in [F4E2M1, F6E2M3, F8E4M3Fn] {
        for (_, mx) in MxScale::ALL {
            for packing in [Packing::BYTES, Packing::Swizzled] {
                let scales = Plane::of(F8E8M0).packed(packing);
                let planes = Planes::times(Plane::of(codes), scales, [1, 32]);
                check(layout([140, 224], planes), Bf16, Quantization { mx, ..FORMULA }, &mut random);
            }
        }
    }
}

#[test]
fn nvfp4() {
    let mut random = Random::new("nvfp4");
    for rule in [None, Some(GlobalRule::Times), Some(GlobalRule::Divide)] {
        for (codes, scales) in [(Packing::BYTES, Packing::BYTES), (Packing::HighFirst, Packing::Swizzled)] {
            let planes = Planes {
                global: rule.map(|rule| Global { rule, block: [140, 208] }),
                ..Planes::times(Plane::of(F4E2M1).packed(codes), Plane::of(F8E4M3Fn).packed(scales), [1, 16])
            };
            check(layout([140, 208], planes), Bf16, FORMULA, &mut random);
            check_source(layout([140, 208], planes), F32, FORMULA, &[0; 140 * 208 * 4], &mut random);
        }
    }
}

/// Tensors that are long enough for lookups. Rows are joined or copied, or leave a rest after the last group.
#[test]
fn long_tensors() {
    let mut random = Random::new("long_tensors");
    let fp4 = |codes, scales, block| Planes::times(Plane::of(F4E2M1).packed(codes), Plane::of(scales), block);
    let global = |planes, shape| Planes { global: Some(Global { rule: GlobalRule::Times, block: shape }), ..planes };
    let fp8 = |scales, block| Planes::times(Plane::of(F8E4M3Fn), Plane::of(scales), block);
    let cases = [
        ([257, 576], fp8(F32, [128, 128])),
        ([64, 2121], fp8(F8E8M0, [16, 192])),
        ([70, 1937], fp8(F32, [1, 1937])),
        ([70, 1937], Planes::times(Plane::of(F8E5M2), Plane::of(F32), [70, 1937])),
        ([48, 2800], Planes::times(Plane::of(F6E2M3), Plane::of(F8E8M0), [1, 32])),
        ([48, 2800], Planes::times(Plane::of(F6E2M3), Plane::of(F32), [4, 112])),
        ([67, 2016], fp4(Packing::BYTES, F8E8M0, [1, 32])),
        ([67, 2016], global(fp4(Packing::HighFirst, F8E4M3Fn, [1, 16]), [67, 2016])),
        ([69, 1999], fp4(Packing::BYTES, F32, [1, 64])),
    ];
    for (shape, planes) in cases {
        for src in [Bf16, F16, F32] {
            check(layout(shape, planes), src, FORMULA, &mut random);
        }
    }
}

#[test]
fn integers() {
    let mut random = Random::new("integers");
    for bits in [1, 2, 3, 4, 5, 6, 7, 8] {
        let packed = Plane { code: Code::unsigned(bits), packing: Packing::WORDS };
        let zero = Plane { code: Code::unsigned(bits), packing: Packing::Columns { word: 32 } };
        for (zero, scales) in [(Zero::Constant(1 << (bits - 1)), Bf16), (Zero::Grid { plane: zero, plus: 0 }, F32)] {
            for block in [[1, 32], [1, 160]] {
                let planes = Planes { zero, ..Planes::times(packed, Plane::of(scales), block) };
                check(layout([70, 160], planes), Bf16, FORMULA, &mut random);
            }
        }
    }
    let int8 = Plane { code: Code::signed(8), packing: Packing::BYTES };
    for zero in [Zero::None, Zero::Grid { plane: int8, plus: 0 }] {
        let planes = Planes { zero, ..Planes::times(int8, Plane::of(F32), [1, 160]) };
        check(layout([33, 160], planes), F32, FORMULA, &mut random);
    }
}

#[test]
fn blocks_of_gguf_files() {
    let mut random = Random::new("blocks_of_gguf_files");
    for block in [BlockType::Q8_0, BlockType::MXFP4] {
        for src in [Bf16, F32, F16] {
            let layout = Layout::new(1, [9, 2208], Coding::Blocks { block, factor: false });
            check(layout, src, FORMULA, &mut random);
        }
    }
}

#[test]
fn search() {
    let mut random = Random::new("search");
    let how = Quantization { search: Search::Mse, ..FORMULA };
    let int4 = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
    let zero = Plane { code: Code::unsigned(4), packing: Packing::Columns { word: 32 } };
    let nvfp4 = Planes {
        global: Some(Global { rule: GlobalRule::Times, block: [24, 96] }),
        ..Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn), [1, 16])
    };
    let targets = [
        Planes::times(Plane::of(F4E2M1), Plane::of(F8E8M0), [1, 32]),
        Planes { zero: Zero::Constant(8), ..Planes::times(int4, Plane::of(Bf16), [1, 32]) },
        Planes { zero: Zero::Grid { plane: zero, plus: 0 }, ..Planes::times(int4, Plane::of(F32), [1, 32]) },
        Planes::times(Plane::of(F8E4M3Fn), Plane::of(F32), [16, 40]),
        nvfp4,
    ];
    for planes in targets {
        check(layout([24, 96], planes), Bf16, how, &mut random);
    }
}

#[test]
fn values_that_are_not_finite() {
    let mut random = Random::new("values_that_are_not_finite");
    let how = Quantization { nonfinite: NonFinite::Saturate, ..FORMULA };
    let int4 = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
    let zero = Plane { code: Code::unsigned(4), packing: Packing::Columns { word: 32 } };
    let layouts = [
        layout([40, 192], Planes::times(Plane::of(F8E4M3Fn), Plane::of(F32), [16, 16])),
        layout([40, 192], Planes::times(Plane::of(F4E2M1), Plane::of(F8E8M0), [1, 32])),
        layout([40, 192], Planes { zero: Zero::Constant(8), ..Planes::times(int4, Plane::of(Bf16), [1, 32]) }),
        layout(
            [40, 192],
            Planes { zero: Zero::Grid { plane: zero, plus: 0 }, ..Planes::times(int4, Plane::of(F32), [1, 32]) },
        ),
        Layout::new(1, [40, 192], Coding::Blocks { block: BlockType::Q8_0, factor: false }),
        Layout::new(1, [40, 192], Coding::Blocks { block: BlockType::MXFP4, factor: false }),
    ];
    for layout in layouts {
        let mut bytes = source(F32, [40, 192], &mut random);
        for (at, value) in [(700, f32::INFINITY), (701, f32::NEG_INFINITY), (702, f32::NAN), (7000, -f32::NAN)] {
            bytes[4 * at..][..4].copy_from_slice(&value.to_le_bytes());
        }
        check_source(layout, F32, how, &bytes, &mut random);
        let quantizer = Quantizer::new(&layout, F32, &FORMULA, &CastOptions::default()).unwrap();
        let refused = Err(ScaledError::NotFinite { index: 700 });
        assert_eq!(quantize(&quantizer, 1.0, &bytes, &[0..40]), refused);
        assert_eq!(quantizer.amax(&bytes), Err(ScaledError::NotFinite { index: 700 }));
    }
}

#[test]
fn there_and_back() {
    let mut random = Random::new("there_and_back");
    let planes = Planes::times(Plane::of(F8E4M3Fn), Plane::of(F32), [128, 128]);
    let layout = layout([200, 300], planes);
    // Source values are f8e4m3fn values. The largest is 448, so the scales are 1.
    let mut src: Vec<u8> = (0..200 * 300)
        .flat_map(|_| {
            let code = (random.next() % 0x7f) | ((random.next() % 2) << 7);
            let value = cast_one(&ieee::Cast::to(Bf16).resolve(F8E4M3Fn).unwrap(), code).code().unwrap();
            (value as u16).to_le_bytes()
        })
        .collect();
    for at in [0, 130, 260, 128 * 300, 128 * 300 + 130, 128 * 300 + 260] {
        src[2 * at..][..2].copy_from_slice(&0x43e0u16.to_le_bytes()); // 448
    }
    let quantizer = Quantizer::new(&layout, Bf16, &FORMULA, &CastOptions::default()).unwrap();
    let [codes, scales, _] = quantize(&quantizer, 1.0, &src, &[0..200]).unwrap();
    let parts = Parts { codes: &codes, scales: &scales, ..Parts::default() };
    let dequantizer =
        Dequantizer::new(&layout, &ieee::Cast::to(Bf16).resolve(F32).unwrap(), &CastOptions::default()).unwrap();
    let mut back = vec![0; src.len()];
    let windows = dequantizer.windows(0..layout.elements());
    dequantizer.run(&windows[0], &parts, &mut back).unwrap();
    assert!(back == src);
}

#[test]
fn what_does_not_fit() {
    let planes = Planes::times(Plane::of(F8E4M3Fn), Plane::of(F32), [128, 128]);
    let layout = layout([200, 128], planes);
    let quantizer = Quantizer::new(&layout, F32, &FORMULA, &CastOptions::default()).unwrap();
    assert_eq!(quantizer.granule(), 128);
    let run = |rows: Range<u64>, n: usize, codes: usize| {
        let (mut codes, mut scales) = (vec![0; codes], [0; 8]);
        let parts = PartsMut { codes: &mut codes, scales: &mut scales[..4], ..PartsMut::default() };
        quantizer.run(0, rows, &vec![0; n], 1.0, parts)
    };
    assert_eq!(run(0..128, 128 * 128 * 4, 128 * 128), Ok(BlockCounts::default()));
    assert!(matches!(run(0..100, 100 * 128 * 4, 100 * 128), Err(ScaledError::Layout { .. })));
    assert!(matches!(run(128..300, 172 * 128 * 4, 172 * 128), Err(ScaledError::Layout { .. })));
    assert!(matches!(run(0..128, 4, 128 * 128), Err(ScaledError::Results { .. })));
    assert!(matches!(run(0..128, 128 * 128 * 4, 3), Err(ScaledError::Size { part: Part::Codes, .. })));
    let awq = Plane { code: Code::unsigned(4), packing: Packing::Awq };
    let planes = Planes { zero: Zero::Constant(8), ..Planes::times(awq, Plane::of(F16), [32, 1]) };
    let new = |src: DType, layout: &Layout| Quantizer::new(layout, src, &FORMULA, &CastOptions::default());
    assert!(matches!(new(DType::I8, &layout), Err(ScaledError::Source { dtype: DType::I8 })));
    let transposed = Layout { transposed: true, ..layout };
    for layout in [transposed, Layout::new(1, [32, 8], Coding::Planes(planes))] {
        assert!(matches!(new(F32, &layout), Err(ScaledError::Layout { .. })), "{layout:?}");
    }
}
