//! Requests to specifications that are tables: libraries, languages, chips.

use super::specification::{Specification, put};
use super::tile::rounding_of;
use truecast_core::policy::{IntOverflow, Overflow, Subnormals};
use truecast_core::spec::table::Cast;
use truecast_core::spec::{Interpretation, SpecError};
use truecast_core::{CastSpec, DType};

impl Specification for Cast {
    fn name(&self) -> &'static str {
        self.table.name
    }

    fn version(&self) -> Option<String> {
        self.version.map(String::from)
    }

    fn attributes(&self) -> Vec<(&'static str, Option<String>)> {
        self.choices().into()
    }

    fn set(&mut self, name: &str, value: &str) -> Result<Option<()>, SpecError> {
        let words = self.table.values(name);
        let is_allowed = match name {
            // Tile IR's names of roundings are accepted too.
            "rounding" => rounding_of(value).is_some_and(|rounding| words.contains(&rounding.name())),
            "scale-exponent" => !words.is_empty(),
            _ => words.contains(&value),
        };
        if !is_allowed {
            return Ok(None);
        }
        Ok(match name {
            "rounding" => put(&mut self.rounding, rounding_of(value).map(Some)),
            "overflow" => put(&mut self.overflow, Overflow::of_name(value).map(Some)),
            "int-overflow" => put(&mut self.int_overflow, IntOverflow::of_name(value).map(Some)),
            "subnormals" => put(&mut self.subnormals, Subnormals::of_name(value).map(Some)),
            "relu" => put(&mut self.relu, value.parse().ok()),
            "scale-exponent" => put(&mut self.scale_exponent, value.parse().ok().map(Some)),
            _ => None,
        })
    }

    fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError> {
        Cast { to: dst, ..*self }.resolve(src)
    }

    fn interpretations(&self, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError> {
        let cast = Cast { to: dst, ..*self };
        cast.resolve(src).map(|_| cast.every_interpretation(src))
    }
}
