//! Place of a value among the values of a format. The place has the neighbors, the finite ends, and the side of the
//! midpoint.

use super::distance::{middle, same, steps_between};
use super::element::Decoded;
use std::cmp::Ordering;
use truecast_core::exact::{decode, decode_float, encode, encode_float};
use truecast_core::format::{CodeBook, FixedFormat, FloatFormat, FormatError, IntFormat};
use truecast_core::policy::{CastPolicy, IntOverflow};
use truecast_core::{DType, Exact, Kind, Rounding};

/// A code of a format and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodePoint {
    /// The code.
    pub code: u64,
    /// Exact value of the code.
    pub value: Exact,
}

/// Place of a value among the values of a destination. The destination is an element type or a custom [`FloatFormat`].
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbors<E = Decoded> {
    /// The nearest destination value at or below the given value; `None` below the lowest.
    pub below: Option<E>,
    /// The nearest destination value at or above the given value; `None` above the highest.
    pub above: Option<E>,
    /// For a value beyond the largest finite value. The first part is the next step outward, and the second is the
    /// element that follows the largest finite code. Integers lack the second part.
    pub beyond: Option<(Exact, Option<E>)>,
    /// True if the given value is at or beyond the step in `beyond`.
    pub is_out_of_range: bool,
    /// Midpoint of the two neighbors. Beyond the largest finite value, the midpoint of this value and the step in
    /// `beyond`.
    pub midpoint: Option<Exact>,
    /// For a code book: the largest value that rounds to the neighbor below. `midpoint` is then `None`.
    pub threshold: Option<Exact>,
    /// Distance from `below`, or from `above` if `below` is `None`, rounded to f64. The unit is the distance between
    /// the two neighbors.
    pub steps: Option<f64>,
    /// Neighbor that is nearer to the given value.
    pub decision: Decision,
}

/// Outcome of rounding to nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The value is a value of the destination.
    Exact,
    /// Nearer to the neighbor below.
    Below,
    /// Halfway; ties to even selects the neighbor with the even code.
    Tie,
    /// Nearer to the neighbor above.
    Above,
    /// NaN and infinities are not rounded.
    NotRounded,
    /// No decision: Bool, a negative number in an unsigned type, or a value beyond a code book.
    Other,
}

/// Largest finite value on one side of zero.
struct End {
    last: Exact,
    /// Value one step beyond `last`; not a value of the type.
    step: Exact,
    /// Code after the code of `last`, if any.
    code: Option<CodePoint>,
}

impl End {
    fn of_float(f: &FloatFormat, neg: bool) -> End {
        let sign = if neg { f.sign_bit() } else { 0 };
        let point = |code| CodePoint { code, value: decode_float(f, code) };
        let last = point(f.max_code() | sign).value;
        let Exact::Finite { sig, exp, .. } = last else { unreachable!("the largest finite value is finite") };
        let next = f.max_code() + 1;
        let code = (next <= f.magnitude_mask()).then(|| point(next | sign));
        End { last, step: Exact::Finite { neg, sig: sig + 1, exp, sticky: false }, code }
    }

    fn of_integer(f: &IntFormat, neg: bool) -> End {
        let (last, step) = if neg { (f.min(), f.min() - 1) } else { (f.max(), f.max() + 1) };
        End { last: integer(last), step: integer(step), code: None }
    }

    fn of_fixed(f: &FixedFormat, neg: bool) -> End {
        let End { last, step, .. } = End::of_integer(&f.int, neg);
        let [last, step] = [last, step].map(|value| value.scaled(-i32::from(f.frac_bits)));
        End { last, step, code: None }
    }
}

/// Converts an integer of at most 65 bits. A 65-bit integer must be a power of two.
fn integer(value: i128) -> Exact {
    let magnitude = value.unsigned_abs();
    let exp = magnitude.trailing_zeros() * (magnitude > u64::MAX.into()) as u32;
    Exact::Finite { neg: value < 0, sig: (magnitude >> exp) as u64, exp: exp as i32, sticky: false }
}

impl<E> Neighbors<E> {
    fn nothing(decision: Decision) -> Self {
        Neighbors {
            below: None,
            above: None,
            beyond: None,
            is_out_of_range: false,
            midpoint: None,
            threshold: None,
            steps: None,
            decision,
        }
    }

    fn map<F>(self, f: impl Fn(E) -> F) -> Neighbors<F> {
        let Neighbors { below, above, beyond, is_out_of_range, midpoint, threshold, steps, decision } = self;
        let beyond = beyond.map(|(step, code)| (step, code.map(&f)));
        let (below, above) = (below.map(&f), above.map(&f));
        Neighbors { below, above, beyond, is_out_of_range, midpoint, threshold, steps, decision }
    }
}

/// Places a value among the values of a custom format, for designers of formats.
///
/// # Errors
/// The fields describe no valid format.
///
/// # Examples
/// ```
/// use truecast_core::{DType, FloatFormat, exact::decode};
/// use truecast::explain::{Decision, explain_format};
/// let e3m3 = FloatFormat::ieee(3, 3)?;
/// let value = decode(DType::F32, 1.0625f32.to_bits().into());
/// let e = explain_format(value, &e3m3)?;
/// assert_eq!((e.below.unwrap().code, e.above.unwrap().code), (0b0_011_000, 0b0_011_001)); // 1 and 1.125
/// assert_eq!((e.decision, e.steps), (Decision::Tie, Some(0.5)));
/// # Ok::<(), truecast_core::format::FormatError>(())
/// ```
pub fn explain_format(value: Exact, format: &FloatFormat) -> Result<Neighbors<CodePoint>, FormatError> {
    format.check()?;
    Ok(in_float(value, format))
}

pub(super) fn neighbors(value: Exact, to: DType) -> Neighbors {
    let element = |CodePoint { code, value }| Decoded { dtype: to, code, value };
    match to.kind() {
        Kind::Float(f) => in_float(value, &f).map(element),
        Kind::Int(f) => in_steps(value, to, |neg| End::of_integer(&f, neg)).map(element),
        Kind::Fixed(f) => in_steps(value, to, |neg| End::of_fixed(&f, neg)).map(element),
        Kind::Book(book) => in_book(value, to, book),
        _ => Neighbors::nothing(not_placed(value)),
    }
}

fn not_placed(value: Exact) -> Decision {
    if matches!(value, Exact::Finite { .. }) { Decision::Other } else { Decision::NotRounded }
}

fn in_float(value: Exact, f: &FloatFormat) -> Neighbors<CodePoint> {
    let point = |code| CodePoint { code, value: decode_float(f, code) };
    match value {
        Exact::Finite { neg: true, .. } if !f.signed => {
            Neighbors { above: Some(point(0)), ..Neighbors::nothing(Decision::Other) }
        }
        Exact::Finite { neg, .. } => between(value, neg, End::of_float(f, neg), |rounding| {
            let policy = CastPolicy { to_float: rounding, ..CastPolicy::IEEE };
            encode_float(f, &policy, value).code.map(point)
        }),
        _ => Neighbors::nothing(Decision::NotRounded),
    }
}

fn in_steps(value: Exact, to: DType, end: impl Fn(bool) -> End) -> Neighbors<CodePoint> {
    let Exact::Finite { neg, .. } = value else { return Neighbors::nothing(Decision::NotRounded) };
    between(value, neg, end(neg), |rounding| {
        let int_overflow = IntOverflow::Saturate;
        let policy = CastPolicy { to_float: rounding, to_int: rounding, int_overflow, ..CastPolicy::IEEE };
        let code = encode(to, &policy, value).code?;
        Some(CodePoint { code, value: decode(to, code) })
    })
}

/// Places a value between two neighbors; `round` gives the rounded value.
fn between(value: Exact, neg: bool, end: End, round: impl Fn(Rounding) -> Option<CodePoint>) -> Neighbors<CodePoint> {
    let nothing = Neighbors::nothing;
    let rounded = |rounding| round(rounding).filter(|point| matches!(point.value, Exact::Finite { .. }));
    let (down, up) = (rounded(Rounding::Down), rounded(Rounding::Up));
    let End { last: max, step, code } = end;
    let outward = if neg { Ordering::Less } else { Ordering::Greater };
    let at_the_end = value.cmp_value(max) == outward;
    let (down, up) = (down.filter(|_| !(at_the_end && neg)), up.filter(|_| !at_the_end || neg));
    let beyond = at_the_end.then_some((step, code));
    let is_out_of_range = at_the_end && value.cmp_value(step) != outward.reverse();
    if let Some(here) = down.iter().chain(&up).find(|e| same(e.value, value)).copied() {
        return Neighbors { below: Some(here), above: Some(here), ..nothing(Decision::Exact) };
    }
    let midpoint = match (&down, &up, at_the_end) {
        (Some(a), Some(b), _) => middle(a.value, b.value),
        _ if at_the_end => middle(max, step),
        _ => None,
    };
    let decision = match midpoint.map(|m| value.cmp_value(m)) {
        Some(Ordering::Less) => Decision::Below,
        Some(Ordering::Equal) => Decision::Tie,
        Some(Ordering::Greater) => Decision::Above,
        None => Decision::Other,
    };
    let steps = match (&down, &up) {
        (Some(a), Some(b)) => steps_between(a.value, b.value, value),
        (Some(a), None) => steps_between(a.value, step, value),
        (None, Some(b)) => steps_between(b.value, step, value),
        (None, None) => None,
    };
    Neighbors { below: down, above: up, beyond, is_out_of_range, midpoint, threshold: None, steps, decision }
}

/// Compares with the thresholds of the code book instead of midpoints (`docs/spec/openvino.md §1.3`).
fn in_book(value: Exact, to: DType, book: &CodeBook) -> Neighbors {
    let nothing = Neighbors::nothing(not_placed(value));
    if nothing.decision == Decision::NotRounded {
        return nothing;
    }
    let codes = || (0..book.values.len() as u64).map(|code| Decoded::new(to, code));
    if let Some(here) = codes().find(|e| same(e.value, value)) {
        return Neighbors { below: Some(here.clone()), above: Some(here), decision: Decision::Exact, ..nothing };
    }
    let below = codes().rfind(|e| value.cmp_value(e.value) == Ordering::Greater);
    let above = codes().find(|e| value.cmp_value(e.value) == Ordering::Less);
    let (Some(lower), Some(_)) = (&below, &above) else {
        return Neighbors { below, above, is_out_of_range: true, ..nothing };
    };
    let threshold = decode(DType::F32, u64::from(book.thresholds[lower.code as usize]));
    let decision = if value.cmp_value(threshold) == Ordering::Greater { Decision::Above } else { Decision::Below };
    Neighbors { below, above, threshold: Some(threshold), decision, ..nothing }
}
