//! TOSA CAST.

use super::specification::{Named, Specification, UNSET, changed, put};
use truecast_core::spec::tosa::{Cast, Feature, Freedoms, LevelLimit, Target, Version, interpretations_at};
use truecast_core::spec::{Interpretation, SpecError};
use truecast_core::{CastSpec, DType};

impl Named for Cast {
    const NAME: &'static str = "tosa";
    const ABOUT: &'static str = "TOSA's operator CAST, by the text of the chosen version";

    fn versions() -> Vec<String> {
        Version::ALL.map(|version| version.name().into()).into()
    }

    fn of_version(version: Option<&str>) -> Result<Self, SpecError> {
        let version = version.map_or(Ok(Version::default()), str::parse)?;
        Ok(Cast { target: Target::of(version), freedoms: Freedoms::STRICT, ..Cast::to(UNSET) })
    }

    fn values(setting: &str) -> Vec<&'static str> {
        match setting {
            "profile" => Freedoms::words().collect(),
            _ => Vec::new(),
        }
    }
}

impl Specification for Cast {
    fn name(&self) -> &'static str {
        Cast::NAME
    }

    fn version(&self) -> Option<String> {
        Some(self.target.version.name().into())
    }

    fn attributes(&self) -> Vec<(&'static str, Option<String>)> {
        let (target, defaults) = (self.target, Target::of(self.target.version));
        let names = || target.enabled.iter().map(Feature::name).collect::<Vec<_>>().join(",");
        vec![
            ("profile", (self.freedoms != Freedoms::STRICT).then(|| self.freedoms.to_string())),
            ("enabled", (target.enabled != defaults.enabled).then(names)),
            ("level", changed(target.level, defaults.level)),
        ]
    }

    fn set(&mut self, name: &str, value: &str) -> Result<Option<()>, SpecError> {
        Ok(match name {
            "profile" => put(&mut self.freedoms, Some(value.parse()?)),
            "enabled" => {
                let names = value.split(',').filter(|name| !name.is_empty());
                put(&mut self.target.enabled, Some(names.map(str::parse).collect::<Result<_, _>>()?))
            }
            "level" => put(&mut self.target.level, LevelLimit::of_name(value)),
            _ => None,
        })
    }

    fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError> {
        Cast { to: dst, ..*self }.resolve(src)
    }

    fn interpretations(&self, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError> {
        interpretations_at(self.target.version, src, dst)
    }
}
