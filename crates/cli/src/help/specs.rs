//! Help page of the specifications: description, versions and options, from the table of settings.

use super::page::{filled, joined_if_short, table};
use crate::synonyms;
use crate::terminal::{Mark, Terminal};
use truecast::request::{self, Request, SPECS};
use truecast::setting::Setting;
use truecast::spec::table::{Group, Table};
use truecast::spec::tosa;

/// Longest list of versions that is shown whole. A longer list is shown as its first and last version.
const MOST_VERSIONS: usize = 8;

/// Page of one specification, or of all specifications for `specs`. `None` for other topics.
pub fn page_of(topic: &str, terminal: &Terminal) -> Option<String> {
    if topic == "specs" {
        return Some(page(terminal));
    }
    let spec = synonyms::spec(topic);
    let spec = SPECS.iter().copied().find(|known| spec.split('@').next() == Some(known))?;
    let page = match spec {
        "ieee" => "docs/interfaces.md",
        "tile" => "docs/spec/tile-ir.md",
        _ => &format!("docs/spec/{spec}.md"),
    };
    let lines = ["explain VALUE --to TYPE", "convert SRC DST --to TYPE"];
    let lines = lines.map(|line| format!("  truecast {line} --spec {spec}"));
    let more = format!("{page} has its rules. truecast help specs describes all specifications.");
    let parts = [of_spec(spec, terminal), lines.join("\n"), filled(&more, "", "", terminal)];
    Some(parts.join("\n\n") + "\n")
}

fn page(terminal: &Terminal) -> String {
    let intro = "A specification defines the result of a cast: the rounding, values out of range, infinities and NaN. \
                 --spec NAME[@VERSION] chooses it; an option of another specification is an error. `truecast help NAME` \
                 describes the options of one specification.";
    let all: Vec<(String, String)> = Setting::all()
        .filter_map(|setting| Some(row(setting.about_if_universal()?, setting, &setting.every_value())))
        .collect();
    let every = format!("{}\n{}", heading("every specification", terminal), table(&all, terminal));
    let outro = "Stochastic rounding works with every specification: --seed N in convert, quantize, dequantize, verify, \
                 `check cast` and `vectors cast`; `explain --rounding stochastic` shows the probabilities. \
                 `truecast explain VALUE --to TYPE` shows the results under all specifications; TOSA's RESCALE has its own \
                 command, rescale. A scheme (--scheme) is not a specification: see truecast schemes.";
    let groups = [Group::Standard, Group::Language, Group::Chip, Group::Library];
    let groups = groups.into_iter().map(|group| of_group(group, terminal));
    let ends = [every, filled(outro, "", "", terminal)];
    let parts = [filled(intro, "", "", terminal)].into_iter().chain(groups).chain(ends);
    parts.collect::<Vec<_>>().join("\n\n") + "\n"
}

fn of_group(group: Group, terminal: &Terminal) -> String {
    let is_member = |spec: &&&str| Table::of_name(spec).map_or(Group::Standard, |table| table.group) == group;
    let row_of = |spec: &&str| {
        let versions: Vec<String> = request::versions(spec).iter().map(|version| format!("@{version}")).collect();
        let versions = match versions.as_slice() {
            [first, .., last] if versions.len() > MOST_VERSIONS => format!("{first} to {last}"),
            _ => versions.join(", "),
        };
        let options = Setting::all().filter(|setting| setting.about_for(spec).is_some());
        let options: Vec<String> = options.map(|setting| format!("--{}", setting.name())).collect();
        let options = if options.is_empty() { String::new() } else { format!(" ({})", options.join(", ")) };
        (format!("{spec}{versions}"), format!("{}{options}", request::about(spec)))
    };
    let rows: Vec<_> = SPECS.iter().filter(is_member).map(row_of).collect();
    format!("{}\n{}", heading(group.name(), terminal), table(&rows, terminal))
}

fn of_spec(spec: &str, terminal: &Terminal) -> String {
    let mut lines = vec![heading(&format!("{spec}{}", versions(spec)), terminal)];
    lines.push(filled(&format!("{}.", request::about(spec)), "  ", "  ", terminal));
    let rows = Setting::all().filter_map(|setting| Some(row(setting.about_for(spec)?, setting, &setting.values(spec))));
    let mut rows: Vec<_> = rows.collect();
    if spec == "tosa" {
        let judges = tosa::check::Profile::ALL.map(|profile| profile.name()).join(", ");
        rows.push(("  in `check`".into(), format!("--profile selects the rules: {judges} (default: the version's)")));
    }
    if !rows.is_empty() {
        lines.push(table(&rows, terminal));
    }
    lines.join("\n")
}

/// Row of an option with its values.
fn row(about: &str, setting: &Setting, values: &[&str]) -> (String, String) {
    let short = joined_if_short(values);
    let name = match setting.value_name {
        None => format!("--{}", setting.name()),
        Some(value) => format!("--{} {}", setting.name(), short.as_deref().unwrap_or(value)),
    };
    let text = if short.is_some() { about.to_string() } else { format!("{about}: {}", values.join(", ")) };
    (name, text)
}

/// Text such as `  versions 1.0, 1.1 (default 1.0)`.
fn versions(spec: &str) -> String {
    let all = request::versions(spec);
    let newest = Request::from_attributes(spec, None, []).ok().and_then(|request| request.version());
    match (all.as_slice(), newest) {
        ([first, .., last], Some(default)) if all.len() > MOST_VERSIONS => {
            format!("  versions {first} to {last} (default {default})")
        }
        ([_, _, ..], Some(default)) => format!("  versions {} (default {default})", all.join(", ")),
        ([only], _) => format!("  version {only}"),
        _ => String::new(),
    }
}

fn heading(text: &str, terminal: &Terminal) -> String {
    terminal.paint(Mark::Strong, text)
}
