//! The different answers, each once, with the names that give it; shown before the list of all.

use super::{Question, json_text, sentences};
use crate::command::labels;
use crate::output::bits;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::cmp::Reverse;
use truecast::Outcome;
use truecast::decimal::to_decimal;
use truecast::differ::Given;
use truecast::exact::decode;
use truecast::explain::Explanation;

/// One answer.
pub struct Distinct {
    pub given: Given,
    /// Number of answers in the list with this result.
    count: usize,
    /// Short names, in the order of the list.
    pub labels: Vec<String>,
}

/// The most frequent answer first, open results last.
pub fn of(e: &Explanation) -> Vec<Distinct> {
    let mut all: Vec<Distinct> = Vec::new();
    let mut classes = Vec::new();
    for answer in &e.answers {
        let given = match answer.outcome {
            Outcome::Defined(code) => Given::Code(code),
            Outcome::Undefined { .. } => Given::Open,
            Outcome::Refused { .. } => Given::Refused,
        };
        let at = all.iter().position(|one| one.given == given).unwrap_or_else(|| {
            all.push(Distinct { given, count: 0, labels: Vec::new() });
            all.len() - 1
        });
        all[at].count += 1;
        classes.push((&answer.interpretation, at));
    }
    for (one, labels) in all.iter_mut().zip(labels::by_class(&classes)) {
        one.labels = labels;
    }
    all.sort_by_key(|one| (one.given == Given::Open, Reverse(one.count)));
    all
}

/// Table of the answers; empty if all agree.
pub fn render(args: &Question, e: &Explanation, all: &[Distinct], terminal: &Terminal) -> String {
    if all.len() < 2 {
        return String::new();
    }
    let answers = all.iter().filter(|one| one.given != Given::Open).count();
    let heading = if answers == 1 { "1 answer".into() } else { format!("{answers} answers") };
    let mut table = Table::new([
        Column::left(heading).of_any_length().of_numbers(),
        Column::left(e.to.name()),
        Column::left("names").wraps().of_any_length(),
    ]);
    for one in all {
        let (value, code) = match one.given {
            Given::Code(code) => (sentences::value(args.exact, decode(e.to, code)), bits(code, e.to.code_bits())),
            Given::Refused => ("refused".into(), "-".into()),
            Given::Open => ("open".into(), "-".into()),
        };
        let mark = if one.given == Given::Open { Mark::Dim } else { Mark::Plain };
        table.row([value, code, one.labels.join(", ")].map(|text| Cell::new(text).mark(mark)));
    }
    table.render(terminal) + "\n"
}

pub fn to_json(e: &Explanation) -> Value {
    let one = |one: Distinct| {
        let (code, value) = match one.given {
            Given::Code(code) => (json!(bits(code, e.to.code_bits())), json_text(to_decimal(decode(e.to, code)))),
            Given::Refused => (Value::Null, "refused".into()),
            Given::Open => (Value::Null, "open".into()),
        };
        json!({ "bits": code, "value": value, "labels": one.labels })
    };
    of(e).into_iter().map(one).collect()
}
