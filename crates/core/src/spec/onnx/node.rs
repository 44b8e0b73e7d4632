//! Raw attributes that a node of a model has, and the request that they make. Source: `docs/spec/onnx.md §1.3`, §1.8.

use super::operator::Operator;
use super::{Cast, DataType, RoundMode, SpecError};
use crate::dtype::DType;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Value of a node's attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeValue<'a> {
    /// Attribute type INT.
    Int(i64),
    /// Attribute type STRING.
    String(&'a [u8]),
    /// Name of another attribute type.
    Other(&'a str),
    /// Reference to an attribute of the enclosing function. The value is only known at the call.
    OfCall,
}

impl AttributeValue<'_> {
    fn kind(&self) -> &str {
        match self {
            AttributeValue::Int(_) => "INT",
            AttributeValue::String(_) => "STRING",
            AttributeValue::Other(kind) => kind,
            AttributeValue::OfCall => "a reference",
        }
    }
}

/// Attributes of a node. `None` means a missing attribute or a [reference](AttributeValue::OfCall).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attributes {
    /// Attribute `to`; always `None` for CastLike.
    pub to: Option<DType>,
    /// Attribute `saturate`.
    pub saturate: Option<bool>,
    /// Attribute `round_mode`.
    pub round_mode: Option<RoundMode>,
}

impl Attributes {
    /// Reads the attributes of a node at an opset of the default domain.
    ///
    /// # Errors
    /// [`SpecError::UnknownAttribute`]; [`SpecError::Attribute`] for an attribute of a later version, of the wrong
    /// kind, with an invalid value, given twice, or missing; [`SpecError::Type`] for a `to` that the operator does not
    /// have at the opset; [`SpecError::Version`].
    pub fn read<'a>(
        operator: Operator,
        opset: u32,
        attributes: impl IntoIterator<Item = (&'a str, AttributeValue<'a>)>,
    ) -> Result<Attributes, SpecError> {
        let version = operator.version_at(opset)?;
        let wrong = |name, why| operator.wrong(opset, version, name, why);
        let mut read = Attributes::default();
        let mut seen = Vec::new();
        for (name, value) in attributes {
            let known = operator.attributes().iter().find(|a| a.name == name);
            let Some(known) = known else {
                let known = operator.attributes().iter().filter(|a| a.since <= version).map(|a| a.name);
                return Err(SpecError::UnknownAttribute {
                    spec: operator.at(opset, version),
                    name: name.into(),
                    known: known.collect::<Vec<_>>().join(", "),
                    clause: "docs/spec/onnx.md §1.8",
                });
            };
            operator.check_attribute(opset, known.name)?;
            let wrong = |why| wrong(known.name, why);
            if seen.contains(&known.name) {
                return Err(wrong("occurs twice".into()));
            }
            seen.push(known.name);
            match (known.name, value) {
                (_, AttributeValue::OfCall) => {}
                ("to", _) => read.to = Some(destination(version, value).map_err(wrong)?),
                ("saturate", _) => read.saturate = Some(saturate(value).map_err(wrong)?),
                _ => read.round_mode = Some(round_mode(value).map_err(wrong)?),
            }
        }
        if operator == Operator::Cast && !seen.contains(&"to") {
            return Err(wrong("to", "is missing".into()));
        }
        if let Some(to) = read.to {
            operator.check_type(opset, to)?;
        }
        Ok(read)
    }

    /// Returns the request; `None` if the destination is unknown. `target` is the element type of the second input of
    /// CastLike; `None` for Cast.
    #[must_use]
    pub fn cast(&self, operator: Operator, opset: u32, target: Option<DType>) -> Option<Cast> {
        let Attributes { to, saturate, round_mode } = *self;
        Some(Cast { operator, to: to.or(target)?, saturate, round_mode, opset })
    }
}

fn destination(version: u32, value: AttributeValue<'_>) -> Result<DType, String> {
    match (version, value) {
        (1, AttributeValue::String(text)) => {
            let row = core::str::from_utf8(text).ok().and_then(DataType::named);
            let dtype = row.and_then(|row| row.dtype).filter(|&t| Operator::Cast.types_at(1).any(|known| known == t));
            dtype.ok_or_else(|| {
                format!("\"{}\" is not the name of a type of Cast-1, such as \"FLOAT\"", text.escape_ascii())
            })
        }
        (1, other) => Err(format!("Cast-1 takes the name of a type (STRING), not {}", other.kind())),
        (_, AttributeValue::Int(code)) => match DataType::of_code(code) {
            Some(DataType { name: "COMPLEX64" | "COMPLEX128", .. }) => {
                Err(format!("{code} is complex; it is never cast"))
            }
            Some(DataType { dtype: Some(dtype), .. }) => Ok(*dtype),
            Some(_) => Err(format!("{code} is UNDEFINED")),
            None => Err(format!("{code} is not a DataType")),
        },
        (_, AttributeValue::String(_)) => {
            Err("is a type's name; from Cast-6 on it is the DataType number (INT)".into())
        }
        (_, other) => Err(format!("is {}, not INT", other.kind())),
    }
}

fn saturate(value: AttributeValue<'_>) -> Result<bool, String> {
    match value {
        AttributeValue::Int(0) => Ok(false),
        AttributeValue::Int(1) => Ok(true),
        AttributeValue::Int(other) => Err(format!("{other} is neither 0 nor 1")),
        other => Err(format!("is {}, not INT", other.kind())),
    }
}

fn round_mode(value: AttributeValue<'_>) -> Result<RoundMode, String> {
    match value {
        AttributeValue::String(text) => RoundMode::named(text).ok_or_else(|| RoundMode::not_one(&text.escape_ascii())),
        other => Err(format!("is {}, not STRING", other.kind())),
    }
}
