//! Wide sources, narrow destinations: for each destination code, the interval of source codes with this result.
//!
//! [`cast_one`] computes the bounds of the intervals. Source codes are numbered in the order of their values (`key`).
//! An element is right if the key of its source is in the interval of its destination code. Other elements go to the
//! reference definition. So an interval may be missing, but must not be too wide.
//!
//! # Why an interval is not too wide
//!
//! A finite source is *in range* if its result is not a special case of [`Condition`] other than `Fraction`. `cast_one`
//! shows this if those conditions are left open.
//!
//! 1. In range, the result is the source rounded once to a neighbor on the destination's grid. Every
//!    [`Rounding`](truecast_core::Rounding) is a non-decreasing function: between two neighbors it steps once from the
//!    lower to the upper neighbor. Subnormals that are flushed become zeros of the same sign, which keeps the order.
//!    The sort key [`order`], in which -0 is below +0, keeps the order too.
//! 2. A non-decreasing function with equal values at both ends of an interval is constant in the interval. So if
//!    `cast_one` gives one code at two keys in range, it gives that code between them. Bisection finds the first key of
//!    each code, and checks that all probes are in order. Each interval begins where the previous interval ends.
//! 3. The keys in range form an interval: overflow, underflow and a wrong sign depend on a comparison of the value, or
//!    of the rounded value, with a bound.
//! 4. Beyond the range, an overflow of one sign has one result under every policy except wrapping integers: infinity,
//!    NaN, the end of the range, or a refusal. Wrapping integers have no interval beyond the range.
//!
//! NaN, infinities and the other special cases have no interval. Bool is not ordered like numbers.

use crate::order::Keys;
use truecast_core::policy::{Condition, IntOverflow, Undefined};
use truecast_core::{CastSpec, DType, Kind, Outcome, cast_one};
use truecast_kernel::parallel;

/// `count` keys from `first` on, with the same destination code.
#[derive(Clone, Copy, Debug, Default)]
struct Interval<K> {
    first: K,
    count: K,
}

/// Intervals by destination code; `K` holds a key.
#[derive(Debug)]
pub(crate) struct Intervals<K> {
    keys: Keys,
    of_code: Vec<Interval<K>>,
}

/// Conditions that put a source out of range.
const OUTSIDE: &[Undefined] = &[
    Undefined::any(Condition::Nan, ""),
    Undefined::any(Condition::Infinite, ""),
    Undefined::any(Condition::Negative, ""),
    Undefined::any(Condition::NegativeZero, ""),
    Undefined::any(Condition::Zero, ""),
    Undefined::any(Condition::Underflow, ""),
    Undefined::any(Condition::Overflow, OVERFLOW),
];
const OVERFLOW: &str = "overflow";

/// Number of key ranges that are searched in parallel.
const PARTS: u64 = 64;

/// Estimated number of calls of the reference definition that find all intervals.
pub(super) fn cost(src_bits: u32, dst_bits: u32) -> u64 {
    (src_bits.saturating_sub(dst_bits) as u64 + 2) << dst_bits
}

impl<K: Copy + Default + TryFrom<u64> + Into<u64> + Send + Sync> Intervals<K> {
    /// Finds the intervals; `None` if the argument in the module's documentation does not apply to the cast.
    pub fn new(cast: &CastSpec) -> Option<Intervals<K>> {
        let CastSpec { src, dst, policy, .. } = *cast;
        let is_ordered = matches!(dst.kind(), Kind::Float(_) | Kind::Int(_) | Kind::Fixed(_) | Kind::Book(_));
        let is_plain = src.storage_bits() == Some(src.code_bits());
        let keys = Keys::of(src).filter(|_| is_ordered && is_plain)?;
        let search = Search { cast: CastSpec { undefined: OUTSIDE, ..*cast }, keys };
        let (least, most) = search.finite();
        let inside = search.inside()?;
        let low = search.end(inside, least);
        let high = search.end(inside, most);
        let mut starts = search.starts(low, high)?;
        let wraps = matches!(dst.kind(), Kind::Int(_)) && policy.int_overflow == IntOverflow::Wrap;
        let overflow = |near: u64, far: u64| match (search.outcome(near), search.outcome(far)) {
            (Outcome::Undefined { code: a, reason }, Outcome::Undefined { code: b, reason: other })
                if a == b && reason == OVERFLOW && other == OVERFLOW =>
            {
                Some(a)
            }
            _ => None,
        };
        let mut end = high.wrapping_add(1);
        if !wraps
            && low > least
            && let Some(code) = overflow(low - 1, least)
        {
            starts.insert(0, (least, code));
        }
        if !wraps
            && high < most
            && let Some(code) = overflow(high + 1, most)
        {
            starts.push((high + 1, code));
            end = most.wrapping_add(1);
        }
        starts.dedup_by_key(|(_, code)| *code);
        let mut of_code = vec![Interval::default(); 1 << dst.storage_bits()?.max(8)];
        for (i, &(first, code)) in starts.iter().enumerate() {
            let count = starts.get(i + 1).map_or(end, |next| next.0).wrapping_sub(first);
            let slot: &mut Interval<K> = &mut of_code[dst.storage_of_code(code) as usize];
            // A code may occur twice; the wider interval is kept.
            if count > slot.count.into() {
                *slot = Interval { first: K::try_from(first).ok()?, count: K::try_from(count).ok()? };
            }
        }
        Some(Intervals { keys, of_code })
    }

    /// Sources at the ends of intervals, and just outside.
    #[cfg(test)]
    pub fn ends(&self) -> impl Iterator<Item = u64> {
        let mask = self.keys.sign | (self.keys.sign - 1);
        let all = self.of_code.iter().filter(|interval| interval.count.into() > 0);
        all.flat_map(move |interval| {
            let (first, end) = (interval.first.into(), interval.first.into().wrapping_add(interval.count.into()));
            [first.wrapping_sub(1), first, end.wrapping_sub(1), end].map(|key| self.keys.code(key & mask) & mask)
        })
    }

    /// True if the stored destination is certainly right for the source.
    #[inline(always)]
    pub fn holds(&self, src: u64, dst: u64) -> bool {
        let Some(interval) = self.of_code.get(dst as usize) else { return false };
        self.keys.key(src).wrapping_sub(interval.first.into()) < interval.count.into()
    }
}

impl Intervals<u32> {
    /// True if every code is certainly right for its value divided by `divisor`. Codes have at most eight bits.
    pub fn hold_quotients(&self, values: &[u32], divisor: f32, codes: &[u32]) -> bool {
        const TOGETHER: usize = 64;
        let Some(of_code) = self.of_code.first_chunk::<256>() else { return false };
        let (flipped, in_negative) = (self.keys.flipped as u32, self.keys.in_negative as u32);
        let mut keys = [0; TOGETHER];
        values.chunks(TOGETHER).zip(codes.chunks(TOGETHER)).all(|(values, codes)| {
            for (key, value) in keys.iter_mut().zip(values) {
                let quotient = (f32::from_bits(*value) / divisor).to_bits();
                *key = quotient ^ flipped ^ (in_negative & (quotient as i32 >> 31) as u32);
            }
            let wrong = keys.iter().zip(codes).fold(0, |wrong, (key, code)| {
                let Interval { first, count } = of_code[(code & 255) as usize];
                wrong | code >> 8 | u32::from(key.wrapping_sub(first) >= count)
            });
            wrong == 0
        })
    }
}

struct Search {
    cast: CastSpec,
    keys: Keys,
}

impl Search {
    fn outcome(&self, key: u64) -> Outcome {
        cast_one(&self.cast, self.keys.code(key))
    }

    fn code(&self, key: u64) -> Option<u64> {
        match self.outcome(key) {
            Outcome::Defined(code) => Some(code),
            _ => None,
        }
    }

    fn finite(&self) -> (u64, u64) {
        match self.cast.src.kind() {
            Kind::Float(f) => (self.keys.key(f.sign_bit() | f.max_code()), self.keys.key(f.max_code())),
            _ => (0, self.keys.sign | (self.keys.sign - 1)),
        }
    }

    /// Returns the key of zero, or the key of one if zero is not in range.
    fn inside(&self) -> Option<u64> {
        let one = match self.cast.src.kind() {
            Kind::Float(f) => (f.bias as u64) << f.man_bits,
            _ => 1,
        };
        [0, one].into_iter().map(|code| self.keys.key(code)).find(|&key| self.code(key).is_some())
    }

    /// Last key in range, from `inside` (in range) toward `finite`.
    fn end(&self, inside: u64, finite: u64) -> u64 {
        if self.code(finite).is_some() {
            return finite;
        }
        let (mut inside, mut outside) = (inside, finite);
        while inside.abs_diff(outside) > 1 {
            let middle = inside.midpoint(outside);
            *(if self.code(middle).is_some() { &mut inside } else { &mut outside }) = middle;
        }
        inside
    }

    /// First key of each code, ascending. `None` if the codes are not in order.
    fn starts(&self, low: u64, high: u64) -> Option<Vec<(u64, u64)>> {
        let edge = |part: u64| low + ((high - low) as u128 * part as u128 / PARTS as u128) as u64;
        let parts = parallel::map(PARTS as usize, |part| {
            let part = part as u64;
            let (from, to) = (edge(part), edge(part + 1));
            let mut starts = Vec::new();
            self.changes((from, self.code(from)?), (to, self.code(to)?), &mut starts)?;
            Some(starts)
        });
        let mut starts = vec![(low, self.code(low)?)];
        for part in parts {
            starts.extend(part?);
        }
        Some(starts)
    }

    /// Keys in `from..=to`, except the first, at which a code begins.
    fn changes(&self, from: (u64, u64), to: (u64, u64), starts: &mut Vec<(u64, u64)>) -> Option<()> {
        let order = |code| order(self.cast.dst, code);
        if from.1 == to.1 {
            return Some(());
        }
        if order(from.1) > order(to.1) {
            return None;
        }
        if to.0 - from.0 == 1 {
            starts.push(to);
            return Some(());
        }
        let middle = from.0.midpoint(to.0);
        let middle = (middle, self.code(middle)?);
        self.changes(from, middle, starts)?;
        self.changes(middle, to, starts)
    }
}

/// Sort key of a destination code in range; ascends with the value.
fn order(dtype: DType, code: u64) -> i128 {
    match dtype.kind() {
        Kind::Float(f) if code & f.sign_bit() != 0 => !((code & f.magnitude_mask()) as i128),
        Kind::Int(f) => f.value(code),
        Kind::Fixed(f) => f.int.value(code),
        _ => code as i128,
    }
}
