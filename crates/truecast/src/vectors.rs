//! Test vectors: source codes at which the result of a conversion changes.
//!
//! The lists depend on types only, so they hold for every specification; [`truecast_core::cast_one`] gives the results.
//! The vectors of RESCALE come from its definition instead, because the scale determines where the result changes. The
//! independent oracle has separate lists.

use std::collections::BTreeSet;
use truecast_core::exact::{RandomBits, decode, encode};
use truecast_core::permitted::{Permitted, permitted};
use truecast_core::policy::{CastPolicy, IntOverflow, Overflow, Unrepresentable};
use truecast_core::spec::tosa::rescale::{Bound, RoundingMode, inexact_interval};
use truecast_core::spec::tosa::{Rescale, RescaleSpec};
use truecast_core::{CastSpec, DType, ErrorCode, Exact, FloatFormat, IntFormat, Kind, Rounding, cast_one};
use truecast_kernel::{CastOptions, PlanError, StochasticCaster};

/// Extent of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Special codes, and the source codes around each value, midpoint and limit of the destination.
    Boundary,
    /// Every code, for sources of 16 bits or fewer.
    Exhaustive,
}

/// Reason for the lack of vectors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The error messages name the fields.
pub enum VectorError {
    /// Source too wide for an exhaustive list.
    #[error("{src} has 2^{} codes; level exhaustive takes sources of 16 bits or fewer; use level boundary", src.code_bits())]
    TooWide { src: DType },
    /// Text and complex numbers, which have no codes to list.
    #[error("{dtype} has no codes to list")]
    NoCodes { dtype: DType },
    /// A pair that random bits cannot round.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl VectorError {
    /// Stable code of the error.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            VectorError::TooWide { .. } | VectorError::NoCodes { .. } => ErrorCode::InvalidValue,
            VectorError::Plan(_) => ErrorCode::UnsupportedPair,
        }
    }
}

/// An input and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Code of the input.
    pub input: u64,
    /// Code of the result, the documented one if the specification leaves it open; `None` if a policy refuses the
    /// input.
    pub output: Option<u64>,
    /// Present if the specification leaves the result open.
    pub open: Option<Open>,
    /// Random bits of stochastic rounding.
    pub random: Option<RandomBits>,
}

/// A result that the specification leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The reason, with its clause.
    pub reason: &'static str,
    /// Codes that a check accepts; `None` if a check accepts any code.
    pub accepted: Option<Vec<u64>>,
}

/// Width in bits of the widest sources with exhaustive lists.
const MAX_EXHAUSTIVE_BITS: u32 = 16;
/// Width in bits of the widest sources whose boundary lists hold every code.
const ALWAYS_WHOLE_BITS: u32 = 8;
/// Width in bits of the widest destinations for which every value and midpoint is used; for wider ones, a selection is
/// used.
const EVERY_VALUE_BITS: u32 = 16;

/// Lists source codes for a pair, ascending, each once.
///
/// # Errors
/// [`VectorError`].
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast::vectors::{inputs, Extent};
/// let codes = inputs(DType::F32, DType::F8E4M3Fn, Extent::Boundary)?;
/// for x in [448f32, 464.0, 464f32.next_up(), f32::INFINITY, -0.0, f32::NAN] {
///     assert!(codes.contains(&x.to_bits().into())); // the largest value, the tie above it, what overflows, specials
/// }
/// assert!(inputs(DType::F32, DType::F16, Extent::Exhaustive).is_err());
/// # Ok::<(), truecast::vectors::VectorError>(())
/// ```
pub fn inputs(src: DType, dst: DType, extent: Extent) -> Result<Vec<u64>, VectorError> {
    inputs_scaled(src, dst, &[0], extent)
}

/// Lists [`inputs`] for casts that scale their sources. The destination's values, midpoints and limits are scaled back
/// by each of these exponents ([`CastPolicy::scale_exponent`]).
///
/// # Errors
/// [`VectorError`].
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast::vectors::{inputs_scaled, Extent};
/// let codes = inputs_scaled(DType::F32, DType::F8E4M3Fn, &[-20], Extent::Boundary)?;
/// assert!(codes.contains(&(464.0 * 1048576f32).to_bits().into())); // the tie above the largest value
/// # Ok::<(), truecast::vectors::VectorError>(())
/// ```
pub fn inputs_scaled(src: DType, dst: DType, scale_exponents: &[i16], extent: Extent) -> Result<Vec<u64>, VectorError> {
    if let Some(dtype) = [src, dst].into_iter().find(|dtype| !dtype.is_numeric()) {
        return Err(VectorError::NoCodes { dtype });
    }
    let bits = src.code_bits();
    if extent == Extent::Exhaustive && bits > MAX_EXHAUSTIVE_BITS {
        return Err(VectorError::TooWide { src });
    }
    if extent == Extent::Exhaustive || bits <= ALWAYS_WHOLE_BITS {
        return Ok((0..1 << bits).collect());
    }
    let marks = marks(dst, EVERY_VALUE_BITS);
    let unscaled = |n: i16| marks.iter().map(move |mark| mark.scaled(-i32::from(n)));
    Ok(listed(src, &scale_exponents.iter().copied().flat_map(unscaled).collect::<Vec<_>>()))
}

/// Lists the vectors of a cast, by ascending unsigned input: the [`inputs_scaled`] of its pair with their results. With
/// a seed, results are rounded by the random bits of the element with the vector's index ([`StochasticCaster`]).
///
/// # Errors
/// [`VectorError`]; [`VectorError::Plan`] for a seed and a pair that random bits cannot round.
///
/// # Examples
/// ```
/// use truecast::vectors::{cast_vectors, Extent};
/// use truecast::{DType, spec::tosa};
/// let spec = tosa::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
/// let vectors = cast_vectors(&spec, Extent::Boundary, None)?;
/// let of = |x: f32| vectors.iter().find(|vector| vector.input == u64::from(x.to_bits())).unwrap();
/// assert_eq!(of(464.0).output, Some(0x7e)); // a tie, to the largest value
/// assert_eq!(of(464f32.next_up()).output, Some(0x7f)); // NaN
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cast_vectors(spec: &CastSpec, extent: Extent, seed: Option<u64>) -> Result<Vec<Vector>, VectorError> {
    if let Some(seed) = seed {
        StochasticCaster::new(spec, seed, &CastOptions::default())?;
    }
    let inputs = inputs_scaled(spec.src, spec.dst, &[spec.policy.scale_exponent], extent)?;
    let vector = |(index, input)| {
        let random = seed.map(|seed| RandomBits::of_element(seed, index));
        let spec = random.map_or(*spec, |random| spec.with_random_bits(input, random));
        let (set, reason) = permitted(&spec, input);
        let accepted = match set {
            Permitted::Codes(codes) => Some(codes),
            _ => None,
        };
        let open = reason.map(|reason| Open { reason, accepted });
        Vector { input, output: cast_one(&spec, input).code(), open, random }
    };
    Ok((0..).zip(inputs).map(vector).collect())
}

/// Lists the specials, and the codes around the marks.
fn listed(src: DType, marks: &[Exact]) -> Vec<u64> {
    let mut codes = specials(src);
    for &mark in marks {
        around(src, mark, &mut codes);
    }
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Lists source codes for a pair, ascending, each once. A source of 8 bits or fewer has all its codes listed; a wider
/// source has at most `most`, but always its ends and specials.
///
/// Order of choice: the ends and specials of the source; the destination's ends, the midpoints beyond them, and values
/// near 1, with both signs; then alternately its powers of two and its values and midpoints, spread evenly, with
/// alternating sign. Each is listed with its neighbors in the source.
///
/// # Errors
/// [`VectorError::NoCodes`].
///
/// # Examples
/// ```
/// use truecast::{DType, vectors::thinned};
/// let codes = thinned(DType::F32, DType::F8E4M3Fn, 200)?;
/// assert!((100..=200).contains(&codes.len()));
/// for x in [448f32, 464.0, 464f32.next_up(), f32::INFINITY, -0.0] {
///     assert!(codes.contains(&x.to_bits().into()), "{x}");
/// }
/// # Ok::<(), truecast::vectors::VectorError>(())
/// ```
pub fn thinned(src: DType, dst: DType, most: usize) -> Result<Vec<u64>, VectorError> {
    if !src.is_numeric() || !dst.is_numeric() || src.code_bits() <= ALWAYS_WHOLE_BITS {
        return inputs(src, dst, Extent::Boundary);
    }
    let mut codes: BTreeSet<u64> = ends(src).into_iter().collect();
    let corners = corners(dst).into_iter().map(|magnitude| Vec::from(both_signs(magnitude)));
    let (powers, others) = (spread(powers(dst)), spread(magnitudes(dst, ALWAYS_WHOLE_BITS)));
    let by_turns = (0..powers.len().max(others.len())).flat_map(|n| {
        let both = [powers.get(n), others.get(n)].into_iter().flatten();
        both.map(move |&magnitude| vec![both_signs(magnitude)[1 - n % 2]])
    });
    for marks in corners.chain(by_turns) {
        let mut more = Vec::new();
        marks.into_iter().for_each(|mark| around(src, mark, &mut more));
        let added = more.into_iter().filter(|code| !codes.contains(code)).collect::<BTreeSet<_>>();
        if codes.len() + added.len() > most {
            break;
        }
        codes.extend(added);
    }
    Ok(codes.into_iter().collect())
}

/// Reorders elements so that any prefix is spread evenly: by bit-reversed index.
fn spread<T: Copy>(all: Vec<T>) -> Vec<T> {
    let bits = usize::BITS - all.len().leading_zeros();
    let reversed = |n: usize| n.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
    (0..1usize << bits).filter_map(|n| all.get(reversed(n)).copied()).collect()
}

/// Lists the ends of a destination's range, and the first values and ties near 1.
fn corners(dst: DType) -> Vec<Magnitude> {
    match dst.kind() {
        Kind::Float(f) => {
            let one = 1u128 << f.man_bits;
            let (quantum, ulp) = (f.smallest(), -i32::from(f.man_bits));
            let mut all = vec![(1, quantum), (1, quantum - 1), (3, quantum - 1), (1, f.emin())];
            if let Exact::Finite { sig, exp, .. } = truecast_core::exact::decode_float(&f, f.max_code()) {
                let sig = u128::from(sig);
                all.extend([(sig, exp), (2 * sig + 1, exp - 1), (sig + 1, exp)]);
            }
            all.extend([(one, ulp), (2 * one + 1, ulp - 1), (2 * one + 3, ulp - 1)]);
            all
        }
        Kind::Int(f) => {
            let (max, min) = (f.max().unsigned_abs(), f.min().unsigned_abs());
            let halves = [1, 2, 3, 5, 2 * max, 2 * max + 1, 2 * max + 2, 2 * min + 1, 2 * min + 2];
            let ends = [1u128 << f.bits, (1 << f.bits) + 1, 1 << 31, 1 << 32, 1 << 63, 1 << 64];
            halves.map(|n| (n, -1)).into_iter().chain(ends.map(|n| (n, 0))).collect()
        }
        _ => magnitudes(dst, ALWAYS_WHOLE_BITS),
    }
}

/// Lists the powers of two in a destination's range, and one power beyond each end.
fn powers(dst: DType) -> Vec<Magnitude> {
    match dst.kind() {
        Kind::Float(f) => (f.smallest() - 1..=f.emax() + 1).map(|exp| (1, exp)).collect(),
        Kind::Int(f) => (-1..=i32::from(f.bits)).map(|exp| (1, exp)).collect(),
        _ => Vec::new(),
    }
}

/// Lists the vectors of RESCALE for one scale, by ascending unsigned input, without the inputs that violate a
/// requirement: such an input makes all results unpredictable. A result is open if INEXACT_ROUND permits several.
///
/// In addition to [`inputs`] for the source: the zero point, the ends of the permitted range, and the inputs at which
/// the result steps to each value of an 8-bit output (for wider ones: to its ends, and to powers of two and their
/// neighbors).
///
/// # Errors
/// [`VectorError::TooWide`].
pub fn rescale_inputs(op: &Rescale, spec: &RescaleSpec, extent: Extent) -> Result<Vec<Vector>, VectorError> {
    let [src, _] = op.types();
    let bits = u32::from(spec.input.bits);
    if extent == Extent::Exhaustive && bits > MAX_EXHAUSTIVE_BITS {
        return Err(VectorError::TooWide { src });
    }
    let codes = if extent == Extent::Exhaustive || bits <= ALWAYS_WHOLE_BITS {
        (0..1 << bits).collect()
    } else {
        decisive(spec)
    };
    let vector = |input: u64| {
        let output = spec.rescale_one(0, input).ok()?.code;
        let interval = match spec.rounding {
            RoundingMode::Inexact => inexact_interval(spec, 0, input, Bound::Released).ok(),
            RoundingMode::Single | RoundingMode::Double => None,
        };
        let several = interval.filter(|(low, high)| low < high);
        let accepted = |(low, high)| (low..=high).map(|v: i64| spec.output.code(v.into())).collect();
        let open = several.map(|interval| Open {
            reason: "INEXACT_ROUND permits an interval; docs/spec/tosa.md §4.6",
            accepted: Some(accepted(interval)),
        });
        Some(Vector { input, output: Some(output), open, random: None })
    };
    Ok(codes.into_iter().filter_map(vector).collect())
}

/// Lists the codes at which the result of RESCALE changes, with their neighbors.
fn decisive(spec: &RescaleSpec) -> Vec<u64> {
    let f = spec.input;
    let (min, max) = (f.min() as i64, f.max() as i64);
    let result = |v: i64| spec.rescale_one(0, f.code(v.into())).ok().map(|one| spec.output.value(one.code));
    // Ends of the range where the requirements hold; the range contains the zero point or is empty.
    let middle = spec.input_zp.clamp(min, max);
    let first = bisect(min, middle, |v| result(v).is_some());
    let last = bisect(middle, max, |v| result(v).is_none()) - result(max).is_none() as i64;
    let mut values = vec![min, min + 1, max - 1, max, first - 1, first, first + 1, last - 1, last, last + 1];
    values.extend([-1, 0, 1].map(|d| middle + d));
    values.extend((0..f.bits).flat_map(|k| [-1, 0, 1].map(|d| (1i64 << k) + d)).flat_map(|v| [v, -v]));
    for step in steps(&spec.output) {
        let at = bisect(first, last, |v| result(v).is_some_and(|r| r >= step));
        values.extend([at - 1, at, at + 1]);
    }
    let mut codes: Vec<u64> =
        values.into_iter().filter(|v| (min..=max).contains(v)).map(|v| f.code(v.into())).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Finds the smallest value in `low..=high` for which a monotone condition holds; `high` if no value satisfies it.
fn bisect(mut low: i64, mut high: i64, holds: impl Fn(i64) -> bool) -> i64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Output values for which [`decisive`] lists the first input with at least this result.
fn steps(f: &IntFormat) -> Vec<i128> {
    if u32::from(f.bits) <= ALWAYS_WHOLE_BITS {
        return (f.min()..=f.max()).collect();
    }
    let powers = (0..f.bits).flat_map(|k| [-1, 0, 1].map(|d| (1i128 << k) + d)).flat_map(|v| [v, -v]);
    powers.chain([f.min(), f.min() + 1, f.max() - 1, f.max()]).filter(|v| (f.min()..=f.max()).contains(v)).collect()
}

/// Adds the two codes below and the two codes above a value to `codes`.
fn around(src: DType, value: Exact, codes: &mut Vec<u64>) {
    for rounding in [Rounding::Down, Rounding::Up] {
        let nearest = CastPolicy {
            to_float: rounding,
            to_int: rounding,
            overflow: Overflow::Saturate,
            int_overflow: IntOverflow::Saturate,
            negative: Unrepresentable::Smallest,
            vanishing: Unrepresentable::Smallest,
            ..CastPolicy::IEEE
        };
        let Some(code) = encode(src, &nearest, value).code else { continue };
        codes.push(code);
        match src.kind() {
            Kind::Float(f) => {
                let (sign, magnitude) = (code & f.sign_bit(), code & f.magnitude_mask());
                codes.extend(magnitude.checked_sub(1).map(|m| sign | m));
                codes.extend(Some(magnitude + 1).filter(|m| *m <= f.magnitude_mask()).map(|m| sign | m));
            }
            Kind::Int(f) => {
                let n = f.value(code);
                codes.extend([n - 1, n + 1].into_iter().filter(|n| (f.min()..=f.max()).contains(n)).map(|n| f.code(n)));
            }
            _ => {}
        }
    }
}

/// Lists the [`ends`] with adjacent codes, and all powers of two; in integer types with adjacent integers.
fn specials(src: DType) -> Vec<u64> {
    let mut all = ends(src);
    match src.kind() {
        Kind::Float(f) => {
            let powers = (0..1u64 << f.exp_bits).map(|field| field << f.man_bits);
            let next =
                [Some(2), Some(f.min_normal_code() + 1), Some(f.max_code() - 1), f.nan_code().map(|nan| nan | 1)];
            let more = powers.chain(next.into_iter().flatten()).filter(|m| *m <= f.magnitude_mask());
            all.extend(more.flat_map(|m| [m, m | f.sign_bit()]));
        }
        Kind::Int(f) => {
            let powers = (0..f.bits as u32).flat_map(|k| [-1, 0, 1].map(|d| (1i128 << k) + d)).flat_map(|n| [n, -n]);
            all.extend(powers.filter(|n| (f.min()..=f.max()).contains(n)).map(|n| f.code(n)));
        }
        _ => {}
    }
    all
}

/// Lists zeros, subnormal and finite ends, infinities, every kind of NaN; the ends of integers.
fn ends(src: DType) -> Vec<u64> {
    match src.kind() {
        Kind::Float(f) => {
            let (normal, max) = (f.min_normal_code(), f.max_code());
            let ends = [0, 1, normal.saturating_sub(1), normal, max, max + 1, max + 2, f.magnitude_mask()];
            let all = ends.into_iter().chain(f.nan_code());
            all.filter(|m| *m <= f.magnitude_mask()).flat_map(|m| [m, m | f.sign_bit()]).collect()
        }
        Kind::Int(f) => {
            let all = [f.min(), f.min() + 1, -1, 0, 1, f.max() - 1, f.max()];
            all.into_iter().filter(|n| (f.min()..=f.max()).contains(n)).map(|n| f.code(n)).collect()
        }
        _ => (0..1 << src.code_bits()).collect(),
    }
}

/// Values at which the result of a conversion to `dst` can change, with both signs: all for types of up to
/// `every_value_bits` bits, a selection for wider ones.
fn marks(dst: DType, every_value_bits: u32) -> Vec<Exact> {
    magnitudes(dst, every_value_bits).into_iter().flat_map(both_signs).collect()
}

fn magnitudes(dst: DType, every_value_bits: u32) -> Vec<Magnitude> {
    match dst.kind() {
        Kind::Float(f) => float_marks(&f, dst.code_bits() <= every_value_bits),
        Kind::Int(f) => int_marks(f, every_value_bits),
        Kind::Fixed(f) => {
            int_marks(f.int, every_value_bits).into_iter().map(|(sig, exp)| (sig, exp - f.frac_bits as i32)).collect()
        }
        Kind::Book(book) => {
            let bits = book.values.iter().chain(&book.thresholds);
            bits.filter_map(|&bits| match decode(DType::F32, bits.into()) {
                Exact::Finite { sig, exp, .. } => Some((sig.into(), exp)),
                _ => None,
            })
            .collect()
        }
        _ => vec![(0, 0), (1, 0)],
    }
}

fn both_signs(magnitude: Magnitude) -> [Exact; 2] {
    let (sig, exp) = magnitude;
    // A sum of two powers of two may exceed 64 bits; no source is near it then.
    let shift = 128 - sig.leading_zeros().min(127) as i32 - 64;
    let shift = shift.max(0);
    [false, true].map(|neg| Exact::Finite { neg, sig: (sig >> shift) as u64, exp: exp + shift, sticky: false })
}

/// Significand and exponent.
type Magnitude = (u128, i32);

/// Lists the values, the midpoints above them, the steps beyond the largest value, and fractions of the smallest value.
fn float_marks(f: &FloatFormat, every_value: bool) -> Vec<Magnitude> {
    let max = f.max_code();
    let codes = if every_value { (0..=max).collect() } else { selected_codes(f) };
    let mut marks = Vec::new();
    for code in codes {
        let Exact::Finite { sig, exp, .. } = truecast_core::exact::decode_float(f, code) else { continue };
        marks.extend([(sig as u128, exp), (2 * sig as u128 + 1, exp - 1)]);
        if code == max {
            marks.extend([(sig as u128 + 1, exp), (2 * sig as u128, exp)]);
        }
    }
    let smallest = f.quantum();
    marks.extend((1..=3).map(|k| (1, smallest - k)));
    marks
}

/// Lists codes of a wide format: seven fractions in every sixteenth binade, in the binades near 1, and in the first and
/// the last three.
fn selected_codes(f: &FloatFormat) -> Vec<u64> {
    let (last, one) = (f.max_code() >> f.man_bits, f.bias as u64);
    let chosen = |field: &u64| field.is_multiple_of(16) || *field < 3 || field + 3 > last || field.abs_diff(one) <= 70;
    let fraction = (1u64 << f.man_bits) - 1;
    let patterns = [0, 1, fraction / 3, fraction / 2, fraction / 2 + 1, fraction - 1, fraction];
    let fields = (0..=last).filter(chosen);
    fields
        .flat_map(|field| patterns.map(|pattern| field << f.man_bits | pattern))
        .filter(|c| *c <= f.max_code())
        .collect()
}

/// Lists integers and the midpoints above them; also integers beyond the range, where results wrap around.
fn int_marks(f: IntFormat, every_value_bits: u32) -> Vec<Magnitude> {
    let bits = f.bits as u32;
    let mut integers: Vec<u128> = if bits <= every_value_bits {
        (0..=(1 << bits) + 2).collect()
    } else {
        (0..=bits).flat_map(|k| [-2i128, -1, 0, 1, 2].map(|d| ((1i128 << k) + d).unsigned_abs())).collect()
    };
    integers.extend((1..=3).map(|k| 1u128 << (bits - 1) << k));
    integers.extend([31, 32, 63, 64, 65, 100, 127].map(|k| 1u128 << k));
    integers.into_iter().flat_map(|n| [(n, 0), (2 * n.min(1 << 100) + 1, -1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_f32(dst: DType, values: &[f32]) {
        let codes = inputs(DType::F32, dst, Extent::Boundary).unwrap();
        assert!(codes.is_sorted_by(|a, b| a < b), "{dst}: ascending, each once");
        for value in values {
            assert!(codes.contains(&value.to_bits().into()), "{value:e} to {dst}");
        }
    }

    /// Thresholds of `docs/spec/onnx.md §2.5` and §4.7, each with its neighbors.
    #[test]
    fn thresholds_are_listed() {
        let near = |x: f32| [x.next_down(), x, x.next_up(), -x, (-x).next_down(), (-x).next_up()];
        let rows: [(DType, &[f32]); 7] = [
            (DType::F16, &[65520.0, 65504.0, 2f32.powi(-25), 2f32.powi(-24), 2f32.powi(-14)]),
            (DType::F8E4M3Fn, &[464.0, 448.0, 2f32.powi(-10), 2f32.powi(-9), 1.0625]),
            (DType::F8E5M2Fnuz, &[61440.0, 57344.0, 2f32.powi(-18)]),
            (DType::F4E2M1, &[0.25, 0.75, 2.5, 5.0, 6.0]),
            (DType::F8E8M0, &[1.5, 2f32.powi(127), 2f32.powi(-127), 1.5 * 2f32.powi(-127)]),
            (DType::I8, &[127.0, 128.0, 128.5, 0.5, 255.0, 256.0, 2147483648.0]),
            (DType::I64, &[2f32.powi(63), 2f32.powi(64), 4503599627370496.0]),
        ];
        for (dst, values) in rows {
            values.iter().for_each(|&x| of_f32(dst, &near(x)));
            of_f32(dst, &[0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN, 1e-45]);
        }
        let integers = inputs(DType::I64, DType::F16, Extent::Boundary).unwrap();
        for n in [65519, 65520, -65520, i64::MAX, i64::MIN, 0, -1, 2049] {
            assert!(integers.contains(&(n as u64)), "{n}");
        }
        let wide = inputs(DType::F64, DType::F32, Extent::Boundary).unwrap();
        for x in [2f64.powi(-150), 2f64.powi(-150).next_up(), 2f64.powi(128) - 2f64.powi(103)] {
            assert!(wide.contains(&x.to_bits()), "{x:e}");
        }
    }

    #[test]
    fn narrow_sources_are_listed_whole() {
        for extent in [Extent::Boundary, Extent::Exhaustive] {
            assert_eq!(inputs(DType::F8E5M2, DType::F64, extent).unwrap().len(), 256);
            assert_eq!(inputs(DType::Bool, DType::F64, extent).unwrap(), [0, 1]);
        }
        assert_eq!(inputs(DType::Bf16, DType::F16, Extent::Exhaustive).unwrap().len(), 65536);
        assert!(inputs(DType::Bf16, DType::F16, Extent::Boundary).unwrap().len() < 65536);
        assert_eq!(inputs(DType::F32, DType::F16, Extent::Exhaustive), Err(VectorError::TooWide { src: DType::F32 }));
        assert!(inputs(DType::String, DType::F16, Extent::Boundary).is_err());
    }

    #[test]
    fn every_pair() {
        for src in DType::ALL {
            for dst in
                [DType::F64, DType::F32, DType::U64, DType::I48, DType::Nf4, DType::MxInt8, DType::Bool, DType::F8E8M0]
            {
                assert_eq!(inputs(src, dst, Extent::Boundary).is_ok(), src.is_numeric(), "{src} to {dst}");
            }
        }
    }
}
