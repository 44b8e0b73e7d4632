//! Differences between two requests: the source codes with different results, their number, and their ranges of values.
//!
//! All NaNs count as equal; NaN rules are compared elsewhere. An input whose result either request leaves open is not
//! a difference; it is counted separately, even if both document the same result.

mod classes;

pub use classes::{Class, Classes, Given};

use crate::order::Keys;
use crate::request::Request;
use crate::rule::{Rule, bytes, converted, each};
use crate::vectors::{Extent, inputs_scaled};
use std::ops::Range;
use truecast_core::exact::decode;
use truecast_core::spec::SpecError;
use truecast_core::{DType, Exact, Outcome};
use truecast_kernel::Caster;

/// Width in bits of the widest sources that the definition converts, code by code.
const DEFINITION_BITS: u32 = 20;
/// Width in bits of the widest sources that kernels convert completely.
const SWEEP_BITS: u32 = 32;
/// Codes per call of a kernel.
const BLOCK: u64 = 1 << 16;
/// Blocks held before their ranges are joined.
const BLOCKS_AT_ONCE: usize = 256;
/// Limit on listed ranges; all are counted.
const KEPT: usize = 1000;

/// The inputs for which two requests give different results.
///
/// # Examples
/// ```
/// use truecast::{DType, differ::{Difference, Inputs}, request::Request};
/// let [torch, ml_dtypes] = ["torch@2.15", "ml_dtypes@0.6"].map(|name| Request::of_words(name).unwrap());
/// let found = Difference::of([&torch, &ml_dtypes], DType::Bf16, DType::F8E4M3Fn, Inputs::Boundary)?;
/// assert!(found.is_every && found.inputs == 65_536);
/// assert_eq!(found.different, 30_512); // beyond 464 torch saturates, and ml_dtypes gives NaN
/// # Ok::<(), truecast::spec::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Source type.
    pub src: DType,
    /// Destination type.
    pub dst: DType,
    /// Number of inputs compared.
    pub inputs: u64,
    /// True if these are all codes of the source.
    pub is_every: bool,
    /// Inputs with different results.
    pub different: u64,
    /// Inputs whose result at least one request leaves open, even if both document the same. Not in `different`.
    pub open: u64,
    /// Number of ranges of neighboring inputs, different and open ones together.
    pub range_count: u64,
    /// The first ranges, by ascending value.
    pub ranges: Vec<Different>,
}

/// The inputs to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Every code of sources of up to 16 bits; boundary vectors for wider ones.
    Boundary,
    /// Every code of sources of up to 32 bits.
    Every,
}

/// Neighboring inputs with different results, or with results that at least one of the two leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Different {
    /// Code of the smallest input.
    pub first: u64,
    /// Code of the largest input.
    pub last: u64,
    /// Number of inputs compared from `first` to `last`, inclusive.
    pub count: u64,
    /// True if a request leaves these results open; [`Different::at_first`] then has the documented ones.
    pub is_open: bool,
    /// Both results for the first input; `None` for a refused value.
    pub at_first: [Option<u64>; 2],
    /// Both results for the last input.
    pub at_last: [Option<u64>; 2],
}

impl Difference {
    /// Compares two requests on a pair of types. Wide sources that no kernel converts get boundary vectors.
    ///
    /// # Errors
    /// The error of the specification that refuses the pair.
    pub fn of(requests: [&Request; 2], src: DType, dst: DType, which: Inputs) -> Result<Difference, SpecError> {
        if !src.is_numeric() || !dst.is_numeric() {
            let why = "text and complex numbers have no codes to compare";
            return Err(SpecError::Pair { src, dst, why, since: None });
        }
        let rules = [Rule::of(requests[0], src, dst)?, Rule::of(requests[1], src, dst)?];
        let search = Search { keys: Keys::of(src).unwrap_or(Keys::AS_CODES), rules, src, dst };
        let bits = src.code_bits();
        let casters = || Some([search.rules[0].caster()?, search.rules[1].caster()?]);
        if bits <= DEFINITION_BITS {
            return Ok(search.found(1 << bits, true, search.each((0..1 << bits).map(|key| search.keys.code(key)))));
        }
        if bits <= SWEEP_BITS
            && which == Inputs::Every
            && let Some(casters) = casters()
        {
            return Ok(search.found(1 << bits, true, search.sweep(&casters)));
        }
        let scales = search.rules.each_ref().map(Rule::scale_exponent);
        let mut codes = inputs_scaled(src, dst, &scales, Extent::Boundary).unwrap_or_default();
        codes.sort_unstable_by_key(|code| search.keys.key(*code));
        Ok(search.found(codes.len() as u64, false, search.each(codes.into_iter())))
    }

    /// The specification's error for a pair that the request does not convert.
    #[must_use]
    pub fn refusal(request: &Request, src: DType, dst: DType) -> Option<SpecError> {
        Rule::of(request, src, dst).err()
    }
}

/// Ranges of neighboring keys, each with its number of inputs.
#[derive(Default)]
struct Found {
    different: u64,
    open: u64,
    count: u64,
    kept: Vec<(Range<u64>, u64, Verdict)>,
    /// Verdict on the last input.
    last: Verdict,
}

impl Found {
    /// A block with open inputs only.
    fn open_block(first: u64) -> Found {
        let kept = vec![(first..first + BLOCK - 1, BLOCK, Verdict::Open)];
        Found { different: 0, open: BLOCK, count: 1, kept, last: Verdict::Open }
    }

    /// Adds the next input in order.
    fn note(&mut self, key: u64, verdict: Verdict) {
        let begins = self.last != verdict;
        self.last = verdict;
        match verdict {
            Verdict::Same => return,
            Verdict::Open => self.open += 1,
            Verdict::Different => self.different += 1,
        }
        if begins {
            self.count += 1;
            if self.kept.len() < KEPT {
                self.kept.push((key..key, 0, verdict));
            }
        }
        if self.count as usize <= KEPT
            && let Some((range, inputs, _)) = self.kept.last_mut()
        {
            range.end = key;
            *inputs += 1;
        }
    }

    /// Appends the ranges of the codes that follow.
    fn then(mut self, next: Found, begins: Verdict) -> Found {
        let mut kept = next.kept.into_iter();
        if begins != Verdict::Same
            && begins == self.last
            && let Some((range, inputs, _)) = kept.next()
        {
            // The range to continue must be the last one counted.
            if self.count as usize <= KEPT
                && let Some((last, sum, _)) = self.kept.last_mut()
            {
                (last.end, *sum) = (range.end, *sum + inputs);
            }
            self.count -= 1;
        }
        self.kept.extend(kept);
        self.kept.truncate(KEPT);
        Found {
            different: self.different + next.different,
            open: self.open + next.open,
            count: self.count + next.count,
            kept: self.kept,
            last: next.last,
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Verdict {
    #[default]
    Same,
    Open,
    Different,
}

struct Search {
    keys: Keys,
    rules: [Rule; 2],
    src: DType,
    dst: DType,
}

impl Search {
    fn results(&self, code: u64) -> [Option<u64>; 2] {
        [0, 1].map(|rule| self.rules[rule].outcome(code).code())
    }

    fn verdict(&self, code: u64) -> Verdict {
        let outcomes = [0, 1].map(|rule| self.rules[rule].outcome(code));
        let [a, b] = outcomes.map(Outcome::code);
        if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Undefined { .. })) {
            Verdict::Open
        } else if a == b || self.are_nan(a, b) {
            Verdict::Same
        } else {
            Verdict::Different
        }
    }

    fn are_nan(&self, a: Option<u64>, b: Option<u64>) -> bool {
        let is_nan = |code: Option<u64>| code.is_some_and(|code| matches!(decode(self.dst, code), Exact::Nan { .. }));
        is_nan(a) && is_nan(b)
    }

    /// Compares codes by the definition, in the order of their values.
    fn each(&self, codes: impl Iterator<Item = u64>) -> Found {
        let mut found = Found::default();
        codes.for_each(|code| found.note(self.keys.key(code), self.verdict(code)));
        found
    }

    /// Compares every code with kernels; uses the definition at differences and at the ends of open ranges.
    fn sweep(&self, casters: &[Caster; 2]) -> Found {
        let blocks = (1u64 << self.src.code_bits()) / BLOCK;
        let block = |at: usize| self.block(casters, at as u64 * BLOCK);
        let mut found = Found::default();
        for first in (0..blocks as usize).step_by(BLOCKS_AT_ONCE) {
            let count = BLOCKS_AT_ONCE.min(blocks as usize - first);
            let next = each(count, |at| block(first + at));
            found = next.into_iter().fold(found, |found, (next, begins)| found.then(next, begins));
        }
        found
    }

    /// Compares one block from a key on; also returns the verdict on its first code.
    ///
    /// Open results come in ranges of values, or are fractions. No range and no gap between two ranges is strictly
    /// inside a block: infinities, zeros and the ends of the finite values end blocks, and integers among fractions
    /// begin blocks, or the block begins with an integer and ends with a fraction. The two ends therefore show whether
    /// anything is open.
    fn block(&self, casters: &[Caster; 2], first: u64) -> (Found, Verdict) {
        let code = |at: usize| self.keys.code(first + at as u64);
        match [0, BLOCK as usize - 1].map(|at| self.verdict(code(at)) == Verdict::Open) {
            [true, true] => return (Found::open_block(first), Verdict::Open),
            [false, false] => {}
            _ => return (self.each((0..BLOCK as usize).map(code)), self.verdict(code(0))),
        }
        let to = bytes(self.dst);
        let results = casters.each_ref().map(|caster| converted(caster, (0..BLOCK as usize).map(code)));
        let [a, b] = &results;
        let mut found = Found::default();
        if a == b {
            return (found, Verdict::Same);
        }
        let is_same = |at: usize| a[at * to..][..to] == b[at * to..][..to];
        let verdict = |at: usize| self.verdict(code(at));
        let mut unlike = (0..BLOCK as usize).filter(|at| !is_same(*at));
        // NaN results come in ranges of values; a block is inside one, or contains one border.
        let ends = [unlike.next(), unlike.next_back()].map(|at| at.map(verdict));
        let of_all = ends[0].filter(|verdict| ends[1].is_none_or(|last| last == *verdict));
        let verdict = |at| if is_same(at) { Verdict::Same } else { of_all.unwrap_or_else(|| verdict(at)) };
        (0..BLOCK as usize).for_each(|at| found.note(first + at as u64, verdict(at)));
        (found, verdict(0))
    }

    fn found(&self, inputs: u64, is_every: bool, found: Found) -> Difference {
        let different = |(range, count, verdict): &(Range<u64>, u64, Verdict)| {
            let [first, last] = [range.start, range.end].map(|key| self.keys.code(key));
            let is_open = *verdict == Verdict::Open;
            Different {
                first,
                last,
                count: *count,
                is_open,
                at_first: self.results(first),
                at_last: self.results(last),
            }
        };
        Difference {
            src: self.src,
            dst: self.dst,
            inputs,
            is_every,
            different: found.different,
            open: found.open,
            range_count: found.count,
            ranges: found.kept.iter().map(different).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::every;
    use crate::vectors::inputs;
    use std::collections::BTreeMap;

    /// The sweep agrees with the definition on every input around a change, for each way in which a name leaves results
    /// open.
    #[test]
    fn blocks_say_what_the_definition_says() {
        let mut open = 0;
        let results = [DType::I4, DType::U8, DType::F4E2M1, DType::F8E8M0];
        for (src, dst) in [DType::F32, DType::I32].into_iter().flat_map(|src| results.map(|dst| (src, dst))) {
            let Ok(mut codes) = inputs(src, dst, Extent::Boundary) else { continue };
            let conditions = |rule: &Rule| match rule {
                Rule::Cast(cast) => format!("{:?}", cast.undefined.iter().map(|one| one.condition).collect::<Vec<_>>()),
                Rule::Tile(_) => String::new(),
            };
            let rules = every(src, dst).into_iter().map(|(_, rule)| rule).filter(|rule| rule.caster().is_some());
            let ways: BTreeMap<String, Rule> = rules.map(|rule| (conditions(&rule), rule)).collect();
            let keys = Keys::of(src).unwrap();
            codes.sort_unstable_by_key(|code| keys.key(*code));
            let ways: Vec<Rule> = ways.into_values().collect();
            for rules in ways.windows(2).map(|two| [two[0].clone(), two[1].clone()]) {
                let casters = rules.each_ref().map(|rule| rule.caster().unwrap());
                let search = Search { keys, rules, src, dst };
                for codes in codes.chunk_by(|x, y| keys.key(*x) / BLOCK == keys.key(*y) / BLOCK) {
                    let first = keys.key(codes[0]) / BLOCK * BLOCK;
                    let (found, _) = search.block(&casters, first);
                    // Integers among fractions give more ranges than are kept.
                    let is_whole = found.kept.len() as u64 == found.count;
                    let end = found.kept.last().filter(|_| !is_whole).map_or(u64::MAX, |(range, ..)| range.start);
                    for code in codes.iter().filter(|code| keys.key(**code) < end) {
                        let key = keys.key(*code);
                        let mut around =
                            found.kept.iter().filter(|(range, ..)| (range.start..=range.end).contains(&key));
                        let said = around.next().map_or(Verdict::Same, |(.., verdict)| *verdict);
                        assert!(said == search.verdict(*code), "{src} to {dst}: {code:#x}");
                        open += u64::from(said == Verdict::Open);
                    }
                }
            }
        }
        assert!(open > 1000, "{open}");
    }
}
