//! Structure of a module, for text and bytecode alike. Operations other than conversions are opaque (§9.3): their
//! results have no value, but their regions are read.

use std::sync::Arc;

use truecast_core::spec::tile::{Conversion, Release, TileType};
use truecast_core::words;

use crate::tensor::Tensor;
use crate::tile::error::{Cause, Diagnostic, EntryError, Place};

/// A module.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Version of the file; for text, the version by which the text was read.
    pub version: Release,
    /// Entries and other operations with bodies, in file order.
    pub functions: Vec<Function>,
    /// Errors after which reading continued.
    pub findings: Vec<Diagnostic>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// Limit on findings, because a hostile file may cause one every few bytes.
pub(crate) const MAX_FINDINGS: usize = 1000;

pub(crate) const MAX_RANK: usize = 64;

impl Module {
    pub(crate) fn new(version: Release) -> Module {
        Module { version, functions: Vec::new(), findings: Vec::new(), warnings: Vec::new() }
    }

    pub(crate) fn find(&mut self, error: Diagnostic) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(error);
        }
    }

    pub(crate) fn warn(&mut self, warning: Diagnostic) {
        if self.warnings.len() < MAX_FINDINGS {
            self.warnings.push(warning);
        }
    }

    /// The entry with this name; without a name, the only entry.
    ///
    /// # Errors
    /// [`EntryError`], with the names of the existing entries.
    pub fn entry(&self, name: Option<&str>) -> Result<&Function, EntryError> {
        let mut entries = self.functions.iter().filter(|f| f.is_entry);
        match name {
            Some(name) => entries.find(|f| &*f.name == name).ok_or_else(|| EntryError::Unknown {
                name: crate::tile::error::shown(name),
                known: self.entry_names(),
            }),
            None => match (entries.next(), entries.next()) {
                (Some(only), None) => Ok(only),
                (None, _) => Err(EntryError::None),
                _ => Err(EntryError::Several { known: self.entry_names() }),
            },
        }
    }

    fn entry_names(&self) -> String {
        const MOST: usize = 10;
        let names = self.functions.iter().filter(|f| f.is_entry).map(|f| crate::tile::error::shown(&f.name));
        let mut listed: Vec<_> = names.take(MOST + 1).collect();
        if listed.len() > MOST {
            listed[MOST] = "..".into();
        }
        listed.join(", ")
    }
}

/// An entry, or another operation with a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Name, without `@`.
    pub name: Arc<str>,
    /// True for a kernel entry; only entries are evaluated.
    pub is_entry: bool,
    /// Start position.
    pub place: Place,
    /// Arguments.
    pub arguments: Vec<ValueId>,
    /// Every value that the function defines.
    pub values: Vec<Value>,
    /// Operations.
    pub body: Vec<Statement>,
}

impl Function {
    /// Name of a value in the module's text, with `%`.
    pub fn name_of(&self, id: ValueId) -> String {
        match &self.values[id.0 as usize].name {
            Some(name) => format!("%{}", crate::tile::error::shown(name)),
            None => format!("%{}", id.0),
        }
    }

    /// Value with this name, which begins with `%`.
    pub fn value_of(&self, name: &str) -> Option<ValueId> {
        (0..self.values.len() as u32).map(ValueId).find(|&id| self.name_of(id) == name)
    }

    /// A value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }
}

/// A value of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// Name and type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Name, without `%`; `None` in bytecode, where values have numbers.
    pub name: Option<Arc<str>>,
    /// Type; `None` if an opaque operation does not state the type, or the type is not a tile.
    pub tile: Option<Arc<TileType>>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Position.
    pub place: Place,
    /// Text of the statement's `loc(..)`, shortened to one line.
    pub location: Option<Arc<str>>,
    /// Results.
    pub results: Vec<ValueId>,
    /// Operation.
    pub operation: Operation,
}

impl Statement {
    pub(crate) fn wrong(&self, cause: Cause) -> Diagnostic {
        Diagnostic { location: self.location.clone(), ..Diagnostic::new(self.place, cause) }
    }
}

/// Kinds of operations.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A conversion.
    Convert {
        /// Operation with its attributes.
        conversion: Conversion,
        /// Operand.
        operand: ValueId,
        /// Stated type of the operand.
        from: Arc<TileType>,
        /// Type of the result.
        to: Arc<TileType>,
    },
    /// A constant.
    Constant {
        /// Type.
        tile: Arc<TileType>,
        /// Elements.
        elements: Arc<Tensor>,
    },
    /// pack or unpack (§4.9).
    Pack {
        /// Direction.
        kind: PackKind,
        /// Operand.
        operand: ValueId,
        /// Stated type of the operand.
        from: Arc<TileType>,
        /// Type of the result.
        to: Arc<TileType>,
    },
    /// The end of an entry.
    Return {
        /// Returned values; none in an entry.
        operands: Vec<ValueId>,
    },
    /// Anything else.
    Opaque {
        /// Name.
        name: Arc<str>,
        /// Operations inside.
        regions: Vec<Vec<Statement>>,
    },
}

/// Operand type that the first conversion of `value` states, also in regions.
pub fn written_type(statements: &[Statement], value: ValueId) -> Option<&TileType> {
    statements.iter().find_map(|statement| match &statement.operation {
        Operation::Convert { operand, from, .. } | Operation::Pack { operand, from, .. } => {
            (*operand == value).then_some(&**from)
        }
        Operation::Opaque { regions, .. } => regions.iter().find_map(|region| written_type(region, value)),
        Operation::Constant { .. } | Operation::Return { .. } => None,
    })
}

words! {
    /// Direction of the reinterpretation.
    pub enum PackKind {
        /// Elements to bytes.
        Pack = "pack",
        /// Bytes to elements.
        Unpack = "unpack",
    }
}
