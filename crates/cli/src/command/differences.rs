//! Known deviations of releases from their specification. `explain` prints them.

use super::formats::code_json;
use crate::exact_decimal;
use crate::output::bits;
use crate::table::{Column, Table};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use truecast::DType;
use truecast::decimal::to_decimal;
use truecast::exact::decode;
use truecast::explain::Explanation;
use truecast::spec::openvino::differences::{Difference, Given, OBSERVED, Witness, known, witnesses};

/// Known deviations for the pair if OpenVINO is the only requested specification.
fn differences(e: &Explanation) -> impl Iterator<Item = &'static Difference> {
    let asked = e.answers.iter().all(|answer| answer.interpretation.spec == "openvino");
    known(e.source.dtype, e.to).filter(move |_| asked)
}

/// Input for which the implementation deviates. The explained value if possible.
fn witness(e: &Explanation, difference: &Difference) -> Option<&'static Witness> {
    let differs = |w: &&Witness| w.given(difference.implementation) != Given::Exact;
    let all = || witnesses(e.source.dtype, e.to).filter(differs);
    all().find(|w| w.input == e.source.code).or_else(|| all().next())
}

fn text(dtype: DType, code: u64) -> String {
    let code = dtype.code_of_storage(code);
    format!("{} = {}", bits(code, dtype.code_bits()), exact_decimal::few(&to_decimal(decode(dtype, code))))
}

pub fn render(e: &Explanation, terminal: &Terminal) -> String {
    let mut table = Table::new([
        Column::left("OpenVINO"),
        Column::left("differs").wraps(),
        Column::left("witness").wraps().of_any_length(),
        Column::left("clause"),
    ]);
    for difference in differences(e) {
        let example = witness(e, difference).map(|w| {
            let this = match w.src {
                _ if w.input == e.source.code => "this value".into(),
                DType::Bool => format!("byte {:#04x}", w.input),
                _ => text(w.src, w.input),
            };
            let given = match w.given(difference.implementation) {
                Given::Code(code) => text(w.dst, code),
                Given::ByPosition { group, rest } => format!("{} or {}", text(w.dst, group), text(w.dst, rest)),
                Given::Exact => String::new(),
            };
            format!("{this} gives {given} instead of {}", text(w.dst, w.exact))
        });
        let implementation = format!("{} {OBSERVED}", difference.implementation.name());
        table.row([implementation, difference.what.into(), example.unwrap_or_default(), difference.clause.into()]);
    }
    match differences(e).next() {
        Some(_) => format!("\n{}", table.render(terminal)),
        None => String::new(),
    }
}

pub fn to_json(e: &Explanation) -> Value {
    let element = |dtype: DType, code| code_json(dtype, dtype.code_of_storage(code));
    let given = |w: &Witness, given| match given {
        Given::Exact => json!([element(w.dst, w.exact)]),
        Given::Code(code) => json!([element(w.dst, code)]),
        Given::ByPosition { group, rest } => json!([element(w.dst, group), element(w.dst, rest)]),
    };
    let difference = |d: &Difference| {
        let witness = witness(e, d).map(|w| {
            json!({
                "input": element(w.src, w.input), "exact": element(w.dst, w.exact),
                "given": given(w, w.given(d.implementation)), "is_this_value": w.input == e.source.code
            })
        });
        json!({
            "spec": "openvino", "implementation": d.implementation.name(), "version": OBSERVED, "what": d.what,
            "clause": d.clause, "witness": witness
        })
    };
    differences(e).map(difference).collect()
}
