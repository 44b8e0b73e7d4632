//! Imports are acyclic, between crates and between the files of a crate (`ARCHITECTURE.md` §3, §4).

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use imports::{Module, circles, imports};

/// Crates that each crate may use, in tests and benchmarks too.
const BELOW: [(&str, &[&str]); 13] = [
    ("testkit", &[]),
    ("core", &["testkit"]),
    ("kernel", &["core", "testkit"]),
    ("io", &["core", "testkit"]),
    ("schemes", &["core", "io", "testkit"]),
    ("models", &["core", "kernel", "io", "testkit"]),
    ("truecast", &["core", "kernel", "io", "schemes", "models", "testkit"]),
    ("cli", &["truecast", "kernel", "core", "testkit"]),
    ("python", &["truecast", "cli"]),
    ("wasm", &["cli"]),
    ("c", &["truecast"]),
    ("verify", &["core", "kernel", "truecast", "cli", "testkit"]),
    ("fuzz", &["core", "kernel", "io", "schemes", "models", "truecast"]),
];

/// Largest number of files that may import each other.
const MOST: usize = 2;
/// Crates with a larger limit, which must not grow. In `kernel`, the loops and the types of counts import each other.
const LARGER: [(&str, usize); 1] = [("kernel", 3)];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of crates").to_path_buf()
}

fn files(src: &Path) -> BTreeMap<Module, String> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![(src.to_path_buf(), Module::new())];
    while let Some((folder, module)) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_string();
            let mut inside = module.clone();
            if path.is_dir() {
                inside.push(name);
                waiting.push((path, inside));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                if !["mod", "lib", "main"].contains(&name.as_str()) {
                    inside.push(name);
                }
                all.insert(inside, fs::read_to_string(&path).unwrap());
            }
        }
    }
    all
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut seen = 0;
    for (name, _) in BELOW {
        let files = files(&crates().join(name).join("src"));
        seen += files.len();
        let allowed = LARGER.iter().find(|(larger, _)| *larger == name).map_or(MOST, |(_, most)| *most);
        for circle in circles(&imports(&files)) {
            let modules: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            assert!(modules.len() <= allowed, "crates/{name}: {} files in a circle: {modules:?}", modules.len());
        }
    }
    assert!(seen > 300, "only {seen} files were found");
}

#[test]
fn no_crate_uses_one_above_it() {
    let found: BTreeSet<String> =
        fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, BELOW.iter().map(|(name, _)| name.to_string()).collect(), "every crate has a row");
    for (name, below) in BELOW {
        let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        let used = manifest.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).filter_map(|key| match key {
            "truecast" => Some("truecast"),
            key => key.strip_prefix("truecast-"),
        });
        for used in used {
            assert!(below.contains(&used), "crates/{name} uses crates/{used}");
        }
    }
}

/// Errors of libraries have a `Flag`; only the command prints option names.
#[test]
fn libraries_name_no_option() {
    for library in ["core", "kernel", "io", "schemes", "models", "truecast"] {
        for text in files(&crates().join(library).join("src")).values() {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for literal in code.flat_map(|line| line.split('"').skip(1).step_by(2)) {
                let mut after = literal.split("--").skip(1).filter(|after| !after.starts_with("arith-expand"));
                let named = after.find(|after| after.starts_with(|c: char| c.is_ascii_lowercase()));
                assert!(named.is_none(), "{library}: {literal:?}");
            }
        }
    }
}
