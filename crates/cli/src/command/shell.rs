//! `truecast completions` and `truecast man`, generated from the definition of the command line.

use crate::failure::Failure;
use crate::help::{ordered, whole};
use crate::help_text::{CLAUSES, EXIT_STATUS, FILES, Page, page};
use crate::output;
use crate::usage;
use crate::value_parsers;
use clap::{Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use truecast::io::{Existing, OutputFile};
use truecast::scaled;

pub fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut whole(), "truecast", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    output::text(&match shell {
        Shell::Fish => script + &fish_operands(),
        Shell::Zsh => for_zsh(&script),
        Shell::Bash => for_bash(&script),
        _ => script,
    })?;
    Ok(0)
}

/// Corrects clap's zsh completions: `check` takes a word or a file, and options are completed after several files.
fn for_zsh(script: &str) -> String {
    let words = value_parsers::operations().join(" ");
    let is_of_check = |line: &str| line.contains(":what ");
    let line = |line: &str| match is_of_check(line) {
        true => line.replace(&format!("({words})"), &format!("{{compadd {words}; _files}}")),
        false => line.replace("'*::", "'*:"),
    };
    script.lines().map(|text| line(text) + "\n").collect()
}

/// Corrects clap's completions for bash. The value after `--option=` and each item of a comma-separated list are
/// completed, and no word is offered twice.
fn for_bash(script: &str) -> String {
    let mend = |line: &str| -> String {
        let text = line.trim_start();
        if text == "prev=\"$3\"" {
            return BASH_VALUES.into();
        }
        if let Some(words) = text.strip_prefix("opts=\"").and_then(|rest| rest.strip_suffix('"')) {
            let mut once: Vec<&str> = Vec::new();
            for word in words.split(' ') {
                if !once.contains(&word) {
                    once.push(word);
                }
            }
            return line.replace(words, &once.join(" "));
        }
        line.replace("compgen -W", "compgen -P \"${list}\" -W")
            .replace("compgen -f \"${cur}\"", "compgen -f \"${list}${cur}\"")
    };
    script.lines().map(|line| mend(line) + "\n").collect()
}

/// Shell code for comma-separated lists, and for the value after `=`, where bash splits words.
const BASH_VALUES: &str = r#"    prev="$3"
    local list=""
    [[ "${COMP_WORDS[COMP_CWORD]}" == "=" ]] && cur="" && prev="="
    [[ "${prev}" == "=" && "${COMP_CWORD}" -gt 1 ]] && {
        [[ "${COMP_WORDS[COMP_CWORD]}" == "=" ]] && prev="${COMP_WORDS[COMP_CWORD-1]}" || prev="${COMP_WORDS[COMP_CWORD-2]}"
    }
    [[ "${cur}" == *,* ]] && list="${cur%,*}," && cur="${cur##*,}""#;

/// Completions of operands for fish, which clap does not generate.
fn fish_operands() -> String {
    let line = |command: &str, words: Vec<&str>, files: &str| {
        let condition = format!("__fish_truecast_using_subcommand {command}");
        format!("complete -c truecast -n \"{condition}\"{files} -a \"{}\"\n", words.join(" "))
    };
    let types = value_parsers::types;
    let shells = Shell::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let shells: Vec<String> = shells.map(|shell| shell.get_name().to_string()).collect();
    let shells = shells.iter().map(String::as_str).collect();
    [
        line("check", value_parsers::operations(), ""),
        line("vectors", value_parsers::vectors(), ""),
        line("formats", types(), " -f"),
        line("quantize", scaled::written_to_files(), ""),
        line("schemes", value_parsers::schemes(), " -f"),
        line("promote", value_parsers::operands(), " -f"),
        line("man", value_parsers::commands(), " -f"),
        line("completions", shells, " -f"),
    ]
    .concat()
}

pub fn man(command: Option<&str>) -> Result<u8, Failure> {
    let root = whole();
    let text = match command {
        None => overview(&root),
        Some(name) => {
            let unknown = || usage::unknown_command(&root, name);
            let (command, page) = root.find_subcommand(name).zip(page(name)).ok_or_else(unknown)?;
            of_command(command, page)
        }
    };
    output::text(&text)?;
    Ok(0)
}

/// Writes each page to its own file; existing files are replaced.
pub fn every_page(folder: &Path) -> Result<u8, Failure> {
    let failed = |path: &Path, what: &str, error| failure!(IoError, "{}: {what}: {error}", path.display());
    fs::create_dir_all(folder).map_err(|error| failed(folder, "making the folder", error))?;
    let root = whole();
    let of_commands = root
        .get_subcommands()
        .filter_map(|c| Some((format!("truecast-{}.1", c.get_name()), of_command(c, page(c.get_name())?))));
    for (name, text) in std::iter::once(("truecast.1".to_string(), overview(&root))).chain(of_commands) {
        let path = folder.join(name);
        let mut file = OutputFile::create(&path, Existing::Replace)?;
        file.write_all(text.as_bytes()).map_err(|error| failed(&path, "writing", error))?;
        file.commit()?;
    }
    Ok(0)
}

fn overview(root: &Command) -> String {
    let man = manual(root.clone(), "truecast".into());
    let names: Vec<&str> = root.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
    rendered(|out| {
        man.render_title(out)?;
        man.render_name_section(out)?;
        synopsis(&["COMMAND [OPTIONS]"]).to_writer(out)?;
        man.render_description_section(out)?;
        man.render_options_section(out)?;
        man.render_subcommands_section(out)?;
        last_sections(&names).to_writer(out)
    })
}

fn of_command(command: &Command, page: &Page) -> String {
    let man = manual(ordered(command, page.command), format!("truecast-{}", page.command));
    let mut examples = Roff::new();
    examples.control("SH", ["EXAMPLES"]);
    for (what, line) in page.examples {
        examples.control("PP", []);
        examples.text([roman(format!("{what}:"))]);
        examples.control("PP", []);
        examples.control("RS", ["4"]);
        examples.control("nf", []);
        examples.text([bold(*line)]);
        examples.control("fi", []);
        examples.control("RE", []);
    }
    rendered(|out| {
        man.render_title(out)?;
        man.render_name_section(out)?;
        synopsis(page.usage).to_writer(out)?;
        man.render_description_section(out)?;
        man.render_options_section(out)?;
        examples.to_writer(out)?;
        last_sections(&[]).to_writer(out)
    })
}

fn synopsis(usage: &[&str]) -> Roff {
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]);
    for line in usage {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        synopsis.text([bold(format!("truecast {name}")), roman(format!(" {rest}"))]);
        synopsis.control("br", []);
    }
    synopsis
}

fn manual(command: Command, title: String) -> Man {
    Man::new(command).title(title).source(format!("truecast {}", env!("CARGO_PKG_VERSION"))).manual("truecast")
}

/// Renders a page. In every part, clap defines the apostrophe again, and only the first definition remains.
fn rendered(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut text = Vec::new();
    write(&mut text).expect("memory takes everything");
    let (mut text, mut once) = (String::from_utf8_lossy(&text).into_owned(), String::new());
    for preamble in [".ie ", ".el "] {
        let is_it = |line: &&str| line.starts_with(preamble);
        let first = text.split_inclusive('\n').find(is_it).unwrap_or_default().to_string();
        once += &first;
        text = text.split_inclusive('\n').filter(|line| !is_it(line)).collect();
    }
    once + &text
}

fn last_sections(see_also: &[&str]) -> Roff {
    let mut roff = Roff::new();
    for (title, rows) in [("EXIT STATUS", &EXIT_STATUS[..]), ("FILES", &FILES[..])] {
        roff.control("SH", [title]);
        for (term, what) in rows {
            roff.control("TP", []);
            roff.text([bold(*term)]);
            roff.text([roman(*what)]);
        }
    }
    roff.control("PP", []);
    roff.text([roman(CLAUSES)]);
    roff.control("SH", ["SEE ALSO"]);
    let others = see_also.iter().map(|name| format!("truecast-{name}(1)"));
    let all: Vec<String> = std::iter::once("truecast(1)".to_string()).chain(others).collect();
    roff.text([roman(all.join(", "))]);
    roff
}
