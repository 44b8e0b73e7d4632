//! Explanation of one conversion under every specification. It has the bits, the exact value, the neighbors, the
//! rounding decision, and the results.

mod answers;
mod distance;
mod element;
mod every;
mod neighbors;
mod tile;

pub use answers::{Absent, Answer, Explanation, explain_printing, explain_text, explain_under};
pub use distance::{RoundingError, rounding_error};
pub use element::{Decoded, NanParts};
pub use every::{absent, explain};
pub use neighbors::{CodePoint, Decision, Neighbors, explain_format};
pub use tile::{explain_tile, explain_tile_as};
