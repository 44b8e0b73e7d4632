//! Which kernel written by hand there is for operations, at a level: the only place that names them.

use super::bits::{Pack6, Unpack6};
use super::float::{Converts, F16ToF32, F32ToF16, F32ToF64, F64ToF32, F64ToF32Odd};
use super::rows::Rows;
use super::scaled;
use crate::level::Level;
pub(crate) use crate::no_kernels::{add, add_values, small_results, specials};
pub(crate) use crate::no_kernels::{by_steps, has_steps, steps};
pub(crate) use crate::no_kernels::{encode, full, has_full, has_nibbles, largest, nibbles, operands, turn};
pub(crate) use crate::no_kernels::{has_split, look_up, split_packs};
use crate::numbers::encode::shape;
use crate::numbers::op::Op;
use crate::scaled::lookup::{Codes, Tables};
use crate::stage::Stage;
use crate::tail::{run, stage};

type Kernel = Option<Box<dyn Stage>>;

/// The kernel that computes these operations, one after the other, in one loop.
pub(crate) fn kernel(ops: &[Op], level: Level) -> Kernel {
    let Level::Neon(token) = level else { return None };
    Some(match *ops {
        [Op::F16ToF32(nan)] => match nan.keeps_payload() {
            // The instruction quiets NaN. The intermediate's NaN may be either: what encodes it sets the quiet bit.
            true => stage(Converts(F16ToF32::<true>, token)),
            false => stage(Converts(F16ToF32::<false>, token)),
        },
        [Op::Nearest { numbers, bytes: 2 }] if numbers.is_ieee_f16 => match numbers.shape {
            shape::SUBNORMAL_PAYLOAD => stage(Converts(F32ToF16::<true>, token)),
            shape::SUBNORMAL_SPECIAL => stage(Converts(F32ToF16::<false>, token)),
            _ => return None,
        },
        [Op::F64ToF32Nearest(numbers)] if numbers.overflows_to_inf() => match numbers.keeps_payload() {
            true => stage(Converts(F64ToF32::<true>, token)),
            false => stage(Converts(F64ToF32::<false>, token)),
        },
        [Op::F32ToF64(numbers)] if numbers.keeps_inf() => match numbers.keeps_payload() {
            true => stage(Converts(F32ToF64::<true>, token)),
            false => stage(Converts(F32ToF64::<false>, token)),
        },
        // What may be reduced need not be.
        [Op::F64ToF32Odd { .. }] => stage(Converts(F64ToF32Odd, token)),
        _ => return None,
    })
}

/// The lookup of 256 results of so many bytes, of bytes or of packed codes of so many bits.
pub(crate) fn table(results: &[u64; 256], bytes: usize, code_bits: u32, level: Level) -> Kernel {
    let Level::Neon(token) = level else { return None };
    match bytes {
        1 => Some(stage(Rows::<1>::new(results, code_bits, token))),
        2 => Some(stage(Rows::<2>::new(results, code_bits, token))),
        4 => Some(Rows::<4>::new(results, code_bits, token)).filter(Rows::pays).map(stage),
        _ => None,
    }
}

/// Looks up elements with tables of 16 results of two bytes, and returns how many it did, from the first on.
pub(crate) fn sixteen(
    level: Level,
    codes: Codes<'_>,
    block: usize,
    tables: Tables<'_>,
    dst: &mut [u8],
    _streams: bool,
) -> usize {
    let Level::Neon(token) = level else { return 0 };
    scaled::sixteen(token, codes, block, tables, dst)
}

/// Unpacks `n` elements of so many bits into bytes. False, and nothing is done, if no kernel does.
pub(crate) fn unpack(bits: u32, level: Level, src: &[u8], dst: &mut [u8], n: usize) -> bool {
    match (level, bits) {
        (Level::Neon(token), 6) => run(&Unpack6(token), (bits, src), (8, dst), n),
        _ => return false,
    }
    true
}

/// Packs `n` bytes to so many bits each. False, and nothing is done, if no kernel does.
pub(crate) fn pack(bits: u32, level: Level, src: &[u8], dst: &mut [u8], n: usize) -> bool {
    let (Level::Neon(token), 6) = (level, bits) else { return false };
    run(&Pack6(token), (8, src), (bits, dst), n);
    true
}
