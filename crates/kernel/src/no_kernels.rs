//! The chooser of CPUs for which no kernel is written by hand: everything is a lane, a table in memory, or the definition.

#![cfg_attr(
    target_arch = "aarch64",
    allow(dead_code, reason = "its chooser takes from here what it has no kernel for")
)]

use crate::level::Level;
use crate::measure::found::{Next, Seen, Small, Special, Sums};
use crate::measure::limits::Range;
use crate::numbers::op::Op;
use crate::numbers::split::Split;
use crate::scaled::block_quotient::Divided;
use crate::scaled::lookup::{Codes, Full, Tables};
use crate::scaled::nibbles::Nibbles;
use crate::scaled::threshold_table::{Shape, Stepped, Steps};
use crate::stage::Stage;
use truecast_core::scaled::BlockType;

/// None.
pub(crate) fn kernel(_ops: &[Op], _level: Level) -> Option<Box<dyn Stage>> {
    None
}

/// None.
pub(crate) fn table(_results: &[u64; 256], _bytes: usize, _code_bits: u32, _level: Level) -> Option<Box<dyn Stage>> {
    None
}

/// No.
pub(crate) fn has_split(_level: Level) -> bool {
    false
}

/// No.
pub(crate) fn split_packs(_src_bytes: usize, _bits: u32) -> bool {
    false
}

/// Nothing is done.
pub(crate) fn look_up(
    _split: &Split,
    _level: Level,
    _src: (u32, &[u8]),
    _dst: (u32, &mut [u8]),
    _n: usize,
    _streams: bool,
) -> bool {
    false
}

/// No.
pub(crate) fn has_nibbles(_level: Level) -> bool {
    false
}

/// None is made.
pub(crate) fn nibbles(_level: Level, _: &Nibbles<'_>, _dst: &mut [u8], _streams: bool) -> usize {
    0
}

/// None are made: they would be for that loop.
pub(crate) fn operands(_level: Level, _: BlockType, _src: &[u8], _scales: &mut [[u8; 4]], _biases: &mut [[u8; 4]]) {}

/// None is turned.
pub(crate) fn turn(_level: Level, _: (&[u8], usize), _n_cols: usize, _: (&mut [u8], usize), _streams: bool) -> usize {
    0
}

/// None is looked at.
pub(crate) fn largest(_level: Level, _block: usize, _src: &[u8], _ahead: usize, _magnitudes: &mut [i16]) -> usize {
    0
}

/// None is encoded.
pub(crate) fn encode(_: &Divided<'_>, _: &Split, _level: Level, _bits: usize, _dst: (&mut [u8], usize)) -> usize {
    0
}

/// No.
pub(crate) fn has_steps(_level: Level) -> bool {
    false
}

/// None is made.
pub(crate) fn steps(_level: Level, _: &Shape, _: &[f32], _: &mut Vec<Steps>) {}

/// None is encoded.
pub(crate) fn by_steps(_level: Level, _: &Stepped<'_>, _dst: (&mut [u8], usize)) -> usize {
    0
}

/// Nothing is done.
pub(crate) fn unpack(_bits: u32, _level: Level, _src: &[u8], _dst: &mut [u8], _n: usize) -> bool {
    false
}

/// Nothing is done.
pub(crate) fn pack(_bits: u32, _level: Level, _src: &[u8], _dst: &mut [u8], _n: usize) -> bool {
    false
}

/// None is looked up.
pub(crate) fn sixteen(_level: Level, _: Codes<'_>, _block: usize, _: Tables<'_>, _dst: &mut [u8], _: bool) -> usize {
    0
}

/// No.
pub(crate) fn has_full(_level: Level) -> bool {
    false
}

/// None is looked up.
pub(crate) fn full(_level: Level, _: &mut [(&[u8], &mut [u8])], _block: usize, _: &[Full], _streams: bool) -> usize {
    0
}

type Values<'a> = (usize, &'a [u8]);

/// Nothing is done.
pub(crate) fn add(_: Level, _: bool, _: Values<'_>, _: Values<'_>, _: [Next; 2], _: &mut Sums) -> Option<Option<Seen>> {
    None
}

/// Nothing is done.
pub(crate) fn add_values(_: Level, _: bool, _: Values<'_>, _: [Next; 2], _: &mut Sums) -> Option<Option<Seen>> {
    None
}

/// None.
pub(crate) fn small_results(_: Level, _: bool, _: Values<'_>, _: Values<'_>, _: f64) -> Option<Small> {
    None
}

/// None.
pub(crate) fn specials(_: Level, _: Values<'_>, _: Values<'_>, _: &Range) -> Option<Special> {
    None
}
