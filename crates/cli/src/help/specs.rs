//! The page of the specifications, made from their table of settings: what each is, its versions, its options.

use super::page::{filled, joined_if_short, table};
use crate::terminal::{Mark, Terminal};
use truecast::request::{self, Request, SPECS};
use truecast::setting::Setting;
use truecast::spec::tosa;

/// Versions that are more are named by the first and the last.
const MOST_VERSIONS: usize = 8;

/// The page.
pub fn page(terminal: &Terminal) -> String {
    let intro = "A specification defines the result of a cast: the rounding, values out of range, infinities and NaN. \
                 --spec NAME[@VERSION] chooses it; an option of another specification is an error.";
    let all: Vec<(String, String)> = Setting::all()
        .filter_map(|setting| Some(row(setting.about_of_every()?, setting, &setting.every_value(), None)))
        .collect();
    let every = format!("{}\n{}", heading("every specification", terminal), table(&all, "  ", terminal));
    let outro = "`truecast explain VALUE --to TYPE` shows the results under all specifications; TOSA's RESCALE has its own \
                 command, rescale. A scheme (--scheme) is not a specification: see truecast schemes.";
    let specs = SPECS.iter().map(|spec| of_spec(spec, terminal));
    let ends = [every, filled(outro, "", "", terminal)];
    let parts = [filled(intro, "", "", terminal)].into_iter().chain(specs).chain(ends);
    parts.collect::<Vec<_>>().join("\n\n") + "\n"
}

fn of_spec(spec: &str, terminal: &Terminal) -> String {
    let mut lines = vec![heading(&format!("{spec}{}", versions(spec)), terminal)];
    lines.push(filled(&format!("{}.", request::about(spec)), "  ", "  ", terminal));
    let earlier = |setting: &Setting, about: &str| {
        SPECS.iter().take_while(|known| **known != spec).find(|known| setting.about_of(known) == Some(about)).copied()
    };
    let rows = Setting::all().filter_map(|setting| {
        let about = setting.about_of(spec)?;
        Some(row(about, setting, &setting.values(spec), earlier(setting, about)))
    });
    let mut rows: Vec<_> = rows.collect();
    if spec == "tosa" {
        let judges = tosa::check::Profile::ALL.map(|profile| profile.name()).join(", ");
        rows.push(("  in `check`".into(), format!("The rules of --profile: {judges} (default: those of the version)")));
    }
    if !rows.is_empty() {
        lines.push(table(&rows, "  ", terminal));
    }
    lines.join("\n")
}

/// An option with its values. One that another specification described is not described again.
fn row(about: &str, setting: &Setting, values: &[&str], described: Option<&str>) -> (String, String) {
    let short = joined_if_short(values);
    let name = match setting.value_name {
        None => format!("--{}", setting.name()),
        Some(value) => format!("--{} {}", setting.name(), short.as_deref().unwrap_or(value)),
    };
    let text = match described {
        Some(spec) => format!("As of {spec}"),
        None if short.is_some() => about.to_string(),
        None => format!("{about}: {}", values.join(", ")),
    };
    (name, text)
}

/// `  versions 1.0, 1.1 (default 1.0)`.
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
