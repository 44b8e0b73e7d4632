//! What is seen: the value among its neighbors, bit patterns under each other, and the answers.

use super::sentences::{self, ulps};
use super::source::Source;
use super::{Question, code_text, differences, name_of};
use crate::output::bits;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use truecast::exact::decode;
use truecast::explain::{Absent, Answer, Decision, Decoded, Explanation};
use truecast::spec::Interpretation;
use truecast::spec::table::Group;
use truecast::{DType, Exact, Kind, Outcome};

pub fn render(args: &Question, e: &Explanation, source: &Source, terminal: &Terminal) -> String {
    let mut text = String::new();
    if let Some(reading) = sentences::reading(args, source) {
        text += &terminal.wrap(&format!("{reading}\n\n"));
    }
    text += &neighborhood(args, e, terminal);
    text += &terminal.wrap(&format!("{}\n\n", sentences::decision(args, e, source)));
    text += &answers(args, e, terminal);
    text.push('\n');
    text += &clauses(e, terminal);
    text + &differences::render(e, terminal)
}

/// One line of the picture; every column means one thing in all of them.
#[derive(Default)]
struct Row {
    name: String,
    value: String,
    code: String,
    ulp: String,
    element: Option<Decoded>,
    mark: Mark,
}

impl Row {
    fn of(name: &str, element: &Decoded, args: &Question) -> Row {
        let value = match element.nan() {
            Some(nan) if nan.is_quiet == Some(false) => format!("signaling {}", sentences::value(args, element.value)),
            _ => sentences::value(args, element.value),
        };
        Row { code: code_text(element), element: Some(element.clone()), name: name.into(), value, ..Row::default() }
    }

    fn number(name: &str, value: Exact, args: &Question) -> Row {
        Row { name: name.into(), value: sentences::value(args, value), ..Row::default() }
    }
}

/// The source between its neighbors, the destination's values around it, and what it becomes.
fn neighborhood(args: &Question, e: &Explanation, terminal: &Terminal) -> String {
    let rows = source_rows(args, &e.source).into_iter();
    laid_out(rows.chain(destination_rows(args, e)).chain(result_rows(args, e)).collect(), terminal)
}

/// A value between its neighbors.
pub fn of_element(args: &Question, element: &Decoded, terminal: &Terminal) -> String {
    laid_out(source_rows(args, element), terminal)
}

fn laid_out(rows: Vec<Row>, terminal: &Terminal) -> String {
    let elements: Vec<Option<&Decoded>> = rows.iter().map(|row| row.element.as_ref()).collect();
    let patterns = aligned(&elements);
    let mut table = Table::new([
        Column::left(""),
        Column::left("value").of_any_length().of_numbers(),
        Column::left("code"),
        Column::right("ulp"),
        Column::left("bits"),
    ]);
    for (row, pattern) in rows.into_iter().zip(patterns) {
        let cells = [row.name, row.value, row.code, row.ulp, pattern];
        table.row(cells.map(|cell| Cell::new(cell).mark(row.mark)));
    }
    table.render(terminal)
}

fn source_rows(args: &Question, source: &Decoded) -> Vec<Row> {
    if source.dtype == DType::String {
        let value = match args.value.chars().count() {
            0..=40 => args.value.clone(),
            n => format!("{}…, {n} characters", args.value.chars().take(32).collect::<String>()),
        };
        return vec![Row { value, mark: Mark::Strong, ..Row::number("string", source.value, args) }];
    }
    let [previous, next] = source.adjacent();
    let dim = |name, element: &Decoded| Row { mark: Mark::Dim, ..Row::of(name, element, args) };
    let here = Row { mark: Mark::Strong, ..Row::of(source.dtype.name(), source, args) };
    let mut rows: Vec<Row> = previous.iter().map(|element| dim("previous", element)).collect();
    rows.push(here);
    rows.extend(next.iter().map(|element| dim("next", element)));
    rows
}

fn destination_rows(args: &Question, e: &Explanation) -> Vec<Row> {
    let n = &e.neighbors;
    if n.decision == Decision::Exact {
        return Vec::new();
    }
    let tie = n.decision == Decision::Tie;
    let from_first = n.steps.map_or(String::new(), |steps| ulps(steps, tie));
    let mut to_second = n.steps.map_or(String::new(), |steps| ulps((1.0 - steps).abs(), tie));
    // What is left of one step is no more exact than the part of it.
    if from_first.starts_with('≈') && !to_second.starts_with('≈') {
        to_second.insert(0, '≈');
    }
    let mut rows = Vec::new();
    if let Some(below) = &n.below {
        rows.push(Row { ulp: from_first.clone(), ..Row::of("below", below, args) });
    }
    if let Some(above) = &n.above {
        let ulp = if n.below.is_some() { &to_second } else { &from_first };
        rows.push(Row { ulp: ulp.clone(), ..Row::of("above", above, args) });
    }
    if let Some((step, code)) = &n.beyond {
        let code = match code {
            Some(element) => format!("{} is {}", code_text(element), sentences::value(args, element.value)),
            None => "no code".into(),
        };
        rows.push(Row { code, ulp: to_second, ..Row::number("beyond", *step, args) });
    }
    rows.extend(n.midpoint.map(|midpoint| Row::number("midpoint", midpoint, args)));
    rows.extend(n.threshold.map(|threshold| Row::number("threshold", threshold, args)));
    rows
}

/// Each code that some specification gives, once, with the first that gives it; `..` stands for more.
fn result_rows(args: &Question, e: &Explanation) -> Vec<Row> {
    let mut codes: Vec<(u64, &Interpretation, &str)> = Vec::new();
    for Answer { interpretation, outcome } in &e.answers {
        let Some(code) = outcome.code() else { continue };
        match codes.iter_mut().find(|(known, ..)| *known == code) {
            None => codes.push((code, interpretation, "")),
            Some((.., more)) => *more = " ..",
        }
    }
    let row = |(code, i, more): &(u64, &Interpretation, &str)| {
        let is_alone = codes.iter().filter(|(_, other, _)| other.spec == i.spec).count() == 1;
        let attribute = i.attributes.rsplit(", ").next().filter(|word| !is_alone && !word.is_empty());
        let name = format!("{}{}{more}", i.spec, attribute.map_or(String::new(), |word| format!(" {word}")));
        Row::of(&name, &Decoded { dtype: e.to, code: *code, value: decode(e.to, *code) }, args)
    };
    codes.iter().map(row).collect()
}

/// `0 1111 110`: signs under signs, exponents to the right and fractions to the left of one place; other kinds as one
/// binary number.
fn aligned(elements: &[Option<&Decoded>]) -> Vec<String> {
    let float = |element: &Decoded| match element.dtype.kind() {
        Kind::Float(f) => Some(f),
        _ => None,
    };
    let floats = || elements.iter().flatten().filter_map(|element| float(element));
    let exponent_width = floats().map(|f| usize::from(f.exp_bits)).max().unwrap_or(0);
    let any_sign = floats().any(|f| f.signed);
    let pattern = |element: &Decoded| {
        let Some((sign, exponent, fraction)) = element.fields() else {
            return format!("{:0width$b}", element.code, width = element.dtype.code_bits() as usize);
        };
        let f = float(element).expect("it has fields");
        let sign = match sign {
            Some(sign) => format!("{} ", sign as u8),
            None if any_sign => "  ".into(),
            None => String::new(),
        };
        let exponent = format!("{exponent:0width$b}", width = f.exp_bits.into());
        let fraction = match f.man_bits {
            0 => String::new(),
            bits => format!(" {fraction:0width$b}", width = bits.into()),
        };
        format!("{sign}{exponent:>exponent_width$}{fraction}")
    };
    elements.iter().map(|element| element.map_or(String::new(), pattern)).collect()
}

fn answers(args: &Question, e: &Explanation, terminal: &Terminal) -> String {
    let mut table = Table::new([
        Column::left("specification"),
        Column::left("attributes").wraps(),
        Column::left(e.to.name()),
        Column::left("value").shrinks().of_any_length().of_numbers(),
        Column::left("").wraps(),
    ]);
    let mut last = None;
    let is_grouped = e.answers.iter().any(|answer| answer.interpretation.group() != Group::Standard);
    for Answer { interpretation: i, outcome } in &e.answers {
        if is_grouped && last != Some(i.group()) {
            last = Some(i.group());
            let heading = [i.group().name(), "", "", "", ""];
            table.row(heading.map(|cell| Cell::new(cell).mark(Mark::Dim)));
        }
        let (code, value) = match outcome.code() {
            Some(code) => (bits(code, e.to.code_bits()), sentences::value(args, decode(e.to, code))),
            None => ("-".into(), String::new()),
        };
        let note = match outcome {
            Outcome::Defined(_) => Cell::default(),
            Outcome::Undefined { .. } => Cell::new("UNDEFINED").mark(Mark::Warn),
            Outcome::Refused { .. } => Cell::new("refused").mark(Mark::Bad),
        };
        let cells = [name_of(i.spec, &i.version), i.attributes.clone(), code, value].map(Cell::from);
        table.row(cells.into_iter().chain([note]));
    }
    for Absent { spec, version, why } in &e.absent {
        let cells = [name_of(spec, version), String::new(), "-".into(), String::new(), why.clone()];
        table.row(cells.map(|cell| Cell::new(cell).mark(Mark::Dim)));
    }
    table.render(terminal)
}

/// Where each specification says so, once.
fn clauses(e: &Explanation, terminal: &Terminal) -> String {
    let mut table = Table::new([Column::left("specification"), Column::left("clause").wraps()]);
    let mut seen = Vec::new();
    for Answer { interpretation: i, outcome } in &e.answers {
        let clause = match outcome {
            Outcome::Undefined { reason, .. } => format!("UNDEFINED: {reason}"),
            _ => i.cast.clause.into(),
        };
        let row = [name_of(i.spec, &i.version), clause];
        if !seen.contains(&row) {
            table.row(row.clone());
            seen.push(row);
        }
    }
    table.render(terminal)
}
