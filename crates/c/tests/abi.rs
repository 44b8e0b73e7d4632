//! Tests of the C interface: the committed header, the symbols of the shared library, and C and C++ programs that run
//! with the static library. `abi.c` declares the interface; `behavior.c` tests each function.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::{env, fs};

use object::Object;
use object::read::{File, NameOrOrdinal};

/// Source files from which the header is made, in the order of the header.
const SOURCES: [&str; 6] = ["version", "status", "types", "name", "cast", "check"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// `UPDATE=1` writes the header.
#[test]
fn the_header_is_made_from_the_sources() {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).unwrap();
    let sources = SOURCES.iter().map(|name| root().join("src").join(name).with_extension("rs"));
    let header = sources.fold(cbindgen::Builder::new().with_config(config), cbindgen::Builder::with_src);
    let mut made = Vec::new();
    header.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    if env::var_os("UPDATE").is_some() {
        fs::write(root().join("include/truecast.h"), &made).unwrap();
    }
    // Git may have changed the line endings.
    let committed = read("include/truecast.h").replace("\r\n", "\n");
    assert!(made == committed, "UPDATE=1 cargo test -p truecast-c writes include/truecast.h again");
}

fn functions(header: &str) -> BTreeSet<String> {
    let code = header.lines().filter(|line| !line.trim_start().starts_with(['*', '/']));
    let names = code.filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next());
    names.filter(|name| name.starts_with("truecast_")).map(String::from).collect()
}

/// `abi.c` declares each function with its type, so a changed type does not compile. This test finds removed functions.
#[test]
fn functions_are_those_of_the_list() {
    let listed: BTreeSet<String> = read("tests/abi.c")
        .lines()
        .filter_map(|line| line.split_once("= truecast_")?.1.strip_suffix(';'))
        .map(|name| format!("truecast_{name}"))
        .collect();
    assert!(listed.len() > 10, "{listed:?}");
    assert_eq!(functions(&read("include/truecast.h")), listed, "the header");
    let bytes = fs::read(library(env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX)).unwrap();
    let shared = File::parse(&*bytes).unwrap();
    let exports = shared.exports().unwrap();
    let names = exports.filter_map(|export| match export.unwrap().name() {
        NameOrOrdinal::Name(name) => Some(String::from_utf8_lossy(name).into_owned()),
        NameOrOrdinal::Ordinal(_) => None,
    });
    // On macOS, symbols have an additional underscore.
    let names = names.map(|name| name.strip_prefix("_truecast").map_or(name.clone(), |rest| format!("truecast{rest}")));
    assert_eq!(
        names.filter(|name| name.starts_with("truecast_")).collect::<BTreeSet<_>>(),
        listed,
        "the shared library"
    );
}

/// Folder with the static and the shared library, built with the profile of the tests.
static LIBRARIES: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the folder of builds");
    let this = env::current_exe().unwrap();
    let folder = this.ancestors().nth(2).and_then(Path::file_name).expect("PROFILE/deps/TEST").to_str().unwrap();
    let profile = if folder == "debug" { "dev" } else { folder };
    let built = Command::new(env!("CARGO"))
        // The same options as in `cargo test --workspace`, so that cargo compiles nothing again.
        .args(["build", "--quiet", "--offline", "--workspace", "--lib", "--tests"])
        .args(["--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(built.status.success(), "cargo build: {}", String::from_utf8_lossy(&built.stderr));
    target.join(folder)
});

fn library(prefix: &str, suffix: &str) -> PathBuf {
    LIBRARIES.join(format!("{prefix}truecast_c{suffix}"))
}

/// Compiler from the environment variable, or else the `usual` one. `None`, with a message, if there is no compiler.
fn compiler(variable: &str, usual: &str) -> Option<Command> {
    let words = env::var(variable).unwrap_or_else(|_| usual.into());
    let command = || {
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or(usual));
        command.args(words);
        command
    };
    let found = cfg!(unix) && command().arg("--version").output().is_ok_and(|ran| ran.status.success());
    if !found {
        eprintln!("skipped: no compiler {words:?}; install one or name it in {variable}");
    }
    found.then(command)
}

/// Compiles a program against the static library and runs it; `None` if there is no compiler.
fn run(variable: &str, usual: &str, standard: &str, source: &str) -> Option<Output> {
    let mut compiler = compiler(variable, usual)?;
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.replace(['/', '.'], "-"));
    let compiled = compiler
        .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(root().join("include"))
        .arg(root().join(source))
        .arg(library("lib", ".a"))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiler:?}: {}", String::from_utf8_lossy(&compiled.stderr));
    Some(Command::new(&program).output().unwrap())
}

fn succeeds(ran: Option<Output>) {
    if let Some(ran) = ran {
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[test]
fn sizes_values_and_types_are_as_committed() {
    succeeds(run("CC", "cc", "-std=c11", "tests/abi.c"));
}

#[test]
fn functions_do_what_the_header_says() {
    succeeds(run("CC", "cc", "-std=c11", "tests/behavior.c"));
}

/// The converter in the example rounds ties away from zero. Its first three wrong results are for 0.5, 2.5 and 4.5
/// steps of 2^-9.
#[test]
fn the_example_in_c_finds_the_wrong_results() {
    let Some(ran) = run("CC", "cc", "-std=c99", "examples/check.c") else { return };
    let said = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    for wrong in [
        "0x3a800000 gives 0x01, permitted is 0x00", "0x3ba00000 gives 0x03, permitted is 0x02",
        "0x3c100000 gives 0x05, permitted is 0x04",
    ] {
        assert!(said.contains(wrong), "{wrong:?} in\n{said}");
    }
}

/// 465 saturates; 0.4375 is between 0 and 0.5, nearer to 0.5.
#[test]
fn the_example_in_cpp_converts() {
    let Some(ran) = run("CXX", "c++", "-std=c++17", "examples/cast.cpp") else { return };
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    for line in ["f32 to f8e4m3fn: 38 7e b8", "f32 to f4e2m1: 12 07"] {
        assert!(said.contains(line), "{line:?} in\n{said}");
    }
}
