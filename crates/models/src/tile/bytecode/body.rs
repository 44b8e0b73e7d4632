//! Reads the bodies of functions: operations and their regions (§10.6, §10.7).

use std::sync::Arc;

use truecast_core::DType;
use truecast_core::spec::tile::{
    Conversion, ElementType, IntegerOverflow, Op, Release, RoundingMode, Signedness, TileType, Violation,
};

use super::attribute;
use super::constant::Constants;
use super::cursor::Cursor;
use super::layout::{self, Layout};
use super::types::{Type, Types};
use crate::tile::error::{Cause, Diagnostic, NO_I4, Place};
use crate::tile::module::{Function, Operation, PackKind, Statement, Value, ValueId};

const MAX_DEPTH: usize = 64;
const CONSTANT: u64 = 0x10;
const RETURN: u64 = 0x5c;
const PACK: u64 = 0x6f;
const UNPACK: u64 = 0x70;

/// Opcodes of the nine conversions (§10.7).
const CONVERSIONS: [(u64, Op); 9] = [
    (0x09, Op::Bitcast),
    (0x25, Op::Exti),
    (0x2a, Op::Ftof),
    (0x2b, Op::Ftoi),
    (0x33, Op::IntToPtr),
    (0x3b, Op::Itof),
    (0x56, Op::PtrToInt),
    (0x57, Op::PtrToPtr),
    (0x6b, Op::Trunci),
];

pub(super) struct Body<'r, 'a> {
    version: Release,
    types: &'r Types,
    constants: &'r mut Constants<'a>,
    pub function: Function,
    numbered: Vec<ValueId>,
    depth: usize,
}

impl<'r, 'a> Body<'r, 'a> {
    pub fn new(
        version: Release,
        types: &'r Types,
        constants: &'r mut Constants<'a>,
        function: Function,
        numbered: Vec<ValueId>,
    ) -> Self {
        Self { version, types, constants, function, numbered, depth: 0 }
    }

    pub fn read_all(&mut self, mut cursor: Cursor<'_>) -> Result<(), Diagnostic> {
        while !cursor.is_empty() {
            let statement = self.operation(&mut cursor)?;
            self.function.body.push(statement);
        }
        Ok(())
    }

    fn new_value(&mut self, tile: Option<Arc<TileType>>) -> ValueId {
        self.function.values.push(Value { name: None, tile });
        let id = ValueId(self.function.values.len() as u32 - 1);
        self.numbered.push(id);
        id
    }

    fn one_result(&mut self, place: Place, tile: &Arc<TileType>, operation: Operation) -> Statement {
        let results = vec![self.new_value(Some(tile.clone()))];
        Statement { place, location: None, results, operation }
    }

    /// Reads an enumeration value. `unknown` makes the violation for an unknown number.
    fn attribute<T>(
        &self,
        cursor: &mut Cursor<'_>,
        of_number: impl Fn(u64) -> Option<T>,
        unknown: impl Fn(String) -> Violation,
    ) -> Result<T, Diagnostic> {
        let place = Place::Byte(cursor.at());
        let number = cursor.varint()?;
        of_number(number).ok_or_else(|| {
            let value = format!("%{}", self.function.values.len());
            Diagnostic::new(place, Cause::Attribute { value, violation: unknown(number.to_string()) })
        })
    }

    fn operand(&self, cursor: &mut Cursor<'_>) -> Result<ValueId, Diagnostic> {
        let place = *cursor;
        let number = cursor.varint()?;
        let known = usize::try_from(number).ok().and_then(|n| self.numbered.get(n));
        known.copied().ok_or_else(|| place.wrong(format!("value {number} of {}", self.numbered.len())))
    }

    fn operands(&self, cursor: &mut Cursor<'_>) -> Result<Vec<ValueId>, Diagnostic> {
        let count = cursor.count("operands", 1)?;
        (0..count).map(|_| self.operand(cursor)).collect()
    }

    /// Reads the type of a result; `None` unless the type is a tile.
    fn result(&self, cursor: &mut Cursor<'_>) -> Result<Option<Arc<TileType>>, Diagnostic> {
        let place = *cursor;
        Ok(match self.types.get(cursor.varint()?, &place)? {
            Type::Tile(tile) => Some(tile.clone()),
            Type::Element(_) | Type::Function { .. } | Type::Other => None,
        })
    }

    fn tile(&self, cursor: &mut Cursor<'_>) -> Result<Arc<TileType>, Diagnostic> {
        let place = *cursor;
        self.result(cursor)?.ok_or_else(|| {
            Diagnostic::new(Place::Byte(place.at()), Cause::TypeForm { why: "the result type is not a tile".into() })
        })
    }

    fn operation(&mut self, cursor: &mut Cursor<'_>) -> Result<Statement, Diagnostic> {
        let begin = *cursor;
        let place = Place::Byte(begin.at());
        let opcode = cursor.varint()?;
        let unknown = |why: String| Diagnostic::new(place, Cause::Opcode { why });
        if let Some((_, op)) = CONVERSIONS.iter().find(|(code, _)| *code == opcode) {
            return self.conversion(*op, place, cursor);
        }
        match opcode {
            CONSTANT => {
                let tile = self.tile(cursor)?;
                let from = *cursor;
                let index = cursor.varint()?;
                self.refuse_constants(&tile, place)?;
                let elements = self.constants.get(index, &tile, &from)?;
                Ok(self.one_result(place, &tile.clone(), Operation::Constant { tile, elements }))
            }
            RETURN => {
                let types = cursor.varint()?;
                if types != 0 {
                    return Err(begin.wrong(format!("return lists {types} result types, expected 0")));
                }
                let operands = self.operands(cursor)?;
                Ok(Statement { place, location: None, results: vec![], operation: Operation::Return { operands } })
            }
            PACK | UNPACK if self.version >= Release::V13_3 => {
                let kind = if opcode == PACK { PackKind::Pack } else { PackKind::Unpack };
                let to = self.tile(cursor)?;
                let operand = self.operand(cursor)?;
                let from = self.type_of(operand, kind.name(), &to, place)?;
                Ok(self.one_result(place, &to.clone(), Operation::Pack { kind, operand, from, to }))
            }
            _ => match layout::of_opcode(opcode) {
                Some(layout) if layout.since <= self.version => self.opaque(layout, place, cursor),
                Some(layout) => Err(unknown(format!(
                    "opcode {opcode:#04X} ({}) at offset {} needs file version {}, this file is {}",
                    layout.name,
                    begin.at(),
                    layout.since,
                    self.version
                ))),
                None => Err(unknown(format!(
                    "opcode {opcode:#04X} at offset {} is not known in version {}; operations have no length field, \
                     reading stops here",
                    begin.at(),
                    self.version
                ))),
            },
        }
    }

    fn refuse_constants(&self, tile: &TileType, place: Place) -> Result<(), Diagnostic> {
        let why = match tile.element {
            ElementType::Pointer(_) => "pointers have no constants",
            ElementType::Number(DType::I4) => NO_I4,
            ElementType::Number(_) => return Ok(()),
        };
        Err(Diagnostic::new(place, Cause::Literal { element: tile.element.to_string(), why: why.into() }))
    }

    /// Type of an operand, which must be a tile.
    fn type_of(
        &self,
        operand: ValueId,
        op: &'static str,
        to: &TileType,
        place: Place,
    ) -> Result<Arc<TileType>, Diagnostic> {
        self.function.value(operand).tile.clone().ok_or_else(|| {
            let cause = Cause::OperandType {
                value: format!("%{}", self.function.values.len()),
                op,
                operand: self.function.name_of(operand),
                found: "not a tile".into(),
                written: format!("a tile, to give {to}"),
            };
            Diagnostic::new(place, cause)
        })
    }

    fn conversion(&mut self, op: Op, place: Place, cursor: &mut Cursor<'_>) -> Result<Statement, Diagnostic> {
        let to = self.tile(cursor)?;
        let at_flags = *cursor;
        let mut flags = 0;
        if op == Op::Ftoi && self.version >= Release::V13_4 {
            flags = cursor.varint()?;
        }
        if flags > 1 {
            return Err(at_flags.wrong(format!("ftoi flags {flags:#x}; only bit 0, saturating, is known")));
        }
        let mut signedness = Signedness::Signed;
        if op.has_signedness() {
            let unknown = |found| Violation::Signedness { op, found: Some(found) };
            signedness = self.attribute(cursor, Signedness::of_number, unknown)?;
        }
        let mut conversion = op.with_defaults(signedness);
        match &mut conversion {
            Conversion::Trunci { overflow } => {
                *overflow =
                    self.attribute(cursor, IntegerOverflow::of_number, |found| Violation::Overflow { found })?;
            }
            Conversion::Ftof { rounding } | Conversion::Itof { rounding, .. } | Conversion::Ftoi { rounding, .. } => {
                let at = *cursor;
                let unknown = |found| Violation::RoundingName { op, found };
                *rounding = self.attribute(cursor, RoundingMode::of_number, unknown)?;
                if rounding.since() > self.version {
                    let what = format!("rounding mode {rounding}");
                    let cause = Cause::Newer { what, since: rounding.since(), file: self.version };
                    return Err(Diagnostic::new(Place::Byte(at.at()), cause));
                }
            }
            _ => {}
        }
        if let Conversion::Ftoi { saturating, .. } = &mut conversion {
            *saturating = flags & 1 != 0;
        }
        let operand = self.operand(cursor)?;
        let from = self.type_of(operand, op.name(), &to, place)?;
        Ok(self.one_result(place, &to.clone(), Operation::Convert { conversion, operand, from, to }))
    }

    fn opaque(
        &mut self,
        layout: &'static Layout,
        place: Place,
        cursor: &mut Cursor<'_>,
    ) -> Result<Statement, Diagnostic> {
        let mut results = Vec::new();
        let mut regions = Vec::new();
        let mut flags = 0u64;
        for field in layout.fields.split(' ') {
            let field = match field.split_once(':') {
                Some((since, field)) if Release::ALL.iter().any(|r| r.name() == since && *r <= self.version) => field,
                Some(_) => continue,
                None => field,
            };
            let (kind, bit) =
                field.split_once('?').map_or((field, None), |(kind, bit)| (kind, bit.parse::<u32>().ok()));
            if bit.is_some_and(|bit| flags >> bit & 1 == 0) {
                continue;
            }
            match kind {
                "t" => results.push(self.result(cursor)?),
                "t*" => {
                    let count = cursor.count("result types", 1)?;
                    for _ in 0..count {
                        results.push(self.result(cursor)?);
                    }
                }
                "f" => flags = cursor.varint()?,
                "e" | "n" | "s" => drop(cursor.varint()?),
                "b" => drop(cursor.byte()?),
                "a" => attribute::skip(cursor, self.types)?,
                "a*" => {
                    let count = cursor.count("attributes", 1)?;
                    (0..count).try_for_each(|_| attribute::skip(cursor, self.types))?;
                }
                "h" => attribute::skip_dictionary(cursor, self.types)?,
                "L4" => {
                    let count = cursor.count("integers", 4)?;
                    cursor.take(4 * count)?;
                }
                "L1" => {
                    let count = cursor.count("bytes", 1)?;
                    cursor.take(count)?;
                }
                "o" => drop(self.operand(cursor)?),
                "o*" => drop(self.operands(cursor)?),
                "R" => regions = self.regions(cursor)?,
                other => unreachable!("the table of layouts has no field {other}"),
            }
        }
        let results = results.into_iter().map(|tile| self.new_value(tile)).collect();
        Ok(Statement {
            place,
            location: None,
            results,
            operation: Operation::Opaque { name: layout.name.into(), regions },
        })
    }

    /// Reads regions. After a block, the numbers of its values are used again.
    fn regions(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<Vec<Statement>>, Diagnostic> {
        if self.depth == MAX_DEPTH {
            return Err(cursor.wrong(format!("more than {MAX_DEPTH} nested regions")));
        }
        self.depth += 1;
        let count = cursor.count("regions", 1)?;
        let mut regions = Vec::new();
        for _ in 0..count {
            let mut statements = Vec::new();
            let blocks = cursor.count("blocks", 2)?;
            for _ in 0..blocks {
                let outside = self.numbered.len();
                let arguments = cursor.count("block arguments", 1)?;
                for _ in 0..arguments {
                    let tile = self.result(cursor)?;
                    self.new_value(tile);
                }
                let operations = cursor.count("operations", 1)?;
                for _ in 0..operations {
                    statements.push(self.operation(cursor)?);
                }
                self.numbered.truncate(outside);
            }
            regions.push(statements);
        }
        self.depth -= 1;
        Ok(regions)
    }
}
