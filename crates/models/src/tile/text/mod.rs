//! The textual form (§9). Both dialects are read; dialect A is printed ([`print`](fn@print)).
//!
//! `lexer` splits text, `tokens` takes tokens, `scope` tracks names. `parser` parses modules and statements,
//! `conversion`, `constant`, `types` and `opaque` their parts, `literal` elements.

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
