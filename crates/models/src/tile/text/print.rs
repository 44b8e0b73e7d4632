//! Writes modules as text of dialect A (§9.5), with single spaces and without defaults.

use std::fmt::Write;

use truecast_core::spec::tile::{Conversion, IntegerOverflow, RoundingMode, TileType};

use super::lexer::escaped;
use super::literal;
use crate::tensor::Tensor;
use crate::tile::module::{Function, Module, Operation, Statement, ValueId};

/// An operation with unknown syntax.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {name} cannot be printed; only constants, conversions, pack, unpack and return can")]
#[allow(missing_docs)] // The messages name them.
pub struct Unprintable {
    pub name: String,
}

/// Writes a module of constants, conversions, pack, unpack and return.
///
/// # Errors
/// [`Unprintable`] for any other operation.
///
/// # Examples
/// ```
/// use truecast_core::spec::tile::Release;
/// let source = "entry @k() { %a = constant <f32: 0x7fc00000> : tile<f32> return }";
/// let module = truecast_models::tile::text::parse(source, Release::NEWEST)?;
/// let text = truecast_models::tile::text::print(&module)?;
/// assert_eq!(text, "entry @k() {\n  %a = constant <f32: 0x7FC00000> : tile<f32>\n  return\n}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn print(module: &Module) -> Result<String, Unprintable> {
    if module.functions.is_empty() {
        return Ok("module {\n}\n".into());
    }
    let mut text = String::new();
    for function in &module.functions {
        if !function.is_entry {
            return Err(Unprintable { name: function.name.to_string() });
        }
        print_entry(&mut text, function)?;
    }
    Ok(text)
}

fn print_entry(text: &mut String, function: &Function) -> Result<(), Unprintable> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '-');
    let plain = !function.name.is_empty() && function.name.chars().all(is_plain);
    let name = if plain { function.name.to_string() } else { format!("\"{}\"", escaped(&function.name)) };
    let arguments: Vec<_> = function.arguments.iter().map(|&id| argument(function, id)).collect();
    push(text, format_args!("entry @{name}({}) {{\n", arguments.join(", ")));
    for statement in &function.body {
        let line = line(function, statement)?;
        push(text, format_args!("  {line}\n"));
    }
    text.push_str("}\n");
    Ok(())
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes all text");
}

fn argument(function: &Function, id: ValueId) -> String {
    let tile = function.value(id).tile.as_ref().map_or("token".into(), |t| t.to_string());
    format!("{}: {tile}", function.name_of(id))
}

fn line(function: &Function, statement: &Statement) -> Result<String, Unprintable> {
    let name = |id: &ValueId| function.name_of(*id);
    let result = statement.results.first().map_or(String::new(), |id| format!("{} = ", name(id)));
    Ok(match &statement.operation {
        Operation::Convert { conversion, operand, from, to } => {
            let (op, attributes) = (conversion.op(), attributes(*conversion));
            format!("{result}{op} {}{attributes} : {from} -> {to}", name(operand))
        }
        Operation::Pack { kind, operand, from, to } => {
            format!("{result}{} {} : {from} -> {to}", kind.name(), name(operand))
        }
        Operation::Constant { tile, elements: codes } => {
            let element = literal::element_name(tile.element);
            format!("{result}constant <{element}: {}> : {tile}", elements(tile, codes))
        }
        Operation::Return { operands } if operands.is_empty() => "return".into(),
        Operation::Return { operands } => {
            let names: Vec<_> = operands.iter().map(name).collect();
            let tile = |id: &ValueId| function.value(*id).tile.as_ref().map_or("token".into(), |t| t.to_string());
            let types: Vec<_> = operands.iter().map(tile).collect();
            format!("return {} : {}", names.join(", "), types.join(", "))
        }
        Operation::Opaque { name, .. } => return Err(Unprintable { name: name.to_string() }),
    })
}

/// Formats a conversion without its operand and types: `ftof rounding<zero>`.
pub fn operation(conversion: Conversion) -> String {
    format!("{}{}", conversion.op(), attributes(conversion))
}

fn attributes(conversion: Conversion) -> String {
    let mut text = String::new();
    if let Conversion::Exti { signedness } | Conversion::Ftoi { signedness, .. } | Conversion::Itof { signedness, .. } =
        conversion
    {
        push(&mut text, format_args!(" {signedness}"));
    }
    match conversion {
        Conversion::Trunci { overflow } if overflow != IntegerOverflow::None => {
            push(&mut text, format_args!(" overflow<{overflow}>"));
        }
        Conversion::Ftof { rounding } | Conversion::Itof { rounding, .. } if rounding != RoundingMode::NearestEven => {
            push(&mut text, format_args!(" rounding<{rounding}>"));
        }
        Conversion::Ftoi { rounding, .. } if rounding != RoundingMode::NearestIntToZero => {
            push(&mut text, format_args!(" rounding<{rounding}>"));
        }
        _ => {}
    }
    if let Conversion::Ftoi { saturating: true, .. } = conversion {
        text.push_str(" saturating");
    }
    text
}

fn elements(tile: &TileType, codes: &Tensor) -> String {
    match codes.as_splat() {
        Some(code) => literal::text(tile.element, code),
        None => {
            let mut text = String::new();
            nested(&mut text, tile, &tile.shape, &codes.reader(), &mut 0);
            text
        }
    }
}

fn nested(text: &mut String, tile: &TileType, shape: &[u64], code: &dyn Fn(u64) -> u64, next: &mut u64) {
    let Some((length, inner)) = shape.split_first() else {
        text.push_str(&literal::text(tile.element, code(*next)));
        *next += 1;
        return;
    };
    text.push('[');
    for i in 0..*length {
        if i > 0 {
            text.push_str(", ");
        }
        nested(text, tile, inner, code, next);
    }
    text.push(']');
}
