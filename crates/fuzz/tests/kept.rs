//! Runs every input of `fuzz/seeds` and `fuzz/found` through its target.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use truecast_fuzz::TARGETS;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn kept(target: &str) -> Vec<(String, Vec<u8>)> {
    let seeds = fs::read_dir(fuzz().join("seeds").join(target)).expect("every target has seeds");
    let seeds = seeds.map(|seed| seed.unwrap().path());
    let mut all: Vec<_> = seeds.map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect();
    assert!(!all.is_empty(), "{target} has no seeds");
    if let Ok(found) = File::open(fuzz().join("found").join(format!("{target}.zip"))) {
        let mut found = zip::ZipArchive::new(found).unwrap();
        for index in 0..found.len() {
            let mut input = Vec::new();
            found.by_index(index).unwrap().read_to_end(&mut input).unwrap();
            all.push((format!("found/{target}.zip, {index:03}"), input));
        }
    }
    all
}

#[test]
fn no_kept_input_is_harmful() {
    for (target, run) in TARGETS {
        for (name, input) in kept(target) {
            let ended = std::panic::catch_unwind(|| run(&input));
            assert!(ended.is_ok(), "{target}: {name}");
        }
    }
}

#[test]
fn targets_and_programs_are_the_same() {
    let names: Vec<String> = TARGETS.iter().map(|(name, _)| name.to_string()).collect();
    let stems = |folder: &str| {
        let entries = fs::read_dir(fuzz().join(folder)).into_iter().flatten();
        let mut all: Vec<String> =
            entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_string()).collect();
        all.sort();
        all
    };
    assert_eq!(stems("fuzz_targets"), names);
    assert_eq!(stems("seeds"), names);
    assert!(stems("found").iter().all(|name| names.contains(name)));
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let page = fs::read_to_string(fuzz().join("README.md")).unwrap();
    for name in names {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
