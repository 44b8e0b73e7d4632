//! Traits of a specification: name, versions, settings, and rules for a pair of types.

use truecast_core::spec::{Interpretation, SpecError};
use truecast_core::{CastSpec, DType};

/// Specification with a fixed name. Tables share one type.
pub(super) trait Named: Specification {
    const NAME: &'static str;
    const ABOUT: &'static str;
    /// True if the specification defines how numbers are written as text.
    const HAS_TEXT: bool = false;

    fn versions() -> Vec<String> {
        Vec::new()
    }

    /// The specification at a version (default: the newest), without attributes.
    fn of_version(version: Option<&str>) -> Result<Self, SpecError>;

    /// Words that a setting accepts; empty for unknown settings.
    fn values(_setting: &str) -> Vec<&'static str> {
        Vec::new()
    }
}

/// Specification with its attributes, before the types are known. The destination type inside is a placeholder.
pub(super) trait Specification: Copy {
    fn name(&self) -> &'static str;

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

    /// Sets an attribute; its name has `-`. `None` for an unknown attribute or value.
    fn set(&mut self, _name: &str, _value: &str) -> Result<Option<()>, SpecError> {
        Ok(None)
    }

    fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError>;

    /// Interpretations of a pair, one per value of the attributes.
    fn interpretations(&self, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError>;
}

pub(super) const UNSET: DType = DType::F32;

pub(crate) const SWITCH: [&str; 2] = ["true", "false"];

pub(super) fn put<T>(field: &mut T, value: Option<T>) -> Option<()> {
    value.map(|value| *field = value)
}

pub(super) fn changed<T: PartialEq + ToString>(value: T, default: T) -> Option<String> {
    (value != default).then(|| value.to_string())
}
