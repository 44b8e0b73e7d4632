//! Differences between two requests: the source codes with different results, as a count and as ranges of values.
//!
//! All NaNs count as equal. An input whose result a request leaves open is counted separately.

mod classes;

pub use classes::{Class, Classes, Given};

use crate::order::Keys;
use crate::request::Request;
use crate::rule::{Rule, bytes, converted, parallel_map};
use crate::vectors::{Extent, inputs_scaled};
use std::ops::Range;
use truecast_core::exact::decode;
use truecast_core::spec::SpecError;
use truecast_core::{DType, Exact, Outcome};
use truecast_kernel::Caster;

/// Widest source, in bits, whose codes are all converted by the reference definition.
const DEFINITION_BITS: u32 = 20;
/// Widest source, in bits, whose codes are all converted by kernels. No type has between 21 and 31 bits.
const SWEEP_BITS: u32 = 32;
const BLOCK: u64 = 1 << 16;
/// Number of blocks that are compared before their runs are joined.
const BLOCKS_AT_ONCE: usize = 256;
/// Largest number of ranges that are listed. The counts include the other ranges.
const KEPT: usize = 1000;

/// The inputs for which two requests give different results.
///
/// # Examples
/// ```
/// use truecast::{DType, differ::{Difference, Inputs}, request::Request};
/// let [torch, ml_dtypes] = ["torch@2.15", "ml_dtypes@0.6"].map(|name| Request::of_words(name).unwrap());
/// let found = Difference::find([&torch, &ml_dtypes], DType::Bf16, DType::F8E4M3Fn, Inputs::Boundary)?;
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
    /// True if every code of the source was compared.
    pub is_every: bool,
    /// Inputs with different results.
    pub different: u64,
    /// Inputs whose result at least one request leaves open. Not counted in `different`.
    pub open: u64,
    /// Number of ranges, including the ranges that are not listed.
    pub range_count: u64,
    /// The first ranges, by ascending value.
    pub ranges: Vec<Different>,
}

/// The inputs to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Every code of a source of up to 16 bits. Boundary vectors of a wider source.
    Boundary,
    /// Every code of sources of up to 32 bits.
    Every,
}

/// Range of neighboring inputs. Either both requests give different results for each input, or a request leaves each
/// result open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Different {
    /// Code of the smallest input.
    pub first: u64,
    /// Code of the largest input.
    pub last: u64,
    /// Number of compared inputs from `first` to `last`. Both ends are included.
    pub count: u64,
    /// True if a request leaves the results open.
    pub is_open: bool,
    /// Results of the two requests for the first input. `None` for a refused value.
    pub at_first: [Option<u64>; 2],
    /// Results of the two requests for the last input.
    pub at_last: [Option<u64>; 2],
}

impl Difference {
    /// Compares two requests on a pair of types. A wide source that no kernel converts is compared at boundary vectors
    /// only.
    ///
    /// # Errors
    /// The error of the specification that refuses the pair.
    pub fn find(requests: [&Request; 2], src: DType, dst: DType, which: Inputs) -> Result<Difference, SpecError> {
        let search = Search::new(requests, src, dst)?;
        match which {
            Inputs::Every => Ok(search.every_code(|_| ()).unwrap_or_else(|| search.boundary())),
            Inputs::Boundary => Ok(search.boundary()),
        }
    }

    /// Compares every code of a wide source with kernels. `progress` receives the number of codes compared so far, at
    /// first 0.
    /// Returns `None` for narrow sources, for sources above 32 bits and for pairs without kernels: [`Difference::find`]
    /// then gives the same result for all [`Inputs`].
    ///
    /// # Errors
    /// The error of the specification that refuses the pair.
    pub fn of_every_code(
        requests: [&Request; 2],
        src: DType,
        dst: DType,
        progress: impl FnMut(u64),
    ) -> Result<Option<Difference>, SpecError> {
        Ok(Search::new(requests, src, dst)?.every_code(progress))
    }

    /// Returns the specification's error for a pair that the request does not convert; `None` for other pairs.
    #[must_use]
    pub fn refusal(request: &Request, src: DType, dst: DType) -> Option<SpecError> {
        Rule::new(request, src, dst).err()
    }
}

/// Neighboring inputs with one verdict. `keys` are those of the first and the last input.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    keys: Range<u64>,
    inputs: u64,
    verdict: Verdict,
}

/// Verdicts on inputs in the order of their keys.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    different: u64,
    open: u64,
    /// Number of runs that are not [`Verdict::Same`]; the first [`KEPT`] are in `kept`.
    count: u64,
    kept: Vec<Run>,
    /// Verdict on the last input.
    last: Verdict,
}

impl Found {
    fn open_block(first: u64) -> Found {
        let kept = vec![Run { keys: first..first + BLOCK - 1, inputs: BLOCK, verdict: Verdict::Open }];
        Found { different: 0, open: BLOCK, count: 1, kept, last: Verdict::Open }
    }

    fn note(&mut self, key: u64, verdict: Verdict) {
        self.note_run(key, 1, verdict);
    }

    fn note_run(&mut self, key: u64, len: u64, verdict: Verdict) {
        let begins = self.last != verdict;
        self.last = verdict;
        match verdict {
            Verdict::Same => return,
            Verdict::Open => self.open += len,
            Verdict::Different => self.different += len,
        }
        if begins {
            self.count += 1;
            if self.kept.len() < KEPT {
                self.kept.push(Run { keys: key..key, inputs: 0, verdict });
            }
        }
        if self.count as usize <= KEPT
            && let Some(run) = self.kept.last_mut()
        {
            run.keys.end = key + (len - 1);
            run.inputs += len;
        }
    }

    /// Appends the verdicts on the next inputs; `begins` is the first of them.
    fn followed_by(mut self, next: Found, begins: Verdict) -> Found {
        let mut kept = next.kept.into_iter();
        if begins != Verdict::Same
            && begins == self.last
            && let Some(first) = kept.next()
        {
            // The last kept run continues only if no run was dropped.
            if self.count as usize <= KEPT
                && let Some(last) = self.kept.last_mut()
            {
                last.keys.end = first.keys.end;
                last.inputs += first.inputs;
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    fn new(requests: [&Request; 2], src: DType, dst: DType) -> Result<Search, SpecError> {
        if !src.is_numeric() || !dst.is_numeric() {
            let why = "text and complex numbers have no codes to compare";
            return Err(SpecError::Pair { src, dst, why, since: None });
        }
        let rules = [Rule::new(requests[0], src, dst)?, Rule::new(requests[1], src, dst)?];
        Ok(Search { keys: Keys::of(src).unwrap_or(Keys::AS_CODES), rules, src, dst })
    }

    /// Compares all codes of a source of up to 20 bits, or the boundary vectors of a wider source.
    fn boundary(&self) -> Difference {
        let bits = self.src.code_bits();
        if bits <= DEFINITION_BITS {
            return self.difference(1 << bits, true, self.by_definition((0..1 << bits).map(|key| self.keys.code(key))));
        }
        let scales = self.rules.each_ref().map(Rule::scale_exponent);
        let mut codes = inputs_scaled(self.src, self.dst, &scales, Extent::Boundary).unwrap_or_default();
        codes.sort_unstable_by_key(|code| self.keys.key(*code));
        self.difference(codes.len() as u64, false, self.by_definition(codes.into_iter()))
    }

    /// Compares all codes with kernels. `None` if the source has no kernels, or has at most 20 bits.
    fn every_code(&self, mut progress: impl FnMut(u64)) -> Option<Difference> {
        let bits = self.src.code_bits();
        if !(DEFINITION_BITS + 1..=SWEEP_BITS).contains(&bits) {
            return None;
        }
        let casters = [self.rules[0].caster()?, self.rules[1].caster()?];
        progress(0);
        Some(self.difference(1 << bits, true, self.sweep(&casters, progress)))
    }

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

    /// Compares codes, in the order of their keys, by the reference definition.
    fn by_definition(&self, codes: impl Iterator<Item = u64>) -> Found {
        let mut found = Found::default();
        codes.for_each(|code| found.note(self.keys.key(code), self.verdict(code)));
        found
    }

    /// Compares all codes with kernels. The reference definition decides differences and the ends of open ranges.
    fn sweep(&self, casters: &[Caster; 2], mut progress: impl FnMut(u64)) -> Found {
        let blocks = (1u64 << self.src.code_bits()) / BLOCK;
        let block = |at: usize| self.block(casters, at as u64 * BLOCK);
        let mut found = Found::default();
        for first in (0..blocks as usize).step_by(BLOCKS_AT_ONCE) {
            let count = BLOCKS_AT_ONCE.min(blocks as usize - first);
            let next = parallel_map(count, |at| block(first + at));
            found = next.into_iter().fold(found, |found, (next, begins)| found.followed_by(next, begins));
            progress((first + count) as u64 * BLOCK);
        }
        found
    }

    /// Compares the block that begins at key `first`. Also returns the verdict on the first code of the block.
    ///
    /// The verdicts on the first and last code show whether the block has open results:
    /// - Infinities, zeros and the largest finite values end blocks. So every range of open results, and every gap
    ///   between two ranges, reaches an end of a block.
    /// - If fractions are open, an integer begins a block. A block with several integers begins with an integer and
    ///   ends with a fraction.
    fn block(&self, casters: &[Caster; 2], first: u64) -> (Found, Verdict) {
        let code = |at: usize| self.keys.code(first + at as u64);
        match [0, BLOCK as usize - 1].map(|at| self.verdict(code(at)) == Verdict::Open) {
            [true, true] => return (Found::open_block(first), Verdict::Open),
            [false, false] => {}
            _ => return (self.by_definition((0..BLOCK as usize).map(code)), self.verdict(code(0))),
        }
        let source = self.block_of_codes(first);
        let [a, b] = casters.each_ref().map(|caster| converted(caster, &source));
        if a == b {
            return (Found::default(), Verdict::Same);
        }
        let same = match bytes(self.dst) {
            1 => same_elements::<1>(&a, &b),
            2 => same_elements::<2>(&a, &b),
            4 => same_elements::<4>(&a, &b),
            _ => same_elements::<8>(&a, &b),
        };
        let verdict = |at: usize| self.verdict(code(at));
        let mut unlike = (0..BLOCK as usize).filter(|at| !same[*at]);
        // NaN results form ranges. A block is part of a range of NaN results, or contains one end of the range.
        let ends = [unlike.next(), unlike.next_back()].map(|at| at.map(verdict));
        let shared = ends[0].filter(|verdict| ends[1].is_none_or(|last| last == *verdict));
        let verdict = |at| if same[at] { Verdict::Same } else { shared.unwrap_or_else(|| verdict(at)) };
        let (mut found, mut at) = (Found::default(), 0);
        while at < same.len() {
            let len = if same[at] || shared.is_some() { leading_run(&same[at..]) } else { 1 };
            found.note_run(first + at as u64, len as u64, verdict(at));
            at += len;
        }
        (found, verdict(0))
    }

    fn block_of_codes(&self, first: u64) -> Vec<u8> {
        let mut source = vec![0; BLOCK as usize * 4];
        for (element, key) in source.as_chunks_mut().0.iter_mut().zip(first..) {
            *element = (self.keys.code(key) as u32).to_le_bytes();
        }
        source
    }

    fn difference(&self, inputs: u64, is_every: bool, found: Found) -> Difference {
        let different = |run: &Run| {
            let [first, last] = [run.keys.start, run.keys.end].map(|key| self.keys.code(key));
            let is_open = run.verdict == Verdict::Open;
            let (at_first, at_last) = (self.results(first), self.results(last));
            Different { first, last, count: run.inputs, is_open, at_first, at_last }
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

fn same_elements<const N: usize>(a: &[u8], b: &[u8]) -> Vec<bool> {
    a.as_chunks::<N>().0.iter().zip(b.as_chunks::<N>().0).map(|(a, b)| a == b).collect()
}

/// Length of the run of equal values at the beginning.
fn leading_run(values: &[bool]) -> usize {
    const CHUNK: usize = 64; // compared by a vector loop
    let equal = [values[0]; CHUNK];
    let whole = values.as_chunks::<CHUNK>().0.iter().take_while(|chunk| **chunk == equal).count() * CHUNK;
    whole + values[whole..].iter().take_while(|value| **value == values[0]).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::every;
    use crate::vectors::inputs;
    use std::collections::BTreeMap;

    /// Compares the sweep with the reference definition around each change of verdict.
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
                    // Open fractions between integers give more ranges than `KEPT`.
                    let is_whole = found.kept.len() as u64 == found.count;
                    let end = found.kept.last().filter(|_| !is_whole).map_or(u64::MAX, |run| run.keys.start);
                    for code in codes.iter().filter(|code| keys.key(**code) < end) {
                        let key = keys.key(*code);
                        let run = found.kept.iter().find(|run| (run.keys.start..=run.keys.end).contains(&key));
                        let said = run.map_or(Verdict::Same, |run| run.verdict);
                        assert!(said == search.verdict(*code), "{src} to {dst}: {code:#x}");
                        open += u64::from(said == Verdict::Open);
                    }
                }
            }
        }
        assert!(open > 1000, "{open}");
    }

    #[test]
    fn blocks_count_as_one_code_after_the_other() {
        let request = |name: &str| Request::of_words(name).unwrap();
        let mut ranges = 0;
        for (a, b, src, dst) in [
            ("torch@2.15", "ml_dtypes", DType::F32, DType::F8E4M3Fn),
            ("torch@2.11", "onnx:saturate=0", DType::F32, DType::F8E5M2),
            ("ieee", "ieee:rounding=toward-zero", DType::F32, DType::Bf16),
            ("ieee:rounding=up", "ieee:rounding=down", DType::F32, DType::F16),
            ("ieee:nan=canonical", "ieee", DType::F32, DType::F64),
            ("ieee", "ieee:int-overflow=saturate", DType::F32, DType::I8),
            ("ieee", "ieee:rounding=up", DType::I32, DType::F32),
            ("ieee", "ieee:int-overflow=saturate", DType::U32, DType::I16),
        ] {
            let search = Search::new([&request(a), &request(b)], src, dst).unwrap();
            let casters = search.rules.each_ref().map(|rule| rule.caster().unwrap());
            let mut blocks: Vec<u64> = inputs(src, dst, Extent::Boundary).unwrap();
            blocks.iter_mut().for_each(|code| *code = search.keys.key(*code) / BLOCK);
            blocks.sort_unstable();
            blocks.dedup();
            let every = blocks.len().div_ceil(24);
            for block in blocks.into_iter().step_by(every) {
                let keys = block * BLOCK..(block + 1) * BLOCK;
                let (found, begins) = search.block(&casters, keys.start);
                assert_eq!(
                    found,
                    search.by_definition(keys.map(|key| search.keys.code(key))),
                    "{a} {b} {src} {dst} {block:#x}"
                );
                assert_eq!(begins, search.verdict(search.keys.code(block * BLOCK)));
                ranges += found.count;
            }
        }
        assert!(ranges > 1000, "{ranges}");
    }
}
