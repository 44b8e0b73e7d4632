//! What one tensor holds: its range and special values.

use super::limits::Limits;
use super::values::{Value, Values, finite};
use super::{Tiles, environment, tiles};
use crate::buf::Codes;
use crate::caster::BLOCK;
use crate::level::Level;
use crate::parallel::{map_range, pool_threads};
use crate::plan::Hub;
use crate::slot::Slot;

/// The smallest or largest value of a tensor: an f64 and, for 64-bit integers, what it leaves over.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Extreme {
    /// The nearest f64.
    pub nearest: f64,
    /// The value minus `nearest`; 0 for every type but 64-bit integers.
    pub residual: f64,
}

impl std::fmt::Display for Extreme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.nearest.abs() < 2f64.powi(65) && self.nearest.trunc() == self.nearest {
            true => write!(f, "{}", self.nearest as i128 + self.residual as i128),
            false if (1e-5..1e16).contains(&self.nearest.abs()) => write!(f, "{}", self.nearest),
            false => write!(f, "{:e}", self.nearest),
        }
    }
}

/// What one tensor holds.
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast_kernel::{Codes, Level, measure::Survey};
/// let mut survey = Survey::default();
/// survey.add(Codes::new(DType::F8E4M3Fn, 3, &[0x01, 0x7f, 0xfe])?, Level::detect());
/// assert_eq!((survey.nan, survey.subnormal), (1, 1));
/// assert_eq!(survey.range.unwrap().0.nearest, -448.0);
/// # Ok::<(), truecast_kernel::CastError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Survey {
    /// Elements seen.
    pub elements: u64,
    /// NaN.
    pub nan: u64,
    /// Infinities.
    pub inf: u64,
    /// Zeros of either sign.
    pub zero: u64,
    /// Subnormals of the type.
    pub subnormal: u64,
    /// Smallest and largest finite value, if there is a finite value.
    pub range: Option<(Extreme, Extreme)>,
}

impl Survey {
    /// Looks at the next elements.
    ///
    /// # Panics
    /// If the type is not numeric.
    pub fn add(&mut self, codes: Codes<'_>, level: Level) {
        let values = Values::new(codes.dtype(), Hub::F64, level);
        let limits = Limits::of_type(codes.dtype());
        let survey = |Tiles { x: tile, scratch, .. }: &mut Tiles, block: usize| {
            let mut survey = Survey::default();
            for (n, bytes) in tiles(&codes, block * BLOCK, BLOCK) {
                environment::default(|| {
                    let (values_of, residuals) = values.read((codes.layout(), bytes), n, tile, scratch);
                    survey.tile(values_of, residuals, &limits);
                });
            }
            survey
        };
        let blocks = map_range(pool_threads(), 0..codes.len().div_ceil(BLOCK), Tiles::new, survey);
        blocks.iter().for_each(|s| self.merge(s));
    }

    fn merge(&mut self, next: &Survey) {
        self.elements += next.elements;
        self.nan += next.nan;
        self.inf += next.inf;
        self.zero += next.zero;
        self.subnormal += next.subnormal;
        self.widen(next.range);
    }

    fn widen(&mut self, range: Option<(Extreme, Extreme)>) {
        self.range = match (self.range, range) {
            (Some((a, b)), Some((c, d))) => Some((if c < a { c } else { a }, if d > b { d } else { b })),
            (a, b) => a.or(b),
        };
    }

    fn tile(&mut self, values: &[u8], residuals: &[u8], limits: &Limits) {
        for (value, residual) in u64::view(values).iter().zip(u64::view(residuals)) {
            let value = u64::value(*value);
            self.elements += 1;
            self.nan += value.is_nan() as u64;
            self.inf += (value.abs() == f64::INFINITY) as u64;
            self.zero += (value == 0.0) as u64;
            let small = limits.has_subnormals && value != 0.0 && value.abs() < limits.min_normal;
            self.subnormal += small as u64;
            if finite(value) {
                let here = Extreme { nearest: value, residual: u64::value(*residual) };
                self.widen(Some((here, here)));
            }
        }
    }
}
