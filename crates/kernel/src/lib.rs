//! How conversions are made fast.
//!
//! A [`Caster`] is planned once from a [`truecast_core::CastSpec`] and then runs over bytes with no decisions left
//! inside the loop. Every result is bit-identical to [`truecast_core::cast_one`], on every CPU level, length, alignment
//! and thread count. No module here knows a standard; all `unsafe` arithmetic of the project lives here.
//!
//! Read in this order: [`level`], `lane`, `stage`, `plan`, [`caster`]. The reasons and measurements are in
//! `docs/kernels.md`.

pub mod buf;
pub mod caches;
pub mod caster;
mod lane;
pub mod level;
pub mod measure;
#[cfg(not(target_arch = "x86_64"))]
mod no_kernels;
mod op;
mod pack;
mod parallel;
pub mod plain;
mod plan;
pub mod rescale;
mod slot;
mod split;
mod stage;
mod stream;
mod table;
#[cfg(target_arch = "x86_64")]
mod x86;

/// The chooser of kernels written by hand for this architecture.
#[cfg(not(target_arch = "x86_64"))]
use no_kernels as by_hand;
#[cfg(target_arch = "x86_64")]
use x86::choose as by_hand;

pub use buf::{Buffer, Elements, ElementsMut};
pub use caches::Caches;
pub use caster::{CastError, CastOptions, Caster, Counting};
pub use level::Level;
pub use measure::Counts;
pub use plan::{PlanError, Route};
pub use rescale::{RescaleCounts, RescaleError, Rescaler};
