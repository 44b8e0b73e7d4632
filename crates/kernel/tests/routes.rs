//! Routes of conversions in `docs/kernels.md §2.1`.

mod shared;

use shared::levels;
use std::collections::BTreeSet;
use truecast_core::policy::{CastPolicy, Overflow};
use truecast_core::{CastSpec, DType, Rounding};
use truecast_kernel::{CastOptions, Caster, Route};

#[test]
fn routes_are_those_of_the_page() {
    use DType::{F8E4M3Fn, F8E5M2, F16, F32, F64, I8, I64, U64};
    // At baseline, AVX2, AVX-512 and NEON.
    let rows = [
        (F32, F32, ["copy", "copy", "copy", "copy"]),
        (F32, F8E4M3Fn, ["lane", "fused", "split(fused)", "lane"]),
        (F16, F8E4M3Fn, ["lane+lane", "fused", "split(fused)", "instruction+lane"]),
        (F64, F32, ["lane", "instruction", "instruction", "instruction"]),
        (I64, F32, ["lane", "lane", "lane", "lane"]),
        (I64, I8, ["lane", "narrow", "narrow", "lane"]),
        (U64, F32, ["lane", "instruction", "instruction", "lane"]),
        (U64, F16, ["lane", "fused", "lane", "lane"]),
        (U64, DType::Bool, ["lane", "lane", "lane", "lane"]),
        (F8E5M2, F32, ["table8", "table8", "table8", "table8"]),
    ];
    for level in levels() {
        for (src, dst, routes) in rows {
            let spec = CastSpec { src, dst, policy: CastPolicy::IEEE, undefined: &[], clause: "" };
            let caster = Caster::new(&spec, &CastOptions { level, ..CastOptions::default() }).unwrap();
            let expected = match level.name() {
                "baseline" => routes[0],
                "avx2" => routes[1],
                "avx512" => routes[2],
                _ => routes[3],
            };
            assert_eq!(caster.route().to_string(), expected, "{src} to {dst} at {level}");
        }
    }
}

#[test]
fn methods_are_those_of_all_pairs() {
    let policies = [
        CastPolicy::IEEE,
        CastPolicy { to_float: Rounding::Up, ..CastPolicy::IEEE },
        CastPolicy { overflow: Overflow::Error, ..CastPolicy::IEEE },
    ];
    for level in levels() {
        let mut taken = BTreeSet::new();
        for (&src, &dst) in DType::ALL.iter().flat_map(|src| DType::ALL.iter().map(move |dst| (src, dst))) {
            for policy in policies {
                let spec = CastSpec { src, dst, policy, undefined: &[], clause: "" };
                if let Ok(caster) = Caster::new(&spec, &CastOptions { level, ..CastOptions::default() }) {
                    taken.extend(caster.route().methods());
                }
            }
        }
        let named: BTreeSet<_> = Route::methods_at(level).collect();
        assert_eq!(taken, named, "{level}");
    }
}
