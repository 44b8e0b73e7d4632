//! Blocks of ggml's rule by the definition, compared with blocks that ggml made. `tests/peers/llamacpp/ggml_write.py`
//! wrote the file: eight rows of 256 f32, and their blocks in each type; then the importance of the columns of each
//! row, and the blocks that go by it.

use truecast_core::DType;
use truecast_core::scaled::{BlockType, Coding, Layout, NonFinite, ScaledError, ggml};

const ROWS: usize = 8 * 256 * 4;

static VECTORS: &[u8] = include_bytes!("../../../testdata/ggml-blocks.bin");

fn written() -> impl Iterator<Item = BlockType> {
    BlockType::ALL.into_iter().filter(|block| ggml::is_written(*block))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect()
}

/// Rows and blocks; importance and blocks.
fn vectors() -> [(Vec<f32>, &'static [u8]); 2] {
    let of_blocks: u64 = written().filter_map(|block| block.bytes_of([8, 256])).sum();
    let (plain, weighted) = VECTORS.split_at(ROWS + of_blocks as usize);
    [plain, weighted].map(|half| (floats(&half[..ROWS]), &half[ROWS..]))
}

#[test]
fn blocks_are_those_of_ggml() {
    let [(x, mut rest), _] = vectors();
    let bits: Vec<u32> = x.iter().map(|x| x.to_bits()).collect();
    for block in written() {
        let expected = rest.split_off(..block.bytes_of([8, 256]).unwrap() as usize).unwrap();
        let mut made = vec![0xa5; block.bytes() as usize];
        let blocks = bits.chunks(block.elements() as usize).zip(expected.chunks(made.len()));
        for (x, expected) in blocks {
            block.quantize(NonFinite::Error, x, &mut made).unwrap();
            assert_eq!(made, expected, "{block:?}");
        }
    }
    assert!(rest.is_empty());
}

#[test]
fn blocks_by_importance_are_those_of_ggml() {
    let [(x, _), (importance, mut rest)] = vectors();
    for block in written().filter(|block| ggml::is_weighted(*block)) {
        let size = block.bytes_of([1, 256]).unwrap() as usize;
        for (row, (x, importance)) in x.chunks(256).zip(importance.chunks(256)).enumerate() {
            let expected = rest.split_off(..size).unwrap();
            let mut made = vec![0xa5; size];
            let bits: Vec<u32> = x.iter().map(|x| x.to_bits()).collect();
            ggml::quantize_row(block, NonFinite::Error, &bits, importance, &mut made).unwrap();
            assert_eq!(made, expected, "{block:?} row {row}");
        }
    }
    assert!(rest.is_empty());
}

#[test]
fn what_is_not_finite() {
    let infinite = |x: f32| [1.0, x, -3.0].iter().cycle().take(256).map(|x| x.to_bits()).collect::<Vec<u32>>();
    for block in written() {
        let n = block.elements() as usize;
        let made = |how, x: &[u32]| {
            let mut made = vec![0; block.bytes() as usize];
            block.quantize(how, &x[..n], &mut made).map(|()| made)
        };
        let refused = made(NonFinite::Error, &infinite(f32::NAN));
        assert_eq!(refused, Err(ScaledError::NotFinite { index: 1 }), "{block:?}");
        let finite = |x| made(NonFinite::Error, &infinite(x));
        assert_eq!(made(NonFinite::Saturate, &infinite(f32::NAN)), finite(0.0), "{block:?}");
        assert_eq!(made(NonFinite::Saturate, &infinite(f32::NEG_INFINITY)), finite(-3.0), "{block:?}");
        assert_eq!(made(NonFinite::Saturate, &infinite(f32::INFINITY)), finite(3.0), "{block:?}");
    }
}

/// Codebooks count with the bits that they take.
#[test]
fn codes_have_the_bits_of_their_blocks() {
    use BlockType::{IQ2_XXS, IQ4_NL, IQ4_XS, MXFP4, Q2_K, Q3_K, Q4_1, Q5_0, Q8_0};
    let of =
        |block: BlockType| Layout::new(1, [1, block.elements()], Coding::Blocks { block, factor: false }).code_type();
    assert_eq!([IQ2_XXS, Q2_K].map(of), [DType::U2; 2]);
    assert_eq!([IQ4_NL, IQ4_XS, Q3_K, Q4_1].map(of), [DType::U4; 4]);
    assert_eq!([Q5_0, Q8_0, MXFP4].map(of), [DType::I8, DType::I8, DType::F4E2M1]);
}
