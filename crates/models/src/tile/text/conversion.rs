//! Parses conversions with their attributes, `pack`, `unpack` and `return`.

use std::sync::Arc;

use truecast_core::spec::tile::{
    Conversion, IntegerOverflow, Op, Release, RoundingMode, Signedness, TileType, Violation,
};

use super::lexer::Token;
use super::scope::Scope;
use super::tokens::Parser;
use crate::tile::error::{Cause, Diagnostic, Place, shown};
use crate::tile::module::{Operation, PackKind, ValueId};

pub(super) type Names<'a> = Vec<(&'a str, u64, Place)>;

impl<'a> Parser<'a> {
    fn operand(&mut self, scope: &Scope<'a>) -> Result<ValueId, Diagnostic> {
        let at = self.advance()?;
        let Token::Value(name) = at.token else { return Err(self.unexpected("an operand, as %name", &at)) };
        let index = if self.accept('#')? { self.number("the number of a result")? } else { 0 };
        scope.find(name, index).ok_or_else(|| self.unexpected("a value that was defined before", &at))
    }

    /// Parses `[dict] : type -> type [loc]`.
    fn signature(&mut self) -> Result<(Arc<TileType>, Arc<TileType>), Diagnostic> {
        self.skip_dictionary()?;
        self.expect(':')?;
        let from = self.tile()?;
        let at = self.advance()?;
        if at.token != Token::Arrow {
            return Err(self.unexpected("\"->\" after the operand type", &at));
        }
        let to = self.tile()?;
        self.location()?;
        Ok((from, to))
    }

    /// Parses `keyword<word>`; `None` if the keyword is missing.
    fn option(&mut self, keyword: &str) -> Result<Option<(&'a str, Place)>, Diagnostic> {
        if !self.accept_word(keyword)? {
            return Ok(None);
        }
        self.expect('<')?;
        let word = self.word("a name")?;
        self.expect('>')?;
        Ok(Some(word))
    }

    pub(super) fn conversion(
        &mut self,
        op: Op,
        names: &Names<'a>,
        scope: &Scope<'a>,
    ) -> Result<(Operation, Option<Arc<TileType>>), Diagnostic> {
        let operand = self.operand(scope)?;
        let value = || names.first().map_or(op.to_string(), |n| format!("%{}", shown(n.0)));
        let mut is_known = true;
        let attribute = |place, violation| Diagnostic::new(place, Cause::Attribute { value: value(), violation });
        let mut signedness = Signedness::Signed;
        if op.has_signedness() {
            let at = self.peek()?;
            let word = if let Token::Word(word) = at.token { Some(word) } else { None };
            match word.and_then(Signedness::of_name) {
                Some(found) => {
                    signedness = found;
                    self.advance()?;
                }
                None => {
                    let unknown = word.filter(|w| !matches!(*w, "rounding" | "saturating"));
                    let found = unknown.map(|w| format!("\"{}\"", shown(w)));
                    if found.is_some() {
                        self.advance()?;
                    }
                    self.module.find(attribute(at.place, Violation::Signedness { op, found }));
                    is_known = false;
                }
            }
        }
        let mut conversion = op.with_defaults(signedness);
        if let Conversion::Trunci { overflow } = &mut conversion
            && let Some((word, place)) = self.option("overflow")?
        {
            match IntegerOverflow::of_name(word) {
                Some(found) => *overflow = found,
                None => {
                    let found = format!("\"{}\"", shown(word));
                    self.module.find(attribute(place, Violation::Overflow { found }));
                    is_known = false;
                }
            }
        }
        if let Conversion::Ftof { rounding } | Conversion::Itof { rounding, .. } | Conversion::Ftoi { rounding, .. } =
            &mut conversion
            && let Some((word, place)) = self.option("rounding")?
        {
            match RoundingMode::of_name(word) {
                Some(found) => {
                    *rounding = found;
                    self.gate(format!("rounding mode {found}"), found.since(), place);
                }
                None => {
                    let found = format!("\"{}\"", shown(word));
                    self.module.find(attribute(place, Violation::RoundingName { op, found }));
                    is_known = false;
                }
            }
        }
        if let Conversion::Ftoi { saturating, .. } = &mut conversion {
            let place = self.peek()?.place;
            *saturating = self.accept_word("saturating")?;
            if *saturating {
                self.gate("saturating".into(), Release::V13_4, place);
            }
        }
        let (from, to) = self.signature()?;
        let operation = if is_known {
            Operation::Convert { conversion, operand, from, to: to.clone() }
        } else {
            Operation::Opaque { name: op.name().into(), regions: Vec::new() }
        };
        Ok((operation, Some(to)))
    }

    pub(super) fn pack(
        &mut self,
        kind: PackKind,
        scope: &Scope<'a>,
    ) -> Result<(Operation, Option<Arc<TileType>>), Diagnostic> {
        let operand = self.operand(scope)?;
        let (from, to) = self.signature()?;
        Ok((Operation::Pack { kind, operand, from, to: to.clone() }, Some(to)))
    }

    pub(super) fn returned(&mut self, scope: &Scope<'a>) -> Result<Operation, Diagnostic> {
        let mut operands = Vec::new();
        while let Token::Value(_) = self.peek()?.token {
            operands.push(self.operand(scope)?);
            if !self.accept(',')? {
                break;
            }
        }
        if self.accept(':')? {
            loop {
                self.skip_type()?;
                if !self.accept(',')? {
                    break;
                }
            }
        }
        self.location()?;
        Ok(Operation::Return { operands })
    }
}
