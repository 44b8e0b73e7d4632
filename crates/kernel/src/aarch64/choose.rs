//! Choice of the hand-written kernel for an operation.

use super::f16::{f16_to_f32, f32_to_f16};
use super::rows::Rows;
use super::scaled;
use crate::arch::{Kernel, Kernels};
use crate::level::Neon;
use crate::numbers::encode::shape;
use crate::numbers::op::Op;
use crate::scaled::lookup::{Codes, Tables};
use crate::tail::stage;

impl Kernels for Neon {
    fn operations(&self, ops: &[Op]) -> Kernel {
        Some(match *ops {
            // `fcvtl` makes NaN quiet. So does every encoder, so the result is the same with and without it.
            [Op::F16ToF32(nan)] if nan.keeps_payload() => stage(f16_to_f32::<true>(*self)),
            [Op::F16ToF32(_)] => stage(f16_to_f32::<false>(*self)),
            [Op::Nearest { numbers, bytes: 2 }] if numbers.is_ieee_f16 => match numbers.shape {
                shape::SUBNORMAL_PAYLOAD => stage(f32_to_f16::<true>(*self)),
                shape::SUBNORMAL_SPECIAL => stage(f32_to_f16::<false>(*self)),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn table(&self, results: &[u64; 256], bytes: usize, code_bits: u32) -> Kernel {
        match bytes {
            1 => Some(stage(Rows::<1>::new(results, code_bits, *self))),
            2 => Some(stage(Rows::<2>::new(results, code_bits, *self))),
            4 => Some(Rows::<4>::new(results, code_bits, *self)).filter(Rows::is_faster_than_loads).map(stage),
            _ => None,
        }
    }

    fn lookup16(&self, codes: Codes<'_>, block: usize, tables: Tables<'_>, dst: &mut [u8], _streams: bool) -> usize {
        scaled::lookup16(*self, codes, block, tables, dst)
    }
}
