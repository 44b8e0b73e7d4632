//! A report as Markdown, for the card of a model: totals, types, and the worst tensors.

use super::WorstTensor;
use crate::command::provenance;
use crate::message::one_line;
use crate::number::{self, count, decibels, grouped};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use truecast::report::{COUNTS, Provenance};

/// Fields of a report. Other fields are ignored.
#[derive(Deserialize)]
pub struct Report {
    truecast: String,
    command: String,
    #[serde(alias = "first")]
    source: Option<String>,
    #[serde(alias = "second")]
    destination: Option<String>,
    options: Option<Value>,
    verdict: Option<String>,
    bits_per_weight: Option<f64>,
    coverage: Option<f64>,
    #[serde(default)]
    total: Map<String, Value>,
    /// Rows; `verify` has their number.
    #[serde(default)]
    tensors: Value,
    #[serde(default)]
    worst_tensors: Vec<WorstTensor>,
}

/// Refuses a report whose fields have other types.
pub fn check(command: &str, body: &Map<String, Value>) -> Result<(), serde_json::Error> {
    let object = crate::output::object(command, body);
    serde_json::to_vec(&object).and_then(|text| serde_json::from_slice::<Report>(&text)).map(drop)
}

pub fn of(report: &Report) -> String {
    let Report { truecast, command, verdict, worst_tensors, .. } = report;
    let mut text = format!("## truecast {command}\n\n");
    if let Some(verdict) = verdict {
        text += &format!("**{}**\n\n", plain(verdict));
    }
    let facts = facts(report);
    text += &table(["", ""], facts.into_iter().map(|(name, value)| [name.into(), value]));
    if !worst_tensors.is_empty() {
        let row = |worst: &WorstTensor| [code(&worst.name), plain(&worst.why)];
        text += &table(["worst tensors", ""], worst_tensors.iter().map(row));
    }
    text + &format!("Made by truecast {}.\n", plain(truecast))
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let Report { source, destination, total, tensors, .. } = report;
    let number = |name: &str| total.get(name).and_then(Value::as_u64);
    let mut facts = Vec::new();
    facts.extend(source.as_ref().map(|path| ("source", code(path))));
    facts.extend(destination.as_ref().map(|path| ("result", code(path))));
    let options = report.options.as_ref().and_then(|options| Provenance::from_json(options).ok());
    facts.extend(options.map(|options| ("options", code(&provenance::typed(&options)))));
    let tensors_checked = tensors.as_u64().map(|tensors| ("tensors", grouped(tensors)));
    facts.extend(number("tensors").map(|tensors| ("tensors", grouped(tensors))).or(tensors_checked));
    facts.extend(number("elements").map(|elements| ("elements", grouped(elements))));
    if let (Some(before), Some(after)) = (number("bytes_in"), number("bytes_out")) {
        facts.push(("size", format!("{} → {}", number::bytes(before), number::bytes(after))));
    }
    facts.extend(report.bits_per_weight.map(|bits| ("bits per quantized weight", format!("{bits:.2}"))));
    let types = types(tensors.as_array().map_or(&[], Vec::as_slice));
    facts.extend((!types.is_empty()).then_some(("types", types)));
    let group = total.get("converted").filter(|group| group["inexact"].as_u64() > Some(0));
    let sqnr = group.and_then(|group| group["sqnr_db"].as_f64());
    facts.extend(sqnr.map(|sqnr| ("SQNR", format!("{} dB", decibels(sqnr)))));
    let lost = COUNTS.iter().filter(|count| LOSSES.contains(&count.name));
    let lost = lost.filter_map(|count| Some((count.name, number(count.name).filter(|n| *n > 0)?)));
    let lost: Vec<String> = lost.map(|(name, n)| format!("{} {}", grouped(n), name.replace('_', " "))).collect();
    facts.extend((!total.is_empty()).then(|| ("lost", if lost.is_empty() { "none".into() } else { lost.join(", ") })));
    let subnormal = number("subnormal").filter(|n| *n > 0);
    facts.extend(subnormal.map(|n| ("subnormal", count(n, "result"))));
    facts.extend(report.coverage.map(|part| ("checked", format!("{:.1} % of the elements", 100.0 * part))));
    facts
}

/// Counts that lose values.
const LOSSES: [&str; 5] = ["saturated", "wrapped", "to_inf", "to_nan", "flushed_to_zero"];

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
        let change = if from == to { plain(from) } else { format!("{} → {}", plain(from), plain(to)) };
        format!("{change} ({})", count(tensors, "tensor"))
    };
    by.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

fn table(head: [&str; 2], rows: impl Iterator<Item = [String; 2]>) -> String {
    let rows: String = rows.map(|[name, value]| format!("| {name} | {value} |\n")).collect();
    format!("| {} | {} |\n|---|---|\n{rows}\n", head[0], head[1])
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
