//! The textual form (§9): both dialects are read, dialect A is printed.
//!
//! `lexer` makes words, `tokens` takes them one by one, `scope` holds names; `parser` reads modules and statements,
//! `conversion`, `constant`, `types` and `opaque` their parts, `literal` elements; [`print`](fn@print) is the inverse.

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
