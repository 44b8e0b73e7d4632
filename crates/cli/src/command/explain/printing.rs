//! `truecast explain --to string`: the text of one element under every specification.

use super::source::Source;
use super::{Question, code_text, picture, sentences};
use crate::command::Context;
use crate::command::labels::name_of;
use crate::failure::Failure;
use crate::table::{Column, Table};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use truecast::DType;
use truecast::decimal::to_decimal;
use truecast::exact::decode;
use truecast::explain::{Decoded, explain_printing};
use truecast::policy::Condition;
use truecast::spec::Interpretation;

pub fn run(args: &Question, asked: Vec<Interpretation>, context: &Context) -> Result<u8, Failure> {
    if args.from == DType::String {
        return Err(failure!(InvalidValue, "string to string is a copy; there is nothing to explain"));
    }
    let source = Source::read(&args.value, args.from)?;
    let element = Decoded { dtype: args.from, code: source.code, value: decode(args.from, source.code) };
    let answers = explain_printing(source.code, asked);
    let text = || render(args, &element, &source, &answers, &context.terminal);
    context.answer("explain", || to_json(args, &element, source.exact, &answers), text)?;
    Ok(0)
}

type Answers = [(Interpretation, Result<String, Condition>)];

/// Reason why the specification leaves the text open; `None` if the text is defined.
fn open(interpretation: &Interpretation) -> Option<&'static str> {
    interpretation.cast.undefined.iter().find(|u| u.condition == Condition::Any).map(|u| u.reason)
}

fn render(args: &Question, element: &Decoded, source: &Source, answers: &Answers, terminal: &Terminal) -> String {
    let mut text = String::new();
    if let Some(reading) = sentences::reading(args, source) {
        text += &terminal.wrap(&format!("{reading}\n\n"));
    }
    text += &picture::of_element(args, element, terminal);
    text.push('\n');
    let mut table = Table::new([
        Column::left("specification"),
        Column::left("string").of_any_length(),
        Column::left("clause").wraps(),
    ]);
    for (i, printed) in answers {
        let name = name_of(i.spec, &i.version);
        let printed = printed.clone().unwrap_or_else(|condition| condition.refusal().into());
        let clause = open(i).map_or(i.cast.clause.into(), |reason| format!("UNDEFINED: {reason}"));
        table.row([name, printed, clause]);
    }
    text += &table.render(terminal);
    text
}

fn to_json(args: &Question, element: &Decoded, exact: bool, answers: &Answers) -> Value {
    let value = super::json_text(to_decimal(element.value));
    let results = answers.iter().map(|(i, printed)| {
        json!({
            "spec": i.spec, "version": i.version, "attributes": i.attributes, "to": args.to.name(), "bits": Value::Null,
            "value": printed.as_ref().ok(), "undefined": open(i), "clause": i.cast.clause
        })
    });
    // No implementation is known to print another text than its specification.
    json!({
        "value": args.value, "from": args.from.name(), "to": args.to.name(),
        "source": { "bits": code_text(element), "exact": value, "rounded": !exact },
        "results": results.collect::<Value>(), "known_differences": []
    })
}
