//! Scaled elements: kernels against `truecast_core::scaled`, bit for bit, at every level.

use std::ops::Range;
use truecast_core::scaled::*;
use truecast_core::spec::ieee;
use truecast_core::{CastSpec, DType, cast_one};
use truecast_kernel::scaled::Dequantizer;
use truecast_kernel::{CastOptions, Level};
use truecast_testkit::random::Random;

use DType::{Bf16, F4E2M1, F6E2M3, F8E4M3Fn, F8E5M2, F8E8M0, F16, F32, F64};

type Stored = [Vec<u8>; 7];

fn parts(stored: &Stored) -> Parts<'_> {
    let [codes, scales, global, zeros, biases, index, book] = stored;
    Parts { codes, scales, global, zeros, biases, index, book }
}

fn to(dst: DType) -> CastSpec {
    ieee::Cast::to(dst).resolve(F32).unwrap()
}

/// Scales with a high risk of errors.
const SCALES: [f32; 20] = [
    1.0,
    0.5,
    -0.75,
    1.0 / 3.0,
    f32::from_bits(1),
    f32::from_bits(0x0000_1234),
    f32::MIN_POSITIVE,
    f32::from_bits(0x007f_ffff), // the largest subnormal
    1e-30,
    f32::from_bits(0x0020_0000),
    3.0e38,
    f32::MAX,
    1e36,
    0.0,
    -0.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    448.0,
    0.0071,
];

/// Random bytes, with special values among the scales.
fn stored(layout: &Layout, random: &mut Random) -> Stored {
    let mut stored = Part::ALL.map(|part| {
        let bytes = layout.part_bytes(part).unwrap().unwrap_or(0);
        (0..bytes).map(|_| random.next() as u8).collect::<Vec<u8>>()
    });
    let planes = layout.planes();
    let mut special = |bytes: &mut Vec<u8>, dtype: DType| {
        for (i, chunk) in bytes.chunks_mut(dtype.storage_bits().unwrap() as usize / 8).enumerate() {
            let value = match random.next() % 3 {
                0 => SCALES[i % SCALES.len()],
                1 => (random.next() as u32 as f32 - 2e9) * 1e-11,
                _ => continue,
            };
            let code = cast_one(&to(dtype), value.to_bits().into()).code().unwrap();
            chunk.copy_from_slice(&code.to_le_bytes()[..chunk.len()]);
        }
    };
    if let Some(Planes { scales: Scales { plane: Plane { code: Code::Float(dtype), packing }, .. }, .. }) = planes
        && *packing != Packing::Swizzled
        && *dtype != F8E8M0
    {
        special(&mut stored[1], *dtype);
        special(&mut stored[4], *dtype);
    }
    special(&mut stored[2], F32);
    special(&mut stored[6], F32);
    let groups = layout.scale_grid().unwrap_or([1, 1]);
    let groups = if planes.is_some_and(|p| p.group == Group::OfRow) { groups[0] } else { groups[1] };
    for index in stored[5].as_chunks_mut::<4>().0 {
        *index = ((random.next() % groups) as u32).to_le_bytes();
    }
    stored
}

/// Joined bytes of a window's reads.
fn read(dequantizer: &Dequantizer, window: &truecast_kernel::scaled::Window, stored: &Stored) -> Stored {
    let mut got: Stored = Default::default();
    for read in dequantizer.reads(window) {
        let from = parts(stored).get(read.part);
        let to = &mut got[Part::ALL.iter().position(|p| *p == read.part).unwrap()];
        for i in 0..read.count {
            let first = (read.first + i * read.stride) as usize;
            to.extend_from_slice(&from[first..first + read.len as usize]);
        }
    }
    got
}

fn convert(
    dequantizer: &Dequantizer,
    stored: &Stored,
    range: Range<u64>,
    bytes: usize,
) -> Result<Vec<u8>, ScaledError> {
    let mut all = Vec::new();
    let mut at = range.start;
    for window in dequantizer.windows(range.clone()) {
        let elements = window.elements();
        assert_eq!(elements.start, at);
        at = elements.end;
        let got = read(dequantizer, &window, stored);
        let mut dst = vec![0xa5; (elements.end - elements.start) as usize * bytes];
        dequantizer.run(&window, &parts(&got), &mut dst)?;
        all.extend(dst);
    }
    assert_eq!(at, range.end);
    Ok(all)
}

/// Checks every element at every level, in one window and in pieces, with streaming stores and without.
fn check(layout: Layout, dsts: &[DType], random: &mut Random) {
    let stored = stored(&layout, random);
    check_stored(layout, &stored, dsts, random);
}

fn check_stored(layout: Layout, stored: &Stored, dsts: &[DType], random: &mut Random) {
    layout.check_parts(&parts(stored)).unwrap();
    let n = layout.elements();
    let values: Vec<u32> = (0..n).map(|i| layout.value(&parts(stored), i).unwrap()).collect();
    for &dst in dsts {
        let (spec, bytes) = (to(dst), dst.storage_bits().unwrap() as usize / 8);
        let code = |value: &u32| cast_one(&spec, u64::from(*value)).code().unwrap();
        let expected: Vec<u8> = values.iter().flat_map(|v| code(v).to_le_bytes()[..bytes].to_vec()).collect();
        for level in Level::available() {
            for stream_above_bytes in [None, Some(0)] {
                let exec = CastOptions { level, stream_above_bytes, ..CastOptions::default() };
                let dequantizer = Dequantizer::new(&layout, &spec, &exec).unwrap();
                let mut ranges: Vec<_> = std::iter::once(0..n).collect();
                for _ in 0..4 {
                    let (a, b) = (random.next() % (n + 1), random.next() % (n + 1));
                    ranges.push(a.min(b)..a.max(b));
                }
                for range in ranges {
                    let got = convert(&dequantizer, stored, range.clone(), bytes).unwrap();
                    let expected = &expected[range.start as usize * bytes..range.end as usize * bytes];
                    let wrong = got.chunks(bytes).zip(expected.chunks(bytes)).position(|(a, b)| a != b);
                    if let Some(i) = wrong {
                        let index = range.start as usize + i;
                        panic!(
                            "{layout:?} to {dst} at {level}, {range:?}: element {index}, value {:08x}, is {:02x?}, not {:02x?}",
                            values[index],
                            &got[i * bytes..][..bytes],
                            &expected[i * bytes..][..bytes],
                        );
                    }
                }
            }
        }
    }
}

fn planes(matrices: u64, shape: [u64; 2], planes: Planes) -> Layout {
    Layout::new(matrices, shape, Coding::Planes(planes))
}

const WIDE: [DType; 3] = [Bf16, F16, F32];

#[test]
fn all_codes_and_scales() {
    let mut random = Random::new("all_codes_and_scales");
    let mut scales: Vec<u32> = SCALES.iter().map(|s| s.to_bits()).collect();
    scales.extend((0..255).map(|e: u32| e << 23).step_by(3)); // powers of two
    scales.extend((0..200).map(|_| random.next() as u32));
    for (codes, n) in [
        (Code::Float(F8E4M3Fn), 256),
        (Code::Float(F8E5M2), 256),
        (Code::signed(8), 256),
        (Code::Float(F4E2M1), 16),
        (Code::Float(F6E2M3), 64),
    ] {
        // Blocks that have one row, and blocks that have enough rows for tables.
        for rows in [1, 4096 / n.min(256)] {
            let layout = planes(
                1,
                [rows * scales.len() as u64, n],
                Planes::times(Plane { code: codes, packing: Packing::BYTES }, Plane::of(F32), [rows, n]),
            );
            let mut stored: Stored = Default::default();
            stored[0] = vec![0; layout.part_bytes(Part::Codes).unwrap().unwrap() as usize];
            let shape = [layout.rows, layout.cols];
            for row in 0..layout.rows {
                (0..n).for_each(|c| Packing::BYTES.set(codes.bits(), shape, [row, c], &mut stored[0], c));
            }
            stored[1] = scales.iter().flat_map(|s| s.to_le_bytes()).collect();
            check_stored(layout, &stored, if rows == 1 { &WIDE } else { &[Bf16] }, &mut random);
        }
    }
    for codes in [F4E2M1, F8E4M3Fn, F6E2M3] {
        let n = 1 << codes.code_bits();
        let layout = planes(1, [256, n], Planes::times(Plane::of(codes), Plane::of(F8E8M0), [1, n]));
        let mut stored: Stored = Default::default();
        stored[0] = vec![0; layout.part_bytes(Part::Codes).unwrap().unwrap() as usize];
        for row in 0..256 {
            let shape = [layout.rows, layout.cols];
            (0..n).for_each(|c| Packing::BYTES.set(codes.code_bits(), shape, [row, c], &mut stored[0], c));
        }
        stored[1] = (0..=255).collect();
        check_stored(layout, &stored, &[Bf16, F16, F32, F64, F8E4M3Fn], &mut random);
    }
}

#[test]
fn edge_blocks() {
    let mut random = Random::new("edge_blocks");
    for scales in [F32, F8E8M0, Bf16] {
        for shape in [[1, 1], [127, 129], [128, 128], [129, 127], [130, 576], [5, 256], [256, 2176]] {
            let layout = planes(1, shape, Planes::times(Plane::of(F8E4M3Fn), Plane::of(scales), [128, 128]));
            check(layout, &[Bf16], &mut random);
        }
    }
    for block in [[1, 576], [40, 576], [1, 1], [3, 5], [1, 64], [64, 64], [2, 4096]] {
        let layout = planes(2, [40, 576], Planes::times(Plane::of(F8E4M3Fn), Plane::of(F32), block));
        check(layout, &[Bf16, F32], &mut random);
    }
    // Blocks so long that windows begin inside blocks.
    let layout = planes(1, [3, 5000], Planes::times(Plane::of(F4E2M1), Plane::of(F16), [1, 2048]));
    check(layout, &[Bf16], &mut random);
    let layout = planes(1, [3, 5000], Planes::times(Plane::of(F8E4M3Fn), Plane::of(F32), [3, 2048]));
    check(layout, &[F16], &mut random);
}

#[test]
fn four_bits_with_two_scales() {
    let mut random = Random::new("four_bits_with_two_scales");
    for rule in [None, Some(GlobalRule::Times), Some(GlobalRule::Divide), Some(GlobalRule::Amax)] {
        for packing in [Packing::BYTES, Packing::HighFirst, Packing::WORDS] {
            for scales in [Packing::BYTES, Packing::Swizzled] {
                let global = rule.map(|rule| Global { rule, block: [9, 576] });
                let planes = Planes {
                    global,
                    ..Planes::times(Plane::of(F4E2M1).packed(packing), Plane::of(F8E4M3Fn).packed(scales), [1, 16])
                };
                let layout = Layout { kept: [17, 570], ..Layout::new(2, [18, 576], Coding::Planes(planes)) };
                check(layout, &[Bf16], &mut random);
            }
        }
    }
    // A global scale for half of the columns.
    let planes = Planes {
        global: Some(Global { rule: GlobalRule::Times, block: [1, 288] }),
        ..Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn), [1, 16])
    };
    check(Layout::new(1, [3, 576], Coding::Planes(planes)), &WIDE, &mut random);
}

#[test]
fn mx() {
    let mut random = Random::new("mx");
    for codes in [F4E2M1, F6E2M3, F8E4M3Fn, F8E5M2] {
        let planes = Planes::times(Plane::of(codes), Plane::of(F8E8M0), [1, 32]);
        // Columns with and without whole lines.
        for (transposed, shape) in [(false, [70, 160]), (true, [70, 160]), (true, [288, 96]), (true, [138, 96])] {
            let layout = Layout { transposed, ..Layout::new(3, shape, Coding::Planes(planes)) };
            check(layout, &WIDE, &mut random);
        }
    }
}

#[test]
fn integers_in_every_packing() {
    let mut random = Random::new("integers_in_every_packing");
    for bits in 1..=8 {
        for packing in [Packing::WORDS, Packing::Padded] {
            let codes = Plane { code: Code::unsigned(bits), packing };
            let columns =
                if packing == Packing::Padded { Packing::PaddedColumns } else { Packing::Columns { word: 32 } };
            let zeros = Zero::Grid { plane: Plane { code: Code::unsigned(bits), packing: columns }, plus: 0 };
            for zero in [Zero::Constant(1 << (bits - 1)), zeros] {
                for group in [Group::Grid, Group::OfColumn] {
                    for scales in [Bf16, F32] {
                        let planes = Planes { zero, group, ..Planes::times(codes, Plane::of(scales), [1, 32]) };
                        let shape = if packing == Packing::Padded { [37, 2016] } else { [37, 160] };
                        check(Layout::new(1, shape, Coding::Planes(planes)), &[Bf16], &mut random);
                    }
                }
            }
        }
    }
    // INT8 with stored zero points, and INT4 of ModelOpt with two rows per byte.
    let zero = Zero::Grid { plane: Plane { code: Code::signed(8), packing: Packing::BYTES }, plus: 0 };
    let int8 = Plane { code: Code::signed(8), packing: Packing::BYTES };
    for block in [[1, 96], [10, 96], [1, 32]] {
        let planes = Planes { zero, ..Planes::times(int8, Plane::of(F32), block) };
        check(Layout::new(2, [10, 96], Coding::Planes(planes)), &WIDE, &mut random);
    }
    let int4 = Plane { code: Code::signed(4), packing: Packing::Columns { word: 8 } };
    let layout = planes(1, [34, 192], Planes::times(int4, Plane::of(F32), [1, 64]));
    check(layout, &[Bf16], &mut random);
}

#[test]
fn nibbles_at_the_end_of_rows() {
    let mut random = Random::new("nibbles_at_the_end_of_rows");
    let int4 = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
    let zeros = Plane { code: Code::unsigned(4), packing: Packing::Columns { word: 32 } };
    for (block, cols) in [(32, 200), (32, 131), (64, 130), (96, 232), (128, 520), (2048, 2090)] {
        for scales in [Bf16, F16, F32] {
            let times = Planes::times(int4, Plane::of(scales), [1, block]);
            for planes in [
                Planes { zero: Zero::Constant(8), ..times },
                Planes { zero: Zero::Grid { plane: zeros, plus: 0 }, ..times },
                Planes { form: Form::Affine, ..times },
            ] {
                check(Layout::new(1, [9, cols], Coding::Planes(planes)), &[Bf16, F16], &mut random);
            }
        }
    }
}

#[test]
fn gptq_awq_and_bitnet() {
    let mut random = Random::new("gptq_awq_and_bitnet");
    for bits in [2, 3, 4, 8] {
        let codes = Plane { code: Code::unsigned(bits), packing: Packing::Columns { word: 32 } };
        for (plus, group) in [(0, Group::Grid), (1, Group::OfRow)] {
            let zero = Zero::Grid { plane: Plane { code: Code::unsigned(bits), packing: Packing::WORDS }, plus };
            let planes = Planes { zero, group, ..Planes::times(codes, Plane::of(F16), [32, 1]) };
            let layout = Layout { transposed: true, ..Layout::new(1, [96, 160], Coding::Planes(planes)) };
            check(layout, &[Bf16, F32], &mut random);
        }
    }
    let awq = Plane { code: Code::unsigned(4), packing: Packing::Awq };
    let planes = Planes { zero: Zero::Grid { plane: awq, plus: 0 }, ..Planes::times(awq, Plane::of(F16), [32, 1]) };
    let layout = Layout { transposed: true, ..Layout::new(1, [96, 160], Coding::Planes(planes)) };
    check(layout, &[Bf16, F16], &mut random);

    let codes = Plane { code: Code::unsigned(2), packing: Packing::Planes };
    let planes = Planes {
        zero: Zero::Constant(1),
        form: Form::Divide,
        refused: Some(3),
        ..Planes::times(codes, Plane::of(Bf16), [20, 130])
    };
    let layout = Layout::new(1, [20, 130], Coding::Planes(planes));
    let mut bytes = stored(&layout, &mut random);
    bytes[0].iter_mut().for_each(|byte| *byte &= !(*byte >> 1 & 0x55)); // no 3
    check_stored(layout, &bytes, &[Bf16, F32], &mut random);
    Packing::Planes.set(2, [20, 130], [7, 65], &mut bytes[0], 3);
    let dequantizer = Dequantizer::new(&layout, &to(Bf16), &CastOptions::default()).unwrap();
    let refused = convert(&dequantizer, &bytes, 0..layout.elements(), 2);
    assert_eq!(refused, Err(ScaledError::Code { index: 7 * 130 + 65, code: 3 }));
}

#[test]
fn affine() {
    let mut random = Random::new("affine");
    for bits in [2, 3, 4, 5, 6, 8] {
        for scales in [Bf16, F16, F32] {
            let codes = Plane { code: Code::unsigned(bits), packing: Packing::WORDS };
            let planes = Planes { form: Form::Affine, ..Planes::times(codes, Plane::of(scales), [1, 64]) };
            check(Layout::new(1, [21, 192], Coding::Planes(planes)), &[Bf16, F16, F32], &mut random);
        }
    }
}

/// If forms A2 and A5 had every 8-bit scale, they would divide by zero and multiply infinities by zero.
#[test]
fn groups_that_do_not_exist() {
    let codes = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
    let planes =
        Planes { zero: Zero::Constant(8), group: Group::OfColumn, ..Planes::times(codes, Plane::of(Bf16), [1, 32]) };
    let layout = Layout::new(1, [2, 64], Coding::Planes(planes));
    let mut bytes = stored(&layout, &mut Random::seeded(1));
    for wrong in [2i32, -1] {
        bytes[5][4 * 9..4 * 10].copy_from_slice(&wrong.to_le_bytes());
        let dequantizer = Dequantizer::new(&layout, &to(Bf16), &CastOptions::default()).unwrap();
        let refused = convert(&dequantizer, &bytes, 0..layout.elements(), 2);
        assert_eq!(refused, Err(ScaledError::Index { index: 9, group: wrong.into(), groups: 2 }));
    }
}

#[test]
fn buffers_that_do_not_fit() {
    let layout = planes(1, [2, 64], Planes::times(Plane::of(F8E4M3Fn), Plane::of(F32), [2, 64]));
    let dequantizer = Dequantizer::new(&layout, &to(Bf16), &CastOptions::default()).unwrap();
    let window = &dequantizer.windows(0..128)[0];
    let good = Parts { codes: &[0; 128], scales: &[0; 4], ..Parts::default() };
    let run = |parts: &Parts<'_>, n: usize| dequantizer.run(window, parts, &mut vec![0; n]);
    assert_eq!(run(&good, 256), Ok(()));
    assert_eq!(run(&good, 255), Err(ScaledError::Results { expected: 256, got: 255 }));
    let size = Err(ScaledError::Size { part: Part::Codes, expected: 128, got: 127 });
    assert_eq!(run(&Parts { codes: &[0; 127], ..good }, 256), size);
    let several = Planes {
        group: Group::OfColumn,
        global: Some(Global { rule: GlobalRule::Times, block: [2, 32] }),
        ..Planes::times(Plane::of(F8E4M3Fn), Plane::of(F32), [1, 32])
    };
    let refused = Dequantizer::new(&planes(1, [2, 64], several), &to(Bf16), &CastOptions::default());
    assert!(matches!(refused, Err(ScaledError::Layout { .. })));
    let f4 = Dequantizer::new(&layout, &to(F4E2M1), &CastOptions::default());
    assert!(matches!(f4, Err(ScaledError::Layout { .. })));
}

#[test]
fn blocks_of_gguf_files() {
    let mut random = Random::new("blocks_of_gguf_files");
    for block in BlockType::ALL {
        for factor in [false, true] {
            let layout = Layout::new(2, [5, 768], Coding::Blocks { block, factor });
            let mut stored = stored(&layout, &mut random);
            let size = block.bytes() as usize;
            for (i, bytes) in stored[0].chunks_mut(size).enumerate() {
                // Scales have ordinary sizes, except in every fourth block.
                let halves: &[usize] = match block {
                    BlockType::MXFP4 | BlockType::NVFP4 | BlockType::IQ1_M => &[],
                    BlockType::Q4_1 | BlockType::Q5_1 | BlockType::Q4_K | BlockType::Q5_K => &[0, 2],
                    BlockType::Q2_K => &[80, 82],
                    BlockType::Q3_K => &[108],
                    BlockType::Q6_K => &[208],
                    BlockType::Q8_K => &[2],
                    BlockType::TQ1_0 => &[52],
                    BlockType::TQ2_0 => &[64],
                    _ => &[0],
                };
                halves.iter().filter(|_| i % 4 != 0).for_each(|at| bytes[at + 1] = bytes[at + 1] & 0x83 | 0x28);
                if block == BlockType::MXFP4 && bytes[0] == 0xff {
                    bytes[0] = 0;
                }
            }
            check_stored(layout, &stored, &[Bf16, F16, F32], &mut random);
            if block == BlockType::MXFP4 {
                stored[0][17 * (24 + 7)] = 0xff;
                let dequantizer = Dequantizer::new(&layout, &to(Bf16), &CastOptions::default()).unwrap();
                let refused = convert(&dequantizer, &stored, 0..layout.elements(), 2);
                assert_eq!(refused, Err(ScaledError::Scale { index: 32 * (24 + 7), scale: 0xff }));
            }
        }
    }
}

/// Every f16, nonfinite ones too, is the scale of some block (Q4_K: one of every 8), with multiples of all sizes.
#[test]
fn nibbles_with_every_factor() {
    let mut random = Random::new("nibbles_with_every_factor");
    let types = [(BlockType::Q4_0, 1u64 << 16), (BlockType::Q4_1, 1 << 16), (BlockType::Q4_K, 1 << 13)];
    for (block, n) in types.into_iter().chain([(BlockType::IQ4_NL, 1 << 16), (BlockType::TQ2_0, 1 << 13)]) {
        let layout = Layout::new(1, [n / 64, 64 * block.elements()], Coding::Blocks { block, factor: false });
        let mut stored = stored(&layout, &mut random);
        let size = block.bytes() as usize;
        for (i, bytes) in stored[0].chunks_mut(size).enumerate() {
            let below = (1u64 << 16) / n;
            let factor = (i as u64 * below + random.next() % below) as u16;
            bytes[..2].copy_from_slice(&factor.to_le_bytes());
            if matches!(block, BlockType::Q4_1 | BlockType::Q4_K) {
                // Arbitrary, or near the first factor, so that sums cancel.
                let other = if i % 3 == 0 { random.next() as u16 } else { factor ^ (random.next() as u16 & 0x87ff) };
                bytes[2..4].copy_from_slice(&other.to_le_bytes());
            }
        }
        check_stored(layout, &stored, &[Bf16], &mut random);
    }
}

/// Midpoints between bf16 neighbors and values next to midpoints, with even and odd upper halves, in every binade.
#[test]
fn nibbles_that_are_rounded() {
    let mut random = Random::new("nibbles_that_are_rounded");
    let int4 = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
    let uppers = (0..1u32 << 16).step_by(13).filter(|upper| upper & 0x7f80 != 0x7f80);
    let lowers = [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff];
    let mut scales: Vec<u32> = uppers.flat_map(|upper| lowers.map(|lower| upper << 16 | lower)).collect();
    // Rows of finite scales; the last row has an odd number of blocks. Some rows have a nonfinite scale.
    scales.truncate(scales.len() / 7 * 7);
    for at in [7 * 5, 7 * 11 + 6, 7 * 900 + 3] {
        scales[at] = 0x7f80_0000 | (at as u32 & 1);
    }
    let layout = planes(
        1,
        [scales.len() as u64 / 7, 7 * 32],
        Planes { zero: Zero::Constant(8), ..Planes::times(int4, Plane::of(F32), [1, 32]) },
    );
    let mut stored = stored(&layout, &mut random);
    stored[1] = scales.iter().flat_map(|s| s.to_le_bytes()).collect();
    check_stored(layout, &stored, &[Bf16], &mut random);
    // Form A6, whose intermediate results are rounded, too.
    for scale in [F32, Bf16] {
        let coded = Planes { form: Form::Affine, ..Planes::times(int4, Plane::of(scale), [1, 32]) };
        let layout = planes(1, [900, 7 * 32], coded);
        let mut stored = self::stored(&layout, &mut random);
        for part in [1, 4] {
            for value in stored[part].chunks_mut(scale.storage_bits().unwrap() as usize / 8) {
                let last = value.len() - 1;
                // Magnitudes of a few binades; one in 64 is nonfinite.
                let exponent = if random.next().is_multiple_of(64) { 0x7f } else { 0x3c };
                value[last] = value[last] & 0x80 | exponent;
            }
        }
        check_stored(layout, &stored, &[Bf16], &mut random);
    }
}

/// Values before any rounding are within half an ulp of f32 of the definition's result. For code books, stored values
/// of scales, offsets, constants, and floating-point zero points.
#[test]
fn listed_values_and_floats_as_zero_points() {
    let mut random = Random::new("listed_values_and_floats_as_zero_points");
    let nibbles = |book| Plane { code: Code::Book(book), packing: Packing::HighFirst };
    let stored = Plane { code: Code::Book(Book::Stored), packing: Packing::BYTES };
    let bytes = Plane { code: Code::signed(8), packing: Packing::BYTES };
    for book in [Book::Nf4, Book::Fp4] {
        for (shape, group) in [([3, 16384], 16384), ([1, 5000], 1024), ([1, 129], 128), ([2, 640], 128)] {
            check(planes(1, shape, Planes::times(nibbles(book), Plane::of(F32), [1, 64])), &WIDE, &mut random);
            let global = Some(Global { rule: GlobalRule::TimesPlus(0x3e07_7777), block: [1, group] });
            let nested = Planes { global, ..Planes::times(nibbles(book), stored, [1, 64]) };
            check(planes(1, shape, nested), &WIDE, &mut random);
        }
    }
    for block in [[1, 640], [64, 640], [1, 64]] {
        let times = Planes::times(bytes, Plane::of(F32), block);
        check(planes(1, [80, 640], Planes { form: Form::TimesConstant(0x3c01_0204), ..times }), &WIDE, &mut random);
        for zeros in [F32, Bf16, F16] {
            let zero = Zero::Grid { plane: Plane::of(zeros), plus: 0 };
            check(planes(2, [80, 640], Planes { zero, ..times }), &WIDE, &mut random);
        }
    }
}

#[test]
fn exact_values() {
    let mut random = Random::new("exact_values");
    let of = |global| Planes { global, ..Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn), [1, 16]) };
    let global = |rule| Some(Global { rule, block: [6, 96] });
    let int4 = Plane { code: Code::unsigned(4), packing: Packing::WORDS };
    let zero = Plane { code: Code::unsigned(4), packing: Packing::Columns { word: 32 } };
    let whole = Some(Global { rule: GlobalRule::Times, block: [6, 192] });
    let group = Planes { group: Group::OfColumn, ..of(whole) };
    let coded = [
        Coding::Planes(of(None)),
        Coding::Planes(of(global(GlobalRule::Times))),
        Coding::Planes(of(global(GlobalRule::Divide))),
        Coding::Planes(of(global(GlobalRule::Amax))),
        Coding::Planes(group),
        Coding::Planes(Planes { form: Form::Divide, ..of(None) }),
        Coding::Planes(Planes { form: Form::Affine, ..Planes::times(int4, Plane::of(F32), [1, 32]) }),
        Coding::Planes(Planes {
            zero: Zero::Grid { plane: zero, plus: 0 },
            ..Planes::times(int4, Plane::of(Bf16), [1, 32])
        }),
        Coding::Blocks { block: BlockType::Q4_1, factor: false },
        Coding::Blocks { block: BlockType::NVFP4, factor: true },
    ];
    for coding in coded {
        let layout = Layout::new(1, [6, 192], coding);
        let stored = stored(&layout, &mut random);
        let dequantizer = Dequantizer::new(&layout, &to(Bf16), &CastOptions::default()).unwrap();
        for window in dequantizer.windows(100..700) {
            let got = read(&dequantizer, &window, &stored);
            let elements = window.elements();
            let mut exact = vec![0; (elements.end - elements.start) as usize * 8];
            dequantizer.exact(&window, &parts(&got), &mut exact).unwrap();
            for (index, x) in elements.zip(exact.as_chunks::<8>().0) {
                let (x, p) = (f64::from_le_bytes(*x), f32::from_bits(layout.value(&parts(&stored), index).unwrap()));
                // Up to four roundings to f32, and cancellation in sums, cause the difference.
                let close = (x - f64::from(p)).abs() <= 1e-6 * x.abs() + 1e-38 || coding_adds(&coding);
                let same = x.is_nan() == p.is_nan() || !p.is_finite();
                // If the product of scales is infinite in f32, 0 becomes NaN and other values become infinite.
                let overflowed = p.is_infinite() || p.is_nan() && x == 0.0;
                assert!(close || x.is_nan() || overflowed, "{coding:?}, element {index}: {x} {p}");
                assert!(same, "{coding:?}, element {index}: {x} {p}");
            }
        }
    }
}

fn coding_adds(coding: &Coding) -> bool {
    matches!(coding, Coding::Planes(Planes { form: Form::Affine, .. }) | Coding::Blocks { block: BlockType::Q4_1, .. })
}
