//! The textual form (§9): both dialects are read, dialect A is printed.
//!
//! `lexer` makes words, `tokens` takes one after the other, `scope` knows names; `parser` reads modules and statements,
//! `conversion`, `constant`, `types` and `opaque` what these consist of, `literal` elements; [`print`](fn@print) goes the
//! other way.

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
