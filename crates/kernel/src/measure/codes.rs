//! Counts of zeros and subnormals by the codes of floats. Every source value must be finite and within the
//! destination's range.

use super::counts::Counts;
use super::limits::{Limits, as_f64};
use crate::level::{Level, Task};
use crate::slot::Slot;
use std::ops::{Add, BitAnd};
use truecast_core::{DType, Kind};

/// Source and destination type whose codes consist of a sign and a magnitude.
#[derive(Clone, Copy, Debug)]
pub(super) struct FloatCodes {
    bytes: [usize; 2],
    /// Mask of a code without its sign.
    magnitude: [u64; 2],
    /// Smallest source magnitude that is nonfinite or overflows.
    unusual: u64,
    /// Magnitude code of the smallest normal result.
    min_normal: u64,
}

struct Seen {
    largest: u64,
    zeros_in: u64,
    zeros_out: u64,
    subnormal: u64,
}

/// Number of bytes of a code, and the mask of its magnitude. `None` unless codes take whole bytes and have zeros of
/// both signs.
fn sign_and_magnitude(dtype: DType) -> Option<(usize, u64)> {
    let Kind::Float(f) = dtype.kind() else { return None };
    let bits = dtype.storage_bits().filter(|bits| *bits == dtype.code_bits() && bits.is_multiple_of(8))?;
    f.has_negative_zero().then(|| (bits as usize / 8, f.magnitude_mask()))
}

impl FloatCodes {
    /// Prepares counts by codes; `None` if the counts need values.
    pub fn between(src: DType, dst: DType, limits: &Limits) -> Option<FloatCodes> {
        let (x, y) = (sign_and_magnitude(src)?, sign_and_magnitude(dst)?);
        let (Kind::Float(from), Kind::Float(to)) = (src.kind(), dst.kind()) else { return None };
        if limits.open.ordinary {
            return None;
        }
        let [positive, negative] = limits.range.over;
        // `over` is NaN if no magnitude overflows.
        let over = if positive.is_nan() { f64::INFINITY } else { positive.min(negative) };
        let is_usual = |code: u64| as_f64(src, code) < over;
        // The order of codes is the order of magnitudes.
        let (mut usual, mut unusual) = (0, from.max_code() + 1);
        while unusual - usual > 1 {
            let middle = usual + (unusual - usual) / 2;
            if is_usual(middle) { usual = middle } else { unusual = middle }
        }
        let (bytes, magnitude) = ([x.0, y.0], [x.1, y.1]);
        Some(FloatCodes { bytes, magnitude, unusual, min_normal: to.min_normal_code() })
    }

    /// Adds the counts of a tile with `n` elements. Returns false, without any effect, if a source value is unusual.
    pub fn add(&self, level: Level, n: usize, [x, y]: [&[u8]; 2], has_subnormals: bool, counts: &mut Counts) -> bool {
        let seen = match self.bytes {
            [1, of] => self.seen_of::<u8>(level, of, x, y),
            [2, of] => self.seen_of::<u16>(level, of, x, y),
            [4, of] => self.seen_of::<u32>(level, of, x, y),
            [_, of] => self.seen_of::<u64>(level, of, x, y),
        };
        if seen.largest >= self.unusual {
            return false;
        }
        counts.elements += n as u64;
        counts.zero_in += seen.zeros_in;
        counts.flushed_to_zero += seen.zeros_out - seen.zeros_in;
        counts.subnormal += if has_subnormals { seen.subnormal } else { 0 };
        true
    }

    fn seen_of<X: Code>(&self, level: Level, of_result: usize, x: &[u8], y: &[u8]) -> Seen {
        let x = X::view(x);
        match of_result {
            1 => level.run(Look::<X, u8> { codes: self, x, y: u8::view(y) }),
            2 => level.run(Look::<X, u16> { codes: self, x, y: u16::view(y) }),
            4 => level.run(Look::<X, u32> { codes: self, x, y: u32::view(y) }),
            _ => level.run(Look::<X, u64> { codes: self, x, y: u64::view(y) }),
        }
    }
}

trait Code: Slot + Ord + BitAnd<Output = Self> + Add<Output = Self> {}
impl<T: Slot + Ord + BitAnd<Output = T> + Add<Output = T>> Code for T {}

const LANES: usize = 32;
/// Number of elements in a run: few enough that a byte holds the count of one lane.
const RUN: usize = LANES * 128;

struct Look<'a, X: Code, Y: Code> {
    codes: &'a FloatCodes,
    x: &'a [X::Bytes],
    y: &'a [Y::Bytes],
}

impl<X: Code, Y: Code> Task for Look<'_, X, Y> {
    type Output = Seen;
    #[inline(always)]
    fn run(self) -> Seen {
        let Look { codes: FloatCodes { magnitude, min_normal, .. }, x, y } = self;
        let (of_x, of_y, min_normal) = (X::low(magnitude[0]), Y::low(magnitude[1]), Y::low(*min_normal));
        let mut all = Seen { largest: 0, zeros_in: 0, zeros_out: 0, subnormal: 0 };
        for (x, y) in x.chunks(RUN).zip(y.chunks(RUN)) {
            let (mut largest, mut zeros_in) = ([X::low(0); LANES], [X::low(0); LANES]);
            let (mut zeros_out, mut below) = ([Y::low(0); LANES], [Y::low(0); LANES]);
            let mut row = |x: &[X::Bytes], y: &[Y::Bytes]| {
                for l in 0..x.len().min(LANES) {
                    let (xm, ym) = (X::load(x[l]) & of_x, Y::load(y[l]) & of_y);
                    largest[l] = largest[l].max(xm);
                    zeros_in[l] = zeros_in[l] + X::low((xm == X::low(0)) as u64);
                    zeros_out[l] = zeros_out[l] + Y::low((ym == Y::low(0)) as u64);
                    below[l] = below[l] + Y::low((ym < min_normal) as u64);
                }
            };
            let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
            for (x, y) in xs.iter().zip(ys) {
                row(x, y);
            }
            row(x_rest, y_rest);
            all.largest = largest.into_iter().map(X::wide).fold(all.largest, u64::max);
            all.zeros_in += zeros_in.into_iter().map(X::wide).sum::<u64>();
            let zeros = zeros_out.into_iter().map(Y::wide).sum::<u64>();
            all.zeros_out += zeros;
            all.subnormal += below.into_iter().map(Y::wide).sum::<u64>() - zeros;
        }
        all
    }
}
