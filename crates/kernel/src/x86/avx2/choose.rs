//! Choice of the AVX2 kernel for a sequence of operations. Only this file names the kernels.

use super::fused::{F32ToU8, HalfToU8, ToU16};
use super::rows::Rows;
use super::shorts::ByF32;
use super::{bytes, f64, half, i64, scaled, threshold_table};
use crate::arch::{Kernel, Kernels};
use crate::level::Avx2;
use crate::numbers::encode::{Nearest, shape};
use crate::numbers::op::{Int, Op};
use crate::scaled::lookup::{Codes, Tables};
use crate::scaled::rows::CodesMut;
use crate::scaled::threshold_table::{Shape, Stepped, Steps};
use crate::tail::stage;
use crate::x86::F16_INSTRUCTION;
use crate::x86::choose::{SPECIAL, UNSIGNED_SPECIAL, UPPER, fused, to_bytes, with_source};
use crate::x86::source::{self, Source256};

impl Kernels for Avx2 {
    fn operations(&self, ops: &[Op]) -> Kernel {
        let token = *self;
        match *ops {
            [ref load @ .., Op::Nearest { numbers, bytes }] => fused(load, numbers, bytes, token),
            [Op::F16ToF32(nan)] => Some(if nan.keeps_payload() {
                // The instruction makes NaN quiet. This is right for an intermediate NaN too, because the encoder sets
                // the quiet bit.
                stage(half::f16_to_f32::<true>(token))
            } else {
                stage(half::f16_to_f32::<false>(token))
            }),
            [Op::F64ToF32Nearest(numbers)] if numbers.overflows_to_inf() => Some(if numbers.keeps_payload() {
                stage(f64::f64_to_f32::<true>(token))
            } else {
                stage(f64::f64_to_f32::<false>(token))
            }),
            [Op::F32ToF64(numbers)] if numbers.keeps_inf() => Some(if numbers.keeps_payload() {
                stage(f64::f32_to_f64::<true>(token))
            } else {
                stage(f64::f32_to_f64::<false>(token))
            }),
            [Op::F32ToInt { numbers, bytes }] if numbers.truncates_and_wraps() => match (bytes, numbers.nan_and_mask())
            {
                (1, (0, mask)) => Some(stage(bytes::Truncates(mask as u8, token))),
                (8, (0, _)) => Some(stage(i64::f32_to_i64(token))),
                _ => None,
            },
            [Op::IntToF32(Int { bytes: 8, signed: false })] => Some(stage(i64::u64_to_f32(token))),
            [Op::IntToInt { from: Int { bytes: 8, .. }, range, bytes: 1 }] if range.bounds.is_none() => {
                Some(stage(bytes::Wraps(range.mask as u8, token)))
            }
            [Op::IntToInt { from: Int { bytes: 4, signed }, range, bytes: 1 }] => {
                let mask = range.mask as u8;
                Some(match (signed, range.bounds) {
                    (true, bounds) => {
                        let (low, high) =
                            bounds.map_or((i32::MIN.into(), i32::MAX.into()), |(l, h)| (l as i64, h as i64));
                        let range = [low, high].map(|end| end.clamp(i32::MIN.into(), i32::MAX.into()) as u32);
                        stage(bytes::Clamps::<true>(range, mask, token))
                    }
                    (false, bounds) => {
                        let (low, high) = bounds.unwrap_or((0, u32::MAX.into()));
                        let range = [low, high].map(|end| end.min(u32::MAX.into()) as u32);
                        stage(bytes::Clamps::<false>(range, mask, token))
                    }
                })
            }
            _ => None,
        }
    }

    fn table(&self, results: &[u64; 256], bytes: usize, code_bits: u32) -> Kernel {
        Some(match bytes {
            1 => stage(Rows::<1>::new(results, code_bits, *self)),
            2 => stage(Rows::<2>::new(results, code_bits, *self)),
            4 => stage(Rows::<4>::new(results, code_bits, *self)),
            _ => stage(Rows::<8>::new(results, code_bits, *self)),
        })
    }

    fn lookup16(&self, codes: Codes<'_>, block: usize, tables: Tables<'_>, dst: &mut [u8], _streams: bool) -> usize {
        scaled::lookup16(*self, codes, block, tables, dst)
    }

    fn block_amax(&self, block: usize, src: &[u8], ahead: usize, magnitudes: &mut [i16]) -> usize {
        scaled::block_amax(*self, block, src, ahead, magnitudes)
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
}

/// Makes the kernel from integers of 16 and 64 bits to floats of 16 bits. For integers of other widths, lanes are as
/// fast.
fn integers<S: Source256>(source: S, numbers: Nearest, token: Avx2) -> Kernel {
    const F16: u8 = F16_INSTRUCTION | shape::PAYLOAD;
    if numbers.shape & shape::UPPER_BITS != 0 {
        return Some(stage(ToU16::<_, UPPER>(numbers, source, token)));
    }
    numbers.is_ieee_f16.then(|| stage(ToU16::<_, F16>(numbers, source, token)))
}

fn fused(load: &[Op], numbers: Nearest, bytes: usize, token: Avx2) -> Kernel {
    if let ([Op::IntToF32(int) | Op::IntToF32Clamped(int) | Op::IntToF32Odd(int)], 2) = (load, bytes) {
        return match int {
            Int { bytes: 2, signed: true } => integers(source::Integer::<2, true>, numbers, token),
            Int { bytes: 2, signed: false } => integers(source::Integer::<2, false>, numbers, token),
            Int { bytes: 8, signed: true } => integers(source::Integer::<8, true>, numbers, token),
            Int { bytes: 8, signed: false } => integers(source::Integer::<8, false>, numbers, token),
            _ => None,
        };
    }
    fused!(
        load,
        numbers,
        bytes,
        |source, SHAPE| Some(stage(ToU16::<_, SHAPE>(numbers, source, token))),
        floats(load, numbers, token)
    )
}

fn floats(load: &[Op], numbers: Nearest, token: Avx2) -> Kernel {
    match load {
        [Op::Bf16ToF32(_)] => to_bytes!(numbers, |SHAPE| shorts::<_, SHAPE>(source::Bf16, numbers, token)),
        [Op::F16ToF32(_)] => to_bytes!(numbers, |SHAPE| shorts::<_, SHAPE>(source::F16, numbers, token)),
        _ => with_source!(
            load, |source| to_bytes!(numbers, |SHAPE| words::<_, SHAPE>(source, numbers, token)),
            [] => F32,
            [Op::F64ToF32Odd { reduced: true }] => F64Reduced
        ),
    }
}

fn words<S: Source256, const SHAPE: u8>(source: S, numbers: Nearest, token: Avx2) -> Kernel {
    F32ToU8::<S, SHAPE>::new(numbers, source, token).map(stage)
}

fn shorts<S: ByF32, const SHAPE: u8>(source: S, numbers: Nearest, token: Avx2) -> Kernel {
    HalfToU8::<S, SHAPE>::new(numbers, source, token).map(stage)
}
