//! Table of consistency checks between a checkpoint's statements (`docs/spec/checkpoints.md §5.7`).

use std::fmt;

use truecast_core::words;

use crate::scheme::Scheme;

words! {
    /// Pair of compared statements.
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

/// Effect of a contradiction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Values depend on the right statement: the checkpoint is not read.
    Refused,
    /// Values are those of the definition, with a warning.
    Warned,
    /// Concerns only programs that load the checkpoint, or has its warning elsewhere.
    Listed,
}

impl Check {
    /// Effect of a contradiction.
    pub fn effect(self) -> Effect {
        match self {
            Check::ZeroPoints | Check::Shapes | Check::Settings | Check::Reading => Effect::Refused,
            Check::Exclusions | Check::Entries => Effect::Warned,
            Check::Exceptions | Check::GlobalScales | Check::Scales | Check::Index => Effect::Listed,
        }
    }
}

/// Advice about a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    /// A sentence.
    Text(&'static str),
    /// Name a scheme, which reads the values in another way.
    Scheme {
        /// The scheme.
        scheme: Scheme,
        /// Its reading of the values.
        reads: String,
    },
}

/// Two contradictory statements. Displays as their place and texts; names from files are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The row of the table.
    pub check: Check,
    /// The file, key or tensor, as displayed.
    pub place: String,
    /// The two texts.
    pub statements: [String; 2],
    /// Advice, if any.
    pub advice: Option<Advice>,
}

impl Finding {
    /// A finding from its place, statements and advice.
    pub fn new(
        check: Check,
        place: impl Into<String>,
        statements: [String; 2],
        advice: impl Into<Option<Advice>>,
    ) -> Finding {
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
