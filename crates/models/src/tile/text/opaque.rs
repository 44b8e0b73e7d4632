//! Finds the end and the regions of an opaque operation (§9.3, `other`).
//!
//! Brackets are balanced, and `{` with a statement after it opens a region. A statement begins at values with `=`, or
//! at a line that begins with an operation's name.

use super::lexer::{Lexeme, Lexer, Token};
use super::scope::Scope;
use super::tokens::Parser;
use crate::tile::error::Diagnostic;
use crate::tile::module::Statement;
use crate::tile::names::is_operation;

/// Whether a word is an operation of another dialect: only such words have a dot after a name.
fn is_foreign(word: &str) -> bool {
    word.split_once('.').is_some_and(|(dialect, _)| dialect.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Whether the results of a statement begin here. Results are up to 32 values, followed by `=`.
fn begins_results(mut lexer: Lexer<'_>) -> bool {
    const MOST: usize = 32;
    for _ in 0..MOST {
        let mut next = || lexer.next().map_or(Token::End, |lexeme| lexeme.token);
        let Token::Value(_) = next() else { return false };
        let mut after = next();
        if after == Token::Sign(':') {
            let Token::Word(_) = next() else { return false };
            after = next();
        }
        match after {
            Token::Sign('=') => return true,
            Token::Sign(',') => {}
            _ => return false,
        }
    }
    false
}

impl<'a> Parser<'a> {
    pub(super) fn begins_statement(&self, at: &Lexeme<'a>) -> bool {
        match at.token {
            Token::Value(_) => begins_results(self.lexer_at_peeked()),
            Token::Word("return") => true,
            Token::Word(word) => at.leads_line && (is_operation(word) || is_foreign(word)),
            _ => false,
        }
    }

    pub(super) fn opaque(&mut self, scope: &mut Scope<'a>) -> Result<Vec<Vec<Statement>>, Diagnostic> {
        let mut regions = Vec::new();
        let mut closers: Vec<char> = Vec::new();
        loop {
            let at = self.peek()?;
            if closers.is_empty() && (matches!(at.token, Token::End | Token::Sign('}')) || self.begins_statement(&at)) {
                return Ok(regions);
            }
            match at.token {
                Token::Sign('{') if closers.is_empty() && self.opens_region()? => {
                    regions.push(self.region(scope)?);
                    continue;
                }
                Token::Sign('(') => closers.push(')'),
                Token::Sign('[') => closers.push(']'),
                Token::Sign('{') => closers.push('}'),
                Token::Sign('<') => closers.push('>'),
                Token::Sign(closer @ (')' | ']' | '}' | '>')) if closers.pop() != Some(closer) => {
                    return Err(self.unexpected("balanced brackets", &at));
                }
                Token::End => return Err(self.unexpected("balanced brackets", &at)),
                // The name may be an argument of a region in the operation.
                Token::Value(name) => scope.mention(name),
                _ => {}
            }
            self.advance()?;
        }
    }

    /// Whether the next brace opens a region. If so, a block, a statement or `}` follows. Otherwise the brace opens a
    /// dictionary.
    fn opens_region(&mut self) -> Result<bool, Diagnostic> {
        let mut ahead = self.lexer_at_peeked();
        ahead.next()?;
        let inside = ahead;
        let first = ahead.next()?;
        Ok(match first.token {
            Token::Sign('}' | '^') => true,
            Token::Value(_) => begins_results(inside),
            Token::Word(word) => is_operation(word) && ahead.next()?.token != Token::Sign('='),
            _ => false,
        })
    }

    fn region(&mut self, scope: &mut Scope<'a>) -> Result<Vec<Statement>, Diagnostic> {
        self.expect('{')?;
        scope.enter();
        let statements = self.statements(scope)?;
        scope.leave();
        self.expect('}')?;
        Ok(statements)
    }
}
