//! Description of a model of any format, without evaluating it, and the legality of its conversions.

use std::collections::BTreeMap;

/// Contents of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Writer or version of the file, if stated.
    pub version: Option<String>,
    /// Its constants.
    pub constants: Vec<Constant>,
    /// Count of each operation.
    pub operators: BTreeMap<String, usize>,
    /// Conversions, in file order.
    pub conversions: Vec<Conversion>,
}

/// A constant of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Name.
    pub name: String,
    /// Type, as written in the file.
    pub dtype: String,
    /// Shape, as written in the file.
    pub shape: String,
}

/// A conversion of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Position.
    pub place: String,
    /// Operation with its attributes.
    pub operation: String,
    /// Types of its operands; `?` for unknown ones.
    pub from: String,
    /// Types of its results.
    pub to: String,
    /// Legality; `None` if unchecked.
    pub legality: Option<Legality>,
}

/// Verdict of a specification on a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Legality {
    /// The specification has the conversion.
    Legal,
    /// The types are unknown.
    Unknown,
    /// The specification forbids the conversion, for this reason.
    Illegal(String),
}

/// Findings about a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalityReport<Cause = String> {
    /// Number of conversions, in subgraphs and functions too.
    pub conversions: usize,
    /// Legal conversions.
    pub legal: usize,
    /// Possibly legal conversions, with unknown types.
    pub unknown: usize,
    /// Conversions with unknown types, illegal ones included.
    pub of_unknown_type: usize,
    /// Place and cause of every error, in file order.
    pub illegal: Vec<(String, Cause)>,
    /// Oddities that are unambiguous.
    pub warnings: Vec<String>,
}

impl<Cause> Default for LegalityReport<Cause> {
    fn default() -> Self {
        LegalityReport {
            conversions: 0,
            legal: 0,
            unknown: 0,
            of_unknown_type: 0,
            illegal: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl<Cause> LegalityReport<Cause> {
    /// The report with the causes as text.
    pub(crate) fn in_words(self, words: impl Fn(Cause) -> String) -> LegalityReport {
        let LegalityReport { conversions, legal, unknown, of_unknown_type, illegal, warnings } = self;
        let illegal = illegal.into_iter().map(|(place, cause)| (place, words(cause))).collect();
        LegalityReport { conversions, legal, unknown, of_unknown_type, illegal, warnings }
    }

    /// Combined report for two parts of a model.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.conversions += other.conversions;
        self.legal += other.legal;
        self.unknown += other.unknown;
        self.of_unknown_type += other.of_unknown_type;
        self.illegal.extend(other.illegal);
        self.warnings.extend(other.warnings);
        self
    }
}
