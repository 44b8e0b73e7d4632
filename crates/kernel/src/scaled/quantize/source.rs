//! Loops over unquantized elements in place: largest magnitude and range of each block, and quotients.

use crate::level::Task;
use crate::scaled::ahead::{OPERANDS_AHEAD, look_ahead};
pub(super) use crate::scaled::rows::{F32, how};
use std::marker::PhantomData;
use truecast_core::DType;

pub(super) const INF: u32 = 0x7f80_0000;

/// Element type whose values are exact in f32.
pub(super) trait Source {
    type Element: Copy;
    /// Bits of a magnitude, in the order of magnitudes. Signed, because SSE2 has no maximum of unsigned words.
    type Magnitude: Copy + Ord + Default;
    fn elements(bytes: &[u8]) -> &[Self::Element];
    fn magnitude(x: Self::Element) -> Self::Magnitude;
    /// f32 bits of a magnitude.
    fn widened(magnitude: Self::Magnitude) -> u32;
    /// Value of an element other than NaN.
    fn value(x: Self::Element) -> f32;
    /// Largest magnitude up to a positive limit, or one less.
    fn up_to(limit: f32) -> Self::Magnitude;

    /// Whether an element's magnitude may be above a limit. No element may be NaN.
    fn any_above(elements: &[Self::Element], limit: f32) -> bool {
        let last = Self::up_to(limit);
        // Without a branch, for vectors of elements.
        elements.iter().fold(false, |any, x| any | (Self::magnitude(*x) > last))
    }
}

pub(super) struct ZeroElements<'a, S: Source> {
    pub x: &'a [S::Element],
}

impl<S: Source> Task for ZeroElements<'_, S> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let is_zero = |x: &S::Element| u64::from(S::magnitude(*x) == S::Magnitude::default());
        let some = |run: &[S::Element]| run.iter().map(|x| is_zero(x) as u16).sum::<u16>();
        self.x.chunks(1 << 12).map(|run| u64::from(some(run))).sum()
    }
}

pub(super) struct OfBf16;
impl Source for OfBf16 {
    type Element = [u8; 2];
    type Magnitude = i16;
    #[inline(always)]
    fn elements(bytes: &[u8]) -> &[[u8; 2]] {
        bytes.as_chunks().0
    }
    #[inline(always)]
    fn magnitude(x: [u8; 2]) -> i16 {
        i16::from_le_bytes(x) & i16::MAX
    }
    #[inline(always)]
    fn widened(magnitude: i16) -> u32 {
        (magnitude as u32) << 16
    }
    #[inline(always)]
    fn value(x: [u8; 2]) -> f32 {
        f32::from_bits(u32::from(u16::from_le_bytes(x)) << 16)
    }
    #[inline(always)]
    fn up_to(limit: f32) -> i16 {
        (limit.to_bits() >> 16) as i16
    }
}

pub(super) struct OfF16;
impl Source for OfF16 {
    type Element = [u8; 2];
    type Magnitude = i16;
    #[inline(always)]
    fn elements(bytes: &[u8]) -> &[[u8; 2]] {
        bytes.as_chunks().0
    }
    #[inline(always)]
    fn magnitude(x: [u8; 2]) -> i16 {
        i16::from_le_bytes(x) & i16::MAX
    }
    #[inline(always)]
    fn widened(magnitude: i16) -> u32 {
        // The product, which is exact, moves the exponent. Infinity and NaN stay at the top.
        const TWO_TO_112: f32 = f32::from_bits((127 + 112) << 23);
        let bits = (magnitude as u32) << 13;
        if bits >= 0x7c00 << 13 { bits | INF } else { (f32::from_bits(bits) * TWO_TO_112).to_bits() }
    }
    #[inline(always)]
    fn value(x: [u8; 2]) -> f32 {
        let sign = (i32::from(i16::from_le_bytes(x)) as u32) & 0x8000_0000;
        f32::from_bits(Self::widened(Self::magnitude(x)) | sign)
    }
    #[inline(always)]
    fn up_to(limit: f32) -> i16 {
        // Truncated, and one less, because a subnormal product may have been rounded up.
        const TWO_TO_MINUS_112: f32 = f32::from_bits((127 - 112) << 23);
        let cut = (limit.min(65504.0) * TWO_TO_MINUS_112).to_bits() >> 13;
        cut as i16 - 1
    }
}

pub(super) struct OfF32;
impl Source for OfF32 {
    type Element = [u8; 4];
    type Magnitude = i32;
    #[inline(always)]
    fn elements(bytes: &[u8]) -> &[[u8; 4]] {
        bytes.as_chunks().0
    }
    #[inline(always)]
    fn magnitude(x: [u8; 4]) -> i32 {
        i32::from_le_bytes(x) & i32::MAX
    }
    #[inline(always)]
    fn widened(magnitude: i32) -> u32 {
        magnitude as u32
    }
    #[inline(always)]
    fn value(x: [u8; 4]) -> f32 {
        f32::from_le_bytes(x)
    }
    #[inline(always)]
    fn up_to(limit: f32) -> i32 {
        limit.to_bits() as i32
    }
}

/// Defines the [`Source`] of a type in an expression. Types that were widened use f32.
macro_rules! by_source {
    ($dtype:expr, $source:ident => $run:expr) => {
        match $dtype {
            truecast_core::DType::Bf16 => {
                type $source = $crate::scaled::quantize::source::OfBf16;
                $run
            }
            truecast_core::DType::F16 => {
                type $source = $crate::scaled::quantize::source::OfF16;
                $run
            }
            _ => {
                type $source = $crate::scaled::quantize::source::OfF32;
                $run
            }
        }
    };
}
pub(super) use by_source;

/// Whether elements are read as a [`Source`]; other types are first widened.
pub(super) fn is_source(dtype: DType) -> bool {
    matches!(dtype, DType::Bf16 | DType::F16 | DType::F32)
}

/// Computes, for each block, the maximum of its entry in `largest` and of its magnitudes. Magnitudes are bits of f32.
pub(super) struct Largest<'a, S: Source> {
    pub src: &'a [S::Element],
    pub block: usize,
    /// Distance of the prefetch in bytes.
    pub ahead: usize,
    pub largest: &'a mut [u32],
}

impl<S: Source> Task for Largest<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Largest { src, block, ahead, largest } = self;
        match block {
            16 => of_blocks::<S, 16>(src, ahead, largest),
            32 => of_blocks::<S, 32>(src, ahead, largest),
            _ => {
                for (src, largest) in src.chunks(block).zip(largest) {
                    *largest = (*largest).max(S::widened(of_many::<S>(src, ahead)));
                }
            }
        }
    }
}

/// Largest magnitude of each block of columns, as f32 bits. Rows are `stride` bytes apart.
pub(super) struct LargestOfRows<'a, S: Source> {
    pub src: &'a [u8],
    pub stride: usize,
    pub cols: usize,
    pub block: usize,
    /// Distance of the prefetch in bytes; 0 for no prefetch.
    pub ahead: usize,
    /// Buffer for the rows without gaps; empty if rows are not copied.
    pub copy: &'a mut [u8],
    pub largest: &'a mut [u32],
    pub source: PhantomData<S>,
}

impl<S: Source> Task for LargestOfRows<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        const LANES: usize = 64;
        let LargestOfRows { src, stride, cols, block, ahead, copy, largest, .. } = self;
        let row_bytes = cols * size_of::<S::Element>();
        let mut most = vec![[S::Magnitude::default(); LANES]; largest.len()];
        let mut copies = copy.chunks_exact_mut(row_bytes);
        for src in src.chunks(stride) {
            let (src, copy) = (&src[..row_bytes], copies.next().unwrap_or(&mut []));
            copy.copy_from_slice(&src[..copy.len()]);
            for (src, most) in S::elements(src).chunks(block).zip(&mut most) {
                let (parts, rest) = src.as_chunks::<LANES>();
                let mut lanes = *most;
                for x in parts {
                    if ahead > 0 {
                        look_ahead(x, ahead);
                    }
                    for i in 0..LANES {
                        lanes[i] = lanes[i].max(S::magnitude(x[i]));
                    }
                }
                for x in rest {
                    lanes[0] = lanes[0].max(S::magnitude(*x));
                }
                *most = lanes;
            }
        }
        for (largest, most) in largest.iter_mut().zip(most) {
            *largest = S::widened(fold::<S, LANES>(most));
        }
    }
}

pub(super) struct Most<'a> {
    pub magnitudes: &'a [u32],
}

impl Task for Most<'_> {
    type Output = u32;
    #[inline(always)]
    fn run(self) -> u32 {
        self.magnitudes.iter().fold(0, |most, magnitude| most.max(*magnitude))
    }
}

/// Largest 16-bit magnitudes, one per block, as f32 bits.
pub(super) struct Widened<'a, S> {
    pub magnitudes: &'a [i16],
    pub largest: &'a mut [u32],
    pub source: PhantomData<S>,
}

impl<S: Source<Magnitude = i16>> Task for Widened<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (largest, magnitude) in self.largest.iter_mut().zip(self.magnitudes) {
            *largest = (*largest).max(S::widened(*magnitude));
        }
    }
}

#[inline(always)]
fn of_blocks<S: Source, const N: usize>(src: &[S::Element], ahead: usize, largest: &mut [u32]) {
    let (blocks, rest) = src.as_chunks::<N>();
    for (x, largest) in blocks.iter().zip(&mut *largest) {
        look_ahead(x, ahead);
        let mut most = [S::Magnitude::default(); N];
        for i in 0..N {
            most[i] = S::magnitude(x[i]);
        }
        *largest = (*largest).max(S::widened(fold::<S, N>(most)));
    }
    if let (Some(last), false) = (largest.get_mut(blocks.len()), rest.is_empty()) {
        *last = (*last).max(S::widened(of_many::<S>(rest, ahead)));
    }
}

#[inline(always)]
fn of_many<S: Source>(src: &[S::Element], ahead: usize) -> S::Magnitude {
    const LANES: usize = 64;
    let (parts, rest) = src.as_chunks::<LANES>();
    let mut most = [S::Magnitude::default(); LANES];
    for x in parts {
        look_ahead(x, ahead);
        for i in 0..LANES {
            most[i] = most[i].max(S::magnitude(x[i]));
        }
    }
    let most = if parts.is_empty() { S::Magnitude::default() } else { fold::<S, LANES>(most) };
    rest.iter().fold(most, |most, x| most.max(S::magnitude(*x)))
}

/// Maximum of a power-of-two number of magnitudes, by halves.
#[inline(always)]
fn fold<S: Source, const N: usize>(mut most: [S::Magnitude; N]) -> S::Magnitude {
    let mut half = N / 2;
    while half > 0 {
        for i in 0..half {
            most[i] = most[i].max(most[i + half]);
        }
        half /= 2;
    }
    most[0]
}

/// Lowest and highest value of each block, starting from the given `ranges`.
pub(super) struct Ranges<'a, S: Source> {
    pub src: &'a [S::Element],
    pub block: usize,
    pub ranges: &'a mut [[f32; 2]],
}

impl<S: Source> Task for Ranges<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        const LANES: usize = 16;
        for (src, range) in self.src.chunks(self.block).zip(self.ranges) {
            let (mut low, mut high) = ([range[0]; LANES], [range[1]; LANES]);
            let (parts, rest) = src.as_chunks::<LANES>();
            for part in parts {
                for i in 0..LANES {
                    let x = S::value(part[i]);
                    low[i] = if x < low[i] { x } else { low[i] };
                    high[i] = if x > high[i] { x } else { high[i] };
                }
            }
            let least = |a: f32, b: f32| if b < a { b } else { a };
            let most = |a: f32, b: f32| if b > a { b } else { a };
            *range = [low.into_iter().fold(range[0], least), high.into_iter().fold(range[1], most)];
            for x in rest {
                *range = [least(range[0], S::value(*x)), most(range[1], S::value(*x))];
            }
        }
    }
}

/// Quotients of elements and block operands, as f32, or as bf16 rounded to odd (2 bytes). A later rounding of that bf16
/// to 4 bits or fewer is correct. The first element begins the first block.
pub(super) struct Ratios<'a, S: Source, const HOW: u8, const BYTES: usize> {
    pub src: &'a [S::Element],
    pub block: usize,
    pub t: &'a [F32],
    pub u: &'a [F32],
    pub ratios: &'a mut [[u8; BYTES]],
}

impl<S: Source, const HOW: u8, const BYTES: usize> Task for Ratios<'_, S, HOW, BYTES> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match self.block {
            16 => self.in_blocks::<16>(),
            32 => self.in_blocks::<32>(),
            block => {
                let Ratios { src, t, u, ratios, .. } = self;
                for ((src, ratios), (t, u)) in src.chunks(block).zip(ratios.chunks_mut(block)).zip(t.iter().zip(u)) {
                    in_one::<S, HOW, BYTES>(src, *t, *u, ratios);
                }
            }
        }
    }
}

impl<S: Source, const HOW: u8, const BYTES: usize> Ratios<'_, S, HOW, BYTES> {
    #[inline(always)]
    fn in_blocks<const N: usize>(self) {
        let Ratios { src, t, u, ratios, .. } = self;
        let ((blocks, rest), (targets, last)) = (src.as_chunks::<N>(), ratios.as_chunks_mut::<N>());
        for ((src, ratios), (t, u)) in blocks.iter().zip(targets).zip(t.iter().zip(u)) {
            look_ahead(t, OPERANDS_AHEAD);
            let (t, u) = (f32::from_le_bytes(*t), f32::from_le_bytes(*u));
            let mut made = [[0; BYTES]; N];
            for i in 0..N {
                made[i] = ratio::<S, HOW, BYTES>(src[i], t, u);
            }
            *ratios = made;
        }
        if let (Some(t), Some(u)) = (t.get(blocks.len()), u.get(blocks.len())) {
            in_one::<S, HOW, BYTES>(rest, *t, *u, last);
        }
    }
}

#[inline(always)]
fn in_one<S: Source, const HOW: u8, const BYTES: usize>(
    src: &[S::Element],
    t: F32,
    u: F32,
    ratios: &mut [[u8; BYTES]],
) {
    let (t, u) = (f32::from_le_bytes(t), f32::from_le_bytes(u));
    for (x, to) in src.iter().zip(ratios) {
        *to = ratio::<S, HOW, BYTES>(*x, t, u);
    }
}

#[inline(always)]
fn ratio<S: Source, const HOW: u8, const BYTES: usize>(x: S::Element, t: f32, u: f32) -> [u8; BYTES] {
    let x = S::value(x);
    let ratio = match HOW {
        how::TIMES => x * t,
        how::DIVIDE => x / t,
        how::DIVIDE_ADD => x / t + u,
        _ => nearly_divided(x, t, u),
    };
    let bits = ratio.to_bits();
    let mut bytes = [0; BYTES];
    match BYTES {
        2 => bytes.copy_from_slice(&((bits | ((bits & 0xffff) + 0xffff)) >> 16).to_le_bytes()[..BYTES]),
        _ => bytes.copy_from_slice(&bits.to_le_bytes()[..BYTES]),
    }
    bytes
}

/// Approximate `x / t`, given `u = RN32(1 / t)`, for `x` of at most 11 significant bits. Rounding the result to few
/// bits equals rounding the quotient. Requires fused products.
///
/// One step of Newton's iteration gives `RN32(x/t + d)` with `|d| <= 2^-22 ulp`, without overflow, and without
/// underflow above half of the smallest result. Rounding to a format of `p <= 4` bits, or to integers of 8 bits,
/// compares the result with midpoints `m` of at most 9 bits.
/// The comparison could differ from that with `RN32(x/t)` only if `x/t` were very close to `m +- ulp/2`, a number of 25
/// bits. Let `X`, `T` (24 bits) and `M` be integers; `M` is `m` scaled to 9 bits, and `k = 16`. The condition is
///
/// ```text
///   |X 2^j - T (M 2^k +- 1)| <= 8,   j >= 37, as X has at most 11 bits and the other product 48 or 49
/// ```
///
/// Modulo `2^k`, `T = a 2^k + e` with `|e| <= 8`, so `2^k (e M +- a)`, modulo `2^(2k)`, is at most 16, and therefore 0.
/// `M >= 256 >= a` leaves `a = M`, so `T = 2^24 - 1` and `m` a power of two. Then `x` is a power of two as well; a test
/// covers powers of two. Just below a power of two `M 2^k` has a bit more, and the product would need `T < 2^23`. A
/// middle of fewer bits is a case of 9.
#[inline(always)]
fn nearly_divided(x: f32, t: f32, u: f32) -> f32 {
    let q = x * u;
    let rest = (-q).mul_add(t, x);
    let q = rest.mul_add(u, q);
    // -0 would lose its sign.
    f32::from_bits(q.to_bits() | x.to_bits() & 0x8000_0000)
}

/// Whether [`nearly_divided`] may replace division by `t`, for elements up to `largest`.
#[inline(always)]
#[allow(clippy::manual_range_contains)] // all three at once, without a branch
pub(super) fn may_be_nearly_divided(t: f32, largest: f32) -> bool {
    const SMALL: f32 = f32::from_bits((127 - 60) << 23);
    const LARGE: f32 = f32::from_bits((127 + 40) << 23);
    (SMALL <= t) & (t <= LARGE) & (largest <= t * LARGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds to `bits` significant bits, ties to even.
    fn rounded(x: f32, bits: u32) -> u32 {
        let drop = 24 - bits;
        let x = x.to_bits();
        x.wrapping_add((1 << (drop - 1)) - 1).wrapping_add(x >> drop & 1) >> drop
    }

    /// Every significand of f16, with the divisors in the proof and other divisors.
    #[test]
    fn a_step_of_newton_rounds_as_division_does() {
        let near = (128u32..=256).flat_map(|a| (-9i32..=9).map(move |e| (a << 16).wrapping_add_signed(e)));
        let spread = (0..4000u32).map(|i| 0x0080_0000 | i.wrapping_mul(2_654_435_761) >> 9);
        let mut differ = 0;
        for t in near.chain(spread).filter(|t| (1 << 23..1 << 24).contains(t)) {
            let t = t as f32 * f32::from_bits((127 - 33) << 23);
            let u = 1.0 / t;
            for x in (1024..2048).map(|x| x as f32) {
                let (nearly, exact) = (nearly_divided(x, t, u), x / t);
                differ += u32::from(nearly != exact);
                for bits in 1..=8 {
                    assert_eq!(rounded(nearly, bits), rounded(exact, bits), "{x:e} / {t:e} to {bits} bits");
                }
            }
        }
        println!("{differ} quotients differ in their last bits");
        assert_eq!(nearly_divided(-0.0, 3.0, 1.0 / 3.0).to_bits(), 0x8000_0000);
    }
}
