//! Codes of bf16 elements without division. The code of a magnitude is a step function of its bits; a table has the
//! steps for a divisor (`docs/kernels.md §15`). Hand-written kernels look up the tables.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "kernels of x86-64 take it"))]

use super::rows::{NextRows, Rows};
use truecast_core::{DType, FloatFormat, Kind};

/// Element type whose codes are a sign and a magnitude `k`.
///
/// ```text
///   bits of |x| as bf16 - first          eeeee mmmmmmm    first: 2^(e of t + e of the lowest midpoint)
///   cells of 16 bit patterns             hhhhhhhh llll    at most one of the first eight steps in each
///   k of the first eight steps           (near[h] + l) / 16
///   k of the others, eight in a binade   h - far[m]
///   the same of a fraction ccccrrr       h - h mod 8 - far[0] + (cells[c] + r) / 8
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Midpoints between `k` and `k + 1`, up to `k = 7`. A quotient that rounds to a midpoint is a tie, to even.
    midpoints: [f32; 8],
    exponent: i32,
    /// Whether the type has no steps beyond `midpoints`.
    pub is_short: bool,
    /// Largest `k`.
    pub most: u8,
}

impl Shape {
    /// `None` unless the type has eight subnormal codes and eight codes per binade, or only eight codes.
    pub fn new(dtype: DType) -> Option<Shape> {
        let (DType::F4E2M1 | DType::F8E4M3Fn, Kind::Float(f)) = (dtype, dtype.kind()) else { return None };
        let most = f.max_code() as u8;
        let value = |k: u8| if k > most { f32::INFINITY } else { value(&f, k) };
        let midpoints = std::array::from_fn(|k| (value(k as u8) + value(k as u8 + 1)) / 2.0);
        Some(Shape { midpoints, exponent: exponent(midpoints[0]) as i32 - 127, is_short: most < 8, most })
    }

    /// Whether the divisor can have a table: every computed number must be a normal f32.
    pub fn takes(&self, t: f32) -> bool {
        const SMALL: f32 = f32::from_bits((127 - 60) << 23);
        const LARGE: f32 = f32::from_bits((127 + 40) << 23);
        (SMALL..=LARGE).contains(&t)
    }

    /// First bits of the table for a divisor.
    pub fn first(&self, t: f32) -> u16 {
        ((exponent(t) as i32 + self.exponent) << 7) as u16
    }

    /// Largest difference of bits from `first`.
    pub fn last(&self) -> u16 {
        if self.is_short { 0x3ff } else { 0xfff }
    }

    /// Table for a divisor.
    ///
    /// The definition compares the quotient `x / t`, rounded to f32, with a midpoint `m`. Only bf16 values near `m t`
    /// matter. Let `x` be the bf16 below `RN32(m t)`: no smaller bf16 rounds to `m`, and the next bf16 is above `m`.
    #[inline(always)]
    pub fn steps(&self, t: f32) -> Steps {
        let first = self.first(t);
        let mut at = [0u16; 8];
        for (k, (at, midpoint)) in at.iter_mut().zip(self.midpoints).enumerate() {
            let below = (midpoint * t).to_bits() & 0xffff_0000;
            let q = f32::from_bits(below) / t;
            let is_reached = (q > midpoint) | ((q == midpoint) & (k % 2 == 1));
            *at = (((below >> 16) + u32::from(!is_reached)) as u16).wrapping_sub(first);
        }
        let mut steps = Steps { near: [0; 64], far: [0; 128], cells: [0; 16] };
        for h in 0..64 {
            let end = 16 * (h as u16 + 1);
            let mut sum = 0;
            for step in at {
                sum += end.saturating_sub(step).min(16);
            }
            steps.near[h] = sum as u8;
        }
        if !self.is_short {
            let t = f32::from_bits(t.to_bits() & 0x007f_ffff | 0x3f80_0000);
            for m in 0..128u32 {
                let q = (f32::from_bits(0x3f80_0000 | m << 16) / t).to_bits();
                // Rounds to three fraction bits, ties to even: eight steps per binade, none at 1.
                let k = (q + 0x7_ffff + (q >> 20 & 1)) >> 20;
                // Subnormal codes take four binades; three of the four lack eight steps.
                steps.far[m as usize] = ((m >> 4) + 24 + 8 * 127 - k) as u8;
            }
        }
        steps
    }

    /// Table for a divisor, with `cells`.
    #[inline(always)]
    pub fn steps_with_cells(&self, t: f32) -> Steps {
        let mut steps = self.steps(t);
        if !self.is_short {
            // A cell of eight fractions has at most one step, because steps are a sixteenth of the fraction's range
            // apart.
            for (m, far) in steps.far.iter().enumerate() {
                steps.cells[m / 8] += steps.far[0] + (m / 16) as u8 - far;
            }
        }
        steps
    }
}

/// Steps for a divisor, by cells and by fractions of bf16.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Steps {
    pub near: [u8; 64],
    pub far: [u8; 128],
    /// `far` by cells of eight fractions; only from [`Shape::steps_with_cells`].
    pub cells: [u8; 16],
}

/// Rows of bf16, with a table for each block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stepped<'a> {
    pub rows: Rows<'a>,
    pub shape: &'a Shape,
    /// First bf16 bits of each block's table. Three extra entries follow the last block.
    pub firsts: &'a [u16],
    /// Index of each block's table. Three extra entries follow the last block. Empty if all blocks have the first
    /// table.
    pub indices: &'a [u8],
    pub tables: &'a [Steps],
    pub next: NextRows<'a>,
}

/// How blocks and groups of elements divide each other. One of the two numbers is 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    pub groups_per_block: usize,
    pub blocks_per_group: usize,
}

impl Stepped<'_> {
    /// Division of each row into `n` groups of `elements` elements, and the rest.
    ///
    /// # Panics
    /// If the groups have more blocks than there are entries.
    pub fn division(&self, n: usize, elements: usize) -> Division {
        let block = self.rows.block;
        let (groups_per_block, blocks_per_group) = ((block / elements).max(1), (elements / block).max(1));
        let n_entries = n.div_ceil(groups_per_block) * blocks_per_group + 3;
        assert!(self.firsts.len() >= n_entries && (self.indices.is_empty() || self.indices.len() >= n_entries));
        Division { groups_per_block, blocks_per_group }
    }
}

fn exponent(x: f32) -> u32 {
    x.to_bits() >> 23
}

fn value(f: &FloatFormat, code: u8) -> f32 {
    let (field, fraction) = (code >> f.man_bits, code & ((1 << f.man_bits) - 1));
    let significand = f32::from(if field == 0 { fraction } else { fraction | 1 << f.man_bits });
    let power = i32::from(field.max(1)) - i32::from(f.bias) - i32::from(f.man_bits);
    significand * f32::from_bits(((127 + power) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::policy::Overflow;
    use truecast_core::{CastPolicy, CastSpec, cast_one};

    /// Lookup of bf16 bits, as in a kernel.
    fn looked_up(shape: &Shape, steps: &Steps, first: u16, x: u16) -> u8 {
        let d = (x & 0x7fff).saturating_sub(first).min(shape.last());
        let (h, l) = ((d >> 4) as u8, d as u8);
        let near = (steps.near[usize::from(h & 63)] + (l & 15)) >> 4;
        let far = h.saturating_sub(steps.far[usize::from(l & 127)]);
        let of_cell = (steps.cells[usize::from(l >> 3 & 15)] + (l & 7)) >> 3;
        let by_cell = (h & !7).saturating_add(of_cell).saturating_sub(steps.far[0]);
        assert!(shape.is_short || by_cell.min(shape.most) == far.min(shape.most), "{d:#x}");
        if shape.is_short { near } else { near.max(far).min(shape.most) }
    }

    /// Every finite bf16, with divisors of all kinds, many with ties, against division and the defined cast.
    #[test]
    fn steps_are_those_of_a_division() {
        let of_amax = |amax: u32, by: f32| f32::from_bits((amax + 0x3d80) << 16) / by;
        let ties = (0..256).flat_map(|amax| [of_amax(amax, 448.0), of_amax(amax, 2688.0), of_amax(amax, 6.0)]);
        let near = (0..128u32).flat_map(|i| [-1i32, 0, 1].map(|e| (0x3c00_0000 | i << 16).wrapping_add_signed(e)));
        let spread = (0..300u32).map(|i| (0x3f00_0000 | i.wrapping_mul(2_654_435_761) >> 8) ^ (i % 40) << 23);
        let ends = [67u32, 167].map(|e| f32::from_bits(e << 23));
        let divisors: Vec<f32> = ties.chain(near.chain(spread).map(f32::from_bits)).chain(ends).collect();
        for dtype in [DType::F4E2M1, DType::F8E4M3Fn] {
            let shape = Shape::new(dtype).unwrap();
            let policy = CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, ..CastPolicy::IEEE };
            let spec = CastSpec { src: DType::F32, dst: dtype, policy, undefined: &[], clause: "" };
            let code = |q: f32| cast_one(&spec, q.to_bits().into()).code().unwrap() as u8;
            // Smallest f32 bits of each code.
            let begins: Vec<u32> = (1..=shape.most)
                .map(|k| {
                    let (mut low, mut high) = (0u32, 0x7f80_0000);
                    while low < high {
                        let middle = low + (high - low) / 2;
                        if code(f32::from_bits(middle)) >= k { high = middle } else { low = middle + 1 }
                    }
                    low
                })
                .collect();
            for &t in divisors.iter().filter(|t| shape.takes(**t)) {
                let (steps, first) = (shape.steps_with_cells(t), shape.first(t));
                let mut k = 0;
                for x in 0..0x7f80u16 {
                    let q = (f32::from_bits(u32::from(x) << 16) / t).to_bits();
                    while k < begins.len() && begins[k] <= q {
                        k += 1;
                    }
                    assert_eq!(looked_up(&shape, &steps, first, x), k as u8, "{dtype} of {x:#06x} by {t:e}");
                }
            }
        }
    }
}
