//! `truecast schemes`: quantization of checkpoints, scheme by scheme.

use super::Context;
use crate::args::SchemesArgs;
use crate::failure::Failure;
use crate::terminal::{Mark, Terminal};
use crate::value_parsers::schemes;
use serde_json::{Map, Value, json};
use truecast::scaled::{Family, Kind, NAMES, Scheme, Writing, scheme};

pub fn run(args: &SchemesArgs, context: &Context) -> Result<u8, Failure> {
    match &args.name {
        None => context.answer("schemes", all, || list(&context.terminal))?,
        Some(name) => {
            let scheme = scheme(name).map_err(|error| Failure::of_scheme(&error, &schemes()))?;
            context.answer("schemes", || to_json(scheme.family), || detail(scheme, &context.terminal))?;
        }
    }
    Ok(0)
}

fn written(family: Family) -> &'static str {
    match family.writing() {
        Writing::Never => "no",
        Writing::Yes => "yes",
        Writing::Relayout => "relayout",
        Writing::Gguf => "gguf",
    }
}

fn to_json(family: Family) -> Value {
    json!({
        "name": family.name(),
        "kind": family.kind().name(),
        "stored": family.stored(),
        "written": written(family),
        "used_by": family.used_by(),
        "parameters": family.parameters().iter().map(|parameter| parameter.name()).collect::<Value>(),
    })
}

fn all() -> Value {
    let short: Map<String, Value> = NAMES.into_iter().map(|(short, whole)| (short.into(), whole.into())).collect();
    json!({ "schemes": Family::all().map(to_json).collect::<Value>(), "short_names": short })
}

/// The room of a name on a terminal; a longer one has a line of its own.
const SHORT_NAME: usize = 28;

/// A line of a list with `room` columns for the name.
fn line([name, stored, written, used_by]: [&str; 4], room: usize) -> String {
    let rest = format!("{stored:21} {written:8} {used_by}");
    let line =
        if name.len() > room { format!("  {name}\n  {:room$} {rest}", "") } else { format!("  {name:room$} {rest}") };
    line.trim_end().to_string() + "\n"
}

fn list(terminal: &Terminal) -> String {
    let strong = |text: &str| terminal.paint(Mark::Strong, text) + "\n";
    let longest = Family::all().map(|family| family.name().len()).max().unwrap_or(0);
    let room = terminal.width.map_or(longest, |_| SHORT_NAME);
    let mut text = strong(line(["scheme", "codes, scale per", "written", "used by"], room).trim_end());
    for kind in Kind::ALL {
        text += &format!("\n{}", strong(kind.name()));
        for family in Family::all().filter(|family| family.kind() == kind) {
            text += &line([family.name(), &family.stored(), written(family), family.used_by()], room);
        }
    }
    text += &format!("\n{}", strong("short names for --scheme"));
    text += &NAMES.map(|(short, whole)| line([short, whole, "", ""], room)).concat();
    text += "\ntruecast reads every scheme. In the column `written`, `relayout` means that truecast writes the scheme only \
             with --relayout, which repacks codes and scales; `gguf` means that truecast writes the scheme only to .gguf \
             files.\n";
    text += "Parameters follow the name, as in int4-group,group=32; `truecast schemes NAME` lists them.\n";
    terminal.wrap(&text)
}

fn detail(scheme: Scheme, terminal: &Terminal) -> String {
    let family = scheme.family;
    let parameters =
        family.parameters().iter().map(|parameter| format!("{}={}", parameter.name(), parameter.expected()));
    let parameters: Vec<String> = parameters.collect();
    let rows = [
        ("scheme", scheme.to_string()),
        ("kind", family.kind().name().into()),
        ("stored", family.stored()),
        ("written", written(family).into()),
        ("used by", family.used_by().into()),
        ("parameters", if parameters.is_empty() { "none".into() } else { parameters.join("; ") }),
    ];
    let rows = rows.iter().filter(|(_, value)| !value.is_empty());
    terminal.wrap(&rows.map(|(name, value)| format!("{name:10}  {value}\n")).collect::<String>())
}
