//! Statements of a checkpoint that are held against each other: one table (`docs/spec/checkpoints.md §5.7`).

use std::fmt;

use truecast_core::words;

words! {
    /// What is held against what.
    #[allow(missing_docs)] // Named as in the page's table.
    pub enum Check {
        ZeroPoints = "zero-points",
        Shapes = "shapes",
        Settings = "settings",
        Exclusions = "exclusions",
        Entries = "entries",
        Exceptions = "exceptions",
        GlobalScales = "global-scales",
        Scales = "scales",
        Index = "index",
        Reading = "reading",
    }
}

/// What comes of a contradiction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The values depend on which statement holds: the checkpoint is not read.
    Refused,
    /// The values are what the definition gives: a warning.
    Warned,
    /// Only a program that loads the checkpoint is concerned, or other code warns.
    Listed,
}

impl Check {
    /// What comes of it.
    pub fn effect(self) -> Effect {
        match self {
            Check::ZeroPoints | Check::Shapes | Check::Settings | Check::Reading => Effect::Refused,
            Check::Exclusions | Check::Entries => Effect::Warned,
            Check::Exceptions | Check::GlobalScales | Check::Scales | Check::Index => Effect::Listed,
        }
    }
}

/// Two statements that do not agree. Displays as where they are and what they state; names from files are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The row of the table.
    pub check: Check,
    /// The file, the key or the tensor, as it is shown.
    pub place: String,
    /// What they state.
    pub statements: [String; 2],
    /// What to do; empty if nothing is to be done.
    pub advice: String,
}

impl Finding {
    /// Of these statements in a place, with what to do.
    pub fn new(check: Check, place: impl Into<String>, statements: [String; 2], advice: impl Into<String>) -> Finding {
        Finding { check, place: place.into(), statements, advice: advice.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = &self.statements;
        write!(f, "{}: {first}", self.place)?;
        if second.is_empty() { Ok(()) } else { write!(f, ", but {second}") }
    }
}
