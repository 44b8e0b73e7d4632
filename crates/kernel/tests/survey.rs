//! Surveys of arrays, against every element decoded by the definition.

mod shared;

use shared::{levels, strongest};
use truecast_core::exact::decode;
use truecast_core::{DType, Exact, Kind, Layout};
use truecast_kernel::Elements;
use truecast_kernel::measure::{Extreme, Survey};
use truecast_testkit::elements;
use truecast_testkit::random::Random;

fn numeric() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|t| t.is_numeric())
}

fn buffer(dtype: DType, layout: Layout, elements: &[u64]) -> Vec<u8> {
    elements::packed(dtype.bits_in(layout).unwrap() as usize, elements)
}

/// Finite value, computed by exact powers of two.
fn extreme(dtype: DType, code: u64) -> Option<Extreme> {
    let Exact::Finite { neg, sig, exp, .. } = decode(dtype, code) else { return None };
    if let Kind::Int(_) = dtype.kind() {
        let value = if neg { -(sig as i128) } else { sig as i128 };
        let nearest = value as f64;
        return Some(Extreme { nearest, residual: (value - nearest as i128) as f64 });
    }
    let magnitude = (0..exp.unsigned_abs()).fold(sig as f64, |m, _| if exp < 0 { m / 2.0 } else { m * 2.0 });
    let nearest = if neg && magnitude != 0.0 { -magnitude } else { magnitude };
    Some(Extreme { nearest, residual: 0.0 })
}

fn naive(dtype: DType, elements: &[u64]) -> Survey {
    let mut survey = Survey::default();
    for &element in elements {
        let code = dtype.code_of_storage(element);
        survey.elements += 1;
        match decode(dtype, code) {
            Exact::Nan { .. } => survey.nan += 1,
            Exact::Inf { .. } => survey.inf += 1,
            Exact::Finite { sig: 0, .. } => survey.zero += 1,
            Exact::Finite { sig, .. } => {
                // A subnormal has no hidden bit. E8M0 has no subnormals.
                if let Kind::Float(f) = dtype.kind() {
                    survey.subnormal += (f.has_zero && sig < 1 << f.man_bits) as u64;
                }
            }
        }
        let Some(here) = extreme(dtype, code) else { continue };
        let (low, high) = survey.range.unwrap_or((here, here));
        survey.range = Some((if here < low { here } else { low }, if here > high { here } else { high }));
    }
    survey
}

#[track_caller]
fn check(dtype: DType, layout: Layout, elements: &[u64]) {
    let bytes = buffer(dtype, layout, elements);
    let want = naive(dtype, elements);
    for level in levels() {
        let mut got = Survey::default();
        got.add(Elements::with_layout(dtype, layout, elements.len(), &bytes).unwrap(), level);
        assert_eq!(got, want, "{dtype}, {} elements at {level}", elements.len());
        // Comparisons do not show the sign of zero.
        for end in got.range.iter().flat_map(|(low, high)| [low, high]) {
            assert!(end.nearest != 0.0 || end.nearest.is_sign_positive(), "{dtype}: -0");
        }
    }
}

/// All codes of a narrow type; else codes at boundaries, and random codes.
fn elements(dtype: DType) -> Vec<u64> {
    let bits = dtype.storage_bits().unwrap();
    if bits <= 16 {
        return (0..1 << bits).collect();
    }
    let mask = u64::MAX >> (64 - bits);
    let mut all = vec![0, mask];
    for i in 0..bits {
        for j in 0..=i {
            let (a, b) = (1u64 << i, 1u64 << j);
            all.extend([a | b, a - b, (a | b).wrapping_sub(1), mask ^ a ^ b, mask ^ a, a]);
        }
    }
    let mut random = Random::seeded(bits as u64);
    all.extend((0..5000).map(|_| random.next()));
    all.iter_mut().for_each(|e| *e &= mask);
    all
}

#[test]
fn every_type() {
    for dtype in numeric() {
        check(dtype, Layout::Packed, &elements(dtype));
        if dtype.storage_bits() < Some(8) {
            check(dtype, Layout::Bytes, &elements(dtype));
        }
    }
}

#[test]
fn one_element() {
    for dtype in numeric() {
        elements(dtype).iter().for_each(|&element| check(dtype, Layout::Packed, &[element]));
    }
}

#[test]
fn every_length() {
    let mut random = Random::seeded(7);
    for dtype in numeric() {
        let mask = u64::MAX >> (64 - dtype.storage_bits().unwrap());
        for len in (0..200).chain([4095, 4096, 4097, 3 * 4096 + 17]) {
            // Mostly one value: a missing or repeated element is then visible at either end.
            let elements: Vec<u64> =
                (0..len)
                    .map(|i| {
                        if i == 0 || i + 1 == len || random.next().is_multiple_of(16) {
                            random.next() & mask
                        } else {
                            1
                        }
                    })
                    .collect();
            check(dtype, Layout::Packed, &elements);
        }
    }
}

#[test]
fn parts_add_up() {
    for dtype in numeric() {
        let elements = elements(dtype);
        let whole = naive(dtype, &elements);
        let parts = elements.chunks(elements.len() / 3 / 8 * 8 + 8).map(|part| {
            let mut survey = Survey::default();
            let bytes = buffer(dtype, Layout::Packed, part);
            survey.add(Elements::new(dtype, part.len(), &bytes).unwrap(), strongest());
            survey
        });
        let parts: Vec<Survey> = parts.collect();
        let sum = |parts: &mut dyn Iterator<Item = &Survey>| {
            parts.fold(Survey::default(), |mut all, part| {
                all.merge(part);
                all
            })
        };
        assert_eq!(sum(&mut parts.iter()), whole, "{dtype}");
        assert_eq!(sum(&mut parts.iter().rev()), whole, "{dtype}, backwards");
    }
}
