//! Reads functions: names, signatures, flags (§10.5, §10.6). `body` reads their bodies.

use std::collections::HashMap;
use std::sync::Arc;

use truecast_core::spec::tile::Release;

use super::attribute;
use super::body::Body;
use super::constant::Constants;
use super::container::Sections;
use super::cursor::Cursor;
use super::types::{Type, Types};
use crate::tile::error::{Cause, Diagnostic, Place, shown};
use crate::tile::module::{Function, Module, Operation, Statement, Value, ValueId};

const MAX_ARGUMENTS: usize = 1 << 17;

const PRIVATE: u8 = 1;
const KERNEL: u8 = 2;
const HINTS: u8 = 4;

pub(super) fn module(sections: &Sections<'_>) -> Result<Module, Diagnostic> {
    let types = Types::read(&sections.types, sections.version)?;
    let mut functions = sections.functions;
    // A function takes at least 5 bytes: name, signature, flags, location, length.
    let count = functions.count("functions", 5)?;
    let module = Module::new(sections.version);
    let (names, constants) = (HashMap::new(), Constants::new(&sections.constants));
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

struct Reader<'a> {
    sections: &'a Sections<'a>,
    types: &'a Types,
    module: Module,
    names: HashMap<u64, Arc<str>>,
    constants: Constants<'a>,
    arguments: usize,
}

impl Reader<'_> {
    fn function(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Diagnostic> {
        let begin = *cursor;
        let version = self.sections.version;
        let name = self.name(cursor.varint()?, &begin)?;
        let place = *cursor;
        let Type::Function { parameters, results } = self.types.get(cursor.varint()?, &place)? else {
            return Err(place.wrong("the signature is not a function type"));
        };
        let place = *cursor;
        let flags = cursor.byte()?;
        let newest = version >= Release::V13_5;
        let known = if newest { PRIVATE | KERNEL } else { PRIVATE | KERNEL | HINTS };
        if flags & !known != 0 {
            return Err(place.wrong(format!("function flags {flags:#04x} are not known in version {version}")));
        }
        // Functions may share a signature, so the file's size does not bound the number of arguments.
        self.arguments += parameters.len();
        if self.arguments > MAX_ARGUMENTS {
            return Err(place.wrong(format!("more than {MAX_ARGUMENTS} arguments in all functions")));
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
            wrong("is not a kernel entry; functions of other kinds are not read".into());
        }
        if is_entry && *results > 0 {
            wrong(format!("returns {results} values; an entry returns nothing"));
        }
        let mut numbered = Vec::new();
        for (index, &parameter) in parameters.iter().enumerate() {
            let tile = match self.types.get(parameter, &begin)? {
                Type::Tile(tile) => Some(tile.clone()),
                _ => {
                    wrong(format!("argument {index} is not a tile; entry arguments must be rank-0 tiles"));
                    None
                }
            };
            numbered.push(ValueId(shell.values.len() as u32));
            shell.values.push(Value { name: None, tile });
        }
        shell.arguments = numbered.clone();
        let mut reader = Body::new(version, self.types, &mut self.constants, shell, numbered);
        let finished = reader.read_all(body);
        let function = reader.function;
        match finished {
            Ok(()) if is_entry && !ends_with_return(&function) => {
                let cause = Cause::Terminator { entry: shown(&function.name) };
                self.module.find(Diagnostic::new(function.place, cause));
            }
            Ok(()) => {}
            // Operations do not state their length, so the rest of this function is lost. All other functions are read.
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
}

fn ends_with_return(function: &Function) -> bool {
    matches!(function.body.last(), Some(Statement { operation: Operation::Return { .. }, .. }))
}
