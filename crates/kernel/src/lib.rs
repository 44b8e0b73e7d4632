//! Fast conversions of buffers.
//!
//! A [`Caster`] is planned once from a [`truecast_core::CastSpec`]. Results are bit-identical to
//! [`truecast_core::cast_one`] on every CPU level, length, alignment and thread count. No module knows a standard.
//!
//! Read in this order: [`level`], `lane`, `stage`, `plan`, [`caster`]. Reasons and measurements are in
//! `docs/kernels.md`.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod arch;
pub mod buf;
pub mod caches;
pub mod caster;
mod environment;
mod error;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod interleave;
mod intermediate;
mod lane;
pub mod level;
pub mod measure;
mod numbers;
mod options;
mod pack;
pub mod parallel;
mod pipeline;
pub mod plain;
mod plan;
pub mod rescale;
mod route;
pub mod scaled;
mod slot;
mod split;
mod stage;
mod stochastic;
mod stream;
mod table;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod tail;
pub mod text;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use buf::{Buffer, Elements, ElementsMut};
pub use caches::Caches;
pub use caster::Caster;
pub use error::CastError;
pub use level::Level;
pub use measure::Counts;
pub use options::{CastOptions, Counting};
pub use plan::PlanError;
pub use rescale::{RescaleCounts, RescaleError, Rescaler};
pub use route::{Method, Route};
pub use stochastic::StochasticCaster;
