//! Operator and attributes of a layer, parsed from text. Source: `docs/spec/openvino.md §11.3`, §11.4, §11.6.

use truecast_core::DType;
use truecast_core::promote::openvino::{ConvertPromoteTypes, U64Target, element};
use truecast_core::promote::{Element, Rank};
use truecast_core::spelling::nearest;

use super::error::LayerError;
use super::read::network::decimal;
use super::read::{Constant, IrFile, Layer};
use crate::Error;
use crate::graph::Dimension;

#[derive(Debug)]
pub(super) enum Meaning {
    /// `shape` is `None` for an unknown rank.
    Parameter {
        element: Element,
        shape: Option<Vec<Dimension>>,
    },
    Const(Constant),
    Convert {
        to: DType,
    },
    Promote(ConvertPromoteTypes),
    Result,
    /// Any other layer. Its outputs have the types that the ports declare.
    Opaque,
}

/// Operator sets that have ConvertPromoteTypes. Source: `docs/spec/openvino.md §4` D13.
const PROMOTE_SETS: [&str; 3] = ["opset14", "opset15", "opset16"];

/// Source: `docs/spec/openvino.md §4` D13.
const NEWEST_SET: u32 = 17;

/// Whether a name is a numbered operator set that OpenVINO lacks.
fn is_unknown_set(version: &str) -> bool {
    let number = version.strip_prefix("opset").map(str::parse::<u32>);
    number.is_some_and(|number| !number.is_ok_and(|number| (1..=NEWEST_SET).contains(&number)))
}

pub(super) fn meaning(file: &IrFile, layer: &Layer, mut warn: impl FnMut(String)) -> Result<Meaning, LayerError> {
    Ok(match layer.operator.as_str() {
        "Parameter" | "Const" | "Constant" | "Convert" | "Result" if is_unknown_set(&layer.version) => {
            return Err(LayerError::UnknownSet { version: layer.version.clone(), newest: NEWEST_SET });
        }
        "Parameter" => Meaning::Parameter { element: element_of(layer, "element_type")?, shape: partial_shape(layer)? },
        "Const" | "Constant" => {
            let constant = constant(file, layer)?;
            constant.uncertain.into_iter().for_each(|what| warn(what.into()));
            Meaning::Const(constant)
        }
        "Convert" => Meaning::Convert { to: destination(layer)? },
        "ConvertPromoteTypes" if !PROMOTE_SETS.contains(&layer.version.as_str()) => {
            return Err(LayerError::OperatorSet { version: layer.version.clone() });
        }
        "ConvertPromoteTypes" => {
            let target = layer.data.get("u64_integer_promotion_target").map(|text| text.parse::<U64Target>());
            Meaning::Promote(ConvertPromoteTypes {
                promote_unsafe: flag(layer, "promote_unsafe", &mut warn),
                pytorch_scalar_promotion: flag(layer, "pytorch_scalar_promotion", &mut warn),
                u64_integer_promotion_target: target.transpose()?.unwrap_or_default(),
            })
        }
        "Result" => Meaning::Result,
        // OpenVINO's own sets have no operator with a similar name; an extension may have one.
        name if layer.version.starts_with("opset") => match nearest(name, ["Convert", "ConvertPromoteTypes"], 1) {
            Some(meant) => return Err(LayerError::Misspelled { meant }),
            None => Meaning::Opaque,
        },
        _ => Meaning::Opaque,
    })
}

fn text<'a>(layer: &'a Layer, name: &'static str) -> Result<&'a str, LayerError> {
    layer.data.get(name).map(String::as_str).ok_or(LayerError::Missing { name })
}

fn element_of(layer: &Layer, name: &'static str) -> Result<Element, LayerError> {
    let value = text(layer, name)?;
    element(value).ok_or_else(|| wrong(name, value, "is not an element type"))
}

fn wrong(name: &'static str, value: &str, why: &'static str) -> LayerError {
    LayerError::Attribute { name, value: value.into(), why }
}

/// Reads a flag. `1` and `true` (upper or lower case) are true, everything else is false, with a warning if it is not `0`
/// or `false`.
fn flag(layer: &Layer, name: &'static str, warn: &mut impl FnMut(String)) -> bool {
    let Some(text) = layer.data.get(name) else { return false };
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if !["true", "false", "1", "0"].into_iter().any(is) {
        warn(format!("attribute {name}: {} is read as false", truecast_io::Escaped(text)));
    }
    is("true") || is("1")
}

fn destination(layer: &Layer) -> Result<DType, LayerError> {
    const NAME: &str = "destination_type";
    match element_of(layer, NAME)? {
        Element::Type(dtype) if dtype != DType::String => Ok(dtype),
        _ => Err(wrong(NAME, text(layer, NAME)?, "is not a concrete element type")),
    }
}

fn constant(file: &IrFile, layer: &Layer) -> Result<Constant, LayerError> {
    let Element::Type(dtype) = element_of(layer, "element_type")? else {
        return Err(wrong("element_type", text(layer, "element_type")?, "is not a concrete element type"));
    };
    let number = |name| {
        let value = text(layer, name)?;
        decimal(value).ok_or_else(|| wrong(name, value, "is not a decimal number of 64 bits"))
    };
    let dimension = |item: &str| {
        let no_dimension = || wrong("shape", item, "is not a dimension");
        decimal(item.trim()).ok_or_else(no_dimension)
    };
    let shape = match text(layer, "shape")?.trim() {
        "" => Vec::new(),
        items => items.split(',').map(dimension).collect::<Result<_, _>>()?,
    };
    let range = (number("offset")?, number("size")?);
    file.constant(&layer.name, dtype, shape, range).map_err(|error| match error {
        Error::Ir { cause, .. } => LayerError::Constant(cause),
        other => LayerError::File(other.into()),
    })
}

/// Reads a shape. The text is `""` for a scalar, `"..."` for an unknown rank, or a list of dimensions. A dimension is
/// `2`, `?`, `-1`, `2..5`, `..5` or `2..`.
fn partial_shape(layer: &Layer) -> Result<Option<Vec<Dimension>>, LayerError> {
    let text = text(layer, "shape")?.trim();
    match text {
        "..." => Ok(None),
        "" => Ok(Some(Vec::new())),
        items => items.split(',').map(|item| dimension(item.trim())).collect::<Result<_, _>>().map(Some),
    }
}

fn dimension(item: &str) -> Result<Dimension, LayerError> {
    let bound = |text: &str, open: u64| match text {
        "" => Some(open),
        number => decimal(number),
    };
    let read = match (item, item.split_once("..")) {
        ("?" | "-1", _) => Some(Dimension::Any),
        ("..", _) => None,
        (_, Some((least, most))) => bound(least, 0).zip(bound(most, u64::MAX)).map(|(a, b)| Dimension::Between(a, b)),
        (number, None) => decimal(number).map(Dimension::Known).filter(|_| !number.is_empty()),
    };
    read.ok_or_else(|| wrong("shape", item, "is not a dimension"))
}

pub(super) fn rank_of(dimensions: Option<usize>) -> Rank {
    match dimensions {
        None => Rank::Dynamic,
        Some(0) => Rank::Scalar,
        Some(_) => Rank::Dimensioned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions() {
        let read = |item| dimension(item).ok();
        assert_eq!(read("7"), Some(Dimension::Known(7)));
        assert_eq!((read("?"), read("-1")), (Some(Dimension::Any), Some(Dimension::Any)));
        assert_eq!(read("2..5"), Some(Dimension::Between(2, 5)));
        assert_eq!(read("..5"), Some(Dimension::Between(0, 5)));
        assert_eq!(read("2.."), Some(Dimension::Between(2, u64::MAX)));
        for wrong in ["", "..", "-2", "+1", "a", "1..b", "99999999999999999999", "1...3"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
