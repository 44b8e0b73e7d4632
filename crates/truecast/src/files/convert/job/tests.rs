//! Offsets of pieces in the output tensors, compared with the reference definition.

use super::*;
use crate::files::convert::options::Measuring;
use crate::files::convert::quantize::scaled::Cut;
use truecast_core::Layout;
use truecast_core::scaled::{self, BlockType, Change, Code, Coding, Packing, Part, Plane, Planes, Repacking, Zero};
use truecast_kernel::CastOptions;
use truecast_schemes::{Content, Output, Target};

const NOWHERE: Stored = Stored { shard: 0, tensor: 0 };

fn planned(dtype: DType, layout: Layout, len: u64) -> Planned {
    let target = Tensor { name: "w".into(), dtype, layout, shape: [len].into() };
    Planned { name: "w".into(), target, from: dtype, src_layout: layout, cast: None, kept_by: None }
}

/// First element of each piece, for all allowed lengths of pieces.
fn firsts(item: &Item) -> impl Iterator<Item = u64> {
    let (period, unit) = (item.period.min(item.len), item.unit);
    (0..item.len).step_by(period.max(1) as usize).flat_map(move |at| (at..at + period).step_by(unit as usize))
}

#[test]
fn elements_are_at_the_bytes_of_their_layout() {
    let types = DType::ALL.into_iter().filter(|dtype| *dtype != DType::String);
    for (dtype, layout) in types.flat_map(|dtype| [(dtype, Layout::Packed), (dtype, Layout::Bytes)]) {
        let planned = planned(dtype, layout, 1_000_003);
        let item = NOWHERE.item(&planned, 0);
        for first in firsts(&item) {
            assert_eq!(Some(NOWHERE.offset(&item, first)), dtype.bytes_in(layout, first), "{dtype} {layout:?} {first}");
        }
    }
}

/// First byte of an entry in a stack of planes.
fn byte_of(plane: &Plane, shape: [u64; 2], matrix: u64, at: [u64; 2]) -> u64 {
    let bits = plane.code.bits();
    let first = (0..bits).map(|n| plane.packing.bit(bits, shape, at, n)).min().unwrap();
    matrix * plane.bytes(shape).unwrap() + first / 8
}

#[test]
fn rewritten_rows_begin_at_their_first_entry() {
    let mut seen = 0;
    for (packing, bits) in Packing::ALL.into_iter().flat_map(|packing| [2, 3, 4, 8].map(|bits| (packing, bits))) {
        let (plane, shape) = (Plane { code: Code::unsigned(bits), packing }, [384, 24]);
        let (from, to, kept, change) = (plane, plane, shape, Change::None);
        let how = Repacking { from, from_shape: shape, to, to_shape: shape, kept, transposed: false, change };
        let operation = PlaneOperation { part: Part::Codes, from: NOWHERE, how };
        let Ok(job) = Transcode::new(operation, 3, 0) else { continue };
        let item = job.item(&planned(DType::U8, Layout::Packed, 1), 0);
        for first in firsts(&item) {
            let (row, matrix) = (first / shape[1] % shape[0], first / (shape[0] * shape[1]));
            assert_eq!(job.offset(&item, first), byte_of(&plane, shape, matrix, [row, 0]), "{plane:?} {first}");
            seen += 1;
        }
    }
    assert!(seen > 1000, "{seen}");
}

fn layouts() -> Vec<scaled::Layout> {
    let int = |packing| Plane { code: Code::unsigned(4), packing };
    let [fp8, fp4, bf16, f32] = [DType::F8E4M3Fn, DType::F4E2M1, DType::Bf16, DType::F32].map(Plane::of);
    let swizzled = Plane::of(DType::F8E8M0).packed(Packing::Swizzled);
    let times = |codes, block| Planes { zero: Zero::Constant(8), ..Planes::times(codes, bf16, block) };
    let zero = |packing| Zero::Grid { plane: int(packing), plus: 0 };
    let planes = [
        Planes::times(fp8, f32, [128, 128]),
        Planes::times(fp4, swizzled, [1, 32]),
        times(int(Packing::WORDS), [1, 32]),
        Planes { zero: zero(Packing::Columns { word: 32 }), ..times(int(Packing::WORDS), [1, 128]) },
        Planes { zero: zero(Packing::BYTES), ..times(int(Packing::BYTES), [1, 16]) },
    ];
    let blocks = [BlockType::Q8_0, BlockType::MXFP4].map(|block| Coding::Blocks { block, factor: false });
    let codings = planes.into_iter().map(Coding::Planes).chain(blocks);
    codings
        .flat_map(|coding| [[3, 640, 256], [5, 64, 128]].map(|[n, r, c]| scaled::Layout::new(n, [r, c], coding)))
        .collect()
}

#[test]
fn codes_and_scales_are_at_their_entries() {
    for layout in layouts() {
        let parts = [Part::Codes, Part::Scales, Part::Zeros];
        let bytes_of = |part| layout.part_bytes(part).unwrap();
        let output = |part| {
            let (name, shape) = ("w".into(), [bytes_of(part)?].into());
            let tensor = Tensor { name, dtype: DType::U8, layout: Layout::Packed, shape };
            Some(Output { content: Content::Part(part), tensor })
        };
        let target = Target { layout, tensors: parts.into_iter().filter_map(output).collect() };
        let (how, scheme) = (Default::default(), "fp8-block".parse().unwrap());
        let cut = |layout: &_| Cut::new(layout, DType::Bf16, &how);
        let job = Scaled::new(NOWHERE, DType::Bf16, None, target, scheme, how, cut).unwrap();
        let (layout, item) = (job.layout, Job::item(&job, &planned(DType::U8, Layout::Packed, 1), 0));
        let operations = Operations::new(None, Measuring::Off, false, CastOptions::default());
        let (mut done, zeros) = (vec![0; job.outputs.len()], vec![0; 8 * layout.elements() as usize]);
        let all: Vec<u64> = firsts(&item).chain([item.len]).collect();
        for (first, len) in all.windows(2).map(|pair| (pair[0], pair[1] - pair[0])) {
            let planned = planned(DType::Bf16, Layout::Packed, item.len);
            let piece = Piece { planned: &planned, operations: &operations, amax: &[], item: &item, first, len };
            let (matrix, row) = (first / job.matrix(), first % job.matrix() / layout.cols);
            let mut put = |output: usize, offset: u64, bytes: &[u8]| {
                let Content::Part(part) = job.outputs[output].content else { panic!("a part") };
                let begin = match (layout.plane(part), layout.coding) {
                    (Some((plane, block)), _) => byte_of(&plane, layout.grid(block), matrix, [row / block[0], 0]),
                    (_, Coding::Blocks { block, .. }) => {
                        block.bytes_of([matrix * layout.rows + row, layout.cols]).unwrap()
                    }
                    _ => panic!("a plane"),
                };
                assert_eq!([offset, offset], [begin, done[output]], "{layout:?} {part:?} {first}");
                done[output] += bytes.len() as u64;
                Ok(())
            };
            job.place(&piece, &zeros, &mut put).unwrap();
        }
        let expected: Vec<u64> = parts.into_iter().filter_map(bytes_of).collect();
        assert_eq!(done, expected, "{layout:?}");
    }
}
