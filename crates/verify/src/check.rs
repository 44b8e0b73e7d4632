//! Comparisons: casters with the reference definition, and the definition with the oracle and with `rustc_apfloat`.

use crate::adapter::{oracle_policy, oracle_rounding, oracle_type};
use crate::buffers::{Source, element, pack};
use crate::oracle;
use crate::report::{Answer, Routes, Sheet, Tally, Witness};
use crate::session::Session;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use truecast_core::policy::{Condition, Overflow};
use truecast_core::{CastPolicy, CastSpec, DType, Layout, Outcome};
use truecast_kernel::{CastError, CastOptions, Caster, Counting, Counts, Elements, ElementsMut, Level};

/// Specification of a cast under the policy; no result is left open.
pub fn spec(src: DType, dst: DType, policy: CastPolicy) -> CastSpec {
    CastSpec { src, dst, policy, undefined: &[], clause: "" }
}

/// Options for a single thread, the caller's.
pub fn exec(level: Level, counting: Counting) -> CastOptions {
    CastOptions { level, threads: NonZeroUsize::MIN, counting, ..CastOptions::default() }
}

/// Results of the reference definition for a list of inputs.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Destination elements; 0 for a refused input.
    pub elements: Vec<u64>,
    /// Index and reason of each refused input.
    pub refused: Vec<(usize, Condition)>,
}

impl Wanted {
    pub fn new(session: &Session, spec: &CastSpec, src: &[u64]) -> Wanted {
        let mut refused = Vec::new();
        let mut one = |(i, &element): (usize, &u64)| match (session.definition)(spec, spec.src.code_of_storage(element))
        {
            Outcome::Defined(code) | Outcome::Undefined { code, .. } => spec.dst.storage_of_code(code),
            Outcome::Refused { condition } => {
                refused.push((i, condition));
                0
            }
        };
        let elements = src.iter().enumerate().map(&mut one).collect();
        Wanted { elements, refused }
    }

    /// The buffer that a caster should write.
    pub fn pack(&self, dst: DType, layout: Layout) -> Vec<u8> {
        pack(dst, layout, self.elements.iter().copied())
    }
}

/// Reason why there is no buffer to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The caster returned an error.
    Cast(CastError),
    /// The caster panicked with this message.
    Panic(String),
}

impl Failure {
    /// The failure as the answer in a witness.
    pub fn answer(&self) -> Answer {
        match self {
            Failure::Cast(CastError::Value { condition, .. }) => Answer::Refused(Some(*condition)),
            Failure::Cast(error) => Answer::Text(error.to_string()),
            Failure::Panic(message) => Answer::Text(format!("panic: {message}")),
        }
    }
}

/// Plans a conversion.
///
/// # Panics
/// If the conversion cannot be planned; numeric types always can.
pub fn caster(spec: &CastSpec, exec: &CastOptions) -> Caster {
    Caster::new(spec, exec).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a caster over `len` elements. The destination buffer first has other bits.
///
/// # Errors
/// The caster's error or panic.
pub fn convert(
    caster: &Caster,
    src: (Layout, &[u8]),
    len: usize,
    layout: Layout,
) -> Result<(Vec<u8>, Counts), Failure> {
    let spec = caster.spec();
    let n_bytes = spec.dst.bytes_in(layout, len as u64).expect("numeric types have a size") as usize;
    let mut dst = vec![0xa5; n_bytes];
    let result = catch_unwind(AssertUnwindSafe(|| {
        let from = Elements::with_layout(spec.src, src.0, len, src.1)?;
        caster.cast(from, ElementsMut::with_layout(spec.dst, layout, len, &mut dst)?)
    }));
    match result {
        Ok(Ok(counts)) => Ok((dst, counts)),
        Ok(Err(error)) => Err(Failure::Cast(error)),
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(Failure::Panic(text.unwrap_or_default()))
        }
    }
}

/// Runs a caster over a whole list, packed on both sides.
///
/// # Errors
/// As [`convert`].
pub fn run_packed(caster: &Caster, src: &Source) -> Result<(Vec<u8>, Counts), Failure> {
    convert(caster, (Layout::Packed, &src.bytes), src.len(), Layout::Packed)
}

/// Witness about one input.
pub fn witness(spec: &CastSpec, who: &str, code: Option<u64>, got: Answer, want: Answer) -> Witness {
    Witness { src: spec.src, dst: spec.dst, policy: spec.policy, who: who.to_owned(), code, got, want }
}

/// Adds the elements that differ between two buffers of type `dst`.
pub fn compare(tally: &mut Tally, spec: &CastSpec, who: &str, src: &[u64], layout: Layout, got: &[u8], want: &[u8]) {
    tally.checks += src.len() as u64;
    if got == want {
        return;
    }
    let before = tally.mismatches;
    for (i, &code) in src.iter().enumerate() {
        let [got, want] = [got, want].map(|bytes| element(spec.dst, layout, bytes, i));
        if got != want {
            tally.fail(witness(spec, who, Some(code), Answer::Code(got), Answer::Code(want)));
        }
    }
    if tally.mismatches == before {
        let (got, want) = (Answer::Text("padding bits set".into()), Answer::Text("zero".into()));
        tally.fail(witness(spec, who, None, got, want));
    }
}

/// Makes all comparisons of a request: casters with the definition, the definition with `rustc_apfloat`, and with the
/// oracle at every `every`-th input.
pub fn compare_all(session: &Session, spec: &CastSpec, src: &Source, every: usize, sheet: &mut Sheet) {
    let wanted = Wanted::new(session, spec, &src.elements);
    let levels = against_levels(session, spec, src, &wanted, &mut sheet.routes);
    sheet.add("casters = definition", levels);
    sheet.add("definition = oracle", against_oracle(spec, src, &wanted, every));
    sheet.add("definition = rustc_apfloat", against_apfloat(spec, src, &wanted));
}

/// Number of elements from which a 16-bit source is converted by a table.
const FILLS_A_TABLE: usize = 131_072;

/// Names and options of casters: every level of the session, with and without streaming stores for small results.
pub fn ways(session: &Session) -> impl Iterator<Item = (String, CastOptions)> {
    const STORES: [(&str, Option<usize>); 2] = [("", None), (", streaming", Some(0))];
    let one = |level: Level| {
        STORES.map(|(stores, stream_above_bytes)| {
            (format!("{level}{stores}"), CastOptions { stream_above_bytes, ..exec(level, Counting::Off) })
        })
    };
    session.levels.iter().flat_map(move |level| one(*level))
}

/// Compares casters at every level of the session with the definition.
///
/// A policy that refuses inputs has three checks. The whole list stops at the first refused input. The list without
/// refused inputs is converted. Each of the refused inputs (at most 16) is converted alone and refused.
pub fn against_levels(session: &Session, spec: &CastSpec, src: &Source, wanted: &Wanted, routes: &mut Routes) -> Tally {
    Tally::timed(|tally| {
        let accepted = (!wanted.refused.is_empty()).then(|| accepted(src, wanted));
        let (src, wanted, whole) = match &accepted {
            Some((kept, want)) => (kept, want, Some((src, wanted))),
            None => (src, wanted, None),
        };
        let want = wanted.pack(spec.dst, Layout::Packed);
        for (who, options) in ways(session) {
            let caster = caster(spec, &options);
            routes.count(caster.route());
            let mut compare_with = |elements: &[u64], bytes: &[u8], want: &[u8]| {
                let got = convert(&caster, (Layout::Packed, bytes), elements.len(), Layout::Packed);
                match got {
                    Ok((got, _)) => compare(tally, spec, &who, elements, Layout::Packed, &got, want),
                    Err(failure) => {
                        let want = Answer::Text("codes".into());
                        tally.fail(witness(spec, &who, None, failure.answer(), want));
                    }
                }
            };
            compare_with(&src.elements, &src.bytes, &want);
            if caster.route().fills_a_table() && !src.is_empty() {
                let n = FILLS_A_TABLE.div_ceil(src.len());
                // Packed elements may end inside a byte, so the repeated buffer must be packed again.
                let want = pack(spec.dst, Layout::Packed, wanted.elements.repeat(n).into_iter());
                compare_with(&src.elements.repeat(n), &src.bytes.repeat(n), &want);
            }
            if let Some((src, wanted)) = whole {
                refusals(tally, spec, &caster, &who, src, wanted);
            }
        }
    })
}

fn accepted(src: &Source, wanted: &Wanted) -> (Source, Wanted) {
    let mut refused = wanted.refused.iter().map(|&(i, _)| i).peekable();
    let kept: Vec<usize> = (0..src.len()).filter(|i| refused.next_if_eq(i).is_none()).collect();
    let take = |list: &[u64]| kept.iter().map(|&i| list[i]).collect::<Vec<_>>();
    let want = Wanted { elements: take(&wanted.elements), refused: Vec::new() };
    (Source::new(src.dtype, take(&src.elements)), want)
}

fn refusals(tally: &mut Tally, spec: &CastSpec, caster: &Caster, who: &str, src: &Source, wanted: &Wanted) {
    let mut owes = |bytes: &[u8], elements: &[u64], index: usize, condition: Condition| {
        tally.checks += 1;
        let got = convert(caster, (Layout::Packed, bytes), elements.len(), Layout::Packed).map(|_| ());
        let CastSpec { src, dst, .. } = *spec;
        let code = src.code_of_storage(elements[index]);
        let want = Failure::Cast(CastError::Value { index, condition, src, dst, code });
        if got.as_ref() != Err(&want) {
            let text = |r: Result<(), Failure>| match r {
                Ok(()) => Answer::Text("codes".into()),
                Err(failure) => Answer::Text(format!("{failure:?}")),
            };
            tally.fail(witness(spec, who, Some(elements[index]), text(got), text(Err(want))));
        }
    };
    let (first, condition) = wanted.refused[0];
    owes(&src.bytes, &src.elements, first, condition);
    let step = if src.len() <= 256 { 1 } else { wanted.refused.len().div_ceil(16) };
    for &(i, condition) in wanted.refused.iter().step_by(step) {
        let alone = Source::new(src.dtype, vec![src.elements[i]]);
        owes(&alone.bytes, &alone.elements, 0, condition);
    }
}

/// Code for the oracle, which takes storage bytes for bool and i1.
fn oracle_code(dtype: DType, element: u64) -> u64 {
    match dtype {
        DType::Bool | DType::I1 => element,
        _ => dtype.code_of_storage(element),
    }
}

fn against_oracle(spec: &CastSpec, src: &Source, wanted: &Wanted, every: usize) -> Tally {
    Tally::timed(|tally| {
        let (from, to) = (oracle_type(spec.src), oracle_type(spec.dst));
        let policy = oracle_policy(&spec.policy);
        let mut refused = wanted.refused.iter().copied().peekable();
        for (i, &element) in src.elements.iter().enumerate() {
            let refusal = refused.next_if(|&(at, _)| at == i);
            if i % every != 0 {
                continue;
            }
            tally.checks += 1;
            let want = oracle::convert(from, to, &policy, oracle_code(spec.src, element));
            let want = want.map_or(Answer::Refused(None), |code| Answer::Code(spec.dst.storage_of_code(code)));
            let same = match want {
                Answer::Code(code) => refusal.is_none() && code == wanted.elements[i],
                _ => refusal.is_some(),
            };
            if !same {
                let got =
                    refusal.map_or(Answer::Code(wanted.elements[i]), |(_, condition)| Answer::Refused(Some(condition)));
                tally.fail(witness(spec, "definition", Some(element), got, want));
            }
        }
    })
}

/// Compares the definition with `rustc_apfloat`, which converts the f64 of the same value. Skips policies for which the
/// crate is not right (`docs/style.md §15.1`).
fn against_apfloat(spec: &CastSpec, src: &Source, wanted: &Wanted) -> Tally {
    let rounding = spec.policy.to_float;
    let plain = CastPolicy { to_float: rounding, to_int: spec.policy.to_int, ..CastPolicy::IEEE };
    let wide = matches!(spec.src, DType::I64 | DType::U64);
    if spec.policy != plain || spec.policy.overflow != Overflow::Nonfinite || wide {
        return Tally::default();
    }
    let (from, to) = (oracle_type(spec.src), oracle_type(spec.dst));
    let third = |x| oracle::apfloat::convert(to, oracle_rounding(rounding), x);
    if third(1f64.to_bits()).is_none() {
        return Tally::default();
    }
    Tally::timed(|tally| {
        let exact = oracle::Policy::default();
        for (&element, &got) in src.elements.iter().zip(&wanted.elements) {
            let x = oracle::convert(from, oracle::Type::F64, &exact, oracle_code(spec.src, element));
            let want = x.and_then(third);
            let Some(want) = want.map(|code| spec.dst.storage_of_code(code)) else { continue };
            tally.checks += 1;
            if got != want {
                tally.fail(witness(spec, "definition", Some(element), Answer::Code(got), Answer::Code(want)));
            }
        }
    })
}
