//! Which loops conversions go through, as `docs/kernels.md §2.1` says.

mod shared;

use shared::levels;
use truecast_core::policy::CastPolicy;
use truecast_core::{CastSpec, DType};
use truecast_kernel::{CastOptions, Caster};

#[test]
fn routes_are_those_of_the_page() {
    use DType::{F8E4M3Fn, F8E5M2, F16, F32, I8, I64, U64};
    let rows = [
        (F32, F32, ["copy", "copy", "copy"]),
        (F32, F8E4M3Fn, ["lane", "fused", "fused"]),
        (F16, F8E4M3Fn, ["lane+lane", "fused", "split(fused)"]),
        (I64, F32, ["lane", "lane", "instruction"]),
        (I64, I8, ["lane", "lane", "narrow"]),
        (U64, F16, ["lane+lane", "lane+fused", "fused"]),
        (U64, DType::Bool, ["lane", "lane", "nonzero"]),
        (F8E5M2, F32, ["table8", "table8", "table8"]),
    ];
    for level in levels() {
        for (src, dst, routes) in rows {
            let spec = CastSpec { src, dst, policy: CastPolicy::IEEE, undefined: &[], clause: "" };
            let caster = Caster::new(&spec, &CastOptions { level, ..CastOptions::default() }).unwrap();
            let expected = match level.name() {
                "baseline" => routes[0],
                "avx2" => routes[1],
                _ => routes[2],
            };
            assert_eq!(caster.route().to_string(), expected, "{src} to {dst} at {level}");
        }
    }
}
