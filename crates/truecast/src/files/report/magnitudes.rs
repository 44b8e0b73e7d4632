//! Values of a tensor by power of two, before and after (`docs/interfaces.md §6`).

use serde::Serialize;
use serde::ser::Serializer;
use serde_json::json;
use std::num::NonZeroUsize;
use truecast_kernel::Elements;
use truecast_kernel::measure::{Powers, Sample};

/// Measured values of a tensor by power of two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Magnitudes {
    /// Values of the source, or of the first file of a comparison.
    pub from: Powers,
    /// Values of the result, or of the second file.
    pub to: Powers,
}

impl Magnitudes {
    /// Adds the sample of elements that begin with element `first` of a tensor.
    pub(crate) fn add(&mut self, [from, to]: [Elements<'_>; 2], first: u64, sample: Sample, threads: NonZeroUsize) {
        let powers = Powers::of(from, first, sample, threads);
        let is_same = std::ptr::eq(from.bytes(), to.bytes());
        self.to.merge(&if is_same { powers.clone() } else { Powers::of(to, first, sample, threads) });
        self.from.merge(&powers);
    }

    /// True if elements of both sides are counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.from.elements() > 0 && self.to.elements() > 0
    }

    pub(crate) fn merge(&mut self, other: &Magnitudes) {
        self.from.merge(&other.from);
        self.to.merge(&other.to);
    }
}

impl Serialize for Magnitudes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let side = |powers: &Powers| {
            let Powers { first, counts, zero, nan, inf } = powers;
            json!({ "first": first, "counts": counts, "zero": zero, "nan": nan, "inf": inf })
        };
        json!({ "from": side(&self.from), "to": side(&self.to) }).serialize(serializer)
    }
}
