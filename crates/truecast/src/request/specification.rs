//! One specification: its name, its versions, its settings as words, and its decision for a pair of types.

use truecast_core::spec::{Interpretation, SpecError};
use truecast_core::{CastSpec, DType};

/// A specification whose type has its name. Tables share a type.
pub(super) trait Named: Specification {
    /// Name in `--spec`.
    const NAME: &'static str;
    /// One line for readers who do not know it.
    const ABOUT: &'static str;
    /// True if it defines how numbers are written as text.
    const HAS_TEXT: bool = false;

    /// Names of its versions, oldest first.
    fn versions() -> Vec<String> {
        Vec::new()
    }

    /// Value at a version (default: the newest), without attributes.
    fn of_version(version: Option<&str>) -> Result<Self, SpecError>;

    /// Words that a setting accepts; empty for settings it lacks.
    fn values(_setting: &str) -> Vec<&'static str> {
        Vec::new()
    }
}

/// A specification with its attributes, before the types are known. The destination in a cast of `truecast_core` is a
/// placeholder, replaced by that of each pair.
pub(super) trait Specification: Copy {
    /// Name in `--spec`.
    fn name(&self) -> &'static str;

    /// Version, as `--spec NAME@VERSION` reads it.
    fn version(&self) -> Option<String> {
        None
    }

    /// Version whose rules apply, for display.
    fn release(&self) -> Option<String> {
        self.version()
    }

    /// Attributes that were given or differ from the defaults.
    fn attributes(&self) -> Vec<(&'static str, Option<String>)> {
        Vec::new()
    }

    /// Sets an attribute, written with `_`; `None` for an unknown attribute or value.
    fn set(&mut self, _name: &str, _value: &str) -> Result<Option<()>, SpecError> {
        Ok(None)
    }

    /// Resolves the specification for a pair of types, which fixes every choice of the conversion.
    fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError>;

    /// Lists the interpretations of a pair, one for each value of the attributes.
    fn interpretations(&self, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError>;
}

/// Placeholder for the destination of a cast.
pub(super) const UNSET: DType = DType::F32;

pub(crate) const SWITCH: [&str; 2] = ["true", "false"];

pub(super) fn put<T>(field: &mut T, value: Option<T>) -> Option<()> {
    value.map(|value| *field = value)
}

pub(super) fn changed<T: PartialEq + ToString>(value: T, default: T) -> Option<String> {
    (value != default).then(|| value.to_string())
}
