//! `completions`, `man`, help.

use crate::run::Folder;

const COMMANDS: [&str; 9] =
    ["convert", "inspect", "verify", "compare", "explain", "formats", "bench", "completions", "man"];

#[test]
fn every_shell_knows_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.run(&format!("completions {shell}")).succeeds().out;
        for word in COMMANDS.iter().chain(&["max-memory", "fail-on", "round-mode"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    folder.run("completions zork").exits(2);
    // What the shells make of it is tried by tests/shells/check; this is what was wrong there.
    let fish = folder.run("completions fish").succeeds().out;
    assert!(
        fish.lines().any(|line| line.contains("subcommand completions\"")
            && line.ends_with("-f -a \"bash elvish fish powershell zsh\""))
    );
    assert!(!folder.run("completions zsh").succeeds().out.contains("'*::src"));
}

#[test]
fn manual_pages() {
    let folder = Folder::new();
    let page = folder.run("man").succeeds().says(&[".TH truecast"]).out;
    assert!(COMMANDS.iter().all(|c| page.contains(c)));
    for command in COMMANDS {
        folder.run(&format!("man {command}")).succeeds().says(&[".TH", command]);
    }
    assert!(folder.run("man convert").succeeds().out.contains("max\\-memory"));
    folder.run("man zork").fails(2, &["zork"]);
}

#[test]
fn help_and_version() {
    let folder = Folder::new();
    for line in ["--help", "help", "-h"] {
        let help = folder.run(line).succeeds().out;
        assert!(COMMANDS.iter().all(|c| help.contains(c)), "{help}");
    }
    for command in COMMANDS {
        let help = folder.run(&format!("{command} --help")).succeeds().says(&["Usage: truecast"]).out;
        // A script and a page are no results.
        assert_eq!(help.contains("--json"), !matches!(command, "completions" | "man"), "{help}");
        assert_eq!(folder.run(&format!("help {command}")).succeeds().out, help);
    }
    let version = folder.run("--version").succeeds().out;
    assert_eq!(version, format!("truecast {}\n", env!("CARGO_PKG_VERSION")));
}
