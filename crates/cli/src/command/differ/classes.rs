//! `truecast differ` without operands: classes of specifications that give equal results.

use super::{counts, few_digits, in_words, number, pairs, with_tables};
use crate::args::DifferArgs;
use crate::command::formats::{code_json, given_json};
use crate::command::{Context, labels};
use crate::failure::Failure;
use crate::progress;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use truecast::DType;
use truecast::decimal::to_decimal;
use truecast::differ::{Classes, Given};
use truecast::exact::decode;
use truecast::spec::Interpretation;

/// Longest exact value in a cell, in characters.
const MAX_CELL_CHARS: usize = 12;

/// Names per class, and the names that fit several classes.
struct Labels {
    by_class: Vec<Vec<String>>,
    undecided: Vec<String>,
}

impl Labels {
    fn new(pair: &Classes) -> Labels {
        let classes = pair.classes.iter().map(|class| &class.members).chain([&pair.undecided]);
        let interpretations: Vec<(&Interpretation, usize)> =
            classes.enumerate().flat_map(|(class, members)| members.iter().map(move |i| (i, class))).collect();
        let mut by_class = labels::by_class(&interpretations);
        by_class.resize(pair.classes.len() + 1, Vec::new());
        let undecided = by_class.pop().unwrap_or_default();
        Labels { by_class, undecided }
    }
}

pub fn run(args: &DifferArgs, context: &Context) -> Result<u8, Failure> {
    let pairs = find_classes(args, context)?;
    let to_json = || json!({ "pairs": pairs.iter().map(pair_json).collect::<Value>() });
    context.report("differ", to_json, || render(&pairs, &context.terminal))?;
    Ok((context.quiet && pairs.iter().any(|pair| pair.different > 0)) as u8)
}

/// Returns the classes for every requested pair that some specification converts.
fn find_classes(args: &DifferArgs, context: &Context) -> Result<Vec<Classes>, Failure> {
    let types = pairs(args);
    let bar = progress::steps(types.len() as u64, !context.prints_text());
    let mut pairs = Vec::new();
    for (src, dst) in types {
        pairs.push(Classes::new(src, dst));
        bar.more(1, &format!("{src} to {dst}"));
    }
    bar.finish();
    pairs.retain(|pair| !pair.classes.is_empty());
    if pairs.is_empty() {
        return Err(failure!(InvalidValue, "no specification converts between these types"));
    }
    Ok(pairs)
}

fn pair_json(pair: &Classes) -> Value {
    let labels = Labels::new(pair);
    let classes = pair.classes.iter().zip(&labels.by_class).map(|(class, labels)| {
        let results = class.results.iter().map(|given| given_json(pair.dst, given)).collect::<Value>();
        json!({ "labels": labels, "names": names_json(&class.members), "results": results })
    });
    json!({
        "from": pair.src.name(), "to": pair.dst.name(), "inputs": pair.inputs, "every_input": pair.is_every,
        "different": pair.different, "open": pair.open,
        "witnesses": pair.witnesses.iter().map(|code| code_json(pair.src, *code)).collect::<Value>(),
        "classes": classes.collect::<Value>(),
        "undecided": { "labels": labels.undecided, "names": names_json(&pair.undecided) }
    })
}

fn names_json(members: &[Interpretation]) -> Value {
    members.iter().map(labels::words).collect()
}

fn render(pairs: &[Classes], terminal: &Terminal) -> String {
    let (listed, same): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.classes.len() > 1);
    let mut text = String::new();
    let (open, same): (Vec<_>, Vec<_>) = same.into_iter().partition(|pair| pair.open > 0);
    for (pairs, sentence) in [(&same, "the same results by every name"), (&open, "no defined result differs by name")] {
        if !pairs.is_empty() {
            let pairs = in_words(pairs.iter().map(|pair| (pair.src, pair.dst)));
            text += &terminal.wrap(&format!("{sentence}: {pairs}\n\n"));
        }
    }
    if listed.iter().any(|pair| !pair.undecided.is_empty()) {
        text += &terminal.wrap("open: these names leave the result open where the classes differ\n");
    }
    if pairs.iter().any(|pair| !pair.is_every) {
        text += &terminal.wrap("*: boundary inputs\n");
    }
    let equal = if open.is_empty() { "the same" } else { "no defined result differs" };
    let verdict = terminal.verdict(listed.is_empty(), equal, "DIFFERENT");
    let types = if pairs.len() == 1 { "pair of types" } else { "pairs of types" };
    text += &terminal.wrap(&format!("{verdict}: names differ for {} of {} {types}\n", listed.len(), pairs.len()));
    with_tables(&listed, |pairs| pairs.iter().map(|pair| table(pair, terminal)).collect(), text, terminal)
}

fn table(pair: &Classes, terminal: &Terminal) -> String {
    let Labels { by_class, undecided } = Labels::new(pair);
    let witness = |code: &u64| Column::left(exact_or(pair.src, *code, || number(pair.src, *code))).of_numbers();
    let names = Column::left("names").wraps().of_any_length();
    let mut table = Table::new(pair.witnesses.iter().map(witness).chain([names]));
    let cell = |given: &Given| match *given {
        Given::Code(code) => Cell::new(exact_or(pair.dst, code, || few_digits(decode(pair.dst, code)))),
        Given::Refused => Cell::new("refused"),
        Given::Open => Cell::new("open").mark(Mark::Dim),
    };
    for (class, labels) in pair.classes.iter().zip(&by_class) {
        table.row(class.results.iter().map(cell).chain([labels.join(", ").into()]));
    }
    if !pair.undecided.is_empty() {
        let open = pair.witnesses.iter().map(|_| "open".to_string()).chain([undecided.join(", ")]);
        table.row(open.map(|text| Cell::new(text).mark(Mark::Dim)));
    }
    let counts = counts(pair.different, pair.inputs, pair.is_every);
    format!("{} to {}: {counts} inputs differ\n{}\n", pair.src, pair.dst, table.render(terminal))
}

/// All digits of a value if there are few, otherwise the result of `otherwise`.
fn exact_or(dtype: DType, code: u64, otherwise: impl FnOnce() -> String) -> String {
    let text = to_decimal(decode(dtype, code));
    if text.len() <= MAX_CELL_CHARS { text } else { otherwise() }
}
