//! Choice of the AVX-512 kernel for a sequence of operations. Only this file names the kernels.

use super::blocks::{Blocks, Params};
use super::fused::Fused;
use super::split::BySplit;
use super::table::Planes;
use super::widen::Widen;
use super::{measure, quantize, scaled, split, threshold_table, transpose};
use crate::arch::{Kernel, Kernels, Values};
use crate::level::Avx512;
use crate::measure::found::{Added, ByteCodes, Next, Small, Special, Sums};
use crate::measure::limits::Range;
use crate::numbers::encode::{Nearest, shape};
use crate::numbers::op::{Int, Op};
use crate::numbers::split::Split;
use crate::numbers::wide::NanBits;
use crate::scaled::lookup::{Codes, Table256, Tables};
use crate::scaled::rows::{CodesMut, Divided};
use crate::scaled::threshold_table::{Shape, Stepped, Steps};
use crate::stage::Stage;
use crate::tail::{run, stage};
use crate::x86::F16_INSTRUCTION;
use crate::x86::choose::{SPECIAL, UNSIGNED_SPECIAL, UPPER, fused, to_bytes, with_source};
use crate::x86::source::{self, Source512};

impl Kernels for Avx512 {
    fn operations(&self, ops: &[Op]) -> Kernel {
        let token = *self;
        let own = match *ops {
            // AVX-512 has conversion instructions for 64-bit integers. Compiled lanes use these instructions and are
            // faster than a kernel.
            [Op::IntToF32Clamped(Int { bytes: 8, .. }) | Op::IntToF32Odd(Int { bytes: 8, .. }), ..] => return None,
            [ref load @ .., Op::Nearest { numbers, bytes }] => fused(load, numbers, bytes, token),
            [Op::F16ToF32(nan)] => Some(widened(source::F16, nan, token)),
            [Op::Bf16ToF32(nan)] => Some(widened(source::Bf16, nan, token)),
            _ => None,
        };
        own.or_else(|| token.avx2().operations(ops))
    }

    fn table(&self, results: &[u64; 256], bytes: usize, code_bits: u32) -> Kernel {
        Some(match bytes {
            1 => stage(Planes::<1>::new(results, code_bits, *self)),
            2 => stage(Planes::<2>::new(results, code_bits, *self)),
            4 => stage(Planes::<4>::new(results, code_bits, *self)),
            _ => stage(Planes::<8>::new(results, code_bits, *self)),
        })
    }

    fn has_split(&self) -> bool {
        true
    }

    fn split_packs(&self, src_bytes: usize, bits: u32) -> bool {
        split::packs(src_bytes, bits)
    }

    fn look_up(&self, split: &Split, src: (u32, &[u8]), dst: (u32, &mut [u8]), n: usize, streams: bool) -> bool {
        run(&BySplit { split, src_bits: src.0, token: *self }, src, dst, n, streams)
    }

    fn lookup16(&self, codes: Codes<'_>, block: usize, tables: Tables<'_>, dst: &mut [u8], streams: bool) -> usize {
        scaled::lookup16(*self, codes, block, tables, dst, streams)
    }

    fn has_lookup256(&self) -> bool {
        true
    }

    fn lookup256(&self, rows: &mut [(&[u8], &mut [u8])], block: usize, tables: &[Table256], streams: bool) -> usize {
        scaled::lookup256(*self, rows, block, tables, streams)
    }

    fn transpose8(&self, rows: &[u8], stride: usize, n_cols: usize, columns: CodesMut<'_>) -> usize {
        transpose::transpose8(*self, rows, stride, n_cols, columns)
    }

    fn block_amax(&self, block: usize, src: &[u8], ahead: usize, magnitudes: &mut [i16]) -> usize {
        scaled::block_amax(*self, block, src, ahead, magnitudes)
    }

    fn encode_quotients(&self, divided: &Divided<'_>, split: &Split, bits: usize, dst: CodesMut<'_>) -> usize {
        quantize::encode(*self, divided, split, bits, dst)
    }

    fn has_thresholds(&self) -> bool {
        true
    }

    fn add_thresholds(&self, shape: &Shape, divisors: &[f32], tables: &mut Vec<Steps>) {
        threshold_table::tables(*self, shape, divisors, tables);
    }

    fn encode_by_thresholds(&self, stepped: &Stepped<'_>, dst: CodesMut<'_>) -> usize {
        threshold_table::encode(*self, stepped, dst)
    }

    fn add(
        &self,
        masked: bool,
        (x_bytes, x): Values<'_>,
        (y_bytes, y): Values<'_>,
        next: [Next; 2],
        sums: &mut Sums,
    ) -> Added {
        let seen = match (x_bytes, y_bytes, masked) {
            (4, 4, false) => measure::add::<64, 64, false>(*self, x, y, next, sums),
            (4, 4, true) => measure::add::<64, 64, true>(*self, x, y, next, sums),
            (4, _, false) => measure::add::<64, 128, false>(*self, x, y, next, sums),
            (4, _, true) => measure::add::<64, 128, true>(*self, x, y, next, sums),
            (_, 4, false) => measure::add::<128, 64, false>(*self, x, y, next, sums),
            (_, 4, true) => measure::add::<128, 64, true>(*self, x, y, next, sums),
            (.., false) => measure::add::<128, 128, false>(*self, x, y, next, sums),
            (.., true) => measure::add::<128, 128, true>(*self, x, y, next, sums),
        };
        seen.into()
    }

    fn add_values(&self, masked: bool, (bytes, values): Values<'_>, next: [Next; 2], sums: &mut Sums) -> Added {
        let seen = match (bytes, masked) {
            (4, false) => measure::add_values::<64, false>(*self, values, next, sums),
            (4, true) => measure::add_values::<64, true>(*self, values, next, sums),
            (_, false) => measure::add_values::<128, false>(*self, values, next, sums),
            (_, true) => measure::add_values::<128, true>(*self, values, next, sums),
        };
        seen.into()
    }

    fn small_results(
        &self,
        masked: bool,
        (x_bytes, x): Values<'_>,
        (y_bytes, y): Values<'_>,
        min_normal: f64,
    ) -> Option<Small> {
        Some(match (x_bytes, y_bytes, masked) {
            (4, 4, false) => measure::small_results::<64, 64, false>(*self, x, y, min_normal),
            (4, 4, true) => measure::small_results::<64, 64, true>(*self, x, y, min_normal),
            (4, ..) => measure::small_results::<64, 128, true>(*self, x, y, min_normal),
            (_, 4, _) => measure::small_results::<128, 64, true>(*self, x, y, min_normal),
            _ => measure::small_results::<128, 128, true>(*self, x, y, min_normal),
        })
    }

    fn small_codes(&self, codes: &ByteCodes, x: &[u8], y: &[u8]) -> Option<Small> {
        Some(match codes.src_bytes {
            2 => measure::small_codes::<128>(*self, codes, x, y),
            _ => measure::small_codes::<256>(*self, codes, x, y),
        })
    }

    fn specials(&self, (x_bytes, x): Values<'_>, (y_bytes, y): Values<'_>, range: &Range) -> Option<Special> {
        Some(match (x_bytes, y_bytes) {
            (4, 4) => measure::specials::<64, 64>(*self, x, y, range),
            (4, _) => measure::specials::<64, 128>(*self, x, y, range),
            (_, 4) => measure::specials::<128, 64>(*self, x, y, range),
            _ => measure::specials::<128, 128>(*self, x, y, range),
        })
    }
}

fn widened<S: Source512>(source: S, nan: NanBits, token: Avx512) -> Box<dyn Stage> {
    if nan.keeps_payload() {
        blocks::<_, 4>(Widen::<S, true>(source), token)
    } else {
        blocks::<_, 4>(Widen::<S, false>(source), token)
    }
}

fn blocks<T: Params<N> + 'static, const N: usize>(params: T, token: Avx512) -> Box<dyn Stage> {
    stage(Blocks::<T, N>(params, token))
}

fn fused(load: &[Op], numbers: Nearest, bytes: usize, token: Avx512) -> Kernel {
    fused!(
        load,
        numbers,
        bytes,
        |source, SHAPE| Some(blocks::<_, 2>(Fused::<_, SHAPE>(numbers, source), token)),
        floats(load, numbers, token)
    )
}

fn floats(load: &[Op], numbers: Nearest, token: Avx512) -> Kernel {
    with_source!(
        load, |source| to_bytes!(numbers, |SHAPE| Some(blocks::<_, 1>(Fused::<_, SHAPE>(numbers, source), token))),
        [] => F32,
        [Op::Bf16ToF32(_)] => Bf16,
        [Op::F16ToF32(_)] => F16,
        [Op::F64ToF32Odd { reduced: true }] => F64Reduced
    )
}
