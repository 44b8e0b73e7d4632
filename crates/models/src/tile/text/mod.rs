//! The textual form (§9): both dialects are read, dialect A is printed.
//!
//! `lexer` makes words, `parser` statements, `literal` elements; [`print`](fn@print) goes the other way.

mod lexer;
mod literal;
mod opaque;
mod parser;
mod print;

pub use parser::parse;
pub use print::{Unprintable, operation, print};
