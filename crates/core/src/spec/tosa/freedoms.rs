//! Implementation choices in CAST from float to float: flushing of subnormals, and rounding toward zero.
//! Reference: `docs/spec/tosa.md §3.9`.
//!
//! With a choice, every element has one result. The set of accepted results is in `check`.

use super::super::SpecError;
use crate::dtype::{DType, Kind};
use crate::format::FloatFormat;
use crate::policy::*;
use crate::round::Rounding;
use alloc::string::ToString;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt;

/// Implementation choices. The default, `strict`, is the exact result.
///
/// # Examples
/// ```
/// use truecast_core::{spec::tosa::{Cast, Freedoms}, cast_one, DType, Outcome};
/// let freedoms: Freedoms = "flush+toward-zero".parse()?;
/// let cast = Cast { freedoms, ..Cast::to(DType::F16) }.resolve(DType::F32)?;
/// let f16 = |x: f32| cast_one(&cast, x.to_bits().into());
/// assert_eq!(f16(2.0f32.powi(-15)), Outcome::Defined(0)); // a subnormal of fp16
/// assert_eq!(f16(65535.0), Outcome::Defined(0x7bff)); // 65504
/// assert_eq!(f16(65536.0), Outcome::Defined(0x7c00)); // beyond, even when it is cut: Inf
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Freedoms {
    /// If true, fp16 subnormals are zeros of the same sign, in inputs and outputs.
    pub flush_f16: bool,
    /// If true, bf16 subnormals are zeros of the same sign, in inputs and outputs.
    pub flush_bf16: bool,
    /// If true, fp32 subnormals are zeros of the same sign, in inputs and outputs.
    pub flush_f32: bool,
    /// If true, results are rounded toward zero. A truncated result beyond the largest finite value becomes the
    /// overflow value.
    pub toward_zero: bool,
}

/// Name of each choice; `flush` flushes all three types.
const WORDS: [(&str, Freedoms); 5] = {
    let strict = Freedoms::STRICT;
    [
        ("flush", Freedoms { flush_f16: true, flush_bf16: true, flush_f32: true, ..strict }),
        ("flush-f16", Freedoms { flush_f16: true, ..strict }),
        ("flush-bf16", Freedoms { flush_bf16: true, ..strict }),
        ("flush-f32", Freedoms { flush_f32: true, ..strict }),
        ("toward-zero", Freedoms { toward_zero: true, ..strict }),
    ]
};

impl Freedoms {
    /// No flushing, and rounding to nearest even.
    pub const STRICT: Freedoms = Freedoms { flush_f16: false, flush_bf16: false, flush_f32: false, toward_zero: false };

    /// No choice, all flushing, rounding toward zero, all choices. If all four give a value the same result, every
    /// combination gives that result.
    pub const ENDS: [Freedoms; 4] = {
        let (flush, cut) = (WORDS[0].1, WORDS[4].1);
        [Freedoms::STRICT, flush, cut, flush.and(cut)]
    };

    /// Returns the name of each choice.
    pub fn words() -> impl Iterator<Item = &'static str> {
        core::iter::once("strict").chain(WORDS.map(|(name, _)| name))
    }

    const fn and(self, other: Freedoms) -> Freedoms {
        Freedoms {
            flush_f16: self.flush_f16 || other.flush_f16,
            flush_bf16: self.flush_bf16 || other.flush_bf16,
            flush_f32: self.flush_f32 || other.flush_f32,
            toward_zero: self.toward_zero || other.toward_zero,
        }
    }

    const fn flushes(self, dtype: DType) -> bool {
        match dtype {
            DType::F16 => self.flush_f16,
            DType::Bf16 => self.flush_bf16,
            DType::F32 => self.flush_f32,
            _ => false, // docs/spec/tosa.md §2.3: narrower floats keep subnormals
        }
    }

    /// Policy under these choices. A choice that affects no value of the pair does not change the policy.
    pub(super) fn applied(self, policy: CastPolicy, src: DType, dst: DType) -> CastPolicy {
        let (Kind::Float(from), Kind::Float(to)) = (src.kind(), dst.kind()) else { return policy };
        debug_assert!([(src, from), (dst, to)].iter().all(|(t, f)| !self.flushes(*t) || may_flush(f)));
        // Flushing has no effect on source subnormals that round to zero, or if no result is subnormal.
        let source = self.flushes(src) && from.emin() > to.quantum() - 1;
        let result = self.flushes(dst) && from.quantum() < to.emin();
        let rounds = self.toward_zero && !from.embeds_in(&to);
        CastPolicy {
            subnormals: Subnormals::new(source, result),
            to_float: if rounds { Rounding::TowardZero } else { policy.to_float },
            overflow: if rounds { Overflow::NonfiniteAlways } else { policy.overflow },
            ..policy
        }
    }
}

/// Only subnormals of fp16, bf16 and fp32 may be flushed. Source: `docs/spec/tosa.md §2.3`.
pub(super) fn may_flush(f: &FloatFormat) -> bool {
    f.bits() >= 16
}

impl core::str::FromStr for Freedoms {
    type Err = SpecError;
    /// Reads `strict`, or words joined by `+`.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let word = |word: &str| WORDS.iter().find(|(name, _)| *name == word).map(|(_, freedoms)| *freedoms);
        let chosen = match text {
            "strict" => Some(Freedoms::STRICT),
            words => words.split('+').try_fold(Freedoms::STRICT, |all, next| Some(all.and(word(next)?))),
        };
        chosen.ok_or_else(|| SpecError::Attribute {
            spec: "tosa".into(),
            name: "profile",
            why: format!(
                "{text:?} is neither strict nor a combination of {}, joined by +; the profiles of `check` only judge \
                 results",
                WORDS.map(|(name, _)| name).join(", ")
            ),
            clause: "docs/spec/tosa.md §3.9",
        })
    }
}

impl fmt::Display for Freedoms {
    /// Writes the shortest text that gives the same choices.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = Freedoms::STRICT;
        let mut words = Vec::new();
        for (name, freedoms) in WORDS {
            if self.and(freedoms) == *self && said.and(freedoms) != said {
                (said, words) = (said.and(freedoms), [words, vec![name]].concat());
            }
        }
        f.pad(&if words.is_empty() { "strict".to_string() } else { words.join("+") })
    }
}
