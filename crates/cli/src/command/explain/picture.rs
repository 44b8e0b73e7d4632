//! The picture: the value among its neighbors, bit patterns under each other, and the answers.

use super::distinct::{self, Distinct};
use super::sentences::{self, ulps};
use super::source::Source;
use super::{Question, code_text, differences};
use crate::command::labels::name_of;
use crate::number_format::NumberFormat;
use crate::output::bits;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use truecast::differ::Given;
use truecast::exact::decode;
use truecast::explain::{Absent, Answer, CodePoint, Decision, Decoded, Explanation, Neighbors};
use truecast::spec::table::{self, Group};
use truecast::{DType, Exact, Kind, Outcome};

pub fn render(args: &Question, e: &Explanation, source: &Source, terminal: &Terminal) -> String {
    let mut text = String::new();
    if let Some(reading) = sentences::reading(args, source) {
        text += &terminal.wrap(&format!("{reading}\n\n"));
    }
    let distinct = distinct::of(e);
    text += &neighborhood(args, e, &distinct, terminal);
    text += &terminal.wrap(&format!("{}\n\n", sentences::decision(args, e, source)));
    text += &distinct::render(args, e, &distinct, terminal);
    text += &answers(args, e, terminal);
    text += &lacking(e, terminal);
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
    /// Codes by kind of number.
    bits: Option<(Kind, u64)>,
    mark: Mark,
}

impl Row {
    fn of(name: &str, element: &Decoded, args: &Question) -> Row {
        let value = match element.nan() {
            Some(nan) if nan.is_quiet == Some(false) => {
                format!("signaling {}", sentences::value(args.exact, element.value))
            }
            _ => sentences::value(args.exact, element.value),
        };
        Row {
            code: code_text(element),
            bits: Some((element.dtype.kind(), element.code)),
            name: name.into(),
            value,
            ..Row::default()
        }
    }

    fn number(name: &str, value: Exact, exact: bool) -> Row {
        Row { name: name.into(), value: sentences::value(exact, value), ..Row::default() }
    }
}

/// The source between its neighbors, the destination's values around it, and its result.
fn neighborhood(args: &Question, e: &Explanation, distinct: &[Distinct], terminal: &Terminal) -> String {
    let scaled = e.scaled.map(|value| Row { mark: Mark::Strong, ..Row::number("scaled", value, args.exact) });
    let rows = source_rows(args, &e.source).into_iter().chain(scaled);
    let of = |name: &str, element: &Decoded| Row::of(name, element, args);
    let rows = rows.chain(destination_rows(&e.neighbors, args.exact, of)).chain(result_rows(args, e, distinct));
    laid_out(rows.collect(), terminal)
}

/// A value in the given notation, among values of a format of P3109.
pub fn of_number(
    value: String,
    neighbors: &Neighbors<CodePoint>,
    to: NumberFormat,
    exact: bool,
    terminal: &Terminal,
) -> String {
    let of = |name: &str, point: &CodePoint| Row {
        code: bits(point.code, to.code_bits()),
        bits: Some((to.kind(), point.code)),
        ..Row::number(name, point.value, exact)
    };
    let here = Row { name: "value".into(), value, mark: Mark::Strong, ..Row::default() };
    laid_out([here].into_iter().chain(destination_rows(neighbors, exact, of)).collect(), terminal)
}

/// A value between its neighbors.
pub fn of_element(args: &Question, element: &Decoded, terminal: &Terminal) -> String {
    laid_out(source_rows(args, element), terminal)
}

fn laid_out(rows: Vec<Row>, terminal: &Terminal) -> String {
    let patterns = aligned(&rows.iter().map(|row| row.bits).collect::<Vec<_>>());
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
        return vec![Row { value, mark: Mark::Strong, ..Row::number("string", source.value, args.exact) }];
    }
    let [previous, next] = source.adjacent();
    let dim = |name, element: &Decoded| Row { mark: Mark::Dim, ..Row::of(name, element, args) };
    let here = Row { mark: Mark::Strong, ..Row::of(source.dtype.name(), source, args) };
    let mut rows: Vec<Row> = previous.iter().map(|element| dim("previous", element)).collect();
    rows.push(here);
    rows.extend(next.iter().map(|element| dim("next", element)));
    rows
}

fn destination_rows<E>(n: &Neighbors<E>, exact: bool, of: impl Fn(&str, &E) -> Row) -> Vec<Row> {
    if n.decision == Decision::Exact {
        return Vec::new();
    }
    let tie = n.decision == Decision::Tie;
    let from_first = n.steps.map_or(String::new(), |steps| ulps(steps, tie));
    let mut to_second = n.steps.map_or(String::new(), |steps| ulps((1.0 - steps).abs(), tie));
    // The remaining part of a step is as exact as the part before it.
    if from_first.starts_with('≈') && !to_second.starts_with('≈') {
        to_second.insert(0, '≈');
    }
    let mut rows = Vec::new();
    if let Some(below) = &n.below {
        rows.push(Row { ulp: from_first.clone(), ..of("below", below) });
    }
    if let Some(above) = &n.above {
        let ulp = if n.below.is_some() { &to_second } else { &from_first };
        rows.push(Row { ulp: ulp.clone(), ..of("above", above) });
    }
    if let Some((step, code)) = &n.beyond {
        let code = match code {
            Some(element) => {
                let Row { code, value, .. } = of("", element);
                format!("{code} is {value}")
            }
            None => "no code".into(),
        };
        rows.push(Row { code, ulp: to_second, ..Row::number("beyond", *step, exact) });
    }
    rows.extend(n.midpoint.map(|midpoint| Row::number("midpoint", midpoint, exact)));
    rows.extend(n.threshold.map(|threshold| Row::number("threshold", threshold, exact)));
    rows
}

/// Each code that some specification gives, once, with the first that gives it; `..` means more. The attributes of a
/// specification are shown if another row has the specification too.
fn result_rows(args: &Question, e: &Explanation, distinct: &[Distinct]) -> Vec<Row> {
    let spec = |label: &str| label.split(['@', ':']).next().unwrap_or_default().to_string();
    let first = |one: &Distinct| one.labels.first().map(|label| spec(label));
    let row = |one: &Distinct| {
        let (Given::Code(code), [label, more @ ..]) = (one.given, &one.labels[..]) else { return None };
        let is_alone = distinct.iter().filter(|other| first(other) == first(one)).count() == 1;
        let name = if is_alone { spec(label) } else { label.clone() };
        let name = if more.is_empty() { name } else { format!("{name} ..") };
        Some(Row::of(&name, &Decoded { dtype: e.to, code, value: decode(e.to, code) }, args))
    };
    distinct.iter().filter_map(row).collect()
}

/// `0 1111 110`: signs under signs, exponents to the right and fractions to the left of one place; other kinds as one
/// binary number.
fn aligned(all: &[Option<(Kind, u64)>]) -> Vec<String> {
    let floats = || {
        all.iter().flatten().filter_map(|(kind, _)| match kind {
            Kind::Float(f) => Some(f),
            _ => None,
        })
    };
    let exponent_width = floats().map(|f| usize::from(f.exp_bits)).max().unwrap_or(0);
    let any_sign = floats().any(|f| f.signed);
    let pattern = |(kind, code): (Kind, u64)| {
        let Kind::Float(f) = kind else { return format!("{code:0width$b}", width = kind.code_bits() as usize) };
        let (sign, exponent, fraction) = f.fields(code);
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
    all.iter().map(|bits| bits.map_or(String::new(), pattern)).collect()
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
            Some(code) => (bits(code, e.to.code_bits()), sentences::value(args.exact, decode(e.to, code))),
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
    for Absent { spec, version, why } in e.absent.iter().filter(|absent| !is_of_table(absent)) {
        let cells = [name_of(spec, version), String::new(), "-".into(), String::new(), why.clone()];
        table.row(cells.map(|cell| Cell::new(cell).mark(Mark::Dim)));
    }
    table.render(terminal)
}

fn is_of_table(absent: &Absent) -> bool {
    table::Table::of_name(absent.spec).is_some()
}

/// The languages, chips and libraries without the pair.
fn lacking(e: &Explanation, terminal: &Terminal) -> String {
    let tables = e.absent.iter().filter(|absent| is_of_table(absent));
    let names: Vec<String> = tables.map(|absent| name_of(absent.spec, &absent.version)).collect();
    if names.is_empty() { String::new() } else { terminal.wrap(&format!("no such conversion: {}\n", names.join(", "))) }
}

/// The clause of each specification, once.
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
