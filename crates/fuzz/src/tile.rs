//! Tile IR modules as bytecode and text: read, verified, printed, evaluated.

use truecast_core::spec::tile::{Options, Profile, Release, Rules};
use truecast_models::Error;
use truecast_models::tile::evaluate::{Settings, evaluate};
use truecast_models::tile::{Module, bytecode, text};

use crate::{accepted, harmless};

/// Bytecode without its magic number, which is added.
pub fn tile_bytecode(input: &[u8]) {
    accepted(bytecode::read(&[&bytecode::MAGIC, input].concat())).iter().for_each(used);
}

/// The input is the text of a module.
pub fn tile_text(input: &[u8]) {
    let Ok(source) = std::str::from_utf8(input) else { return };
    accepted(text::parse(source, Release::NEWEST)).iter().for_each(used);
}

fn used(module: &Module) {
    let report = truecast_models::tile::check(module, Rules::OfFile, Profile::Spec, &Options::default());
    report.errors.iter().chain(&report.warnings).for_each(harmless);
    if let Ok(source) = text::print(module) {
        text::parse(&source, module.version).expect("what is printed is read");
    }
    if report.errors.is_empty() {
        for entry in module.functions.iter().filter(|function| function.is_entry) {
            let settings = Settings { max_bytes: 1 << 20, ..Settings::default() };
            let _ = evaluate::<Error>(entry, &settings, Vec::new(), |_| Ok(()));
        }
    }
}
