//! Modules of `docs/spec/tile-ir.md`: both forms, every error, evaluation, hostile input. A `§` is of that page.

mod assemble;
mod bytecode;
mod evaluation;
mod hostile;
mod messages;
mod text;

use truecast_core::spec::tile::{Options, Profile, Release, Rules};
use truecast_models::tile::{Module, ModuleLegality};

fn parsed(source: &str) -> Module {
    truecast_models::tile::text::parse(source, Release::NEWEST).unwrap_or_else(|e| panic!("{e} in {source}"))
}

/// Texts of a file, which empty lines separate. Each text ends with the expected message.
fn cases(file: &str) -> impl Iterator<Item = (&str, &str)> {
    file.trim_end().split("\n\n").map(|case| case.rsplit_once("\n// => ").unwrap_or_else(|| panic!("{case}")))
}

fn verified(module: &Module) -> ModuleLegality {
    truecast_models::tile::check(module, Rules::default(), Profile::Spec, &Options::default())
}

fn without_places(module: &Module) -> String {
    let mut module = module.clone();
    fn clear(statements: &mut [truecast_models::tile::module::Statement]) {
        for statement in statements {
            statement.place = truecast_models::tile::Place::Byte(0);
            if let truecast_models::tile::module::Operation::Opaque { regions, .. } = &mut statement.operation {
                regions.iter_mut().for_each(|r| clear(r));
            }
        }
    }
    for function in &mut module.functions {
        function.place = truecast_models::tile::Place::Byte(0);
        clear(&mut function.body);
        function.values.iter_mut().for_each(|v| v.name = None);
    }
    format!("{module:?}")
}
