//! Counts of two arrays against a literal implementation of `docs/spec/checkpoints.md §10`, for values that no
//! conversion gives. `verify counts` checks conversions.

mod shared;

use shared::levels;
use std::num::NonZeroUsize;
use truecast_core::spec::{ieee, onnx};
use truecast_core::{CastSpec, DType, Layout};
use truecast_kernel::measure::{BLOCK, Measure, Sample};
use truecast_kernel::{CastOptions, Caster, Counting, Counts, Elements, ElementsMut};
use truecast_testkit::random::Random;

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

/// Adds the lanes 0+8, 1+9, ..; then +4, +2, +1.
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
            c.measured += 1;
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
                // As text, where two NaN sums are equal.
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

#[test]
fn extreme_values() {
    let tiny = [0.0, -0.0, 5e-324, -1e-323, 1.5e-323, 2e-323, 1e-310, 3e-308, 1e-45, -3e-45, 1e-40];
    let huge = [1e300, -1e300, 1.7e308, 3e38, -3.4e38, 1.0, -1e-30];
    check("tiny", |s| (s.pick(&tiny), s.pick(&tiny)));
    check("huge", |s| (s.pick(&huge), s.pick(&huge)));
    // Subnormals of few units, where a rounded product hides a larger quotient: 5 / 3 - 1 after 33 / 20 - 1.
    let units = |x: u64, y: u64| (f64::from_bits(x), f64::from_bits(y));
    check("units", |s| if s.next() % 500 == 0 { units(3, 5) } else { units(20, 33) });
    check("tiny and huge", |s| if s.next() % 2 == 0 { (s.pick(&tiny), s.pick(&huge)) } else { (s.pick(&huge), 0.0) });
}

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

/// Outside the sample, all counts without errors are taken; inside, all counts. Sources: bits that are often special,
/// and ordinary weights.
#[test]
fn a_sample_leaves_out_errors_only() {
    use DType::{Bf16, F4E2M1, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F16, F32, F64, I8};
    let len = 3 * BLOCK + 777;
    let (mut random, sample) = (Random::seeded(5), Sample::of(2 << 20));
    let exec =
        |level| CastOptions { level, threads: NonZeroUsize::MIN, counting: Counting::Full, ..CastOptions::default() };
    let mut skipped = 0;
    for from in [F32, F16, Bf16, F64, F8E4M3Fn, F8E5M2] {
        let bits: Vec<u8> = (0..len * 8).map(|_| random.next() as u8).collect();
        let size = from.storage_bits().unwrap() as usize / 8;
        let weights: Vec<u8> =
            (0..len).flat_map(|_| (((random.next() % 4001) as f64 - 2000.0) / 6e4).to_le_bytes()).collect();
        let mut ordinary = vec![0; len * size];
        let narrow = ieee::Cast::to(from).resolve(F64).unwrap();
        let (wide, room) =
            (Elements::new(F64, len, &weights).unwrap(), ElementsMut::new(from, len, &mut ordinary).unwrap());
        Caster::new(&narrow, &CastOptions::default()).unwrap().cast(wide, room).unwrap();
        for to in [F32, F16, Bf16, F64, F8E4M3Fn, F8E5M2, F8E4M3Fnuz, I8, F4E2M1] {
            let specs = [onnx::Cast::to(to).resolve(from), ieee::Cast::to(to).resolve(from)];
            let nonsaturating = onnx::Cast { saturate: Some(false), ..onnx::Cast::to(to) }.resolve(from);
            let specs: Vec<CastSpec> = specs.into_iter().flatten().chain(nonsaturating).collect();
            for (spec, src) in specs.iter().flat_map(|spec| [(spec, &bits[..len * size]), (spec, &ordinary)]) {
                for level in levels() {
                    let caster = Caster::new(spec, &exec(level)).unwrap();
                    let mut made = vec![0; to.bytes_in(Layout::Packed, len as u64).unwrap() as usize];
                    let mut counts = |sample| {
                        let x = Elements::new(from, len, src).unwrap();
                        caster.cast_some_measured(x, ElementsMut::new(to, len, &mut made).unwrap(), 0, sample).unwrap()
                    };
                    let (all, some, none) = (counts(Sample::ALL), counts(sample), counts(Sample::NONE));
                    assert_eq!((all.len(), some.len(), none.len()), (4, 4, 4));
                    for (block, all) in all.iter().enumerate() {
                        let said = format!("{from} to {to}, block {block} at {level}: {:?}", spec.policy);
                        assert_eq!(all.measured, all.elements, "{said}");
                        assert_eq!(none[block].unmeasured(), all.unmeasured(), "{said}");
                        assert_eq!(some[block].unmeasured(), all.unmeasured(), "{said}");
                        if sample.takes((block * BLOCK) as u64) {
                            assert_eq!(format!("{:?}", some[block]), format!("{all:?}"), "{said}");
                        }
                        // Kept values are known to be exact.
                        assert!(none[block].measured == 0 || none[block].exact == all.exact, "{said}");
                        skipped += u64::from(none[block].noise == 0.0 && all.noise > 0.0);
                    }
                }
            }
        }
    }
    assert!(skipped > 100, "{skipped}");
}
