//! `verify properties`: properties that hold without an expected result (`docs/style.md §15.3`).
//!
//! Identity, monotonicity, saturation as a clamp, round trips, mirrored roundings, neighbors.

use super::{Chosen, over};
use crate::buffers::{Source, element};
use crate::check::{Wanted, caster, exec, run_packed, spec, witness};
use crate::inputs::{Extent, elements};
use crate::number::{Number, Value};
use crate::policies::{SATURATE, rounded};
use crate::report::{Answer, Report, Tally};
use crate::session::Session;
use std::cmp::Ordering;
use truecast_core::policy::Unrepresentable;
use truecast_core::{CastPolicy, CastSpec, DType, FloatFormat, Kind, Layout, Rounding, Specials};
use truecast_kernel::Counting;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub chosen: Chosen,
    /// At most about this many elements of a wide source for each pair
    #[arg(long, default_value_t = 1 << 16, value_name = "N")]
    pub limit: usize,
}

/// Saturating policy that gives every number of the source a numeric result.
const TOTAL: CastPolicy =
    CastPolicy { negative: Unrepresentable::Smallest, vanishing: Unrepresentable::Smallest, ..SATURATE };

#[derive(Clone, Copy, Debug)]
enum Engine {
    Definition,
    Caster,
}

pub fn run(session: &Session, options: &Options) -> Report {
    let &Options { ref chosen, limit } = options;
    let seed = session.seed;
    let pairs = chosen.pairs(&chosen.sources(|_| true));
    let covers = format!(
        "properties: {} pairs, every element of narrow sources and at most {limit} of wide ones, 8 roundings, seed {seed}, \
         by the definition and by a caster at level {}",
        pairs.len(),
        session.strongest()
    );
    over(session, covers, "properties", &pairs, |&(src, dst), sheet| {
        let source = elements(src, dst, &Extent { seed, n_random: limit / 4, limit });
        for engine in [Engine::Definition, Engine::Caster] {
            let pair = Pair::new(session, engine, dst, &source);
            sheet.add("identity", pair.identity());
            sheet.add("monotone", pair.monotone());
            sheet.add("saturate = clamp", pair.clamp());
            sheet.add("round trip", pair.round_trip());
            sheet.add("mirrored roundings", pair.mirrored());
            sheet.add("the right neighbor", pair.neighbors());
        }
    })
}

struct Pair<'a> {
    session: &'a Session,
    engine: Engine,
    src: DType,
    dst: DType,
    source: &'a Source,
    values: Vec<Value>,
    /// Smallest and largest finite value of the destination, with their elements.
    ends: [(Number, u64); 2],
}

fn end_elements(dtype: DType) -> [u64; 2] {
    let codes = match dtype.kind() {
        Kind::Float(f) if f.signed => [f.max_code() | f.sign_bit(), f.max_code()],
        Kind::Float(f) => [0, f.max_code()],
        Kind::Int(f) => [f.code(f.min()), f.code(f.max())],
        Kind::Fixed(f) => [f.int.code(f.int.min()), f.int.code(f.int.max())],
        Kind::Book(book) => [0, book.values.len() as u64 - 1],
        Kind::Bool | Kind::Complex(_) | Kind::String => [0, 1],
    };
    codes.map(|code| dtype.storage_of_code(code))
}

impl<'a> Pair<'a> {
    fn new(session: &'a Session, engine: Engine, dst: DType, source: &'a Source) -> Pair<'a> {
        let values = source.elements.iter().map(|&e| Value::decode(source.dtype, e)).collect();
        let number = |element| Value::decode(dst, element).number().unwrap_or(Number::new(false, 0, 0));
        let ends = end_elements(dst).map(|element| (number(element), element));
        Pair { session, engine, src: source.dtype, dst, source, values, ends }
    }

    fn who(&self) -> &'static str {
        match self.engine {
            Engine::Definition => "definition",
            Engine::Caster => self.session.strongest().name(),
        }
    }

    /// Destination elements; empty if the conversion fails. Other commands report failures.
    fn convert(&self, spec: &CastSpec, src: &Source) -> Vec<u64> {
        match self.engine {
            Engine::Definition => Wanted::new(self.session, spec, &src.elements).elements,
            Engine::Caster => {
                let caster = caster(spec, &exec(self.session.strongest(), Counting::Off));
                let bytes = run_packed(&caster, src);
                let bytes = bytes.map(|(bytes, _)| bytes).unwrap_or_default();
                let n = if bytes.is_empty() { 0 } else { src.len() };
                (0..n).map(|i| element(spec.dst, Layout::Packed, &bytes, i)).collect()
            }
        }
    }

    fn results(&self, policy: CastPolicy) -> Vec<u64> {
        self.convert(&spec(self.src, self.dst, policy), self.source)
    }

    fn fail(&self, tally: &mut Tally, policy: CastPolicy, i: usize, got: u64, want: Answer) {
        let spec = spec(self.src, self.dst, policy);
        tally.fail(witness(&spec, self.who(), Some(self.source.elements[i]), Answer::Code(got), want));
    }

    fn float(&self) -> Option<FloatFormat> {
        match self.dst.kind() {
            Kind::Float(f) => Some(f),
            _ => None,
        }
    }

    /// A conversion to the same type changes no bit, not even of a NaN.
    fn identity(&self) -> Tally {
        Tally::timed(|tally| {
            if self.src != self.dst {
                return;
            }
            for policy in Rounding::ALL.map(|r| rounded(CastPolicy::IEEE, r)) {
                for (i, got) in self.results(policy).into_iter().enumerate() {
                    tally.checks += 1;
                    let want = self.src.storage_of_code(self.src.code_of_storage(self.source.elements[i]));
                    if got != want {
                        self.fail(tally, policy, i, got, Answer::Code(want));
                    }
                }
            }
        })
    }

    /// A larger number never has a smaller result.
    fn monotone(&self) -> Tally {
        Tally::timed(|tally| {
            let mut order: Vec<usize> = (0..self.values.len()).filter(|&i| self.values[i].number().is_some()).collect();
            order.sort_by_key(|&i| self.values[i].number());
            let bool_is_not = self.dst == DType::Bool;
            for policy in Rounding::ALL.map(|r| rounded(TOTAL, r)).into_iter().filter(|_| !bool_is_not) {
                let results = self.results(policy);
                let mut before: Option<(Value, usize)> = None;
                for &i in order.iter().filter(|&&i| i < results.len()) {
                    tally.checks += 1;
                    let value = Value::decode(self.dst, results[i]);
                    let falls = match (before.and_then(|(v, _)| v.number()), value.number()) {
                        (Some(before), Some(now)) => now < before,
                        (None, Some(_)) => false,
                        (_, None) => true,
                    };
                    if let (true, Some((_, j))) = (falls, before) {
                        let smaller = self.source.elements[j];
                        let want = format!("at least {:#x}, which the smaller {smaller:#x} gives", results[j]);
                        self.fail(tally, policy, i, results[i], Answer::Text(want));
                    }
                    before = Some((value, i));
                }
            }
        })
    }

    /// A value beyond the range saturates to the end of the range; any other value has its unsaturated result.
    fn clamp(&self) -> Tally {
        Tally::timed(|tally| {
            let [(low, low_element), (high, high_element)] = self.ends;
            let unsigned = self.float().is_some_and(|f| !f.signed);
            for rounding in Rounding::ALL.into_iter().filter(|_| self.dst != DType::Bool) {
                let policy = rounded(SATURATE, rounding);
                let (with, without) = (self.results(policy), self.results(rounded(CastPolicy::IEEE, rounding)));
                for (i, (&got, &plain)) in with.iter().zip(&without).enumerate() {
                    let want = match self.values[i] {
                        Value::Finite(x) if unsigned && x.is_negative() => continue,
                        Value::Inf { neg: true } if unsigned => continue,
                        Value::Nan => continue,
                        Value::Finite(x) if x > high => high_element,
                        Value::Finite(x) if x < low && self.float().is_none_or(|f| f.has_zero) => low_element,
                        Value::Inf { neg: false } => high_element,
                        Value::Inf { neg: true } => low_element,
                        Value::Finite(_) => plain,
                    };
                    tally.checks += 1;
                    if got != want {
                        self.fail(tally, policy, i, got, Answer::Code(want));
                    }
                }
            }
        })
    }

    /// Values that the destination can represent survive a round trip.
    fn round_trip(&self) -> Tally {
        Tally::timed(|tally| {
            let there = self.results(CastPolicy::IEEE);
            let exact = |i: usize| {
                let (x, y) = (self.values[i], Value::decode(self.dst, there[i]));
                x == y && x != Value::Nan && x.is_negative() == y.is_negative()
            };
            let kept: Vec<usize> = (0..there.len()).filter(|&i| exact(i)).collect();
            let image = Source::new(self.dst, kept.iter().map(|&i| there[i]).collect());
            for policy in Rounding::ALL.map(|r| rounded(CastPolicy::IEEE, r)) {
                let back = self.convert(&spec(self.dst, self.src, policy), &image);
                for (&i, got) in kept.iter().zip(back) {
                    tally.checks += 1;
                    let want = self.src.storage_of_code(self.src.code_of_storage(self.source.elements[i]));
                    if got != want {
                        self.fail(tally, policy, i, got, Answer::Text(format!("{want:#x}, and back")));
                    }
                }
            }
        })
    }

    /// Between signed floats, `-x` under the mirrored rounding gives the negative result.
    fn mirrored(&self) -> Tally {
        Tally::timed(|tally| {
            let (Kind::Float(from), Some(to)) = (self.src.kind(), self.float()) else { return };
            if !from.signed || !to.signed {
                return;
            }
            let flip = |dtype: DType, f: &FloatFormat, element: u64| element ^ dtype.storage_of_code(f.sign_bit());
            let is_lone = |f: &FloatFormat, code: u64| f.specials == Specials::Fnuz && code & f.magnitude_mask() == 0;
            let negated = self
                .source
                .elements
                .iter()
                .map(|&e| if is_lone(&from, self.src.code_of_storage(e)) { e } else { flip(self.src, &from, e) });
            let negated = Source::new(self.src, negated.collect());
            for rounding in Rounding::ALL.into_iter().filter(|r| *r != Rounding::NearestUp) {
                let mirror = match rounding {
                    Rounding::Up => Rounding::Down,
                    Rounding::Down => Rounding::Up,
                    same => same,
                };
                for policy in [CastPolicy::IEEE, SATURATE] {
                    let results = self.results(rounded(policy, rounding));
                    let mirrored = self.convert(&spec(self.src, self.dst, rounded(policy, mirror)), &negated);
                    for (i, (&result, &got)) in results.iter().zip(&mirrored).enumerate() {
                        // Zero and NaN of a FNUZ format have only one sign.
                        let alone = is_lone(&from, self.src.code_of_storage(self.source.elements[i]));
                        if alone || self.values[i] == Value::Nan {
                            continue;
                        }
                        tally.checks += 1;
                        let lone = is_lone(&to, self.dst.code_of_storage(result));
                        let want = if lone { result } else { flip(self.dst, &to, result) };
                        if got != want {
                            let want = format!("{want:#x}, the mirror image, for the negative value");
                            self.fail(tally, rounded(policy, mirror), i, got, Answer::Text(want));
                        }
                    }
                }
            }
        })
    }

    /// Rounding down and up gives the neighbors of the value, and every other rounding the right neighbor.
    fn neighbors(&self) -> Tally {
        Tally::timed(|tally| {
            // The midpoint of two neighbors must be exact in f64.
            let Some(f) = self.float().filter(|f| f.bits() <= 32) else { return };
            let of = |rounding| self.results(rounded(TOTAL, rounding));
            let results = Rounding::ALL.map(|r| (r, of(r)));
            let (downs, ups) = (of(Rounding::Down), of(Rounding::Up));
            let [(low, _), (high, _)] = self.ends;
            for i in 0..downs.len().min(ups.len()) {
                let Value::Finite(x) = self.values[i] else { continue };
                // Unsigned formats have no negative zero either.
                if x > high || x < low || (!f.signed && x.is_negative()) {
                    continue;
                }
                let magnitude = |element| self.dst.code_of_storage(element) & f.magnitude_mask();
                let (down, up) = (Value::decode(self.dst, downs[i]), Value::decode(self.dst, ups[i]));
                let (Value::Finite(down), Value::Finite(up)) = (down, up) else {
                    self.fail(tally, rounded(TOTAL, Rounding::Down), i, downs[i], Answer::Text("a number".into()));
                    continue;
                };
                tally.checks += 1;
                let apart = magnitude(downs[i]).abs_diff(magnitude(ups[i]));
                if !(down <= x && x <= up && apart == (down != up) as u64 && (x != down || down == up)) {
                    let want = format!("{:#x} or the value before it", ups[i]);
                    self.fail(tally, rounded(TOTAL, Rounding::Down), i, downs[i], Answer::Text(want));
                    continue;
                }
                let Some(middle) = Number::from_f64((down.to_f64() + up.to_f64()) / 2.0) else { continue };
                for (rounding, results) in &results {
                    tally.checks += 1;
                    let to_up = goes_up(*rounding, x, x.cmp(&middle), magnitude(ups[i]) % 2 == 1);
                    let want = if to_up { ups[i] } else { downs[i] };
                    if results[i] != want {
                        self.fail(tally, rounded(TOTAL, *rounding), i, results[i], Answer::Code(want));
                    }
                }
            }
        })
    }
}

/// True if a value between two different neighbors rounds to the larger one.
fn goes_up(rounding: Rounding, x: Number, to_middle: Ordering, up_is_odd: bool) -> bool {
    let nearest = |on_tie: bool| match to_middle {
        Ordering::Greater => true,
        Ordering::Equal => on_tie,
        Ordering::Less => false,
    };
    match rounding {
        Rounding::NearestEven => nearest(!up_is_odd),
        Rounding::NearestAway => nearest(!x.is_negative()),
        Rounding::NearestUp => nearest(true),
        Rounding::TowardZero => x.is_negative(),
        Rounding::AwayFromZero => !x.is_negative(),
        Rounding::Up => true,
        Rounding::Down => false,
        Rounding::ToOdd => up_is_odd,
    }
}
