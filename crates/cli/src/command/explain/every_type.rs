//! `truecast explain VALUE` without `--to`: the value in every numeric type.

use super::source::{Source, not_a_number, of_code};
use super::{code_text, json_text};
use crate::args::ExplainArgs;
use crate::command::Context;
use crate::exact_decimal;
use crate::failure::Failure;
use crate::number_format::NumberFormat;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::{Reader, Terminal};
use serde_json::{Value, json};
use truecast::decimal::to_decimal;
use truecast::exact::{decode, encode};
use truecast::explain::Decoded;
use truecast::literal::{Literal, Ratio, ratio, read};
use truecast::policy::{CastPolicy, IntOverflow};
use truecast::spec::p3109::Saturation;
use truecast::{DType, ErrorCode, Exact, Kind, Rounding};

pub fn run(args: &ExplainArgs, context: &Context) -> Result<u8, Failure> {
    if args.policy.spec.is_some() || !args.policy.settings.is_empty() {
        let why = "without --to explain shows the value, about which no specification decides; give --to TYPE";
        return Err(Failure::new(ErrorCode::InvalidValue, why));
    }
    let typed = typed(args)?;
    let text = || render(args, &typed, &context.terminal);
    context.answer("explain", || to_json(args, &typed), text)?;
    Ok(0)
}

/// The typed value: a number with any number of digits, or an element.
pub struct Typed {
    pub value: Exact,
    ratio: Option<Ratio>,
}

pub fn typed(args: &ExplainArgs) -> Result<Typed, Failure> {
    let literal = read(&args.value).map_err(|error| not_a_number(&args.value, error));
    let (value, every) = match (args.from, literal) {
        (None, Ok(Literal::Number(value))) => (value, args.value.clone()),
        (Some(from @ NumberFormat::P3109(format)), literal) => {
            let code = match literal? {
                Literal::Code(code) => of_code(&args.value, code, from)?,
                Literal::Number(value) => format.project(Rounding::NearestEven, Saturation::None, value),
            };
            (from.decode(code), to_decimal(from.decode(code)))
        }
        (from, _) => {
            let from = match from {
                Some(NumberFormat::Type(from)) => from,
                _ => DType::F32,
            };
            if matches!(from.kind(), Kind::Complex(_) | Kind::String) {
                return Err(failure!(InvalidValue, "{from} has no numeric value to show in other types"));
            }
            let value = decode(from, Source::read(&args.value, from)?.code);
            (value, to_decimal(value))
        }
    };
    Ok(Typed { value, ratio: ratio(&every) })
}

struct Row {
    dtype: DType,
    /// `None` if the value is out of range.
    element: Option<Decoded>,
    /// Result minus value; `None` if one of the two is not finite.
    error: Option<Exact>,
}

impl Row {
    fn new(dtype: DType, typed: &Typed) -> Row {
        let policy = CastPolicy { int_overflow: IntOverflow::Error, ..CastPolicy::IEEE };
        let code = encode(dtype, &policy, typed.value).code;
        let element = code.map(|code| Decoded { dtype, code, value: decode(dtype, code) });
        let finite = element.as_ref().map(|element| element.value).filter(|v| matches!(v, Exact::Finite { .. }));
        let error = finite.and_then(|value| typed.ratio.as_ref()?.minus(value)).map(|off| match off {
            Exact::Finite { neg, sig, exp, sticky } => Exact::Finite { neg: !neg, sig, exp, sticky },
            other => other,
        });
        Row { dtype, element, error }
    }

    fn is_exact(&self, typed: &Typed) -> bool {
        match self.error {
            Some(error) => matches!(error, Exact::Finite { sig: 0, sticky: false, .. }),
            None => self.element.as_ref().is_some_and(|element| to_decimal(element.value) == to_decimal(typed.value)),
        }
    }
}

/// Integer types have rows only if the value is an integer.
fn rows(typed: &Typed) -> Vec<Row> {
    let is_integer = Row::new(DType::I64, typed).is_exact(typed) || Row::new(DType::U64, typed).is_exact(typed);
    let is_shown = |dtype: &DType| match dtype.kind() {
        Kind::Float(_) | Kind::Fixed(_) | Kind::Book(_) => true,
        Kind::Int(_) => is_integer,
        _ => false,
    };
    DType::ALL.into_iter().filter(is_shown).map(|dtype| Row::new(dtype, typed)).collect()
}

fn render(args: &ExplainArgs, typed: &Typed, terminal: &Terminal) -> String {
    let mut table = Table::new([
        Column::left("type"),
        Column::left("code"),
        Column::left("value").of_any_length().of_numbers(),
        Column::left("error"),
    ]);
    for row in rows(typed) {
        let Some(element) = &row.element else {
            table.row([Cell::from(row.dtype.name()), Cell::from("-"), Cell::from("out of range").mark(Mark::Warn)]);
            continue;
        };
        let value = match element.value {
            Exact::Nan { .. } => "nan".into(),
            value if args.exact => to_decimal(value),
            value if terminal.width.is_some() => exact_decimal::brief(value),
            value => exact_decimal::shown(value),
        };
        let error = match row.error {
            _ if row.is_exact(typed) => Cell::from("exact").mark(Mark::Good),
            Some(error) => Cell::from(exact_decimal::scientific(error, 3)),
            None => Cell::default(),
        };
        table.row([row.dtype.name().into(), code_text(element).into(), value.into(), error]);
    }
    let option = if terminal.reader == Reader::Python { "to=TYPE" } else { "--to TYPE" };
    let rule = "to nearest even; out of range to Inf, or to NaN or the last value of a type without Inf; specifications \
                may differ:";
    table.render(terminal) + &terminal.wrap(&format!("{rule} {option} shows them\n"))
}

fn to_json(args: &ExplainArgs, typed: &Typed) -> Value {
    let row = |row: &Row| {
        let element = row.element.as_ref();
        json!({
            "dtype": row.dtype.name(), "bits": element.map(code_text),
            "value": element.map(|element| json_text(to_decimal(element.value))),
            "error": row.error.map(exact_decimal::json), "exact": row.is_exact(typed)
        })
    };
    let from = args.from.map(|from| from.to_string());
    json!({ "value": args.value, "from": from, "types": rows(typed).iter().map(row).collect::<Value>() })
}
