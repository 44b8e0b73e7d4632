//! Parses types, such as `tile<4x8xf32>`.

use std::sync::Arc;

use truecast_core::DType;
use truecast_core::spec::tile::types::Malformed;
use truecast_core::spec::tile::{ElementType, Number, TileType};

use super::lexer::Token;
use super::tokens::Parser;
use crate::tile::error::{Cause, Diagnostic, Place, shown};
use crate::tile::module::MAX_RANK;

impl<'a> Parser<'a> {
    pub(super) fn tile_begins(&mut self) -> Result<bool, Diagnostic> {
        let mut ahead = {
            self.peek()?;
            self.lexer_at_peeked()
        };
        let mut token = ahead.next()?.token;
        if token == Token::Sign('!') {
            token = ahead.next()?.token;
        }
        Ok(matches!(token, Token::Word("tile" | "cuda_tile.tile")))
    }

    pub(super) fn tile(&mut self) -> Result<Arc<TileType>, Diagnostic> {
        let place = self.peek()?.place;
        let form = |why: String| Diagnostic::new(place, Cause::TypeForm { why });
        if !self.tile_begins()? {
            let at = self.peek()?;
            return Err(match at.token {
                Token::Word("ptr" | "token" | "cuda_tile.ptr" | "cuda_tile.token") | Token::Sign('!') => {
                    form("conversions take tiles; a single pointer is written tile<ptr<..>>".into())
                }
                _ => self.unexpected("a type, as tile<4xf32>", &at),
            });
        }
        self.accept('!')?;
        self.word("tile")?;
        self.expect('<')?;
        let mut shape = Vec::new();
        let mut rest = match self.peek()?.token {
            Token::Word(word) => {
                self.advance()?;
                word
            }
            _ => "",
        };
        while let Some((front, after)) = rest.split_once('x')
            && !front.is_empty()
            && front.bytes().all(|b| b.is_ascii_digit())
        {
            shape.push(front.parse().map_err(|_| form(format!("dimension {} is too large", shown(front))))?);
            if shape.len() > MAX_RANK {
                return Err(form(format!("a tile has more than {MAX_RANK} dimensions")));
            }
            rest = after;
        }
        let element = self.element(rest, place)?;
        self.expect('>')?;
        self.gate(format!("type {element}"), element.since(), place);
        Ok(Arc::new(TileType { shape, element }))
    }

    /// Parses an element type after its first word `word`, which is empty before a `!`.
    fn element(&mut self, word: &'a str, place: Place) -> Result<ElementType, Diagnostic> {
        let word = match word {
            "" => {
                self.accept('!')?;
                self.word("an element type")?.0
            }
            _ => word,
        };
        if !matches!(word, "ptr" | "cuda_tile.ptr") {
            return Ok(ElementType::Number(number(word, place)?));
        }
        self.expect('<')?;
        let (pointee, at) = self.word("the pointee type")?;
        if matches!(pointee, "ptr" | "cuda_tile.ptr") {
            return Err(Diagnostic::new(at, Cause::Type(Malformed::Pointee("a pointer".into()))));
        }
        let pointee = number(pointee, at)?;
        self.expect('>')?;
        Ok(ElementType::Pointer(pointee))
    }

    /// Skips any type, up to the comma or bracket after it.
    pub(super) fn skip_type(&mut self) -> Result<(), Diagnostic> {
        loop {
            let at = self.peek()?;
            match at.token {
                Token::Sign(',' | ')' | '{' | '}') | Token::End | Token::Word("loc") => return Ok(()),
                Token::Sign(open @ ('<' | '(' | '[')) => self.skip_balanced(open)?,
                _ => {
                    self.advance()?;
                }
            }
        }
    }
}

fn number(word: &str, place: Place) -> Result<DType, Diagnostic> {
    Number::of_name(word).map(|n| n.dtype).ok_or_else(|| {
        Diagnostic::new(
            place,
            Cause::TypeForm { why: format!("\"{}\" is not an element type of Tile IR", shown(word)) },
        )
    })
}
