//! `completions`, `man` and `help`.

use crate::run::{Folder, commands};

#[test]
fn every_shell_knows_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.run(&format!("completions {shell}")).succeeds().out;
        let options = ["max-memory", "fail-on", "round-mode"].map(String::from);
        for word in commands().iter().chain(&options) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    folder.run("completions zork").exits(2);
    // tests/shells/check runs the scripts in the shells; this test checks only the values of `completions`.
    let fish = folder.run("completions fish").succeeds().out;
    assert!(
        fish.lines().any(|line| line.contains("subcommand completions\"")
            && line.ends_with("-f -a \"bash elvish fish powershell zsh\""))
    );
    assert!(!folder.run("completions zsh").succeeds().out.contains("'*::src"));
}

#[test]
fn help_and_version() {
    let folder = Folder::new();
    for line in ["--help", "help", "-h"] {
        let help = folder.run(line).succeeds().out;
        assert!(commands().iter().all(|c| help.contains(c)), "{help}");
    }
    for command in &commands() {
        let help = folder.run(&format!("{command} --help")).succeeds().says(&["Usage: truecast"]).out;
        assert_eq!(help.contains("--json"), !["completions", "explore", "man"].contains(&command.as_str()), "{help}");
        assert_eq!(folder.run(&format!("help {command}")).succeeds().out, help);
    }
    let version = folder.run("--version").succeeds().out;
    assert_eq!(version, format!("truecast {}\n", env!("CARGO_PKG_VERSION")));
}
