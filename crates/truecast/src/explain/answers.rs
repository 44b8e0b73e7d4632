//! Answers of specifications for one value.

use super::element::Decoded;
use super::neighbors::{Neighbors, neighbors};
use truecast_core::decimal::ParseDecimalError;
use truecast_core::policy::Condition;
use truecast_core::spec::{Interpretation, clause_of};
use truecast_core::text::{encode_number, print_one, read};
use truecast_core::{DType, Exact, Outcome, cast_one};

/// The answer of one specification.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The specification with its version and attributes.
    pub interpretation: Interpretation,
    /// The result.
    pub outcome: Outcome,
}

/// Everything about one value.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The source element.
    pub source: Decoded,
    /// The source value after scaling. `None` if no specification scales, or if the value is infinite or NaN.
    pub scaled: Option<Exact>,
    /// The destination type.
    pub to: DType,
    /// Place of the value, after scaling, among the destination's values.
    pub neighbors: Neighbors,
    /// The results.
    pub answers: Vec<Answer>,
    /// The specifications that lack the pair.
    pub absent: Vec<Absent>,
}

/// A specification without the pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Name of the specification.
    pub spec: &'static str,
    /// The version that lacks the pair; empty if no version has the pair.
    pub version: String,
    /// The missing type or conversion.
    pub why: String,
}

/// Explains the conversion of one code under the given interpretations. Bits above the width of the type are ignored.
/// An older version is left out if a newer one gives the same result.
///
/// # Panics
/// As [`explain`](fn@super::explain).
#[must_use]
pub fn explain_under(from: DType, code: u64, to: DType, interpretations: Vec<Interpretation>) -> Explanation {
    let code = code & (u64::MAX >> (64 - from.code_bits()));
    let source = Decoded::new(from, code);
    let answer = |mut i: Interpretation| {
        let outcome = cast_one(&i.cast, code);
        i.cast.clause = clause_of(&i.cast, code);
        Answer { outcome, interpretation: i }
    };
    let scales = |i: &&Interpretation| i.cast.policy.scale_exponent != 0;
    let scaled = interpretations.iter().find(scales).map(|i| i.cast.source_value(code));
    let scaled = scaled.filter(|value| matches!(value, Exact::Finite { .. }));
    let answers = interpretations.into_iter().map(answer).collect();
    let neighbors = neighbors(scaled.unwrap_or(source.value), to);
    Explanation { source, scaled, to, neighbors, answers: without_repeats(answers), absent: Vec::new() }
}

/// Explains the conversion of a text under the given interpretations of the pair. The text may have more digits than
/// any code can express. The code of the source element is 0.
///
/// # Errors
/// A text that is not a number for the destination.
///
/// # Panics
/// If the destination is complex or text.
///
/// # Examples
/// ```
/// use truecast_core::{DType, Outcome, spec::interpretations};
/// use truecast::explain::{Decision, explain_text};
/// let all = interpretations(DType::String, DType::F8E4M3Fn);
/// let e = explain_text(b"464.0000000000000000001", DType::F8E4M3Fn, all)?;
/// assert_eq!(e.neighbors.decision, Decision::Above); // 464 is the tie; f64 would not see the difference
/// # Ok::<(), truecast_core::decimal::ParseDecimalError>(())
/// ```
pub fn explain_text(
    text: &[u8],
    to: DType,
    interpretations: Vec<Interpretation>,
) -> Result<Explanation, ParseDecimalError> {
    let number = read(to, text)?;
    let source = Decoded { dtype: DType::String, code: 0, value: number.to_exact() };
    let answer = |i: Interpretation| {
        let outcome = encode_number(to, &i.cast.policy, &number).outcome(i.cast.undefined);
        Answer { outcome, interpretation: i }
    };
    let answers = interpretations.into_iter().map(answer).collect();
    let neighbors = neighbors(source.value, to);
    Ok(Explanation { source, scaled: None, to, neighbors, answers: without_repeats(answers), absent: Vec::new() })
}

fn without_repeats(all: Vec<Answer>) -> Vec<Answer> {
    let mut kept: Vec<Answer> = Vec::new();
    for answer in all {
        let i = &answer.interpretation;
        let same = |a: &&Answer| a.interpretation.spec == i.spec && a.interpretation.attributes == i.attributes;
        if kept.iter().rev().find(same).is_none_or(|newer| newer.outcome != answer.outcome) {
            kept.push(answer);
        }
    }
    kept
}

/// Prints one code as text, under each of the given interpretations of the pair.
///
/// # Panics
/// If the type is complex or text.
#[must_use]
pub fn explain_printing(
    code: u64,
    interpretations: Vec<Interpretation>,
) -> Vec<(Interpretation, Result<String, Condition>)> {
    let printed = |i: Interpretation| {
        let text = print_one(&i.cast, code);
        (i, text)
    };
    interpretations.into_iter().map(printed).collect()
}
