//! Range and special values of one tensor, independent of the order of elements.
//!
//! Narrow elements are counted by code. Wide elements are compared as integers.

mod narrow;
mod wide;

use super::limits::as_f64;
use crate::buf::Elements;
use crate::environment;
use crate::level::{Level, Task};
use crate::slot::Slot;
pub(super) use narrow::histogram;
use truecast_core::exact::decode;
use truecast_core::{DType, Exact, Kind};
use wide::{Floats, Integers, Seen};

/// Smallest or largest value of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Extreme {
    /// Nearest f64.
    pub nearest: f64,
    /// Value minus `nearest`. It is 0 for all types except 64-bit integers.
    pub residual: f64,
}

impl std::fmt::Display for Extreme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.nearest.abs() < 2f64.powi(65) && self.nearest.trunc() == self.nearest {
            write!(f, "{}", self.nearest as i128 + self.residual as i128)
        } else if (1e-5..1e16).contains(&self.nearest.abs()) {
            write!(f, "{}", self.nearest)
        } else {
            write!(f, "{:e}", self.nearest)
        }
    }
}

/// Range and special values of one tensor.
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast_kernel::{Elements, Level, measure::Survey};
/// let mut survey = Survey::default();
/// survey.add(Elements::new(DType::F8E4M3Fn, 3, &[0x01, 0x7f, 0xfe])?, Level::detect());
/// assert_eq!((survey.nan, survey.subnormal), (1, 1));
/// assert_eq!(survey.range.unwrap().0.nearest, -448.0);
/// # Ok::<(), truecast_kernel::CastError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Survey {
    /// Number of elements.
    pub elements: u64,
    /// Number of NaN.
    pub nan: u64,
    /// Number of infinities.
    pub inf: u64,
    /// Number of zeros of either sign.
    pub zero: u64,
    /// Number of subnormals.
    pub subnormal: u64,
    /// Smallest and largest finite value; `None` without finite values.
    pub range: Option<(Extreme, Extreme)>,
}

impl Survey {
    /// Adds the next elements, on one thread. Surveys of parts can be [merged](Survey::merge) in any order.
    ///
    /// # Panics
    /// If the type is not numeric.
    pub fn add(&mut self, codes: Elements<'_>, level: Level) {
        let (dtype, len) = (codes.dtype(), codes.len());
        assert!(dtype.is_numeric(), "{dtype} is not numeric");
        self.elements += len as u64;
        // The ends become numbers by floating-point arithmetic.
        environment::default(|| match codes.dtype().bits_in(codes.layout()) {
            Some(bits @ 1..=8) => {
                let counts = histogram(&codes, bits as usize);
                let occurring = counts.into_iter().enumerate().filter(|(_, n)| *n > 0);
                occurring.for_each(|(storage, n)| self.code(dtype, dtype.code_of_storage(storage as u64), n));
            }
            Some(16) => self.wide::<u16>(codes, level),
            Some(32) => self.wide::<u32>(codes, level),
            Some(64) => self.wide::<u64>(codes, level),
            bits => self.of_any_width(codes, bits.expect("numbers have a width") as usize / 8),
        });
    }

    /// Adds the survey of other elements.
    pub fn merge(&mut self, other: &Survey) {
        self.elements += other.elements;
        self.nan += other.nan;
        self.inf += other.inf;
        self.zero += other.zero;
        self.subnormal += other.subnormal;
        self.widen(other.range);
    }

    fn widen(&mut self, range: Option<(Extreme, Extreme)>) {
        self.range = match (self.range, range) {
            (Some((a, b)), Some((c, d))) => Some((if c < a { c } else { a }, if d > b { d } else { b })),
            (a, b) => a.or(b),
        };
    }

    fn code(&mut self, dtype: DType, code: u64, n: u64) {
        match decode(dtype, code) {
            Exact::Nan { .. } => self.nan += n,
            Exact::Inf { .. } => self.inf += n,
            Exact::Finite { sig, .. } => {
                let below_normal = |code| match dtype.kind() {
                    Kind::Float(f) => code & f.magnitude_mask() < f.min_normal_code(),
                    _ => false,
                };
                self.zero += if sig == 0 { n } else { 0 };
                self.subnormal += if sig != 0 && below_normal(code) { n } else { 0 };
                self.widen(Some((extreme(dtype, code), extreme(dtype, code))));
            }
        }
    }

    fn wide<W: Slot>(&mut self, codes: Elements<'_>, level: Level)
    where
        for<'a> Floats<'a, W>: Task<Output = Seen>,
        for<'a> Integers<'a, W>: Task<Output = Seen>,
    {
        let (dtype, elements) = (codes.dtype(), W::view(codes.bytes()));
        let sign = 1 << (8 * W::BYTES - 1);
        match dtype.kind() {
            Kind::Float(f) => {
                let storage = |code| W::low(dtype.storage_of_code(code));
                let kept = W::low(dtype.storage_of_code(u64::MAX >> (64 - f.bits())));
                let inf = storage(f.inf_code().expect("every wide float has infinities"));
                let seen = level.run(Floats { elements, kept, inf, min_normal: storage(f.min_normal_code()) });
                // The key of a negative value has all bits flipped except the sign.
                let storage = |key: i64| W::low(key as u64 ^ ((key >> 63) as u64 & (sign - 1))).wide();
                self.seen(dtype, seen, storage);
            }
            Kind::Int(f) => {
                let flipped = if f.signed { 0 } else { sign };
                let seen = level.run(Integers { elements, flipped: W::low(flipped) });
                self.seen(dtype, seen, |key| key as u64 ^ flipped);
            }
            _ => unreachable!("every other type is narrow"),
        }
    }

    fn seen(&mut self, dtype: DType, seen: Seen, storage: impl Fn(i64) -> u64) {
        self.nan += seen.nan;
        self.inf += seen.inf;
        self.zero += seen.zero;
        self.subnormal += seen.subnormal;
        if seen.low <= seen.high {
            let end = |key| extreme(dtype, dtype.code_of_storage(storage(key)));
            self.widen(Some((end(seen.low), end(seen.high))));
        }
    }

    fn of_any_width(&mut self, codes: Elements<'_>, bytes: usize) {
        for element in codes.bytes().chunks_exact(bytes) {
            let code = element.iter().rev().fold(0, |code, &byte| code << 8 | byte as u64);
            self.code(codes.dtype(), code, 1);
        }
    }
}

/// Finite value of a code; +0 for -0.
fn extreme(dtype: DType, code: u64) -> Extreme {
    match dtype.kind() {
        Kind::Int(f) => {
            let value = f.value(code);
            let nearest = value as f64;
            Extreme { nearest, residual: (value - nearest as i128) as f64 }
        }
        _ => Extreme { nearest: as_f64(dtype, code) + 0.0, residual: 0.0 },
    }
}
