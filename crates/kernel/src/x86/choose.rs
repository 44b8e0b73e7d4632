//! Which kernel written by hand there is for operations, at a level: the only place that names them.

use super::F16_INSTRUCTION;
use super::avx2;
use super::avx512::blocks::{Blocks, Params};
use super::avx512::convert::ToFloat;
use super::avx512::integer::{Float, Truncate, Truncates};
use super::avx512::narrow::{Narrow, Narrows, NonZero};
use super::avx512::{self, fused::Fused, measure};
use super::source::{self, Source256, Source512};
use crate::level::{Avx2, Avx512, Level};
use crate::measure::found::{Next, Seen, Small, Special, Sums};
use crate::measure::limits::Range;
use crate::numbers::encode::{Nearest, shape};
use crate::numbers::op::{Int, Op};
use crate::numbers::split::Split;
use crate::scaled::block_quotient::Divided;
use crate::scaled::lookup::{Codes, Full, Tables};
use crate::scaled::nibbles::Nibbles;
use crate::scaled::threshold_table::{Shape, Stepped, Steps};
use crate::stage::Stage;
use crate::tail::{run, run_streaming, stage};
use truecast_core::scaled::BlockType;

type Kernel = Option<Box<dyn Stage>>;

/// The kernel that computes these operations, one after the other, in one loop.
pub(crate) fn kernel(ops: &[Op], level: Level) -> Kernel {
    match level {
        Level::Baseline | Level::Neon(_) => None,
        Level::Avx2(token) => of_avx2(ops, token),
        Level::Avx512(token) => of_avx512(ops, token),
    }
}

/// The lookup of 256 results of so many bytes, of bytes or of packed codes of so many bits.
pub(crate) fn table(results: &[u64; 256], bytes: usize, code_bits: u32, level: Level) -> Kernel {
    match (level, bytes) {
        (Level::Baseline | Level::Neon(_), _) => None,
        (Level::Avx2(token), 1) => Some(stage(avx2::rows::Rows::<1>::new(results, code_bits, token))),
        (Level::Avx2(token), 2) => Some(stage(avx2::rows::Rows::<2>::new(results, code_bits, token))),
        (Level::Avx2(token), 4) => Some(stage(avx2::rows::Rows::<4>::new(results, code_bits, token))),
        (Level::Avx2(token), _) => Some(stage(avx2::rows::Rows::<8>::new(results, code_bits, token))),
        (Level::Avx512(token), 1) => Some(stage(avx512::table::Planes::<1>::new(results, code_bits, token))),
        (Level::Avx512(token), 2) => Some(stage(avx512::table::Planes::<2>::new(results, code_bits, token))),
        (Level::Avx512(token), 4) => Some(stage(avx512::table::Planes::<4>::new(results, code_bits, token))),
        (Level::Avx512(token), _) => Some(stage(avx512::table::Planes::<8>::new(results, code_bits, token))),
    }
}

/// Whether there is a lookup of [`Split`] tables.
pub(crate) fn has_split(level: Level) -> bool {
    matches!(level, Level::Avx512(_))
}

/// Whether it packs results of elements of so many bytes to so many bits.
pub(crate) fn split_packs(src_bytes: usize, bits: u32) -> bool {
    avx512::split::packs(src_bytes, bits)
}

/// Looks up `n` codes of 16 bits, or f32, to results of so many bits, past the caches if it `streams`. False, and nothing is
/// done, if there is no lookup or no such stores in these buffers.
pub(crate) fn look_up(
    split: &Split,
    level: Level,
    src: (u32, &[u8]),
    dst: (u32, &mut [u8]),
    n: usize,
    streams: bool,
) -> bool {
    let Level::Avx512(token) = level else { return false };
    let kernel = avx512::split::BySplit { split, src_bits: src.0, token };
    if streams {
        return run_streaming(&kernel, src, dst, n);
    }
    run(&kernel, src, dst, n);
    true
}

/// Looks up elements with tables of 16 results of two bytes, and returns how many it did, from the first on.
pub(crate) fn sixteen(
    level: Level,
    codes: Codes<'_>,
    block: usize,
    tables: Tables<'_>,
    dst: &mut [u8],
    streams: bool,
) -> usize {
    match level {
        Level::Baseline | Level::Neon(_) => 0,
        Level::Avx2(token) => avx2::scaled::sixteen(token, codes, block, tables, dst),
        Level::Avx512(token) => avx512::scaled::sixteen(token, codes, block, tables, dst, streams),
    }
}

/// Whether there is a lookup with tables of 256 results of two bytes.
pub(crate) fn has_full(level: Level) -> bool {
    matches!(level, Level::Avx512(_))
}

/// Looks up codes of rows with the same tables of 256 results of two bytes, and returns how many elements of each row it did,
/// from the first on.
pub(crate) fn full(
    level: Level,
    rows: &mut [(&[u8], &mut [u8])],
    block: usize,
    tables: &[Full],
    streams: bool,
) -> usize {
    let Level::Avx512(token) = level else { return 0 };
    avx512::scaled::full(token, rows, block, tables, streams)
}

/// Whether there is a loop that makes the 16 results of each block of nibbles and looks up its elements.
pub(crate) fn has_nibbles(level: Level) -> bool {
    matches!(level, Level::Avx512(_))
}

/// Runs it, and returns how many elements it did, from the first on: none, where there is no such loop.
pub(crate) fn nibbles(level: Level, of: &Nibbles<'_>, dst: &mut [u8], streams: bool) -> usize {
    let Level::Avx512(token) = level else { return 0 };
    avx512::nibbles::results(token, of, dst, streams)
}

/// Scales and biases of blocks of GGUF files, for that loop.
pub(crate) fn operands(level: Level, block: BlockType, src: &[u8], scales: &mut [[u8; 4]], biases: &mut [[u8; 4]]) {
    if let Level::Avx512(token) = level {
        avx512::operands::operands(token, block, src, scales, biases);
    }
}

/// Turns rows of groups of eight bytes, so many bytes apart, into columns so many bytes apart, and returns how many columns
/// it did, from the first on: none, where no kernel does that.
pub(crate) fn turn(
    level: Level,
    rows: (&[u8], usize),
    n_cols: usize,
    columns: (&mut [u8], usize),
    streams: bool,
) -> usize {
    let Level::Avx512(token) = level else { return 0 };
    avx512::turn::turn(token, rows, n_cols, columns, streams)
}

/// The largest magnitudes of blocks of elements of 16 bits, as many as there is room for; how many blocks it did, from the
/// first on. Asks for what lies `ahead` bytes after each.
pub(crate) fn largest(level: Level, block: usize, src: &[u8], ahead: usize, magnitudes: &mut [i16]) -> usize {
    match level {
        Level::Baseline | Level::Neon(_) => 0,
        Level::Avx2(token) => avx2::scaled::largest(token, block, src, ahead, magnitudes),
        Level::Avx512(token) => avx512::scaled::largest(token, block, src, ahead, magnitudes),
    }
}

/// Divides and encodes elements of rows by the tables of bf16, to so many bits, and returns how many of each row it did, from
/// the first on. The results of a row begin so many bytes after those of the one before.
pub(crate) fn encode(rows: &Divided<'_>, split: &Split, level: Level, bits: usize, dst: (&mut [u8], usize)) -> usize {
    let Level::Avx512(token) = level else { return 0 };
    avx512::quantize::encode(token, rows, split, bits, dst)
}

/// Whether there are [`by_steps`] and [`steps`].
pub(crate) fn has_steps(level: Level) -> bool {
    matches!(level, Level::Avx2(_) | Level::Avx512(_))
}

/// Adds the tables of divisors.
pub(crate) fn steps(level: Level, shape: &Shape, divisors: &[f32], tables: &mut Vec<Steps>) {
    match level {
        Level::Baseline | Level::Neon(_) => {}
        Level::Avx2(token) => avx2::threshold_table::tables(token, shape, divisors, tables),
        Level::Avx512(token) => avx512::threshold_table::tables(token, shape, divisors, tables),
    }
}

/// Encodes elements of rows by tables of steps, and returns how many of each row it did, from the first on. The results of a
/// row begin so many bytes after those of the one before.
pub(crate) fn by_steps(level: Level, of: &Stepped<'_>, dst: (&mut [u8], usize)) -> usize {
    match level {
        Level::Baseline | Level::Neon(_) => 0,
        Level::Avx2(token) => avx2::threshold_table::encode(token, of, dst),
        Level::Avx512(token) => avx512::threshold_table::encode(token, of, dst),
    }
}

/// Unpacks `n` elements of so many bits into bytes. False, and nothing is done, if no kernel does.
pub(crate) fn unpack(bits: u32, level: Level, src: &[u8], dst: &mut [u8], n: usize) -> bool {
    match (level, bits) {
        (Level::Avx512(token), 2 | 4 | 6) => avx512::codes::unpack(token, bits, src, dst, n),
        (Level::Avx2(token), 6) => run(&avx2::pack6::Unpack(token), (6, src), (8, dst), n),
        _ => return false,
    }
    true
}

/// Packs `n` bytes to so many bits each. False, and nothing is done, if no kernel does.
pub(crate) fn pack(bits: u32, level: Level, src: &[u8], dst: &mut [u8], n: usize) -> bool {
    match (level, bits) {
        (Level::Avx512(token), 2 | 4 | 6) => avx512::codes::pack(token, bits, src, dst, n),
        (Level::Avx2(token), 6) => run(&avx2::pack6::Pack(token), (8, src), (6, dst), n),
        _ => return false,
    }
    true
}

/// Values of 4 or 8 bytes, in the default floating-point environment.
type Values<'a> = (usize, &'a [u8]);

/// What [`crate::measure`] adds of pairs; `None`, and nothing is done, if no kernel does.
pub(crate) fn add(
    level: Level,
    masked: bool,
    (x_bytes, x): Values<'_>,
    (y_bytes, y): Values<'_>,
    next: [Next; 2],
    sums: &mut Sums,
) -> Option<Option<Seen>> {
    let Level::Avx512(token) = level else { return None };
    Some(match (x_bytes, y_bytes, masked) {
        (4, 4, false) => measure::add::<64, 64, false>(token, x, y, next, sums),
        (4, 4, true) => measure::add::<64, 64, true>(token, x, y, next, sums),
        (4, _, false) => measure::add::<64, 128, false>(token, x, y, next, sums),
        (4, _, true) => measure::add::<64, 128, true>(token, x, y, next, sums),
        (_, 4, false) => measure::add::<128, 64, false>(token, x, y, next, sums),
        (_, 4, true) => measure::add::<128, 64, true>(token, x, y, next, sums),
        (.., false) => measure::add::<128, 128, false>(token, x, y, next, sums),
        (.., true) => measure::add::<128, 128, true>(token, x, y, next, sums),
    })
}

/// As [`add`], of values that stand for themselves.
pub(crate) fn add_values(
    level: Level,
    masked: bool,
    (bytes, values): Values<'_>,
    next: [Next; 2],
    sums: &mut Sums,
) -> Option<Option<Seen>> {
    let Level::Avx512(token) = level else { return None };
    Some(match (bytes, masked) {
        (4, false) => measure::add_values::<64, false>(token, values, next, sums),
        (4, true) => measure::add_values::<64, true>(token, values, next, sums),
        (_, false) => measure::add_values::<128, false>(token, values, next, sums),
        (_, true) => measure::add_values::<128, true>(token, values, next, sums),
    })
}

/// What [`crate::measure`] counts of small results; `None` if no kernel does.
pub(crate) fn small_results(
    level: Level,
    masked: bool,
    (x_bytes, x): Values<'_>,
    (y_bytes, y): Values<'_>,
    min_normal: f64,
) -> Option<Small> {
    let Level::Avx512(token) = level else { return None };
    Some(match (x_bytes, y_bytes, masked) {
        (4, 4, false) => measure::small_results::<64, 64, false>(token, x, y, min_normal),
        (4, 4, true) => measure::small_results::<64, 64, true>(token, x, y, min_normal),
        (4, ..) => measure::small_results::<64, 128, true>(token, x, y, min_normal),
        (_, 4, _) => measure::small_results::<128, 64, true>(token, x, y, min_normal),
        _ => measure::small_results::<128, 128, true>(token, x, y, min_normal),
    })
}

/// What [`crate::measure`] counts of values that are not finite or out of range; `None` if no kernel does.
pub(crate) fn specials(
    level: Level,
    (x_bytes, x): Values<'_>,
    (y_bytes, y): Values<'_>,
    range: &Range,
) -> Option<Special> {
    let Level::Avx512(token) = level else { return None };
    Some(match (x_bytes, y_bytes) {
        (4, 4) => measure::specials::<64, 64>(token, x, y, range),
        (4, _) => measure::specials::<64, 128>(token, x, y, range),
        (_, 4) => measure::specials::<128, 64>(token, x, y, range),
        _ => measure::specials::<128, 128>(token, x, y, range),
    })
}

/// The kernel for the source that operations load from: one that is exact in f32, or one of those that follow.
macro_rules! with_source {
    ($load:expr, |$source:ident| $kernel:expr, $($pattern:pat => $of:ident),*) => {
        with_source!(
            @ $load, |$source| $kernel,
            [] => F32,
            [Op::Bf16ToF32(_)] => Bf16,
            [Op::F16ToF32(_)] => F16,
            [Op::IntToF32(Int { bytes: 2, signed: true })] => I16,
            [Op::IntToF32(Int { bytes: 2, signed: false })] => U16,
            $($pattern => $of),*
        )
    };
    (@ $load:expr, |$source:ident| $kernel:expr, $($pattern:pat => $of:ident),*) => {
        match $load {
            $($pattern => {
                let $source = source::$of;
                $kernel
            })*
            _ => None,
        }
    };
}

/// The kernel of the shape of an encoder of floats to bytes.
macro_rules! to_bytes {
    ($numbers:expr, |$shape:ident| $make:expr) => {
        match $numbers.shape {
            shape::SUBNORMAL => {
                const $shape: u8 = shape::SUBNORMAL;
                $make
            }
            shape::SUBNORMAL_SPECIAL | shape::SUBNORMAL_PAYLOAD => {
                const $shape: u8 = SPECIAL;
                $make
            }
            shape::UNSIGNED_ZERO => {
                const $shape: u8 = shape::UNSIGNED_ZERO;
                $make
            }
            shape::UNSIGNED_ZERO_SPECIAL => {
                const $shape: u8 = UNSIGNED_SPECIAL;
                $make
            }
            _ => None,
        }
    };
}

// ---- AVX-512 ----

fn of_avx512(ops: &[Op], token: Avx512) -> Kernel {
    match *ops {
        [ref load @ .., Op::Nearest { numbers, bytes }] => fused_512(load, numbers, bytes, token),
        [Op::F16ToF32(nan)] => Some(match nan.keeps_payload() {
            true => blocks::<_, 4>(ToFloat::<_, true>(source::F16), token),
            false => blocks::<_, 4>(ToFloat::<_, false>(source::F16), token),
        }),
        [Op::Bf16ToF32(nan)] => Some(match nan.keeps_payload() {
            true => blocks::<_, 4>(ToFloat::<_, true>(source::Bf16), token),
            false => blocks::<_, 4>(ToFloat::<_, false>(source::Bf16), token),
        }),
        [Op::F64ToF32Nearest(numbers)] if numbers.overflows_to_inf() => Some(match numbers.keeps_payload() {
            true => blocks::<_, 4>(ToFloat::<_, true>(source::F64), token),
            false => blocks::<_, 4>(ToFloat::<_, false>(source::F64), token),
        }),
        [Op::F32ToF64(numbers)] if numbers.keeps_inf() => Some(match numbers.keeps_payload() {
            true => blocks::<_, 8>(ToFloat::<_, true>(source::F32), token),
            false => blocks::<_, 8>(ToFloat::<_, false>(source::F32), token),
        }),
        [Op::IntToF32(from)] => match (from.bytes, from.signed) {
            (4, true) => Some(blocks::<_, 4>(ToFloat::<_, true>(source::I32), token)),
            (4, false) => Some(blocks::<_, 4>(ToFloat::<_, true>(source::U32), token)),
            (8, true) => Some(blocks::<_, 4>(ToFloat::<_, true>(source::I64), token)),
            (8, false) => Some(blocks::<_, 4>(ToFloat::<_, true>(source::U64), token)),
            _ => None,
        },
        [Op::IntToF64 { from, odd: false }] => match (from.bytes, from.signed) {
            (4, true) => Some(blocks::<_, 8>(ToFloat::<_, true>(source::I32), token)),
            (4, false) => Some(blocks::<_, 8>(ToFloat::<_, true>(source::U32), token)),
            (8, true) => Some(blocks::<_, 8>(ToFloat::<_, true>(source::I64), token)),
            (8, false) => Some(blocks::<_, 8>(ToFloat::<_, true>(source::U64), token)),
            _ => None,
        },
        [Op::F64ToF32Odd { reduced: true }] => Some(stage(avx512::f64::ToF32Odd(source::F64Reduced, token))),
        [Op::F64ToF32Odd { reduced: false }] => Some(stage(avx512::f64::ToF32Odd(source::F64, token))),
        [Op::IntToF32Odd(Int { bytes: 8, signed: true })] => Some(stage(avx512::f64::ToF32Odd(source::I64Odd, token))),
        [Op::IntToF32Odd(Int { bytes: 8, signed: false })] => Some(stage(avx512::f64::ToF32Odd(source::U64Odd, token))),
        [ref load @ .., Op::F32ToInt { numbers, bytes }] if numbers.truncates_and_wraps() => {
            let (nan, mask) = numbers.nan_and_mask();
            match load {
                [] => truncates(source::F32, Truncate { nan, mask }, bytes, token),
                [Op::Bf16ToF32(_)] => truncates(source::Bf16, Truncate { nan, mask }, bytes, token),
                [Op::F16ToF32(_)] => truncates(source::F16, Truncate { nan, mask }, bytes, token),
                _ => None,
            }
        }
        [Op::F64ToInt { numbers, bytes }] if numbers.truncates_and_wraps() => {
            let (nan, mask) = numbers.nan_and_mask();
            truncates(source::F64, Truncate { nan, mask }, bytes, token)
        }
        [Op::IntToInt { from, range, bytes }] => {
            let numbers = Narrow { bounds: range.bounds, mask: range.mask };
            match (from.bytes, bytes) {
                (4, 1) => Some(narrows::<4, 1>(from.signed, numbers, token)),
                (4, 2) => Some(narrows::<4, 2>(from.signed, numbers, token)),
                (8, 1) => Some(narrows::<8, 1>(from.signed, numbers, token)),
                (8, 2) => Some(narrows::<8, 2>(from.signed, numbers, token)),
                (8, 4) => Some(narrows::<8, 4>(from.signed, numbers, token)),
                _ => None,
            }
        }
        [Op::NonZero { bytes: 4, mask }] => Some(blocks::<_, 1>(NonZero::<4> { mask }, token)),
        [Op::NonZero { bytes: 8, mask }] => Some(blocks::<_, 1>(NonZero::<8> { mask }, token)),
        _ => None,
    }
}

fn blocks<T: Params<N> + 'static, const N: usize>(params: T, token: Avx512) -> Box<dyn Stage> {
    stage(Blocks::<T, N>(params, token))
}

/// What is clamped or reduced on its way into f32 goes to destinations of a smaller range, what is not to those of the same
/// range; what is exact, to both.
fn fused_512(load: &[Op], numbers: Nearest, bytes: usize, token: Avx512) -> Kernel {
    match bytes {
        2 if numbers.shape & shape::UPPER_BITS != 0 => with_source!(
            load, |source| upper_bits_512(source, numbers, token),
            [Op::F64ToF32Odd { reduced: false }] => F64,
            [Op::IntToF32Odd(Int { bytes: 4, signed: true })] => I32Odd,
            [Op::IntToF32Odd(Int { bytes: 4, signed: false })] => U32Odd,
            [Op::IntToF32Odd(Int { bytes: 8, signed: true })] => I64Odd,
            [Op::IntToF32Odd(Int { bytes: 8, signed: false })] => U64Odd
        ),
        2 if numbers.is_ieee_f16 => with_source!(
            load, |source| f16_512(source, numbers, token),
            [Op::F64ToF32Odd { reduced: true }] => F64Reduced,
            [Op::IntToF32Clamped(Int { bytes: 4, signed: true })] => I32Clamped,
            [Op::IntToF32Clamped(Int { bytes: 4, signed: false })] => U32Clamped,
            [Op::IntToF32Clamped(Int { bytes: 8, signed: true })] => I64Clamped,
            [Op::IntToF32Clamped(Int { bytes: 8, signed: false })] => U64Clamped
        ),
        1 => floats_512(load, numbers, token).or_else(|| {
            let numbers = numbers.of_integers()?;
            with_source!(
                @ load, |source| Some(blocks::<_, 1>(Fused::<_, { shape::SUBNORMAL }>(numbers, source), token)),
                [Op::IntToF32(Int { bytes: 2, signed: true })] => I16,
                [Op::IntToF32(Int { bytes: 2, signed: false })] => U16,
                [Op::IntToF32Clamped(Int { bytes: 4, signed: true })] => I32Clamped,
                [Op::IntToF32Clamped(Int { bytes: 4, signed: false })] => U32Clamped,
                [Op::IntToF32Clamped(Int { bytes: 8, signed: true })] => I64Clamped,
                [Op::IntToF32Clamped(Int { bytes: 8, signed: false })] => U64Clamped
            )
        }),
        _ => None,
    }
}

/// Floats to 8 bits.
fn floats_512(load: &[Op], numbers: Nearest, token: Avx512) -> Kernel {
    with_source!(
        @ load, |source| to_bytes!(numbers, |SHAPE| Some(blocks::<_, 1>(Fused::<_, SHAPE>(numbers, source), token))),
        [] => F32,
        [Op::Bf16ToF32(_)] => Bf16,
        [Op::F16ToF32(_)] => F16,
        [Op::F64ToF32Odd { reduced: true }] => F64Reduced
    )
}

// A shape that takes a payload serves where the mask is zero as well.
const SPECIAL: u8 = shape::SUBNORMAL_PAYLOAD;
const UNSIGNED_SPECIAL: u8 = shape::UNSIGNED_ZERO_SPECIAL | shape::PAYLOAD;
const UPPER: u8 = shape::UPPER_PAYLOAD;

fn upper_bits_512<S: Source512>(source: S, numbers: Nearest, token: Avx512) -> Kernel {
    Some(blocks::<_, 2>(Fused::<S, UPPER>(numbers, source), token))
}

fn f16_512<S: Source512>(source: S, numbers: Nearest, token: Avx512) -> Kernel {
    // The instruction keeps payloads; a canonical NaN costs a comparison, which integers do not need.
    if !S::HAS_NAN || numbers.shape & shape::PAYLOAD != 0 {
        return Some(blocks::<_, 2>(Fused::<S, { F16_INSTRUCTION | shape::PAYLOAD }>(numbers, source), token));
    }
    Some(blocks::<_, 2>(Fused::<S, F16_INSTRUCTION>(numbers, source), token))
}

fn truncates<S: Float>(source: S, numbers: Truncate, bytes: usize, token: Avx512) -> Kernel {
    Some(match (bytes, numbers.nan) {
        (1, 0) => blocks::<_, 1>(Truncates::<S, false>(numbers, source), token),
        (1, _) => blocks::<_, 1>(Truncates::<S, true>(numbers, source), token),
        (2, 0) => blocks::<_, 2>(Truncates::<S, false>(numbers, source), token),
        (2, _) => blocks::<_, 2>(Truncates::<S, true>(numbers, source), token),
        (4, _) => blocks::<_, 4>(Truncates::<S, true>(numbers, source), token),
        _ => blocks::<_, 8>(Truncates::<S, true>(numbers, source), token),
    })
}

fn narrows<const SRC: usize, const DST: usize>(signed: bool, numbers: Narrow, token: Avx512) -> Box<dyn Stage> {
    match (numbers.bounds.is_some(), signed) {
        (true, true) => blocks::<_, DST>(Narrows::<SRC, true, true>(numbers), token),
        (true, false) => blocks::<_, DST>(Narrows::<SRC, true, false>(numbers), token),
        (false, _) => blocks::<_, DST>(Narrows::<SRC, false, false>(numbers), token),
    }
}

// ---- AVX2 ----

fn of_avx2(ops: &[Op], token: Avx2) -> Kernel {
    match *ops {
        [ref load @ .., Op::Nearest { numbers, bytes }] => fused_256(load, numbers, bytes, token),
        [Op::F16ToF32(nan)] => Some(match nan.keeps_payload() {
            // The instruction quiets NaN. The intermediate's NaN may be either: what encodes it sets the quiet bit.
            true => stage(avx2::half::ToF32::<true>(token)),
            false => stage(avx2::half::ToF32::<false>(token)),
        }),
        [Op::F64ToF32Nearest(numbers)] if numbers.overflows_to_inf() => Some(match numbers.keeps_payload() {
            true => stage(avx2::f64::ToF32::<true>(token)),
            false => stage(avx2::f64::ToF32::<false>(token)),
        }),
        [Op::F32ToF64(numbers)] if numbers.keeps_inf() => Some(match numbers.keeps_payload() {
            true => stage(avx2::f64::FromF32::<true>(token)),
            false => stage(avx2::f64::FromF32::<false>(token)),
        }),
        [Op::F32ToInt { numbers, bytes }] if numbers.truncates_and_wraps() => match (bytes, numbers.nan_and_mask()) {
            (1, (0, mask)) => Some(stage(avx2::bytes::Truncates(mask as u8, token))),
            (8, (0, _)) => Some(stage(avx2::i64::Truncates(token))),
            _ => None,
        },
        [Op::IntToF32(Int { bytes: 8, signed: false })] => Some(stage(avx2::i64::UnsignedToF32(token))),
        [Op::IntToInt { from: Int { bytes: 8, .. }, range, bytes: 1 }] if range.bounds.is_none() => {
            Some(stage(avx2::bytes::Wraps(range.mask as u8, token)))
        }
        [Op::IntToInt { from: Int { bytes: 4, signed }, range, bytes: 1 }] => {
            let mask = range.mask as u8;
            Some(match (signed, range.bounds) {
                (true, bounds) => {
                    let (low, high) = bounds.map_or((i32::MIN.into(), i32::MAX.into()), |(l, h)| (l as i64, h as i64));
                    let range = [low, high].map(|end| end.clamp(i32::MIN.into(), i32::MAX.into()) as u32);
                    stage(avx2::bytes::Clamps::<true>(range, mask, token))
                }
                (false, bounds) => {
                    let (low, high) = bounds.unwrap_or((0, u32::MAX.into()));
                    let range = [low, high].map(|end| end.min(u32::MAX.into()) as u32);
                    stage(avx2::bytes::Clamps::<false>(range, mask, token))
                }
            })
        }
        _ => None,
    }
}

/// As [`fused_512`].
fn fused_256(load: &[Op], numbers: Nearest, bytes: usize, token: Avx2) -> Kernel {
    let is_f16 = bytes == 2 && numbers.is_ieee_f16;
    match bytes {
        2 if numbers.shape & shape::UPPER_BITS != 0 => with_source!(
            load, |source| upper_bits_256(source, numbers, token),
            [Op::F64ToF32Odd { reduced: false }] => F64,
            [Op::IntToF32Odd(Int { bytes: 4, signed: true })] => I32Odd,
            [Op::IntToF32Odd(Int { bytes: 4, signed: false })] => U32Odd,
            [Op::IntToF32Odd(Int { bytes: 8, signed: true })] => I64Odd
        ),
        2 if is_f16 => with_source!(
            load, |source| f16_256(source, numbers, token),
            [Op::F64ToF32Odd { reduced: true }] => F64Reduced,
            [Op::IntToF32Clamped(Int { bytes: 4, signed: true })] => I32Clamped,
            [Op::IntToF32Clamped(Int { bytes: 4, signed: false })] => U32Clamped,
            [Op::IntToF32Clamped(Int { bytes: 8, signed: true })] => I64Clamped
        ),
        1 => floats_256(load, numbers, token).or_else(|| {
            let numbers = numbers.of_integers()?;
            with_source!(
                @ load, |source| words_256::<_, { shape::SUBNORMAL }>(source, numbers, token),
                [Op::IntToF32(Int { bytes: 2, signed: true })] => I16,
                [Op::IntToF32(Int { bytes: 2, signed: false })] => U16,
                [Op::IntToF32Clamped(Int { bytes: 4, signed: true })] => I32Clamped,
                [Op::IntToF32Clamped(Int { bytes: 4, signed: false })] => U32Clamped,
                [Op::IntToF32Clamped(Int { bytes: 8, signed: true })] => I64Clamped
            )
        }),
        _ => None,
    }
}

/// Floats to 8 bits.
fn floats_256(load: &[Op], numbers: Nearest, token: Avx2) -> Kernel {
    match load {
        [Op::Bf16ToF32(_)] => to_bytes!(numbers, |SHAPE| shorts_256::<_, SHAPE>(source::Bf16, numbers, token)),
        [Op::F16ToF32(_)] => to_bytes!(numbers, |SHAPE| shorts_256::<_, SHAPE>(source::F16, numbers, token)),
        _ => with_source!(
            @ load, |source| to_bytes!(numbers, |SHAPE| words_256::<_, SHAPE>(source, numbers, token)),
            [] => F32,
            [Op::F64ToF32Odd { reduced: true }] => F64Reduced
        ),
    }
}

fn upper_bits_256<S: Source256>(source: S, numbers: Nearest, token: Avx2) -> Kernel {
    Some(stage(avx2::fused::ToU16::<S, UPPER>(numbers, source, token)))
}

fn f16_256<S: Source256>(source: S, numbers: Nearest, token: Avx2) -> Kernel {
    use avx2::fused::ToU16;
    if !S::HAS_NAN || numbers.shape & shape::PAYLOAD != 0 {
        return Some(stage(ToU16::<S, { F16_INSTRUCTION | shape::PAYLOAD }>(numbers, source, token)));
    }
    Some(stage(ToU16::<S, F16_INSTRUCTION>(numbers, source, token)))
}

fn words_256<S: Source256, const SHAPE: u8>(source: S, numbers: Nearest, token: Avx2) -> Kernel {
    avx2::fused::F32ToU8::<S, SHAPE>::new(numbers, source, token).map(stage)
}

fn shorts_256<S: avx2::shorts::ByF32, const SHAPE: u8>(source: S, numbers: Nearest, token: Avx2) -> Kernel {
    avx2::fused::HalfToU8::<S, SHAPE>::new(numbers, source, token).map(stage)
}
