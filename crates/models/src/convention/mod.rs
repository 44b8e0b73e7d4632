//! Finds known conventions that wrong results follow, for the reports of `check`.
//!
//! [`Convention`] and [`RescaleConvention`] list deviations from a specification. [`Grouping`] groups wrong results
//! by the conventions that reproduce them. `truecast-core` decides which results are wrong (not permitted).

mod cast;
mod rescale;

pub use cast::{Convention, Flush};
pub use rescale::RescaleConvention;

use std::collections::BTreeMap;
use truecast_core::exact::decode;
use truecast_core::permitted::NanComparison;
use truecast_core::{DType, Exact};

/// Number of wrong results that are compared with the conventions. Later results are only counted.
pub const COMPARED: u64 = 1_000_000;

/// Limit on distinct sets of conventions. Results with further sets count as unexplained.
const MOST_SETS: usize = 4096;

/// Wrong results with the same convention, or without any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConventionGroup<C, V> {
    /// Convention that gives each result of the group exactly (NaN by the chosen comparison). `None` for unexplained
    /// results.
    pub convention: Option<C>,
    /// Other conventions that also give each result of the group.
    pub alike: Vec<C>,
    /// Number of results in the group.
    pub count: u64,
    /// The first results of the group.
    pub first: Vec<V>,
    /// True if the convention gives every defined element of the tensor, right elements included.
    pub explains_all: bool,
}

/// Groups wrong results by convention. The memory does not grow with the number of results.
#[derive(Clone, Debug)]
pub struct Grouping<C, V> {
    conventions: Vec<C>,
    keep: usize,
    seen: u64,
    sets: BTreeMap<Set, Alike<V>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Set {
    /// Bits of the conventions that give this result.
    give: u64,
    /// Bits of the conventions that give any wrong result for the element.
    err: u64,
}

#[derive(Clone, Debug)]
struct Alike<V> {
    count: u64,
    first: Vec<(u64, V)>,
}

/// Whether a convention explains a wrong result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConventionCheck {
    /// The convention gives the same result.
    Same,
    /// The convention gives another wrong result.
    OtherwiseWrong,
    /// The convention gives a permitted result, or no result.
    Right,
}

impl<C: Copy, V: Clone> Grouping<C, V> {
    /// Creates an empty grouping. Each group keeps its first `keep` results.
    ///
    /// # Panics
    /// If there are more than 64 conventions.
    #[must_use]
    pub fn new(conventions: Vec<C>, keep: usize) -> Self {
        assert!(conventions.len() <= 64, "a set has 64 bits");
        Self { conventions, keep, seen: 0, sets: BTreeMap::new() }
    }

    /// Conventions in order of preference.
    #[must_use]
    pub fn conventions(&self) -> &[C] {
        &self.conventions
    }

    /// Number of results that were compared with the conventions, at most [`COMPARED`].
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.seen.min(COMPARED)
    }

    /// Adds a wrong result.
    pub fn push(&mut self, result: impl FnOnce() -> V, compare: impl Fn(C) -> ConventionCheck) {
        self.seen += 1;
        if self.seen > COMPARED {
            return;
        }
        let mut set = Set::default();
        for (i, convention) in self.conventions.iter().enumerate() {
            match compare(*convention) {
                ConventionCheck::Same => set = Set { give: set.give | 1 << i, err: set.err | 1 << i },
                ConventionCheck::OtherwiseWrong => set.err |= 1 << i,
                ConventionCheck::Right => {}
            }
        }
        if self.sets.len() >= MOST_SETS && !self.sets.contains_key(&set) {
            set = Set::default();
        }
        let alike = self.sets.entry(set).or_insert(Alike { count: 0, first: Vec::new() });
        alike.count += 1;
        if alike.first.len() < self.keep {
            alike.first.push((self.seen, result()));
        }
    }

    /// Conventions that give every compared wrong result. Each may explain the whole tensor.
    #[must_use]
    pub fn explain_every_result(&self) -> Vec<C> {
        let common = self.sets.keys().fold(u64::MAX, |common, set| common & set.give);
        let is_common = |(i, _): &(usize, &C)| !self.sets.is_empty() && common >> i & 1 == 1;
        self.conventions.iter().enumerate().filter(is_common).map(|(_, c)| *c).collect()
    }

    /// Groups in descending order of size. Unexplained results come last. `whole` lists the conventions that give every
    /// element of the tensor.
    ///
    /// To exclude chance, a convention must explain enough wrong results. Take the wrong results at elements for which
    /// the convention gives a wrong result: the convention must give more than half of them. `may_be_partial` tells
    /// whether a convention may apply to only some elements.
    pub fn groups(&self, whole: &[C], may_be_partial: impl Fn(C) -> bool) -> Vec<ConventionGroup<C, V>> {
        let mut left: Vec<(Set, &Alike<V>)> = self.sets.iter().map(|(set, alike)| (*set, alike)).collect();
        if let ([convention, alike @ ..], false) = (whole, left.is_empty()) {
            let group = self.group(Some(*convention), &left);
            return vec![ConventionGroup { explains_all: true, alike: alike.to_vec(), ..group }];
        }
        let is_partial = |(i, convention): (usize, &C)| u64::from(may_be_partial(*convention)) << i;
        let partial = self.conventions.iter().enumerate().map(is_partial).fold(0, |all, bit| all | bit);
        left.iter_mut().for_each(|(set, _)| set.give &= partial);
        let mut groups = Vec::new();
        while let Some(best) = self.best(&left) {
            let (given, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|(set, _)| set.give >> best & 1 == 1);
            let common = given.iter().fold(u64::MAX, |common, (set, _)| common & set.give);
            let is_alike = |(i, _): &(usize, &C)| *i != best && common >> i & 1 == 1;
            let alike = self.conventions.iter().enumerate().filter(is_alike).map(|(_, c)| *c).collect();
            groups.push(ConventionGroup { alike, ..self.group(Some(self.conventions[best]), &given) });
            left = others;
        }
        if !left.is_empty() {
            groups.push(self.group(None, &left));
        }
        groups
    }

    /// Index of the convention that gives most of the remaining results. `None` if chance is not excluded.
    fn best(&self, left: &[(Set, &Alike<V>)]) -> Option<usize> {
        let count = |bit: usize, of: fn(&Set) -> u64| -> u64 {
            left.iter().filter(|(set, _)| of(set) >> bit & 1 == 1).map(|(_, alike)| alike.count).sum()
        };
        let counts = (0..self.conventions.len()).map(|i| (count(i, |s| s.give), count(i, |s| s.err), i));
        let named = counts.filter(|(give, err, _)| *give > 0 && 2 * give > *err);
        named.max_by_key(|(give, _, i)| (*give, usize::MAX - i)).map(|(.., i)| i)
    }

    fn group(&self, convention: Option<C>, sets: &[(Set, &Alike<V>)]) -> ConventionGroup<C, V> {
        let mut first: Vec<&(u64, V)> = sets.iter().flat_map(|(_, alike)| &alike.first).collect();
        first.sort_by_key(|(order, _)| *order);
        let first = first.into_iter().take(self.keep).map(|(_, result)| result.clone()).collect();
        let count = sets.iter().map(|(_, alike)| alike.count).sum();
        ConventionGroup { convention, alike: Vec::new(), count, first, explains_all: false }
    }
}

/// True if two codes are equal; `nan` decides whether all NaN are equal.
#[must_use]
pub fn is_same(dtype: DType, a: u64, b: u64, nan: NanComparison) -> bool {
    let is_nan = |code| matches!(decode(dtype, code), Exact::Nan { .. });
    a == b || (nan == NanComparison::Class && is_nan(a) && is_nan(b))
}
