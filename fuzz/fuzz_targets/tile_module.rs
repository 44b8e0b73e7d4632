//! A module of Tile IR, as bytecode or as text: read, verified, printed, evaluated.
#![no_main]

use libfuzzer_sys::fuzz_target;
use truecast_core::spec::tile::{Options, Profile, Release, Rules};
use truecast_models::Error;
use truecast_models::tile::evaluate::{Settings, evaluate};

fuzz_target!(|bytes: &[u8]| {
    let Ok(module) = truecast_models::tile::read(bytes, Release::NEWEST) else { return };
    let report = truecast_models::tile::check(&module, Rules::OfFile, Profile::Spec, &Options::default());
    for error in report.errors.iter().chain(&report.warnings) {
        assert!(!error.to_string().chars().any(char::is_control));
    }
    if let Ok(text) = truecast_models::tile::text::print(&module) {
        truecast_models::tile::text::parse(&text, module.version).expect("what is printed is read");
    }
    if report.errors.is_empty() {
        for entry in module.functions.iter().filter(|f| f.is_entry) {
            let settings = Settings { max_bytes: 1 << 20, ..Settings::default() };
            let _ = evaluate::<Error>(entry, &settings, Vec::new(), |_| Ok(()));
        }
    }
});
