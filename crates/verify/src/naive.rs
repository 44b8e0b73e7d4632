//! Counts of a conversion, element by element, by `docs/spec/checkpoints.md §10`. Values and comparisons are exact, and
//! each error is rounded once.
//!
//! A value is out of range if the definition refuses it under the same policy with errors instead of limits.

use crate::buffers::Source;
use crate::check::Wanted;
use crate::number::{Number, Value};
use crate::session::Session;
use truecast_core::policy::{Condition, IntOverflow, Overflow};
use truecast_core::{CastPolicy, CastSpec, DType, Kind, Outcome};
use truecast_kernel::Counts;

/// Relative tolerance for the error of 64-bit integers. The specification fixes the order of sums, but not the rounding
/// of a difference whose operands are not f64 values.
const APART: f64 = 1e-14;

const CHUNK: usize = 65_536;

/// Expected counts of a conversion of `src` into `wanted`.
pub fn counts(session: &Session, spec: &CastSpec, src: &Source, wanted: &Wanted) -> Counts {
    let mut total = Counts::default();
    for (first, (src, dst)) in src.elements.chunks(CHUNK).zip(wanted.elements.chunks(CHUNK)).enumerate() {
        let sums = Sums::default();
        let sums = src.iter().zip(dst).enumerate().fold(sums, |mut sums, (i, (&src, &dst))| {
            count_element(session, spec, (first * CHUNK + i) as u64, src, dst, &mut total, &mut sums);
            sums
        });
        total.noise += tree(sums.noise);
        total.signal += tree(sums.signal);
        total.image += tree(sums.image);
        total.product += tree(sums.product);
    }
    total
}

/// Sums of a chunk, one per index modulo 16.
#[derive(Default)]
struct Sums {
    noise: [f64; 16],
    signal: [f64; 16],
    image: [f64; 16],
    product: [f64; 16],
}

/// Adds lanes 0 + 8, 1 + 9, .. in pairs, then at distances 4, 2 and 1.
fn tree(lanes: [f64; 16]) -> f64 {
    let eight: [f64; 8] = std::array::from_fn(|i| lanes[i] + lanes[i + 8]);
    let four: [f64; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

fn count_element(s: &Session, spec: &CastSpec, index: u64, src: u64, dst: u64, total: &mut Counts, sums: &mut Sums) {
    let code = spec.src.code_of_storage(src);
    let (x, y) = (source_value(s, spec, src), Value::decode(spec.dst, dst));
    let infinite = |v: Value| matches!(v, Value::Inf { .. });
    let is_zero = |v: Value| matches!(v, Value::Finite(n) if n.is_zero());
    let mut count = |holds: bool, field: fn(&mut Counts) -> &mut u64| *field(total) += holds as u64;

    let beyond = is_beyond(s, spec, code);
    let wraps = is_integer(spec.dst) && spec.policy.int_overflow == IntOverflow::Wrap;
    let open = matches!((s.definition)(spec, code), Outcome::Undefined { .. });
    // The sign of a zero is lost if the signs of x and y differ.
    let sign_lost = is_zero(y) && x.is_negative().is_some_and(|neg| Some(neg) != y.is_negative());

    count(true, |c| &mut c.elements);
    count(true, |c| &mut c.measured);
    count(x == y, |c| &mut c.exact);
    count(x != y, |c| &mut c.inexact);
    count(beyond && !wraps && is_at_an_end(s, spec, dst), |c| &mut c.saturated);
    count(beyond && wraps, |c| &mut c.wrapped);
    count(infinite(y) && x.number().is_some(), |c| &mut c.to_inf);
    count(y == Value::Nan && x != Value::Nan, |c| &mut c.to_nan);
    count(x == Value::Nan, |c| &mut c.nan_in);
    count(infinite(x), |c| &mut c.inf_in);
    count(is_zero(x), |c| &mut c.zero_in);
    count(y == Value::Nan, |c| &mut c.nan_out);
    count(infinite(y), |c| &mut c.inf_out);
    count(is_zero(y) && !is_zero(x) && x != Value::Nan, |c| &mut c.flushed_to_zero);
    count(is_subnormal(spec.dst, dst), |c| &mut c.subnormal);
    count(sign_lost, |c| &mut c.sign_of_zero_lost);
    count(open, |c| &mut c.undefined);

    let (Value::Finite(x), Value::Finite(y)) = (x, y) else { return };
    total.finite_pairs += 1;
    errors(index, x, y, total, sums);
}

/// Value before rounding, scaled if the policy scales.
fn source_value(session: &Session, spec: &CastSpec, src: u64) -> Value {
    if spec.policy.scale_exponent == 0 {
        return Value::decode(spec.src, src);
    }
    let scaled = spec.scaled_value();
    let code = (session.definition)(&scaled, spec.src.code_of_storage(src)).code();
    Value::decode(scaled.dst, code.expect("this policy refuses nothing"))
}

fn errors(index: u64, x: Number, y: Number, total: &mut Counts, sums: &mut Sums) {
    let error = y.minus(x);
    if error.abs() > total.max_abs_error {
        total.max_abs_error = error.abs();
        total.index_max_abs = index;
    }
    let (x, y) = (x.to_f64(), y.to_f64());
    if x != 0.0 {
        total.max_rel_error = total.max_rel_error.max(error.abs() / x.abs());
    }
    let lane = (index % 16) as usize;
    sums.noise[lane] += error * error;
    sums.signal[lane] += x * x;
    sums.image[lane] += y * y;
    sums.product[lane] += x * y;
}

fn is_integer(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Int(_))
}

/// True if the value, rounded with unlimited range, exceeds the largest finite value. Also true for infinities.
fn is_beyond(session: &Session, spec: &CastSpec, code: u64) -> bool {
    let strict =
        CastPolicy { overflow: Overflow::Error, inf: Overflow::Error, int_overflow: IntOverflow::Error, ..spec.policy };
    let outcome = (session.definition)(&CastSpec { policy: strict, ..*spec }, code);
    matches!(outcome, Outcome::Refused { condition: Condition::Overflow | Condition::Infinite })
}

/// True if the result is the largest or smallest value and did not wrap.
fn is_at_an_end(session: &Session, spec: &CastSpec, element: u64) -> bool {
    match spec.policy.int_overflow {
        IntOverflow::SaturateToF32 if is_integer(spec.dst) => {
            [f64::INFINITY, f64::NEG_INFINITY].into_iter().any(|end| {
                let from_f64 = CastSpec { src: DType::F64, ..*spec };
                (session.definition)(&from_f64, end.to_bits()).code() == Some(spec.dst.code_of_storage(element))
            })
        }
        _ => is_largest(spec.dst, element),
    }
}

/// True for plus or minus the largest finite value; for integers, for the ends of the range.
fn is_largest(dtype: DType, element: u64) -> bool {
    let code = dtype.code_of_storage(element);
    match dtype.kind() {
        Kind::Float(f) => code & f.magnitude_mask() == f.max_code(),
        Kind::Int(f) => [f.min(), f.max()].contains(&f.value(code)),
        Kind::Fixed(f) => [f.int.min(), f.int.max()].contains(&f.int.value(code)),
        Kind::Book(book) => [0, book.values.len() as u64 - 1].contains(&code),
        Kind::Bool | Kind::Complex(_) | Kind::String => false,
    }
}

/// True for an exponent field of zero and a nonzero fraction, in a format with subnormals.
fn is_subnormal(dtype: DType, element: u64) -> bool {
    match dtype.kind() {
        Kind::Float(f) if f.has_zero => {
            let magnitude = dtype.code_of_storage(element) & f.magnitude_mask();
            magnitude != 0 && magnitude >> f.man_bits == 0
        }
        _ => false,
    }
}

/// Fields in which two counts differ, with both values. Sums are compared bit for bit.
pub fn differences(got: &Counts, want: &Counts) -> Vec<(String, String)> {
    let mut all = Vec::new();
    macro_rules! fields {
        ($compare:expr, $($name:ident)*) => {
            $(if $compare(got.$name) != $compare(want.$name) {
                let name = stringify!($name);
                all.push((format!("{name} {:?}", got.$name), format!("{:?}", want.$name)));
            })*
        };
    }
    fields!(|n: u64| n, elements exact inexact saturated wrapped to_inf to_nan nan_in inf_in zero_in nan_out inf_out
        flushed_to_zero subnormal sign_of_zero_lost undefined index_max_abs finite_pairs measured);
    fields!(|v: f64| v.to_bits(), max_abs_error max_rel_error noise signal image product);
    all
}

/// Expected counts. Counts of which several values are right are replaced by the actual counts. Errors of 64-bit
/// integers have a tolerance. The index may be of any element with nearly the largest error.
pub fn expected(spec: &CastSpec, src: &Source, wanted: &Wanted, got: &Counts, want: Counts) -> Counts {
    let is_wide = |dtype: DType| matches!(dtype, DType::I64 | DType::U64);
    if !is_wide(spec.src) && !is_wide(spec.dst) {
        return want;
    }
    let close = |got: f64, want: f64| (got - want).abs() <= APART * want.abs();
    let or = |got: f64, want: f64| if close(got, want) { got } else { want };
    let error_at = |i: usize| {
        let (x, y) =
            (Value::decode(spec.src, *src.elements.get(i)?), Value::decode(spec.dst, *wanted.elements.get(i)?));
        Some(y.number()?.minus(x.number()?).abs())
    };
    let reaches = error_at(got.index_max_abs as usize).is_some_and(|error| close(error, want.max_abs_error));
    Counts {
        max_abs_error: or(got.max_abs_error, want.max_abs_error),
        max_rel_error: or(got.max_rel_error, want.max_rel_error),
        noise: or(got.noise, want.noise),
        index_max_abs: if reaches { got.index_max_abs } else { want.index_max_abs },
        ..want
    }
}
