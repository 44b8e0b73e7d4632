//! One specification: its name, its versions, its settings as words, and how it decides a pair of types.

use truecast_core::spec::{Interpretation, SpecError};
use truecast_core::{CastSpec, DType};

/// A specification with its attributes, before the types are known. Where it is a cast of `truecast_core`, the destination
/// of that cast stands for nothing: it is replaced by the destination of each pair.
pub(super) trait Specification: Copy {
    /// As `--spec` names it.
    const NAME: &'static str;

    /// The same of a value; tables of one type have many names.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// What it is, in one line for people who do not know it.
    const ABOUT: &'static str;
    /// Whether it says how numbers are written as text.
    const HAS_TEXT: bool = false;

    /// The names of its versions, oldest first.
    fn versions() -> Vec<String> {
        Vec::new()
    }

    /// It at a version (default: the newest), without attributes.
    fn of_version(version: Option<&str>) -> Result<Self, SpecError>;

    /// Its version, as [`of_version`](Specification::of_version) reads it.
    fn version(&self) -> Option<String> {
        None
    }

    /// The version whose rules apply, for people to read.
    fn release(&self) -> Option<String> {
        self.version()
    }

    /// The values that a setting knows, as words; none of settings that it does not have.
    fn values(_setting: &str) -> Vec<&'static str> {
        Vec::new()
    }

    /// Attributes that were given, or that are not the defaults.
    fn attributes(&self) -> Vec<(&'static str, Option<String>)> {
        Vec::new()
    }

    /// Sets an attribute, written with `_`; `None` if there is no such attribute or value.
    fn set(&mut self, _name: &str, _value: &str) -> Result<Option<()>, SpecError> {
        Ok(None)
    }

    /// Settles every question for a pair.
    fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError>;

    /// What it makes of a pair with each value of its attributes.
    fn interpretations(&self, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError>;
}

/// Stands in a cast whose destination is that of each pair.
pub(super) const UNSET: DType = DType::F32;

/// The values of a switch.
pub(crate) const SWITCH: [&str; 2] = ["true", "false"];

pub(super) fn put<T>(field: &mut T, value: Option<T>) -> Option<()> {
    value.map(|value| *field = value)
}

pub(super) fn changed<T: PartialEq + ToString>(value: T, default: T) -> Option<String> {
    (value != default).then(|| value.to_string())
}
