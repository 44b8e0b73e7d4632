//! Consistency checks between the statements of a checkpoint (`docs/spec/checkpoints.md §5.7`).

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
    /// The checkpoint is not read, because the values depend on the right statement.
    Refused,
    /// The values follow the scheme's definition, with a warning.
    Warned,
    /// The contradiction is only listed. It affects only programs that load the checkpoint, or another check warns
    /// about it.
    Listed,
}

impl Check {
    /// Effect of a contradiction that the check finds.
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
    /// Request a scheme that reads the values in another way.
    Scheme {
        /// The scheme.
        scheme: Scheme,
        /// Text with the values as the scheme reads them.
        reads: String,
    },
}

/// Two contradictory statements. Displays as place and texts, with names from files escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check that failed.
    pub check: Check,
    /// File, key or tensor of the contradiction, as displayed.
    pub place: String,
    /// Two statements; the second may be empty.
    pub statements: [String; 2],
    /// Advice, if any.
    pub advice: Option<Advice>,
}

impl Finding {
    /// Creates a finding.
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
