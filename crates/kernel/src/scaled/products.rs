//! Loop that computes bf16 or f16 results from decoded codes and operands, to nearest even.
//!
//! The arithmetic in f32 equals [`super::values`], which needs several loops.

use super::ahead::{OPERANDS_AHEAD, look_ahead};
use super::lookup::{Table16, Table256};
use super::rows::F32;
use crate::lane::Lane;
use crate::lane::encode::EncodeNearest;
use crate::level::{Level, Task};
use crate::numbers::F32_INF;
use crate::numbers::encode::{Encoder, Nearest, shape};
use std::marker::PhantomData;
use truecast_core::policy::{RangeTest, Subnormals};
use truecast_core::{CastSpec, Kind, Rounding};

/// Combination of code `c` with the block's operands `s` and `u`, in f32. The number is a const parameter of loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combination {
    /// `c * s`.
    Times,
    /// `c * s`, for codes that can be NaN.
    TimesOfNan,
    /// `c / s`.
    Divide,
    /// `(c - u) * s`.
    MinusTimes,
    /// `c * s + u`, with two roundings.
    TimesPlus,
    /// `c * s + u` with both roundings to bf16.
    TimesPlusBf16,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow {
    encode: Encode,
    /// Results of the positive and of the negative canonical NaN.
    nan: [u16; 2],
}

#[derive(Clone, Copy, Debug)]
enum Encode {
    Upper(Upper),
    Half(Half),
}

/// Encoder to bf16: rounded upper half of the f32.
#[derive(Clone, Copy, Debug)]
struct Upper {
    half: u32,
}

#[derive(Clone, Copy, Debug)]
struct Half(EncodeNearest<u16, { shape::SUBNORMAL }>);

/// Encoder of an f32 other than NaN.
trait Encodes: Copy {
    fn encode(self, x: u32) -> u16;
}

impl Encodes for Upper {
    #[inline(always)]
    fn encode(self, x: u32) -> u16 {
        (x.wrapping_add(self.half).wrapping_add(x >> 16 & 1) >> 16) as u16
    }
}

impl Encodes for Half {
    #[inline(always)]
    fn encode(self, x: u32) -> u16 {
        self.0.convert(x)
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Blocks<'a> {
    pub s: &'a [F32],
    /// Empty, or as long as `s`.
    pub u: &'a [F32],
    /// Codes per block; the first code begins a block.
    pub block: usize,
}

impl<'a> Blocks<'a> {
    /// Second operand of each block. Equals `s` if there is no second operand.
    fn others(&self) -> &'a [F32] {
        if self.u.is_empty() { self.s } else { self.u }
    }
}

impl Narrow {
    /// `None` for a conversion without such a loop. `nan` has the results of positive and negative NaN.
    pub fn new(spec: &CastSpec, nan: [u16; 2]) -> Option<Narrow> {
        let Kind::Float(f) = spec.dst.kind() else { return None };
        let CastSpec { dst, policy, .. } = spec;
        let plain = policy.to_float == Rounding::NearestEven
            && policy.subnormals == Subnormals::Keep
            && policy.range != RangeTest::Source;
        if f.bits() != 16 || !plain {
            return None;
        }
        let numbers = Encoder::new(*dst, &f, policy)?.nearest()?;
        let Nearest { shape, special_from, shift, half, .. } = numbers;
        let encode = match shape & !(shape::PAYLOAD | shape::SPECIAL) {
            shape if shape & shape::UPPER_BITS != 0 && shift == 16 => Encode::Upper(Upper { half }),
            shape::SUBNORMAL if special_from > F32_INF => Encode::Half(Half(EncodeNearest(numbers, PhantomData))),
            _ => return None,
        };
        Some(Narrow { encode, nan })
    }

    pub fn products(&self, level: Level, how: Combination, values: &[F32], of: Blocks<'_>, results: &mut [u8]) {
        self.run(level, how, Output::Products(values, of, results.as_chunks_mut().0));
    }

    /// Fills a table of 16 results for each block: the result of each code with the block's operands.
    pub fn tables16(&self, level: Level, how: Combination, codes: &[F32], of: Blocks<'_>, tables: &mut [Table16]) {
        let Some(codes) = codes.first_chunk() else { return };
        self.run(level, how, Output::Table16(codes, of, tables));
    }

    /// Fills a table of 256 results for each block: the result of each code with the block's operands.
    pub fn tables256(&self, level: Level, how: Combination, codes: &[F32], of: Blocks<'_>, tables: &mut [Table256]) {
        let Some(codes) = codes.first_chunk() else { return };
        self.run(level, how, Output::Table256(codes, of, tables));
    }

    fn run(&self, level: Level, how: Combination, output: Output<'_>) {
        match self.encode {
            Encode::Upper(encode) => self.encode(level, how, output, encode),
            Encode::Half(encode) => self.encode(level, how, output, encode),
        }
    }

    fn encode<E: Encodes>(&self, level: Level, how: Combination, output: Output<'_>, encode: E) {
        let to = To { encode, nan: self.nan };
        match how {
            Combination::Times => output.run::<{ Combination::Times as u8 }, E>(level, to),
            Combination::TimesOfNan => output.run::<{ Combination::TimesOfNan as u8 }, E>(level, to),
            Combination::Divide => output.run::<{ Combination::Divide as u8 }, E>(level, to),
            Combination::MinusTimes => output.run::<{ Combination::MinusTimes as u8 }, E>(level, to),
            Combination::TimesPlus => output.run::<{ Combination::TimesPlus as u8 }, E>(level, to),
            Combination::TimesPlusBf16 => output.run::<{ Combination::TimesPlusBf16 as u8 }, E>(level, to),
        }
    }
}

enum Output<'a> {
    Products(&'a [F32], Blocks<'a>, &'a mut [[u8; 2]]),
    Table16(&'a [F32; 16], Blocks<'a>, &'a mut [Table16]),
    Table256(&'a [F32; 256], Blocks<'a>, &'a mut [Table256]),
}

impl Output<'_> {
    fn run<const FORM: u8, E: Encodes>(self, level: Level, to: To<E>) {
        match self {
            Output::Products(values, of, results) => {
                let Blocks { s, block, .. } = of;
                level.run(Products::<FORM, E> { values, s, u: of.others(), block, to, results });
            }
            Output::Table16(codes, of, tables) => {
                level.run(Tables::<FORM, E> { codes, s: of.s, u: of.others(), to, tables });
            }
            Output::Table256(codes, of, tables) => {
                level.run(Tables256::<FORM, E> { codes, s: of.s, u: of.others(), to, tables });
            }
        }
    }
}

#[derive(Clone, Copy)]
struct To<E> {
    encode: E,
    nan: [u16; 2],
}

impl<E: Encodes> To<E> {
    /// Result of a code with its operands; NaN by `docs/spec/checkpoints.md §3.6`.
    #[inline(always)]
    fn result<const FORM: u8>(&self, c: f32, s: f32, u: f32) -> [u8; 2] {
        let is = |how: Combination| FORM == how as u8;
        let p = if is(Combination::Divide) {
            c / s
        } else if is(Combination::MinusTimes) {
            (c - u) * s // the difference is exact: integers
        } else if is(Combination::TimesPlus) {
            c * s + u
        } else if is(Combination::TimesPlusBf16) {
            to_bf16(to_bf16(c * s) + u)
        } else {
            c * s
        };
        let negative = is(Combination::TimesOfNan) & c.is_nan() & (c.to_bits() >> 31 != 0);
        let nan = if negative { self.nan[1] } else { self.nan[0] };
        let code = self.encode.encode(p.to_bits());
        (if p.is_nan() { nan } else { code }).to_le_bytes()
    }
}

/// Nearest even. A NaN must have a zero lower half.
#[inline(always)]
fn to_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(bits.wrapping_add(0x7fff).wrapping_add(bits >> 16 & 1) & 0xffff_0000)
}

#[inline(always)]
fn float(bytes: F32) -> f32 {
    f32::from_le_bytes(bytes)
}

struct Products<'a, const FORM: u8, E> {
    values: &'a [F32],
    s: &'a [F32],
    u: &'a [F32],
    block: usize,
    to: To<E>,
    results: &'a mut [[u8; 2]],
}

impl<const FORM: u8, E: Encodes> Task for Products<'_, FORM, E> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match self.block {
            16 => self.in_blocks::<16>(),
            32 => self.in_blocks::<32>(),
            1 => {
                let Products { values, s, u, to, results, .. } = self;
                for ((result, c), (s, u)) in results.iter_mut().zip(values).zip(s.iter().zip(u)) {
                    *result = to.result::<FORM>(float(*c), float(*s), float(*u));
                }
            }
            block => {
                let Products { values, s, u, to, results, .. } = self;
                let blocks = values.chunks(block).zip(results.chunks_mut(block));
                for ((values, results), (s, u)) in blocks.zip(s.iter().zip(u)) {
                    in_one::<FORM, E>(values, *s, *u, to, results);
                }
            }
        }
    }
}

impl<const FORM: u8, E: Encodes> Products<'_, FORM, E> {
    #[inline(always)]
    fn in_blocks<const N: usize>(self) {
        let Products { values, s, u, to, results, .. } = self;
        let ((blocks, rest), (targets, last)) = (values.as_chunks::<N>(), results.as_chunks_mut::<N>());
        for ((values, results), (s, u)) in blocks.iter().zip(targets).zip(s.iter().zip(u)) {
            look_ahead(s, OPERANDS_AHEAD);
            let (s, u) = (float(*s), float(*u));
            let mut made = [[0; 2]; N];
            for i in 0..N {
                made[i] = to.result::<FORM>(float(values[i]), s, u);
            }
            *results = made;
        }
        if let (Some(s), Some(u)) = (s.get(blocks.len()), u.get(blocks.len())) {
            in_one::<FORM, E>(rest, *s, *u, to, last);
        }
    }
}

#[inline(always)]
fn in_one<const FORM: u8, E: Encodes>(values: &[F32], s: F32, u: F32, to: To<E>, results: &mut [[u8; 2]]) {
    let (s, u) = (float(s), float(u));
    for (result, c) in results.iter_mut().zip(values) {
        *result = to.result::<FORM>(float(*c), s, u);
    }
}

struct Tables<'a, const FORM: u8, E> {
    codes: &'a [F32; 16],
    s: &'a [F32],
    u: &'a [F32],
    to: To<E>,
    tables: &'a mut [Table16],
}

impl<const FORM: u8, E: Encodes> Task for Tables<'_, FORM, E> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Tables { codes, s, u, to, tables } = self;
        let codes = *codes;
        for (table, (s, u)) in tables.iter_mut().zip(s.iter().zip(u)) {
            look_ahead(s, OPERANDS_AHEAD);
            let (s, u) = (float(*s), float(*u));
            let mut results = [[0; 2]; 16];
            for i in 0..16 {
                results[i] = to.result::<FORM>(float(codes[i]), s, u);
            }
            table.copy_from_slice(results.as_flattened());
        }
    }
}

struct Tables256<'a, const FORM: u8, E> {
    codes: &'a [F32; 256],
    s: &'a [F32],
    u: &'a [F32],
    to: To<E>,
    tables: &'a mut [Table256],
}

impl<const FORM: u8, E: Encodes> Task for Tables256<'_, FORM, E> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Tables256 { codes, s, u, to, tables } = self;
        for ([low, high], (s, u)) in tables.iter_mut().zip(s.iter().zip(u)) {
            let (s, u) = (float(*s), float(*u));
            for ((low, high), c) in low.iter_mut().zip(high).zip(codes) {
                [*low, *high] = to.result::<FORM>(float(*c), s, u);
            }
        }
    }
}
