//! Reads, checks, prints and evaluates CUDA Tile IR modules of conversions. A `§` in this folder is of
//! `docs/spec/tile-ir.md`.
//!
//! [`text`] and [`bytecode`] read a module into the structure of [`module`]. [`check`](fn@check) finds errors for a
//! release, [`evaluate`](mod@evaluate) computes every conversion. Input is not trusted: nesting is limited, and
//! memory is proportional to the input.
//!
//! # Examples
//! ```
//! use truecast_core::spec::tile::{Options, Profile, Release, Rules};
//! let source = "entry @k() {
//!   %x = constant <f32: 1.5> : tile<4xf32>
//!   %y = ftof %x rounding<zero> : tile<4xf32> -> tile<4xf8E4M3FN>
//!   return
//! }";
//! let module = truecast_models::tile::text::parse(source, Release::NEWEST)?;
//! let report = truecast_models::tile::check(&module, Rules::default(), Profile::Spec, &Options::default());
//! assert_eq!(report.errors[0].code(), "T008"); // only nearest_even leads to f8E4M3FN
//! # Ok::<(), truecast_models::tile::Diagnostic>(())
//! ```

pub mod bytecode;
mod check;
mod describe;
pub mod error;
pub mod evaluate;
pub mod module;
mod names;
mod pack;
pub mod text;

pub use check::{ModuleLegality, check};
pub use describe::describe;
pub use error::{Cause, Diagnostic, EntryError, Place};
pub use evaluate::evaluate;
pub use module::Module;

use truecast_core::spec::tile::Release;

/// Reads a module: bytecode or text, by the first bytes. Text is read as version `text`.
///
/// # Errors
/// The first place that cannot be read (T014 to T020).
pub fn read(bytes: &[u8], text: Release) -> Result<Module, Diagnostic> {
    if bytes.starts_with(&bytecode::MAGIC) {
        return bytecode::read(bytes);
    }
    match std::str::from_utf8(bytes) {
        Ok(source) => text::parse(source, text),
        Err(e) => {
            let why = "neither bytecode (the magic number is missing) nor text in UTF-8".into();
            Err(Diagnostic::new(Place::Byte(e.valid_up_to() as u64), Cause::Structure { why }))
        }
    }
}
