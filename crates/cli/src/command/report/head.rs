//! The head of a report, its verdict and facts: as Markdown for the card of a model, or as HTML.

use crate::command::provenance;
use crate::message::one_line;
use crate::number::{self, count, decibels, grouped, significant};
use serde_json::Value;
use std::collections::BTreeMap;
use truecast::report::Provenance;

/// Name of a fact, its value, and whether the value is code.
type Fact = (&'static str, String, bool);

/// Counts that lose values.
const LOSSES: [&str; 5] = ["saturated", "wrapped", "to_inf", "to_nan", "flushed_to_zero"];

pub fn markdown(report: &Value) -> String {
    let mut text = format!("## {}\n\n", plain(&title(report)));
    if let Some(verdict) = verdict(report) {
        text += &format!("**{}**\n\n", plain(&verdict));
    }
    let row = |(name, value, is_code): Fact| [name.into(), if is_code { code(&value) } else { plain(&value) }];
    text += &table("", facts(report).into_iter().map(row));
    let worst = report["worst_tensors"].as_array().map_or(&[][..], Vec::as_slice);
    let said = worst.iter().filter_map(|one| Some([code(one["name"].as_str()?), plain(one["why"].as_str()?)]));
    if worst.is_empty() { text } else { text + &table("worst tensors", said) }
}

pub fn html(report: &Value) -> String {
    let fact = |(name, value, is_code): Fact| {
        let name_of = if is_code { " class=\"name\"" } else { "" };
        format!("<div><dt>{name}</dt><dd{name_of}>{}</dd></div>\n", escaped(&value))
    };
    let facts: String = facts(report).into_iter().map(fact).collect();
    let verdict = verdict(report).map(|verdict| {
        let is = |words: &[&str]| words.iter().any(|word| verdict.starts_with(word));
        let (kind, mark) = if is(&["normal", "exact", "no error", "equal", "verified"]) {
            ("good", '✓')
        } else if is(&["not normal", "DIFFERENT", "different"]) {
            ("bad", '✗')
        } else {
            ("warn", '•')
        };
        format!("<p class=\"verdict {kind}\">{mark} {}</p>\n", escaped(&verdict))
    });
    format!("<h1>{}</h1>\n{}<dl class=\"facts\">\n{facts}</dl>", escaped(&title(report)), verdict.unwrap_or_default())
}

pub fn title(report: &Value) -> String {
    let command = text(report, "command").unwrap_or("");
    let command = if command == "convert" && report["options"]["scheme"].is_string() { "quantize" } else { command };
    format!("truecast {}: {command}", text(report, "truecast").unwrap_or(""))
}

fn text<'a>(report: &'a Value, name: &str) -> Option<&'a str> {
    report[name].as_str()
}

fn verdict(report: &Value) -> Option<String> {
    let of_equal = report["equal"].as_bool().map(|equal| if equal { "equal as numbers" } else { "different" });
    text(report, "verdict").or(of_equal).map(String::from)
}

fn facts(report: &Value) -> Vec<Fact> {
    let total = &report["total"];
    let is_comparison = report["command"] == "compare";
    let number = |name: &str| total[name].as_u64();
    let mut facts: Vec<Fact> = Vec::new();
    for (name, key) in [("source", "source"), ("result", "destination"), ("first", "first"), ("second", "second")] {
        facts.extend(text(report, key).map(|path| (name, path.into(), true)));
    }
    let options =
        Provenance::from_json(&report["options"]).map_or(String::new(), |options| provenance::typed(&options));
    facts.extend(Some(("options", options, true)).filter(|(_, options, _)| !options.is_empty()));
    let either = |name: &str| number(name).or(report[name].as_u64());
    let mut say = |name, value: Option<String>| facts.extend(value.map(|value| (name, value, false)));
    let tensors = either("tensors").zip(either("elements"));
    say("tensors", tensors.map(|(n, elements)| format!("{} with {}", grouped(n), count(elements, "element"))));
    say(
        "size",
        number("bytes_in").zip(number("bytes_out")).map(|(before, after)| {
            let percent = significant(100.0 * after as f64 / before.max(1) as f64, 4);
            format!("{} → {} ({percent} %)", number::bytes(before), number::bytes(after))
        }),
    );
    say("bits per quantized weight", report["bits_per_weight"].as_f64().map(|bits| format!("{bits:.2}")));
    let types = types(report["tensors"].as_array().map_or(&[], Vec::as_slice));
    say("types", Some(types).filter(|types| !types.is_empty()));
    for (name, compared) in [("converted", "types differ"), ("kept", "same types"), ("integers", "integers")] {
        let group = &total[name];
        let sqnr = group["sqnr_db"].as_f64().filter(|_| group["inexact"].as_u64() > Some(0));
        let sqnr = sqnr.map_or(String::new(), |sqnr| format!(", SQNR {} dB", decibels(sqnr)));
        let tensors = group["tensors"].as_u64().filter(|n| *n > 0);
        say(if is_comparison { compared } else { name }, tensors.map(|n| count(n, "tensor") + &sqnr));
    }
    let lost = LOSSES.iter().filter_map(|name| Some((name, number(name).filter(|n| *n > 0)?)));
    let lost: Vec<String> = lost.map(|(name, n)| format!("{} {}", grouped(n), name.replace('_', " "))).collect();
    // Two files do not show whether a value saturated or was that large.
    let (nothing, more) = match is_comparison {
        true => ("no value became Inf, NaN or zero", "; saturated values are not counted"),
        false => ("no value saturated, wrapped, became Inf, NaN or zero", ""),
    };
    let lost = if lost.is_empty() { nothing.into() } else { lost.join(", ") };
    say("lost", total.is_object().then(|| lost + more));
    say("subnormal", number("subnormal").filter(|n| *n > 0).map(|n| count(n, "result")));
    let checked = report["coverage"].as_f64().filter(|_| either("elements") > Some(0));
    say("checked", checked.map(|part| format!("{:.1} % of the elements", 100.0 * part)));
    facts
}

/// Types before and after, with the number of tensors of each, the most frequent first.
fn types(rows: &[Value]) -> String {
    let mut by: BTreeMap<[&str; 2], u64> = BTreeMap::new();
    for row in rows {
        let side = |scheme: &str, dtype: &str| row[scheme].as_str().or(row[dtype].as_str()).unwrap_or("?");
        *by.entry([side("scheme", "from"), side("to_scheme", "to")]).or_default() += 1;
    }
    let mut by: Vec<_> = by.into_iter().collect();
    by.sort_by_key(|(_, tensors)| std::cmp::Reverse(*tensors));
    let one = |([from, to], tensors): ([&str; 2], u64)| {
        let change = if from == to { from.into() } else { format!("{from} → {to}") };
        format!("{change} ({})", count(tensors, "tensor"))
    };
    by.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

fn table(head: &str, rows: impl Iterator<Item = [String; 2]>) -> String {
    let rows: String = rows.map(|[name, value]| format!("| {name} | {value} |\n")).collect();
    format!("| {head} | |\n|---|---|\n{rows}\n")
}

/// Text in which no character has a meaning in Markdown or HTML.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        if "\\`*_{}[]<>#|~&!$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A name as code, if all of its characters are ordinary.
fn code(text: &str) -> String {
    let text = one_line(text);
    if !text.is_empty() && !text.contains(['`', '|', '\\', '<', '\n']) { format!("`{text}`") } else { plain(&text) }
}

/// Text in which no character has a meaning in HTML.
pub fn escaped(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
