//! A module as both forms have it. Operations that are no conversions are kept opaque (§9.3): their results have no value,
//! their regions are still read.

use std::sync::Arc;

use truecast_core::spec::tile::{Conversion, Release, TileType};
use truecast_core::words;

use crate::tensor::Tensor;
use crate::tile::error::{Cause, Diagnostic, EntryError, Place};

/// A module.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The version of the file; of text, the version that it was read as.
    pub version: Release,
    /// Entries and what else holds operations, in order.
    pub functions: Vec<Function>,
    /// What is wrong but did not keep the module from being read.
    pub findings: Vec<Diagnostic>,
    /// What is worth saying.
    pub warnings: Vec<Diagnostic>,
}

/// Findings beyond this many are left out: nobody reads them, and a hostile file has one for each few bytes.
pub(crate) const MAX_FINDINGS: usize = 1000;

/// Dimensions of a tile or view.
pub(crate) const MAX_RANK: usize = 64;

impl Module {
    /// A module of which nothing was read yet.
    pub(crate) fn new(version: Release) -> Module {
        Module { version, functions: Vec::new(), findings: Vec::new(), warnings: Vec::new() }
    }

    /// Adds to the findings.
    pub(crate) fn find(&mut self, error: Diagnostic) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(error);
        }
    }

    /// Adds to the warnings.
    pub(crate) fn warn(&mut self, warning: Diagnostic) {
        if self.warnings.len() < MAX_FINDINGS {
            self.warnings.push(warning);
        }
    }

    /// The entry of a name; without a name the only one.
    ///
    /// # Errors
    /// What is there instead.
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

/// An entry, or another operation of the module that holds operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name, without `@`.
    pub name: Arc<str>,
    /// A kernel entry; only these are evaluated.
    pub is_entry: bool,
    /// Where it begins.
    pub place: Place,
    /// Its arguments.
    pub arguments: Vec<ValueId>,
    /// Every value that is defined in it.
    pub values: Vec<Value>,
    /// Its operations.
    pub body: Vec<Statement>,
}

impl Function {
    /// How a value is written.
    pub fn name_of(&self, id: ValueId) -> String {
        match &self.values[id.0 as usize].name {
            Some(name) => format!("%{}", crate::tile::error::shown(name)),
            None => format!("%{}", id.0),
        }
    }

    /// The value of a name, as it is written.
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

/// What is known of a value before anything is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its name, without `%`; bytecode has numbers instead.
    pub name: Option<Arc<str>>,
    /// Its type; `None` if the operation that gives it is not understood, or it is no tile.
    pub tile: Option<Arc<TileType>>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Where it stands.
    pub place: Place,
    /// What its `loc(..)` says, shortened to one line: where it was written before it became this text.
    pub location: Option<Arc<str>>,
    /// What it gives.
    pub results: Vec<ValueId>,
    /// What it does.
    pub operation: Operation,
}

impl Statement {
    /// Something that is wrong with it.
    pub(crate) fn wrong(&self, cause: Cause) -> Diagnostic {
        Diagnostic { location: self.location.clone(), ..Diagnostic::new(self.place, cause) }
    }
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// One of the nine.
    Convert {
        /// Which, with its attributes.
        conversion: Conversion,
        /// What it converts.
        operand: ValueId,
        /// The operand's type, as the operation says.
        from: Arc<TileType>,
        /// The result's type.
        to: Arc<TileType>,
    },
    /// A constant.
    Constant {
        /// Its type.
        tile: Arc<TileType>,
        /// Its elements.
        elements: Arc<Tensor>,
    },
    /// pack or unpack (§4.9).
    Pack {
        /// Which.
        kind: PackKind,
        /// What is packed.
        operand: ValueId,
        /// The operand's type, as the operation says.
        from: Arc<TileType>,
        /// The result's type.
        to: Arc<TileType>,
    },
    /// The end of an entry.
    Return {
        /// What it returns; nothing, of an entry.
        operands: Vec<ValueId>,
    },
    /// Anything else.
    Opaque {
        /// Its name.
        name: Arc<str>,
        /// The operations inside.
        regions: Vec<Vec<Statement>>,
    },
}

/// The type that the first conversion of a value says the value has, in regions too.
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
    /// Which way a tile is reinterpreted.
    pub enum PackKind {
        /// To bytes.
        Pack = "pack",
        /// From bytes.
        Unpack = "unpack",
    }
}
