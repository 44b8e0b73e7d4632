//! One value under every specification: bits, exact value, neighbours, the rounding decision, the results.

use std::cmp::Ordering;
use truecast_core::decimal::ParseDecimalError;
use truecast_core::exact::{decode, decode_float, encode, encode_float};
use truecast_core::format::{CodeBook, FixedFormat, FloatFormat, FormatError, IntFormat};
use truecast_core::policy::{CastPolicy, Condition, IntOverflow};
use truecast_core::spec::{Interpretation, SpecError, clause_of, interpretations, onnx, openvino, tile, tosa};
use truecast_core::text::{encode_number, print_one, read};
use truecast_core::{CastSpec, DType, Exact, Kind, Outcome, Rounding, cast_one};

/// A code and what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Its type.
    pub dtype: DType,
    /// Its code.
    pub code: u64,
    /// Its exact value.
    pub value: Exact,
}

impl Decoded {
    fn new(dtype: DType, code: u64) -> Decoded {
        Decoded { dtype, code, value: decode(dtype, code) }
    }

    /// Sign, exponent and fraction fields of a float as bits, `None` for other kinds.
    #[must_use]
    pub fn fields(&self) -> Option<(Option<bool>, u64, u64)> {
        let Kind::Float(f) = self.dtype.kind() else { return None };
        let fraction = self.code & ((1 << f.man_bits) - 1);
        let exponent = (self.code & f.magnitude_mask()) >> f.man_bits;
        Some((f.signed.then_some(self.code & f.sign_bit() != 0), exponent, fraction))
    }

    /// The values of its type next to it: the next lower and the next higher one, if there are such numbers. None of NaN
    /// and infinities.
    ///
    /// # Examples
    /// ```
    /// use truecast::{DType, explain::explain};
    /// let one = explain(DType::F16, 0x3c00, DType::F32).source;
    /// assert_eq!(one.adjacent().map(|e| e.map(|e| e.code)), [Some(0x3bff), Some(0x3c01)]);
    /// ```
    #[must_use]
    pub fn adjacent(&self) -> [Option<Decoded>; 2] {
        let Exact::Finite { neg, .. } = self.value else { return [None, None] };
        let of_integer = |f: IntFormat| {
            let value = f.value(self.code);
            [value - 1, value + 1].map(|v| (f.min()..=f.max()).contains(&v).then(|| f.code(v)))
        };
        let codes = match self.dtype.kind() {
            Kind::Float(f) => {
                let magnitude = self.code & f.magnitude_mask();
                let outward = (magnitude < f.max_code()).then(|| magnitude + 1);
                let smallest = if f.has_zero { 1 } else { 0 };
                match (magnitude, f.signed) {
                    (0, true) => [Some(smallest | f.sign_bit()), Some(smallest)],
                    (0, false) => [None, outward],
                    _ if neg => [outward.map(|m| m | f.sign_bit()), Some(f.sign_bit() | (magnitude - 1))],
                    _ => [Some(magnitude - 1), outward],
                }
            }
            Kind::Int(f) => of_integer(f),
            Kind::Fixed(f) => of_integer(f.int),
            Kind::Book(_) => [self.code.checked_sub(1), Some(self.code + 1).filter(|code| *code < 16)],
            _ => [None, None],
        };
        let number =
            |code: u64| Some(Decoded::new(self.dtype, code)).filter(|e| matches!(e.value, Exact::Finite { .. }));
        codes.map(|code| code.and_then(number))
    }

    /// What a NaN consists of; `None` of anything else.
    #[must_use]
    pub fn nan(&self) -> Option<NanParts> {
        let Exact::Nan { neg, payload } = self.value else { return None };
        let fields = payload.zip(match self.dtype.kind() {
            Kind::Float(f) => Some(u32::from(f.man_bits)),
            _ => None,
        });
        let (is_quiet, payload, payload_bits) = match fields {
            // The fraction lies at the top; its first bit is the quiet bit.
            Some((bits, width)) => (Some(bits >> 63 == 1), (bits << 1).checked_shr(65 - width).unwrap_or(0), width - 1),
            None => (None, 0, 0),
        };
        Some(NanParts { neg, is_quiet, payload, payload_bits })
    }
}

/// What a NaN consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NanParts {
    /// Its sign bit is set.
    pub neg: bool,
    /// Quiet or signalling; `None` where the format has one NaN (for each sign) and no such difference.
    pub is_quiet: Option<bool>,
    /// The fraction bits below the quiet bit.
    pub payload: u64,
    /// How many they are.
    pub payload_bits: u32,
}

/// A code of a format and what it means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodePoint {
    /// The code.
    pub code: u64,
    /// Its exact value.
    pub value: Exact,
}

/// Where a value lies among those of the destination, an element type or a [`FloatFormat`] of one's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours<E = Decoded> {
    /// The nearest value at or below it, as far as the type goes: `None` below everything.
    pub below: Option<E>,
    /// The nearest value at or above it.
    pub above: Option<E>,
    /// What the next step beyond the largest finite value would be, if the value lies beyond it: the code there, and what
    /// that code means instead of this number. No code of an integer is free for it.
    pub beyond: Option<(Exact, Option<E>)>,
    /// It lies at that step or further out.
    pub is_out_of_range: bool,
    /// Halfway between the two neighbours (or between the last value and the step beyond it).
    pub midpoint: Option<Exact>,
    /// Of a code book instead: the largest value that still takes the neighbour below.
    pub threshold: Option<Exact>,
    /// How far from `below` (from `above`, if nothing is below) the value lies, in steps from one value of the type to the
    /// next at this place; to the nearest f64.
    pub steps: Option<f64>,
    /// How the value lies to the midpoint.
    pub decision: Decision,
}

/// What a rounding sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The value is a value of the destination.
    Exact,
    /// It is nearer to the neighbour below.
    Below,
    /// It is halfway: ties to even takes the neighbour with the even code.
    Tie,
    /// It is nearer to the neighbour above.
    Above,
    /// NaN and infinities are not rounded.
    NotRounded,
    /// Bool has no such picture; nor have negative numbers in types without a sign, nor what lies beyond a code book.
    Other,
}

/// The answer of one specification.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Which one.
    pub interpretation: Interpretation,
    /// What it gives.
    pub outcome: Outcome,
}

/// Everything about one value.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The source element.
    pub source: Decoded,
    /// The destination type.
    pub to: DType,
    /// Where it lies.
    pub neighbours: Neighbours,
    /// The results.
    pub answers: Vec<Answer>,
    /// The specifications that were asked and lack the pair.
    pub absent: Vec<Absent>,
}

/// A specification without the pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Its name.
    pub spec: &'static str,
    /// Its version; empty if none has the pair.
    pub version: String,
    /// What it lacks.
    pub why: String,
}

/// Explains the conversion of one code under every specification.
///
/// # Panics
/// If a type is complex or text.
///
/// # Examples
/// ```
/// use truecast::{DType, Outcome, explain::explain};
/// let e = explain(DType::F32, 465f32.to_bits().into(), DType::F8E4M3Fn);
/// assert_eq!(e.neighbours.below.unwrap().code, 0x7e); // 448
/// assert_eq!(e.answers[0].outcome, Outcome::Defined(0x7e)); // ONNX saturates
/// ```
#[must_use]
pub fn explain(from: DType, code: u64, to: DType) -> Explanation {
    let mut explanation = explain_under(from, code, to, interpretations(from, to));
    explanation.answers.extend(tile_answers(from, code, to, &tile::Cast::to(to)));
    explanation.absent = absent(from, to);
    explanation
}

/// The specifications, or their versions, that lack a pair of types.
#[must_use]
pub fn absent(src: DType, dst: DType) -> Vec<Absent> {
    let why = |error: SpecError| match error {
        SpecError::Type { dtype, .. } => format!("no {dtype}"),
        SpecError::Pair { .. } => format!("no {src} to {dst}"),
        other => other.to_string(),
    };
    let mut all = Vec::new();
    let mut note = |spec, version: String, error| all.push(Absent { spec, version, why: why(error) });
    if let Err(error) = onnx::interpretations_at(onnx::NEWEST_OPSET, src, dst) {
        note("onnx", onnx::NEWEST_OPSET.to_string(), error);
    }
    let of_tosa = tosa::Version::ALL.map(|version| (version, tosa::interpretations_at(version, src, dst).err()));
    let nowhere = of_tosa.iter().all(|(_, error)| error.is_some());
    for (version, error) in of_tosa {
        match error {
            // What the newest lacks, no version has.
            Some(error) if nowhere && version == tosa::Version::V1_1 => note("tosa", String::new(), error),
            Some(error) if !nowhere => note("tosa", version.name().into(), error),
            _ => {}
        }
    }
    if let Err(error) = openvino::Convert::to(dst).resolve(src) {
        note("openvino", openvino::VERSION.into(), error);
    }
    let tile = tile::Cast::to(dst);
    if let (true, Err(error)) = (tile.every_attribute(src).is_empty(), tile.meaning(src)) {
        note("tile", tile.release.name().into(), error);
    }
    all
}

/// What Tile IR's operation for the pair gives under every attribute that its release allows, and under the profiles that
/// give another result than `spec`; none if the release does not allow the pair.
fn tile_answers(from: DType, code: u64, to: DType, asked: &tile::Cast) -> Vec<Answer> {
    tile_answers_of(from, code, to, &asked.every_attribute(from), &tile::Profile::ALL)
}

fn tile_answers_of(from: DType, code: u64, to: DType, asked: &[tile::Cast], profiles: &[tile::Profile]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for attributes in asked {
        let mut seen = Vec::new();
        for &profile in profiles {
            let cast = tile::Cast { profile, ..*attributes };
            let Ok(meaning) = cast.meaning(from) else { continue };
            let tile::Element { outcome, note } = meaning.element(code);
            if seen.contains(&outcome) {
                continue;
            }
            seen.push(outcome);
            let words = [format!("profile={}", profile.name()), attributes.attribute_text()];
            let words: Vec<_> = words.into_iter().filter(|w| !w.is_empty()).collect();
            let pair =
                CastSpec { src: from, dst: to, policy: CastPolicy::IEEE, undefined: &[], clause: meaning.clause() };
            let resolved = cast.resolve(from).unwrap_or(pair);
            let interpretation = Interpretation {
                spec: "tile",
                version: attributes.release.name().into(),
                attributes: words.join(", "),
                cast: CastSpec { clause: note.unwrap_or(resolved.clause), ..resolved },
            };
            answers.push(Answer { interpretation, outcome });
        }
    }
    answers
}

/// Explains the conversion of one code under Tile IR alone.
///
/// # Errors
/// What the release forbids under every attribute.
pub fn explain_tile(from: DType, code: u64, to: DType, asked: &tile::Cast) -> Result<Explanation, SpecError> {
    let answers = tile_answers(from, code, to, asked);
    match (answers.is_empty(), asked.meaning(from)) {
        (true, Err(error)) => Err(error),
        _ => Ok(Explanation { answers, ..explain_under(from, code, to, Vec::new()) }),
    }
}

/// Explains the conversion of one code under Tile IR with exactly these attributes, profile and options.
///
/// # Errors
/// What the release forbids.
pub fn explain_tile_as(from: DType, code: u64, asked: &tile::Cast) -> Result<Explanation, SpecError> {
    let to = asked.to;
    asked.meaning(from)?;
    let mut answers = tile_answers_of(from, code, to, &[*asked], &[asked.profile]);
    for answer in &mut answers {
        let options = asked.options.names().map(|name| format!(", {name}")).collect::<String>();
        answer.interpretation.attributes += &options;
    }
    Ok(Explanation { answers, ..explain_under(from, code, to, Vec::new()) })
}

/// Explains the conversion of one code under the given interpretations. An older version is left out where it gives what
/// a newer one does.
///
/// # Panics
/// As [`explain`].
#[must_use]
pub fn explain_under(from: DType, code: u64, to: DType, interpretations: Vec<Interpretation>) -> Explanation {
    let source = Decoded::new(from, code);
    let answer = |mut i: Interpretation| {
        let outcome = cast_one(&i.cast, code);
        i.cast.clause = clause_of(&i.cast, code);
        Answer { outcome, interpretation: i }
    };
    let answers = interpretations.into_iter().map(answer).collect();
    let neighbours = neighbours(source.value, to);
    Explanation { source, to, neighbours, answers: without_repeats(answers), absent: Vec::new() }
}

/// Explains the conversion of a text under the given interpretations of that pair. It may have more digits than any code
/// can say. The source element has no
/// code of its own: it is 0.
///
/// # Errors
/// A text that the destination does not take as a number.
///
/// # Panics
/// If the destination is complex or text.
///
/// # Examples
/// ```
/// use truecast::{DType, Outcome, explain::{Decision, explain_text}, spec::interpretations};
/// let all = interpretations(DType::String, DType::F8E4M3Fn);
/// let e = explain_text(b"464.0000000000000000001", DType::F8E4M3Fn, all)?;
/// assert_eq!(e.neighbours.decision, Decision::Above); // 464 is the tie; f64 would not see the difference
/// # Ok::<(), truecast::decimal::ParseDecimalError>(())
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
    let neighbours = neighbours(source.value, to);
    Ok(Explanation { source, to, neighbours, answers: without_repeats(answers), absent: Vec::new() })
}

/// Leaves out what an older version gives as a newer one does.
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

/// What a code is as text, under the given interpretations of that pair.
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

/// The end of a type on one side of zero.
struct End {
    /// The last finite value.
    last: Exact,
    /// Where the next one would be.
    step: Exact,
    /// The code that follows that of the last value, if it is not another number's.
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
        let scaled = |value| match value {
            Exact::Finite { neg, sig, exp, sticky } => {
                Exact::Finite { neg, sig, exp: exp - i32::from(f.frac_bits), sticky }
            }
            other => other,
        };
        End { last: scaled(last), step: scaled(step), code: None }
    }
}

/// An integer of at most 65 bits, the widest of which is a power of two.
fn integer(value: i128) -> Exact {
    let magnitude = value.unsigned_abs();
    let exp = magnitude.trailing_zeros() * (magnitude > u64::MAX.into()) as u32;
    Exact::Finite { neg: value < 0, sig: (magnitude >> exp) as u64, exp: exp as i32, sticky: false }
}

impl<E> Neighbours<E> {
    fn nothing(decision: Decision) -> Self {
        Neighbours {
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

    fn map<F>(self, f: impl Fn(E) -> F) -> Neighbours<F> {
        let Neighbours { below, above, beyond, is_out_of_range, midpoint, threshold, steps, decision } = self;
        let beyond = beyond.map(|(step, code)| (step, code.map(&f)));
        let (below, above) = (below.map(&f), above.map(&f));
        Neighbours { below, above, beyond, is_out_of_range, midpoint, threshold, steps, decision }
    }
}

/// Explains where a value lies among those of a format that is no element type: people design formats with this.
///
/// # Errors
/// The fields describe no format.
///
/// # Examples
/// ```
/// use truecast::{DType, FloatFormat, exact::decode, explain::{Decision, explain_format}};
/// let e3m3 = FloatFormat::ieee(3, 3)?;
/// let value = decode(DType::F32, 1.0625f32.to_bits().into());
/// let e = explain_format(value, &e3m3)?;
/// assert_eq!((e.below.unwrap().code, e.above.unwrap().code), (0b0_011_000, 0b0_011_001)); // 1 and 1.125
/// assert_eq!((e.decision, e.steps), (Decision::Tie, Some(0.5)));
/// # Ok::<(), truecast::format::FormatError>(())
/// ```
pub fn explain_format(value: Exact, format: &FloatFormat) -> Result<Neighbours<CodePoint>, FormatError> {
    format.check()?;
    Ok(in_float(value, format))
}

fn neighbours(value: Exact, to: DType) -> Neighbours {
    let element = |CodePoint { code, value }| Decoded { dtype: to, code, value };
    match to.kind() {
        Kind::Float(f) => in_float(value, &f).map(element),
        Kind::Int(f) => in_steps(value, to, |neg| End::of_integer(&f, neg)).map(element),
        Kind::Fixed(f) => in_steps(value, to, |neg| End::of_fixed(&f, neg)).map(element),
        Kind::Book(book) => in_book(value, to, book),
        _ => Neighbours::nothing(not_placed(value)),
    }
}

/// NaN and infinities lie nowhere; of other values this is not said.
fn not_placed(value: Exact) -> Decision {
    if matches!(value, Exact::Finite { .. }) { Decision::Other } else { Decision::NotRounded }
}

fn in_float(value: Exact, f: &FloatFormat) -> Neighbours<CodePoint> {
    let point = |code| CodePoint { code, value: decode_float(f, code) };
    match value {
        Exact::Finite { neg: true, .. } if !f.signed => {
            Neighbours { above: Some(point(0)), ..Neighbours::nothing(Decision::Other) }
        }
        Exact::Finite { neg, .. } => between(value, neg, End::of_float(f, neg), |rounding| {
            let policy = CastPolicy { to_float: rounding, ..CastPolicy::IEEE };
            encode_float(f, &policy, value).code.map(point)
        }),
        _ => Neighbours::nothing(Decision::NotRounded),
    }
}

/// Of a type whose values are all equally far apart.
fn in_steps(value: Exact, to: DType, end: impl Fn(bool) -> End) -> Neighbours<CodePoint> {
    let Exact::Finite { neg, .. } = value else { return Neighbours::nothing(Decision::NotRounded) };
    between(value, neg, end(neg), |rounding| {
        let int_overflow = IntOverflow::Saturate;
        let policy = CastPolicy { to_float: rounding, to_int: rounding, int_overflow, ..CastPolicy::IEEE };
        let code = encode(to, &policy, value).code?;
        Some(CodePoint { code, value: decode(to, code) })
    })
}

/// `round` gives what the value is rounded to.
fn between(value: Exact, neg: bool, end: End, round: impl Fn(Rounding) -> Option<CodePoint>) -> Neighbours<CodePoint> {
    let nothing = Neighbours::nothing;
    let rounded = |rounding| round(rounding).filter(|point| matches!(point.value, Exact::Finite { .. }));
    let (down, up) = (rounded(Rounding::Down), rounded(Rounding::Up));
    let End { last: max, step, code } = end;
    let outward = if neg { Ordering::Less } else { Ordering::Greater };
    let at_the_end = value.cmp_value(max) == outward;
    let (down, up) = match at_the_end {
        true if neg => (None, up),
        true => (down, None),
        false => (down, up),
    };
    let beyond = at_the_end.then_some((step, code));
    let is_out_of_range = at_the_end && value.cmp_value(step) != outward.reverse();
    if let Some(here) = down.iter().chain(&up).find(|e| same(e.value, value)).copied() {
        return Neighbours { below: Some(here), above: Some(here), ..nothing(Decision::Exact) };
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
    Neighbours { below: down, above: up, beyond, is_out_of_range, midpoint, threshold: None, steps, decision }
}

/// Thresholds of its own instead of midpoints. Source: `docs/spec/openvino.md §1.3`.
fn in_book(value: Exact, to: DType, book: &CodeBook) -> Neighbours {
    let nothing = Neighbours::nothing(not_placed(value));
    if nothing.decision == Decision::NotRounded {
        return nothing;
    }
    let codes = || (0..book.values.len() as u64).map(|code| Decoded::new(to, code));
    if let Some(here) = codes().find(|e| same(e.value, value)) {
        return Neighbours { below: Some(here.clone()), above: Some(here), decision: Decision::Exact, ..nothing };
    }
    let below = codes().rfind(|e| value.cmp_value(e.value) == Ordering::Greater);
    let above = codes().find(|e| value.cmp_value(e.value) == Ordering::Less);
    let (Some(lower), Some(_)) = (&below, &above) else {
        return Neighbours { below, above, is_out_of_range: true, ..nothing };
    };
    let threshold = decode(DType::F32, u64::from(book.thresholds[lower.code as usize]));
    let decision = if value.cmp_value(threshold) == Ordering::Greater { Decision::Above } else { Decision::Below };
    Neighbours { below, above, threshold: Some(threshold), decision, ..nothing }
}

/// How many steps of the size `b - a` lie between `a` and the value.
fn steps_between(a: Exact, b: Exact, value: Exact) -> Option<f64> {
    let steps = difference(value, a)? / difference(b, a)?;
    Some(steps.abs()).filter(|steps| steps.is_finite())
}

/// `a - b`, to the nearest f64, or nearly: exact before that where the exponents are near each other, which they are
/// wherever leading digits cancel.
fn difference(a: Exact, b: Exact) -> Option<f64> {
    let (Exact::Finite { neg: an, sig: asig, exp: ae, .. }, Exact::Finite { neg: bn, sig: bsig, exp: be, .. }) = (a, b)
    else {
        return None;
    };
    let (ae, be) = (if asig == 0 { be } else { ae }, if bsig == 0 { ae } else { be });
    let signed = |neg: bool, magnitude: f64| if neg { -magnitude } else { magnitude };
    let common = ae.min(be);
    if ae.max(be) - common > 60 {
        return Some(signed(an, scaled(asig as f64, ae)) - signed(bn, scaled(bsig as f64, be)));
    }
    let on_grid = |neg: bool, sig: u64, exp: i32| {
        let magnitude = i128::from(sig) << (exp - common);
        if neg { -magnitude } else { magnitude }
    };
    Some(scaled((on_grid(an, asig, ae) - on_grid(bn, bsig, be)) as f64, common))
}

/// `x * 2^exp`, in two steps, because either alone may leave the range.
fn scaled(x: f64, exp: i32) -> f64 {
    x * 2f64.powi(exp / 2) * 2f64.powi(exp - exp / 2)
}

/// By how much a number was rounded when it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundingError {
    /// The number without what was read, to about three digits.
    pub value: f64,
    /// Its size in steps between values of the type at this place.
    pub ulps: f64,
}

/// By how much `typed` differs from the element that it was rounded to; `None` if that is no number, or the last one.
///
/// # Examples
/// ```
/// use truecast::{DType, decimal::parse, explain::{explain, rounding_error}};
/// let read = explain(DType::F32, 0.1f32.to_bits().into(), DType::F16).source;
/// let error = rounding_error(parse("0.1")?, &read).unwrap();
/// assert!(error.value < -1.4e-9 && error.ulps < 0.5);
/// # Ok::<(), truecast::decimal::ParseDecimalError>(())
/// ```
#[must_use]
pub fn rounding_error(typed: Exact, read: &Decoded) -> Option<RoundingError> {
    let [previous, next] = read.adjacent();
    let toward = if typed.cmp_value(read.value) == Ordering::Less { previous } else { next }?;
    let value = difference(typed, read.value)?;
    let ulps = (value / difference(toward.value, read.value)?).abs();
    (value.is_finite() && ulps.is_finite()).then_some(RoundingError { value, ulps })
}

fn same(a: Exact, b: Exact) -> bool {
    let inexact = matches!(a, Exact::Finite { sticky: true, .. }) || matches!(b, Exact::Finite { sticky: true, .. });
    !inexact && a.cmp_value(b) == Ordering::Equal
}

/// Halfway between two neighbours of one format, which differ by one unit on the finer grid or by one on the coarser.
fn middle(a: Exact, b: Exact) -> Option<Exact> {
    let (Exact::Finite { neg: an, sig: asig, exp: ae, .. }, Exact::Finite { neg: bn, sig: bsig, exp: be, .. }) = (a, b)
    else {
        return None;
    };
    // A zero has no exponent of its own.
    let common = if asig == 0 {
        be
    } else if bsig == 0 {
        ae
    } else {
        ae.min(be)
    };
    let on_grid = |neg: bool, sig: u64, exp: i32| {
        let magnitude = if sig == 0 { 0 } else { (sig as i128) << (exp - common) };
        if neg { -magnitude } else { magnitude }
    };
    let sum = on_grid(an, asig, ae) + on_grid(bn, bsig, be);
    let sig = u64::try_from(sum.unsigned_abs()).ok()?;
    Some(Exact::Finite { neg: sum < 0, sig, exp: common - 1, sticky: false })
}
