//! Counts of conversions from and to text (`docs/interfaces.md §6`).

use super::{CellCaster, Parsed, TextError};
use crate::measure::Measure;
use crate::{CastOptions, Counts, Elements, ElementsMut};
use truecast_core::exact::decode;
use truecast_core::policy::{Condition, IntOverflow};
use truecast_core::{CastSpec, DType, Exact, Kind, Layout, Outcome};

impl CellCaster {
    /// Converts, and returns the counts in parts of `block` elements, to be added in order.
    ///
    /// # Errors
    /// The errors of [`CellCaster::cast`].
    pub fn cast_parts(&self, src: Elements<'_>, dst: ElementsMut<'_>, block: usize) -> Result<Vec<Counts>, TextError> {
        match src.layout() {
            Layout::Utf32 { width } => {
                let mut tally = Tally::new(self.caster.spec(), block);
                self.parse(src.bytes(), width, dst, |parsed| tally.see(&parsed))?;
                Ok(tally.finish())
            }
            _ => {
                self.cast(src, dst)?;
                Ok(self.printed(src, block))
            }
        }
    }

    /// Returns the number of characters in the longest text of the elements.
    ///
    /// # Errors
    /// [`TextError`] if the bytes are not whole elements.
    pub fn longest(&self, src: Elements<'_>) -> Result<usize, TextError> {
        self.caster.longest(&self.loose(src))
    }

    /// Counts printed elements. A text reads back as its element, so only NaN bits are lost (`docs/interfaces.md §6`).
    fn printed(&self, src: Elements<'_>, block: usize) -> Vec<Counts> {
        let spec = self.caster.spec();
        let measure = Measure::between(spec.src, spec.src, &CastOptions::default());
        let is_open = spec.undefined.iter().any(|u| u.condition == Condition::Any);
        let loose = self.loose(src);
        let layout = if self.relayout.is_some() { Layout::Bytes } else { src.layout() };
        let width = spec.src.bits_in(Layout::Bytes).map_or(1, |bits| bits as usize / 8);
        let blocks = loose.chunks(block * width).flat_map(|bytes| {
            let codes = Elements::with_layout(spec.src, layout, bytes.len() / width, bytes).expect("whole elements");
            measure.compare(codes, codes)
        });
        blocks.map(|c| Counts { subnormal: 0, undefined: if is_open { c.elements } else { 0 }, ..c }).collect()
    }
}

/// Counts for parsed texts. `x` is the value of a text, and `y` the value of the element that it became
/// (`docs/interfaces.md §6`).
struct Tally<'a> {
    spec: &'a CastSpec,
    block: u64,
    parts: Vec<Counts>,
}

impl<'a> Tally<'a> {
    fn new(spec: &'a CastSpec, block: usize) -> Tally<'a> {
        Tally { spec, block: block as u64, parts: vec![Counts::default()] }
    }

    fn see(&mut self, parsed: &Parsed) {
        if self.parts.last().is_none_or(|part| part.elements == self.block) {
            self.parts.push(Counts::default());
        }
        let counts = self.parts.last_mut().expect("one was pushed");
        let Parsed { value: x, encoded } = *parsed;
        let code = encoded.code.unwrap_or(0);
        let y = decode(self.spec.dst, code);
        let is_exact = is_same(x, y);
        let mut count = |what: fn(&mut Counts) -> &mut u64, is: bool| *what(counts) += is as u64;
        count(|c| &mut c.exact, is_exact);
        count(|c| &mut c.inexact, !is_exact);
        let is_beyond = matches!(encoded.condition, Some(Condition::Overflow | Condition::Infinite));
        let wraps = matches!(self.spec.dst.kind(), Kind::Int(_)) && self.spec.policy.int_overflow == IntOverflow::Wrap;
        count(|c| &mut c.saturated, is_beyond && !wraps && is_finite(y));
        count(|c| &mut c.wrapped, is_beyond && wraps);
        count(|c| &mut c.to_inf, is_finite(x) && is_inf(y));
        count(|c| &mut c.to_nan, !is_nan(x) && is_nan(y));
        count(|c| &mut c.nan_in, is_nan(x));
        count(|c| &mut c.inf_in, is_inf(x));
        count(|c| &mut c.zero_in, is_zero(x));
        count(|c| &mut c.nan_out, is_nan(y));
        count(|c| &mut c.inf_out, is_inf(y));
        count(|c| &mut c.flushed_to_zero, is_finite(x) && !is_zero(x) && is_zero(y));
        count(|c| &mut c.subnormal, is_subnormal(self.spec.dst, code));
        count(|c| &mut c.sign_of_zero_lost, is_zero(y) && is_finite(x) && sign(x) != sign(y));
        let is_open = matches!(encoded.outcome(self.spec.undefined), Outcome::Undefined { .. });
        count(|c| &mut c.undefined, is_open);
        if let (Some(x), Some(y)) = (nearest(x), nearest(y)) {
            let error = if is_exact { 0.0 } else { (y - x).abs() };
            if error > counts.max_abs_error {
                (counts.max_abs_error, counts.index_max_abs) = (error, counts.elements);
            }
            if x != 0.0 {
                counts.max_rel_error = counts.max_rel_error.max(error / x.abs());
            }
            counts.finite_pairs += 1;
            counts.noise += error * error;
            counts.signal += x * x;
            counts.image += y * y;
            counts.product += x * y;
        }
        counts.elements += 1;
        counts.measured += 1;
    }

    fn finish(self) -> Vec<Counts> {
        self.parts
    }
}

fn is_nan(value: Exact) -> bool {
    matches!(value, Exact::Nan { .. })
}

fn is_inf(value: Exact) -> bool {
    matches!(value, Exact::Inf { .. })
}

fn is_finite(value: Exact) -> bool {
    matches!(value, Exact::Finite { .. })
}

fn is_zero(value: Exact) -> bool {
    matches!(value, Exact::Finite { sig: 0, sticky: false, .. })
}

fn sign(value: Exact) -> bool {
    let (Exact::Nan { neg, .. } | Exact::Inf { neg } | Exact::Finite { neg, .. }) = value;
    neg
}

fn is_subnormal(dtype: DType, code: u64) -> bool {
    match dtype.kind() {
        Kind::Float(f) => (1..f.min_normal_code()).contains(&(code & f.magnitude_mask())),
        _ => false,
    }
}

/// Equal numbers, or both NaN. `y` must not be sticky.
fn is_same(x: Exact, y: Exact) -> bool {
    let parts = |value| match value {
        Exact::Finite { sig, exp, .. } => (sig >> sig.trailing_zeros(), exp + sig.trailing_zeros() as i32),
        _ => (0, 0),
    };
    match (x, y) {
        (Exact::Nan { .. }, Exact::Nan { .. }) => true,
        (Exact::Inf { neg: a }, Exact::Inf { neg: b }) => a == b,
        (Exact::Finite { sticky: true, .. }, _) => false,
        _ if is_zero(x) || is_zero(y) => is_zero(x) && is_zero(y),
        (Exact::Finite { neg: a, .. }, Exact::Finite { neg: b, .. }) => a == b && parts(x) == parts(y),
        _ => false,
    }
}

/// Nearest f64; `None` if the value or the f64 is nonfinite.
fn nearest(value: Exact) -> Option<f64> {
    let policy = truecast_core::CastPolicy::IEEE;
    let bits = truecast_core::exact::encode(DType::F64, &policy, value).code?;
    Some(f64::from_bits(bits)).filter(|v| v.is_finite() && is_finite(value))
}
