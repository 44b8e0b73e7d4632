//! The meaning of every conversion.
//!
//! Formats, policies, the exact definition [`exact::cast_one`], and the public standards as data ([`spec`]).
//! This crate has no `unsafe` code and no fast code. The fast conversions of `truecast-kernel` are tested against this
//! crate bit for bit.
//!
//! Read in this order: [`mod@format`], [`dtype`], [`round`], [`policy`], [`exact`], [`decimal`], [`mod@text`],
//! [`rescale`], [`scaled`], [`spec`], [`permitted`], [`promote`], [`spelling`].
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod big;
mod binary64;
pub mod decimal;
pub mod dtype;
mod error_code;
mod error_kind;
pub mod exact;
pub mod format;
pub mod literal;
pub mod permitted;
pub mod policy;
pub mod promote;
mod ratio;
pub mod rescale;
pub mod round;
pub mod scaled;
pub mod spec;
pub mod spelling;
pub mod text;
mod words;

pub use dtype::{DType, Ecosystem, Kind, Layout};
pub use error_code::ErrorCode;
pub use error_kind::ErrorKind;
pub use exact::{Exact, Outcome, cast_one};
pub use format::{CodeBook, FixedFormat, FloatFormat, IntFormat, Specials};
pub use policy::{CastPolicy, CastSpec};
pub use round::Rounding;
