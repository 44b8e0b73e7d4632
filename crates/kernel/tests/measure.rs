//! What is counted of two arrays, against the definitions of `docs/spec/checkpoints.md §10` read one element at a time.
//! Conversions are checked so by `verify counts`; here are values that none of them gives.

mod shared;

use shared::levels;
use std::num::NonZeroUsize;
use truecast_core::DType;
use truecast_kernel::measure::Measure;
use truecast_kernel::{CastOptions, Counting, Counts, Elements};
use truecast_testkit::random::Random;

/// The numbers of an array of f32 or f64, and its bytes.
fn array(dtype: DType, values: &[f64]) -> (Vec<f64>, Vec<u8>) {
    match dtype {
        DType::F32 => {
            let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            (values.iter().map(|&v| v as f64).collect(), values.iter().flat_map(|v| v.to_le_bytes()).collect())
        }
        _ => (values.to_vec(), values.iter().flat_map(|v| v.to_le_bytes()).collect()),
    }
}

fn min_normal(dtype: DType) -> f64 {
    if dtype == DType::F32 { f32::MIN_POSITIVE as f64 } else { f64::MIN_POSITIVE }
}

/// Lanes are added 0+8, 1+9, ..; then +4, +2, +1.
fn tree(lanes: &[f64]) -> f64 {
    match lanes {
        [one] => *one,
        _ => {
            let (low, high) = lanes.split_at(lanes.len() / 2);
            tree(&low.iter().zip(high).map(|(a, b)| a + b).collect::<Vec<f64>>())
        }
    }
}

fn naive(xs: &[f64], ys: &[f64], min_normal: f64) -> Counts {
    let mut c = Counts::default();
    for (chunk, (x_chunk, y_chunk)) in xs.chunks(65_536).zip(ys.chunks(65_536)).enumerate() {
        let [mut noise, mut signal, mut image, mut product] = [[0f64; 16]; 4];
        for (i, (&x, &y)) in x_chunk.iter().zip(y_chunk).enumerate() {
            let exact = x == y || (x.is_nan() && y.is_nan());
            c.elements += 1;
            c.exact += exact as u64;
            c.inexact += !exact as u64;
            c.to_inf += (x.is_finite() && y.is_infinite()) as u64;
            c.to_nan += (!x.is_nan() && y.is_nan()) as u64;
            c.nan_in += x.is_nan() as u64;
            c.inf_in += x.is_infinite() as u64;
            c.zero_in += (x == 0.0) as u64;
            c.nan_out += y.is_nan() as u64;
            c.inf_out += y.is_infinite() as u64;
            c.flushed_to_zero += (!x.is_nan() && x != 0.0 && y == 0.0) as u64;
            c.subnormal += (y != 0.0 && y.abs() < min_normal) as u64;
            c.sign_of_zero_lost += (!x.is_nan() && y == 0.0 && x.is_sign_negative() != y.is_sign_negative()) as u64;
            if !x.is_finite() || !y.is_finite() {
                continue;
            }
            let error = y - x;
            c.finite_pairs += 1;
            if error.abs() > c.max_abs_error {
                (c.max_abs_error, c.index_max_abs) = (error.abs(), (chunk * 65_536 + i) as u64);
            }
            if x != 0.0 {
                c.max_rel_error = c.max_rel_error.max(error.abs() / x.abs());
            }
            noise[i % 16] += error * error;
            signal[i % 16] += x * x;
            image[i % 16] += y * y;
            product[i % 16] += x * y;
        }
        c.noise += tree(&noise);
        c.signal += tree(&signal);
        c.image += tree(&image);
        c.product += tree(&product);
    }
    c
}

/// Compares at every level and length the arrays that `pair` gives.
fn check(name: &str, mut pair: impl FnMut(&mut Random) -> (f64, f64)) {
    let mut random = Random::seeded(name.len() as u64);
    for (x_type, y_type) in [DType::F32, DType::F64].into_iter().flat_map(|x| [(x, DType::F32), (x, DType::F64)]) {
        for len in [1, 15, 16, 17, 2048, 2049, 5000, 2 * 65_536 + 2048 + 37] {
            let (x, y): (Vec<f64>, Vec<f64>) = (0..len).map(|_| pair(&mut random)).unzip();
            let ((x, x_bytes), (y, y_bytes)) = (array(x_type, &x), array(y_type, &y));
            let want = naive(&x, &y, min_normal(y_type));
            for level in levels() {
                let exec = CastOptions {
                    level,
                    threads: NonZeroUsize::MIN,
                    counting: Counting::Full,
                    stream_above_bytes: None,
                };
                let codes = |dtype, bytes| Elements::new(dtype, len, bytes).unwrap();
                let parts =
                    Measure::between(x_type, y_type, &exec).compare(codes(x_type, &x_bytes), codes(y_type, &y_bytes));
                let mut got = Counts::default();
                parts.iter().for_each(|part| got.add(part));
                // As text, in which a sum that is NaN equals another.
                let (got, want) = (format!("{got:?}"), format!("{want:?}"));
                assert_eq!(got, want, "{name}: {x_type} and {y_type}, {len} elements at {level}");
            }
        }
    }
}

#[test]
fn ordinary_values() {
    check("near", |s| {
        let x = (s.next() % 2_000_001) as f64 / 1e6 - 1.0;
        (x, x * (1.0 + (s.next() % 1001) as f64 / 1e5))
    });
    check("equal", |s| {
        let x = (s.next() % 2_000_001) as f64 / 1e6 - 1.0;
        (x, x)
    });
    check("few values", |s| (s.pick(&[0.5, -0.75, 1.0, 3.0]), s.pick(&[0.5, -0.75, 1.0, 0.0, -0.0])));
}

/// Squares that overflow or vanish, quotients of subnormals, errors that no f32 holds.
#[test]
fn extreme_values() {
    let tiny = [0.0, -0.0, 5e-324, -1e-323, 1.5e-323, 2e-323, 1e-310, 3e-308, 1e-45, -3e-45, 1e-40];
    let huge = [1e300, -1e300, 1.7e308, 3e38, -3.4e38, 1.0, -1e-30];
    check("tiny", |s| (s.pick(&tiny), s.pick(&tiny)));
    check("huge", |s| (s.pick(&huge), s.pick(&huge)));
    // Of so few units that a rounded product hides a larger quotient: 5 / 3 - 1 after 33 / 20 - 1.
    let units = |x: u64, y: u64| (f64::from_bits(x), f64::from_bits(y));
    check("units", |s| if s.next() % 500 == 0 { units(3, 5) } else { units(20, 33) });
    check("tiny and huge", |s| if s.next() % 2 == 0 { (s.pick(&tiny), s.pick(&huge)) } else { (s.pick(&huge), 0.0) });
}

/// One value in a thousand, or every second one, is not finite.
#[test]
fn special_values() {
    let special = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    for rarely in [1000, 2] {
        check("special", |s| {
            let one = |s: &mut Random| match s.next() % rarely {
                0 => s.pick(&special),
                _ => s.pick(&[1.0, -2.0, 0.0, -0.0, 1e-40, 0.1]),
            };
            (one(s), one(s))
        });
    }
}

/// An array and itself: there is nothing to tell apart, but for what is not a number.
#[test]
fn the_same_array() {
    let mut random = Random::seeded(1);
    let values: Vec<f64> =
        (0..70_000).map(|_| random.pick(&[1.0, -0.0, 0.0, 1e-40, f64::NAN, f64::INFINITY])).collect();
    for dtype in [DType::F32, DType::F64] {
        let (numbers, bytes) = array(dtype, &values);
        let codes = Elements::new(dtype, values.len(), &bytes).unwrap();
        for level in levels() {
            let exec =
                CastOptions { level, threads: NonZeroUsize::MIN, counting: Counting::Full, stream_above_bytes: None };
            let mut got = Counts::default();
            Measure::between(dtype, dtype, &exec).compare(codes, codes).iter().for_each(|part| got.add(part));
            assert_eq!(got, naive(&numbers, &numbers, min_normal(dtype)), "{dtype} at {level}");
        }
    }
}
