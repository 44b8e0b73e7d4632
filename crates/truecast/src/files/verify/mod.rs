//! Verifies that a file holds the definition's results. Recomputes every element, or a sample, by
//! [`cast_one`](truecast_core::cast_one) or a method derived from it (`method`), without code of the kernels that may
//! have written the file.

mod arithmetic;
pub(crate) mod coverage;
pub(crate) mod difference;
pub(crate) mod elements;
pub(crate) mod found;
pub(crate) mod intervals;
pub(crate) mod method;
mod record;
pub(crate) mod seen;
pub(crate) mod text;
pub(crate) mod written;

pub use coverage::Coverage;
pub use difference::{FileDifference, WrongElement, WrongText};
pub use method::Methods;
pub use record::{Record, RecordError, RecordedFile};

use std::path::Path;

/// Result of a verification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifyReport {
    /// Number of tensors compared.
    pub tensors: u64,
    /// Number of elements compared.
    pub elements: u64,
    /// The sample, if not everything was compared.
    pub sampled: Option<Sample>,
    /// Number of elements by method of comparison, without text.
    pub methods: Methods,
    /// Differences in the order of the tensors.
    pub differences: Vec<FileDifference>,
}

/// Size and seed of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Number of elements in the compared tensors.
    pub of: u64,
    /// Seed, which repeats the sample.
    pub seed: u64,
}

impl VerifyReport {
    /// Adds the report of a component of the folder.
    pub(crate) fn join(&mut self, component: &Path, mut other: VerifyReport) {
        for tensor in other.differences.iter_mut().filter_map(FileDifference::tensor_mut) {
            *tensor = format!("{}/{tensor}", component.display());
        }
        let of = |report: &VerifyReport| report.sampled.map_or(report.elements, |sample| sample.of);
        let of = of(self) + of(&other);
        self.sampled = self.sampled.or(other.sampled).map(|sample| Sample { of, ..sample });
        self.tensors += other.tensors;
        self.elements += other.elements;
        self.methods.add(&other.methods);
        self.differences.extend(other.differences);
    }

    /// Fraction of the elements that was compared; 1 for all.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        match self.sampled {
            Some(Sample { of, .. }) if of > 0 => self.elements as f64 / of as f64,
            _ => 1.0,
        }
    }
}
