//! Description of a network.

use std::collections::BTreeMap;

use super::check::types;
use super::error::ModelError;
use super::read::IrFile;
use crate::description::{Constant, Description};

/// Describes a network.
///
/// # Errors
/// The errors of [`types`].
pub fn describe(file: &IrFile) -> Result<Description, ModelError> {
    let network = file.network();
    let mut all = Description {
        version: network.release.map(|release| format!("OpenVINO {}.{}", release.0, release.1)),
        conversions: types(file, &BTreeMap::new())?.list(file),
        ..Description::default()
    };
    for layer in &network.layers {
        *all.operators.entry(layer.operator.clone()).or_default() += 1;
        if layer.operator == "Const" {
            let attribute = |name| layer.data.get(name).map_or("?".into(), String::clone);
            let (dtype, shape) = (attribute("element_type"), format!("[{}]", attribute("shape")));
            all.constants.push(Constant { name: layer.name.clone(), dtype, shape });
        }
    }
    Ok(all)
}
