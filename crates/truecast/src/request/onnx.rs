//! ONNX Cast and CastLike.

use super::specification::{Named, SWITCH, Specification, UNSET, put};
use truecast_core::spec::onnx::{Cast, NEWEST_OPSET, Operator, RoundMode, interpretations_at};
use truecast_core::spec::{Interpretation, SpecError};
use truecast_core::{CastSpec, DType};

impl Named for Cast {
    const NAME: &'static str = "onnx";
    const ABOUT: &'static str = "ONNX's operators Cast and CastLike, at an opset";
    const HAS_TEXT: bool = true;

    fn versions() -> Vec<String> {
        (1..=NEWEST_OPSET).map(|opset| opset.to_string()).collect()
    }

    fn of_version(version: Option<&str>) -> Result<Self, SpecError> {
        let known = "opsets 1 to 28".into();
        let wrong = |_| SpecError::Version { spec: "onnx", version: version.unwrap_or_default().into(), known };
        let opset = version.map_or(Ok(NEWEST_OPSET), str::parse).map_err(wrong)?;
        Operator::Cast.version_at(opset)?;
        Ok(Cast { opset, ..Cast::to(UNSET) })
    }

    fn values(setting: &str) -> Vec<&'static str> {
        match setting {
            "saturate" => SWITCH.into(),
            "round-mode" => RoundMode::ALL.map(RoundMode::name).into(),
            _ => Vec::new(),
        }
    }
}

impl Specification for Cast {
    fn name(&self) -> &'static str {
        Cast::NAME
    }

    fn version(&self) -> Option<String> {
        Some(self.opset.to_string())
    }

    fn attributes(&self) -> Vec<(&'static str, Option<String>)> {
        let is_named = self.operator != Operator::Cast;
        vec![
            ("operator", is_named.then(|| self.operator.name().into())),
            ("saturate", self.saturate.map(|saturate| saturate.to_string())),
            ("round_mode", self.round_mode.map(|mode| mode.name().into())),
        ]
    }

    fn set(&mut self, name: &str, value: &str) -> Result<Option<()>, SpecError> {
        Ok(match name {
            "operator" => put(&mut self.operator, Operator::of_name(value)),
            "saturate" => match value {
                "true" | "1" => put(&mut self.saturate, Some(Some(true))),
                "false" | "0" => put(&mut self.saturate, Some(Some(false))),
                _ => None,
            },
            "round-mode" => put(&mut self.round_mode, Some(Some(value.parse()?))),
            _ => None,
        })
    }

    fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError> {
        Cast { to: dst, ..*self }.resolve(src)
    }

    fn interpretations(&self, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError> {
        interpretations_at(self.opset, src, dst)
    }
}
