//! [`Powers`]: number of values for each power of two. Narrow elements are counted by code, wide floats by their
//! leading bits.

use super::survey::histogram;
use super::{BLOCK, Sample};
use crate::buf::Elements;
use crate::parallel::map_range;
use crate::slot::Slot;
use std::num::NonZeroUsize;
use truecast_core::exact::decode;
use truecast_core::{DType, Exact, Kind};

/// Number of finite nonzero values for each power of two, and of all other values.
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast_kernel::{Elements, measure::{Powers, Sample}};
/// let bytes: Vec<u8> = [0.75f32, -0.5, 4.0, 0.0, f32::NAN].iter().flat_map(|v| v.to_le_bytes()).collect();
/// let powers = Powers::of(Elements::new(DType::F32, 5, &bytes)?, 0, Sample::ALL, std::num::NonZeroUsize::MIN);
/// assert_eq!((powers.first, &powers.counts[..]), (-1, &[2, 0, 0, 1][..]));
/// assert_eq!((powers.zero, powers.nan, powers.inf), (1, 1, 0));
/// # Ok::<(), truecast_kernel::CastError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Powers {
    /// Exponent of the first count. A value `x` counts for `e` if `2^e <= |x| < 2^(e+1)`.
    pub first: i32,
    /// Number of values for each exponent from `first` up; the first and the last count are not 0.
    pub counts: Vec<u64>,
    /// Number of zeros.
    pub zero: u64,
    /// Number of NaN.
    pub nan: u64,
    /// Number of infinities.
    pub inf: u64,
}

impl Powers {
    /// Counts the sample of an array. `codes` begins with element `first` of the array. Elements that are not numbers
    /// give no counts.
    #[must_use]
    pub fn of(codes: Elements<'_>, first: u64, sample: Sample, threads: NonZeroUsize) -> Powers {
        let mut all = Powers::default();
        let width = codes.dtype().bits_in(codes.layout()).filter(|_| codes.dtype().is_numeric());
        let Some(bits) = width.map(|bits| bits as usize) else { return all };
        let block = |(): &mut (), block: usize| {
            let (start, end) = (block * BLOCK, codes.len().min((block + 1) * BLOCK));
            let mut powers = Powers::default();
            if sample.takes(first + start as u64) {
                let bytes = &codes.bytes()[start * bits / 8..(end * bits).div_ceil(8)];
                let part = Elements::with_layout(codes.dtype(), codes.layout(), end - start, bytes);
                powers.add(part.expect("a block has the bytes of its elements"));
            }
            powers
        };
        let blocks = map_range(threads, 0..codes.len().div_ceil(BLOCK), || (), block);
        blocks.iter().for_each(|powers| all.merge(powers));
        all
    }

    /// Number of counted elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.zero + self.nan + self.inf
    }

    /// Adds the counts of other elements.
    pub fn merge(&mut self, other: &Powers) {
        (self.zero, self.nan, self.inf) = (self.zero + other.zero, self.nan + other.nan, self.inf + other.inf);
        (other.first..).zip(&other.counts).filter(|(_, n)| **n > 0).for_each(|(power, n)| self.power(power, *n));
    }

    fn power(&mut self, power: i32, n: u64) {
        if self.counts.is_empty() {
            self.first = power;
        }
        if power < self.first {
            let missing = (self.first - power) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = power;
        }
        let at = (power - self.first) as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += n;
    }

    fn code(&mut self, dtype: DType, code: u64, n: u64) {
        match decode(dtype, code) {
            Exact::Nan { .. } => self.nan += n,
            Exact::Inf { .. } => self.inf += n,
            Exact::Finite { sig: 0, .. } => self.zero += n,
            Exact::Finite { sig, exp, .. } => self.power(exp + sig.ilog2() as i32, n),
        }
    }

    fn add(&mut self, codes: Elements<'_>) {
        let dtype = codes.dtype();
        match (dtype.kind(), dtype.bits_in(codes.layout())) {
            (_, Some(bits @ 1..=8)) => {
                let counts = histogram(&codes, bits as usize);
                let occurring = counts.into_iter().enumerate().filter(|(_, n)| *n > 0);
                occurring.for_each(|(storage, n)| self.code(dtype, dtype.code_of_storage(storage as u64), n));
            }
            // Subnormals of f16 are frequent: more bits divide them by power of two.
            (Kind::Float(f), Some(16)) if f.exp_bits < 8 => self.floats::<u16, 1024>(codes, f.exp_bits.into()),
            (Kind::Float(f), Some(16)) => self.floats::<u16, 256>(codes, f.exp_bits.into()),
            // tf32 has the layout of f32.
            (Kind::Float(f), Some(32)) => self.floats::<u32, 256>(codes, f.exp_bits.into()),
            (Kind::Float(f), Some(64)) => self.floats::<u64, 2048>(codes, f.exp_bits.into()),
            _ => (0..codes.len()).for_each(|i| self.code(dtype, codes.get(i), 1)),
        }
    }

    /// Counts leading bits: the exponent, and bits of the significand. The lowest and the highest counts need more bits.
    fn floats<W: Slot, const LEADING: usize>(&mut self, codes: Elements<'_>, exp_bits: u32) {
        let dtype = codes.dtype();
        let width = 8 * W::BYTES as u32 - 1;
        let shift = width - LEADING.ilog2();
        let leading = |bytes: W::Bytes| (W::load(bytes).wide() >> shift) as usize % LEADING;
        let ordinary = 1..LEADING - (LEADING >> exp_bits);
        let elements = W::view(codes.bytes());
        // Several tables, so that equal neighbors do not wait for each other.
        let mut tables = [[0u32; LEADING]; 4];
        let (groups, rest) = elements.as_chunks::<4>();
        for group in groups {
            for (table, &bytes) in tables.iter_mut().zip(group) {
                table[leading(bytes)] += 1;
            }
        }
        rest.iter().for_each(|&bytes| tables[0][leading(bytes)] += 1);
        let mut left = elements.len() as u64;
        let counts = ordinary.clone().map(|at| (at, tables.iter().map(|table| u64::from(table[at])).sum::<u64>()));
        for (at, count) in counts.filter(|(_, count)| *count > 0) {
            self.code(dtype, dtype.code_of_storage((at as u64) << shift), count);
            left -= count;
        }
        if left > 0 {
            for &bytes in elements.iter().filter(|&&bytes| !ordinary.contains(&leading(bytes))) {
                match W::load(bytes).wide() & (u64::MAX >> (64 - width)) {
                    0 => self.zero += 1,
                    magnitude => self.code(dtype, dtype.code_of_storage(magnitude), 1),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::Layout;

    /// Counts each element by its definition.
    fn by_definition(codes: Elements<'_>) -> Powers {
        let mut powers = Powers::default();
        (0..codes.len()).for_each(|i| powers.code(codes.dtype(), codes.get(i), 1));
        powers
    }

    #[test]
    fn every_type_is_counted_as_by_the_definition() {
        // Every 16-bit pattern, and patterns of wider elements that begin with each.
        for dtype in DType::ALL.iter().copied().filter(|dtype| dtype.is_numeric()) {
            let bits = dtype.bits_in(Layout::Packed).unwrap() as usize;
            let bytes: Vec<u8> = match bits {
                ..=16 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
                _ => (0..=u16::MAX)
                    .flat_map(|high| [vec![high as u8 & 1; bits / 8 - 2], high.to_le_bytes().to_vec()].concat())
                    .collect(),
            };
            let len = bytes.len() * 8 / bits / 8 * 8 - 5;
            let bytes = &bytes[..(len * bits).div_ceil(8)];
            let codes = Elements::new(dtype, len, bytes).unwrap();
            let powers = Powers::of(codes, 0, Sample::ALL, NonZeroUsize::MIN);
            assert_eq!(powers, by_definition(codes), "{dtype}");
            assert_eq!(powers.elements(), len as u64, "{dtype}");
        }
    }
}
