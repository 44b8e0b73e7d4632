//! Results that the specification leaves open, with the reasons.

use crate::number::grouped;
use crate::terminal::Terminal;
use serde::Serialize;
use truecast::policy::Condition;
use truecast::report::Report;
use truecast::request::Request;
use truecast::{CastSpec, Counts};

/// Elements with open results, and their possible reasons (`undefined_reasons` of `docs/interfaces.md §6`). A single
/// reason is certain.
#[derive(Clone, Serialize)]
pub struct LeftOpen {
    reasons: Vec<&'static str>,
    elements: u64,
}

/// Returns the open results by reasons, in the order of the data. Pairs of types with the same reasons share an entry.
pub fn by_reasons(report: &Report, request: &Request) -> Vec<LeftOpen> {
    let mut all: Vec<LeftOpen> = Vec::new();
    for tensor in report.tensors.iter().filter(|tensor| tensor.counts.undefined > 0) {
        let Ok(cast) = request.resolve(tensor.from, tensor.to) else { continue };
        let (reasons, elements) = (reasons(&cast, &tensor.counts), tensor.counts.undefined);
        match all.iter_mut().find(|known| known.reasons == reasons) {
            Some(known) => known.elements += elements,
            None => all.push(LeftOpen { reasons, elements }),
        }
    }
    all
}

/// Reasons that the counts do not exclude.
fn reasons(cast: &CastSpec, counts: &Counts) -> Vec<&'static str> {
    let is_possible = |condition: Condition| match condition {
        Condition::Nan => counts.nan_in > 0,
        Condition::Infinite => counts.inf_in > 0,
        Condition::Overflow => counts.saturated + counts.wrapped + counts.to_inf + counts.to_nan > 0,
        // A fraction or an underflow changes a finite value.
        Condition::Fraction | Condition::Underflow => counts.max_abs_error > 0.0,
        _ => true,
    };
    let mut reasons = Vec::new();
    for row in cast.undefined.iter().filter(|row| is_possible(row.condition)) {
        if !reasons.contains(&row.reason) {
            reasons.push(row.reason);
        }
    }
    reasons
}

pub fn text(all: &[LeftOpen], terminal: &Terminal) -> String {
    let line = |open: &LeftOpen| {
        let reasons = open.reasons.join("; or ");
        terminal.wrap(&format!("{} undefined: {reasons}\n", grouped(open.elements)))
    };
    all.iter().map(line).collect()
}
