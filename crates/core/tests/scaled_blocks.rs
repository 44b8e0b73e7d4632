//! Blocks of GGUF files against the package `gguf` 0.19.0 and ggml (`tests/peers/checkpoints/gguf_blocks.py`).

use truecast_core::scaled::*;

const FILE: &[u8] = include_bytes!("../../../testdata/gguf-blocks.bin");
const WRITTEN: u32 = 1 << 31;

struct Record {
    block: BlockType,
    writes: bool,
    blocks: Vec<u8>,
    values: Vec<u32>,
}

fn u32s(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn records() -> Vec<Record> {
    let (mut rest, mut records) = (FILE, Vec::new());
    while let Some(head) = rest.split_off(..12) {
        let [kind, n, elements] = u32s(head)[..] else { unreachable!("three words") };
        let (writes, block) = (kind >= WRITTEN, BlockType::of_id(kind & !WRITTEN).unwrap());
        assert_eq!(u64::from(elements), block.elements());
        let mut sizes = [n as usize * block.bytes() as usize, 4 * (n * elements) as usize];
        // The source comes first.
        sizes.rotate_left(writes.into());
        let mut parts = sizes.map(|size| rest.split_off(..size).unwrap());
        parts.rotate_left(writes.into());
        let [blocks, values] = parts;
        records.push(Record { block, writes, blocks: blocks.to_vec(), values: u32s(values) });
    }
    records
}

#[test]
fn values_are_those_of_gguf() {
    let mut read = Vec::new();
    for Record { block, blocks, values, .. } in records().into_iter().filter(|r| !r.writes) {
        read.push(block);
        let layout = Layout::new(1, [1, values.len() as u64], Coding::Blocks { block, factor: false });
        let parts = Parts { codes: &blocks, ..Parts::default() };
        layout.check_parts(&parts).unwrap();
        for (i, expected) in values.iter().enumerate() {
            let got = layout.value(&parts, i as u64).unwrap();
            assert_eq!(
                got,
                *expected,
                "{}: element {i}: {} {}",
                block.name(),
                f32::from_bits(got),
                f32::from_bits(*expected)
            );
        }
    }
    read.sort();
    assert_eq!(read, BlockType::ALL);
}

#[test]
fn blocks_are_those_of_gguf() {
    for Record { block, blocks, values, .. } in records().into_iter().filter(|r| r.writes) {
        let (elements, bytes) = (block.elements() as usize, block.bytes() as usize);
        for (i, (values, expected)) in values.chunks(elements).zip(blocks.chunks(bytes)).enumerate() {
            let mut got = vec![0xa5; bytes];
            block.quantize(NonFinite::Error, values, &mut got).unwrap();
            assert_eq!(got, expected, "{}: block {i}", block.name());
        }
    }
}

/// Vectors of `docs/spec/checkpoints.md §9.4, §9.5`.
#[test]
fn vectors_of_the_page() {
    let mut mxfp4 = [0; 17];
    (mxfp4[0], mxfp4[1]) = (0x7f, 0x21);
    let value = |block: BlockType, bytes: &[u8], i| {
        let layout = Layout::new(1, [1, block.elements()], Coding::Blocks { block, factor: false });
        layout.value(&Parts { codes: bytes, ..Parts::default() }, i).map(f32::from_bits)
    };
    assert_eq!([value(BlockType::MXFP4, &mxfp4, 0), value(BlockType::MXFP4, &mxfp4, 16)], [Ok(0.5), Ok(1.0)]);
    mxfp4[1] = 0x88;
    assert_eq!(value(BlockType::MXFP4, &mxfp4, 0).map(f32::to_bits), Ok(0), "code 8 is +0");
    mxfp4[0] = 0xff;
    assert_eq!(value(BlockType::MXFP4, &mxfp4, 3), Err(ScaledError::Scale { index: 3, scale: 0xff }));
    let mut nvfp4 = [0; 36];
    nvfp4[..4].copy_from_slice(&[0x38, 0x40, 0x48, 0x50]);
    (nvfp4[4], nvfp4[12]) = (0x21, 0x21);
    let got = [0, 8, 16, 24].map(|i| value(BlockType::NVFP4, &nvfp4, i).unwrap());
    assert_eq!(got, [0.5, 1.0, 1.0, 2.0]);
    nvfp4[..4].copy_from_slice(&[0xff, 0x7f, 0x00, 0x80]);
    let got = [0, 16].map(|i| value(BlockType::NVFP4, &nvfp4, i).unwrap());
    assert_eq!(got, [240.0, 0.0]); // 480 / 2 * 1, and zero
    // One factor per matrix.
    let layout = Layout::new(2, [1, 64], Coding::Blocks { block: BlockType::NVFP4, factor: true });
    nvfp4[..4].copy_from_slice(&[0x38; 4]);
    let codes = [nvfp4, nvfp4].concat();
    let global: Vec<u8> = [2.0f32, -0.25].iter().flat_map(|g| g.to_le_bytes()).collect();
    let parts = Parts { codes: &codes, global: &global, ..Parts::default() };
    layout.check_parts(&parts).unwrap();
    let got = [0, 64].map(|i| f32::from_bits(layout.value(&parts, i).unwrap()));
    assert_eq!(got, [1.0, -0.125]);
}

#[test]
fn numbers_and_sizes() {
    let of = |id| BlockType::of_id(id).map(|b| (b.name(), b.elements(), b.bytes()));
    assert_eq!(of(8), Some(("Q8_0", 32, 34)));
    assert_eq!(of(12), Some(("Q4_K", 256, 144)));
    assert_eq!(of(14), Some(("Q6_K", 256, 210)));
    assert_eq!(of(16), Some(("IQ2_XXS", 256, 66)));
    assert_eq!(of(4), None);
    assert_eq!(of(43), None);
}
