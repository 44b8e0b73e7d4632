//! The stored parts of a tensor.

/// A stored part of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Codes, or the blocks of a GGUF file.
    Codes,
    /// Scales.
    Scales,
    /// The second scale, f32.
    Global,
    /// Zero points.
    Zeros,
    /// Biases, of the type of the scales.
    Biases,
    /// The group of each row or column, i32.
    Index,
}

/// The bytes of each part; of parts that a layout does not have, none.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // Named as in [`Part`].
pub struct Parts<'a> {
    pub codes: &'a [u8],
    pub scales: &'a [u8],
    pub global: &'a [u8],
    pub zeros: &'a [u8],
    pub biases: &'a [u8],
    pub index: &'a [u8],
}

impl<'a> Parts<'a> {
    /// The bytes of a part.
    #[must_use]
    pub fn get(&self, part: Part) -> &'a [u8] {
        match part {
            Part::Codes => self.codes,
            Part::Scales => self.scales,
            Part::Global => self.global,
            Part::Zeros => self.zeros,
            Part::Biases => self.biases,
            Part::Index => self.index,
        }
    }
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 6] = [Part::Codes, Part::Scales, Part::Global, Part::Zeros, Part::Biases, Part::Index];

    /// Its name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Part::Codes => "codes",
            Part::Scales => "scales",
            Part::Global => "global scale",
            Part::Zeros => "zero points",
            Part::Biases => "biases",
            Part::Index => "group index",
        }
    }
}
