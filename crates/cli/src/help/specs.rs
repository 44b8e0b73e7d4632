//! Help page of the specifications: description, versions and options, from the table of settings.

use super::page::{filled, joined_if_short, table};
use crate::terminal::{Mark, Terminal};
use truecast::request::{self, Request, SPECS};
use truecast::setting::Setting;
use truecast::spec::table::{Group, TABLES, Table};
use truecast::spec::tosa;

/// Longest list of versions that is shown whole. A longer list is shown as its first and last version.
const MOST_VERSIONS: usize = 8;

pub fn page(terminal: &Terminal) -> String {
    let intro = "A specification defines the result of a cast: the rounding, values out of range, infinities and NaN. \
                 --spec NAME[@VERSION] chooses it; an option of another specification is an error.";
    let all: Vec<(String, String)> = Setting::all()
        .filter_map(|setting| Some(row(setting.about_if_universal()?, setting, &setting.every_value(), None)))
        .collect();
    let every = format!("{}\n{}", heading("every specification", terminal), table(&all, terminal));
    let outro = "`truecast explain VALUE --to TYPE` shows the results under all specifications; TOSA's RESCALE has its own \
                 command, rescale. A scheme (--scheme) is not a specification: see truecast schemes.";
    let specs = SPECS.iter().filter(|spec| Table::of_name(spec).is_none()).map(|spec| of_spec(spec, terminal));
    let groups = [Group::Standard, Group::Language, Group::Chip, Group::Library];
    let tables = groups.into_iter().map(|group| of_group(group, terminal)).chain([of_tables(terminal)]);
    let ends = [every, filled(outro, "", "", terminal)];
    let parts = [filled(intro, "", "", terminal)].into_iter().chain(specs).chain(tables).chain(ends);
    parts.collect::<Vec<_>>().join("\n\n") + "\n"
}

fn of_group(group: Group, terminal: &Terminal) -> String {
    let row_of = |table: &&Table| {
        let versions: Vec<String> = table.versions.iter().map(|version| format!("@{version}")).collect();
        let options =
            Setting::all().filter(|setting| setting.belongs_to(table.name) && setting.about_for_tables().is_some());
        let options: Vec<String> = options.map(|setting| format!("--{}", setting.name())).collect();
        let options = if options.is_empty() { String::new() } else { format!(" ({})", options.join(", ")) };
        (format!("{}{}", table.name, versions.join(", ")), format!("{}{options}", table.about))
    };
    let rows: Vec<_> = TABLES.iter().filter(|table| table.group == group).map(row_of).collect();
    let name = if group == Group::Standard { "other standards" } else { group.name() };
    format!("{}\n{}", heading(name, terminal), table(&rows, terminal))
}

fn of_tables(terminal: &Terminal) -> String {
    let row_of = |setting: &Setting| {
        let mut values: Vec<&str> = Vec::new();
        for value in TABLES.iter().flat_map(|table| setting.values(table.name)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Some(row(setting.about_for_tables()?, setting, &values, None))
    };
    let rows: Vec<_> = Setting::all().filter_map(row_of).collect();
    format!(
        "{}\n{}",
        heading("options of languages and chips, for conversions that offer the choice", terminal),
        table(&rows, terminal)
    )
}

fn of_spec(spec: &str, terminal: &Terminal) -> String {
    let mut lines = vec![heading(&format!("{spec}{}", versions(spec)), terminal)];
    lines.push(filled(&format!("{}.", request::about(spec)), "  ", "  ", terminal));
    let earlier = |setting: &Setting, about: &str| {
        SPECS.iter().take_while(|known| **known != spec).find(|known| setting.about_for(known) == Some(about)).copied()
    };
    let rows = Setting::all().filter_map(|setting| {
        let about = setting.about_for(spec)?;
        Some(row(about, setting, &setting.values(spec), earlier(setting, about)))
    });
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

/// Row of an option with its values. If `described` names a specification with the same option, the row refers to that
/// specification.
fn row(about: &str, setting: &Setting, values: &[&str], described: Option<&str>) -> (String, String) {
    let short = joined_if_short(values);
    let name = match setting.value_name {
        None => format!("--{}", setting.name()),
        Some(value) => format!("--{} {}", setting.name(), short.as_deref().unwrap_or(value)),
    };
    let text = match described {
        Some(spec) => format!("As in {spec}"),
        None if short.is_some() => about.to_string(),
        None => format!("{about}: {}", values.join(", ")),
    };
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
