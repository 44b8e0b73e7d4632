//! Stores scales, zero points and GGUF blocks at their positions.

use super::blocks::Blocks;
use crate::scaled::cut::Cut;
use crate::scaled::rows::{CodesMut, Rows};
use truecast_core::scaled::{BlockType, Packing, Part, Planes};

pub(super) struct PartMut<'a> {
    pub part: Part,
    pub cut: Cut,
    pub bytes: &'a mut [u8],
}

impl PartMut<'_> {
    /// Bytes for the codes of rows at `[row, col]`, packed to `bits` bits.
    pub fn rows_mut(&mut self, [row, col]: [u64; 2], rows: &Rows<'_>, bits: usize, streams: bool) -> CodesMut<'_> {
        let (first, packed) = (self.cut.byte_of([row, col]), (rows.cols * bits).div_ceil(8));
        let stride = if rows.n_rows > 1 { self.cut.byte_of([row + 1, col]) - first } else { packed };
        CodesMut { bytes: &mut self.bytes[first..][..(rows.n_rows - 1) * stride + packed], stride, streams }
    }
}

pub(super) struct Parts<'a> {
    pub codes: PartMut<'a>,
    /// `None` for blocks that contain their scales.
    pub scales: Option<PartMut<'a>>,
    pub zeros: Option<PartMut<'a>>,
}

impl Parts<'_> {
    /// Sets bits outside entries to zero.
    pub fn fill_gaps(&mut self, planes: &Planes) {
        if planes.codes.packing == Packing::WORDS {
            let bits = self.codes.cut.shape[1] * u64::from(planes.codes.code.bits());
            let (used, all) = (bits.div_ceil(8) as usize, bits.div_ceil(32) as usize * 4);
            if used != all {
                self.codes.bytes.chunks_mut(all).for_each(|row| row[used..].fill(0));
            }
        }
        for part in [&mut self.scales, &mut self.zeros].into_iter().flatten() {
            if part.part == Part::Zeros || part.cut.plane.packing != Packing::BYTES {
                part.bytes.fill(0);
            }
        }
    }

    /// Writes scales and zero points of consecutive blocks in a grid row. `half` is added to zero points.
    pub fn store(&mut self, [row, first]: [u64; 2], blocks: &Blocks, half: f32) {
        if let Some(PartMut { cut, bytes, .. }) = &mut self.scales {
            let size = cut.plane.code.bits() as usize / 8;
            // Bytes of consecutive entries that are stored together.
            let together = match cut.plane.packing {
                Packing::Rows { .. } => blocks.stored.len(),
                Packing::Swizzled if first.is_multiple_of(4) => 4,
                _ => size,
            };
            for (i, scales) in blocks.stored.chunks(together).enumerate() {
                let at = cut.byte_of([row, first + (i * together / size) as u64]);
                bytes[at..at + scales.len()].copy_from_slice(scales);
            }
        }
        if let Some(PartMut { cut, bytes, .. }) = &mut self.zeros {
            for (i, zero) in blocks.zeros().iter().enumerate() {
                cut.set([row, first + i as u64], bytes, (f32::from_le_bytes(*zero) + half) as i32 as u64);
            }
        }
    }

    /// Writes blocks of 32 elements from the start of a row: scale and codes of each block.
    pub fn store_blocks(&mut self, block: BlockType, row: u64, blocks: &Blocks, codes: &[u8]) {
        let from = self.codes.cut.byte_of([row, 0]);
        let (bytes, codes) = (&mut self.codes.bytes[from..], codes.as_chunks::<32>().0);
        if block == BlockType::MXFP4 {
            for ((to, scale), codes) in bytes.as_chunks_mut::<17>().0.iter_mut().zip(&blocks.stored).zip(codes) {
                to[0] = *scale;
                for i in 0..16 {
                    to[1 + i] = codes[i] | codes[16 + i] << 4;
                }
            }
        } else {
            let scales = blocks.stored.as_chunks::<2>().0;
            for ((to, scale), codes) in bytes.as_chunks_mut::<34>().0.iter_mut().zip(scales).zip(codes) {
                to[..2].copy_from_slice(scale);
                to[2..].copy_from_slice(codes);
            }
        }
    }
}
