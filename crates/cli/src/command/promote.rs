//! `truecast promote`: the common type of two types, in one system or in all, and tables.

use super::Context;
use crate::args::PromoteArgs;
use crate::failure::Failure;
use crate::output;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use truecast::promote::jax::X64;
use truecast::promote::openvino::{self, ConvertPromoteTypes, SafeMode, U64Target};
use truecast::promote::tensorflow::Mode;
use truecast::promote::{Element, Input, Operand, Promoted, PromotionError, PythonNumber, Rank, System};
use truecast::{DType, Ecosystem};

pub fn run(args: &PromoteArgs, context: &Context) -> Result<u8, Failure> {
    refuse_dynamic_rank(args)?;
    let ranks = [args.lhs_rank, args.rhs_rank].map(Option::unwrap_or_default);
    let systems = systems(args)?;
    match (&args.lhs, &args.rhs, systems.as_slice()) {
        (Some(lhs), Some(rhs), systems) => {
            let inputs = (input(lhs, args.lhs_rank, words(systems))?, input(rhs, args.rhs_rank, words(systems))?);
            match systems {
                [system] => print_pair(*system, inputs, context).map_err(|error| {
                    match is_undefined(lhs) || is_undefined(rhs) {
                        true => error.with_hint("undefined is OpenVINO's other name for dynamic"),
                        false => error,
                    }
                })?,
                all => side_by_side(all, inputs, context)?,
            }
        }
        (_, _, [system]) => matrix(*system, ranks, context)?,
        (_, _, all) => matrices(all, ranks, context)?,
    }
    Ok(0)
}

// ---- the request ----

fn refuse_dynamic_rank(args: &PromoteArgs) -> Result<(), Failure> {
    let is_dynamic = [args.lhs_rank, args.rhs_rank].contains(&Some(Rank::Dynamic));
    if is_dynamic && args.system() != "openvino" {
        return Err(failure!(InapplicableOption, "only openvino has tensors of dynamic rank; give 0 or n"));
    }
    Ok(())
}

fn systems(args: &PromoteArgs) -> Result<Vec<System>, Failure> {
    let is_all = args.system() == "all";
    let asked = |system| is_all || args.system() == system;
    let mut all = Vec::new();
    if asked("openvino") {
        let attributes = ConvertPromoteTypes {
            promote_unsafe: args.promote_unsafe,
            pytorch_scalar_promotion: args.pytorch_scalar,
            u64_integer_promotion_target: u64_target(args.u64_target.as_deref())?,
        };
        let mode = if args.strict { SafeMode::Strict } else { SafeMode::OpenVino };
        all.push(System::OpenVino(attributes, mode));
        if is_all && !args.promote_unsafe && !args.strict {
            all.push(System::OpenVino(ConvertPromoteTypes { promote_unsafe: true, ..attributes }, mode));
        }
    }
    // A typed mode is the only mode. Without a typed mode, `all` has every mode, and a single system has its default
    // mode.
    let jax = args.jax_x64.map_or(if is_all { vec![X64::On, X64::Off] } else { vec![X64::On] }, |x64| vec![x64]);
    let both = if is_all { vec![Mode::All, Mode::Safe] } else { vec![Mode::All] };
    let tensorflow = args.tensorflow_mode.map_or(both, |mode| vec![mode]);
    all.extend(asked("numpy").then_some(System::Numpy));
    all.extend(jax.into_iter().filter(|_| asked("jax")).map(System::Jax));
    all.extend(asked("torch").then_some(System::Torch));
    all.extend(tensorflow.into_iter().filter(|_| asked("tensorflow")).map(System::TensorFlow));
    Ok(all)
}

fn u64_target(text: Option<&str>) -> Result<U64Target, Failure> {
    let Some(text) = text else { return Ok(U64Target::default()) };
    Ok(match Element::parse(text, Some(Ecosystem::OpenVino))? {
        Element::Type(dtype) => U64Target::new(dtype)?,
        Element::Dynamic => text.parse()?, // the error lists the valid types
    })
}

/// Ecosystem whose type names are parsed; `None` for several systems.
fn words(systems: &[System]) -> Option<Ecosystem> {
    match systems {
        [system] => Some(system.ecosystem()),
        _ => None,
    }
}

fn input(text: &str, typed_rank: Option<Rank>, words: Option<Ecosystem>) -> Result<Input, Failure> {
    if let Some(number) = PythonNumber::of_name(text) {
        if typed_rank.is_some() {
            return Err(failure!(InapplicableOption, "{text} is a Python number, which has no rank"));
        }
        return Ok(Input { operand: Operand::Python(number), rank: Rank::Dimensioned });
    }
    Ok(tensor(Element::parse(text, words)?, typed_rank.unwrap_or_default()))
}

/// `undefined` is an alias of `dynamic` (`docs/spec/openvino.md §1.1`); messages say `dynamic`.
fn is_undefined(typed: &str) -> bool {
    typed.eq_ignore_ascii_case("undefined")
}

// ---- results ----

fn mode(system: System) -> &'static str {
    match system {
        System::OpenVino(attributes, _) if attributes.promote_unsafe => "unsafe",
        System::OpenVino(_, SafeMode::OpenVino) => "safe",
        System::OpenVino(_, SafeMode::Strict) => "strict",
        System::Jax(X64::On) => "x64",
        System::Jax(X64::Off) => "no x64",
        System::TensorFlow(Mode::All) => "all",
        System::TensorFlow(Mode::Safe) => "safe",
        _ => "",
    }
}

type Outcome = Result<Promoted, PromotionError>;

/// Error of OpenVINO's strict mode if the promotion loses values.
fn loss(system: System, inputs: (Input, Input), outcome: &Outcome) -> Option<PromotionError> {
    let (System::OpenVino(attributes, _), Ok(result)) = (system, outcome) else { return None };
    match (inputs.0.operand, inputs.1.operand) {
        (Operand::Tensor(lhs), Operand::Tensor(rhs)) => attributes.loss(lhs, rhs, result.element),
        _ => None,
    }
}

fn warning(loss: &PromotionError) -> Option<String> {
    let PromotionError::Lossy { element, result } = loss else { return None };
    let [element, result] = [element, result].map(|&t| openvino::name(Element::Type(t)));
    Some(format!("{element} -> {result} does not keep every value of {element}; --strict refuses it"))
}

/// System that defines the printed type names; `None` for truecast's names.
type Names = Option<System>;

fn element_name(names: Names, element: Element) -> String {
    names.map_or_else(|| element.to_string(), |system| system.name_of(element).into())
}

fn operand_name(names: Names, operand: Operand) -> String {
    match operand {
        Operand::Tensor(element) => element_name(names, element),
        Operand::Python(number) => number.name().into(),
    }
}

/// Adds operands and outcome to `before`. The key `result` has the system's type name, `dtype` the name in truecast.
fn to_json(before: Value, names: Names, inputs: (Input, Input), outcome: &Outcome) -> Value {
    let mut row = before;
    row["lhs"] = json!(operand_name(names, inputs.0.operand));
    row["rhs"] = json!(operand_name(names, inputs.1.operand));
    match outcome {
        Ok(Promoted { element, is_weak, .. }) => {
            row["result"] = json!(element_name(names, *element));
            row["dtype"] = json!(element.to_string());
            row["weak"] = json!(is_weak);
        }
        Err(error) => {
            row["error"] = json!(error.code());
            row["message"] = json!(error.to_string());
        }
    }
    row
}

/// Name, version and mode of a system.
pub fn system_to_json(system: System) -> Value {
    json!({ "system": system.name(), "version": system.version(), "mode": mode(system) })
}

fn print_pair(system: System, inputs: (Input, Input), context: &Context) -> Result<(), Failure> {
    let outcome = system.promote(inputs.0, inputs.1);
    let warnings: Vec<String> = loss(system, inputs, &outcome).iter().filter_map(warning).collect();
    let names = Some(system);
    let promoted = outcome.clone()?;
    if context.json {
        let mut object = to_json(system_to_json(system), names, inputs, &outcome);
        object["warnings"] = json!(warnings);
        return output::json("promote", object);
    }
    context.warn(&warnings);
    let weak = if promoted.is_weak { " (weak)" } else { "" };
    output::text(&format!("{}{weak}\n", element_name(names, promoted.element)))
}

// ---- side by side ----

/// Common type, or `None` if the system defines no common type.
type Answer = Option<Element>;

/// Common type of an outcome; `None` if the system lacks one of the types.
fn answer(outcome: &Outcome) -> Option<Answer> {
    match outcome {
        Ok(promoted) => Some(Some(promoted.element)),
        Err(PromotionError::UnknownType { .. }) => None,
        Err(_) => Some(None),
    }
}

/// Most frequent answer. Ties go to an answer with a type, then to the first answer.
fn most_common(outcomes: &[Outcome]) -> Option<Answer> {
    let answers: Vec<Answer> = outcomes.iter().filter_map(answer).collect();
    let weight = |a: &Answer| (answers.iter().filter(|other| *other == a).count(), a.is_some());
    answers.iter().rev().max_by_key(|&a| weight(a)).copied()
}

fn differs(outcome: &Outcome, common: Option<Answer>) -> bool {
    answer(outcome).is_some() && answer(outcome) != common
}

fn compared_to_json(system: System, inputs: (Input, Input), outcome: &Outcome, common: Option<Answer>) -> Value {
    let mut row = to_json(system_to_json(system), None, inputs, outcome);
    row["differs"] = json!(differs(outcome, common));
    row
}

/// Reason for a refusal, without the system and the types.
fn reason(error: &PromotionError) -> String {
    let all = error.to_string();
    match error {
        PromotionError::Refused { .. } => "no common type".into(),
        PromotionError::UnknownType { .. } => all,
        _ => {
            let reason = all.split_once(" refused: ").map_or(all.as_str(), |(_, reason)| reason);
            reason.split(';').next().unwrap_or_default().into()
        }
    }
}

fn side_by_side(systems: &[System], inputs: (Input, Input), context: &Context) -> Result<(), Failure> {
    let outcomes: Vec<Outcome> = systems.iter().map(|s| s.promote(inputs.0, inputs.1)).collect();
    let common = most_common(&outcomes);
    let lines = systems.iter().zip(&outcomes);
    if context.json {
        let row = |(&system, outcome)| {
            let mut row = compared_to_json(system, inputs, outcome, common);
            row["warnings"] = loss(system, inputs, outcome).iter().filter_map(warning).collect();
            row
        };
        return output::json("promote", json!({ "results": lines.map(row).collect::<Value>() }));
    }
    let mut table = Table::new([
        Column::left("system"),
        Column::left("version").drops(1),
        Column::left("mode"),
        Column::left("type"),
        Column::left(""),
        Column::left("").wraps(),
    ]);
    for (&system, outcome) in lines {
        let mark = match outcome {
            Err(_) => Cell::from("refused").mark(Mark::Dim),
            Ok(_) if differs(outcome, common) => Cell::from("differs").mark(Mark::Warn),
            Ok(_) => Cell::default(),
        };
        let (result, note) = match outcome {
            Ok(p) if p.is_weak => (Cell::from(p.element.to_string()).mark(Mark::Strong), Cell::from("weak")),
            Ok(p) => {
                let lossy = loss(system, inputs, outcome).and_then(|loss| warning(&loss)).unwrap_or_default();
                (Cell::from(p.element.to_string()).mark(Mark::Strong), Cell::from(lossy).mark(Mark::Warn))
            }
            Err(error) => (Cell::from("-"), Cell::from(reason(error))),
        };
        let [system, version, mode] = [system.name(), system.version(), mode(system)].map(Cell::from);
        table.row([system, version, mode, result, mark, note]);
    }
    output::text(&table.render(&context.terminal))
}

// ---- matrices ----

fn tensor(element: Element, rank: Rank) -> Input {
    Input { operand: Operand::Tensor(element), rank }
}

/// Text of a cell: `i16`, `f64*` if weak, `f8e5m2!` if values are lost. Also `P4` or `-` if refused, `.` if a type is
/// unknown.
fn cell(names: Names, system: System, inputs: (Input, Input), outcome: &Outcome) -> String {
    match outcome {
        Ok(p) => {
            let weak = if p.is_weak { "*" } else { "" };
            let lossy = if loss(system, inputs, outcome).is_some() { "!" } else { "" };
            format!("{}{weak}{lossy}", element_name(names, p.element))
        }
        Err(PromotionError::UnknownType { .. }) => ".".into(),
        Err(PromotionError::Refused { .. }) => "-".into(),
        Err(error) => error.code().replace("TC-PRM-0", "P"),
    }
}

const LEGEND: [(char, &str); 5] = [
    ('P', "P1 to P7: refused, TC-PRM-01 to TC-PRM-07; promote LHS RHS says why"),
    ('-', "-: refused"),
    ('.', ".: the system has no such type"),
    ('*', "*: weak, gives way to a stronger type"),
    ('!', "!: does not keep every value; --strict refuses it"),
];

fn legend<'a>(cells: impl Iterator<Item = &'a String> + Clone, terminal: &Terminal) -> String {
    let occurs = |sign: char| cells.clone().any(|cell| cell.starts_with(sign) || cell.ends_with(sign));
    LEGEND.iter().filter(|(sign, _)| occurs(*sign)).map(|(_, text)| terminal.wrap(&format!("{text}\n"))).collect()
}

fn marked(cell: &str) -> Cell {
    let mark = match cell.chars().next() {
        Some('P' | '-' | '.') => Mark::Dim,
        _ if cell.ends_with('!') => Mark::Warn,
        _ => Mark::Plain,
    };
    Cell::from(cell).mark(mark)
}

fn matrix(system: System, ranks: [Rank; 2], context: &Context) -> Result<(), Failure> {
    let elements: Vec<Element> = system.elements().collect();
    let inputs = |a: Element, b: Element| (tensor(a, ranks[0]), tensor(b, ranks[1]));
    if context.json {
        let pairs = elements.iter().flat_map(|&a| elements.iter().map(move |&b| inputs(a, b)));
        let mut object = system_to_json(system);
        object["rows"] = pairs.map(|i| to_json(json!({}), Some(system), i, &system.promote(i.0, i.1))).collect();
        return output::json("promote", object);
    }
    // truecast's names are short; the names of some systems are four times as wide.
    let headings: Vec<String> = elements.iter().map(ToString::to_string).collect();
    let columns: Vec<_> = std::iter::once("").chain(headings.iter().map(String::as_str)).map(Column::left).collect();
    let mut table = Table::new(columns);
    let mut all = Vec::new();
    for (&a, heading) in elements.iter().zip(&headings) {
        let of = |&b: &Element| cell(None, system, inputs(a, b), &system.promote(inputs(a, b).0, inputs(a, b).1));
        let cells: Vec<String> = elements.iter().map(of).collect();
        let heading = Cell::from(heading.as_str()).mark(Mark::Strong);
        table.row(std::iter::once(heading).chain(cells.iter().map(|cell| marked(cell))));
        all.extend(cells);
    }
    output::text(&(table.render(&context.terminal) + &legend(all.iter(), &context.terminal)))
}

/// Promotion is symmetric, so a pair is listed once unless the ranks differ.
fn matrices(systems: &[System], ranks: [Rank; 2], context: &Context) -> Result<(), Failure> {
    let known = |element: &Element| systems.iter().any(|s| s.elements().any(|e| e == *element));
    let types = DType::ALL.into_iter().map(Element::Type).chain([Element::Dynamic]);
    let elements: Vec<Element> = types.filter(known).collect();
    let start = |i: usize| if ranks[0] == ranks[1] { i } else { 0 };
    let pairs = (0..elements.len()).flat_map(|i| (start(i)..elements.len()).map(move |j| (i, j)));
    let pairs = pairs.map(|(i, j)| (tensor(elements[i], ranks[0]), tensor(elements[j], ranks[1])));
    let mut rows: Vec<Value> = Vec::new();
    let headings: Vec<String> =
        systems.iter().map(|s| format!("{} {}", s.name(), mode(*s)).trim().replace(' ', "-")).collect();
    let keys = ["lhs", "rhs", ""].map(|name| Column::left(name).key());
    let mut table = Table::new(keys.into_iter().chain(headings.iter().map(Column::left)));
    let mut all = Vec::new();
    for inputs in pairs {
        let outcomes: Vec<Outcome> = systems.iter().map(|s| s.promote(inputs.0, inputs.1)).collect();
        let common = most_common(&outcomes);
        if context.json {
            let lines = systems.iter().zip(&outcomes);
            rows.extend(lines.map(|(&system, outcome)| compared_to_json(system, inputs, outcome, common)));
            continue;
        }
        let cells = systems.iter().zip(&outcomes).map(|(&s, o)| cell(None, s, inputs, o));
        let cells: Vec<String> = cells.collect();
        let mark = if outcomes.iter().any(|o| differs(o, common)) { "differ" } else { "" };
        let operands = [inputs.0, inputs.1].map(|i| i.operand.to_string());
        let [lhs, rhs] = operands.map(Cell::from);
        let mark = Cell::from(mark).mark(Mark::Warn);
        table.row([lhs, rhs, mark].into_iter().chain(cells.iter().map(|cell| marked(cell))));
        all.extend(cells);
    }
    let text = || table.render(&context.terminal) + &legend(all.iter(), &context.terminal);
    context.answer("promote", || json!({ "rows": rows }), text)
}
