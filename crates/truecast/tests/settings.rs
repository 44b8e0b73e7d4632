//! A setting matters for a pair exactly if two of its values give some element different results: asked of the
//! definition at every code of the narrow sources, and at boundaries and random codes of the wide ones.

use rayon::prelude::*;
use truecast::policy::{IntOverflow, NanRule, NanToInt, Overflow, Subnormals, TextStyle};
use truecast::request::{Request, Standard};
use truecast::setting::Setting;
use truecast::spec::{ieee, onnx, tile, tosa};
use truecast::vectors::{Extent, inputs};
use truecast::{DType, Rounding, cast_one};

const OVERFLOWS: [Overflow; 3] = [Overflow::Nonfinite, Overflow::Saturate, Overflow::Error];

fn ieee(change: impl Fn(&mut ieee::Cast)) -> Request {
    let mut cast = ieee::Cast::to(DType::F32);
    change(&mut cast);
    Request { standard: Standard::Ieee(cast), nan: None, text: TextStyle::default() }
}

fn onnx(opset: u32, saturate: Option<bool>, round_mode: Option<onnx::RoundMode>) -> Request {
    let operator = onnx::Operator::Cast;
    Request {
        standard: Standard::Onnx { operator, opset, saturate, round_mode },
        nan: None,
        text: TextStyle::default(),
    }
}

fn tile(change: impl Fn(&mut tile::Cast)) -> Request {
    let mut cast = tile::Cast::to(DType::F32);
    change(&mut cast);
    Request { standard: Standard::Tile { cast, rules: tile::Rules::default() }, nan: None, text: TextStyle::default() }
}

fn of_standard(standard: Standard) -> Request {
    Request { standard, nan: None, text: TextStyle::default() }
}

/// Each setting with a request for each of its values.
fn settings() -> Vec<(Setting, Vec<Request>)> {
    use Setting::*;
    let mut all = vec![
        (Saturate, [true, false].map(|s| onnx(28, Some(s), None)).to_vec()),
        (RoundMode, onnx::RoundMode::ALL.map(|m| onnx(28, None, Some(m))).to_vec()),
        (Rounding, self::Rounding::ALL.map(|r| ieee(|cast| cast.rounding = Some(r))).to_vec()),
        (Overflow, OVERFLOWS.map(|o| ieee(|cast| cast.overflow = o)).to_vec()),
        (Inf, OVERFLOWS.map(|o| ieee(|cast| cast.inf = Some(o))).to_vec()),
        (
            IntOverflow,
            [self::IntOverflow::Wrap, self::IntOverflow::Saturate, self::IntOverflow::Error]
                .map(|o| ieee(|cast| cast.int_overflow = o))
                .to_vec(),
        ),
        (
            NanToInt,
            [self::NanToInt::Zero, self::NanToInt::Saturate, self::NanToInt::Error]
                .map(|n| ieee(|cast| cast.nan_to_int = n))
                .to_vec(),
        ),
        (
            Subnormals,
            [self::Subnormals::Keep, self::Subnormals::Flush].map(|s| ieee(|cast| cast.subnormals = s)).to_vec(),
        ),
    ];
    let target = tosa::Target::of(tosa::Version::V1_1);
    let tosa = |profile: &str| Standard::Tosa { target, freedoms: profile.parse().unwrap() };
    let profiles = ["strict", "flush-f16", "flush-bf16", "flush-f32", "toward-zero", "flush+toward-zero"];
    all.push((Profile, profiles.map(|profile| of_standard(tosa(profile))).to_vec()));
    for standard in [ieee(|_| ()).standard, Request::default().standard, Standard::OpenVino, tosa("strict")] {
        let rules = [NanRule::Keep, NanRule::Canonical, NanRule::Error];
        all.push((Nan, rules.map(|nan| Request { nan: Some(nan), ..of_standard(standard) }).to_vec()));
    }
    // Under a policy that hides another one, and one that uncovers it.
    all.push((
        Overflow,
        OVERFLOWS.map(|o| ieee(|cast| (cast.overflow, cast.inf) = (o, Some(self::Overflow::Saturate)))).to_vec(),
    ));
    all.push((
        Rounding,
        self::Rounding::ALL
            .map(|r| {
                ieee(|cast| {
                    cast.rounding = Some(r);
                    cast.overflow = self::Overflow::Saturate;
                    cast.subnormals = self::Subnormals::Flush;
                })
            })
            .to_vec(),
    ));
    all.push((
        NanToInt,
        [self::NanToInt::Zero, self::NanToInt::Saturate, self::NanToInt::Error]
            .map(|n| Request { nan: Some(NanRule::Error), ..ieee(|cast| cast.nan_to_int = n) })
            .to_vec(),
    ));
    all
}

/// Whether two of the requests give one of the codes different results.
fn differ(requests: &[Request], src: DType, dst: DType, codes: &[u64]) -> bool {
    let resolved: Vec<_> = requests.iter().filter_map(|r| r.resolve(src, dst).ok()).collect();
    let Some((first, others)) = resolved.split_first() else { return false };
    others.iter().any(|other| codes.iter().any(|&code| cast_one(first, code) != cast_one(other, code)))
}

fn numeric() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_numeric())
}

#[test]
fn at_every_code_of_narrow_sources() {
    let sources: Vec<DType> = numeric().filter(|src| src.code_bits() <= 16).collect();
    let mattered = sources.par_iter().map(|&src| {
        let codes: Vec<u64> = (0..1 << src.code_bits()).collect();
        let mut mattered = 0;
        for dst in numeric() {
            for (setting, requests) in settings() {
                let expected = differ(&requests, src, dst, &codes);
                let first = &requests[0];
                assert_eq!(setting.matters(first, src, dst), expected, "{setting:?} of {first}: {src} to {dst}");
                mattered += expected as u32;
            }
        }
        mattered
    });
    assert!(mattered.sum::<u32>() > 1000);
}

#[test]
fn at_boundaries_and_random_codes_of_wide_sources() {
    let wide = [DType::Tf32, DType::F32, DType::F64, DType::U32, DType::I64];
    wide.par_iter().for_each(|&src| {
        let mut random = fastrand::Rng::with_seed(src as u64);
        for dst in numeric() {
            let mut codes = inputs(src, dst, Extent::Boundary).unwrap();
            // Of every magnitude: integers are mostly large otherwise, and never near a narrow type's range.
            let code = |_| random.u64(..) >> random.u32(..64) & (u64::MAX >> (64 - src.code_bits()));
            codes.extend((0..5_000).map(code));
            for (setting, requests) in settings() {
                let expected = differ(&requests, src, dst, &codes);
                let first = &requests[0];
                assert_eq!(setting.matters(first, src, dst), expected, "{setting:?} of {first}: {src} to {dst}");
            }
        }
    });
}

/// By what `docs/interfaces.md §2` says of each, not by the definition.
#[test]
fn by_what_is_said_of_them() {
    use DType::*;
    let (onnx, ieee) = (Request::default(), ieee(|_| ()));
    for (setting, request, src, dst, expected) in [
        (Setting::Saturate, &onnx, F32, F8E4M3Fn, true),
        (Setting::Saturate, &onnx, F32, F8E5M2, true),
        (Setting::Saturate, &onnx, F32, F8E8M0, true),
        (Setting::Saturate, &onnx, F32, F16, false),
        (Setting::Saturate, &onnx, F32, I8, false),
        (Setting::Saturate, &onnx, F32, F4E2M1, false),
        (Setting::Saturate, &onnx, I4, F8E4M3Fn, false), // nothing is out of range
        (Setting::RoundMode, &onnx, F32, F8E8M0, true),
        (Setting::RoundMode, &onnx, F32, F8E4M3Fn, false),
        (Setting::RoundMode, &onnx, F32, F16, false),
        (Setting::Overflow, &ieee, F32, I8, false),
        (Setting::Overflow, &ieee, F32, F16, true),
        (Setting::Overflow, &ieee, F16, F32, true), // infinities follow it
        (Setting::Overflow, &ieee, F8E4M3Fn, F32, false),
        (Setting::Inf, &ieee, F16, F32, true),
        (Setting::Inf, &ieee, F8E4M3Fn, F16, false),
        (Setting::IntOverflow, &ieee, F32, F16, false),
        (Setting::IntOverflow, &ieee, F32, I8, true),
        (Setting::IntOverflow, &ieee, I8, I16, false),
        (Setting::IntOverflow, &ieee, U8, I8, true),
        (Setting::NanToInt, &ieee, F32, I8, true),
        (Setting::NanToInt, &ieee, F32, F16, false),
        (Setting::NanToInt, &ieee, I32, I8, false),
        (Setting::Subnormals, &ieee, F32, F16, true),
        (Setting::Subnormals, &ieee, I32, I8, false),
        (Setting::Rounding, &ieee, F32, F16, true),
        (Setting::Rounding, &ieee, F16, F32, false),
        (Setting::Rounding, &ieee, F32, I8, true),
        (Setting::Rounding, &ieee, F32, Bool, false),
        (Setting::Nan, &onnx, F32, F16, true),
        (Setting::Nan, &onnx, I32, F16, false),
        // Text says numbers of any size, infinities and NaN.
        (Setting::Rounding, &ieee, String, F16, true),
        (Setting::Overflow, &ieee, String, F16, true),
        (Setting::IntOverflow, &ieee, String, I8, true),
        (Setting::NanToInt, &ieee, String, I8, false), // text refuses NaN as an integer
        (Setting::Saturate, &onnx, String, F8E4M3Fn, true),
        (Setting::Subnormals, &ieee, F32, String, true),
        (Setting::Rounding, &ieee, F32, String, false),
        (Setting::Nan, &onnx, F32, String, true),
        (Setting::Nan, &onnx, String, String, false),
        (Setting::Nan, &onnx, C64, C64, false),
        // Those of other specifications.
        (Setting::Saturate, &ieee, F32, F8E4M3Fn, false),
        (Setting::Rounding, &onnx, F32, F16, false),
    ] {
        assert_eq!(setting.matters(request, src, dst), expected, "{setting:?} of {request}: {src} to {dst}");
    }
}

#[test]
fn settings_of_tile() {
    use DType::*;
    let plain = tile(|_| ());
    for (setting, src, dst, expected) in [
        (Setting::Saturating, F32, I8, true),
        (Setting::Saturating, F32, F16, false),
        (Setting::Rounding, F32, F16, true),
        (Setting::Rounding, I8, I32, false),
        (Setting::Profile, F32, I32, true),
        (Setting::Profile, F32, F64, false),
        (Setting::TileOption("preserve_inf"), F32, F8E5M2, true),
        (Setting::TileOption("preserve_inf"), F32, F8E4M3Fn, false),
        (Setting::TileOption("preserve_inf"), F32, F16, false),
    ] {
        assert_eq!(setting.matters(&plain, src, dst), expected, "{setting:?}: {src} to {dst}");
    }
    // What is on does not hide that it matters.
    let on = tile(|cast| cast.options.preserve_inf = true);
    assert!(Setting::TileOption("preserve_inf").matters(&on, F32, F8E5M2));
}

/// The notation of text matters where a floating-point number becomes text, and nowhere else.
#[test]
fn the_notation_of_text() {
    let onnx = Request::default();
    for src in numeric() {
        assert_eq!(Setting::TextStyle.matters(&ieee(|_| ()), src, DType::String), has_exponents(src), "{src}");
        assert!(!Setting::TextStyle.matters(&onnx, src, DType::F32));
    }
    assert!(!Setting::TextStyle.matters(&onnx, DType::String, DType::F32));
}

/// Some value of the type lies beyond those that both styles write alike: below 1e-4, or 1e16 and more.
fn has_exponents(dtype: DType) -> bool {
    use DType::*;
    matches!(dtype, F64 | F32 | Tf32 | Bf16 | F16 | F8E5M2 | F8E5M2Fnuz | F8E5M3Fnu | F8E8M0)
}
