//! `truecast differ`: the inputs for which two specifications give different results. `classes` compares all
//! specifications.

mod classes;

use super::Context;
use crate::args::DifferArgs;
use crate::exact_decimal::{brief, shortest, shown};
use crate::failure::Failure;
use crate::number::{count, grouped, significant};
use crate::output::{self, bits};
use crate::policy::named;
use crate::progress;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::{MOST_LINES, Reader, Terminal};
use serde_json::{Value, json};
use truecast::decimal::to_decimal;
use truecast::differ::{Difference, Different, Inputs};
use truecast::exact::decode;
use truecast::request::{self, Request};
use truecast::spec::SpecError;
use truecast::{DType, Exact, Kind};

pub fn run(args: &DifferArgs, context: &Context) -> Result<u8, Failure> {
    let (Some(a), Some(b)) = (&args.a, &args.b) else { return classes::run(args, context) };
    if [a, b].iter().all(|word| DType::parse(word).is_ok()) {
        let instead = format_args!("truecast differ --from {a} --to {b}");
        return Err(failure!(UnknownSpec, "{a} and {b} are types, not specifications: {instead}"));
    }
    let requests = [named(a)?, named(b)?];
    let all = differences(args, [a, b], [&requests[0], &requests[1]], context)?;
    let names = requests.each_ref().map(Request::to_string);
    let older = || [0, 1].into_iter().filter_map(|side| older([a, b][side], &requests[side], &all)).collect::<String>();
    let text = || render(args, &names, &all, &older(), &context.terminal);
    context.report("differ", || to_json(&names, &all), text)?;
    Ok((context.quiet && all.iter().any(|found| found.different > 0)) as u8)
}

/// Line about the newest older version of a specification that gives other results for the only pair. `None` if the
/// version was typed.
fn older(typed: &str, request: &Request, all: &[Difference]) -> Option<String> {
    let &[Difference { src, dst, .. }] = all else { return None };
    let (name, settings) = typed.split_at(typed.find(':').unwrap_or(typed.len()));
    let differs = |version: &String| {
        let other = Request::of_words(&format!("{name}@{version}{settings}")).ok()?;
        let found = Difference::find([&other, request], src, dst, Inputs::Boundary).ok()?;
        (found.different > 0).then(|| format!("{other} gives other results than {request}\n"))
    };
    request::versions(name).iter().rev().find_map(differs)
}

/// Compares two specifications for boundary inputs of a pair, or for all inputs of up to 16 bits.
pub fn boundary([a, b]: [&str; 2], src: DType, dst: DType) -> Result<Value, Failure> {
    let requests = [named(a)?, named(b)?];
    let found = Difference::find(requests.each_ref(), src, dst, Inputs::Boundary).map_err(without_hint)?;
    Ok(to_json(&requests.map(|request| request.to_string()), &[found]))
}

/// The error without the hint of `Failure::from`, which would name `--spec`; `differ` has no such option.
fn without_hint(error: SpecError) -> Failure {
    Failure::new(error.error_code(), error)
}

fn pairs(args: &DifferArgs) -> Vec<(DType, DType)> {
    let of = |asked: Option<DType>| {
        let numeric = |dtype: &DType| dtype.is_numeric() && asked.is_none_or(|asked| asked == *dtype);
        DType::ALL.into_iter().filter(numeric).collect::<Vec<_>>()
    };
    // The pair of a type with itself is compared only if both types were typed.
    let is_asked = args.from.is_some() && args.to.is_some();
    let all = of(args.from).into_iter().flat_map(|src| of(args.to).into_iter().map(move |dst| (src, dst)));
    all.filter(|(src, dst)| src != dst || is_asked).collect()
}

fn differences(
    args: &DifferArgs,
    [a, b]: [&String; 2],
    requests: [&Request; 2],
    context: &Context,
) -> Result<Vec<Difference>, Failure> {
    let mut refused: Option<SpecError> = None;
    let mut converted = Vec::new();
    for (src, dst) in pairs(args) {
        match requests.iter().find_map(|request| Difference::refusal(request, src, dst)) {
            None => converted.push((src, dst)),
            Some(error) => refused = Some(error),
        }
    }
    let pairs = converted;
    if pairs.is_empty() {
        return Err(match (refused, args.from, args.to) {
            (Some(error), Some(_), Some(_)) => without_hint(error),
            _ => failure!(InvalidValue, "{a} and {b} have no pair of types in common"),
        });
    }
    // All codes of a 32-bit source take seconds per pair, so only a single pair is compared completely.
    if let (Some(_), Some(_), &[(src, dst)]) = (args.from, args.to, &pairs[..]) {
        let boundary = Difference::find(requests, src, dst, Inputs::Boundary)?;
        return Ok(vec![every_code(args, requests, boundary, context)?]);
    }
    let bar = progress::steps(pairs.len() as u64, !context.prints_text());
    let mut all = Vec::new();
    for (src, dst) in pairs {
        all.push(Difference::find(requests, src, dst, Inputs::Boundary)?);
        bar.more(1, &format!("{src} to {dst}"));
    }
    bar.finish();
    Ok(all)
}

/// Compares all codes of a wide source, with a progress bar, if kernels convert the pair. A terminal first shows the
/// results for boundary inputs.
fn every_code(
    args: &DifferArgs,
    requests: [&Request; 2],
    boundary: Difference,
    context: &Context,
) -> Result<Difference, Failure> {
    let [src, dst] = [boundary.src, boundary.dst];
    let bar = progress::steps(1u64.checked_shl(src.code_bits()).unwrap_or(u64::MAX), !context.prints_text());
    let (name, mut done, mut shown) = (format!("{src} to {dst}"), 0, Ok(()));
    let found = Difference::of_every_code(requests, src, dst, |codes| {
        let is_watched = context.prints_text() && context.terminal.width.is_some() && !output::is_captured();
        if codes == 0 && is_watched && boundary.range_count > 0 {
            let table = table(args, &requests.map(Request::to_string), &[&boundary], &context.terminal);
            shown = output::text(&(table + "*: boundary inputs; every code follows\n\n"));
        }
        bar.more(codes - done, &name);
        done = codes;
    })?;
    bar.finish();
    shown.map(|()| found.unwrap_or(boundary))
}

const FEW_PAIRS: usize = 12;
/// Largest number of characters of a value that is shown with all digits.
const FEW_DIGITS: usize = 17;

fn to_json(names: &[String; 2], all: &[Difference]) -> Value {
    let pair = |found: &Difference| {
        let [src, dst] = [found.src, found.dst];
        let result = |code: &Option<u64>| code.map(|code| bits(code, dst.code_bits()));
        let range = |range: &Different| {
            let value = |code| shown(decode(src, code));
            json!({
                "first": bits(range.first, src.code_bits()), "last": bits(range.last, src.code_bits()),
                "first_value": value(range.first), "last_value": value(range.last), "inputs": range.count, "open": range.is_open,
                "results_at_first": range.at_first.each_ref().map(result),
                "results_at_last": range.at_last.each_ref().map(result)
            })
        };
        json!({
            "from": src.name(), "to": dst.name(), "inputs": found.inputs, "every_input": found.is_every,
            "different": found.different, "open": found.open, "range_count": found.range_count,
            "ranges": found.ranges.iter().map(range).collect::<Value>()
        })
    };
    json!({ "a": names[0], "b": names[1], "pairs": all.iter().map(pair).collect::<Value>() })
}

fn table(args: &DifferArgs, names: &[String; 2], listed: &[&Difference], terminal: &Terminal) -> String {
    let mut table = Table::new([
        Column::left("from"),
        Column::left("to"),
        Column::left("different"),
        Column::left("inputs").wraps(),
        Column::left("A").of_numbers(),
        Column::left("B").of_numbers(),
        Column::left(""),
    ]);
    for found in listed {
        let mut lines = lines(found);
        lines.sort_by_key(|line| line.is_open); // what differs comes first
        for (at, line) in lines.iter().take(args.show.max(1)).enumerate() {
            let counts = [
                found.src.name().into(),
                found.dst.name().into(),
                counts(found.different, found.inputs, found.is_every),
            ];
            let counts = if at == 0 { counts } else { Default::default() };
            let mark = if line.is_open { Mark::Dim } else { Mark::Strong };
            let cells = counts.into_iter().chain([line.inputs.clone()]).map(Cell::from);
            let results = line.results.clone().into_iter().chain([if line.is_open { "open" } else { "" }.into()]);
            table.row(cells.chain(results.map(|result| Cell::new(result).mark(mark))));
        }
        let show = args.show.max(1);
        if lines.len() > show {
            let more = format!(
                "and {} more ranges",
                grouped(lines.len() as u64 + found.range_count - found.ranges.len() as u64 - show as u64)
            );
            let cells = ["", "", "", more.as_str(), "", "", ""];
            table.row(cells.map(|cell| Cell::new(cell).mark(Mark::Dim)));
        }
    }
    format!("A: {}\nB: {}\n\n{}\n", names[0], names[1], table.render(terminal))
}

fn render(args: &DifferArgs, names: &[String; 2], all: &[Difference], older: &str, terminal: &Terminal) -> String {
    let (listed, others): (Vec<_>, Vec<_>) =
        all.iter().partition(|found| found.different > 0 || all.len() == 1 && found.open > 0);
    let (open, same): (Vec<_>, Vec<_>) = others.into_iter().partition(|found| found.open > 0);
    let mut text = String::new();
    for (some, what) in [(&same, "the same results"), (&open, "no defined result differs, some are open")] {
        if !some.is_empty() {
            let pairs = in_words(some.iter().map(|found| (found.src, found.dst)));
            text += &terminal.wrap(&format!("{what}: {pairs}\n\n"));
        }
    }
    if all.iter().any(|found| !found.is_every) {
        let more = match terminal.reader {
            Reader::Python => "every code needs a source of up to 32 bits, and kernels that convert the pair",
            Reader::CommandLine => "--from and --to look at every code of up to 32 bits, if kernels convert the pair",
        };
        text += &terminal.wrap(&format!("*: boundary inputs; {more}\n"));
    }
    text += &terminal.wrap(&(older.to_owned() + &conclusion(names, all, terminal)));
    let tables =
        |some: &[&Difference]| if some.is_empty() { String::new() } else { table(args, names, some, terminal) };
    with_tables(&listed, tables, text, terminal)
}

/// Tables of pairs, and the text below them. A terminal shows as many pairs as fit.
fn with_tables<T>(pairs: &[T], tables: impl Fn(&[T]) -> String, below: String, terminal: &Terminal) -> String {
    let all = tables(pairs);
    let most = MOST_LINES.saturating_sub(below.lines().count());
    if terminal.width.is_none() || all.lines().count() <= most {
        return all + &below;
    }
    // The note takes two lines.
    let fits = |n: &usize| tables(&pairs[..*n]).lines().count() + 2 <= most;
    let shown = (1..pairs.len()).take_while(fits).last().unwrap_or(1);
    let more = count((pairs.len() - shown) as u64, "more pair");
    let note = terminal.paint(Mark::Dim, &terminal.wrap(&format!("{more} of types; {}", terminal.reader.advice())));
    format!("{}{note}\n\n{below}", tables(&pairs[..shown]))
}

fn conclusion(names: &[String; 2], all: &[Difference], terminal: &Terminal) -> String {
    let [a, b] = names;
    let open: u64 = all.iter().map(|found| found.open).sum();
    let inputs = if open == 1 { "input is" } else { "inputs are" };
    let open_inputs = format!("{} {inputs} open in one or both", grouped(open));
    let count = all.len();
    let pairs = if count == 1 { "pair" } else { "pairs" };
    let differ = all.iter().filter(|found| found.different > 0).count();
    if differ == 0 && open > 0 {
        let verdict = terminal.verdict(true, "no defined result differs", "");
        return format!("{verdict}: {a} and {b}, {count} {pairs} of types that both convert; {open_inputs}\n");
    }
    let verdict = terminal.verdict(differ == 0, "the same", "DIFFERENT");
    let open = if open > 0 { format!("open: {open_inputs}; they do not count as different\n") } else { String::new() };
    format!("{open}{verdict}: {a} and {b} differ for {differ} of {count} {pairs} of types that both convert\n")
}

/// Lists the pairs, or counts them if there are many.
fn in_words(pairs: impl ExactSizeIterator<Item = (DType, DType)>) -> String {
    match pairs.len() {
        ..=FEW_PAIRS => pairs.map(|(src, dst)| format!("{src} to {dst}")).collect::<Vec<_>>().join(", "),
        count => format!("{count} pairs of types; --json lists them"),
    }
}

/// Text such as `14_720 of 65_536`. A star after the text means that only boundary inputs were compared.
fn counts(different: u64, inputs: u64, is_every: bool) -> String {
    let star = if is_every { "" } else { "*" };
    format!("{} of {}{star}", grouped(different), grouped(inputs))
}

struct Line {
    inputs: String,
    results: [String; 2],
    is_open: bool,
}

/// Lines of the output. A range and its mirror image share a line with `|x|` if their results are opposite.
fn lines(found: &Difference) -> Vec<Line> {
    let value = |code: u64| decode(found.src, code);
    let mut lines = Vec::new();
    let is_whole = found.range_count as usize == found.ranges.len();
    let result_of = |code: Option<u64>| code.map(|code| decode(found.dst, code));
    let are_opposite = |a: Option<u64>, b: Option<u64>| match (result_of(a), result_of(b)) {
        (Some(Exact::Nan { .. }), Some(Exact::Nan { .. })) | (None, None) => true,
        (Some(a), Some(b)) => negated(a).cmp_value(b).is_eq(),
        _ => false,
    };
    let is_mirror = |other: &Different, range: &Different| {
        let of_inputs =
            negated(value(other.first)) == value(range.last) && negated(value(other.last)) == value(range.first);
        let of_results = |side: usize| {
            are_opposite(other.at_first[side], range.at_last[side])
                && are_opposite(other.at_last[side], range.at_first[side])
        };
        of_inputs && other.is_open == range.is_open && of_results(0) && of_results(1)
    };
    let is_mirrored =
        |range: &Different| found.ranges.iter().find(|other| is_whole && is_mirror(other, range)).copied();
    for range in &found.ranges {
        let mirrored = is_mirrored(range).filter(|other| other != range);
        let is_negative = is_negative(value(range.first));
        if mirrored.is_some() && is_negative {
            continue; // the line of the positive range covers it
        }
        let x = if mirrored.is_some() { "|x|" } else { "x" };
        let results =
            [0, 1].map(|side| result(found.dst, range.at_first[side], range.at_last[side], mirrored.is_some()));
        lines.push(Line { inputs: words(x, found.src, range), results, is_open: range.is_open });
    }
    lines
}

fn is_negative(value: Exact) -> bool {
    matches!(value, Exact::Finite { neg: true, .. } | Exact::Inf { neg: true } | Exact::Nan { neg: true, .. })
}

fn negated(value: Exact) -> Exact {
    match value {
        Exact::Finite { neg, sig, exp, sticky } => Exact::Finite { neg: !neg, sig, exp, sticky },
        Exact::Inf { neg } => Exact::Inf { neg: !neg },
        Exact::Nan { neg, payload } => Exact::Nan { neg: !neg, payload },
    }
}

fn is_end(dtype: DType, code: u64) -> bool {
    match dtype.kind() {
        Kind::Int(f) => [f.min(), f.max()].contains(&f.value(code)),
        Kind::Float(f) => match f.inf_code() {
            Some(inf) => code & f.magnitude_mask() == inf,
            None => code & f.magnitude_mask() == f.max_code(),
        },
        _ => false,
    }
}

/// Text such as `x = 465`, `464.5 <= |x| <= 480`, `x >= 465`, `NaN`.
fn words(x: &str, src: DType, range: &Different) -> String {
    let [low, high] = [range.first, range.last];
    let is_nan = |code| matches!(decode(src, code), Exact::Nan { .. });
    let name = |code| number(src, code);
    match (is_end(src, low), is_end(src, high)) {
        _ if is_nan(low) && is_nan(high) => "NaN".into(),
        _ if low == high => format!("{x} = {}", name(low)),
        _ if is_nan(high) => format!("{x} >= {}, NaN", name(low)),
        _ if is_nan(low) => format!("{x} <= {}, NaN", name(high)),
        (true, true) => "every number".into(),
        (_, true) => format!("{x} >= {}", name(low)),
        (true, _) => format!("{x} <= {}", name(high)),
        _ => format!("{} <= {x} <= {}", name(low), name(high)),
    }
}

/// All digits of a value if there are few. Otherwise the fewest digits that parse to the same value.
fn number(dtype: DType, code: u64) -> String {
    let value = decode(dtype, code);
    let exact = shown(value);
    if exact.len() <= FEW_DIGITS && !exact.contains('…') {
        return exact;
    }
    let every = to_decimal(value);
    let digits = every.parse().ok().and_then(|value| shortest(dtype, value));
    digits.map_or(every, |digits| format!("{digits:?}").trim_end_matches(".0").into())
}

fn result(dst: DType, first: Option<u64>, last: Option<u64>, has_sign: bool) -> String {
    let is_nan = |code| matches!(decode(dst, code), Exact::Nan { .. });
    let name = |code: Option<u64>| match code {
        None => "refused".into(),
        Some(code) if is_nan(code) => "nan".into(),
        Some(code) => few_digits(decode(dst, code)),
    };
    let is_zero = |code| matches!(decode(dst, code), Exact::Finite { sig: 0, .. }) && !dst.is_float();
    let takes_sign = |code| !is_nan(code) && !is_zero(code) && name(Some(code)) != "-0";
    let sign = if has_sign && first.is_some_and(takes_sign) { "±" } else { "" };
    if name(first) == name(last) {
        format!("{sign}{}", name(first))
    } else {
        format!("{sign}{} .. {}", name(first), name(last))
    }
}

/// Enough digits to distinguish results.
fn few_digits(value: Exact) -> String {
    let text = brief(value);
    match text.parse::<f64>() {
        Ok(x) if text.len() > 10 && x.is_normal() => significant(x, 6),
        _ => text,
    }
}
