//! The known convention that a wrong result follows, for reports of `check`.
//!
//! [`Convention`] and [`RescaleConvention`] list deviations of implementations from a specification, as data;
//! [`Grouping`] sorts results that are not permitted by the conventions that reproduce them. The permitted results are
//! decided elsewhere.

mod cast;
mod rescale;

pub use cast::{Convention, Flush};
pub use rescale::RescaleConvention;

use std::collections::BTreeMap;
use truecast_core::exact::decode;
use truecast_core::permitted::NanComparison;
use truecast_core::{DType, Exact};

/// Results after the first million are counted but not compared with the conventions.
pub const COMPARED: u64 = 1_000_000;

/// Limit on distinct sets of conventions; results beyond it count as unexplained.
const MOST_SETS: usize = 4096;

/// Results that follow the same convention, or that none explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConventionGroup<C, V> {
    /// Convention that gives each of these results, bit for bit (any NaN for NaN, unless bits are compared); `None` for
    /// unexplained results.
    pub convention: Option<C>,
    /// Other conventions that give each of them too: these results cannot distinguish them.
    pub alike: Vec<C>,
    /// Number of these results, among those compared.
    pub count: u64,
    /// The first of them.
    pub first: Vec<V>,
    /// The convention gives every element of the tensor that the specification defines, including the right ones.
    pub explains_all: bool,
}

/// Sorts results that are not permitted; memory does not grow with their number.
#[derive(Clone, Debug)]
pub struct Grouping<C, V> {
    conventions: Vec<C>,
    keep: usize,
    seen: u64,
    sets: BTreeMap<Set, Alike<V>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Set {
    /// Conventions that give the result.
    give: u64,
    /// Conventions that give a result that is not permitted, where their behavior would show.
    err: u64,
}

#[derive(Clone, Debug)]
struct Alike<V> {
    count: u64,
    /// Results with their order of arrival.
    first: Vec<(u64, V)>,
}

/// A convention's result for an element with a wrong result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConventionCheck {
    /// The same result.
    Same,
    /// Another result that is not permitted.
    OtherwiseWrong,
    /// A permitted result, or none.
    Right,
}

impl<C: Copy, V: Clone> Grouping<C, V> {
    /// Nothing seen yet; each group keeps its first `keep` results.
    ///
    /// # Panics
    /// If there are more than 64 conventions.
    #[must_use]
    pub fn new(conventions: Vec<C>, keep: usize) -> Self {
        assert!(conventions.len() <= 64, "a set has 64 bits");
        Self { conventions, keep, seen: 0, sets: BTreeMap::new() }
    }

    /// The conventions, in order of preference.
    #[must_use]
    pub fn conventions(&self) -> &[C] {
        &self.conventions
    }

    /// Results that were compared with the conventions: the first [`COMPARED`].
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.seen.min(COMPARED)
    }

    /// Takes the next result that is not permitted.
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

    /// Conventions that give every result that was compared: each may explain the whole tensor.
    #[must_use]
    pub fn explain_every_result(&self) -> Vec<C> {
        let common = self.sets.keys().fold(u64::MAX, |common, set| common & set.give);
        let is_common = |(i, _): &(usize, &C)| !self.sets.is_empty() && common >> i & 1 == 1;
        self.conventions.iter().enumerate().filter(is_common).map(|(_, c)| *c).collect()
    }

    /// The groups, largest first, unexplained results last. `whole` are the conventions that give every element of the
    /// tensor.
    ///
    /// A convention is named only if it gives more than half of the results among those that it would get wrong, so
    /// that chance names none. `may_be_partial` says whether a convention can apply to some elements only.
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

    /// Convention that gives most of the remaining results.
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

/// Equality under the comparison of NaN.
#[must_use]
pub fn is_same(dtype: DType, a: u64, b: u64, nan: NanComparison) -> bool {
    let is_nan = |code| matches!(decode(dtype, code), Exact::Nan { .. });
    a == b || (nan == NanComparison::Class && is_nan(a) && is_nan(b))
}
