//! TOSA CAST and RESCALE: versions, profiles and extensions, legality, results, and what a conforming implementation
//! may return instead. Reference: `docs/spec/tosa.md`.
//!
//! [`target`] says what a graph may use, [`cast`] and [`block`] are the two halves of CAST, [`rescale`] is RESCALE, whose
//! arithmetic is [`crate::rescale`]. [`freedoms`] are those results of CAST that an implementation may choose, and
//! [`check`] asks whether the results of others are allowed.

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
