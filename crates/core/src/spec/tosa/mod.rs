//! TOSA CAST and RESCALE. Reference: `docs/spec/tosa.md`.
//!
//! [`target`] has the features of a graph, [`cast`] and [`block`] CAST, [`rescale`] RESCALE (arithmetic in
//! [`crate::rescale`]). [`freedoms`] has the implementation choices in CAST; [`check`] decides whether other
//! implementations' results are permitted.

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
