//! `truecast explain VALUE --to binary8p4se`: a number rounded to a P3109 format, in every rounding and saturation
//! mode.

use super::every_type::typed;
use super::{json_text, neighbors_json, picture, sentences};
use crate::args::ExplainArgs;
use crate::command::Context;
use crate::failure::Failure;
use crate::number_format::NumberFormat;
use crate::output::bits;
use crate::table::{Cell, Column, Table};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use truecast::decimal::to_decimal;
use truecast::exact::Stochastic;
use truecast::explain::{CodePoint, Neighbors, explain_format};
use truecast::spec::p3109::{CLAUSE, Format, ROUNDINGS, Saturation, VERSION};
use truecast::{ErrorCode, Exact};

pub fn run(args: &ExplainArgs, to: Format, context: &Context) -> Result<u8, Failure> {
    if args.policy.spec.is_some() || !args.policy.settings.is_empty() {
        let why = format_args!("{to} is a format of P3109: explain shows every projection of P3109, without --spec");
        return Err(Failure::new(ErrorCode::InvalidValue, why));
    }
    let value = typed(args)?.value;
    let bits = args.random_bits.map_or(0, |random| to.float().man_bits as u32 + random.count());
    if bits > 63 && matches!(value, Exact::Finite { sticky: true, .. }) {
        let why = "this number has no end in binary, and --random-bits need more of its digits than truecast holds";
        return Err(Failure::new(ErrorCode::InvalidValue, why)
            .with_hint("give fewer random bits, or a number with an end, such as 0x1.8p-3"));
    }
    let neighbors = explain_format(value, to.float()).map_err(|error| Failure::new(ErrorCode::InvalidValue, error))?;
    let shown = Shown { args, to, value, neighbors, rows: projections(args, to, value) };
    context.answer("explain", || shown.to_json(), || shown.render(&context.terminal))?;
    Ok(0)
}

struct Shown<'a> {
    args: &'a ExplainArgs,
    to: Format,
    value: Exact,
    neighbors: Neighbors<CodePoint>,
    /// Rounding mode, and a code per saturation mode.
    rows: Vec<(String, [u64; 3])>,
}

fn projections(args: &ExplainArgs, to: Format, value: Exact) -> Vec<(String, [u64; 3])> {
    let fixed = ROUNDINGS.map(|(name, rounding)| {
        (name.to_string(), Saturation::ALL.map(|saturation| to.project(rounding, saturation, value)))
    });
    let random = args.random_bits.into_iter().flat_map(|random| {
        Stochastic::ALL.map(|variant| {
            let codes = Saturation::ALL.map(|s| to.project_stochastic(variant, random, s, value));
            (format!("{variant} {}/{}", random.bits(), random.count()), codes)
        })
    });
    fixed.into_iter().chain(random).collect()
}

impl Shown<'_> {
    fn format(&self) -> NumberFormat {
        NumberFormat::P3109(self.to)
    }

    fn code(&self, code: u64) -> [String; 2] {
        let value = sentences::value(self.args.exact, self.format().decode(code));
        [bits(code, self.format().code_bits()), value]
    }

    fn render(&self, terminal: &Terminal) -> String {
        let Shown { args, value, neighbors, rows, .. } = self;
        let value = match value {
            Exact::Finite { sticky: true, .. } => args.value.trim().into(),
            value => sentences::value(args.exact, *value),
        };
        let mut text = picture::of_number(value, neighbors, self.format(), args.exact, terminal);
        text.push('\n');
        let columns = Saturation::ALL.map(|s| [Column::left(s.name()), Column::left("").of_any_length().of_numbers()]);
        let mut table = Table::new([Column::left("rounding")].into_iter().chain(columns.into_iter().flatten()));
        for (rounding, codes) in rows {
            let cells = codes.iter().flat_map(|code| self.code(*code));
            table.row([rounding.clone()].into_iter().chain(cells).map(Cell::from));
        }
        text + &table.render(terminal) + &terminal.wrap(&format!("\n{CLAUSE}\n"))
    }

    fn to_json(&self) -> Value {
        let Shown { args, to, value, neighbors, rows } = self;
        let every = |code: u64| json_text(to_decimal(self.format().decode(code)));
        let element = |point: &CodePoint| json!({ "bits": self.code(point.code)[0], "value": every(point.code) });
        let result = |rounding: &str, saturation: Saturation, code: u64| {
            json!({
                "spec": "p3109", "group": "standards", "version": VERSION,
                "attributes": format!("rounding={rounding}, saturation={saturation}"), "to": to.to_string(),
                "bits": self.code(code)[0], "value": every(code), "undefined": null, "clause": CLAUSE
            })
        };
        let results = rows.iter().flat_map(|(rounding, codes)| {
            Saturation::ALL.into_iter().zip(codes).map(move |(saturation, code)| result(rounding, saturation, *code))
        });
        let exact = match value {
            Exact::Finite { sticky: true, .. } => args.value.trim().into(),
            value => to_decimal(*value),
        };
        json!({
            "value": args.value, "from": args.from.map(|from| from.to_string()), "to": to.to_string(),
            "source": { "exact": json_text(exact) }, "neighbors": neighbors_json(neighbors, element),
            "results": results.collect::<Value>(), "absent": [], "known_differences": []
        })
    }
}
