//! Block-scaled casts: `docs/spec/tosa.md §5`.

use crate::number::number;
use crate::page::{hex, table};
use truecast_core::DType::{self, *};
use truecast_core::Kind;
use truecast_core::exact::decode;
use truecast_core::spec::SpecError;
use truecast_core::spec::tosa::block::*;
use truecast_core::spec::tosa::{Feature, Features, Target, Version};

fn to(element: DType, plain: DType) -> BlockCast {
    BlockCast { direction: Direction::ToBlocks, element, plain }
}

fn f32_block(first: f32, others: f32) -> [u64; BLOCK] {
    let mut block = [u64::from(others.to_bits()); BLOCK];
    block[0] = first.to_bits().into();
    block
}

/// §5.7.
#[test]
fn golden_blocks() {
    let rows = table("### 5.7", "| k |");
    let elements = [F4E2M1, F6E2M3, F6E3M2, F8E4M3Fn, F8E5M2, MxInt8];
    for row in &rows[1..] {
        let k: f32 = row[0].to_lowercase().parse().unwrap();
        for (element, cell) in elements.into_iter().zip(&row[1..]) {
            let (scale, first) = cell.split_once(" / ").unwrap();
            let (our_scale, codes) = to(element, F32).to_block(&f32_block(k, if k == 0.0 { 0.0 } else { 0.25 }));
            assert_eq!(u64::from(our_scale), hex(scale), "{k} to {element}");
            if first == "any" {
                let nan = match element {
                    F8E4M3Fn => 0x7f,
                    F8E5M2 => 0x7e,
                    _ => 0,
                };
                assert_eq!(codes, [nan; BLOCK]);
            } else {
                assert_eq!(codes[0], hex(first), "{k} to {element}");
            }
        }
    }
}

fn value(dtype: DType, code: u64) -> f64 {
    number(decode(dtype, code))
}

/// Every finite value of an element type, ascending.
fn values(element: DType) -> Vec<f64> {
    let mut all: Vec<f64> =
        (0..1 << element.code_bits()).map(|c| value(element, c)).filter(|v| v.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The scale is the smallest for which no element overflows. Each code is the one nearest to its quotient. A search in
/// a list of values finds both.
#[test]
fn against_search() {
    let mut state = 7u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    };
    for (element, _) in ELEMENTS {
        let all = values(element);
        let (top, below) = (all[all.len() - 1], all[all.len() - 2]);
        let limit = top + (top - below) / 2.0;
        let ties_down = element == F8E4M3Fn; // 448 is even, the other tops are odd
        for round in 0..400 {
            let exponent = (next() % 200) as i32 - 100;
            let mut xs: Vec<f32> =
                (0..BLOCK).map(|_| (next() as i32 as f32) * 2f32.powi(exponent - (next() % 40) as i32)).collect();
            if round % 4 == 0 {
                xs[5] = (limit * 2f64.powi(exponent / 2)) as f32;
                xs.iter_mut().for_each(|x| *x = x.clamp(-xs_max(limit, exponent / 2), xs_max(limit, exponent / 2)));
            }
            if xs.iter().any(|x| x.is_infinite()) {
                continue;
            }
            let codes: [u64; BLOCK] = std::array::from_fn(|i| xs[i].to_bits().into());
            let a = xs.iter().fold(0f64, |m, x| m.max(f64::from(x.abs())));
            let fits = |k: i32| {
                let bound = limit * 2f64.powi(k);
                a < bound || (ties_down && a == bound)
            };
            let k = (-127..=127).find(|&k| fits(k)).unwrap_or(127);
            let (scale, ours) = to(element, F32).to_block(&codes);
            assert_eq!(exponent_of(scale), if a == 0.0 { -127 } else { k }, "{element}: {a}");
            for (x, code) in xs.iter().zip(ours) {
                let y = f64::from(*x) / 2f64.powi(k);
                let distance = (value(element, code) - y).abs();
                let nearest = all.iter().map(|v| (v - y).abs()).fold(f64::INFINITY, f64::min);
                assert_eq!(distance, nearest, "{element}: {x} at 2^{k} is {code:#x}");
                if all.iter().filter(|v| (**v - y).abs() == nearest).count() == 2 && value(element, code) != 0.0 {
                    assert_eq!(code & 1, 0, "{element}: {y} is a tie");
                }
            }
        }
    }
}

fn xs_max(limit: f64, exponent: i32) -> f32 {
    (limit * 2f64.powi(exponent)) as f32
}

/// §5.2: the largest scale is 2^127. With that scale, only 8-bit fixed point saturates.
#[test]
fn largest_scale() {
    for (element, _) in ELEMENTS {
        let (scale, codes) = to(element, F32).to_block(&f32_block(f32::MAX, -f32::MAX));
        match element {
            MxInt8 => assert_eq!((scale, codes[0], codes[1]), (254, 0x7f, 0x80)),
            _ => {
                assert!(scale < 254, "{element}");
                let Kind::Float(f) = element.kind() else { unreachable!() };
                assert!(codes[0] <= f.max_code(), "{element}");
            }
        }
    }
    let negative_zero = to(F8E5M2, F32).to_block(&f32_block(-0.0, -0.0));
    assert_eq!(negative_zero, (ZERO_SCALE, [0x80; BLOCK]));
}

/// §5.3: products in binary64, which are exact.
#[test]
fn from_blocks() {
    for (element, _) in ELEMENTS {
        for (plain, _) in PLAIN {
            let cast = BlockCast { direction: Direction::FromBlocks, element, plain };
            for scale in [0u8, 1, 60, 110, 126, 127, 128, 135, 200, 254] {
                for code in 0..1 << element.code_bits() {
                    let product = value(element, code) * 2f64.powi(i32::from(scale) - 127);
                    let ours = cast.from_block(scale, code);
                    if plain == F32 {
                        let expected = product as f32;
                        let same = expected.is_nan() && value(F32, ours).is_nan();
                        assert!(
                            same || ours == u64::from(expected.to_bits()),
                            "{element} {code:#x} at {scale}: {ours:#x}"
                        );
                    } else if value(plain, ours).is_finite() {
                        let step = (0..1u64 << plain.code_bits().min(8)).count() as f64;
                        assert!((value(plain, ours) - product).abs() <= product.abs() / 4.0 + 2f64.powi(-10) * step);
                    }
                }
            }
            assert!(value(plain, cast.from_block(NAN_SCALE, 0)).is_nan());
        }
        if element == F8E4M3Fn || element == F8E5M2 {
            let cast = BlockCast { direction: Direction::FromBlocks, element, plain: F32 };
            assert!(value(F32, cast.from_block(127, 0x7f)).is_nan());
        }
    }
}

/// §3.3, §3.4: there are 60 pairs, and each requires its extensions. C1 to C3 apply. Version 1.0 has no pair.
#[test]
fn legality() {
    let all = Target::of(Version::V1_1);
    let mut pairs = 0;
    for element in DType::ALL {
        for plain in DType::ALL {
            for direction in [Direction::ToBlocks, Direction::FromBlocks] {
                let cast = BlockCast { direction, element, plain };
                if cast.check(&[2, 64], &all).is_err() {
                    continue;
                }
                pairs += 1;
                let needs = cast.needs().unwrap();
                assert!(cast.check(&[32], &Target { enabled: needs, ..all }).is_ok());
                for one in needs.iter() {
                    let lacking = Target { enabled: Features::of(Feature::ALL).without(Features::of(&[one])), ..all };
                    let message = cast.check(&[32], &lacking).unwrap_err().to_string();
                    assert!(message.contains(one.name()), "{message}");
                }
                assert!(cast.check(&[32], &Target::of(Version::V1_0)).is_err());
            }
        }
    }
    assert_eq!(pairs, 60);
    let id = |cast: BlockCast, shape: &[u64]| match cast.check(shape, &all) {
        Err(SpecError::Condition { id, .. }) => id,
        other => panic!("{other:?}"),
    };
    assert_eq!(id(to(F4E2M1, F32), &[]), "C1");
    assert_eq!(id(to(F4E2M1, F32), &[32, 33]), "C2");
    assert_eq!(id(to(F4E2M1, I8), &[32]), "C3");
    assert!(matches!(to(I8, F32).check(&[32], &all), Err(SpecError::Type { .. })));
}
