//! What a network is made of.

use std::collections::BTreeMap;

use truecast_core::promote::Element;

use super::check::{self, types};
use super::error::ModelError;
use super::read::IrFile;
use crate::description::{Constant, Conversion, Description};

/// Describes a network.
///
/// # Errors
/// As [`types`].
pub fn describe(file: &IrFile) -> Result<Description, ModelError> {
    Ok(of_network(file, types(file, &BTreeMap::new())?.list(file)))
}

fn of_network(file: &IrFile, conversions: Vec<check::Conversion>) -> Description {
    let network = file.network();
    let names = |elements: &[Option<Element>]| {
        let name = |element: &Option<Element>| element.map_or("?".into(), |element| element.to_string());
        elements.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let mut all = Description {
        version: network.release.map(|release| format!("OpenVINO {}.{}", release.0, release.1)),
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
    let conversion = |c: check::Conversion| {
        let (from, to) = (names(&c.from), names(&c.to));
        Conversion { place: c.layer, operation: c.operator, from, to, legality: None }
    };
    all.conversions = conversions.into_iter().map(conversion).collect();
    all
}
