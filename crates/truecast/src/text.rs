//! Text in the buffers of tensors: cells of fixed width on one side, elements in either layout on the other, and what the
//! conversion counts.
//!
//! Texts of any length, as models have them, are `truecast_text`'s [`TextCaster`] and [`Texts`]. What a text means is
//! [`mod@crate::text::definition`].

use std::borrow::Cow;
use truecast_core::exact::decode;
use truecast_core::policy::{Edge, IntOverflow};
use truecast_core::{CastSpec, DType, Exact, Kind, Layout, Outcome};
use truecast_kernel::measure::Measure;
use truecast_kernel::{Caster, Codes, CodesMut, Counts, Exec};

pub use truecast_core::text as definition;
pub use truecast_text::{Reading, TextCaster, TextError, Texts, Unsupported};

/// Is one side of the conversion text, and the other not?
pub(crate) fn is_text(spec: &CastSpec) -> bool {
    (spec.src == DType::String) != (spec.dst == DType::String)
}

/// A planned conversion between cells and elements.
#[derive(Debug)]
pub(crate) struct CellCaster {
    caster: TextCaster,
    /// Between the packed layout of narrow elements and one a byte.
    relayout: Option<Caster>,
    /// What the elements hold, for printing.
    measure: Option<Measure>,
}

impl CellCaster {
    pub fn new(spec: &CastSpec, exec: &Exec) -> Result<CellCaster, Unsupported> {
        let caster = TextCaster::new(spec)?;
        let other = if spec.src == DType::String { spec.dst } else { spec.src };
        let is_narrow = other.storage_bits().is_some_and(|bits| bits < 8);
        let relayout =
            is_narrow.then(|| Caster::new(&CastSpec::copy(other), exec).expect("a type is copied to itself"));
        let measure = (spec.dst == DType::String).then(|| Measure::between(other, other, exec));
        Ok(CellCaster { caster, relayout, measure })
    }

    /// Converts without counting.
    pub fn cast(&self, src: Codes<'_>, dst: CodesMut<'_>) -> Result<(), TextError> {
        match (src.layout(), dst.layout()) {
            (Layout::Utf32 { width }, _) => self.parse(src.bytes(), width, dst, |_| ()),
            (_, Layout::Utf32 { width }) => self.caster.print_cells(&self.loose(src), dst.into_bytes(), width),
            _ => Err(TextError::Length { elements: 0 }),
        }
    }

    /// Converts, and counts in parts of `block` elements that are to be added in order.
    pub fn cast_parts(&self, src: Codes<'_>, dst: CodesMut<'_>, block: usize) -> Result<Vec<Counts>, TextError> {
        match src.layout() {
            Layout::Utf32 { width } => {
                let mut tally = Tally::new(self.caster.spec(), block);
                self.parse(src.bytes(), width, dst, |reading| tally.see(&reading))?;
                Ok(tally.finish())
            }
            _ => {
                self.cast(src, dst)?;
                Ok(self.printed(src, block))
            }
        }
    }

    /// Characters of the longest text.
    pub fn longest(&self, src: Codes<'_>) -> Result<usize, TextError> {
        self.caster.longest(&self.loose(src))
    }

    fn parse(&self, cells: &[u8], width: u32, dst: CodesMut<'_>, see: impl FnMut(Reading)) -> Result<(), TextError> {
        let (dtype, layout, len) = (dst.dtype(), dst.layout(), dst.len());
        let Some(relayout) = self.relayout.as_ref().filter(|_| layout == Layout::Packed) else {
            return self.caster.parse_cells(cells, width, dst.into_bytes(), see);
        };
        let mut bytes = vec![0; len];
        self.caster.parse_cells(cells, width, &mut bytes, see)?;
        let codes = Codes::with_layout(dtype, Layout::Bytes, len, &bytes[..]).expect("one byte an element");
        relayout.cast(codes, dst).expect("as many elements on both sides");
        Ok(())
    }

    /// The bytes of elements in [`Layout::Bytes`].
    fn loose<'a>(&self, src: Codes<'a>) -> Cow<'a, [u8]> {
        let Some(relayout) = self.relayout.as_ref().filter(|_| src.layout() == Layout::Packed) else {
            return Cow::Borrowed(src.bytes());
        };
        let mut bytes = vec![0; src.len()];
        let dst = CodesMut::with_layout(src.dtype(), Layout::Bytes, src.len(), &mut bytes[..]);
        relayout.cast(src, dst.expect("one byte an element")).expect("as many elements on both sides");
        Cow::Owned(bytes)
    }

    /// A text reads back as its element, so nothing is lost but what NaN carries (`docs/interfaces.md §6`).
    fn printed(&self, src: Codes<'_>, block: usize) -> Vec<Counts> {
        let Some(measure) = &self.measure else { return Vec::new() };
        let spec = self.caster.spec();
        let is_open = spec.undefined.iter().any(|u| u.edge == Edge::Any);
        let loose = self.loose(src);
        let layout = if self.relayout.is_some() { Layout::Bytes } else { src.layout() };
        let width = spec.src.bits_in(Layout::Bytes).map_or(1, |bits| bits as usize / 8);
        let blocks = loose.chunks(block * width).flat_map(|bytes| {
            let codes = Codes::with_layout(spec.src, layout, bytes.len() / width, bytes).expect("whole elements");
            measure.compare(codes, codes)
        });
        blocks.map(|c| Counts { subnormal: 0, undefined: if is_open { c.elements } else { 0 }, ..c }).collect()
    }
}

/// What becomes of texts: `x` is the value that a text says, `y` that of its element (`docs/interfaces.md §6`).
struct Tally<'a> {
    spec: &'a CastSpec,
    block: u64,
    parts: Vec<Counts>,
}

impl<'a> Tally<'a> {
    fn new(spec: &'a CastSpec, block: usize) -> Tally<'a> {
        Tally { spec, block: block as u64, parts: vec![Counts::default()] }
    }

    fn see(&mut self, reading: &Reading) {
        if self.parts.last().is_none_or(|part| part.elements == self.block) {
            self.parts.push(Counts::default());
        }
        let counts = self.parts.last_mut().expect("one was pushed");
        let Reading { value: x, encoded } = *reading;
        let code = encoded.code.unwrap_or(0);
        let y = decode(self.spec.dst, code);
        let is_exact = is_same(x, y);
        let mut count = |what: fn(&mut Counts) -> &mut u64, is: bool| *what(counts) += is as u64;
        count(|c| &mut c.exact, is_exact);
        count(|c| &mut c.inexact, !is_exact);
        let is_beyond = matches!(encoded.edge, Some(Edge::Overflow | Edge::Infinite));
        let wraps = matches!(self.spec.dst.kind(), Kind::Int(_)) && self.spec.policy.int_overflow == IntOverflow::Wrap;
        count(|c| &mut c.saturated, is_beyond && !wraps && is_finite(y));
        count(|c| &mut c.wrapped, is_beyond && wraps);
        count(|c| &mut c.to_inf, is_finite(x) && is_inf(y));
        count(|c| &mut c.to_nan, !is_nan(x) && is_nan(y));
        count(|c| &mut c.nan_in, is_nan(x));
        count(|c| &mut c.inf_in, is_inf(x));
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

/// Equal as numbers, or both NaN. `y` is not sticky.
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

/// The nearest f64 of a finite value, if it has one.
fn nearest(value: Exact) -> Option<f64> {
    let policy = truecast_core::CastPolicy::IEEE;
    let bits = truecast_core::exact::encode(DType::F64, &policy, value).code?;
    Some(f64::from_bits(bits)).filter(|v| v.is_finite() && is_finite(value))
}
