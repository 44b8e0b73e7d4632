//! Description of a module.

use super::bytecode::MAGIC;
use super::module::{Function, Module, Operation, Statement};
use super::text;
use crate::description::{Constant, Conversion, Description};

/// Describes a module that was read from `bytes`. Text states no version (`docs/spec/tile-ir.md §2.2`).
pub fn describe(module: &Module, bytes: &[u8]) -> Description {
    let version = bytes.starts_with(&MAGIC).then(|| format!("Tile IR {}", module.version));
    Description { version, ..of_module(module) }
}

fn of_module(module: &Module) -> Description {
    let mut all = Description::default();
    for function in &module.functions {
        all.add(function, &function.body);
    }
    all
}

impl Description {
    fn add(&mut self, function: &Function, statements: &[Statement]) {
        for statement in statements {
            let value = statement.results.first().map_or(String::new(), |id| function.name_of(*id));
            let place = format!("{} {} {value}", statement.place, function.name.escape_debug());
            let operator = match &statement.operation {
                Operation::Convert { conversion, from, to, .. } => {
                    let operation = text::operation(*conversion);
                    let (from, to) = (from.to_string(), to.to_string());
                    self.conversions.push(Conversion { place, operation, from, to, legality: None });
                    conversion.op().to_string()
                }
                Operation::Pack { kind, from, to, .. } => {
                    let operation = kind.name().to_string();
                    let (from, to) = (from.to_string(), to.to_string());
                    self.conversions.push(Conversion { place, operation, from, to, legality: None });
                    kind.name().into()
                }
                Operation::Constant { tile, .. } => {
                    let (dtype, shape) = (tile.element.to_string(), format!("{:?}", tile.shape));
                    self.constants.push(Constant { name: value, dtype, shape });
                    "constant".into()
                }
                Operation::Return { .. } => "return".into(),
                Operation::Opaque { name, regions } => {
                    regions.iter().for_each(|region| self.add(function, region));
                    name.to_string()
                }
            };
            *self.operators.entry(operator).or_default() += 1;
        }
    }
}
