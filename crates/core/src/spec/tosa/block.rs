//! CAST to and from block-scaled tensors of the 1.1 draft: legality and exact results. Reference: `docs/spec/tosa.md
//! §5`.
//!
//! A block is 32 elements along the last dimension that share one f8e8m0 scale.

use super::super::SpecError;
use super::cast::no_type;
use super::target::{Feature, Features, Target, Version};
use crate::dtype::{DType, Kind};
use crate::exact::Exact;
use crate::exact::{decode, encode};
use crate::policy::{CastPolicy, NanRule};
use alloc::format;
use core::cmp::Ordering;

/// Number of elements that share a scale.
pub const BLOCK: usize = 32;
/// Type of the scales.
pub const SCALE: DType = DType::F8E8M0;
/// Scale code of a block that contains a NaN or an infinity.
pub const NAN_SCALE: u8 = 0xff;
/// Scale code, `2^-127`, of a block that contains only zeros.
pub const ZERO_SCALE: u8 = 0;

const CLAUSE: &str = "docs/spec/tosa.md §3.3, §3.4, §5.1";

/// Element types of blocks, with the extension that each type needs.
pub const ELEMENTS: [(DType, Feature); 6] = [
    (DType::F8E4M3Fn, Feature::ExtMxFp8E4M3),
    (DType::F8E5M2, Feature::ExtMxFp8E5M2),
    (DType::F6E3M2, Feature::ExtMxFp6E3M2),
    (DType::F6E2M3, Feature::ExtMxFp6E2M3),
    (DType::F4E2M1, Feature::ExtMxFp4E2M1),
    (DType::MxInt8, Feature::ExtMxInt8),
];

/// Types of the plain side, with the extensions that each type needs in addition to the extensions for blocks.
pub const PLAIN: [(DType, Features); 5] = [
    (DType::F8E4M3Fn, Features::of(&[Feature::ExtFp8E4M3])),
    (DType::F8E5M2, Features::of(&[Feature::ExtFp8E5M2])),
    (DType::F16, Features::NONE),
    (DType::Bf16, Features::of(&[Feature::ExtBf16])),
    (DType::F32, Features::NONE),
];

/// Block-scaled side of a CAST.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The output is block-scaled.
    ToBlocks,
    /// The input is block-scaled.
    FromBlocks,
}

/// CAST with one block-scaled side.
///
/// # Examples
/// ```
/// use truecast_core::{spec::tosa::block::{BlockCast, Direction}, DType};
/// let cast = BlockCast { direction: Direction::ToBlocks, element: DType::F4E2M1, plain: DType::F32 };
/// let mut block = [0u64; 32];
/// block[0] = 7.5f32.to_bits().into();
/// let (scale, codes) = cast.to_block(&block);
/// assert_eq!((scale, codes[0]), (0x80, 0x6)); // 2 * 4: the scale that does not saturate
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockCast {
    /// Block-scaled side.
    pub direction: Direction,
    /// Type of the elements in the blocks.
    pub element: DType,
    /// Type of the plain side.
    pub plain: DType,
}

impl BlockCast {
    /// Returns the features that the pair needs; `None` if the CAST does not exist.
    #[must_use]
    pub fn needs(&self) -> Option<Features> {
        let (_, block) = ELEMENTS.iter().find(|(t, _)| *t == self.element)?;
        let (_, plain) = PLAIN.iter().find(|(t, _)| *t == self.plain)?;
        Some(Features::of(&[Feature::ExtMxCommon, *block]).union(*plain))
    }

    /// Checks that the CAST is legal for tensors of this shape.
    ///
    /// # Errors
    /// [`SpecError`]: version 1.0, a type that blocks cannot have, C1 to C3, or a disabled extension.
    pub fn check(&self, shape: &[u64], target: &Target) -> Result<(), SpecError> {
        let condition = |id, why| {
            Err(SpecError::Condition { spec: target.spec(), id, why: format!("CAST: {why}"), clause: CLAUSE })
        };
        let Some(needs) = self.needs() else {
            if !ELEMENTS.iter().any(|(t, _)| *t == self.element) {
                return Err(no_type(format!("a block of {}", target.spec()), self.element, CLAUSE, None));
            }
            return condition("C3", format!("{} is not a floating-point type for blocks", self.plain));
        };
        if target.version < Version::V1_1 {
            return Err(SpecError::Missing {
                spec: target.spec(),
                what: "block-scaled CAST".into(),
                needs: "the 1.1 draft (tosa@1.1)".into(),
                clause: CLAUSE,
            });
        }
        target.require(format!("CAST between blocks of {} and {}", self.element, self.plain), needs, CLAUSE)?;
        match shape.last() {
            None => condition("C1", "a block-scaled tensor has rank 0".into()),
            Some(last) if last % BLOCK as u64 != 0 => condition(
                "C2",
                format!("the last dimension of a block-scaled tensor is {last}, not a multiple of {BLOCK}"),
            ),
            Some(_) => Ok(()),
        }
    }

    /// Scales and rounds one block. Returns the scale and the codes of the elements. Source: `docs/spec/tosa.md §5.2`.
    ///
    /// In a block with [`NAN_SCALE`], the codes are meaningless: NaN, or 0 in a type without NaN.
    #[must_use]
    pub fn to_block(&self, codes: &[u64; BLOCK]) -> (u8, [u64; BLOCK]) {
        let values = codes.map(|code| decode(self.plain, code));
        let scale = scale_of(self.element, &values);
        if scale == NAN_SCALE {
            return (scale, [nan_or_zero(self.element); BLOCK]);
        }
        let exponent = exponent_of(scale);
        (scale, values.map(|value| rounded(self.element, scaled_by(value, -exponent))))
    }

    /// Converts one element of a block to the plain type. Source: `docs/spec/tosa.md §5.3`.
    #[must_use]
    pub fn from_block(&self, scale: u8, code: u64) -> u64 {
        if scale == NAN_SCALE {
            return rounded(self.plain, Exact::Nan { neg: false, payload: None });
        }
        rounded(self.plain, scaled_by(decode(self.element, code), exponent_of(scale)))
    }
}

fn nan_or_zero(element: DType) -> u64 {
    match element.kind() {
        Kind::Float(f) => f.nan_code().unwrap_or(0),
        _ => 0,
    }
}

/// Rounds once, to nearest even. fp8 does not saturate; types without Inf and NaN saturate. NaN becomes canonical.
fn rounded(dtype: DType, value: Exact) -> u64 {
    let policy = CastPolicy { nan: NanRule::Canonical, ..CastPolicy::IEEE };
    encode(dtype, &policy, value).code.expect("no policy refuses a value")
}

/// Returns the exponent of a scale other than NaN.
#[must_use]
pub const fn exponent_of(scale: u8) -> i32 {
    scale as i32 - 127
}

fn scaled_by(value: Exact, exponent: i32) -> Exact {
    match value {
        Exact::Finite { neg, sig, exp, sticky } => Exact::Finite { neg, sig, exp: exp + exponent, sticky },
        other => other,
    }
}

/// Smallest scale for which no element overflows, clamped to the range of scales.
fn scale_of(element: DType, values: &[Exact; BLOCK]) -> u8 {
    let mut largest = Magnitude::ZERO;
    for value in values {
        match *value {
            Exact::Finite { sig, exp, .. } => largest = largest.max(Magnitude::new(sig, exp)),
            Exact::Nan { .. } | Exact::Inf { .. } => return NAN_SCALE,
        }
    }
    if largest == Magnitude::ZERO {
        return ZERO_SCALE;
    }
    let Limit { magnitude: limit, rounds_down } = overflow_limit(element);
    // Significands are in [1, 2), so one comparison decides between two neighboring exponents.
    let over = match largest.significand.cmp(&limit.significand) {
        Ordering::Less => false,
        Ordering::Equal => !rounds_down,
        Ordering::Greater => true,
    };
    let exponent = largest.exponent - limit.exponent + over as i32;
    (exponent.clamp(-127, 127) + 127) as u8
}

/// Magnitude at which rounding to nearest even begins to overflow.
struct Limit {
    magnitude: Magnitude,
    /// True if the magnitude itself does not overflow.
    rounds_down: bool,
}

fn overflow_limit(element: DType) -> Limit {
    match element.kind() {
        Kind::Float(f) => {
            let (sig, exp) = f.overflow_threshold();
            Limit { magnitude: Magnitude::new(sig, exp), rounds_down: f.max_code() & 1 == 0 }
        }
        Kind::Fixed(f) => {
            let max = f.int.max() as u64;
            let magnitude = Magnitude::new(2 * max + 1, -(f.frac_bits as i32) - 1);
            Limit { magnitude, rounds_down: max & 1 == 0 }
        }
        _ => unreachable!("blocks hold floats and fixed-point numbers"),
    }
}

/// Magnitude: exponent of the leading bit, and significand with the leading bit on top. The order of the fields makes
/// the derived order numeric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Magnitude {
    exponent: i32,
    significand: u64,
}

impl Magnitude {
    const ZERO: Magnitude = Magnitude { exponent: i32::MIN, significand: 0 };

    fn new(sig: u64, exp: i32) -> Self {
        if sig == 0 {
            return Self::ZERO;
        }
        let zeros = sig.leading_zeros();
        Self { exponent: exp + 63 - zeros as i32, significand: sig << zeros }
    }
}
