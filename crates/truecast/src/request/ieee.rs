//! Free policies on IEEE 754.

use super::specification::{Specification, UNSET, changed, lower_case, one_of, put};
use super::tile::ROUNDINGS;
use truecast_core::policy::{IntOverflow, NanToInt, Overflow, Subnormals};
use truecast_core::spec::ieee::{self, Cast};
use truecast_core::spec::{Interpretation, SpecError};
use truecast_core::{CastSpec, DType, Rounding};

const OVERFLOWS: [Overflow; 4] = [Overflow::Nonfinite, Overflow::NonfiniteAlways, Overflow::Saturate, Overflow::Error];

impl Specification for Cast {
    const NAME: &'static str = "ieee";
    const HAS_TEXT: bool = true;

    fn of_version(version: Option<&str>) -> Result<Self, SpecError> {
        match version {
            None => Ok(Cast::to(UNSET)),
            Some(version) => Err(SpecError::Version { spec: "ieee", version: version.into(), known: "none" }),
        }
    }

    fn values(setting: &str) -> Vec<&'static str> {
        match setting {
            "rounding" => Rounding::ALL.map(Rounding::name).into(),
            "overflow" | "inf" => vec!["nonfinite", "saturate", "error"],
            "int-overflow" => vec!["wrap", "saturate", "error"],
            "nan-to-int" => vec!["zero", "saturate", "error"],
            "subnormals" => vec!["keep", "flush"],
            _ => Vec::new(),
        }
    }

    fn attributes(&self) -> Vec<(&'static str, Option<String>)> {
        let defaults = Cast::to(self.to);
        vec![
            ("rounding", self.rounding.map(|rounding| rounding.name().into())),
            ("overflow", changed(self.overflow, defaults.overflow)),
            ("inf", self.inf.map(|inf| lower_case(&inf))),
            ("int-overflow", changed(self.int_overflow, defaults.int_overflow)),
            ("nan-to-int", changed(self.nan_to_int, defaults.nan_to_int)),
            ("subnormals", changed(self.subnormals, defaults.subnormals)),
        ]
    }

    fn set(&mut self, name: &str, value: &str) -> Result<Option<()>, SpecError> {
        Ok(match name {
            "rounding" => put(&mut self.rounding, rounding(value).map(Some)),
            "overflow" => put(&mut self.overflow, one_of(OVERFLOWS, value)),
            "inf" => put(&mut self.inf, one_of(OVERFLOWS, value).map(Some)),
            "int_overflow" => {
                let all = [IntOverflow::Wrap, IntOverflow::Saturate, IntOverflow::Error];
                put(&mut self.int_overflow, one_of(all, value))
            }
            "nan_to_int" => {
                put(&mut self.nan_to_int, one_of([NanToInt::Zero, NanToInt::Saturate, NanToInt::Error], value))
            }
            "subnormals" => {
                let all = [(false, false), (true, false), (false, true), (true, true)];
                put(&mut self.subnormals, one_of(all.map(|(source, result)| Subnormals::of(source, result)), value))
            }
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

/// A rounding by its name, or as Tile IR writes it.
fn rounding(text: &str) -> Option<Rounding> {
    let ours = Rounding::ALL.into_iter().find(|rounding| rounding.name() == text);
    ours.or_else(|| ROUNDINGS.iter().find(|(name, _)| *name == text).map(|(_, rounding)| *rounding))
}
