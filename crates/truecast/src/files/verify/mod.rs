//! Verifies that a file has the results of the reference definition ([`cast_one`](truecast_core::cast_one)). `method`
//! has faster methods derived from the definition. No code is shared with the kernels.

mod arithmetic;
pub(crate) mod coverage;
pub(crate) mod difference;
pub(crate) mod elements;
pub(crate) mod found;
pub(crate) mod intervals;
pub(crate) mod json;
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
    /// Number of compared tensors.
    pub tensors: u64,
    /// Number of compared elements.
    pub elements: u64,
    /// The sample; `None` if everything was compared.
    pub sampled: Option<Sample>,
    /// Number of elements that each method decided. Text is not counted.
    pub methods: Methods,
    /// Differences in the order of the tensors.
    pub differences: Vec<FileDifference>,
}

/// Size and seed of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Number of elements in the compared tensors.
    pub of: u64,
    /// Seed that repeats the sample.
    pub seed: u64,
}

impl VerifyReport {
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

    /// Fraction of the elements that was compared.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        match self.sampled {
            Some(Sample { of, .. }) if of > 0 => self.elements as f64 / of as f64,
            _ => 1.0,
        }
    }
}
