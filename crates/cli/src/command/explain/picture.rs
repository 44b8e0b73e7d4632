//! Picture of a conversion: the value on a number line, and the answers. `--clauses` adds aligned bit patterns, all
//! names and the clauses.

use super::sentences::{self, ulps};
use super::source::Source;
use super::{Question, code_text, differences, distinct};
use crate::command::labels::name_of;
use crate::exact_decimal::brief;
use crate::message::one_line;
use crate::number_format::NumberFormat;
use crate::output::bits;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::{Reader, Terminal};
use truecast::decimal::to_decimal;
use truecast::differ::Given;
use truecast::exact::decode;
use truecast::explain::{Absent, Answer, CodePoint, Decision, Decoded, Explanation, Neighbors};
use truecast::spec::table::{self, Group};
use truecast::{DType, Exact, Kind, Outcome};

pub fn render(args: &Question, e: &Explanation, source: &Source, terminal: &Terminal) -> String {
    let reading = sentences::reading(args, source).map_or(String::new(), |reading| reading + "\n");
    let place = number_line(args, e, terminal).unwrap_or_else(|| sentences::decision(args, e, source) + "\n");
    let more = match terminal.reader {
        Reader::Python => Reader::Python.advice(),
        Reader::CommandLine => "--clauses shows the table and the clauses",
    };
    let more = terminal.paint(Mark::Dim, more);
    let mut answers = distinct::results(e);
    answers.sort_by_key(|one| (one.given == Given::Open, one.answers.len())); // rare answers come first
    let text = terminal.wrap(&(input(args, e, terminal) + &reading + &place)) + "\n";
    text + &distinct::render(args, e, &answers, terminal) + &differences::render(e, terminal) + &format!("\n{more}\n")
}

/// Picture with all neighbors, a table of answers, and the clauses.
pub fn with_clauses(args: &Question, e: &Explanation, source: &Source, terminal: &Terminal) -> String {
    let mut text = String::new();
    if let Some(reading) = sentences::reading(args, source) {
        text += &terminal.wrap(&format!("{reading}\n\n"));
    }
    text += &neighborhood(args, e, terminal);
    text += &terminal.wrap(&format!("{}\n\n", sentences::decision(args, e, source)));
    text += &distinct::render(args, e, &distinct::results(e), terminal);
    text.push('\n');
    text += &answers(args, e, terminal);
    text += &lacking(e, terminal);
    text.push('\n');
    text += &clauses(e, terminal);
    text + &differences::render(e, terminal)
}

/// Line such as `f32 1.5 = 0x3fc00000 = 0 01111111 10000000000000000000000`.
fn input(args: &Question, e: &Explanation, terminal: &Terminal) -> String {
    let Row { name, value, code, bits, .. } = source_row(args, &e.source);
    let is_brief = terminal.width.is_some() && !args.exact && matches!(e.source.value, Exact::Finite { .. });
    let value = if is_brief && bits.is_some() { brief(e.source.value) } else { value };
    let scaled = e.scaled.map_or(String::new(), |to| format!(", scaled to {}", sentences::value(args.exact, to)));
    let value = one_line(&value);
    let Some((kind, bits)) = bits else { return format!("{name} {value}{scaled}\n") };
    let marks = [Mark::Sign, Mark::Exponent, Mark::Significand];
    let fields = parts(kind, bits).into_iter().zip(marks).filter(|(field, _)| !field.is_empty());
    let fields: Vec<String> = fields.map(|(field, mark)| terminal.paint(mark, &field)).collect();
    format!("{name} {value} = {code} = {}{scaled}\n", fields.join(" "))
}

/// Width in characters of the number line between the two neighbors.
const STEPS: usize = 32;

/// Number line with the value, the two neighbors in the destination, and the midpoint. The next line has the labels.
/// `None` if the value lacks a neighbor.
fn number_line(args: &Question, e: &Explanation, terminal: &Terminal) -> Option<String> {
    let n = &e.neighbors;
    let value = |v| if args.exact { to_decimal(v) } else { brief(v) };
    let named = |element: &Decoded| [code_text(element), value(element.value)];
    let beyond = || {
        let (step, code) = n.beyond.as_ref()?;
        let code = code.as_ref().map(named).map_or("no code".into(), |[code, value]| format!("{code} is {value}"));
        Some([code, value(*step)])
    };
    let part = n.steps.filter(|steps| *steps <= 1.0)?;
    let from_left = if n.below.is_some() { part } else { 1.0 - part };
    let [low_code, low] = n.below.as_ref().map(named).or_else(beyond)?;
    let [high_code, high] = n.above.as_ref().map(named).or_else(beyond)?;
    let midpoint = format!("{} (midpoint)", value(n.midpoint?));
    let here = match e.source.dtype {
        DType::String => one_line(&source_row(args, &e.source).value),
        _ => value(e.scaled.unwrap_or(e.source.value)),
    };
    let near = (from_left * STEPS as f64).round() as usize;
    let (inner, star) = match n.decision {
        Decision::Below => (vec![here, midpoint], near.clamp(1, STEPS / 2 - 1)),
        Decision::Above => (vec![midpoint, here], near.clamp(STEPS / 2 + 1, STEPS - 1)),
        _ => (vec![midpoint], STEPS / 2),
    };
    let cell = |at| match at {
        0 | STEPS => "|".into(),
        _ if at == star => terminal.paint(Mark::Strong, "*"),
        _ if at == STEPS / 2 => "+".into(),
        _ => "-".to_string(),
    };
    let line: String = (0..=STEPS).map(cell).collect();
    Some(format!("{low_code} {line} {high_code}\n{low} < {} < {high}\n", inner.join(" < ")))
}

#[derive(Default)]
struct Row {
    name: String,
    value: String,
    code: String,
    ulp: String,
    bits: Option<(Kind, u64)>,
    mark: Mark,
}

impl Row {
    fn new(name: &str, element: &Decoded, args: &Question) -> Row {
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

/// Text that shows the source between its neighbors, and shows the neighbors in the destination.
fn neighborhood(args: &Question, e: &Explanation, terminal: &Terminal) -> String {
    let scaled = e.scaled.map(|value| Row { mark: Mark::Strong, ..Row::number("scaled", value, args.exact) });
    let rows = source_rows(args, &e.source).into_iter().chain(scaled);
    let of = |name: &str, element: &Decoded| Row::new(name, element, args);
    laid_out(rows.chain(destination_rows(&e.neighbors, args.exact, of)).collect(), terminal)
}

/// A formatted value among its neighbors in a P3109 format.
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

/// An element between its neighbors in its own type.
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

fn source_row(args: &Question, source: &Decoded) -> Row {
    if source.dtype == DType::String {
        let value = match args.value.chars().count() {
            0..=40 => args.value.clone(),
            n => format!("{}…, {n} characters", args.value.chars().take(32).collect::<String>()),
        };
        return Row { value, mark: Mark::Strong, ..Row::number("string", source.value, args.exact) };
    }
    Row { mark: Mark::Strong, ..Row::new(source.dtype.name(), source, args) }
}

fn source_rows(args: &Question, source: &Decoded) -> Vec<Row> {
    let [previous, next] = source.adjacent();
    let dim = |name, element: &Decoded| Row { mark: Mark::Dim, ..Row::new(name, element, args) };
    let previous = previous.iter().map(|element| dim("previous", element));
    let next = next.iter().map(|element| dim("next", element));
    previous.chain([source_row(args, source)]).chain(next).collect()
}

fn destination_rows<E>(n: &Neighbors<E>, exact: bool, of: impl Fn(&str, &E) -> Row) -> Vec<Row> {
    if n.decision == Decision::Exact {
        return Vec::new();
    }
    let tie = n.decision == Decision::Tie;
    let from_first = n.steps.map_or(String::new(), |steps| ulps(steps, tie));
    let mut to_second = n.steps.map_or(String::new(), |steps| ulps((1.0 - steps).abs(), tie));
    // If the first distance is rounded, the second is rounded too.
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

/// Sign, exponent and fraction bits of a float; a missing field is empty. Other kinds have all bits in the last field.
fn parts(kind: Kind, code: u64) -> [String; 3] {
    let binary = |value: u64, width: u32| match width as usize {
        0 => String::new(),
        width => format!("{value:0width$b}"),
    };
    let Kind::Float(f) = kind else { return [String::new(), String::new(), binary(code, kind.code_bits())] };
    let (sign, exponent, fraction) = f.fields(code);
    let sign = sign.map_or(String::new(), |sign| binary(sign.into(), 1));
    [sign, binary(exponent, f.exp_bits.into()), binary(fraction, f.man_bits.into())]
}

/// Bit patterns such as `0 1111 110`. Patterns of floats are aligned at the sign, exponent and fraction. Patterns of
/// other kinds have a single field.
fn aligned(all: &[Option<(Kind, u64)>]) -> Vec<String> {
    let all: Vec<[String; 3]> =
        all.iter().map(|bits| bits.map_or_else(Default::default, |(k, c)| parts(k, c))).collect();
    let width = |part: usize| all.iter().map(|parts| parts[part].len()).max().unwrap_or(0);
    let (signs, exponents) = (width(0), width(1));
    let pattern = |[sign, exponent, fraction]: &[String; 3]| match exponent.as_str() {
        "" => fraction.clone(),
        _ => {
            let sign = if signs > 0 { format!("{sign:signs$} ") } else { String::new() };
            format!("{sign}{exponent:>exponents$} {fraction}").trim_end().to_string()
        }
    };
    all.iter().map(pattern).collect()
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

fn lacking(e: &Explanation, terminal: &Terminal) -> String {
    let tables = e.absent.iter().filter(|absent| is_of_table(absent));
    let names: Vec<String> = tables.map(|absent| name_of(absent.spec, &absent.version)).collect();
    if names.is_empty() { String::new() } else { terminal.wrap(&format!("no such conversion: {}\n", names.join(", "))) }
}

/// Table of clauses, each clause once.
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
