//! Functions and their bodies (§10.5 to §10.7).

use std::collections::HashMap;
use std::sync::Arc;

use truecast_core::DType;
use truecast_core::spec::tile::{
    Conversion, ElementType, IntegerOverflow, Op, Release, RoundingMode, Signedness, TileType, Violation,
};

use super::attribute;
use super::container::Sections;
use super::cursor::Cursor;
use super::layout::{self, Layout};
use super::types::{Type, Types};
use crate::tensor::Tensor;
use crate::tile::error::{Cause, Diagnostic, Place, shown};
use crate::tile::module::{Function, Module, Operation, PackKind, Statement, Value, ValueId};

/// Regions within regions.
const MAX_DEPTH: usize = 64;
/// Arguments of all functions of a file.
const MAX_ARGUMENTS: usize = 1 << 17;

const CONSTANT: u64 = 0x10;
const RETURN: u64 = 0x5c;
const PACK: u64 = 0x6f;
const UNPACK: u64 = 0x70;

/// Opcodes of the nine. Source: §10.7.
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

const PRIVATE: u8 = 1;
const KERNEL: u8 = 2;
const HINTS: u8 = 4;

/// Reads every function.
pub(super) fn module(sections: &Sections<'_>) -> Result<Module, Diagnostic> {
    let types = Types::read(&sections.types, sections.version)?;
    let mut functions = sections.functions;
    // A function has a name, a signature, flags, a location and a length.
    let count = functions.count("functions", 5)?;
    let module = Module { version: sections.version, functions: vec![], findings: vec![], warnings: vec![] };
    let (names, constants) = (HashMap::new(), HashMap::new());
    let mut reader = Reader { sections, types: &types, module, names, constants, arguments: 0 };
    let place = Place::Byte(functions.at());
    for _ in 0..count {
        reader.function(&mut functions)?;
    }
    if !reader.module.functions.iter().any(|function| function.is_entry) {
        reader.module.warn(Diagnostic::new(place, Cause::NoEntry));
    }
    Ok(reader.module)
}

/// Constants that were read: number, element type and length.
type Constants = HashMap<(u64, DType, u64), Arc<Tensor>>;

struct Reader<'a> {
    sections: &'a Sections<'a>,
    types: &'a Types,
    module: Module,
    /// Names that were read.
    names: HashMap<u64, Arc<str>>,
    constants: Constants,
    /// Arguments of the functions so far.
    arguments: usize,
}

impl Reader<'_> {
    fn function(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Diagnostic> {
        let begin = *cursor;
        let version = self.sections.version;
        let name = self.name(cursor.varint()?, &begin)?;
        let place = *cursor;
        let Type::Function { parameters, results } = self.types.get(cursor.varint()?, &place)? else {
            return Err(place.wrong("the signature is no function type"));
        };
        let place = *cursor;
        let flags = cursor.byte()?;
        let newest = version >= Release::V13_5;
        let known = if newest { PRIVATE | KERNEL } else { PRIVATE | KERNEL | HINTS };
        if flags & !known != 0 {
            return Err(place.wrong(format!("function flags {flags:#04x} are not known in version {version}")));
        }
        // Functions may share a signature, so that arguments are not in proportion to the file.
        self.arguments += parameters.len();
        if self.arguments > MAX_ARGUMENTS {
            return Err(place.wrong(format!("more than {MAX_ARGUMENTS} arguments of all functions together")));
        }
        let is_entry = flags & KERNEL != 0;
        cursor.varint()?;
        if is_entry && (newest || flags & HINTS != 0) {
            attribute::skip(cursor, self.types)?;
        }
        if newest {
            attribute::skip(cursor, self.types)?;
        }
        let length = cursor.varint()?;
        let body = cursor.part(length)?;
        let mut shell = Function {
            name,
            is_entry,
            place: Place::Byte(begin.at()),
            arguments: Vec::new(),
            values: Vec::new(),
            body: Vec::new(),
        };
        let mut wrong = |why: String| {
            let cause = Cause::Signature { entry: shown(&shell.name), why };
            self.module.find(Diagnostic::new(shell.place, cause));
        };
        if !is_entry {
            wrong("is no kernel entry; functions of other kinds are not read".into());
        }
        if is_entry && *results > 0 {
            wrong(format!("returns {results} values; an entry returns nothing"));
        }
        let mut numbered = Vec::new();
        for (index, &parameter) in parameters.iter().enumerate() {
            let tile = match self.types.get(parameter, &begin)? {
                Type::Tile(tile) => Some(tile.clone()),
                _ => {
                    wrong(format!("argument {index} is no tile; entry arguments must be rank-0 tiles"));
                    None
                }
            };
            numbered.push(ValueId(shell.values.len() as u32));
            shell.values.push(Value { name: None, tile });
        }
        shell.arguments = numbered.clone();
        let mut reader = Body { reader: self, function: shell, numbered, depth: 0 };
        let finished = reader.read_all(body);
        let Body { function, .. } = reader;
        match finished {
            Ok(()) if is_entry && !ends_with_return(&function) => {
                let cause = Cause::Terminator { entry: shown(&function.name) };
                self.module.find(Diagnostic::new(function.place, cause));
            }
            Ok(()) => {}
            // Operations have no length: what follows in this function cannot be found, other functions can.
            Err(error) => self.module.find(error),
        }
        self.module.functions.push(function);
        Ok(())
    }

    fn name(&mut self, index: u64, from: &Cursor<'_>) -> Result<Arc<str>, Diagnostic> {
        if let Some(known) = self.names.get(&index) {
            return Ok(known.clone());
        }
        let name = self.sections.strings.string(index, from)?;
        self.names.insert(index, name.clone());
        Ok(name)
    }

    /// The elements of a constant (§10.5).
    fn constant(&mut self, index: u64, tile: &TileType, from: &Cursor<'_>) -> Result<Arc<Tensor>, Diagnostic> {
        let (dtype, len) = (tile.element.storage(), tile.len());
        if let Some(known) = self.constants.get(&(index, dtype, len)) {
            return Ok(known.clone());
        }
        let table = &self.sections.constants;
        let item = usize::try_from(index).ok().and_then(|i| table.item(i));
        let mut item = item.ok_or_else(|| from.wrong(format!("constant {index} of {}", table.len())))?;
        let count = item.count("bytes", 1)?;
        let place = item;
        let bytes = item.take(count)?;
        if !item.is_empty() {
            return Err(item.wrong(format!("{} bytes after a constant", item.len())));
        }
        let elements = elements(tile, bytes).map_err(|why| place.wrong(why))?;
        let elements = Arc::new(elements);
        self.constants.insert((index, dtype, len), elements.clone());
        Ok(elements)
    }
}

fn ends_with_return(function: &Function) -> bool {
    matches!(function.body.last(), Some(Statement { operation: Operation::Return { .. }, .. }))
}

fn elements(tile: &TileType, bytes: &[u8]) -> Result<Tensor, String> {
    let (dtype, len) = (tile.element.storage(), tile.len());
    let mismatch = |expected: String| format!("a constant of {tile} has {} bytes, not {expected}", bytes.len());
    if dtype == DType::I1 {
        return match bytes {
            [all @ (0 | 0xff)] => Ok(Tensor::splat(dtype, tile.shape.clone(), (*all != 0) as u64)),
            _ if bytes.len() as u64 == len.div_ceil(8) => Ok(Tensor::of_codes(
                dtype,
                tile.shape.clone(),
                (0..len as usize).map(|i| u64::from(bytes[i / 8] >> (i % 8) & 1)),
            )),
            _ => Err(mismatch(format!("{}", len.div_ceil(8)))),
        };
    }
    let bits = dtype.code_bits();
    let width = bits.div_ceil(8) as usize;
    let code = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..width].copy_from_slice(bytes);
        u64::from_le_bytes(word) & (u64::MAX >> (64 - bits))
    };
    match bytes.len() {
        n if n == width => Ok(Tensor::splat(dtype, tile.shape.clone(), code(bytes))),
        n if Some(n as u64) == len.checked_mul(width as u64) => {
            Ok(Tensor::of_codes(dtype, tile.shape.clone(), bytes.chunks_exact(width).map(code)))
        }
        _ => Err(mismatch(format!("{width} (for all elements) or {width} for each"))),
    }
}

/// The body of one function while it is read.
struct Body<'r, 'a> {
    reader: &'r mut Reader<'a>,
    function: Function,
    /// Values by their current numbers.
    numbered: Vec<ValueId>,
    depth: usize,
}

impl Body<'_, '_> {
    fn read_all(&mut self, mut cursor: Cursor<'_>) -> Result<(), Diagnostic> {
        while !cursor.is_empty() {
            let statement = self.operation(&mut cursor)?;
            self.function.body.push(statement);
        }
        Ok(())
    }

    fn version(&self) -> Release {
        self.reader.sections.version
    }

    fn new_value(&mut self, tile: Option<Arc<TileType>>) -> ValueId {
        self.function.values.push(Value { name: None, tile });
        let id = ValueId(self.function.values.len() as u32 - 1);
        self.numbered.push(id);
        id
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

    /// The type of a result, if it is a tile.
    fn result(&self, cursor: &mut Cursor<'_>) -> Result<Option<Arc<TileType>>, Diagnostic> {
        let place = *cursor;
        Ok(match self.reader.types.get(cursor.varint()?, &place)? {
            Type::Tile(tile) => Some(tile.clone()),
            Type::Element(_) | Type::Function { .. } | Type::Other => None,
        })
    }

    fn tile(&self, cursor: &mut Cursor<'_>) -> Result<Arc<TileType>, Diagnostic> {
        let place = *cursor;
        self.result(cursor)?.ok_or_else(|| {
            Diagnostic::new(Place::Byte(place.at()), Cause::TypeForm { why: "the result type is no tile".into() })
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
                let elements = self.reader.constant(index, &tile, &from)?;
                let results = vec![self.new_value(Some(tile.clone()))];
                Ok(Statement { place, location: None, results, operation: Operation::Constant { tile, elements } })
            }
            RETURN => {
                let types = cursor.varint()?;
                if types != 0 {
                    return Err(begin.wrong(format!("return lists {types} result types; it has none")));
                }
                let operands = self.operands(cursor)?;
                Ok(Statement { place, location: None, results: vec![], operation: Operation::Return { operands } })
            }
            PACK | UNPACK if self.version() >= Release::V13_3 => {
                let kind = if opcode == PACK { PackKind::Pack } else { PackKind::Unpack };
                let to = self.tile(cursor)?;
                let operand = self.operand(cursor)?;
                let from = self.type_of(operand, kind.name(), &to, place)?;
                let results = vec![self.new_value(Some(to.clone()))];
                Ok(Statement { place, location: None, results, operation: Operation::Pack { kind, operand, from, to } })
            }
            _ => match layout::of_opcode(opcode) {
                Some(layout) if layout.since <= self.version() => self.opaque(layout, place, cursor),
                Some(layout) => Err(unknown(format!(
                    "opcode {opcode:#04X} ({}) at offset {} needs file version {}, this file is {}",
                    layout.name,
                    begin.at(),
                    layout.since,
                    self.version()
                ))),
                None => Err(unknown(format!(
                    "opcode {opcode:#04X} at offset {} is not known in version {}; operations have no length field, \
                     reading stops here",
                    begin.at(),
                    self.version()
                ))),
            },
        }
    }

    fn refuse_constants(&self, tile: &TileType, place: Place) -> Result<(), Diagnostic> {
        let why = match tile.element {
            ElementType::Pointer(_) => "pointers have no constants",
            ElementType::Number(DType::I4) => "i4 has no constants; make one of i8 and use trunci",
            ElementType::Number(_) => return Ok(()),
        };
        Err(Diagnostic::new(place, Cause::Literal { element: tile.element.to_string(), why: why.into() }))
    }

    /// The type of an operand, which must be a tile.
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
                found: "no tile".into(),
                written: format!("a tile, to give {to}"),
            };
            Diagnostic::new(place, cause)
        })
    }

    fn conversion(&mut self, op: Op, place: Place, cursor: &mut Cursor<'_>) -> Result<Statement, Diagnostic> {
        let to = self.tile(cursor)?;
        let value = format!("%{}", self.function.values.len());
        let attribute = |place: Cursor<'_>, violation| {
            Diagnostic::new(Place::Byte(place.at()), Cause::Attribute { value: value.clone(), violation })
        };
        let at_flags = *cursor;
        let mut flags = 0;
        if op == Op::Ftoi && self.version() >= Release::V13_4 {
            flags = cursor.varint()?;
        }
        if flags > 1 {
            return Err(at_flags.wrong(format!("ftoi flags {flags:#x}; only bit 0, saturating, is known")));
        }
        let mut signedness = Signedness::Signed;
        if op.has_signedness() {
            let at = *cursor;
            let number = cursor.varint()?;
            signedness = Signedness::of_number(number)
                .ok_or_else(|| attribute(at, Violation::Signedness { op, found: Some(number.to_string()) }))?;
        }
        let mut conversion = op.with_defaults(signedness);
        match &mut conversion {
            Conversion::Trunci { overflow } => {
                let at = *cursor;
                let number = cursor.varint()?;
                *overflow = IntegerOverflow::of_number(number)
                    .ok_or_else(|| attribute(at, Violation::Overflow { found: number.to_string() }))?;
            }
            Conversion::Ftof { rounding } | Conversion::Itof { rounding, .. } | Conversion::Ftoi { rounding, .. } => {
                let at = *cursor;
                let number = cursor.varint()?;
                *rounding = RoundingMode::of_number(number)
                    .ok_or_else(|| attribute(at, Violation::RoundingName { op, found: number.to_string() }))?;
                if rounding.since() > self.version() {
                    let what = format!("rounding mode {rounding}");
                    let cause = Cause::Newer { what, since: rounding.since(), file: self.version() };
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
        let results = vec![self.new_value(Some(to.clone()))];
        Ok(Statement {
            place,
            location: None,
            results,
            operation: Operation::Convert { conversion, operand, from, to },
        })
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
                Some((since, field)) if Release::ALL.iter().any(|r| r.name() == since && *r <= self.version()) => field,
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
                "a" => attribute::skip(cursor, self.reader.types)?,
                "a*" => {
                    let count = cursor.count("attributes", 1)?;
                    (0..count).try_for_each(|_| attribute::skip(cursor, self.reader.types))?;
                }
                "h" => attribute::skip_dictionary(cursor, self.reader.types)?,
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

    /// Numbers that are given inside a block are free again after it.
    fn regions(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<Vec<Statement>>, Diagnostic> {
        if self.depth == MAX_DEPTH {
            return Err(cursor.wrong(format!("more than {MAX_DEPTH} regions within each other")));
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
