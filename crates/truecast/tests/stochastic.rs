//! Stochastic rounding of arrays: the same for every split and number of threads, unbiased, and exact where nothing is cut off.

use truecast::spec::ieee::Cast;
use truecast::stochastic::{cast, random_bits};
use truecast::{DType, Elements, ElementsMut, Outcome, cast_one};

/// Weights of many binades.
fn weights(len: usize) -> Vec<f32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..len).map(|i| next() * [0.01, 1.0, 30.0][i % 3]).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn rounded(values: &[f32], to: DType, seed: u64, first: u64) -> Vec<u64> {
    let spec = Cast::to(to).resolve(DType::F32).unwrap();
    let (src, mut dst) =
        (bytes(values), vec![0; to.bytes_in(truecast::Layout::Packed, values.len() as u64).unwrap() as usize]);
    let elements = Elements::new(DType::F32, values.len(), &src).unwrap();
    cast(&spec, elements, ElementsMut::new(to, values.len(), &mut dst).unwrap(), seed, first).unwrap();
    let results = Elements::new(to, values.len(), &dst[..]).unwrap();
    (0..values.len()).map(|i| results.get(i)).collect()
}

#[test]
fn parts_and_threads_change_nothing() {
    let values = weights(200_000);
    for to in [DType::F8E4M3Fn, DType::F4E2M1, DType::I8, DType::Bf16] {
        let whole = rounded(&values, to, 42, 0);
        let parts: Vec<u64> = [0..1, 1..65_537, 65_537..131_070, 131_070..200_000]
            .into_iter()
            .flat_map(|part| rounded(&values[part.clone()], to, 42, part.start as u64))
            .collect();
        assert!(whole == parts, "{to}");
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert!(whole == one.install(|| rounded(&values, to, 42, 0)), "{to}");
        assert!(whole != rounded(&values, to, 43, 0), "{to}: another seed");
        let spec = Cast::to(to).resolve(DType::F32).unwrap();
        for (i, (x, result)) in values.iter().zip(&whole).enumerate().step_by(101) {
            let code = x.to_bits().into();
            let by_definition = cast_one(&spec.with_random_bits(code, random_bits(42, i as u64)), code);
            assert_eq!(by_definition, Outcome::Defined(*result));
        }
    }
}

/// The mean error lies within five standard deviations of 0, for each destination.
#[test]
fn the_mean_error_is_zero() {
    let values = weights(300_000);
    for to in [DType::F8E4M3Fn, DType::F8E5M2, DType::F4E2M1, DType::F6E2M3, DType::Bf16, DType::F16] {
        let back = Cast::to(DType::F64).resolve(to).unwrap();
        let largest = [(DType::F4E2M1, 6.0), (DType::F6E2M3, 7.5)].into_iter().find(|(t, _)| *t == to);
        let errors: Vec<f64> = rounded(&values, to, 7, 0)
            .into_iter()
            .zip(&values)
            .filter(|(_, x)| largest.is_none_or(|(_, largest)| x.abs() <= largest))
            .map(|(code, x)| f64::from_bits(cast_one(&back, code).code().unwrap()) - f64::from(*x))
            .collect();
        let n = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / n;
        let deviation = (errors.iter().map(|e| e * e).sum::<f64>() / n).sqrt() / n.sqrt();
        assert!(mean.abs() <= 5.0 * deviation, "{to}: mean {mean:e}, deviation {deviation:e}");
        assert!(deviation > 0.0, "{to}");
    }
}

#[test]
fn exact_values_stay() {
    let values: Vec<f32> = (-448..=448).step_by(64).map(|x| x as f32).chain([f32::INFINITY, -0.0]).collect();
    for seed in 0..50 {
        let expected =
            [0xfe, 0xfc, 0xfa, 0xf8, 0xf4, 0xf0, 0xe8, 0x00, 0x68, 0x70, 0x74, 0x78, 0x7a, 0x7c, 0x7e, 0x7f, 0x80];
        assert_eq!(rounded(&values, DType::F8E4M3Fn, seed, 0), expected);
    }
}

#[test]
fn what_has_no_last_place_is_refused() {
    let spec = Cast::to(DType::Nf4).resolve(DType::F32).unwrap();
    let (src, mut dst) = (bytes(&[1.0, 2.0]), [0; 1]);
    let elements = Elements::new(DType::F32, 2, &src).unwrap();
    assert!(cast(&spec, elements, ElementsMut::new(DType::Nf4, 2, &mut dst).unwrap(), 0, 0).is_err());
}
