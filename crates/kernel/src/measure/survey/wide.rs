//! Passes over elements of 16, 32 and 64 bits, in integer arithmetic.
//!
//! Every count is a sum of comparisons without short circuits, which compiles to masks.
//! `key` is an integer with the order of the values. The key of a positive float is its bits. The key of a
//! negative float is its bits with every bit after the sign flipped; -0 has key -1.

use crate::level::Task;
use crate::slot::Slot;

/// Result of a pass. The ends are keys; `low > high` without finite values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub nan: u64,
    pub inf: u64,
    pub zero: u64,
    pub subnormal: u64,
    pub low: i64,
    pub high: i64,
}

/// Elements of a format that has the special values of IEEE 754.
pub(super) struct Floats<'a, W: Slot> {
    pub elements: &'a [W::Bytes],
    /// Mask of the bits of the value.
    pub kept: W,
    pub inf: W,
    pub min_normal: W,
}

pub(super) struct Integers<'a, W: Slot> {
    pub elements: &'a [W::Bytes],
    /// Bits that are flipped to get the key: 0 for signed types, the top bit for unsigned types.
    pub flipped: W,
}

/// Elements per run. Within a run, 16-bit counts do not overflow.
const RUN: usize = 4096;

macro_rules! passes {
    ($($word:ty, $signed:ty;)*) => {$(
        impl Task for Floats<'_, $word> {
            type Output = Seen;
            #[inline(always)]
            fn run(self) -> Seen {
                let (inf, min_normal) = (self.inf as $signed, self.min_normal as $signed);
                let (mut low, mut high) = (<$signed>::MAX, <$signed>::MIN);
                let mut seen = Seen { nan: 0, inf: 0, zero: 0, subnormal: 0, low: 0, high: 0 };
                for run in self.elements.chunks(RUN) {
                    let [mut nan, mut not_finite, mut zero, mut small] = [0 as $signed; 4];
                    for &bytes in run {
                        let bits = (<$word>::load(bytes) & self.kept) as $signed;
                        let magnitude = bits & <$signed>::MAX;
                        let key = bits ^ (bits >> (<$signed>::BITS - 1) & <$signed>::MAX);
                        let finite = magnitude < inf;
                        nan += (magnitude > inf) as $signed;
                        not_finite += !finite as $signed;
                        zero += (magnitude == 0) as $signed;
                        small += (magnitude < min_normal) as $signed;
                        low = low.min(if finite { key } else { <$signed>::MAX });
                        high = high.max(if finite { key } else { <$signed>::MIN });
                    }
                    seen.nan += nan as u64;
                    seen.inf += (not_finite - nan) as u64;
                    seen.zero += zero as u64;
                    seen.subnormal += (small - zero) as u64;
                }
                Seen { low: low as i64, high: high as i64, ..seen }
            }
        }

        impl Task for Integers<'_, $word> {
            type Output = Seen;
            #[inline(always)]
            fn run(self) -> Seen {
                let (mut low, mut high) = (<$signed>::MAX, <$signed>::MIN);
                let mut seen = Seen { nan: 0, inf: 0, zero: 0, subnormal: 0, low: 0, high: 0 };
                for run in self.elements.chunks(RUN) {
                    let mut zero = 0 as $signed;
                    for &bytes in run {
                        let bits = <$word>::load(bytes);
                        let key = (bits ^ self.flipped) as $signed;
                        zero += (bits == 0) as $signed;
                        low = low.min(key);
                        high = high.max(key);
                    }
                    seen.zero += zero as u64;
                }
                Seen { low: low as i64, high: high as i64, ..seen }
            }
        }
    )*};
}

passes! {
    u16, i16;
    u32, i32;
    u64, i64;
}
