//! What else might have been done to a tensor that was quantized, and what that would have cost.

use super::counts::Number;
use serde::ser::SerializeMap;
use truecast_kernel::Counts;

/// The signal of a tensor, and the noise of a way to store it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Sum of `x^2`.
    pub signal: f64,
    /// Sum of `(y - x)^2`.
    pub noise: f64,
}

impl Noise {
    pub(crate) fn of(counts: &Counts) -> Noise {
        Noise { signal: counts.signal, noise: counts.noise }
    }

    /// Of two tensors together.
    #[must_use]
    pub fn and(self, other: Noise) -> Noise {
        Noise { signal: self.signal + other.signal, noise: self.noise + other.noise }
    }

    /// The ratio in decibels, as that of [`Counts`].
    #[must_use]
    pub fn sqnr_db(self) -> f64 {
        Counts { signal: self.signal, noise: self.noise, ..Counts::default() }.sqnr_db()
    }
}

/// Other ways to store a tensor that was quantized; `None` where they are not asked about, or do not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Alternatives {
    /// A plain cast to the type of the codes.
    pub cast: Option<Noise>,
    /// The scales of the formula, where others were searched.
    pub formula: Option<Noise>,
}

impl Alternatives {
    pub(super) fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        for (name, noise) in [("cast_sqnr_db", self.cast), ("formula_sqnr_db", self.formula)] {
            noise.map_or(Ok(()), |noise| map.serialize_entry(name, &Number(noise.sqnr_db())))?;
        }
        Ok(())
    }
}
