//! The rule that decides an answer, in words.

use std::cmp::Reverse;
use truecast::exact::{decode, encode};
use truecast::explain::Answer;
use truecast::policy::{
    CastPolicy, Condition, IntOverflow, NanSubstitute, NanToInt, Overflow, Subnormals, Unrepresentable,
};
use truecast::{CastSpec, DType, Exact, FloatFormat, Kind, Outcome, Rounding, cast_one};

/// The rules of answers with the same result, the most frequent first.
pub fn rules(answers: &[&Answer], source: u64) -> Vec<String> {
    let mut all: Vec<(String, usize)> = Vec::new();
    for answer in answers {
        let rule = rule(answer, source);
        match all.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, count)) => *count += 1,
            None => all.push((rule, 1)),
        }
    }
    all.sort_by_key(|(_, count)| Reverse(*count));
    all.into_iter().map(|(rule, _)| rule).collect()
}

/// Text such as `saturates: a value beyond the range becomes the largest one`.
fn rule(answer: &Answer, source: u64) -> String {
    let cast = &answer.interpretation.cast;
    let code = match answer.outcome {
        Outcome::Undefined { .. } => return "leaves the result open".into(),
        Outcome::Refused { condition } => return format!("refuses: {}", condition.refusal()),
        Outcome::Defined(code) => code,
    };
    let Some([first, last]) = cast.legs() else { return of_one(cast, source, code) };
    let between = cast_one(&first, source).code().unwrap_or(0);
    format!("rounds to {} first, then {}", first.dst, of_one(&last, between, code))
}

fn of_one(cast: &CastSpec, source: u64, code: u64) -> String {
    let (to, policy, value) = (cast.dst, &cast.policy, cast.source_value(source));
    let encoded = encode(to, policy, value);
    // The answers of Tile IR may combine several operations.
    if encoded.code != Some(code) {
        return "combines the operations of its clause".into();
    }
    let is_negative = matches!(value, Exact::Inf { neg: true } | Exact::Finite { neg: true, .. });
    if policy.relu && is_negative {
        return "a negative value becomes 0 (ReLU)".into();
    }
    let kept = CastSpec { policy: CastPolicy { subnormals: Subnormals::Keep, ..*policy }, ..*cast };
    if cast_one(&kept, source).code() != Some(code) {
        return "flushes subnormals to zero".into();
    }
    match (to.kind(), encoded.condition) {
        (Kind::Bool, _) => "zero is false, every other value is true",
        (Kind::Int(_), None | Some(Condition::Fraction)) => rounding(to, policy.to_int, value, code),
        (Kind::Int(_), Some(Condition::Nan)) => match policy.nan_to_int {
            NanToInt::Zero => "NaN becomes 0",
            NanToInt::Saturate => "NaN becomes the largest value",
            NanToInt::Indefinite => "NaN has the code of every value out of range",
            _ => "NaN has the code with only the top bit set",
        },
        (Kind::Int(_), Some(_)) => match policy.int_overflow {
            IntOverflow::Wrap => "wraps: out of range, the low bits remain",
            IntOverflow::Saturate => "saturates: out of range, the nearest end of the range",
            IntOverflow::Indefinite => "out of range, every value has the same code",
            _ => "saturates: the nearest end of the range, as an f32 holds it",
        },
        (Kind::Float(f), _) if matches!(value, Exact::Nan { .. }) => of_nan(&f, policy),
        (Kind::Float(f), Some(Condition::Infinite)) => beyond(&f, to, policy.inf, code),
        (Kind::Float(f), Some(Condition::Overflow)) => beyond(&f, to, policy.overflow, code),
        (_, Some(Condition::Negative | Condition::NegativeZero)) => match policy.negative {
            Unrepresentable::Nan => "a negative value becomes NaN: the type has no sign",
            Unrepresentable::Smallest => "a negative value becomes the smallest value: the type has no sign",
            _ => "a negative value loses its sign: the type has none",
        },
        (_, Some(Condition::Zero | Condition::Underflow)) => match policy.vanishing {
            Unrepresentable::Nan => "a smaller value than the smallest becomes NaN: the type has no zero",
            _ => "a smaller value than the smallest becomes the smallest: the type has no zero",
        },
        (_, Some(Condition::Nan)) => "NaN takes a code of the type, which has no NaN",
        (_, Some(Condition::Infinite | Condition::Overflow)) => "saturates: the type has neither infinity nor NaN",
        (Kind::Book(_), _) => "takes the nearest value of the table, by thresholds",
        _ => rounding(to, policy.to_float, value, code),
    }
    .into()
}

fn of_nan(f: &FloatFormat, policy: &CastPolicy) -> &'static str {
    match policy.nan_substitute {
        _ if f.nan_code().is_some() => "NaN stays NaN",
        NanSubstitute::ZeroFlipped => "NaN becomes a zero of the other sign: the type has no NaN",
        NanSubstitute::MaxSigned => "NaN becomes the largest value of its sign: the type has no NaN",
        NanSubstitute::MaxPositive => "NaN becomes the largest value: the type has no NaN",
        NanSubstitute::CodeZero => "NaN becomes code 0: the type has no NaN",
    }
}

/// A value beyond the largest finite value, or an infinity.
fn beyond(f: &FloatFormat, to: DType, rule: Overflow, code: u64) -> &'static str {
    match (decode(to, code), rule) {
        (Exact::Inf { .. }, _) => "a value beyond the range becomes infinity",
        (Exact::Nan { .. }, _) => "a value beyond the range becomes NaN: the type has no infinity",
        (_, Overflow::Saturate) => "saturates: a value beyond the range becomes the largest one",
        _ if f.inf_code().is_some() || f.nan_code().is_some() => "its rounding stops at the largest finite value",
        _ => "saturates: the type has neither infinity nor NaN",
    }
}

fn rounding(to: DType, rounding: Rounding, value: Exact, code: u64) -> &'static str {
    if decode(to, code).cmp_value(value).is_eq() {
        return "the value is a value of the type";
    }
    match rounding {
        Rounding::NearestEven => "rounds to nearest, a tie to the even code",
        Rounding::NearestAway => "rounds to nearest, a tie away from zero",
        Rounding::NearestUp => "rounds to nearest, a tie up",
        Rounding::TowardZero => "rounds toward zero: truncates",
        Rounding::AwayFromZero => "rounds away from zero",
        Rounding::Up => "rounds up",
        Rounding::Down => "rounds down",
        Rounding::ToOdd => "rounds to odd: a digit that is lost leaves an odd code",
    }
}
