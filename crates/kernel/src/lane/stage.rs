//! Stages of operations: one loop over a lane, compiled for each level.

use super::decode::*;
use super::encode::*;
use super::int::*;
use super::to_int::*;
use super::wide::*;
use super::{Lane, Reach};
use crate::level::{Level, Task, run_at_baseline};
use crate::numbers::encode::{Nearest, shape};
use crate::numbers::int::IntRange;
use crate::numbers::op::{Int, Op};
use crate::slot::Slot;
use crate::stage::{Refusal, Stage, Streaming};
use std::marker::PhantomData as Of;

#[derive(Debug)]
struct LaneStage<L> {
    lane: L,
    level: Level,
}

struct Loop<'a, L: Lane> {
    lane: &'a L,
    src: &'a [<L::Src as Slot>::Bytes],
    dst: &'a mut [<L::Dst as Slot>::Bytes],
}

impl<L: Lane> Task for Loop<'_, L> {
    type Output = ();
    /// Runs the loop with plain stores. `zip` avoids bounds checks.
    #[inline(always)]
    fn run(self) {
        // A local copy of the lane cannot change through `dst`, which allows vectorization.
        let lane = *self.lane;
        for (d, s) in self.dst.iter_mut().zip(self.src) {
            *d = lane.convert(L::Src::load(*s)).store();
        }
    }
}

impl<L: Lane> LaneStage<L> {
    fn task(&self, task: impl Task<Output = ()>) {
        // `if const` compiles nothing for the excluded levels.
        if const { matches!(L::UP_TO, Reach::Baseline) } {
            run_at_baseline(task);
        } else if const { matches!(L::UP_TO, Reach::Avx2) } {
            self.level.run_at_most_avx2(task);
        } else {
            self.level.run(task);
        }
    }
}

impl<L: Lane> Stage for LaneStage<L> {
    fn widths(&self) -> (usize, usize) {
        (L::Src::BYTES, L::Dst::BYTES)
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        self.task(Loop { lane: &self.lane, src: L::Src::view(src), dst: L::Dst::view_mut(dst) });
        Ok(())
    }
    fn streaming(&self) -> Streaming {
        if cfg!(target_arch = "x86_64") && L::STREAMS { Streaming::Itself } else { Streaming::ByWidth }
    }
    #[cfg(target_arch = "x86_64")]
    fn run_in_place(&self, src: (u32, &[u8]), dst: (u32, &mut [u8]), n: usize, streams: bool) -> bool {
        crate::tail::run(self, src, dst, n, streams)
    }
}

/// Loop with stores past the caches, one line at a time. The compiler vectorizes no other loop with such stores.
#[cfg(target_arch = "x86_64")]
mod streaming {
    use super::*;
    use crate::stream::{LINE, Line, lines};
    use crate::tail::{Groups, Store};
    use crate::x86::ahead::Ahead;

    struct Lines<'a, L: Lane> {
        lane: &'a L,
        src: &'a [<L::Src as Slot>::Bytes],
        dst: &'a mut [Line],
    }

    impl<L: Lane> Task for Lines<'_, L> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let (lane, ahead) = (*self.lane, Ahead::past_caches_by_parts());
            for (line, sources) in self.dst.iter_mut().zip(self.src.chunks_exact(LINE / L::Dst::BYTES)) {
                ahead.prefetch(sources, LINE / L::Dst::BYTES * L::Src::BYTES);
                let mut results = [0; LINE];
                for (d, s) in L::Dst::view_mut(&mut results).iter_mut().zip(sources) {
                    *d = lane.convert(L::Src::load(*s)).store();
                }
                line.stream(&results);
            }
        }
    }

    impl<L: Lane> Groups for LaneStage<L> {
        fn group(&self, _: usize) -> usize {
            LINE / L::Dst::BYTES
        }
        fn widths(&self) -> (usize, usize) {
            (8 * L::Src::BYTES, L::Dst::BYTES)
        }
        fn convert(&self, _: u32, src: &[u8], store: Store, dst: &mut [u8]) {
            if const { L::STREAMS } && store.streams {
                self.task(Lines { lane: &self.lane, src: L::Src::view(src), dst: lines(dst) });
            } else {
                self.task(Loop { lane: &self.lane, src: L::Src::view(src), dst: L::Dst::view_mut(dst) });
            }
        }
        fn stream_alignment(&self, bits: u32) -> Option<usize> {
            (L::STREAMS && bits as usize == 8 * L::Dst::BYTES).then_some(LINE)
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Then<A, B>(A, B);

impl<A: Lane, B: Lane<Src = A::Dst>> Lane for Then<A, B> {
    type Src = A::Src;
    type Dst = B::Dst;
    #[inline(always)]
    fn convert(&self, s: A::Src) -> B::Dst {
        self.1.convert(self.0.convert(s))
    }
}

/// Makes the stage of the nearest-even encoder to `$bytes` bytes, for each shape of results with this width.
macro_rules! nearest {
    ($numbers:expr, $bytes:expr, $level:expr; $($of:literal $slot:ty: $($shape:ident)*;)*) => {
        match ($bytes, $numbers.shape) {
            $($(($of, shape::$shape) => stage(EncodeNearest::<$slot, { shape::$shape }>($numbers, Of), $level),)*)*
            _ => unreachable!("shapes are asked for with `has_nearest`"),
        }
    };
}

macro_rules! shapes {
    ($($of:literal $slot:ty: $($shape:ident)*;)*) => {
        pub(crate) fn has_nearest(shape: u8, bytes: usize) -> bool {
            match bytes {
                $($of => matches!(shape, $(shape::$shape)|*),)*
                _ => false,
            }
        }

        fn nearest(numbers: Nearest, bytes: usize, level: Level) -> Box<dyn Stage> {
            nearest!(numbers, bytes, level; $($of $slot: $($shape)*;)*)
        }
    };
}

shapes! {
    1 u8: SUBNORMAL SUBNORMAL_SPECIAL SUBNORMAL_PAYLOAD UNSIGNED_ZERO UNSIGNED_ZERO_SPECIAL;
    2 u16: SUBNORMAL SUBNORMAL_SPECIAL SUBNORMAL_PAYLOAD UPPER UPPER_PAYLOAD SAME_RANGE_SPECIAL SAME_RANGE_PAYLOAD;
    4 u32: UPPER UPPER_PAYLOAD SAME_RANGE_SPECIAL SAME_RANGE_PAYLOAD;
}

fn stage<L: Lane>(lane: L, level: Level) -> Box<dyn Stage> {
    Box::new(LaneStage { lane, level })
}

/// Makes the stage of a lane for an integer source, by slot and signedness.
macro_rules! of_int {
    ($from:expr, $level:expr, |$s:ident, $signed:ident| $lane:expr; $($bytes:literal $slot:ty),*) => {
        match ($from.bytes, $from.signed) {
            $(
                ($bytes, true) => {
                    type $s = $slot;
                    const $signed: bool = true;
                    stage($lane, $level)
                }
                ($bytes, false) => {
                    type $s = $slot;
                    const $signed: bool = false;
                    stage($lane, $level)
                }
            )*
            _ => unreachable!("no lane of integers of so many bytes"),
        }
    };
}

/// Makes one loop of two operations that convert wide integers to narrow floats. `None` for other operations.
pub(crate) fn of_two(load: &Op, encode: &Op, level: Level) -> Option<Box<dyn Stage>> {
    let &Op::Nearest { numbers, bytes } = encode else { return None };
    Some(match (load, bytes) {
        (&Op::IntToF32Clamped(from), 1) => clamped(from, EncodeNearest::<u8, _>(numbers.of_integers()?, Of), level),
        (&Op::IntToF32Clamped(from), 2) => clamped(from, EncodeNearest::<u16, _>(numbers.of_integers()?, Of), level),
        (&Op::IntToF32Odd(from), 2) if numbers.shape & shape::UPPER_BITS != 0 => {
            let encode = EncodeNearest::<u16, { shape::UPPER_PAYLOAD }>(numbers, Of);
            match (from.bytes, from.signed) {
                (4, true) => stage(Then(Int32ToF32Odd::<true>, encode), level),
                (4, false) => stage(Then(Int32ToF32Odd::<false>, encode), level),
                (_, true) => stage(Then(Int64ToF32Odd::<true>, encode), level),
                (_, false) => stage(Then(Int64ToF32Odd::<false>, encode), level),
            }
        }
        _ => return None,
    })
}

fn clamped<D: Slot>(from: Int, encode: EncodeNearest<D, { shape::SUBNORMAL }>, level: Level) -> Box<dyn Stage> {
    of_int!(from, level, |S, SIGNED| Then(ClampToF32::<S, SIGNED>(Of), encode); 4 u32, 8 u64)
}

/// Returns the stage of the lane of an operation.
pub(crate) fn stage_for(op: &Op, level: Level) -> Box<dyn Stage> {
    match *op {
        Op::F16ToF32(nan) => stage(F16ToF32(nan), level),
        Op::Bf16ToF32(nan) => stage(Bf16ToF32(nan), level),
        Op::F32ToF32(lane) => stage(lane, level),
        Op::F64ToF32Odd { reduced: true } => stage(F64ToF32Odd::<true>, level),
        Op::F64ToF32Odd { reduced: false } => stage(F64ToF32Odd::<false>, level),
        Op::IntToF32(from) => of_int!(from, level, |S, SIGNED| IntToF32::<S, SIGNED>(Of); 1 u8, 2 u16, 4 u32, 8 u64),
        Op::IntToF32Clamped(from) => of_int!(from, level, |S, SIGNED| ClampToF32::<S, SIGNED>(Of); 4 u32, 8 u64),
        Op::IntToF32Odd(Int { bytes: 4, signed: true }) => stage(Int32ToF32Odd::<true>, level),
        Op::IntToF32Odd(Int { bytes: 4, signed: false }) => stage(Int32ToF32Odd::<false>, level),
        Op::IntToF32Odd(Int { signed: true, .. }) => stage(Int64ToF32Odd::<true>, level),
        Op::IntToF32Odd(Int { signed: false, .. }) => stage(Int64ToF32Odd::<false>, level),
        Op::Nearest { numbers, bytes } => nearest(numbers, bytes, level),
        Op::Encode { numbers, bytes } => match bytes {
            1 if numbers.replaces_negative() => stage(EncodeAny::<u8, true>(numbers, Of), level),
            1 => stage(EncodeAny::<u8, false>(numbers, Of), level),
            2 => stage(EncodeAny::<u16, false>(numbers, Of), level),
            _ => stage(EncodeAny::<u32, false>(numbers, Of), level),
        },
        Op::F32ToBf16Odd => stage(F32ToBf16Odd, level),
        Op::E8m0(lane) => stage(lane, level),
        Op::ClampToE8m0(numbers) if numbers.odd_addend == 0 => stage(F32ToE8m0::<false>(numbers), level),
        Op::ClampToE8m0(numbers) => stage(F32ToE8m0::<true>(numbers), level),
        Op::F64ToF32Nearest(numbers) => stage(F64ToF32Nearest(numbers), level),
        Op::F64ToF32(lane) => stage(lane, level),
        Op::F32ToF64(lane) => stage(lane, level),
        Op::F32Value => stage(F32Value, level),
        Op::IntToF64 { from, odd: true } => {
            of_int!(from, level, |S, SIGNED| IntToF64::<S, SIGNED, true>(Of); 2 u16, 4 u32, 8 u64)
        }
        Op::IntToF64 { from, odd: false } => {
            of_int!(from, level, |S, SIGNED| IntToF64::<S, SIGNED, false>(Of); 2 u16, 4 u32, 8 u64)
        }
        Op::IntResidual { signed: true } => stage(IntResidual::<true>, level),
        Op::IntResidual { signed: false } => stage(IntResidual::<false>, level),
        Op::F32ToInt { numbers, bytes } if numbers.truncates_and_wraps() => match bytes {
            1 => stage(F32ToIntTrunc::<u8>(numbers, Of), level),
            2 => stage(F32ToIntTrunc::<u16>(numbers, Of), level),
            4 => stage(F32ToIntTrunc::<u32>(numbers, Of), level),
            _ => stage(F32ToIntTrunc::<u64>(numbers, Of), level),
        },
        Op::F32ToInt { numbers, bytes } => match bytes {
            1 => stage(F32ToInt32::<u8>(numbers, Of), level),
            2 => stage(F32ToInt32::<u16>(numbers, Of), level),
            4 => stage(F32ToInt32::<u32>(numbers, Of), level),
            _ => stage(F32ToInt64(numbers), level),
        },
        Op::F64ToInt { numbers, bytes } if numbers.truncates_and_wraps() => match bytes {
            1 => stage(F64ToIntTrunc::<u8>(numbers, Of), level),
            2 => stage(F64ToIntTrunc::<u16>(numbers, Of), level),
            4 => stage(F64ToIntTrunc::<u32>(numbers, Of), level),
            _ => stage(F64ToIntTrunc::<u64>(numbers, Of), level),
        },
        Op::F64ToInt { numbers, bytes } => match bytes {
            1 => stage(F64ToInt::<u8>(numbers, Of), level),
            2 => stage(F64ToInt::<u16>(numbers, Of), level),
            4 => stage(F64ToInt::<u32>(numbers, Of), level),
            _ => stage(F64ToInt::<u64>(numbers, Of), level),
        },
        Op::IntToInt { from, range, bytes } => match (from.bytes, from.signed) {
            (2, true) => int_to_int::<u16, true>(range, bytes, level),
            (2, false) => int_to_int::<u16, false>(range, bytes, level),
            (4, true) => int_to_int::<u32, true>(range, bytes, level),
            (4, false) => int_to_int::<u32, false>(range, bytes, level),
            (_, true) => int_to_int::<u64, true>(range, bytes, level),
            (_, false) => int_to_int::<u64, false>(range, bytes, level),
        },
        Op::NonZero { bytes: 2, mask } => stage(NonZero { mask: mask as u16 }, level),
        Op::NonZero { bytes: 4, mask } => stage(NonZero { mask: mask as u32 }, level),
        Op::NonZero { mask, .. } => stage(NonZero { mask }, level),
    }
}

fn int_to_int<S: Slot, const SIGNED: bool>(range: IntRange, bytes: usize, level: Level) -> Box<dyn Stage> {
    match bytes {
        1 => stage(IntToInt::<S, u8, SIGNED>::new(range), level),
        2 => stage(IntToInt::<S, u16, SIGNED>::new(range), level),
        4 => stage(IntToInt::<S, u32, SIGNED>::new(range), level),
        _ => stage(IntToInt::<S, u64, SIGNED>::new(range), level),
    }
}
