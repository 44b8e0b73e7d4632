//! Loops over `v * m + half >> s`, compiled for each pair of types, mode and level. Source: `docs/spec/tosa.md §4.5`.

use super::pass::{Pass, Tally};
use crate::level::{Level, Task};
use crate::slot::Slot;
use std::marker::PhantomData;
use truecast_core::rescale::{Channel, RescaleSpec};

pub(super) mod mode {
    /// One rounding.
    pub const SINGLE: u8 = 0;
    /// 32-bit multipliers. If the shift is above 31, the product is first rounded at bit 30.
    pub const DOUBLE: u8 = 1;
    /// One rounding, 16-bit multipliers, tests of R4 and R5.
    pub const SHORT: u8 = 2;
    /// 9-bit values with multipliers short enough for 32-bit products.
    pub const IN_32_BITS: u8 = 3;
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    /// Mask from a sign-extended input to a zero-extended input.
    mask: i32,
    input_zp: i32,
    output_zp: i32,
    min: i32,
    max: i32,
}

struct One<D> {
    result: D,
    /// Nonzero if a requirement fails.
    failed: u32,
    /// 1 if the value does not fit.
    saturated: u32,
}

impl Params {
    pub fn new(spec: &RescaleSpec) -> Self {
        Self {
            mask: if spec.input.signed { -1 } else { spec.input.mask() as i32 },
            input_zp: spec.input_zp as i32,
            output_zp: spec.output_zp as i32,
            min: spec.output.min() as i32,
            max: spec.output.max() as i32,
        }
    }

    /// Element minus zero point. The difference fits in 32 bits, because only 8-bit and 16-bit inputs have zero points.
    #[inline(always)]
    pub fn narrow<S: Slot>(&self, x: S) -> i32 {
        (x.sign_extended() as i32 & self.mask).wrapping_sub(self.input_zp)
    }

    /// Source: `docs/spec/tosa.md §4.5`. The shift must be in 1..=62, and the multiplier must not be negative.
    #[inline(always)]
    fn one<S: Slot, D: Slot, const MODE: u8>(&self, x: S, multiplier: i32, shift: u32) -> One<D> {
        let half = 1i64.wrapping_shl(shift.wrapping_sub(1));
        let narrow = self.narrow(x);
        let product = match (S::BYTES, MODE) {
            // A multiplier is not negative, so the upper half is 0.
            (8, _) => x.sign_extended().wrapping_mul(i64::from(multiplier as u32)),
            (_, mode::IN_32_BITS) => i64::from(narrow.wrapping_mul(multiplier)),
            _ => i64::from(narrow) * i64::from(multiplier),
        };
        let rounded = product.wrapping_add(half);
        let rounded = match MODE {
            mode::DOUBLE => {
                let first = if shift > 31 { 1i64 << 30 } else { 0 };
                rounded.wrapping_add(if narrow < 0 { -first } else { first })
            }
            _ => rounded,
        };
        let q = match MODE {
            mode::IN_32_BITS => i64::from((rounded as i32).wrapping_shr(shift)),
            _ => rounded.wrapping_shr(shift),
        };
        let failed = match MODE {
            // R4, R5: the result must fit in 32 bits before the zero point is added, and also afterwards.
            mode::SHORT => {
                let offset = q.wrapping_add(i64::from(self.output_zp));
                let beyond = |value: i64| i64::from(value as i32) ^ value;
                (beyond(q) | beyond(offset) != 0) as u32
            }
            _ => 0,
        };
        let offset = (q as i32).wrapping_add(self.output_zp);
        let clamped = offset.max(self.min).min(self.max);
        One { result: D::low(clamped as u32 as u64), failed, saturated: (clamped != offset) as u32 }
    }
}

#[derive(Debug)]
pub(super) struct Arithmetic<S, D, const MODE: u8> {
    level: Level,
    params: Params,
    scales: Scales,
    pair: PhantomData<(S, D)>,
}

#[derive(Debug)]
pub(super) enum Scales {
    One(i32, u32),
    /// Scales of a row, repeated until a loop is long enough.
    Rows {
        multipliers: Vec<i32>,
        shifts: Vec<u32>,
    },
}

/// Minimum number of scales in memory, and minimum number of elements in a loop over the scales.
const LONG_ENOUGH: usize = 512;

impl Scales {
    pub fn new(channels: &[Channel]) -> Self {
        if let [only] = channels {
            return Scales::One(only.multiplier, only.shift as u32);
        }
        let rows = LONG_ENOUGH.div_ceil(channels.len());
        let repeated = || std::iter::repeat_n(channels, rows).flatten();
        Scales::Rows {
            multipliers: repeated().map(|c| c.multiplier).collect(),
            shifts: repeated().map(|c| c.shift as u32).collect(),
        }
    }
}

impl<S, D, const MODE: u8> Arithmetic<S, D, MODE> {
    pub fn new(spec: &RescaleSpec, channels: &[Channel], level: Level) -> Self {
        Self { level, params: Params::new(spec), scales: Scales::new(channels), pair: PhantomData }
    }
}

impl<S: Slot, D: Slot, const MODE: u8> Pass for Arithmetic<S, D, MODE> {
    fn run(&self, first: usize, src: &[u8], dst: &mut [u8]) -> Tally {
        let params = self.params;
        let (src, dst) = (S::view(src), D::view_mut(dst));
        match &self.scales {
            Scales::One(multiplier, shift) => {
                self.level.run(OneScale::<S, D, MODE> { params, multiplier: *multiplier, shift: *shift, src, dst })
            }
            Scales::Rows { multipliers, shifts } => {
                self.level.run(ManyScales::<S, D, MODE> { params, multipliers, shifts, first, src, dst })
            }
        }
    }
}

struct OneScale<'a, S: Slot, D: Slot, const MODE: u8> {
    params: Params,
    multiplier: i32,
    shift: u32,
    src: &'a [S::Bytes],
    dst: &'a mut [D::Bytes],
}

impl<S: Slot, D: Slot, const MODE: u8> Task for OneScale<'_, S, D, MODE> {
    type Output = Tally;
    #[inline(always)]
    fn run(self) -> Tally {
        let (multiplier, shift) = (self.multiplier, self.shift);
        let scales = std::iter::repeat((&multiplier, &shift));
        each::<S, D, MODE>(&self.params, self.src, self.dst, scales)
    }
}

struct ManyScales<'a, S: Slot, D: Slot, const MODE: u8> {
    params: Params,
    multipliers: &'a [i32],
    shifts: &'a [u32],
    first: usize,
    src: &'a [S::Bytes],
    dst: &'a mut [D::Bytes],
}

impl<S: Slot, D: Slot, const MODE: u8> Task for ManyScales<'_, S, D, MODE> {
    type Output = Tally;
    #[inline(always)]
    fn run(self) -> Tally {
        let mut total = Tally::default();
        let (mut src, mut dst) = (self.src, self.dst);
        let mut at = self.first % self.multipliers.len();
        while !src.is_empty() {
            let n = (self.multipliers.len() - at).min(src.len());
            let (s_row, s_rest) = src.split_at(n);
            let (d_row, d_rest) = dst.split_at_mut(n);
            let scales = self.multipliers[at..at + n].iter().zip(&self.shifts[at..at + n]);
            let Tally { saturated, failed } = each::<S, D, MODE>(&self.params, s_row, d_row, scales);
            total = Tally { saturated: total.saturated + saturated, failed: total.failed | failed };
            (src, dst, at) = (s_rest, d_rest, 0);
        }
        total
    }
}

/// `zip` avoids bounds checks.
#[inline(always)]
fn each<'a, S: Slot, D: Slot, const MODE: u8>(
    params: &Params,
    src: &[S::Bytes],
    dst: &mut [D::Bytes],
    scales: impl Iterator<Item = (&'a i32, &'a u32)>,
) -> Tally {
    // A local copy of the parameters cannot change through `dst`, which allows vectorization.
    let params = *params;
    let (mut saturated, mut failed) = (0u32, 0u32);
    for ((d, s), (multiplier, shift)) in dst.iter_mut().zip(src).zip(scales) {
        let one = params.one::<S, D, MODE>(S::load(*s), *multiplier, *shift);
        *d = one.result.store();
        saturated += one.saturated;
        failed |= one.failed;
    }
    Tally { saturated: saturated.into(), failed: failed != 0 }
}
