//! Search for the known conventions that wrong results follow, for the reports of `check`.
//!
//! [`Convention`] and [`RescaleConvention`] list deviations of implementations from a specification, as data.
//! [`Grouping`] groups wrong results (results that are not permitted) by the conventions that reproduce them.
//! `truecast-core` decides which results are permitted.

mod cast;
mod rescale;

pub use cast::{Convention, Flush};
pub use rescale::RescaleConvention;

use std::collections::BTreeMap;
use truecast_core::exact::decode;
use truecast_core::permitted::NanComparison;
use truecast_core::{DType, Exact};

/// Number of wrong results that are compared with the conventions; later ones are only counted.
pub const COMPARED: u64 = 1_000_000;

/// Limit on distinct sets of conventions; results with further sets count as unexplained.
const MOST_SETS: usize = 4096;

/// Wrong results that follow the same convention, or wrong results that no convention explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConventionGroup<C, V> {
    /// Convention that gives each of the group's results exactly; any NaN equals any other, unless bits are compared.
    /// `None` for unexplained results.
    pub convention: Option<C>,
    /// Other conventions that also give each of the group's results, so that the results cannot distinguish them.
    pub alike: Vec<C>,
    /// Number of results in the group.
    pub count: u64,
    /// The first results of the group.
    pub first: Vec<V>,
    /// True if the convention gives every defined element of the tensor, including the right ones.
    pub explains_all: bool,
}

/// Groups wrong results by convention; the memory does not grow with their number.
#[derive(Clone, Debug)]
pub struct Grouping<C, V> {
    conventions: Vec<C>,
    keep: usize,
    seen: u64,
    sets: BTreeMap<Set, Alike<V>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Set {
    /// Bits of the conventions that give the result.
    give: u64,
    /// Bits of the conventions that give a wrong result for the element, the same or another.
    err: u64,
}

#[derive(Clone, Debug)]
struct Alike<V> {
    count: u64,
    /// The first results, each with its order of arrival.
    first: Vec<(u64, V)>,
}

/// Comparison of a convention's result with a wrong result for the same element.
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
    /// Creates an empty grouping, in which each group keeps its first `keep` results.
    ///
    /// # Panics
    /// If there are more than 64 conventions.
    #[must_use]
    pub fn new(conventions: Vec<C>, keep: usize) -> Self {
        assert!(conventions.len() <= 64, "a set has 64 bits");
        Self { conventions, keep, seen: 0, sets: BTreeMap::new() }
    }

    /// Returns the conventions, in order of preference.
    #[must_use]
    pub fn conventions(&self) -> &[C] {
        &self.conventions
    }

    /// Returns the number of results that were compared with the conventions, at most [`COMPARED`].
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.seen.min(COMPARED)
    }

    /// Takes the next wrong result.
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

    /// Returns the conventions that give every compared wrong result; each may explain the whole tensor.
    #[must_use]
    pub fn explain_every_result(&self) -> Vec<C> {
        let common = self.sets.keys().fold(u64::MAX, |common, set| common & set.give);
        let is_common = |(i, _): &(usize, &C)| !self.sets.is_empty() && common >> i & 1 == 1;
        self.conventions.iter().enumerate().filter(is_common).map(|(_, c)| *c).collect()
    }

    /// Returns the groups, largest first, with unexplained results last. `whole` lists the conventions that give every
    /// element of the tensor.
    ///
    /// A convention is named only if it reproduces more than half of the wrong results for whose elements it is wrong
    /// too; otherwise chance might name one. `may_be_partial` returns true if a convention can apply to only some
    /// elements.
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

    /// Returns the index of the convention that gives most of the remaining results, if it may be named.
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

/// True if two codes are equal, where `nan` decides whether any two NaN are.
#[must_use]
pub fn is_same(dtype: DType, a: u64, b: u64, nan: NanComparison) -> bool {
    let is_nan = |code| matches!(decode(dtype, code), Exact::Nan { .. });
    a == b || (nan == NanComparison::Class && is_nan(a) && is_nan(b))
}
