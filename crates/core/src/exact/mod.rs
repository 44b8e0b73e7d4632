//! The definition of every conversion, [`cast_one`]: decode, round once, encode.
//!
//! Every fast path is tested against [`cast_one`], bit for bit. This module uses integer arithmetic only.
//! The letters `p t q emin` are defined in [`mod@crate::format`].

mod book;
mod decode;
mod float;
mod int;
mod outcome;
mod philox;
mod special;
mod stochastic;
mod value;

pub use decode::{decode, decode_float};
pub use float::encode_float;
pub use outcome::{Encoded, Outcome};
pub use philox::philox4x32;
pub use stochastic::{LastPlace, RandomBits, Stochastic, last_place};
pub use value::Exact;

pub(crate) use decode::flush_source;
pub(crate) use int::{SplitMagnitude, encode_whole};
pub(crate) use stochastic::unit;

use crate::dtype::{DType, Kind};
use crate::policy::{CastPolicy, CastSpec, Condition, NanRule};

/// Converts one code: decode, round once, encode.
///
/// Shapes: `code` is right-aligned, [`DType::code_bits`] wide; higher bits are ignored. For bool and i1, nonzero is
/// true.
/// Result: the definition. Source: [`CastSpec::clause`].
///
/// # Panics If the types differ and one is complex, or if one is text, which [`crate::text`] converts.
///
/// # Examples
/// ```
/// use truecast_core::{spec::ieee, cast_one, DType, Outcome};
/// let spec = ieee::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
/// assert_eq!(cast_one(&spec, 464f32.to_bits().into()), Outcome::Defined(0x7e)); // a tie, to the even code of 448
/// assert_eq!(cast_one(&spec, 465f32.to_bits().into()), Outcome::Defined(0x7f)); // overflow: no Inf, so NaN
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[inline]
#[must_use]
pub fn cast_one(spec: &CastSpec, code: u64) -> Outcome {
    let CastSpec { src, dst, undefined, .. } = spec;
    if src == dst && !src.is_numeric() {
        return Outcome::Defined(code);
    }
    let outcome = convert(spec, code);
    match (outcome, outcome::open_between(undefined, || decode(*src, code))) {
        (Outcome::Defined(code), Some(reason)) => Outcome::Undefined { code, reason },
        _ => outcome,
    }
}

/// Cast without [`Condition::Between`], which depends only on the source.
#[inline]
fn convert(spec: &CastSpec, code: u64) -> Outcome {
    let CastSpec { src, dst, policy, undefined, .. } = spec;
    if let Some([first, second]) = spec.legs() {
        return match convert(&first, code) {
            Outcome::Defined(code) | Outcome::Undefined { code, .. } => convert(&second, code),
            refused @ Outcome::Refused { .. } => refused,
        };
    }
    let value = spec.source_value(code);
    if src == dst && policy.nan == NanRule::Keep && !policy.relu && matches!(value, Exact::Nan { .. }) {
        return Outcome::Defined(code & code_mask(*src)); // a cast to the same type copies bits
    }
    encode(*dst, policy, value).outcome(undefined)
}

fn code_mask(dtype: DType) -> u64 {
    u64::MAX >> (64 - dtype.code_bits())
}

impl CastSpec {
    /// Returns the value before rounding, flushed and scaled as the policy requires.
    #[inline]
    #[must_use]
    pub fn source_value(&self, code: u64) -> Exact {
        flush_source(decode(self.src, code), self.src, &self.policy).scaled(self.policy.scale_exponent.into())
    }
}

/// Rounds a value once into `dst`.
///
/// # Panics
/// If `dst` is complex or text.
#[inline(always)]
#[must_use]
pub fn encode(dst: DType, policy: &CastPolicy, value: Exact) -> Encoded {
    let value = if policy.relu { relu(value) } else { value };
    match dst.kind() {
        Kind::Float(f) => encode_float(&f, policy, value),
        _ if matches!(value, Exact::Nan { .. }) && policy.nan == NanRule::Error => Encoded::at(Condition::Nan, None),
        Kind::Bool => Encoded::plain(!matches!(value, Exact::Finite { sig: 0, sticky: false, .. }) as u64),
        Kind::Int(f) => int::encode_int(f, policy, value),
        Kind::Fixed(f) => book::encode_fixed(f, policy, value),
        Kind::Book(book) => book::encode_book(book, policy, value),
        Kind::Complex(_) | Kind::String => panic!("{dst} takes no numeric value"),
    }
}

/// [`CastPolicy::relu`]: a negative value becomes +0, and NaN becomes the canonical NaN.
fn relu(value: Exact) -> Exact {
    match value {
        Exact::Nan { .. } => Exact::Nan { neg: false, payload: None },
        Exact::Inf { neg: true } | Exact::Finite { neg: true, .. } => {
            Exact::Finite { neg: false, sig: 0, exp: 0, sticky: false }
        }
        other => other,
    }
}
