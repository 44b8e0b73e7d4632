//! Classes of specifications with equal results for a pair of types, and inputs that distinguish the classes.

use super::DEFINITION_BITS;
use crate::rule::{Rule, every, parallel_map};
use crate::vectors::{Extent, inputs};
use std::collections::BTreeMap;
use truecast_core::exact::decode;
use truecast_core::spec::Interpretation;
use truecast_core::{DType, Exact, Kind, Outcome};

const BLOCK: usize = 1 << 12;
/// Entry of a [`Pattern`] for a result that a rule leaves open.
const OPEN: u8 = 0;

/// The names that convert a pair of types, in classes of equal results. `ieee` is left out: its policies are free.
///
/// All NaNs count as equal, and an open result is not a difference. `undecided` lists the names that fit several
/// classes because they leave results open.
///
/// # Examples
/// ```
/// use truecast::{DType, differ::{Classes, Given}};
/// let found = Classes::new(DType::Bf16, DType::F8E4M3Fn);
/// assert_eq!((found.inputs, found.different), (65_536, 30_512)); // beyond 464
/// let of = |name: &str| found.classes.iter().find(|class| class.members.iter().any(|one| one.spec == name)).unwrap();
/// assert_eq!(found.witnesses[0], 0x4400); // 512
/// assert_eq!(of("ml_dtypes").results[0], Given::Code(0x7f)); // NaN
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Classes {
    /// Source type.
    pub src: DType,
    /// Destination type.
    pub dst: DType,
    /// Number of inputs compared. A source of up to 20 bits has every code as input; a wider source has boundary
    /// vectors.
    pub inputs: u64,
    /// True if every code of the source was compared.
    pub is_every: bool,
    /// Inputs for which two classes give different results.
    pub different: u64,
    /// Number of inputs for which at least one specification leaves the result open.
    pub open: u64,
    /// The classes, largest first.
    pub classes: Vec<Class>,
    /// Specifications that fit several classes, because their results are open where the classes differ.
    pub undecided: Vec<Interpretation>,
    /// Inputs that together distinguish every two classes.
    pub witnesses: Vec<u64>,
}

/// Specifications with equal results for all inputs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Class {
    /// The specifications, with versions and attributes.
    pub members: Vec<Interpretation>,
    /// Results for each witness.
    pub results: Vec<Given>,
}

/// Result that a class gives for one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// A code.
    Code(u64),
    /// A refusal.
    Refused,
    /// An open result, under every specification of the class.
    Open,
}

/// Results of all rules for one input. Equal results have equal numbers, from 1; an open result is [`OPEN`].
type Pattern = Vec<u8>;

#[derive(Clone, Copy)]
struct Seen {
    count: u64,
    simplest: (Simplicity, u64),
}

/// Sort key. Numbers come before infinities, and infinities before NaN. The next keys are the number of significant
/// bits, the sign, and the distance from 1 in powers of two.
type Simplicity = (u8, u32, bool, u32);

impl Classes {
    /// Finds the classes.
    ///
    /// # Panics
    /// If a type is text or complex.
    #[must_use]
    pub fn new(src: DType, dst: DType) -> Classes {
        let members: Vec<_> = every(src, dst).into_iter().filter(|(one, _)| one.spec != "ieee").collect();
        let mut rules: Vec<Rule> = Vec::new();
        let mut rule_of = |rule: &Rule| {
            rules.iter().position(|known| known.is_alike(rule)).unwrap_or_else(|| {
                rules.push(rule.clone());
                rules.len() - 1
            })
        };
        let numbers: Vec<usize> = members.iter().map(|(_, rule)| rule_of(rule)).collect();
        let is_every = src.code_bits() <= DEFINITION_BITS;
        let codes = if is_every {
            (0..1 << src.code_bits()).collect()
        } else {
            inputs(src, dst, Extent::Boundary).expect("both types have codes")
        };
        let patterns = patterns([src, dst], &rules, &codes);
        let (grouped, undecided) = grouped(rules.len(), &patterns);
        let of_rule = |rule: usize| {
            let of_it = members.iter().zip(&numbers).filter(move |(_, number)| **number == rule);
            of_it.map(|((one, _), _)| one.clone())
        };
        let in_order = |some: &[usize]| {
            let mut some = some.to_vec();
            some.sort_unstable();
            let mut all: Vec<Interpretation> = some.into_iter().flat_map(of_rule).collect();
            all.sort_by_key(Interpretation::group);
            all
        };
        let mut grouped: Vec<_> = grouped.into_iter().map(|some| (in_order(&some), some)).collect();
        grouped.sort_by_key(|(members, _)| std::cmp::Reverse(members.len()));
        let result = |pattern: &Pattern, some: &[usize]| some.iter().map(|rule| pattern[*rule]).max().unwrap_or(OPEN);
        let results =
            |pattern: &Pattern| -> Vec<u8> { grouped.iter().map(|(_, some)| result(pattern, some)).collect() };
        let known: Vec<(Vec<u8>, Seen)> = patterns.iter().map(|(pattern, seen)| (results(pattern), *seen)).collect();
        let differ = |results: &[u8]| {
            let mut defined = results.iter().filter(|result| **result != OPEN);
            let first = defined.next();
            defined.any(|result| Some(result) != first)
        };
        let different = known.iter().filter(|(results, _)| differ(results)).map(|(_, seen)| seen.count).sum();
        let open = patterns.iter().filter(|(pattern, _)| pattern.contains(&OPEN)).map(|(_, seen)| seen.count).sum();
        let witnesses = witnesses(grouped.len(), &known);
        let given = |some: &[usize], code: u64| {
            let outcomes = some.iter().map(|rule| rules[*rule].outcome(code));
            let defined = outcomes.into_iter().find(|outcome| !matches!(outcome, Outcome::Undefined { .. }));
            defined.map_or(Given::Open, |outcome| outcome.code().map_or(Given::Refused, Given::Code))
        };
        let class = |(members, some): &(Vec<Interpretation>, Vec<usize>)| Class {
            members: members.clone(),
            results: witnesses.iter().map(|code| given(some, *code)).collect(),
        };
        Classes {
            src,
            dst,
            inputs: codes.len() as u64,
            is_every,
            different,
            open,
            classes: grouped.iter().map(class).collect(),
            undecided: in_order(&undecided),
            witnesses,
        }
    }
}

fn patterns([src, dst]: [DType; 2], rules: &[Rule], codes: &[u64]) -> BTreeMap<Pattern, Seen> {
    let block = |at: usize| {
        let mut found: BTreeMap<Pattern, Seen> = BTreeMap::new();
        for code in codes.iter().skip(at * BLOCK).take(BLOCK) {
            let one = Seen { count: 1, simplest: (simplicity(src, *code), *code) };
            found.entry(pattern(dst, rules, *code)).and_modify(|seen| seen.join(&one)).or_insert(one);
        }
        found
    };
    let mut all = BTreeMap::new();
    for found in parallel_map(codes.len().div_ceil(BLOCK), block) {
        for (pattern, more) in found {
            all.entry(pattern).and_modify(|seen: &mut Seen| seen.join(&more)).or_insert(more);
        }
    }
    all
}

impl Seen {
    fn join(&mut self, other: &Seen) {
        self.count += other.count;
        self.simplest = self.simplest.min(other.simplest);
    }
}

fn pattern(dst: DType, rules: &[Rule], code: u64) -> Pattern {
    let mut known: Vec<Option<u64>> = Vec::new();
    let number = |rule: &Rule| {
        let outcome = rule.outcome(code);
        if matches!(outcome, Outcome::Undefined { .. }) {
            return OPEN;
        }
        let result = outcome.code().map(|code| match (decode(dst, code), dst.kind()) {
            (Exact::Nan { .. }, Kind::Float(f)) => f.nan_code().unwrap_or(code),
            _ => code,
        });
        let at = known.iter().position(|one| *one == result).unwrap_or_else(|| {
            known.push(result);
            known.len() - 1
        });
        at as u8 + 1
    };
    rules.iter().map(number).collect()
}

fn simplicity(dtype: DType, code: u64) -> Simplicity {
    match decode(dtype, code) {
        Exact::Finite { neg, sig: 0, .. } => (0, 0, neg, 0),
        Exact::Finite { neg, sig, exp, .. } => {
            let significant = 64 - sig.leading_zeros() - sig.trailing_zeros();
            (0, significant, neg, (exp + 63 - sig.leading_zeros() as i32).unsigned_abs())
        }
        Exact::Inf { neg } => (1, 0, neg, 0),
        Exact::Nan { neg, .. } => (2, 0, neg, 0),
    }
}

/// Groups the rules into classes; also returns the rules that fit several classes. Rules with the fewest open results
/// define the classes.
fn grouped(count: usize, patterns: &BTreeMap<Pattern, Seen>) -> (Vec<Vec<usize>>, Vec<usize>) {
    let are_equal = |a: usize, b: usize| {
        patterns.keys().all(|pattern| pattern[a] == pattern[b] || pattern[a] == OPEN || pattern[b] == OPEN)
    };
    let open = |rule: usize| -> u64 {
        patterns.iter().filter(|(pattern, _)| pattern[rule] == OPEN).map(|(_, seen)| seen.count).sum()
    };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|rule| open(*rule));
    let (mut classes, mut undecided): (Vec<Vec<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
    for rule in order {
        let fits = |class: &Vec<usize>| class.iter().all(|other| are_equal(rule, *other));
        let fitting: Vec<usize> = (0..classes.len()).filter(|class| fits(&classes[*class])).collect();
        match fitting[..] {
            [] => classes.push(vec![rule]),
            [one] => classes[one].push(rule),
            _ => undecided.push(rule),
        }
    }
    (classes, undecided)
}

/// Chooses inputs that distinguish every two classes, by a greedy search. Ties go to the simplest input.
fn witnesses(count: usize, known: &[(Vec<u8>, Seen)]) -> Vec<u64> {
    let pairs = (0..count).flat_map(|a| (0..a).map(move |b| (a, b)));
    let mut left: Vec<(usize, usize)> = pairs.collect();
    let mut witnesses = Vec::new();
    let tells =
        |results: &[u8], (a, b): (usize, usize)| results[a] != OPEN && results[b] != OPEN && results[a] != results[b];
    while !left.is_empty() {
        let told = |(results, _): &&(Vec<u8>, Seen)| left.iter().filter(|pair| tells(results, **pair)).count();
        let best = known.iter().max_by_key(|one| (told(one), std::cmp::Reverse(one.1.simplest)));
        let Some((results, seen)) = best.filter(|one| told(one) > 0) else { break };
        left.retain(|pair| !tells(results, *pair));
        witnesses.push(seen.simplest.1);
    }
    witnesses
}
