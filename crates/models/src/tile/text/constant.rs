//! Parses constants: a literal in brackets, followed by its type.

use std::sync::Arc;

use truecast_core::spec::tile::{ElementType, Number, TileType};

use super::lexer::Token;
use super::literal;
use super::tokens::Parser;
use crate::tensor::Tensor;
use crate::tile::error::{Cause, Diagnostic, Place, shown};
use crate::tile::module::{Module, Operation};

impl<'a> Parser<'a> {
    pub(super) fn constant(&mut self) -> Result<(Operation, Option<Arc<TileType>>), Diagnostic> {
        self.skip_dictionary()?;
        let dense = self.accept_word("dense")?;
        self.expect('<')?;
        let element = if dense {
            None
        } else {
            let word = self.word("an element type")?;
            self.expect(':')?;
            Some(word)
        };
        // The type follows the literal. The literal is skipped, and parsed after the type.
        self.peek()?;
        let literal = self.lexer_at_peeked();
        self.skip_to_end_of_literal()?;
        self.expect(':')?;
        let tile = self.tile()?;
        self.location()?;
        if let Some((word, place)) = element
            && Number::of_name(word).map(|n| ElementType::Number(n.dtype)) != Some(tile.element)
        {
            return Err(wrong(
                &tile,
                place,
                format!("the literal says \"{}\"; write the element type of {tile}", shown(word)),
            ));
        }
        let mut inside = Parser::new(literal, Module::new(self.module.version));
        let elements = Arc::new(inside.literal(&tile)?);
        Ok((Operation::Constant { tile: tile.clone(), elements }, Some(tile)))
    }

    fn skip_to_end_of_literal(&mut self) -> Result<(), Diagnostic> {
        loop {
            let at = self.advance()?;
            match at.token {
                Token::Sign('>') => return Ok(()),
                Token::Word(_) | Token::Sign('[' | ']' | ',' | '-') => {}
                _ => return Err(self.unexpected("a number, \"[\" or \">\"", &at)),
            }
        }
    }

    fn literal(&mut self, tile: &TileType) -> Result<Tensor, Diagnostic> {
        let at = self.peek()?;
        if matches!(tile.element, ElementType::Pointer(_)) {
            return Err(wrong(tile, at.place, "pointers have no constants"));
        }
        let dtype = tile.element.storage();
        let shape = tile.shape.clone();
        let tensor = match at.token {
            Token::Sign('[') if tile.shape.is_empty() => {
                return Err(wrong(tile, at.place, "a scalar takes one number, not a list"));
            }
            Token::Sign('[') => {
                let mut codes = Vec::new();
                self.list(tile, &shape, &mut codes)?;
                Tensor::of_codes(dtype, shape, codes)
            }
            _ => Tensor::splat(dtype, shape, self.atom(tile)?),
        };
        self.expect('>')?;
        Ok(tensor)
    }

    /// Parses one dimension of a nested list, whose length must match `shape`.
    fn list(&mut self, tile: &TileType, shape: &[u64], codes: &mut Vec<u64>) -> Result<(), Diagnostic> {
        let (length, inner) = shape.split_first().expect("the caller has a dimension");
        let at = self.peek()?;
        self.expect('[')?;
        let mut found = 0u64;
        loop {
            let next = self.peek()?;
            match (next.token, inner.is_empty()) {
                (Token::Sign('['), false) => self.list(tile, inner, codes)?,
                (Token::Sign(']'), _) => return Err(wrong(tile, next.place, "a list must not be empty")),
                (Token::Sign('['), true) => {
                    return Err(wrong(tile, next.place, format!("the list is nested deeper than the shape of {tile}")));
                }
                (_, false) => {
                    let why = format!("the list is nested less deeply than the shape of {tile}");
                    return Err(wrong(tile, next.place, why));
                }
                (_, true) => codes.push(self.atom(tile)?),
            }
            found += 1;
            if self.accept(']')? {
                break;
            }
            self.expect(',')?;
        }
        if found == *length {
            Ok(())
        } else {
            let why = format!("{found} elements, but the shape of {tile} needs {length}");
            Err(wrong(tile, at.place, why))
        }
    }

    fn atom(&mut self, tile: &TileType) -> Result<u64, Diagnostic> {
        let neg = self.accept('-')?;
        let (word, place) = self.word("a number")?;
        literal::code(tile.element.storage(), neg, word).map_err(|why| wrong(tile, place, why))
    }
}

fn wrong(tile: &TileType, place: Place, why: impl Into<String>) -> Diagnostic {
    Diagnostic::new(place, Cause::Literal { element: literal::element_name(tile.element), why: why.into() })
}
