//! Repacked planes equal the definition, for all packings and numbers of rows.

use truecast_core::DType::{self, Bf16, F8E4M3Fn, F8E8M0, F16, F32};
use truecast_core::scaled::{Change, Code, Packing, Part, Plane, Repacking};
use truecast_kernel::scaled::Repacker;
use truecast_kernel::{CastOptions, Level};

fn bytes(n: u64, seed: u64) -> Vec<u8> {
    (0..n).map(|i| ((i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 37) as u8).collect()
}

/// `to` by the definition, and the first entry that `to` cannot hold.
fn defined(how: &Repacking, src: &[u8]) -> (Vec<u8>, Option<[u64; 2]>) {
    let mut made = vec![0; how.to.bytes(how.to_shape).unwrap() as usize];
    let mut wrong = None;
    for at in (0..how.to_shape[0]).flat_map(|row| (0..how.to_shape[1]).map(move |col| [row, col])) {
        let Some(from) = how.source(at) else { continue };
        match how.code(how.from.get(how.from_shape, from, src)) {
            Some(code) => how.to.packing.set(how.to.code.bits(), how.to_shape, at, &mut made, code),
            None => wrong = wrong.or(Some(at)),
        }
    }
    (made, wrong)
}

/// Result, computed in steps of `steps` granules.
fn made(how: &Repacking, level: Level, src: &[u8], steps: u64) -> (Vec<u8>, Option<[u64; 2]>) {
    let repacker = Repacker::new(how, &CastOptions { level, ..CastOptions::default() }).unwrap();
    let (mut all, mut wrong) = (Vec::new(), None);
    let step = repacker.granule() * steps;
    for first in (0..how.to_shape[0]).step_by(step as usize) {
        let rows = first..(first + step).min(how.to_shape[0]);
        let mut read = Vec::new();
        if let Some(of) = repacker.read(Part::Codes, 0, rows.clone()) {
            for piece in 0..of.count {
                read.extend_from_slice(&src[(of.first + piece * of.stride) as usize..][..of.len as usize]);
            }
        }
        let mut dst = vec![0xaa; repacker.bytes(rows.end - rows.start) as usize];
        wrong = wrong.or(repacker.run(rows, &read, &mut dst).unwrap());
        all.extend(dst);
    }
    (all, wrong)
}

fn agree(how: &Repacking) -> bool {
    let (Some(from), Some(_)) = (how.from.bytes(how.from_shape), how.to.bytes(how.to_shape)) else { return false };
    let src = bytes(from, from);
    let (expected, wrong) = defined(how, &src);
    for (level, steps) in Level::available().into_iter().zip([1, 3, 2, 100].into_iter().cycle()) {
        let (found, at) = made(how, level, &src, steps);
        assert_eq!(at, wrong, "{how:?}");
        assert!(wrong.is_some() || found == expected, "{how:?}");
    }
    true
}

#[test]
fn every_packing_and_width() {
    let mut agreed = 0;
    for bits in 1..=8 {
        let code = Code::unsigned(bits);
        for (from, to) in Packing::ALL.iter().flat_map(|from| Packing::ALL.iter().map(move |to| (*from, *to))) {
            for [rows, cols] in [[1, 1], [8, 16], [70, 130], [12, 264], [33, 7]] {
                for transposed in [false, true] {
                    let how = Repacking {
                        from: Plane { code, packing: from },
                        from_shape: if transposed { [cols, rows] } else { [rows, cols] },
                        to: Plane { code, packing: to },
                        to_shape: [rows, cols],
                        kept: [rows, cols],
                        transposed,
                        change: Change::None,
                    };
                    agreed += usize::from(agree(&how));
                }
            }
        }
    }
    assert!(agreed > 1500, "{agreed}");
}

#[test]
fn padding_on_both_sides() {
    let code = Code::unsigned(4);
    for (kept, transposed) in [([20, 24], false), ([20, 24], true), ([3, 0], false), ([32, 20], false)] {
        let mut from_shape = [kept[0] + 12, kept[1] + 9];
        if transposed {
            from_shape.reverse();
        }
        let (from, to) = (Plane { code, packing: Packing::HighFirst }, Plane { code, packing: Packing::WORDS });
        let to_shape = [kept[0] + 40, kept[1] + 3];
        assert!(agree(&Repacking { from, from_shape, to, to_shape, kept, transposed, change: Change::None }));
        let (from, to) = (Plane::of(F8E8M0).packed(Packing::Swizzled), Plane::of(F8E8M0));
        assert!(agree(&Repacking { from, from_shape, to, to_shape, kept, transposed, change: Change::None }));
    }
}

#[test]
fn integers_of_other_ranges() {
    let mut lost = 0;
    let codes = [2, 3, 4, 8].into_iter().flat_map(|bits| [Code::signed(bits), Code::unsigned(bits)]);
    for (from, to) in codes.clone().flat_map(|from| codes.clone().map(move |to| (from, to))) {
        for add in [-128, -8, -1, 0, 8, 120] {
            for plus in [[0, 0], [1, 0], [0, 1]] {
                let [from, to] = [from, to].map(|code| Plane { code, packing: Packing::WORDS });
                let change = Change::Integer { add, plus };
                let shape = [5, 40];
                let how =
                    Repacking { from, from_shape: shape, to, to_shape: shape, kept: shape, transposed: false, change };
                lost += usize::from(defined(&how, &bytes(from.bytes(shape).unwrap(), 0)).1.is_some());
                assert!(agree(&how));
            }
        }
    }
    assert!(lost > 100);
}

/// All 16-bit codes, and f32 codes with the same values. Values do not change; only values that the result lacks are
/// refused.
#[test]
fn floats_of_other_types() {
    let one = |dtype: DType, codes: &[u64]| -> Vec<u8> {
        let size = dtype.storage_bits().unwrap() as usize / 8;
        codes.iter().flat_map(|code| code.to_le_bytes()[..size].to_vec()).collect()
    };
    let all = |dtype: DType| -> Vec<u64> {
        match dtype.storage_bits().unwrap() {
            32 => (0..1 << 16).flat_map(|high| [high << 16, high << 16 | 1, high << 16 | 0x2000]).collect(),
            bits => (0..1 << bits).collect(),
        }
    };
    let types = [F8E4M3Fn, F8E8M0, F16, Bf16, F32];
    for (from, to) in types.iter().flat_map(|from| types.iter().map(move |to| (*from, *to))) {
        let at = |n| Repacking {
            from: Plane::of(from),
            from_shape: [1, n],
            to: Plane::of(to),
            to_shape: [1, n],
            kept: [1, n],
            transposed: false,
            change: Change::Float,
        };
        let of_one = at(1);
        let (good, bad): (Vec<u64>, Vec<u64>) = all(from).into_iter().partition(|code| of_one.code(*code).is_some());
        assert!(good.len() > 10, "{from} {to}");
        let how = at(good.len() as u64);
        let (expected, _) = defined(&how, &one(from, &good));
        for level in Level::available() {
            let (found, wrong) = made(&how, level, &one(from, &good), 1);
            assert_eq!(wrong, None, "{from} {to}");
            // NaN may have a different payload.
            let value = |code: &[u8]| {
                let code = code.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte));
                Code::Float(to).value(code)
            };
            let size = to.storage_bits().unwrap() as usize / 8;
            for (found, expected) in found.chunks(size).zip(expected.chunks(size)) {
                let is_same = found == expected || value(found).cmp_value(value(expected)).is_eq();
                assert!(is_same, "{from} {to} {found:?} {expected:?}");
            }
        }
        for code in bad.iter().step_by(bad.len() / 50 + 1) {
            let codes = [good[0], good[1], *code, good[2], *code];
            assert_eq!(made(&at(5), Level::detect(), &one(from, &codes), 1).1, Some([0, 2]), "{from} {to} {code:#x}");
        }
    }
}
