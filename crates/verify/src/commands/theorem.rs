//! `verify theorem`: intermediate formats that never round twice, over all toy formats (`docs/kernels.md §3.5`, rows 1
//! and 2). If [`FloatFormat::is_safe_odd_intermediate_for`] is true, no result may be wrong; if false, at least one
//! result must be wrong.

use super::over;
use crate::report::{Answer, Report, Tally, Witness};
use crate::session::Session;
use crate::toy::{Limit, Rounded, SCALE, Toy};
use std::time::Instant;
use truecast_core::{CastPolicy, DType, FloatFormat, Rounding, Specials};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Fraction bits of the widest intermediate formats
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u8).range(2..=8))]
    pub intermediate_bits: u8,
}

/// Precision of the source with the hidden bit; enough for values on both sides of every decision point.
const P_SRC: u32 = 12;

/// Exponents of the source, from below all quanta to above all largest values.
const SRC_EXPONENTS: std::ops::RangeInclusive<i32> = -9..=7;

const LIMITS: [Limit; 2] = [Limit::Nonfinite, Limit::Saturate];

/// All positive source values in units.
fn source() -> Vec<u64> {
    let significands = 1u64 << (P_SRC - 1)..1 << P_SRC;
    SRC_EXPONENTS.flat_map(|e| significands.clone().map(move |sig| sig << (e + SCALE - (P_SRC as i32 - 1)))).collect()
}

fn format(exp_bits: u8, man_bits: u8, bias: i16, specials: Specials) -> FloatFormat {
    FloatFormat { signed: true, exp_bits, man_bits, bias, specials, has_zero: true }
}

const SPECIALS: [Specials; 5] = [Specials::Ieee, Specials::Fn, Specials::Fnuz, Specials::Extended, Specials::Finite];

/// Formats with all kinds of specials and one to three fraction bits, unsigned formats, and a format without zero.
fn destinations() -> Vec<FloatFormat> {
    let mut all = Vec::new();
    for (exp_bits, bias) in [(2, 1), (3, 3), (3, 4)] {
        for man_bits in 1..=3 {
            all.extend(SPECIALS.map(|specials| format(exp_bits, man_bits, bias, specials)));
        }
    }
    let unsigned = |f: FloatFormat| FloatFormat { signed: false, ..f };
    all.extend([Specials::Fn, Specials::Extended].map(|specials| unsigned(format(3, 2, 3, specials))));
    all.push(unsigned(FloatFormat { has_zero: false, ..format(3, 0, 3, Specials::Fn) }));
    all
}

/// Intermediate formats with infinities, with more or less range and precision than the destinations.
fn intermediates(widest: u8) -> Vec<FloatFormat> {
    let mut all = Vec::new();
    for (exp_bits, bias) in [(3, 2), (3, 3), (3, 4), (4, 5), (4, 7), (4, 9)] {
        all.extend((1..=widest).map(|man_bits| format(exp_bits, man_bits, bias, Specials::Ieee)));
    }
    all
}

/// A value whose result through an intermediate format differs.
#[derive(Clone, Copy, Debug)]
struct Wrong {
    rounding: Rounding,
    limit: Limit,
    neg: bool,
    x: u64,
    got: Rounded,
    want: Rounded,
}

struct Found {
    compared: u64,
    /// Per rounding, in the order of [`Rounding::ALL`]: number of wrong results, and the first.
    wrong: [(u64, Option<Wrong>); 8],
}

/// A destination, with the right results for the whole source.
struct Direct {
    toy: Toy,
    /// Right results by rounding, limit and sign.
    results: Vec<(Rounding, Limit, bool, Vec<Rounded>)>,
}

impl Direct {
    fn new(format: FloatFormat, source: &[u64]) -> Direct {
        let toy = Toy::new(format);
        let mut results = Vec::new();
        for rounding in Rounding::ALL {
            for limit in LIMITS {
                for neg in if format.signed { &[false, true][..] } else { &[false] } {
                    let right = source.iter().map(|&x| toy.round(rounding, limit, *neg, x)).collect();
                    results.push((rounding, limit, *neg, right));
                }
            }
        }
        Direct { toy, results }
    }

    /// Compares direct conversions with conversions through an intermediate format. `codes` has the code that each
    /// source value has in the intermediate format.
    fn through(&self, intermediate: &Toy, source: &[u64], codes: &[usize]) -> Found {
        let mut found = Found { compared: 0, wrong: [(0, None); 8] };
        for (rounding, limit, neg, right) in &self.results {
            let round = |v: &u64| self.toy.round(*rounding, *limit, *neg, *v);
            let by_code: Vec<Rounded> = intermediate.finite().iter().map(round).collect();
            let slot = Rounding::ALL.iter().position(|r| r == rounding).unwrap_or(0);
            for ((&x, &want), &code) in source.iter().zip(right).zip(codes) {
                let got = by_code[code];
                if got != want {
                    let (n, first) = &mut found.wrong[slot];
                    *n += 1;
                    first.get_or_insert(Wrong { rounding: *rounding, limit: *limit, neg: *neg, x, got, want });
                }
            }
            found.compared += right.len() as u64;
        }
        found
    }
}

fn name(f: &FloatFormat) -> String {
    let sign = if f.signed { "" } else { "u" };
    let zero = if f.has_zero { "" } else { ", no zero" };
    format!("{sign}e{}m{} bias {} {:?}{zero}", f.exp_bits, f.man_bits, f.bias, f.specials)
}

/// A difference as a row of the report, with element types in place of the toy formats.
fn witness(intermediate: &FloatFormat, dst: &FloatFormat, wrong: Option<Wrong>, expected: &str) -> Witness {
    let who = format!("intermediate {} for {}", name(intermediate), name(dst));
    let policy = CastPolicy { to_float: wrong.map_or(Rounding::NearestEven, |w| w.rounding), ..CastPolicy::IEEE };
    let (got, want) = match wrong {
        Some(w) => {
            let sign = if w.neg { "-" } else { "" };
            let x = format!("{:?} at {sign}{} * 2^-{SCALE} ({:?})", w.got, w.x, w.limit);
            (Answer::Text(x), Answer::Text(format!("{:?}", w.want)))
        }
        None => (Answer::Text("always right".into()), Answer::Text(expected.into())),
    };
    Witness { src: DType::F64, dst: DType::F32, policy, who, code: None, got, want }
}

pub fn run(session: &Session, options: &Options) -> Report {
    let source = source();
    let dsts: Vec<Direct> = destinations().into_iter().map(|f| Direct::new(f, &source)).collect();
    let intermediates = intermediates(options.intermediate_bits);
    let covers = format!(
        "theorem: {} intermediates x {} destinations, all {} values of a source of {P_SRC} bits, 8 roundings, with and \
         without saturation",
        intermediates.len(),
        dsts.len(),
        2 * source.len()
    );
    over(session, covers, "theorem", &intermediates, |intermediate, sheet| {
        let toy = Toy::new(*intermediate);
        let to_code = |&x: &u64| match toy.round(Rounding::ToOdd, Limit::Nonfinite, false, x) {
            Rounded::Code(code) => code as usize,
            other => unreachable!("rounding to odd gives a code of a format with zero, not {other:?}"),
        };
        let codes: Vec<usize> = source.iter().map(to_code).collect();
        for dst in &dsts {
            let timer = Instant::now();
            let found = dst.through(&toy, &source, &codes);
            let mut rows = judge(intermediate, &dst.toy.format, &found);
            rows[0].1.busy = timer.elapsed();
            rows.into_iter().for_each(|(name, tally)| sheet.add(name, tally));
        }
    })
}

/// Tallies of the two guarantees, predicate and number of guard bits; at least one row.
fn judge(intermediate: &FloatFormat, dst: &FloatFormat, found: &Found) -> Vec<(&'static str, Tally)> {
    let wrong = |r: Rounding| found.wrong[Rounding::ALL.iter().position(|x| *x == r).unwrap_or(0)];
    let first = found.wrong.iter().find_map(|(_, first)| *first);
    let empty = || Tally { checks: found.compared, ..Tally::default() };
    let mut tally = empty();
    if intermediate.is_safe_odd_intermediate_for(dst) {
        if first.is_some() {
            tally.fail(witness(intermediate, dst, first, ""));
            tally.mismatches = found.wrong.iter().map(|(n, _)| n).sum();
        }
        return vec![("predicted exact: no result is wrong", tally)];
    }
    if first.is_none() {
        tally.fail(witness(intermediate, dst, None, "wrong somewhere"));
    }
    let mut rows = vec![("not predicted exact: some result is wrong", tally)];
    // Row 1 of the table: enough range, one guard bit.
    let guard = intermediate.precision() as i32 - dst.precision() as i32;
    if guard == 1 && intermediate.quantum() < dst.quantum() && intermediate.emax() > dst.emax() && dst.has_zero {
        use Rounding::*;
        let mut row = empty();
        for rounding in [TowardZero, AwayFromZero, Up, Down, ToOdd] {
            if let (_, Some(wrong)) = wrong(rounding) {
                row.fail(witness(intermediate, dst, Some(wrong), ""));
            }
        }
        for rounding in [NearestEven, NearestAway, NearestUp] {
            if wrong(rounding).0 == 0 {
                row.fail(witness(intermediate, dst, None, &format!("wrong somewhere when {rounding}")));
            }
        }
        rows.push(("one guard bit: enough for all but the nearest roundings", row));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intermediate rounding to nearest is wrong for every width (`docs/kernels.md §3.4`).
    #[test]
    fn an_intermediate_that_rounds_to_nearest_is_found() {
        let source = source();
        let dst = Direct::new(format(3, 2, 3, Specials::Ieee), &source);
        let intermediate = format(4, 6, 7, Specials::Ieee);
        let toy = Toy::new(intermediate);
        for (rounding, wrong) in [(Rounding::ToOdd, false), (Rounding::NearestEven, true)] {
            let to_code = |&x: &u64| match toy.round(rounding, Limit::Saturate, false, x) {
                Rounded::Code(code) => code as usize,
                other => unreachable!("{other:?}"),
            };
            let codes: Vec<usize> = source.iter().map(to_code).collect();
            let rows = judge(&intermediate, &dst.toy.format, &dst.through(&toy, &source, &codes));
            assert_eq!(rows[0].0, "predicted exact: no result is wrong");
            assert_eq!(rows[0].1.mismatches > 0, wrong);
        }
    }

    /// This intermediate format is wide enough, so the predicate must not be false.
    #[test]
    fn a_needless_no_is_found() {
        let found = Found { compared: 1, wrong: [(0, None); 8] };
        let (intermediate, dst) = (format(3, 2, 3, Specials::Ieee), format(3, 3, 3, Specials::Ieee));
        assert_eq!(judge(&intermediate, &dst, &found)[0].1.mismatches, 1);
    }
}
