//! The bytecode form (§10).
//!
//! `cursor` reads primitives, `container` sections and tables, `types` the type table, `constant` elements, `body`
//! operations, `function` all functions. `layout` lists the fields of every operation, because operations do not
//! state their length.

mod attribute;
mod body;
mod constant;
mod container;
mod cursor;
mod function;
pub(crate) mod layout;
mod types;

use crate::tile::error::Diagnostic;
use crate::tile::module::Module;

/// First bytes of a file.
pub const MAGIC: [u8; 8] = *b"\x7fTileIR\x00";

/// Reads a module from bytecode.
///
/// Cost: memory proportional to the number of bytes.
///
/// # Errors
/// The first place where the file's structure is wrong (T017) or names a type that its version lacks (T013). An
/// incomplete function is a finding of the module.
///
/// # Examples
/// ```
/// let error = truecast_models::tile::bytecode::read(b"\x7fTileIR\x00\x0d\x09\0\0").unwrap_err();
/// assert_eq!(error.to_string(), "offset 8: T017: file version 13.9 is not one of 13.1 to 13.5");
/// ```
pub fn read(bytes: &[u8]) -> Result<Module, Diagnostic> {
    let sections = container::Sections::read(bytes)?;
    function::module(&sections)
}
