//! `truecast differ` without operands: classes of specifications that give equal results.

use super::{counts, few_digits, in_words, number, pairs};
use crate::args::DifferArgs;
use crate::command::formats::json_text;
use crate::command::{Context, labels};
use crate::failure::Failure;
use crate::output::bits;
use crate::progress;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use truecast::DType;
use truecast::decimal::to_decimal;
use truecast::differ::{Classes, Given};
use truecast::exact::decode;
use truecast::spec::Interpretation;

/// Largest number of characters of a value that is shown with all digits.
const FEW_DIGITS: usize = 12;

pub fn run(args: &DifferArgs, context: &Context) -> Result<u8, Failure> {
    let all = find_classes(args, context)?;
    context.report("differ", || to_json(&all), || render(&all, &context.terminal))?;
    Ok((context.quiet && all.iter().any(|found| found.different > 0)) as u8)
}

/// Returns the classes for every requested pair that some specification converts.
fn find_classes(args: &DifferArgs, context: &Context) -> Result<Vec<Classes>, Failure> {
    let pairs = pairs(args);
    let bar = progress::steps(pairs.len() as u64, !context.tells());
    let mut all = Vec::new();
    for (src, dst) in pairs {
        all.push(Classes::new(src, dst));
        bar.more(1, &format!("{src} to {dst}"));
    }
    bar.finish();
    all.retain(|found| !found.classes.is_empty());
    if all.is_empty() { Err(failure!(InvalidValue, "no specification converts between these types")) } else { Ok(all) }
}

/// Names per class; the last entry has the names that fit several classes.
fn names(found: &Classes) -> Vec<Vec<String>> {
    let classes = found.classes.iter().map(|class| &class.members).chain([&found.undecided]);
    let all: Vec<(&Interpretation, usize)> =
        classes.enumerate().flat_map(|(at, some)| some.iter().map(move |one| (one, at))).collect();
    let mut labels = labels::by_class(&all);
    labels.resize(found.classes.len() + 1, Vec::new());
    labels
}

fn to_json(all: &[Classes]) -> Value {
    let value = |dtype: DType, code| json!({ "bits": bits(code, dtype.code_bits()), "value": json_text(to_decimal(decode(dtype, code))) });
    let given = |dst: DType, given: &Given| match *given {
        Given::Code(code) => value(dst, code),
        Given::Refused => json!({ "bits": null, "value": "refused" }),
        Given::Open => json!({ "bits": null, "value": "open" }),
    };
    let words = |some: &[Interpretation]| some.iter().map(labels::words).collect::<Value>();
    let pair = |found: &Classes| {
        let labels = names(found);
        let class = |(class, labels): (&truecast::differ::Class, &Vec<String>)| {
            let results = class.results.iter().map(|one| given(found.dst, one));
            json!({ "labels": labels, "names": words(&class.members), "results": results.collect::<Value>() })
        };
        json!({
            "from": found.src.name(), "to": found.dst.name(), "inputs": found.inputs, "every_input": found.is_every,
            "different": found.different, "open": found.open,
            "witnesses": found.witnesses.iter().map(|code| value(found.src, *code)).collect::<Value>(),
            "classes": found.classes.iter().zip(&labels).map(class).collect::<Value>(),
            "undecided": { "labels": labels[found.classes.len()], "names": words(&found.undecided) }
        })
    };
    json!({ "pairs": all.iter().map(pair).collect::<Value>() })
}

fn render(all: &[Classes], terminal: &Terminal) -> String {
    let (listed, same): (Vec<_>, Vec<_>) = all.iter().partition(|found| found.classes.len() > 1);
    let mut text: String = listed.iter().map(|found| table(found, terminal)).collect();
    let (open, same): (Vec<_>, Vec<_>) = same.into_iter().partition(|found| found.open > 0);
    for (some, what) in [(&same, "the same results by every name"), (&open, "no defined result differs by name")] {
        if !some.is_empty() {
            let pairs = in_words(some.iter().map(|found| (found.src, found.dst)));
            text += &terminal.wrap(&format!("{what}: {pairs}\n\n"));
        }
    }
    if listed.iter().any(|found| !found.undecided.is_empty()) {
        text += &terminal.wrap("open: these names leave the result open where the classes differ\n");
    }
    if all.iter().any(|found| !found.is_every) {
        text += &terminal.wrap("*: boundary inputs\n");
    }
    let equal = if open.is_empty() { "the same" } else { "no defined result differs" };
    let verdict = terminal.verdict(listed.is_empty(), equal, "DIFFERENT");
    let pairs = if all.len() == 1 { "pair" } else { "pairs" };
    text + &terminal.wrap(&format!("{verdict}: names differ for {} of {} {pairs} of types\n", listed.len(), all.len()))
}

fn table(found: &Classes, terminal: &Terminal) -> String {
    let witness = |code: &u64| Column::left(short(found.src, *code, || number(found.src, *code))).of_numbers();
    let names_of = Column::left("names").wraps().of_any_length();
    let mut table = Table::new(found.witnesses.iter().map(witness).chain([names_of]));
    let labels = names(found);
    let given = |given: &Given| match *given {
        Given::Code(code) => Cell::new(short(found.dst, code, || few_digits(decode(found.dst, code)))),
        Given::Refused => Cell::new("refused"),
        Given::Open => Cell::new("open").mark(Mark::Dim),
    };
    for (class, labels) in found.classes.iter().zip(&labels) {
        table.row(class.results.iter().map(given).chain([labels.join(", ").into()]));
    }
    if !found.undecided.is_empty() {
        let open = found.witnesses.iter().map(|_| "open".to_string()).chain([labels[found.classes.len()].join(", ")]);
        table.row(open.map(|text| Cell::new(text).mark(Mark::Dim)));
    }
    let counts = counts(found.different, found.inputs, found.is_every);
    format!("{} to {}: {counts} inputs differ\n{}\n", found.src, found.dst, table.render(terminal))
}

/// All digits of a value if there are few, otherwise the result of `otherwise`.
fn short(dtype: DType, code: u64, otherwise: impl FnOnce() -> String) -> String {
    let text = to_decimal(decode(dtype, code));
    if text.len() <= FEW_DIGITS { text } else { otherwise() }
}
