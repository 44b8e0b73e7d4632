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

/// An attribute that is stated by a name.
enum Named<T> {
    Absent,
    Known(T, Place),
    Unknown,
}

fn quoted(word: &str) -> String {
    format!("\"{}\"", shown(word))
}

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

    /// Parses `keyword<word>`. A word that `of_name` does not know is a finding about the attribute.
    fn named<T>(
        &mut self,
        keyword: &str,
        value: &str,
        of_name: fn(&str) -> Option<T>,
        violation: impl FnOnce(String) -> Violation,
    ) -> Result<Named<T>, Diagnostic> {
        let Some((word, place)) = self.option(keyword)? else { return Ok(Named::Absent) };
        let known = of_name(word).map(|name| Named::Known(name, place));
        Ok(known.unwrap_or_else(|| {
            self.refuse_attribute(value, place, violation(quoted(word)));
            Named::Unknown
        }))
    }

    fn refuse_attribute(&mut self, value: &str, place: Place, violation: Violation) {
        self.module.find(Diagnostic::new(place, Cause::Attribute { value: value.into(), violation }));
    }

    /// Parses `signed` or `unsigned`; `None` and a finding for another word or a missing one.
    fn signedness(&mut self, op: Op, value: &str) -> Result<Option<Signedness>, Diagnostic> {
        let at = self.peek()?;
        let word = if let Token::Word(word) = at.token { Some(word) } else { None };
        let signedness = word.and_then(Signedness::of_name);
        let unknown = word.filter(|word| signedness.is_none() && !matches!(*word, "rounding" | "saturating"));
        if signedness.is_some() || unknown.is_some() {
            self.advance()?;
        }
        if signedness.is_none() {
            self.refuse_attribute(value, at.place, Violation::Signedness { op, found: unknown.map(quoted) });
        }
        Ok(signedness)
    }

    /// Parses the attributes after the signedness; returns true if all their names are known.
    fn attributes(&mut self, conversion: &mut Conversion, op: Op, value: &str) -> Result<bool, Diagnostic> {
        let mut is_known = true;
        if let Conversion::Trunci { overflow } = conversion {
            match self.named("overflow", value, IntegerOverflow::of_name, |found| Violation::Overflow { found })? {
                Named::Absent => {}
                Named::Known(name, _) => *overflow = name,
                Named::Unknown => is_known = false,
            }
        }
        if let Conversion::Ftof { rounding } | Conversion::Itof { rounding, .. } | Conversion::Ftoi { rounding, .. } =
            conversion
        {
            match self.named("rounding", value, RoundingMode::of_name, |found| Violation::RoundingName { op, found })? {
                Named::Absent => {}
                Named::Known(mode, place) => {
                    *rounding = mode;
                    self.gate(format!("rounding mode {mode}"), mode.since(), place);
                }
                Named::Unknown => is_known = false,
            }
        }
        if let Conversion::Ftoi { saturating, .. } = conversion {
            let place = self.peek()?.place;
            *saturating = self.accept_word("saturating")?;
            if *saturating {
                self.gate("saturating".into(), Release::V13_4, place);
            }
        }
        Ok(is_known)
    }

    pub(super) fn conversion(
        &mut self,
        op: Op,
        names: &Names<'a>,
        scope: &Scope<'a>,
    ) -> Result<(Operation, Option<Arc<TileType>>), Diagnostic> {
        let operand = self.operand(scope)?;
        let value = names.first().map_or(op.to_string(), |(name, ..)| format!("%{}", shown(name)));
        let signedness = if op.has_signedness() { self.signedness(op, &value)? } else { Some(Signedness::Signed) };
        let mut conversion = op.with_defaults(signedness.unwrap_or(Signedness::Signed));
        let is_known = self.attributes(&mut conversion, op, &value)? && signedness.is_some();
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
