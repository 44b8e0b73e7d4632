//! Description of a model of any format, and the legality of its conversions. Nothing is evaluated.

use std::collections::BTreeMap;

/// Contents of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Writer or version stated in the file.
    pub version: Option<String>,
    /// Constants of the model.
    pub constants: Vec<Constant>,
    /// Count of each operation.
    pub operators: BTreeMap<String, usize>,
    /// Conversions, in file order.
    pub conversions: Vec<Conversion>,
}

/// A constant of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Name of the constant.
    pub name: String,
    /// Type in the file's spelling.
    pub dtype: String,
    /// Shape in the file's spelling.
    pub shape: String,
}

/// A conversion of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Position in the model.
    pub place: String,
    /// Name and attributes of the operation.
    pub operation: String,
    /// Types of the operands; `?` for an unknown type.
    pub from: String,
    /// Types of the results.
    pub to: String,
    /// Legality; `None` if unchecked.
    pub legality: Option<Legality>,
}

/// Verdict of a specification on a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Legality {
    /// The specification allows the conversion.
    Legal,
    /// The types are unknown.
    Unknown,
    /// The specification forbids the conversion, for this reason.
    Illegal(String),
}

/// Result of a legality check of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalityReport<Cause = String> {
    /// Number of conversions, including those in subgraphs and functions.
    pub conversions: usize,
    /// Number of legal conversions.
    pub legal: usize,
    /// Number of conversions whose legality depends on unknown types.
    pub unknown: usize,
    /// Number of conversions with unknown types, legal or not.
    pub of_unknown_type: usize,
    /// Place and cause of every error, in file order.
    pub illegal: Vec<(String, Cause)>,
    /// Warnings about irregularities whose meaning is unambiguous.
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
    pub(crate) fn in_words(self, words: impl Fn(Cause) -> String) -> LegalityReport {
        let LegalityReport { conversions, legal, unknown, of_unknown_type, illegal, warnings } = self;
        let illegal = illegal.into_iter().map(|(place, cause)| (place, words(cause))).collect();
        LegalityReport { conversions, legal, unknown, of_unknown_type, illegal, warnings }
    }

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
