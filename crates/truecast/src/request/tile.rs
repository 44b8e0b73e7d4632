//! NVIDIA CUDA Tile IR.

use super::specification::{Named, SWITCH, Specification, UNSET, put};
use truecast_core::spec::tile::{Cast, Options, Profile, Release, RoundingMode, Rules};
use truecast_core::spec::{Interpretation, SpecError};
use truecast_core::{CastSpec, DType, Rounding};

/// Tile IR with its attributes, profile and options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Attributes, profile and options. The destination type is a placeholder.
    pub cast: Cast,
    /// The requested release.
    pub rules: Rules,
}

impl Named for Tile {
    const NAME: &'static str = "tile";
    const ABOUT: &'static str =
        "NVIDIA's CUDA Tile IR conversions; for a module, version `file` is the module's own release";

    fn versions() -> Vec<String> {
        Release::ALL.map(|release| release.name().into()).into()
    }

    fn of_version(version: Option<&str>) -> Result<Self, SpecError> {
        let rules: Rules = version.map_or(Ok(Rules::default()), str::parse)?;
        Ok(Tile { cast: Cast { release: rules.release(Release::NEWEST), ..Cast::to(UNSET) }, rules })
    }

    fn values(setting: &str) -> Vec<&'static str> {
        match setting {
            "rounding" => RoundingMode::ALL.map(RoundingMode::name).into(),
            "saturating" => SWITCH.into(),
            "profile" => Profile::ALL.map(Profile::name).into(),
            "tile-option" => Options::NAMES.into(),
            _ => Vec::new(),
        }
    }
}

impl Specification for Tile {
    fn name(&self) -> &'static str {
        Tile::NAME
    }

    fn version(&self) -> Option<String> {
        Some(match self.rules {
            Rules::OfFile => "file".into(),
            Rules::Of(release) => release.name().into(),
        })
    }

    /// A request has no file that could state another release.
    fn release(&self) -> Option<String> {
        Some(self.cast.release.to_string())
    }

    fn attributes(&self) -> Vec<(&'static str, Option<String>)> {
        let Tile { cast, rules } = self;
        let is_other = cast.release != rules.release(Release::NEWEST);
        let mut all = vec![
            ("profile", Some(cast.profile.name().into())),
            ("release", is_other.then(|| cast.release.name().into())),
            ("rounding", cast.rounding.map(|mode| mode.name().into())),
            ("saturating", cast.saturating.then(|| "true".into())),
        ];
        all.extend(cast.options.names().map(|name| ("tile-option", Some(name.into()))));
        all
    }

    fn set(&mut self, name: &str, value: &str) -> Result<Option<()>, SpecError> {
        let cast = &mut self.cast;
        Ok(match name {
            "profile" => put(&mut cast.profile, Some(value.parse()?)),
            "release" => put(&mut cast.release, Release::of_name(value)),
            "rounding" => put(&mut cast.rounding, rounding(value).map(Some)),
            "saturating" => put(&mut cast.saturating, value.parse().ok()),
            "tile-option" => Some(cast.options.set(value)?),
            _ => None,
        })
    }

    fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError> {
        Cast { to: dst, ..self.cast }.resolve(src)
    }

    /// Empty, because a pair may be several operations; see [`explain`](crate::explain).
    fn interpretations(&self, _src: DType, _dst: DType) -> Result<Vec<Interpretation>, SpecError> {
        Ok(Vec::new())
    }
}

/// Names of roundings in Tile IR, accepted besides truecast's (`docs/interfaces.md §2`).
const ROUNDINGS: [(&str, Rounding); 6] = [
    ("nearest_even", Rounding::NearestEven),
    ("nearest_away", Rounding::NearestAway),
    ("nearest_int_to_zero", Rounding::TowardZero),
    ("zero", Rounding::TowardZero),
    ("positive_inf", Rounding::Up),
    ("negative_inf", Rounding::Down),
];

/// Parses a rounding mode by its name in Tile IR or truecast.
fn rounding(text: &str) -> Option<RoundingMode> {
    let same = || ROUNDINGS.iter().find(|(_, rounding)| rounding.name() == text).map(|(name, _)| *name);
    RoundingMode::of_name(text).or_else(|| RoundingMode::of_name(same()?))
}

/// Parses a rounding by its name in truecast or Tile IR.
pub(super) fn rounding_of(text: &str) -> Option<Rounding> {
    Rounding::of_name(text).or_else(|| ROUNDINGS.iter().find(|(name, _)| *name == text).map(|(_, rounding)| *rounding))
}
