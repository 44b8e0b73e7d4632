//! Rules for values from `docs/spec/openvino.md §6`, as literal rows. Also the witnesses of §9.
#![allow(clippy::excessive_precision)] // neighbors of a limit are written with all their digits

use truecast_core::DType::{self, *};
use truecast_core::spec::SpecError;
use truecast_core::spec::openvino::differences::{DIFFERENCES, Given, Implementation, WITNESSES, known};
use truecast_core::spec::openvino::{Convert, TYPES, version};
use truecast_core::{Outcome, cast_one, exact};

/// Code, and whether the result is undefined.
fn convert(src: DType, dst: DType, code: u64) -> (u64, bool) {
    match cast_one(&Convert::to(dst).resolve(src).unwrap(), code) {
        Outcome::Defined(code) => (code, false),
        Outcome::Undefined { code, reason } => {
            assert!(reason.ends_with("§6.9"));
            (code, true)
        }
        Outcome::Refused { .. } => panic!("nothing is refused"),
    }
}

fn of_f64(value: f64, dst: DType) -> (u64, bool) {
    convert(F64, dst, value.to_bits())
}

/// §6.2: exactly the pairs of the 24 types.
#[test]
fn pairs() {
    for src in DType::ALL {
        for dst in DType::ALL {
            let result = Convert::to(dst).resolve(src);
            match TYPES.contains(&src) && TYPES.contains(&dst) {
                true => assert_eq!(result.map(|s| (s.src, s.dst)), Ok((src, dst))),
                false => assert!(matches!(result, Err(SpecError::Type { .. })), "{src} to {dst}"),
            }
        }
    }
    assert_eq!(TYPES.len(), 24);
    assert_eq!((version(None), version(Some("2026.4"))), (Ok(()), Ok(())));
    assert!(matches!(version(Some("2025.1")), Err(SpecError::Version { .. })));
}

/// §6.2 step 3: a type converted to itself keeps its bits, also the bits of NaN payloads.
#[test]
fn same_type() {
    for dtype in TYPES {
        let bits = dtype.code_bits();
        let codes: Vec<u64> = match bits {
            ..=16 => (0..1 << bits).collect(),
            _ => [0, 1, 0x7f80_0001, 0xffc0_0123, 0x7ff0_0000_0000_0001, 0x8000_0000].into_iter().collect(),
        };
        for code in codes {
            let code = code & (u64::MAX >> (64 - bits));
            assert_eq!(convert(dtype, dtype, code), (code, false), "{dtype} {code:#x}");
        }
    }
}

/// §6.3.
#[test]
fn boolean() {
    for (src, code, expected) in [
        (F32, 0, 0),
        (F32, 0x8000_0000, 0),
        (F32, 1, 1),
        (F32, 0x7fc0_0000, 1),
        (F32, 0xff80_0000, 1),
        (F64, 1, 1),
        (F8E8M0, 0, 1),
        (I8, 0, 0),
        (I8, 0x80, 1),
        (Nf4, 7, 0),
        (Nf4, 0, 1),
        (F4E2M1, 8, 0),
        (F8E4M3Fn, 0x7f, 1),
    ] {
        assert_eq!(convert(src, Bool, code), (expected, false), "{src} {code:#x}");
    }
    for dst in TYPES.into_iter().filter(|t| !matches!(t, F8E8M0)) {
        let one = exact::decode(dst, convert(Bool, dst, Bool.code_of_storage(0xff)).0);
        assert_eq!(one, exact::decode(dst, convert(U8, dst, 1).0), "{dst}");
    }
    assert_eq!(convert(Bool, F8E8M0, 0), (0, true)); // zero has no code
}

/// §6.4: the low bits, always defined.
#[test]
fn integers() {
    for (src, code, dst, expected) in [
        (U64, (1 << 63) + 5, I32, 5),
        (I32, 0xffff_ffff, U3, 7),
        (I32, 0xffff_ffff, U6, 63),
        (U8, 2, U1, 0),
        (U8, 3, U1, 1),
        (I8, 0x80, U64, 0xffff_ffff_ffff_ff80),
        (U16, 0xfffe, I4, 0xe),
        (U2, 3, I8, 3),
    ] {
        assert_eq!(convert(src, dst, code), (expected, false), "{src} {code:#x} to {dst}");
    }
}

/// §6.5, with undefined results. The last sentence of §6.5 covers values beyond 2^64.
#[test]
fn floats_to_integers() {
    let two = |e: i32| 2f64.powi(e);
    for (value, dst, expected, open) in [
        (300.7, U8, 44, true),
        (-1.5, U8, 255, true),
        (40000.0, I16, 25536u64.wrapping_neg() & 0xffff, true),
        (3e9, I32, 0xb2d0_5e00, true),
        (5e9, U32, 705_032_704, true),
        (-0.9, U8, 0, false),
        (255.9, U8, 255, false),
        (-128.9, I8, 0x80, false),
        (-129.0, I8, 0x7f, true),
        (f64::NAN, I32, 0, true),
        (f64::INFINITY, U64, 0, true),
        (f64::NEG_INFINITY, I4, 0, true),
        (two(64) + two(12), U64, 4096, true),
        (two(64) + two(12), U8, 0, true),
        (f64::MAX, I64, 0, true),
        (two(115), U64, 0, true),
        (-(two(63)), I64, 1 << 63, false),
        (7.0, U3, 7, false),
        (8.0, U3, 0, true),
        (63.5, U6, 63, false),
        (1.5, U1, 1, false),
        (2.0, U1, 0, true),
    ] {
        assert_eq!(of_f64(value, dst), (expected, open), "{value} to {dst}");
    }
    let wrapped = -8446744093203103744i64 as u64; // the page's example
    assert_eq!(convert(F32, I64, 1e19f32.to_bits().into()), (wrapped, true));
    for (src, code, dst, expected, open) in [
        (Nf4, 0, U8, 255, true),
        (Nf4, 15, U8, 1, false),
        (F4E2M1, 0xf, U4, 10, true),
        (F4E2M1, 7, I4, 6, false),
        (F8E8M0, 0xff, I8, 0, true),
        (F8E8M0, 127 + 8, U8, 0, true),
        (F8E8M0, 127 + 7, U8, 128, false),
        (F8E8M0, 0, I32, 0, false),
    ] {
        assert_eq!(convert(src, dst, code), (expected, open), "{src} {code:#x} to {dst}");
    }
}

/// §6.6: thresholds of overflow and underflow, and the table of the section.
#[test]
fn to_ordinary_floats() {
    let two = |e: i32| 2f64.powi(e);
    // destination, overflow threshold, whether the threshold overflows, result, largest finite, underflow limit
    for (dst, threshold, at_threshold, beyond, largest, vanishes) in [
        (F8E4M3Fn, 464.0, false, 0x7f, 0x7e, two(-10)),
        (F8E5M2, 61440.0, true, 0x7c, 0x7b, two(-17)),
        (F16, 65520.0, true, 0x7c00, 0x7bff, two(-25)),
        (Bf16, (2.0 - two(-8)) * two(127), true, 0x7f80, 0x7f7f, two(-134)),
        (F32, (2.0 - two(-24)) * two(127), true, 0x7f80_0000, 0x7f7f_ffff, two(-150)),
    ] {
        let sign = 1u64 << (dst.code_bits() - 1);
        for (value, expected) in [
            (threshold, if at_threshold { beyond } else { largest }),
            (threshold.next_down(), largest),
            (threshold.next_up(), beyond),
            (f64::INFINITY, beyond),
            (vanishes, 0),
            (vanishes.next_up(), 1),
            (0.0, 0),
        ] {
            assert_eq!(of_f64(value, dst), (expected, false), "{value:e} to {dst}");
            assert_eq!(of_f64(-value, dst), (expected | sign, false), "-{value:e} to {dst}");
        }
    }
    // NaN: sign, leading payload bits, quiet bit.
    for (src, code, dst, expected) in [
        (F32, 0x7f80_0001, F16, 0x7e00),
        (F32, 0xff80_2000, F16, 0xfe01),
        (F32, 0x7fff_ffff, Bf16, 0x7fff),
        (F16, 0x7c01, F32, 0x7fc0_2000),
        (F32, 0xffc0_0000, F8E4M3Fn, 0xff),
        (F8E4M3Fn, 0xff, F32, 0xffc0_0000),
        (F8E4M3Fn, 0x7f, F8E5M2, 0x7e),
        (F8E8M0, 0xff, Bf16, 0x7fc0),
        (F8E8M0, 0xff, F16, 0x7e00),
    ] {
        assert_eq!(convert(src, dst, code), (expected, false), "{src} {code:#x} to {dst}");
    }
}

/// §6.7.
#[test]
fn to_e8m0() {
    let two = |e: i32| 2f64.powi(e);
    for (value, expected, open) in [
        (f64::NAN, 0xff, false),
        (-f64::NAN, 0xff, false),
        (0.0, 0, true),
        (-0.0, 0, true),
        (-1.0, 0, true),
        (f64::NEG_INFINITY, 0, true),
        (f64::INFINITY, 0xfe, false),
        (two(127), 0xfe, false),
        (two(128), 0xfe, false),
        (1.9 * two(127), 0xfe, false),
        (two(-127), 0, false),
        (two(-130), 0, false),
        (1.5, 0x80, false),
        (3.0, 0x80, false),
        (1.5 * two(-127), 0, false),
        (1.51 * two(-127), 1, false),
        (1.49, 0x7f, false),
        (2.99, 0x80, false),
        (3.01, 0x81, false),
        (1.0, 0x7f, false),
    ] {
        assert_eq!(of_f64(value, F8E8M0), (expected, open), "{value:e}");
    }
}

/// §6.8, with steps around each threshold; nf4 thresholds from §1.3.
#[test]
fn to_f4_and_nf4() {
    for (value, expected) in [
        (0.25, 0.0),
        (0.25f64.next_up(), 0.5),
        (0.75f64.next_down(), 0.5),
        (0.75, 1.0),
        (1.25, 1.0),
        (1.25f64.next_up(), 1.5),
        (1.75f64.next_down(), 1.5),
        (1.75, 2.0),
        (2.5, 2.0),
        (2.5f64.next_up(), 3.0),
        (3.5f64.next_down(), 3.0),
        (3.5, 4.0),
        (5.0, 4.0),
        (5.0f64.next_up(), 6.0),
        (1e300, 6.0),
        (f64::INFINITY, 6.0),
    ] {
        let code = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0].iter().position(|v| *v == expected).unwrap() as u64;
        assert_eq!(of_f64(value, F4E2M1), (code, false), "{value}");
        assert_eq!(of_f64(-value, F4E2M1), (code | 8, false), "-{value}");
    }
    assert_eq!((of_f64(f64::NAN, F4E2M1), of_f64(-f64::NAN, F4E2M1)), ((7, true), (15, true)));

    let page = include_str!("../../../docs/spec/openvino.md");
    let rows = page.split("| code | decode").nth(1).unwrap().lines().skip(2).take(16);
    for (code, row) in rows.enumerate() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let decoded = u32::from_str_radix(cells[2], 16).unwrap();
        assert_eq!(convert(Nf4, F32, code as u64), (decoded.into(), false));
        if let Ok(threshold) = u32::from_str_radix(cells[4], 16) {
            let threshold = f64::from(f32::from_bits(threshold));
            assert_eq!(of_f64(threshold, Nf4), (code as u64, false));
            assert_eq!(of_f64(threshold.next_up(), Nf4), (code as u64 + 1, false));
        }
    }
    for (value, expected, open) in [
        (f64::NAN, 0, true),
        (-f64::NAN, 0, true),
        (f64::INFINITY, 15, false),
        (f64::NEG_INFINITY, 0, false),
        (0.0, 7, false),
        (-0.0, 7, false),
    ] {
        assert_eq!(of_f64(value, Nf4), (expected, open), "{value}");
    }
}

/// §9: the rules give the exact column, other columns differ, and each difference is described.
#[test]
fn witnesses() {
    for w in WITNESSES {
        let result = convert(w.src, w.dst, w.src.code_of_storage(w.input)).0;
        assert_eq!(result, w.exact, "{} {:#x} to {}", w.src, w.input, w.dst);
        assert!((w.reference, w.cpu) != (Given::Exact, Given::Exact));
        for by in [Implementation::Reference, Implementation::CpuPlugin] {
            assert_ne!(w.given(by), Given::Code(w.exact));
            if w.given(by) != Given::Exact {
                let described = known(w.src, w.dst).any(|d| d.implementation == by);
                assert!(described, "{} to {}: {}", w.src, w.dst, by.name());
            }
        }
    }
    let page = include_str!("../../../docs/spec/openvino.md");
    let table = page.split("\n## 9. ").nth(1).unwrap().split("\n## 10").next().unwrap();
    assert_eq!(WITNESSES.len(), table.lines().filter(|l| l.contains("**")).count());
    for d in DIFFERENCES {
        assert!(d.src.iter().chain(d.dst).all(|t| TYPES.contains(t)));
        assert!(page.contains(&format!("**{}**", d.clause.rsplit(' ').next().unwrap())) || d.clause.ends_with("§8.2"));
    }
}
