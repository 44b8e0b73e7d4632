//! Does a file hold what the definition says it should? Every element is recomputed, or a sample, by
//! [`cast_one`](truecast_core::cast_one) or by what is derived from it (`method`), which shares no code with the kernels
//! that may have written the file.

mod arithmetic;
pub(crate) mod coverage;
pub(crate) mod difference;
pub(crate) mod elements;
pub(crate) mod found;
pub(crate) mod intervals;
pub(crate) mod method;
mod record;
pub(crate) mod text;
pub(crate) mod written;

pub use coverage::Coverage;
pub use difference::{FileDifference, WrongElement, WrongText};
pub use method::Methods;
pub use record::{Record, RecordError, RecordedFile};

use std::path::Path;

/// What was compared and what differs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifyReport {
    /// Tensors compared.
    pub tensors: u64,
    /// Elements compared.
    pub elements: u64,
    /// If these are a sample: of how many elements, and the seed that drew it.
    pub sampled: Option<Sample>,
    /// How the elements were compared; text is not among them.
    pub methods: Methods,
    /// In the order of the tensors.
    pub differences: Vec<FileDifference>,
}

/// Of what a sample was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Elements of the tensors compared.
    pub of: u64,
    /// The same seed draws the same elements.
    pub seed: u64,
}

impl VerifyReport {
    /// What was found in a component of the folder, too.
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

    /// The part of the elements that was compared, 1 for all.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        match self.sampled {
            Some(Sample { of, .. }) if of > 0 => self.elements as f64 / of as f64,
            _ => 1.0,
        }
    }
}
