//! Every pair, policy and level against the definition. Obligations 1, 2, 4, 9 and 11 of `docs/kernels.md §11`; the
//! long sweeps are in `verify`.
//! Sources: all codes of narrow types; boundaries and random bits of wide types; every length, offset and split.

mod shared;

use shared::codes::{elements, numeric, packed, unpacked};
use shared::{levels, strongest};
use std::num::NonZeroUsize;
use truecast_core::policy::*;
use truecast_core::{CastPolicy, CastSpec, DType, Layout, Outcome, Rounding, cast_one};
use truecast_kernel::{CastError, CastOptions, Caster, Counting, Elements, ElementsMut, Level};
use truecast_testkit::random::Random;

fn exec(level: Level) -> CastOptions {
    CastOptions { level, threads: NonZeroUsize::MIN, ..CastOptions::default() }
}

fn spec(src: DType, dst: DType, policy: CastPolicy) -> CastSpec {
    CastSpec { src, dst, policy, undefined: &[], clause: "" }
}

/// Every rounding under the default policy. Also every choice of every field, under nearest even and under one other
/// rounding.
fn policies() -> Vec<CastPolicy> {
    let base = CastPolicy::IEEE;
    let mut all: Vec<_> = Rounding::ALL.iter().map(|&r| CastPolicy { to_float: r, to_int: r, ..base }).collect();
    let no_room = [Unrepresentable::Smallest, Unrepresentable::Magnitude];
    for base in [base, CastPolicy { to_float: Rounding::Up, to_int: Rounding::Down, ..base }] {
        all.push(CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, ..base });
        all.push(CastPolicy { overflow: Overflow::Saturate, ..base });
        all.push(CastPolicy { inf: Overflow::Saturate, ..base });
        all.push(CastPolicy { nan: NanRule::Canonical, ..base });
        all.push(CastPolicy { nan_substitute: NanSubstitute::MaxSigned, ..base });
        all.push(CastPolicy { nan_substitute: NanSubstitute::MaxPositive, ..base });
        all.push(CastPolicy { nan_substitute: NanSubstitute::CodeZero, ..base });
        all.push(CastPolicy { int_overflow: IntOverflow::Saturate, nan_to_int: NanToInt::Saturate, ..base });
        all.push(CastPolicy { subnormals: Subnormals::Flush, ..base });
        all.push(CastPolicy { subnormals: Subnormals::FlushSource, ..base });
        all.push(CastPolicy { subnormals: Subnormals::FlushResult, ..base });
        all.push(CastPolicy { overflow: Overflow::NonfiniteAlways, to_float: Rounding::TowardZero, ..base });
        all.push(CastPolicy { range: RangeTest::Source, ..base });
        all.extend(no_room.map(|negative| CastPolicy { negative, vanishing: Unrepresentable::Smallest, ..base }));
    }
    all
}

fn expected(spec: &CastSpec, storage: u64) -> Option<u64> {
    match cast_one(spec, spec.src.code_of_storage(storage)) {
        Outcome::Defined(code) | Outcome::Undefined { code, .. } => Some(spec.dst.storage_of_code(code)),
        Outcome::Refused { .. } => None,
    }
}

/// Converts `elements`, repeated to `len` elements, at the levels.
fn check(spec: &CastSpec, levels: impl IntoIterator<Item = Level>, elements: &[u64], len: usize) {
    let all: Vec<u64> = elements.iter().copied().cycle().take(len).collect();
    let src = packed(spec.src, &all);
    check_bytes(spec, levels, elements, len, &src);
}

/// Converts `src`, which has `len` repeated `elements`. The definition is evaluated once per element.
fn check_bytes(spec: &CastSpec, levels: impl IntoIterator<Item = Level>, elements: &[u64], len: usize, src: &[u8]) {
    let wanted: Vec<u64> = elements.iter().map(|&element| expected(spec, element).unwrap()).collect();
    for level in levels {
        let mut dst = vec![0xaa; spec.dst.bytes_in(Layout::Packed, len as u64).unwrap() as usize];
        let caster = Caster::new(spec, &exec(level)).unwrap();
        let results = ElementsMut::new(spec.dst, len, &mut dst).unwrap();
        caster.cast(Elements::new(spec.src, len, src).unwrap(), results).unwrap();
        for i in 0..len {
            let (got, want, element) =
                (unpacked(spec.dst, &dst, i), wanted[i % wanted.len()], elements[i % wanted.len()]);
            assert_eq!(
                got,
                want,
                "{} -> {} at {level} by {:?}: element {i}, {element:#x}, gives {got:#x}, not {want:#x}; {:?}",
                spec.src,
                spec.dst,
                caster.route(),
                spec.policy
            );
        }
    }
}

#[test]
fn every_pair_policy_and_level() {
    let policies = policies();
    for src in numeric() {
        let elements = elements(src);
        let bytes = packed(src, &elements);
        for dst in numeric() {
            for policy in &policies {
                check_bytes(&spec(src, dst, *policy), levels(), &elements, elements.len(), &bytes);
            }
        }
    }
}

#[test]
fn all_codes_of_16_bit_sources() {
    let all: Vec<u64> = (0..=u16::MAX as u64).collect();
    let roundings = [Rounding::NearestEven, Rounding::TowardZero, Rounding::ToOdd];
    for src in [DType::F16, DType::Bf16, DType::I16, DType::U16] {
        let bytes = packed(src, &all);
        for dst in numeric() {
            for rounding in roundings {
                let policy = CastPolicy { to_float: rounding, to_int: rounding, ..CastPolicy::IEEE };
                check_bytes(&spec(src, dst, policy), levels(), &all, all.len(), &bytes);
            }
        }
    }
}

/// Only long conversions fill tables of 16-bit sources; results with and without tables must agree.
#[test]
fn tables_of_16_bit_sources_filled() {
    let all: Vec<u64> = (0..=u16::MAX as u64).collect();
    let base = CastPolicy::IEEE;
    let policies = [
        base,
        CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, nan: NanRule::Canonical, ..base },
        CastPolicy { to_float: Rounding::Up, to_int: Rounding::Down, ..base },
        CastPolicy { subnormals: Subnormals::Flush, int_overflow: IntOverflow::Saturate, ..base },
    ];
    for src in [DType::F16, DType::Bf16, DType::I16] {
        for dst in numeric().filter(|t| t.storage_bits() <= Some(8) || *t == DType::F16) {
            for policy in policies {
                check(&spec(src, dst, policy), [strongest()], &all, 2 * all.len());
            }
        }
    }
}

#[test]
fn tables_of_f32_filled() {
    let elements = elements(DType::F32);
    for dst in numeric().filter(|t| t.storage_bits() <= Some(8) && t.is_float()) {
        for policy in policies() {
            check(&spec(DType::F32, dst, policy), [strongest()], &elements, 131_072);
        }
    }
}

/// Runs a conversion long enough to fill the tables of a 16-bit source or of f32.
fn fill_tables(caster: &Caster) {
    let (src, dst, len) = (caster.spec().src, caster.spec().dst, 131_072);
    let bytes = |dtype: DType| vec![0; dtype.bytes_in(Layout::Packed, len as u64).unwrap() as usize];
    let (from, mut to) = (bytes(src), bytes(dst));
    caster.cast(Elements::new(src, len, &from).unwrap(), ElementsMut::new(dst, len, &mut to).unwrap()).unwrap();
}

/// Obligation 1: lengths, offsets, and guard bytes around the results.
#[test]
fn lengths_and_offsets() {
    let pairs = [
        (DType::F32, DType::F8E4M3Fn),
        (DType::F32, DType::F4E2M1),
        (DType::F16, DType::F6E2M3),
        (DType::Bf16, DType::F8E4M3Fn),
        (DType::F4E2M1, DType::F32),
        (DType::U3, DType::U1),
        (DType::I48, DType::Bf16),
        (DType::F64, DType::F32),
        (DType::I4, DType::I4),
        (DType::Bf16, DType::I48),
        (DType::F6E3M2, DType::F6E3M2),
        (DType::F16, DType::F8E5M2),
        (DType::F32, DType::F8E8M0),
        (DType::F32, DType::I4),
        (DType::F32, DType::I64),
        (DType::I32, DType::U8),
        (DType::I64, DType::Bf16),
        (DType::F32, DType::F6E2M3),
        (DType::F64, DType::F8E4M3Fn),
        (DType::U64, DType::F32),
        (DType::I64, DType::I8),
        (DType::I64, DType::I4),
        (DType::F8E4M3Fn, DType::F8E4M3Fnuz),
    ];
    for (src, dst) in pairs {
        let elements = elements(src);
        let spec = spec(src, dst, CastPolicy::IEEE);
        for level in levels() {
            let caster = Caster::new(&spec, &exec(level)).unwrap();
            for (len, filled) in (0..=200).map(|len| (len, false)).chain((0..=200).map(|len| (len, true))) {
                if filled && !caster.route().fills_a_table() {
                    break;
                }
                if filled && len == 0 {
                    fill_tables(&caster);
                }
                let elements: Vec<u64> = elements.iter().copied().cycle().skip(len).take(len).collect();
                let bytes = packed(src, &elements);
                for (s_off, d_off) in [(0, 0), (1, 3), (7, 1), (63, 31)] {
                    let source = [vec![0x55; s_off], bytes.clone(), vec![0x55; 64]].concat();
                    let n = dst.bytes_in(Layout::Packed, len as u64).unwrap() as usize;
                    let mut target = vec![0xc7; d_off + n + 64];
                    let from = Elements::new(src, len, &source[s_off..s_off + bytes.len()]).unwrap();
                    let to = ElementsMut::new(dst, len, &mut target[d_off..d_off + n]).unwrap();
                    caster.cast(from, to).unwrap();
                    for (i, &element) in elements.iter().enumerate() {
                        assert_eq!(unpacked(dst, &target[d_off..], i), expected(&spec, element).unwrap());
                    }
                    let padding = 8 * n - len * dst.storage_bits().unwrap() as usize;
                    assert!(padding == 0 || target[d_off + n - 1] >> (8 - padding) == 0, "padding bits are zero");
                    assert!(target[..d_off].iter().chain(&target[d_off + n..]).all(|&b| b == 0xc7), "canaries");
                }
            }
        }
    }
}

#[test]
fn streamed() {
    for (src, dst) in [
        (DType::F8E4M3Fn, DType::F16),
        (DType::F8E4M3Fnuz, DType::F32),
        (DType::F8E8M0, DType::F64),
        (DType::F4E2M1, DType::F32),
        (DType::I8, DType::Bf16),
        (DType::F8E4M3Fn, DType::F8E5M2),
        (DType::F4E2M1, DType::I8),
        (DType::I2, DType::F64),
        (DType::F6E2M3, DType::F16),
        (DType::F16, DType::F32),
        (DType::Bf16, DType::F16),
        (DType::F32, DType::F64),
        (DType::F32, DType::Bf16),
        (DType::F32, DType::F8E5M2),
        (DType::F32, DType::F8E8M0),
        (DType::F32, DType::I16),
        (DType::F32, DType::I64),
        (DType::F32, DType::F4E2M1),
        (DType::F32, DType::F6E2M3),
        (DType::F64, DType::F32),
        (DType::F64, DType::I32),
        (DType::I32, DType::F32),
        (DType::I64, DType::U8),
        (DType::U64, DType::F32),
        (DType::U64, DType::F64),
        (DType::F32, DType::I4),
        (DType::I64, DType::I4),
        (DType::F16, DType::F8E4M3Fn),
        (DType::Bf16, DType::F4E2M1),
        (DType::F64, DType::F8E4M3Fn),
        (DType::F8E4M3Fn, DType::F8E4M3Fnuz),
    ] {
        let (elements, spec) = (elements(src), spec(src, dst, CastPolicy::IEEE));
        for level in levels() {
            let caster = Caster::new(&spec, &CastOptions { stream_above_bytes: Some(0), ..exec(level) }).unwrap();
            for len in (0..=200).step_by(7).chain([3001]) {
                // Last, with filled tables.
                if len == 3001 {
                    fill_tables(&caster);
                }
                let elements: Vec<u64> = elements.iter().copied().cycle().skip(len).take(len).collect();
                let source = packed(src, &elements);
                let n = dst.bytes_in(Layout::Packed, len as u64).unwrap() as usize;
                for offset in [0, 1, 4, 8, 24, 63] {
                    let mut target = vec![0xc7; offset + n + 64];
                    let from = Elements::new(src, len, &source).unwrap();
                    caster.cast(from, ElementsMut::new(dst, len, &mut target[offset..offset + n]).unwrap()).unwrap();
                    for (i, &element) in elements.iter().enumerate() {
                        assert_eq!(
                            unpacked(dst, &target[offset..], i),
                            expected(&spec, element).unwrap(),
                            "{src}, {i}"
                        );
                    }
                    assert!(target[..offset].iter().chain(&target[offset + n..]).all(|&b| b == 0xc7), "canaries");
                }
            }
        }
    }
}

#[test]
fn layouts() {
    let codes: Vec<u64> = (0..1000).map(|i| i % 16).collect();
    let plain: Vec<u8> = codes.iter().map(|&c| c as u8).collect();
    let s = spec(DType::F4E2M1, DType::F6E2M3, CastPolicy::IEEE);
    let caster = Caster::new(&s, &exec(strongest())).unwrap();
    for (src_layout, src) in [(Layout::Packed, packed(DType::F4E2M1, &codes)), (Layout::Bytes, plain)] {
        let from = Elements::with_layout(DType::F4E2M1, src_layout, 1000, &src).unwrap();
        let mut wide = vec![0; 1000];
        caster.cast(from, ElementsMut::with_layout(s.dst, Layout::Bytes, 1000, &mut wide).unwrap()).unwrap();
        let mut tight = vec![0; 750];
        caster.cast(from, ElementsMut::new(s.dst, 1000, &mut tight).unwrap()).unwrap();
        for (i, &code) in codes.iter().enumerate() {
            assert_eq!(wide[i] as u64, expected(&s, code).unwrap());
            assert_eq!(unpacked(s.dst, &tight, i), wide[i] as u64);
        }
    }
}

#[test]
fn bits_above_a_code() {
    let src: Vec<u8> = (0..=255).collect();
    let caster = Caster::new(&CastSpec::copy(DType::I4), &exec(strongest())).unwrap();
    let mut dst = vec![0; 256];
    let from = Elements::with_layout(DType::I4, Layout::Bytes, 256, &src).unwrap();
    caster.cast(from, ElementsMut::with_layout(DType::I4, Layout::Bytes, 256, &mut dst).unwrap()).unwrap();
    assert!(dst.iter().zip(&src).all(|(d, s)| *d == s & 15));
}

/// A 64-bit integer with a nonfinite result contributes to no error.
#[test]
fn errors_of_overflowing_integers() {
    let src = i64::MAX.to_le_bytes();
    let policy = CastPolicy { overflow: Overflow::Nonfinite, ..CastPolicy::IEEE };
    let counting = CastOptions { counting: Counting::Full, ..exec(strongest()) };
    let caster = Caster::new(&spec(DType::I64, DType::F16, policy), &counting).unwrap();
    let mut dst = [0; 2];
    let from = Elements::new(DType::I64, 1, &src).unwrap();
    let counts = caster.cast(from, ElementsMut::new(DType::F16, 1, &mut dst).unwrap()).unwrap();
    assert_eq!((counts.to_inf, counts.finite_pairs, counts.max_abs_error, counts.noise), (1, 0, 0.0, 0.0));
}

/// Sources with an undefined magnitude are counted by every route, also if rounded twice.
#[test]
fn open_magnitudes_are_counted() {
    const OPEN: &[Undefined] = &[Undefined::any(Condition::between(0.25, 6.0), "")];
    let clamp = CastPolicy { int_overflow: IntOverflow::Saturate, ..CastPolicy::IEEE };
    let twice = CastPolicy { via: Some(DType::F32), ..clamp };
    let mut random = Random::seeded(3);
    for (src, dst, policy) in [
        (DType::F32, DType::F8E4M3Fn, clamp),
        (DType::F32, DType::I8, clamp),
        (DType::F32, DType::F64, clamp),
        (DType::F64, DType::Bf16, twice),
        (DType::F64, DType::F8E8M0, clamp),
        (DType::Bf16, DType::F32, clamp),
        (DType::F8E5M2, DType::I32, clamp),
        (DType::F4E2M1, DType::I8, clamp),
    ] {
        let spec = CastSpec { undefined: OPEN, ..spec(src, dst, policy) };
        let bounds =
            [0.25, 6.0, 4.0, f32::from_bits(0x3e80_0001), f32::from_bits(0x40bf_ffff), f32::INFINITY, f32::NAN];
        let of_f32 = |dst, bits| cast_one(&CastSpec { src: DType::F32, dst, ..self::spec(src, dst, clamp) }, bits);
        let edges = bounds.iter().flat_map(|x| [*x, -*x]).filter_map(|x| of_f32(src, x.to_bits().into()).code());
        let any = (0..1000).map(|_| random.next() & (u64::MAX >> (64 - src.code_bits())));
        let codes: Vec<u64> = edges.chain(any).collect();
        let open = codes.iter().filter(|code| matches!(cast_one(&spec, **code), Outcome::Undefined { .. })).count();
        assert!(open > 4 && open < codes.len() - 4, "{src} to {dst}");
        let bytes = packed(src, &codes);
        let mut out = vec![0; dst.bytes_in(Layout::Packed, codes.len() as u64).unwrap() as usize];
        for level in levels() {
            let caster = Caster::new(&spec, &CastOptions { counting: Counting::Full, ..exec(level) }).unwrap();
            let from = Elements::new(src, codes.len(), &bytes).unwrap();
            let counts = caster.cast(from, ElementsMut::new(dst, codes.len(), &mut out).unwrap()).unwrap();
            assert_eq!(counts.undefined, open as u64, "{src} to {dst} at {level}");
        }
    }
}

/// Obligation 9: threads and splits change no bit and no count.
#[test]
fn threads_and_splits() {
    let n = 5 * 65536 + 1234;
    let mut random = Random::seeded(7);
    let src: Vec<u8> = (0..n)
        .flat_map(|i| ((127 - 20 + i as u32 % 40) << 23 | random.next() as u32 & 0x807f_ffff).to_le_bytes())
        .collect();
    for dst in [DType::F4E2M1, DType::Bf16, DType::I8, DType::F64] {
        let spec = spec(DType::F32, dst, CastPolicy::IEEE);
        let bytes = dst.bytes_in(Layout::Packed, n as u64).unwrap() as usize;
        let mut runs = Vec::new();
        for threads in [1, 2, 5] {
            let exec = CastOptions {
                threads: NonZeroUsize::new(threads).unwrap(),
                counting: Counting::Full,
                ..CastOptions::default()
            };
            let caster = Caster::new(&spec, &exec).unwrap();
            let mut out = vec![0; bytes];
            let counts = caster
                .cast(Elements::new(DType::F32, n, &src).unwrap(), ElementsMut::new(dst, n, &mut out).unwrap())
                .unwrap();
            runs.push((out, counts));
        }
        let caster = Caster::new(&spec, &CastOptions { counting: Counting::Full, ..exec(Level::Baseline) }).unwrap();
        let (mut out, mut total) = (vec![0; bytes], Default::default());
        let cut = 2 * 65536;
        let bits = dst.storage_bits().unwrap() as usize;
        let (head, tail) = out.split_at_mut(cut * bits / 8);
        let parts = [(&src[..cut * 4], head, cut), (&src[cut * 4..], tail, n - cut)];
        for (s, d, len) in parts {
            let from = Elements::new(DType::F32, len, s).unwrap();
            caster.cast_next(from, ElementsMut::new(dst, len, d).unwrap(), &mut total).unwrap();
        }
        runs.push((out, total));
        for run in &runs[1..] {
            assert_eq!(run.0, runs[0].0);
            assert_eq!(run.1, runs[0].1);
        }
    }
}

#[test]
fn refusals_name_the_first_element() {
    let mut values = vec![1f32; 3 * 65536];
    for at in [70_000, 130_001, 190_000] {
        values[at] = 1e30;
    }
    let src: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let policy = CastPolicy { overflow: Overflow::Error, ..CastPolicy::IEEE };
    let caster = Caster::new(&spec(DType::F32, DType::F16, policy), &CastOptions::default()).unwrap();
    let mut dst = vec![0; values.len() * 2];
    let result = caster.cast(
        Elements::new(DType::F32, values.len(), &src).unwrap(),
        ElementsMut::new(DType::F16, values.len(), &mut dst).unwrap(),
    );
    let code = u64::from(1e30f32.to_bits());
    let refused =
        CastError::Value { index: 70_000, condition: Condition::Overflow, src: DType::F32, dst: DType::F16, code };
    assert_eq!(
        refused.to_string(),
        "element 70000, f32 1e+30 (0x7149f2ca), to f16: the value is out of the destination's range"
    );
    assert_eq!(result, Err(refused));
}
