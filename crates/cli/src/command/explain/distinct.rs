//! Distinct answers with their specifications. Printed before the list of all answers.

use super::{Question, sentences};
use crate::command::formats::given_json;
use crate::command::labels;
use crate::output::bits;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use truecast::Outcome;
use truecast::differ::Given;
use truecast::exact::decode;
use truecast::explain::{Answer, Explanation};

pub struct Distinct<'a> {
    pub given: Given,
    pub answers: Vec<&'a Answer>,
    /// Short names of specifications.
    pub labels: Vec<String>,
}

/// Returns the distinct answers: the most frequent answer first, open results last.
pub fn results(e: &Explanation) -> Vec<Distinct<'_>> {
    let mut all: Vec<Distinct> = Vec::new();
    let mut classes = Vec::new();
    for answer in &e.answers {
        let given = match answer.outcome {
            Outcome::Defined(code) => Given::Code(code),
            Outcome::Undefined { .. } => Given::Open,
            Outcome::Refused { .. } => Given::Refused,
        };
        let at = all.iter().position(|one| one.given == given).unwrap_or_else(|| {
            all.push(Distinct { given, answers: Vec::new(), labels: Vec::new() });
            all.len() - 1
        });
        all[at].answers.push(answer);
        classes.push((&answer.interpretation, at));
    }
    for (one, labels) in all.iter_mut().zip(labels::by_class(&classes)) {
        one.labels = labels;
    }
    all.sort_by_key(|one| (one.given == Given::Open, Reverse(one.answers.len())));
    all
}

/// Largest number of names per answer; `and N more` follows.
const MOST_NAMES: usize = 12;

/// Text of the distinct answers. One line if all answers agree.
pub fn render(args: &Question, e: &Explanation, all: &[Distinct<'_>], terminal: &Terminal) -> String {
    let value = |code| sentences::value(args.exact, decode(e.to, code));
    let code_of = |code| bits(code, e.to.code_bits());
    if let [one] = all {
        let specs: BTreeSet<&str> = e.answers.iter().map(|answer| answer.interpretation.spec).collect();
        let who = match (specs.len(), &one.labels[..]) {
            (1, [name]) => name.clone(),
            (count, _) => format!("all {count} names agree"),
        };
        let code = e.answers[0]
            .outcome
            .code()
            .filter(|code| e.answers.iter().all(|other| other.outcome.code() == Some(*code)));
        let code = code.map_or(String::new(), |code| format!("{} = {}", code_of(code), value(code)));
        let what = match one.given {
            Given::Code(_) => code,
            Given::Refused => "refused".into(),
            Given::Open => format!("open {code}").trim_end().into(),
        };
        return terminal.wrap(&format!("{who}: {what}\n"));
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
            Given::Code(code) => (value(code), code_of(code)),
            Given::Refused => ("refused".into(), "-".into()),
            Given::Open => ("open".into(), "-".into()),
        };
        let mark = if one.given == Given::Open { Mark::Dim } else { Mark::Plain };
        let names = match one.labels.len() {
            // A single further name is as short as `and 1 more`.
            count if count > MOST_NAMES + 1 => {
                format!("{} and {} more", one.labels[..MOST_NAMES].join(", "), count - MOST_NAMES)
            }
            _ => one.labels.join(", "),
        };
        table.row([value, code, names].map(|text| Cell::new(text).mark(mark)));
    }
    table.render(terminal)
}

pub fn to_json(e: &Explanation) -> Value {
    let one = |one: Distinct<'_>| {
        let mut object = given_json(e.to, &one.given);
        object["labels"] = json!(one.labels);
        object
    };
    results(e).into_iter().map(one).collect()
}
