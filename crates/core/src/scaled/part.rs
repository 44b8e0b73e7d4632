//! Stored parts of a tensor.

use crate::words::words;

words! {
    /// Stored part of a tensor.
    pub enum Part {
        /// Codes, or the blocks of a GGUF file.
        Codes = "codes",
        /// Scales.
        Scales = "scales",
        /// Global scale, f32.
        Global = "global scale",
        /// Zero points.
        Zeros = "zero points",
        /// Biases, of the type of the scales.
        Biases = "biases",
        /// Group of each row or column, i32.
        Index = "group index",
        /// Value of each scale code, f32.
        Book = "code book",
    }
}

/// Bytes of each part; empty for parts that a layout does not have.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // Named as in [`Part`].
pub struct Parts<'a> {
    pub codes: &'a [u8],
    pub scales: &'a [u8],
    pub global: &'a [u8],
    pub zeros: &'a [u8],
    pub biases: &'a [u8],
    pub index: &'a [u8],
    pub book: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Collects the bytes that `get` returns for each part.
    pub fn of(get: impl Fn(Part) -> &'a [u8]) -> Parts<'a> {
        Parts {
            codes: get(Part::Codes),
            scales: get(Part::Scales),
            global: get(Part::Global),
            zeros: get(Part::Zeros),
            biases: get(Part::Biases),
            index: get(Part::Index),
            book: get(Part::Book),
        }
    }

    /// Returns the bytes of a part.
    #[must_use]
    pub fn get(&self, part: Part) -> &'a [u8] {
        match part {
            Part::Codes => self.codes,
            Part::Scales => self.scales,
            Part::Global => self.global,
            Part::Zeros => self.zeros,
            Part::Biases => self.biases,
            Part::Index => self.index,
            Part::Book => self.book,
        }
    }
}
