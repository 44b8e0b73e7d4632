//! Finds known conventions that wrong results follow, for the reports of `check`.
//!
//! [`Convention`] and [`RescaleConvention`] list deviations from a specification. [`Grouping`] groups wrong results
//! by the conventions that reproduce them. `truecast-core` decides which results are wrong (not permitted).

mod cast;
mod rescale;

pub use cast::{Convention, Flush};
pub use rescale::RescaleConvention;

use std::collections::BTreeMap;

/// Number of wrong results that are compared with the conventions. Later results are only counted.
pub const COMPARED: u64 = 1_000_000;

/// Limit on distinct sets of conventions. Results with further sets count as unexplained.
const MAX_SETS: usize = 4096;

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
    shown_per_group: usize,
    seen: u64,
    sets: BTreeMap<ConventionSet, Results<V>>,
}

/// Conventions by a wrong result. Bits are indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ConventionSet {
    /// Conventions that give this result.
    reproduces: u64,
    /// Conventions that give any wrong result for the element.
    errs: u64,
}

/// Wrong results with the same set of conventions.
#[derive(Clone, Debug)]
struct Results<V> {
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
    NoError,
}

impl<C: Copy, V: Clone> Grouping<C, V> {
    /// Creates an empty grouping. Each group keeps its first `shown_per_group` results.
    ///
    /// # Panics
    /// If there are more than 64 conventions.
    #[must_use]
    pub fn new(conventions: Vec<C>, shown_per_group: usize) -> Self {
        assert!(conventions.len() <= 64, "a set has 64 bits");
        Self { conventions, shown_per_group, seen: 0, sets: BTreeMap::new() }
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
        let mut set = ConventionSet::default();
        for (i, convention) in self.conventions.iter().enumerate() {
            match compare(*convention) {
                ConventionCheck::Same => {
                    set.reproduces |= 1 << i;
                    set.errs |= 1 << i;
                }
                ConventionCheck::OtherwiseWrong => set.errs |= 1 << i,
                ConventionCheck::NoError => {}
            }
        }
        if self.sets.len() >= MAX_SETS && !self.sets.contains_key(&set) {
            set = ConventionSet::default();
        }
        let results = self.sets.entry(set).or_insert(Results { count: 0, first: Vec::new() });
        results.count += 1;
        if results.first.len() < self.shown_per_group {
            results.first.push((self.seen, result()));
        }
    }

    /// Conventions that give every compared wrong result. Each may explain the whole tensor.
    #[must_use]
    pub fn common_conventions(&self) -> Vec<C> {
        if self.sets.is_empty() {
            return Vec::new();
        }
        self.conventions_in(self.sets.keys().fold(u64::MAX, |common, set| common & set.reproduces))
    }

    fn conventions_in(&self, bits: u64) -> Vec<C> {
        self.conventions.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, c)| *c).collect()
    }

    /// Groups of wrong results: at each step, the convention that reproduces the most of the remaining results takes them.
    /// Unexplained results come last. If `whole`, the conventions that give every element of the tensor, is not empty,
    /// there is one group.
    ///
    /// A convention may reproduce a few results by chance. At elements where its own result is wrong too, it must
    /// therefore reproduce more than half of the remaining results. `may_be_partial` tells whether a convention may apply
    /// to only some elements.
    pub fn groups(&self, whole: &[C], may_be_partial: impl Fn(C) -> bool) -> Vec<ConventionGroup<C, V>> {
        let mut left: Vec<(ConventionSet, &Results<V>)> = self.sets.iter().map(|(set, found)| (*set, found)).collect();
        if left.is_empty() {
            return Vec::new();
        }
        if let [convention, alike @ ..] = whole {
            let group = self.group(Some(*convention), &left);
            return vec![ConventionGroup { explains_all: true, alike: alike.to_vec(), ..group }];
        }
        for (i, convention) in self.conventions.iter().enumerate() {
            if !may_be_partial(*convention) {
                left.iter_mut().for_each(|(set, _)| set.reproduces &= !(1 << i));
            }
        }
        let mut groups = Vec::new();
        while let Some(strongest) = self.strongest(&left) {
            let is_reproduced = |(set, _): &(ConventionSet, _)| set.reproduces >> strongest & 1 == 1;
            let (reproduced, others): (Vec<_>, Vec<_>) = left.into_iter().partition(is_reproduced);
            let common = reproduced.iter().fold(u64::MAX, |common, (set, _)| common & set.reproduces);
            let alike = self.conventions_in(common & !(1 << strongest));
            groups.push(ConventionGroup { alike, ..self.group(Some(self.conventions[strongest]), &reproduced) });
            left = others;
        }
        if !left.is_empty() {
            groups.push(self.group(None, &left));
        }
        groups
    }

    /// Index of the convention that reproduces most of the remaining results; the first of equal ones. `None` if chance
    /// is not excluded.
    fn strongest(&self, left: &[(ConventionSet, &Results<V>)]) -> Option<usize> {
        let mut strongest: Option<(usize, u64)> = None;
        for i in 0..self.conventions.len() {
            let count = |bits: fn(&ConventionSet) -> u64| -> u64 {
                left.iter().filter(|(set, _)| bits(set) >> i & 1 == 1).map(|(_, results)| results.count).sum()
            };
            let (reproduced, erred) = (count(|set| set.reproduces), count(|set| set.errs));
            if 2 * reproduced > erred && strongest.is_none_or(|(_, most)| reproduced > most) {
                strongest = Some((i, reproduced));
            }
        }
        strongest.map(|(i, _)| i)
    }

    fn group(&self, convention: Option<C>, sets: &[(ConventionSet, &Results<V>)]) -> ConventionGroup<C, V> {
        let mut first: Vec<&(u64, V)> = sets.iter().flat_map(|(_, results)| &results.first).collect();
        first.sort_by_key(|(order, _)| *order);
        let first = first.into_iter().take(self.shown_per_group).map(|(_, result)| result.clone()).collect();
        let count = sets.iter().map(|(_, results)| results.count).sum();
        ConventionGroup { convention, alike: Vec::new(), count, first, explains_all: false }
    }
}
