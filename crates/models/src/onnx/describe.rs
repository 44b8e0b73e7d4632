//! What the conversions of a model are.

use truecast_io::onnx::Model;

use super::check::{self, check};
use crate::description::{Conversion, Legality};

/// The conversions of an ONNX model, checked by the opset that the model, and each of its functions, imports.
#[must_use]
pub fn conversions(model: &Model) -> Vec<Conversion> {
    let one = |c: check::Conversion| {
        let words = std::iter::once(c.operator.name().to_string()).chain(c.attributes);
        let legality = match (c.illegal, c.from.and(c.to)) {
            (Some(cause), _) => Legality::Illegal(cause.to_string()),
            (None, Some(_)) => Legality::Legal,
            (None, None) => Legality::Unknown,
        };
        let name = |dtype: Option<&str>| dtype.unwrap_or("?").to_string();
        let (operation, from, to) = (words.collect::<Vec<_>>().join(" "), name(c.from), name(c.to));
        Conversion { place: c.place, operation, from, to, legality: Some(legality) }
    };
    check(model, None).conversions.into_iter().map(one).collect()
}
