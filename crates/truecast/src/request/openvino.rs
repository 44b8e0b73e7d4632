//! OpenVINO Convert, which has no attributes.

use super::specification::{Named, Specification, UNSET};
use truecast_core::spec::openvino::{self, Convert, VERSION};
use truecast_core::spec::{Interpretation, SpecError};
use truecast_core::{CastSpec, DType};

impl Named for Convert {
    const NAME: &'static str = "openvino";
    const ABOUT: &'static str = "OpenVINO's operator Convert, as its reference evaluates it";

    fn versions() -> Vec<String> {
        vec![VERSION.into()]
    }

    fn of_version(version: Option<&str>) -> Result<Self, SpecError> {
        openvino::version(version).map(|()| Convert::to(UNSET))
    }
}

impl Specification for Convert {
    fn name(&self) -> &'static str {
        Convert::NAME
    }

    fn version(&self) -> Option<String> {
        Some(VERSION.into())
    }

    fn resolve(&self, src: DType, dst: DType) -> Result<CastSpec, SpecError> {
        Convert::to(dst).resolve(src)
    }

    fn interpretations(&self, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError> {
        Ok(openvino::interpretations(src, dst))
    }
}
