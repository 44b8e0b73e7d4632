//! Specifications that are tables: every row is reachable, every choice is possible, every clause is on a page.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use truecast_core::policy::Condition;
use truecast_core::spec::SpecError;
use truecast_core::spec::table::{Cast, Choice, TABLES, Table};
use truecast_core::{DType, Outcome, Rounding, cast_one};

fn versions(table: &Table) -> Vec<Option<&'static str>> {
    match table.versions {
        [] => vec![None],
        versions => versions.iter().map(|version| Some(*version)).collect(),
    }
}

fn cast(name: &str, version: Option<&str>, to: DType) -> Cast {
    Cast { to, ..Cast::find(name, version).unwrap().unwrap() }
}

#[test]
fn names_are_those_of_one_table_each() {
    let names: HashSet<&str> = TABLES.iter().map(|table| table.name).collect();
    assert_eq!(names.len(), TABLES.len());
    assert!(Cast::find("cobol", None).unwrap().is_none());
    for table in TABLES {
        assert!(matches!(Cast::find(table.name, Some("0.0")), Err(SpecError::Version { .. })), "{}", table.name);
        assert_eq!(Cast::find(table.name, None).unwrap().unwrap().version, table.versions.last().copied());
        for row in table.rows {
            let known = row.versions.iter().all(|version| table.versions.contains(version));
            assert!(known, "{}: {:?}", table.name, row.versions);
        }
    }
}

#[test]
fn every_row_decides_some_pair() {
    for table in TABLES {
        let mut decided = HashSet::new();
        for version in versions(table) {
            let is_of = |at: &usize| {
                let of = table.rows[*at].versions;
                of.is_empty() || version.is_some_and(|version| of.contains(&version))
            };
            for (src, dst) in DType::ALL.into_iter().flat_map(|src| DType::ALL.map(|dst| (src, dst))) {
                let mut rows = (0..table.rows.len()).filter(is_of);
                decided
                    .extend(rows.find(|at| table.rows[*at].from.contains(&src) && table.rows[*at].to.contains(&dst)));
            }
        }
        let idle: Vec<_> = (0..table.rows.len()).filter(|at| !decided.contains(at)).collect();
        assert!(idle.is_empty(), "{}: rows {idle:?} decide nothing", table.name);
    }
}

/// A pair may have one range of open magnitudes, because the kernels count only one.
#[test]
fn a_row_has_at_most_one_range_of_open_magnitudes() {
    for table in TABLES {
        for row in table.rows {
            let ranges = row.undefined.iter().filter(|open| matches!(open.condition, Condition::Between { .. }));
            assert!(ranges.count() <= 1, "{}: {}", table.name, row.clause);
        }
    }
}

#[test]
fn every_choice_can_be_made() {
    for table in TABLES {
        for row in table.rows {
            for choice in row.choices {
                let version = row.versions.first().copied().or(table.versions.last().copied());
                let plain = cast(table.name, version, row.to[0]);
                let chosen: Vec<Cast> = match choice {
                    Choice::Rounding(all) => all.iter().map(|&one| Cast { rounding: Some(one), ..plain }).collect(),
                    Choice::Overflow(all) => all.iter().map(|&one| Cast { overflow: Some(one), ..plain }).collect(),
                    Choice::IntOverflow(all) => {
                        all.iter().map(|&(one, _)| Cast { int_overflow: Some(one), ..plain }).collect()
                    }
                    Choice::Subnormals(all) => all.iter().map(|&one| Cast { subnormals: Some(one), ..plain }).collect(),
                    Choice::Relu => vec![Cast { relu: true, ..plain }, plain],
                    Choice::ScaleExponent(least, most) => {
                        (*least..=*most).map(|one| Cast { scale_exponent: Some(one.into()), ..plain }).collect()
                    }
                };
                let is_first = |src: &DType| plain.resolve(*src).is_ok_and(|cast| cast.clause == row.clause);
                let Some(src) = row.from.iter().copied().find(is_first) else { continue };
                let default = plain.resolve(src).unwrap();
                let all: Vec<_> = chosen.iter().map(|cast| cast.resolve(src).unwrap()).collect();
                let same = |cast: &truecast_core::CastSpec| {
                    let (a, b) = (cast.policy, default.policy);
                    match choice {
                        // One word sets both roundings; only one rounding matters for the destination.
                        Choice::Rounding(_) if matches!(row.to[0].kind(), truecast_core::Kind::Int(_)) => {
                            a.to_int == b.to_int
                        }
                        Choice::Rounding(_) => a.to_float == b.to_float,
                        _ => a == b,
                    }
                };
                assert!(all.iter().any(same), "{} {src} to {}: {choice:?} lacks the default", table.name, row.to[0]);
            }
        }
    }
}

#[test]
fn clauses_stand_on_pages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for table in TABLES {
        for row in table.rows {
            let cited = row.undefined.iter().map(|open| open.reason).chain([row.clause]);
            for clause in cited {
                let (_, place) = clause.rsplit_once("docs/spec/").unwrap_or_else(|| panic!("{}: {clause}", table.name));
                let (page, section) = place.split_once(" §").unwrap();
                assert_eq!(page, format!("{}.md", table.name), "{clause}");
                let text = fs::read_to_string(root.join("docs/spec").join(page)).unwrap();
                let heading = |line: &str| {
                    let title = line.trim_start_matches('#').trim_start();
                    line.starts_with('#')
                        && (title.starts_with(&format!("{section}.")) || title.starts_with(&format!("{section} ")))
                };
                assert!(text.lines().any(heading), "{clause}: no such section");
            }
        }
    }
}

#[test]
fn known_results() {
    let of = |name, version, src, code, to| cast_one(&cast(name, version, to).resolve(src).unwrap(), code);
    let f465 = u64::from(465f32.to_bits());
    for (name, version, code) in [
        ("torch", Some("2.11"), 0x7f),
        ("torch", Some("2.15"), 0x7e),
        ("ml_dtypes", Some("0.6"), 0x7f),
        ("ptx", Some("9"), 0x7e),
    ] {
        assert_eq!(of(name, version, DType::F32, f465, DType::F8E4M3Fn), Outcome::Defined(code), "{name}");
    }
    let three_billion = u64::from(3e9f32.to_bits());
    assert_eq!(of("rust", None, DType::F32, three_billion, DType::I32), Outcome::Defined(0x7fff_ffff));
    assert_eq!(of("avx10", None, DType::F32, three_billion, DType::I32), Outcome::Defined(0x8000_0000));
    assert!(matches!(of("wasm", None, DType::F32, three_billion, DType::I32), Outcome::Refused { .. }));
    assert!(matches!(of("c", None, DType::F32, three_billion, DType::I32), Outcome::Undefined { .. }));
    // NaN to a 64-bit integer has only its top bit set in PTX.
    let nan = u64::from(f32::NAN.to_bits());
    assert_eq!(of("ptx", None, DType::F32, nan, DType::I64), Outcome::Defined(1 << 63));
    // f32 rounds 1 + 2^-8 + 2^-40 to a number that is a tie in bf16.
    let above_tie = (1.0 + 2f64.powi(-8) + 2f64.powi(-40)).to_bits();
    assert_eq!(of("torch", None, DType::F64, above_tie, DType::Bf16), Outcome::Defined(0x3f80));
    assert_eq!(of("rust", None, DType::F64, 300f64.to_bits(), DType::U8), Outcome::Defined(255));
    // NaN is 0 in JAX, and the largest value in TensorFlow Lite. In TensorFlow Lite 2.1, NaN is undefined.
    assert_eq!(of("jax", None, DType::F32, nan, DType::I8), Outcome::Defined(0));
    assert_eq!(of("tflite", Some("2.3"), DType::F32, nan, DType::I8), Outcome::Defined(0x7f));
    assert!(matches!(of("tflite", Some("2.1"), DType::F32, nan, DType::I8), Outcome::Undefined { .. }));
    // JAX and TensorFlow Lite clamp.
    for name in ["jax", "tflite"] {
        assert_eq!(of(name, None, DType::F64, (-300f64).to_bits(), DType::I8), Outcome::Defined(0x80), "{name}");
    }
    // JAX reads subnormals as zero and returns zero for subnormal results, except on the way to bf16.
    assert_eq!(of("jax", None, DType::F32, 1, DType::F64), Outcome::Defined(0));
    assert_eq!(of("jax", None, DType::F64, 1e-40f64.to_bits(), DType::F32), Outcome::Defined(0));
    assert_eq!(of("jax", None, DType::F32, 0x0001_8000, DType::Bf16), Outcome::Defined(2));
    // In JAX, integer bounds for 6 of f4e2m1 are undefined, but not for 4. Values to f8e8m0 are undefined strictly
    // between 2^-127 and 1.5 * 2^-127.
    assert!(matches!(of("jax", None, DType::F4E2M1, 7, DType::I8), Outcome::Undefined { .. }));
    assert_eq!(of("jax", None, DType::F4E2M1, 6, DType::I8), Outcome::Defined(4));
    for (bits, is_open) in [(0x40_0000, false), (0x40_0001, true), (0x5f_ffff, true), (0x60_0000, false)] {
        for name in ["jax", "torch", "ml_dtypes"] {
            let outcome = of(name, None, DType::F32, bits, DType::F8E8M0);
            assert_eq!(matches!(outcome, Outcome::Undefined { .. }), is_open, "{name} {bits:#x}");
        }
    }
    // relu
    let relu = Cast { relu: true, ..cast("ptx", None, DType::F16) }.resolve(DType::F32).unwrap();
    for (x, code) in [(-2.0, 0), (-0.0, 0), (f32::NEG_INFINITY, 0), (1.5, 0x3e00), (f32::NAN, 0x7e00)] {
        assert_eq!(cast_one(&relu, x.to_bits().into()), Outcome::Defined(code), "{x}");
    }
}

/// Scaling, then one rounding, by `docs/spec/arm.md §2.1`, `amd.md §2.3` and `ptx.md §2.3`.
#[test]
fn scales() {
    let of = |name, src: DType, dst: DType, scale_exponent, code: u64| {
        let cast = Cast { scale_exponent: Some(scale_exponent), ..cast(name, None, dst) };
        cast_one(&cast.resolve(src).unwrap(), code)
    };
    let f32 = |x: f32| u64::from(x.to_bits());
    let defined = Outcome::Defined;
    // 465 * 2^-1 is between 224 and 240; unscaled, 465 overflows.
    assert_eq!(of("arm", DType::F32, DType::F8E4M3Fn, -1, f32(465.0)), defined(0x77)); // 240
    assert_eq!(of("arm", DType::F32, DType::F8E4M3Fn, 0, f32(465.0)), defined(0x7f));
    assert_eq!(of("arm", DType::F32, DType::F8E4M3Fn, 127, 1), defined(0)); // 2^-149 to 2^-22
    assert_eq!(of("arm", DType::F32, DType::F8E5M2, 127, f32(1.0)), defined(0x7c));
    // With the largest scale, the smallest subnormal of f16 is 2^-9, the smallest subnormal of e4m3.
    assert_eq!(of("arm", DType::F16, DType::F8E4M3Fn, 15, 1), defined(1));
    for special in [0x0000, 0x8000, 0x7c00, 0x7e00] {
        let plain = of("arm", DType::F16, DType::F8E5M2, 0, special);
        assert_eq!(of("arm", DType::F16, DType::F8E5M2, 9, special), plain, "{special:#x} is not scaled");
    }
    // In units of 2^-24, the smallest f16 subnormal: 1.125 * 2^-15 is 576, 1.125 * 2^-21 is 9, 1.75 * 2^-25 rounds to
    // 1.
    assert_eq!(of("arm", DType::F8E4M3Fn, DType::F16, -15, 0x39), defined(0x0240));
    assert_eq!(of("arm", DType::F8E4M3Fn, DType::F16, -15, 0x09), defined(0x0009));
    assert_eq!(of("arm", DType::F8E4M3Fn, DType::F16, -15, 0x01), defined(0x0001)); // 2^-24
    assert_eq!(of("arm", DType::F8E5M2, DType::F16, -15, 0x17), defined(0x0001));
    // 3 * 2^-16 scaled is 1.5 * 2^-30, less than half of f16's smallest subnormal.
    assert_eq!(of("arm", DType::F8E5M2, DType::F16, -15, 0x03), defined(0));
    assert_eq!(of("amd", DType::F32, DType::F4E2M1, -10, f32(5.0 * 1024.0)), defined(0b0110)); // a tie, to 4
    assert_eq!(of("amd", DType::F4E2M1, DType::F16, 15, 0b0111), defined(0x7c00)); // 6 * 2^15 is Inf
    assert_eq!(of("amd", DType::F8E5M2, DType::F32, -127, 0x01), defined(1 << 6)); // 2^-16 * 2^-127 = 2^-143
    assert_eq!(of("ptx", DType::F32, DType::MxInt8, -3, f32(8.0)), defined(0x40)); // 1
    assert_eq!(of("ptx", DType::MxInt8, DType::Bf16, -127, 0x01), defined(1)); // 2^-6 * 2^-127
    assert_eq!(of("ptx", DType::MxInt8, DType::Bf16, 127, 0x80), defined(0xff80)); // -2 * 2^127
    assert_eq!(of("ptx", DType::F4E2M1, DType::Bf16, 126, 0b0111), defined(0x7f80)); // 6 * 2^126
    // Scale exponents outside the field.
    for (name, src, scale_exponent) in [("arm", DType::F16, 16), ("arm", DType::F32, 128), ("amd", DType::F32, -128)] {
        let cast = Cast { scale_exponent: Some(scale_exponent), ..cast(name, None, DType::F8E4M3Fn) };
        assert!(matches!(cast.resolve(src), Err(SpecError::Attribute { name: "scale-exponent", .. })), "{name} {src}");
    }
}

/// `docs/spec/wgsl.md §3`.
#[test]
fn floats_to_integers_of_wgsl() {
    let of = |src, code, dst| cast_one(&cast("wgsl", None, dst).resolve(src).unwrap(), code);
    let f32 = |x: f32, dst| of(DType::F32, x.to_bits().into(), dst);
    assert_eq!(f32(3e9, DType::I32), Outcome::Defined(2_147_483_520));
    assert_eq!(f32(2_147_483_520.0, DType::I32), Outcome::Defined(2_147_483_520));
    assert_eq!(f32(-3e9, DType::I32), Outcome::Defined(0x8000_0000));
    assert_eq!(f32(5e9, DType::U32), Outcome::Defined(4_294_967_040));
    assert_eq!([f32(-5e9, DType::U32), f32(-0.9, DType::U32)], [Outcome::Defined(0); 2]);
    assert_eq!(of(DType::F16, 0xfbff, DType::I32), Outcome::Defined((-65504i32 as u32).into()));
    assert_eq!(of(DType::F16, 0xfbff, DType::U32), Outcome::Defined(0));
    for special in [f32::NAN, f32::INFINITY] {
        assert!(matches!(f32(special, DType::I32), Outcome::Undefined { .. }), "{special}");
    }
}

/// A conversion with one rounding takes the name of this rounding (PTX: `.rn` is mandatory).
#[test]
fn the_only_rounding_can_be_named() {
    let rounded = |rounding| {
        let cast = Cast { rounding: Some(rounding), ..cast("ptx", None, DType::F8E4M3Fn) };
        cast.resolve(DType::F32)
    };
    assert_eq!(rounded(Rounding::NearestEven), cast("ptx", None, DType::F8E4M3Fn).resolve(DType::F32));
    let refused = rounded(Rounding::TowardZero).unwrap_err().to_string();
    assert!(refused.contains("rounds nearest-even only"), "{refused}");
}

#[test]
fn what_a_table_lacks_is_refused() {
    let lacks = |name, version, src, dst| cast(name, version, dst).resolve(src).unwrap_err();
    // `docs/spec/riscv.md §2.3`: vfncvtbf16.f.f.q and vfncvt.f.f.q.
    match lacks("riscv", None, DType::F16, DType::F8E5M2) {
        SpecError::NoConversion { sources, .. } => assert_eq!(sources, [DType::Bf16, DType::F32]),
        error => panic!("{error}"),
    }
    // `docs/spec/amd.md §2`: only CDNA 3 has the types without negative zero.
    let error = lacks("amd", Some("cdna4"), DType::F32, DType::F8E4M3Fnuz);
    assert!(matches!(&error, SpecError::NoConversion { sources, .. } if sources.is_empty()), "{error}");
    assert!(error.to_string().ends_with("; amd@cdna3 does"), "{error}");
    for table in TABLES {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/spec/{}.md", table.name)).is_file());
    }
    let rounding = Some(Rounding::Up);
    let error = Cast { rounding, ..cast("ptx", None, DType::F8E4M3Fn) }.resolve(DType::F32).unwrap_err();
    assert!(matches!(error, SpecError::Attribute { name: "rounding", .. }), "{error}");
}
