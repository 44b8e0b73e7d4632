//! `truecast quantize SRC DST SCHEME`, which is `truecast convert SRC DST --scheme SCHEME`: its definition is that of
//! `convert`, and its line is rewritten before it is read. The scheme is the last of three or more operands.

use crate::value_parsers;
use clap::{Arg, Command};
use std::ffi::OsString;

const NAMES: [&str; 2] = ["quantize", "quantise"];

/// With the command.
pub fn added_to(root: Command) -> Command {
    let Some(convert) = root.find_subcommand("convert") else { return root };
    let scheme = Arg::new("of_scheme").index(3).value_name("SCHEME").required(true).value_parser(value_parsers::SCHEME);
    let quantize = convert
        .clone()
        .name("quantize")
        .about("Quantize linear layers and experts (same as convert SRC DST --scheme SCHEME)")
        .long_about(
            "Quantizes weights of linear layers and experts. Others stay as they are, or are converted to --to. \
             Same as `convert SRC DST --scheme SCHEME`. `verify` takes --scheme SCHEME too.",
        )
        .mut_arg("scheme", |option| option.hide(true))
        .mut_arg("more", |paths| paths.index(4))
        .mut_arg("dst", |destination| destination.index(2))
        .mut_arg("src", |source| source.index(1).help("Folder of a checkpoint, or a .safetensors or .gguf file"))
        .mut_args(|option| {
            let is_of_models = ["min_elements", "lenient"].contains(&option.get_id().as_str());
            if is_of_models { option.hide(true) } else { option }
        })
        .mut_arg("to", |option| option.help("Type of the other tensors (default: as they are)"))
        .arg(scheme.hide_possible_values(true).help("Scheme, such as fp8-block, mxfp4, nvfp4: see `truecast schemes`"));
    root.subcommand(quantize)
}

/// The line of `convert` that a line of `quantize` stands for. `None` of other lines, of help, and where no scheme is given.
pub fn as_convert(args: &[OsString], definition: &Command) -> Option<Vec<OsString>> {
    let (program, rest) = args.split_first()?;
    let mut at = 0;
    while rest.get(at)?.to_string_lossy().starts_with('-') {
        at += if takes_next(definition, definition, &rest[at].to_string_lossy()) == Some(true) { 2 } else { 1 };
    }
    let asks_help = rest.iter().any(|word| word == "--help" || word == "-h");
    if asks_help || !NAMES.iter().any(|name| rest[at] == *name) {
        return None;
    }
    let convert = definition.find_subcommand("convert")?;
    let mut line = vec![program.clone()];
    line.extend(rest[..at].iter().cloned());
    line.push("convert".into());
    let (mut operands, mut is_value, mut only_operands, mut is_known) = (Vec::new(), false, false, true);
    for word in &rest[at + 1..] {
        let text = word.to_string_lossy();
        if is_value {
            is_value = false;
        } else if !only_operands && text == "--" {
            only_operands = true;
        } else if !only_operands && text.len() > 1 && text.starts_with('-') {
            let takes = takes_next(convert, definition, &text);
            (is_value, is_known) = (takes == Some(true), is_known && takes.is_some());
        } else if is_known {
            // Behind an option that there is not, a word may be its value.
            operands.push(line.len());
        }
        line.push(word.clone());
    }
    let is_given = line.iter().any(|word| word == "--scheme" || word.to_string_lossy().starts_with("--scheme="));
    if let [_, _, .., scheme] = operands[..] {
        let (scheme, behind) = (line.remove(scheme), at + 2);
        line.splice(behind..behind, ["--scheme".into(), scheme]);
    } else if !is_given {
        return None;
    }
    Some(line)
}

/// Whether the next word is the value of an option; `None` if there is no such option.
fn takes_next(convert: &Command, root: &Command, option: &str) -> Option<bool> {
    let mut all = convert.get_arguments().chain(root.get_arguments());
    let known = match option.strip_prefix("--") {
        Some(long) => {
            let (long, _) = long.split_once('=').unwrap_or((long, ""));
            let is_it = |arg: &&Arg| {
                arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
            };
            all.find(is_it)
        }
        None => {
            let last = option.chars().next_back();
            let is_it = |arg: &&Arg| {
                last.is_some_and(|last| {
                    arg.get_short() == Some(last)
                        || arg.get_all_short_aliases().is_some_and(|aliases| aliases.contains(&last))
                })
            };
            all.find(is_it).filter(|_| option.chars().count() == 2)
        }
    };
    match known {
        Some(arg) => Some(!option.contains('=') && arg.get_action().takes_values()),
        // Letters may be several, or one with its value.
        None => (!option.starts_with("--")).then_some(false),
    }
}
