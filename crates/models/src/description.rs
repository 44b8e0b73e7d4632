//! What a model is made of, whatever its format, without evaluating it; and which of its conversions are legal.

use std::collections::BTreeMap;

/// What a model holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Who wrote the file, or the version that it has, if it says so.
    pub version: Option<String>,
    /// Its constants.
    pub constants: Vec<Constant>,
    /// How often each operation occurs.
    pub operators: BTreeMap<String, usize>,
    /// Its conversions, in the order of the file.
    pub conversions: Vec<Conversion>,
}

/// A constant of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its type, as the file writes it.
    pub dtype: String,
    /// Its shape, as the file writes it.
    pub shape: String,
}

/// A conversion of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Where it stands.
    pub place: String,
    /// What it does, with its attributes.
    pub operation: String,
    /// The types of its operands; `?` for one that the model does not tell.
    pub from: String,
    /// The types of its results.
    pub to: String,
    /// Whether the specification allows it; `None` where that was not asked.
    pub legality: Option<Legality>,
}

/// What a specification says of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Legality {
    /// It has the conversion.
    Legal,
    /// The model does not tell the types.
    Unknown,
    /// It forbids the conversion, and why.
    Illegal(String),
}

/// What was found in a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalityReport<Cause = String> {
    /// Conversions, in subgraphs and functions too.
    pub conversions: usize,
    /// Those of them that are legal.
    pub legal: usize,
    /// Those of them that may be legal: the model does not tell their types.
    pub unknown: usize,
    /// Those of them whose types the model does not tell, also of the illegal ones.
    pub of_unknown_type: usize,
    /// What is illegal, in the order of the file: where, and why.
    pub illegal: Vec<(String, Cause)>,
    /// What is odd, but clear.
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
    /// The same, with the causes in words.
    pub(crate) fn in_words(self, words: impl Fn(Cause) -> String) -> LegalityReport {
        let LegalityReport { conversions, legal, unknown, of_unknown_type, illegal, warnings } = self;
        let illegal = illegal.into_iter().map(|(place, cause)| (place, words(cause))).collect();
        LegalityReport { conversions, legal, unknown, of_unknown_type, illegal, warnings }
    }

    /// What was found in two parts of a model.
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
