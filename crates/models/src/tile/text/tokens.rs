//! Basic steps of the parser: takes tokens, skips brackets, reads locations, reports newer features.

use std::collections::HashSet;
use std::sync::Arc;

use truecast_core::spec::tile::Release;

use super::lexer::{Lexeme, Lexer, Token};
use crate::tile::error::{Cause, Diagnostic, Place, shown_bare};
use crate::tile::module::Module;

pub(super) struct Parser<'a> {
    /// Lexer after the peeked token.
    lexer: Lexer<'a>,
    /// Next token, and the lexer before it.
    peeked: Option<(Lexeme<'a>, Lexer<'a>)>,
    pub(super) module: Module,
    /// Features already reported as newer than the file.
    too_new: HashSet<String>,
    pub(super) location: Option<Arc<str>>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(lexer: Lexer<'a>, module: Module) -> Self {
        Self { lexer, peeked: None, module, too_new: HashSet::new(), location: None }
    }

    pub(super) fn peek(&mut self) -> Result<Lexeme<'a>, Diagnostic> {
        if let Some((lexeme, _)) = self.peeked {
            return Ok(lexeme);
        }
        let before = self.lexer;
        let lexeme = self.lexer.next()?;
        self.peeked = Some((lexeme, before));
        Ok(lexeme)
    }

    /// Lexer whose next token is the peeked token.
    pub(super) fn lexer_at_peeked(&self) -> Lexer<'a> {
        self.peeked.map_or(self.lexer, |(_, before)| before)
    }

    pub(super) fn advance(&mut self) -> Result<Lexeme<'a>, Diagnostic> {
        let lexeme = self.peek()?;
        self.peeked = None;
        Ok(lexeme)
    }

    pub(super) fn unexpected(&self, expected: &str, at: &Lexeme<'a>) -> Diagnostic {
        Diagnostic::new(at.place, Cause::Syntax { expected: expected.into(), found: at.token.to_string() })
    }

    pub(super) fn accept(&mut self, sign: char) -> Result<bool, Diagnostic> {
        let is_next = self.peek()?.token == Token::Sign(sign);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    pub(super) fn accept_word(&mut self, word: &str) -> Result<bool, Diagnostic> {
        let is_next = self.peek()?.token == Token::Word(word);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    pub(super) fn expect(&mut self, sign: char) -> Result<(), Diagnostic> {
        let at = self.advance()?;
        match at.token {
            Token::Sign(found) if found == sign => Ok(()),
            _ => Err(self.unexpected(&format!("\"{sign}\""), &at)),
        }
    }

    pub(super) fn word(&mut self, expected: &str) -> Result<(&'a str, Place), Diagnostic> {
        let at = self.advance()?;
        match at.token {
            Token::Word(word) => Ok((word, at.place)),
            _ => Err(self.unexpected(expected, &at)),
        }
    }

    pub(super) fn number(&mut self, expected: &str) -> Result<u64, Diagnostic> {
        let at = self.advance()?;
        match at.token {
            Token::Word(word) if word.bytes().all(|b| b.is_ascii_digit()) => word.parse().ok(),
            _ => None,
        }
        .ok_or_else(|| self.unexpected(expected, &at))
    }

    pub(super) fn skip_balanced(&mut self, open: char) -> Result<(), Diagnostic> {
        let mut closers = Vec::new();
        self.expect(open)?;
        let closer = |open| match open {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            _ => '>',
        };
        closers.push(closer(open));
        while !closers.is_empty() {
            let at = self.advance()?;
            match at.token {
                Token::Sign(open @ ('(' | '[' | '{' | '<')) => closers.push(closer(open)),
                Token::Sign(found @ (')' | ']' | '}' | '>')) if closers.pop() != Some(found) => {
                    return Err(self.unexpected("balanced brackets", &at));
                }
                Token::End => return Err(self.unexpected("balanced brackets", &at)),
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn skip_dictionary(&mut self) -> Result<(), Diagnostic> {
        match self.peek()?.token {
            Token::Sign('{') => self.skip_balanced('{'),
            _ => Ok(()),
        }
    }

    pub(super) fn location(&mut self) -> Result<(), Diagnostic> {
        if self.accept_word("loc")? {
            self.peek()?;
            let before = self.lexer_at_peeked();
            self.skip_balanced('(')?;
            self.location = Some(shown_bare(before.text_up_to(&self.lexer)).into());
        }
        Ok(())
    }

    /// Reports, once, a feature that the file's version lacks.
    pub(super) fn gate(&mut self, what: String, since: Release, place: Place) {
        let file = self.module.version;
        if since > file && self.too_new.insert(what.clone()) {
            self.module.find(Diagnostic::new(place, Cause::Newer { what, since, file }));
        }
    }
}
