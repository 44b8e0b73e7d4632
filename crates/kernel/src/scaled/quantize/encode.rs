//! Divides elements by the scales of their blocks, and encodes the quotients.

use super::blocks::{Blocks, Tables};
use super::plan::BlockPlan;
use super::source::{F32, Ratios, Source, by_source, how, may_be_nearly_divided};
use crate::level::Task;
use crate::scaled::ahead::AHEAD;
use crate::scaled::rows::{CodesMut, Divided, NextRows, Rows};
use crate::scaled::threshold_table::Stepped;
use truecast_core::DType;

/// Number of quotients computed at a time.
const TILE: usize = 1024;

impl BlockPlan {
    /// Finds the operands of each block from the stored scale.
    pub fn find_operands(&self, dtype: DType, blocks: &mut Blocks) {
        let Blocks { most, ranges, stored, global, how, t, u, scales: buffers, .. } = blocks;
        self.scale.divisors(stored, *global, t, buffers);
        u.clear();
        if self.scale.has_inverses() {
            *how = how::TIMES;
        } else if !ranges.is_empty() {
            *how = how::DIVIDE_ADD;
            let [low, high] = self.encode.limits();
            let zero = |(s, [lowest, _]): (&F32, &[f32; 2])| {
                (low - lowest / f32::from_le_bytes(*s)).clamp(low, high).round_ties_even().to_le_bytes()
            };
            u.extend(t.iter().zip(&*ranges).map(zero));
        } else {
            *how = how::DIVIDE;
            if matches!(dtype, DType::Bf16 | DType::F16) && self.level().has_fused_products() {
                u.resize(t.len(), [0; 4]);
                if self.level().run(Inverses { divisors: t, most: f32::from_bits(*most), inverses: u }) {
                    *how = how::RECIPROCAL;
                }
            }
        }
    }

    /// Encodes rows with stored scales to `bits` bits per code: 8, or packed. Returns whether the next rows were
    /// prefetched.
    pub fn divide_and_encode(
        &self,
        rows: &Rows<'_>,
        next: NextRows<'_>,
        bits: usize,
        mut to: CodesMut<'_>,
        blocks: &mut Blocks,
    ) -> bool {
        let mut done = self.by_thresholds(rows, next, to.reborrow(), blocks);
        if done < rows.cols {
            self.find_operands(rows.dtype, blocks);
            if done == 0 {
                let [t, u] = blocks.operands();
                let divided = Divided { rows: rows.in_groups(), how: blocks.how, t, u, next };
                done = self.encode.encode_quotients(&divided, bits, to.reborrow());
            }
        }
        let (packed, done_bytes) = ((rows.cols * bits).div_ceil(8), done * bits / 8);
        for (i, to) in to.bytes.chunks_mut(to.stride).enumerate() {
            if done > 0 && bits == self.encode.bits() {
                self.encode.swap(&mut to[..done_bytes]);
            }
            if done < rows.cols {
                self.rest_of_row(
                    &Rows { bytes: rows.row(i), n_rows: 1, ..*rows },
                    done,
                    bits,
                    &mut to[..packed],
                    blocks,
                );
            }
        }
        done > 0 && !next.bytes.is_empty()
    }

    /// Encodes rows by threshold tables. Returns the number of leading elements that are encoded in each row.
    fn by_thresholds(&self, rows: &Rows<'_>, next: NextRows<'_>, to: CodesMut<'_>, blocks: &mut Blocks) -> usize {
        let Some(thresholds) = self.thresholds.as_ref().filter(|_| rows.dtype == DType::Bf16) else { return 0 };
        if !thresholds.make(&self.scale, rows.n_rows * rows.block.min(rows.cols), blocks) {
            return 0;
        }
        let Tables { steps, firsts, indices, .. } = &blocks.tables;
        let stepped =
            Stepped { rows: rows.in_groups(), shape: &thresholds.shape, firsts, indices, tables: steps, next };
        self.level().kernels().encode_by_thresholds(&stepped, to)
    }

    fn rest_of_row(&self, row: &Rows<'_>, done: usize, bits: usize, to: &mut [u8], blocks: &mut Blocks) {
        let Rows { dtype, bytes: src, cols: n, block, .. } = *row;
        if bits < 8 && block < n && !block.is_multiple_of(8) {
            let mut codes = vec![0; n];
            self.rest_of_row(row, 0, 8, &mut codes, blocks);
            self.encode.pack(&codes, to);
            return;
        }
        let [mut ratios, mut codes] = std::mem::take(&mut blocks.tile);
        // Encoders prefetch the bytes after the source. These extra bytes keep that prefetch inside the L1 cache.
        ratios.resize(TILE * 4 + AHEAD, 0);
        codes.resize(TILE, 0);
        let ratio_bytes = self.encode.ratio_bytes();
        // Whole blocks per step, or a block in tiles.
        let step = if block < TILE { TILE / block * block } else { block.min(n) };
        for first in (done..n).step_by(step) {
            let end = n.min(first + step);
            for at in (first..end).step_by(TILE) {
                let len = TILE.min(end - at);
                let ratios = &mut ratios[..len * ratio_bytes];
                by_source!(dtype, S => {
                    let src = &S::elements(src)[at..at + len];
                    match ratio_bytes {
                        2 => self.divide::<S, 2>(src, block, at / block, ratios.as_chunks_mut().0, blocks),
                        _ => self.divide::<S, 4>(src, block, at / block, ratios.as_chunks_mut().0, blocks),
                    }
                });
                let to = &mut to[at * bits / 8..((at + len) * bits).div_ceil(8)];
                self.encode.codes(ratios, bits, &mut codes[..len], to, &mut blocks.scratch);
            }
        }
        blocks.tile = [ratios, codes];
    }

    /// Quotients of elements; the first element begins block `first`.
    fn divide<S: Source, const N: usize>(
        &self,
        src: &[S::Element],
        block: usize,
        first: usize,
        ratios: &mut [[u8; N]],
        blocks: &Blocks,
    ) {
        let (level, [t, u]) = (self.level(), blocks.operands().map(|all| &all[first..]));
        match blocks.how {
            how::TIMES => level.run(Ratios::<S, { how::TIMES }, N> { src, block, t, u, ratios }),
            how::DIVIDE => level.run(Ratios::<S, { how::DIVIDE }, N> { src, block, t, u, ratios }),
            how::DIVIDE_ADD => level.run(Ratios::<S, { how::DIVIDE_ADD }, N> { src, block, t, u, ratios }),
            _ => level.run_with_fused_products(Ratios::<S, { how::RECIPROCAL }, N> { src, block, t, u, ratios }),
        }
    }
}

/// Inverses of divisors. The result is whether every inverse can replace division.
struct Inverses<'a> {
    divisors: &'a [F32],
    most: f32,
    inverses: &'a mut [F32],
}

impl Task for Inverses<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let mut all = true;
        for (inverse, s) in self.inverses.iter_mut().zip(self.divisors) {
            let s = f32::from_le_bytes(*s);
            *inverse = (1.0 / s).to_le_bytes();
            all &= may_be_nearly_divided(s, self.most);
        }
        all
    }
}
