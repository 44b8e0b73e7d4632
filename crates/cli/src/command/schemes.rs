//! `truecast schemes`: the quantization schemes of checkpoints.

use super::Context;
use crate::args::SchemesArgs;
use crate::failure::Failure;
use crate::goals::{GOALS, Goal};
use crate::number::decibels;
use crate::table::{Column, Table};
use crate::terminal::{Mark, Reader, Terminal};
use crate::value_parsers::schemes;
use serde_json::{Map, Value, json};
use std::path::Path;
use truecast::report::usual_sqnr_db;
use truecast::scaled::{Family, Kind, NAMES, Scheme, Writing, scheme, scheme_for};

pub fn run(args: &SchemesArgs, context: &Context) -> Result<u8, Failure> {
    match &args.name {
        None if context.terminal.width.is_some() => context.answer("schemes", all, || by_goal(&context.terminal))?,
        None => context.answer("schemes", all, || by_goal(&context.terminal) + "\n" + &list(&context.terminal))?,
        Some(name) => {
            let scheme = scheme(name).map_err(|error| Failure::of_scheme(&error, &schemes()))?;
            let file = Path::new("model.safetensors");
            let of_file = scheme_for(name, &[file], file).map_or(scheme, |meaning| meaning.scheme);
            context.answer("schemes", || to_json(scheme.family), || detail(scheme, of_file, &context.terminal))?;
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

/// Every scheme as JSON, and the schemes by goal.
fn all() -> Value {
    let short: Map<String, Value> = NAMES.into_iter().map(|(short, whole)| (short.into(), whole.into())).collect();
    let goal = |&Goal { goal, scheme, bits, codes, loads_in }: &Goal| {
        let usual_sqnr_db = usual_sqnr_db(codes, true);
        json!({
            "goal": goal, "scheme": scheme, "bits": bits, "usual_sqnr_db": usual_sqnr_db, "loads_in": loads_in
        })
    };
    json!({
        "schemes": Family::all().map(to_json).collect::<Value>(), "short_names": short,
        "goals": GOALS.iter().map(goal).collect::<Value>()
    })
}

/// Row of a scheme. `room` is the width of the name.
fn line([name, stored, written, used_by]: [&str; 4], room: usize) -> String {
    format!("  {name:room$} {stored:21} {written:8} {used_by}").trim_end().to_string() + "\n"
}

/// Number of weights in the example model.
const PARAMETERS: f64 = 7e9;

fn by_goal(terminal: &Terminal) -> String {
    let mut table = Table::new([
        Column::left("for"),
        Column::left("scheme"),
        Column::right("bits").drops(1),
        Column::right("7B"),
        Column::right("dB"),
        Column::left("loads in"),
    ]);
    for Goal { goal, scheme, bits, codes, loads_in } in &GOALS {
        let size = format!("{:.1} GB", PARAMETERS * bits / 8e9);
        let noise = usual_sqnr_db(*codes, true).map_or(String::new(), decibels);
        table.row([*goal, scheme, &format!("{bits:.2}"), &size, &noise, loads_in]);
    }
    let is_in_python = terminal.reader == Reader::Python;
    let usage = if is_in_python { "convert(src, dst, scheme=..)" } else { "truecast quantize SRC DST SCHEME" };
    let mut text = terminal.wrap(&format!(
        "{usage}. Columns: bits of a weight, size of 7 billion weights, usual SQNR, and what loads it (as seen with vLLM \
         0.33 and transformers 5.24).\n\n",
    ));
    text += &table.render(terminal);
    if terminal.width.is_none() {
        return text;
    }
    let names = |families: &mut dyn Iterator<Item = Family>| families.map(Family::name).collect::<Vec<_>>().join(", ");
    for kind in Kind::ALL {
        let of_kind = || Family::all().filter(move |family| family.kind() == kind);
        let written = names(&mut of_kind().filter(|family| family.writing() != Writing::Never));
        let read = names(&mut of_kind().filter(|family| family.writing() == Writing::Never));
        let parts = [("", written), ("read only: ", read)].into_iter().filter(|(_, names)| !names.is_empty());
        let parts: Vec<String> = parts.map(|(what, names)| what.to_owned() + &names).collect();
        text += &terminal.wrap(&format!("\n{}: {}", terminal.paint(Mark::Strong, kind.name()), parts.join("; ")));
    }
    let more = match is_in_python {
        true => "schemes(name) describes one scheme; to_dict() has all with their codes and scales",
        false => "`truecast schemes NAME` describes one scheme; --wide or a pipe lists all with their codes and scales",
    };
    text + &terminal.wrap(&format!("\n\n{more}\n"))
}

fn list(terminal: &Terminal) -> String {
    let strong = |text: &str| terminal.paint(Mark::Strong, text) + "\n";
    let room = Family::all().map(|family| family.name().len()).max().unwrap_or(0);
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

/// Text about a scheme. `of_file` is the scheme that the same name has for a single `.safetensors` file.
fn detail(scheme: Scheme, of_file: Scheme, terminal: &Terminal) -> String {
    let family = scheme.family;
    let parameters =
        family.parameters().iter().map(|parameter| format!("{}={}", parameter.name(), parameter.expected()));
    let parameters: Vec<String> = parameters.collect();
    let rows = [
        ("scheme", scheme.to_string()),
        (
            "of a file",
            if of_file == scheme { String::new() } else { format!("{of_file}, for a single .safetensors file") },
        ),
        ("kind", family.kind().name().into()),
        ("stored", family.stored()),
        ("written", written(family).into()),
        ("used by", family.used_by().into()),
        ("parameters", if parameters.is_empty() { "none".into() } else { parameters.join("; ") }),
    ];
    let rows = rows.iter().filter(|(_, value)| !value.is_empty());
    terminal.wrap(&rows.map(|(name, value)| format!("{name:10}  {value}\n")).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if both schemes are equal. `group=` implies `strategy=group`, which may be omitted.
    fn is_same(a: Scheme, b: Scheme) -> bool {
        let [a, b] = [a, b].map(|scheme| scheme.to_string().replace(",strategy=group", ""));
        a == b
    }

    /// Each scheme can be written, and `docs/loads.md` has an unrestricted row for Llama.
    #[test]
    fn goals_are_written_and_load() {
        let page = include_str!("../../../../docs/loads.md");
        let sections: Vec<&str> = page.split("\n## ").collect();
        for Goal { goal, scheme: name, loads_in, .. } in &GOALS {
            let scheme = scheme(name).unwrap();
            assert!(matches!(scheme.family.writing(), Writing::Yes | Writing::Gguf), "{goal}");
            for (program, heading) in [("vLLM", "vLLM\n"), ("transformers", "transformers\n")] {
                let section = sections.iter().find(|section| section.starts_with(heading)).unwrap();
                let is_row = |line: &&str| {
                    let row = line.split('`').nth(1);
                    row.is_some_and(|row| super::scheme(row).is_ok_and(|of_row| is_same(of_row, scheme)))
                };
                if loads_in.contains(program) {
                    let rows: Vec<&str> = section.lines().filter(is_row).collect();
                    assert!(
                        rows.iter().any(|row| row.split('|').nth(2).unwrap().trim() == "="),
                        "{goal} {program}: {rows:?}"
                    );
                }
            }
        }
        let said = by_goal(&Terminal::default());
        for (release, on_page) in [("vLLM 0.33", "vLLM** 0.33"), ("transformers 5.24", "transformers** 5.24")] {
            assert!(page.contains(on_page) && said.contains(release), "{release}");
        }
    }
}
