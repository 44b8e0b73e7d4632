//! The textual form (§9). Both dialects are read; dialect A is printed.
//!
//! `lexer` splits text into tokens, `tokens` takes them one by one, and `scope` tracks names. `parser` parses modules
//! and statements, `conversion`, `constant`, `types` and `opaque` parse their parts, and `literal` parses elements.
//! [`print`](fn@print) writes a module as text.

mod constant;
mod conversion;
mod lexer;
mod literal;
mod opaque;
mod parser;
mod print;
mod scope;
mod tokens;
mod types;

pub use parser::parse;
pub use print::{Unprintable, operation, print};
