//! IEEE 754 with every rule of the policy selectable.

use super::specification::{Named, Specification, UNSET, changed, put};
use super::tile::rounding_of;
use truecast_core::policy::{IntOverflow, NanToInt, Overflow, Subnormals};
use truecast_core::spec::ieee::{self, Cast};
use truecast_core::spec::{Interpretation, SpecError};
use truecast_core::{CastSpec, DType, Rounding};

impl Named for Cast {
    const NAME: &'static str = "ieee";
    const ABOUT: &'static str =
        "One correct rounding, as in IEEE 754; options choose the rounding mode and all other rules";
    const HAS_TEXT: bool = true;

    fn of_version(version: Option<&str>) -> Result<Self, SpecError> {
        match version {
            None => Ok(Cast::to(UNSET)),
            Some(version) => Err(SpecError::Version { spec: "ieee", version: version.into(), known: "none".into() }),
        }
    }

    fn values(setting: &str) -> Vec<&'static str> {
        match setting {
            "rounding" => Rounding::ALL.map(Rounding::name).into(),
            "overflow" | "inf" => [Overflow::Nonfinite, Overflow::Saturate, Overflow::Error].map(Overflow::name).into(),
            "int-overflow" => IntOverflow::ALL.map(IntOverflow::name).into(),
            "nan-to-int" => NanToInt::ALL.map(NanToInt::name).into(),
            "subnormals" => [Subnormals::Keep, Subnormals::Flush].map(Subnormals::name).into(),
            _ => Vec::new(),
        }
    }
}

impl Specification for Cast {
    fn name(&self) -> &'static str {
        Cast::NAME
    }

    fn attributes(&self) -> Vec<(&'static str, Option<String>)> {
        let defaults = Cast::to(self.to);
        vec![
            ("rounding", self.rounding.map(|rounding| rounding.to_string())),
            ("overflow", changed(self.overflow, defaults.overflow)),
            ("inf", self.inf.map(|inf| inf.to_string())),
            ("int-overflow", changed(self.int_overflow, defaults.int_overflow)),
            ("nan-to-int", changed(self.nan_to_int, defaults.nan_to_int)),
            ("subnormals", changed(self.subnormals, defaults.subnormals)),
        ]
    }

    fn set(&mut self, name: &str, value: &str) -> Result<Option<()>, SpecError> {
        Ok(match name {
            "rounding" => put(&mut self.rounding, rounding_of(value).map(Some)),
            "overflow" => put(&mut self.overflow, Overflow::of_name(value)),
            "inf" => put(&mut self.inf, Overflow::of_name(value).map(Some)),
            "int-overflow" => put(&mut self.int_overflow, IntOverflow::of_name(value)),
            "nan-to-int" => put(&mut self.nan_to_int, NanToInt::of_name(value)),
            "subnormals" => put(&mut self.subnormals, Subnormals::of_name(value)),
            _ => None,
        })
    }

    fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError> {
        Cast { to: dst, ..*self }.resolve(src)
    }

    fn interpretations(&self, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError> {
        Ok(ieee::interpretations(src, dst))
    }
}
