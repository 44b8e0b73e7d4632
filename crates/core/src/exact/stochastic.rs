//! Stochastic rounding of one value, with the random bits as an argument.
//!
//! The first `count` bits of the truncated part are added to the random bits. If the sum reaches `2^count`, the
//! magnitude grows by one unit in the last place.
//! Sources: `docs/spec/p3109.md §4`, `ptx.md §4.1`, `avx10.md §3.1`, `amd.md`.

use super::philox::philox4x32;
use super::value::{Exact, leading, split};
use crate::dtype::{DType, Kind};
use crate::format::FloatFormat;
use crate::policy::{CastPolicy, CastSpec, Overflow};
use crate::round::Rounding;
use crate::words::words;

words! {
    /// Variants of P3109, for `N` random bits `R` and the truncated fraction `v` of one unit in the last place
    /// (`docs/spec/p3109.md §4`).
    pub enum Stochastic {
        /// The magnitude grows if `floor(v 2^N) + R >= 2^N`.
        A = "StochasticA",
        /// `A` with one more random bit at the low end, which is always 1.
        B = "StochasticB",
        /// `A` with `v 2^N` rounded to the nearest integer, ties to even.
        C = "StochasticC",
    }
}

/// Random bits for one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RandomBits {
    bits: u64,
    count: u32,
}

impl RandomBits {
    /// Largest number of random bits.
    pub const MOST: u32 = 32;

    /// Returns `count` random bits, 1 to 32, given as an integer below `2^count`; `None` if `count` or `bits` is out of
    /// range.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::exact::RandomBits;
    /// assert!(RandomBits::new(255, 8).is_some() && RandomBits::new(256, 8).is_none());
    /// ```
    #[must_use]
    pub const fn new(bits: u64, count: u32) -> Option<RandomBits> {
        if count == 0 || count > Self::MOST || bits >> count != 0 { None } else { Some(RandomBits { bits, count }) }
    }

    /// Returns the 32 random bits of an array element. The bits depend only on seed and index, not on threads, parts of
    /// arrays or CPUs.
    ///
    /// Philox4x32-10: the key is the seed, the counter is the index divided by 4, and the index modulo 4 chooses one of
    /// four words.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::exact::RandomBits;
    /// assert_eq!(RandomBits::of_element(0, 0).bits(), 0x6627_e8d5); // the known answer for counter 0 and key 0
    /// ```
    #[must_use]
    pub const fn of_element(seed: u64, index: u64) -> RandomBits {
        RandomBits { bits: philox4x32(seed, index / 4)[index as usize % 4] as u64, count: 32 }
    }

    /// Returns the bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// Returns the number of bits.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }
}

impl CastSpec {
    /// Returns the cast for one code, with the rounding that the random bits choose: toward zero or away from zero.
    /// A result beyond the largest finite value overflows under both roundings.
    /// The value is rounded only once: [`CastPolicy::via`] is ignored. A cast of a type to itself is unchanged.
    ///
    /// # Panics
    /// If a type is complex or text.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, Outcome, cast_one, exact::RandomBits, spec::ieee};
    /// // 1 + 1/4 of the step to 1.125 in f8e4m3fn: up for the last quarter of the random bits.
    /// let (cast, x) = (ieee::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?, u64::from(1.03125f32.to_bits()));
    /// let result = |bits| cast_one(&cast.with_random_bits(x, RandomBits::new(bits, 8).unwrap()), x);
    /// assert_eq!([result(191), result(192)], [Outcome::Defined(0x38), Outcome::Defined(0x39)]);
    /// # Ok::<(), truecast_core::spec::SpecError>(())
    /// ```
    #[must_use]
    pub fn with_random_bits(&self, code: u64, random: RandomBits) -> CastSpec {
        if self.src == self.dst {
            return *self;
        }
        let value = self.source_value(code);
        let [toward_zero, away] = self.stochastic_roundings();
        let unit = last_place(self.dst).map_or(0, |place| unit(place, value));
        if random.rounding(Stochastic::A, unit, value) == Rounding::AwayFromZero { away } else { toward_zero }
    }

    /// Returns the two casts between which random bits choose: toward zero, and away from zero.
    #[must_use]
    pub fn stochastic_roundings(&self) -> [CastSpec; 2] {
        [Rounding::TowardZero, Rounding::AwayFromZero].map(|rounding| {
            let overflow = match self.policy.overflow {
                Overflow::Nonfinite => Overflow::NonfiniteAlways,
                other => other,
            };
            let policy = CastPolicy { to_float: rounding, to_int: rounding, overflow, via: None, ..self.policy };
            CastSpec { policy, ..*self }
        })
    }
}

/// Position of the unit in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastPlace {
    /// Number of bits after the leading bit.
    pub fraction: i32,
    /// Least exponent of the unit in the last place.
    pub least: i32,
}

/// Returns the last place of a type; `None` for truth values, code books, complex numbers and text.
#[must_use]
pub fn last_place(dst: DType) -> Option<LastPlace> {
    // More bits than any value has.
    const ALL: i32 = 1 << 20;
    match dst.kind() {
        Kind::Float(f) => Some(f.last_place()),
        Kind::Int(_) => Some(LastPlace { fraction: ALL, least: 0 }),
        Kind::Fixed(f) => Some(LastPlace { fraction: ALL, least: -(f.frac_bits as i32) }),
        Kind::Bool | Kind::Book(_) | Kind::Complex(_) | Kind::String => None,
    }
}

impl FloatFormat {
    pub(crate) fn last_place(&self) -> LastPlace {
        LastPlace { fraction: i32::from(self.man_bits), least: self.quantum() }
    }
}

/// Exponent of the last bit that a finite value keeps in rounding.
pub(crate) fn unit(place: LastPlace, value: Exact) -> i32 {
    let Exact::Finite { sig, exp, .. } = value else { return 0 };
    (leading(sig, exp) - place.fraction).max(place.least)
}

impl RandomBits {
    /// Rounding of a magnitude truncated at `2^unit`: away from zero if the truncated part plus the random bits
    /// carries.
    pub(crate) fn rounding(self, variant: Stochastic, unit: i32, value: Exact) -> Rounding {
        let Exact::Finite { sig: sig @ 1.., exp, sticky, .. } = value else { return Rounding::TowardZero };
        // `B` is `A` with one more bit, which is 1.
        let (bits, count) = match variant {
            Stochastic::B => (2 * self.bits + 1, self.count + 1),
            Stochastic::A | Stochastic::C => (self.bits, self.count),
        };
        // The value in units of 2^(unit - count), truncated.
        let shift = unit - count as i32 - exp;
        let scaled = match shift {
            64.. => 0,
            0.. => u128::from(sig) >> shift,
            // The shift is exact up to 64. Beyond that, the `count` low bits stay zero, and higher bits do not matter.
            _ => u128::from(sig) << (-shift).min(64),
        };
        let cut = scaled & ((1 << count) - 1);
        let rounded_up = variant == Stochastic::C && shift > 0 && {
            let (floor, remainder) = split(sig, exp, sticky, unit - count as i32);
            Rounding::NearestEven.increments(false, floor & 1 == 1, remainder)
        };
        let carries = cut + u128::from(rounded_up) + u128::from(bits) >= 1 << count;
        if carries { Rounding::AwayFromZero } else { Rounding::TowardZero }
    }
}
