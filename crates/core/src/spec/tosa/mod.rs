//! TOSA CAST and RESCALE: versions, profiles and extensions, legality, results, and the other results of conforming
//! implementations. Reference: `docs/spec/tosa.md`.
//!
//! [`target`] has the features of a graph. [`cast`] and [`block`] are the two halves of CAST. [`rescale`] is RESCALE,
//! whose arithmetic is in [`crate::rescale`]. [`freedoms`] are the choices of an implementation in CAST, and [`check`]
//! decides whether results of other implementations are allowed.

pub mod block;
pub mod cast;
pub mod check;
pub mod freedoms;
pub mod rescale;
pub mod target;

pub use cast::{Cast, interpretations_at, signless};
pub use freedoms::Freedoms;
pub use rescale::{Requirement, Rescale, RescaleSpec};
pub use target::{Feature, Features, LevelLimit, Target, Version};

pub(super) use cast::interpretations;
