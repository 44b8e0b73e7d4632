//! One value under every specification.

use super::why;
use crate::command::explain::{Distinct, Question, of_number, results, to_json};
use crate::command::labels::words;
use crate::failure::Failure;
use crate::policy::PolicyArgs;
use serde_json::{Value, json};
use truecast::explain::{Answer, Decision, Neighbors};
use truecast::request::versions;
use truecast::spec::Interpretation;
use truecast::{DType, Kind, Outcome};

pub fn answer(value: String, from: DType, to: DType) -> Result<Value, Failure> {
    for dtype in [from, to] {
        if matches!(dtype.kind(), Kind::String | Kind::Complex(_)) {
            return Err(super::invalid(format_args!("the explorer converts numbers, not {dtype}")));
        }
    }
    let policy = PolicyArgs::default();
    let question =
        Question { value, from, to, exact: true, clauses: false, random: None, is_stochastic: false, policy };
    let (source, explanation) = of_number(&question)?;
    let mut object = to_json(&question, &explanation, &source);
    object["source"]["fields"] = fields(from);
    object["destination"] = json!({ "fields": fields(to) });
    object["neighbors"]["place"] = json!(place(&explanation.neighbors));
    object["neighbors"]["side"] = json!(side(explanation.neighbors.decision));
    let answers = object["answers"].as_array_mut().into_iter().flatten();
    for (one, Distinct { answers, .. }) in answers.zip(results(&explanation)) {
        one["why"] = json!(why::rules(&answers, explanation.source.code));
        let clause = |answer: &Answer| {
            let clause = match answer.outcome {
                Outcome::Undefined { reason, .. } => reason,
                _ => answer.interpretation.cast.clause,
            };
            let Interpretation { spec, version, .. } = &answer.interpretation;
            let newest = versions(spec).pop().filter(|newest| !version.is_empty() && newest != version);
            json!({ "name": words(&answer.interpretation), "clause": clause, "newest": newest })
        };
        one["clauses"] = answers.into_iter().map(clause).collect();
    }
    Ok(object)
}

/// Widths of sign, exponent and fraction; the width of all bits for types that are not floats.
pub fn fields(dtype: DType) -> Value {
    match dtype.kind() {
        Kind::Float(f) => json!([f.signed as u8, f.exp_bits, f.man_bits]),
        _ => json!([dtype.code_bits()]),
    }
}

/// Position between the lower and the higher neighbor, from 0 to 1. The step beyond the largest value is a neighbor.
fn place<E>(n: &Neighbors<E>) -> Option<f64> {
    let part = n.steps.filter(|steps| *steps <= 1.0)?;
    Some(if n.below.is_some() { part } else { 1.0 - part })
}

fn side(decision: Decision) -> &'static str {
    match decision {
        Decision::Exact => "exact",
        Decision::Below => "below",
        Decision::Above => "above",
        Decision::Tie => "tie",
        _ => "none",
    }
}
