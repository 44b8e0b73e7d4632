//! A report records all options of its result: options, converted to JSON and back, are equal.

use serde_json::{Value, json};
use truecast::convert::Options;
use truecast::policy::{IntOverflow, NanRule, NanToInt, Overflow, Subnormals, TextStyle};
use truecast::report::Provenance;
use truecast::request::{Request, Standard, Tile};
use truecast::select::{Rule, Selection};
use truecast::spec::table::{self, TABLES};
use truecast::spec::{ieee, onnx, openvino, tile, tosa};
use truecast::{DType, Rounding};

fn again(options: &Options) -> Options {
    let text = Provenance::of(options).to_json().to_string();
    Provenance::from_json(&serde_json::from_str(&text).unwrap()).unwrap().options()
}

fn keeps(options: &Options) {
    let back = again(options);
    assert_eq!(Provenance::of(&back), Provenance::of(options), "{}", Provenance::of(options).to_json());
}

fn of_request(standard: Standard) -> Options {
    Options { request: Request { standard, nan: None, text: TextStyle::default() }, ..Options::default() }
}

#[test]
fn every_option_of_the_selection_is_kept() {
    keeps(&Options::default());
    for to in DType::ALL {
        keeps(&Options { selection: Selection { to: Some(to), ..Selection::default() }, ..Options::default() });
        keeps(&Options { selection: Selection { from: Some(to), ..Selection::default() }, ..Options::default() });
    }
    let rule = |glob, to| Rule::new(glob, to).unwrap();
    let rules = vec![
        rule("*.norm.{a,b}", None),
        rule("a=b*", Some(DType::F16)),
        rule("\u{e4}[0-9]", Some(DType::F8E4M3Fn)),
        rule("*", None),
    ];
    let options =
        Options { selection: Selection { rules: rules.clone(), ..Selection::default() }, ..Options::default() };
    keeps(&options);
    let reversed = Selection { rules: rules.into_iter().rev().collect(), ..Selection::default() };
    assert_ne!(again(&options).selection, reversed);
}

#[test]
fn every_option_of_reading_is_kept() {
    keeps(&Options { min_elements: 0, ..Options::default() });
    keeps(&Options { min_elements: u64::MAX, ..Options::default() });
    for (lenient, follow_links) in [(true, false), (false, true), (true, true)] {
        let onnx = truecast::io::onnx::Options { lenient, links: follow_links.into() };
        keeps(&Options { onnx, ..Options::default() });
    }
}

#[test]
fn every_name_and_choice_is_kept() {
    for one in TABLES {
        let versions = [None].into_iter().chain(one.versions.iter().map(|version| Some(*version)));
        for cast in versions.map(|version| table::Cast::find(one.name, version).unwrap().unwrap()) {
            keeps(&of_request(Standard::Table(cast)));
            let rounding = Some(Rounding::TowardZero);
            if !one.values("rounding").is_empty() {
                keeps(&of_request(Standard::Table(table::Cast { rounding, ..cast })));
            }
            let overflow = Some(Overflow::Saturate);
            if !one.values("overflow").is_empty() {
                keeps(&of_request(Standard::Table(table::Cast { overflow, ..cast })));
            }
        }
    }
    let ptx = table::Cast::find("ptx", None).unwrap().unwrap();
    keeps(&of_request(Standard::Table(table::Cast { relu: true, scale_exponent: Some(-9), ..ptx })));
}

#[test]
fn every_attribute_of_onnx_is_kept() {
    let modes = onnx::RoundMode::ALL.into_iter().map(Some).chain([None]);
    for round_mode in modes {
        for saturate in [None, Some(false), Some(true)] {
            for operator in onnx::Operator::ALL {
                for opset in 1..=onnx::NEWEST_OPSET {
                    keeps(&of_request(Standard::Onnx(onnx::Cast {
                        operator,
                        saturate,
                        round_mode,
                        opset,
                        to: DType::F32,
                    })));
                }
            }
        }
    }
    for text in TextStyle::ALL {
        for standard in [Request::default().standard, Standard::Ieee(ieee::Cast::to(DType::F32))] {
            keeps(&Options { request: Request { standard, nan: None, text }, ..Options::default() });
        }
    }
    for nan in [NanRule::Keep, NanRule::Canonical, NanRule::Error] {
        keeps(&Options { request: Request { nan: Some(nan), ..Request::default() }, ..Options::default() });
    }
}

#[test]
fn every_policy_of_ieee_is_kept() {
    const OVERFLOW: [Overflow; 3] = [Overflow::Nonfinite, Overflow::Saturate, Overflow::Error];
    let plain = ieee::Cast::to(DType::F32);
    let mut all = vec![plain];
    all.extend(Rounding::ALL.map(|rounding| ieee::Cast { rounding: Some(rounding), ..plain }));
    all.extend(OVERFLOW.map(|overflow| ieee::Cast { overflow, ..plain }));
    all.extend(OVERFLOW.map(|inf| ieee::Cast { inf: Some(inf), ..plain }));
    let ints = [IntOverflow::Wrap, IntOverflow::Saturate, IntOverflow::Error];
    all.extend(ints.map(|int_overflow| ieee::Cast { int_overflow, ..plain }));
    all.extend(
        [NanToInt::Zero, NanToInt::Saturate, NanToInt::Error].map(|nan_to_int| ieee::Cast { nan_to_int, ..plain }),
    );
    all.extend([Subnormals::Keep, Subnormals::Flush].map(|subnormals| ieee::Cast { subnormals, ..plain }));
    all.into_iter().for_each(|cast| keeps(&of_request(Standard::Ieee(cast))));
}

/// A rule for NaN in the cast has the same effect as in the request.
#[test]
fn nan_of_the_cast_itself_is_kept_as_that_of_the_request() {
    let cast = ieee::Cast { nan: NanRule::Canonical, ..ieee::Cast::to(DType::F32) };
    let back = again(&of_request(Standard::Ieee(cast))).request;
    let expected = of_request(Standard::Ieee(cast)).request.resolve(DType::F32, DType::F16).unwrap();
    assert_eq!(back.resolve(DType::F32, DType::F16).unwrap(), expected);
}

#[test]
fn every_option_of_tile_is_kept() {
    let plain = tile::Cast::to(DType::F32);
    let mut casts = vec![plain, tile::Cast { saturating: true, ..plain }];
    casts.extend(tile::Profile::ALL.map(|profile| tile::Cast { profile, ..plain }));
    casts.extend(tile::Release::ALL.map(|release| tile::Cast { release, ..plain }));
    let modes = ["nearest_even", "zero", "negative_inf", "positive_inf", "nearest_int_to_zero", "nearest_away"];
    casts.extend(modes.map(|mode| tile::Cast { rounding: tile::RoundingMode::of_name(mode), ..plain }));
    let names = [
        "preserve_inf", "e4m3_nan=spec-literal", "canonical_nan", "i1_ftoi=truncate", "tf32_as_32_bit",
        "legacy_double_rounding", "strict",
    ];
    let mut options = tile::Options::default();
    for name in names {
        options.set(name).unwrap();
        casts.push(tile::Cast { options, ..plain });
    }
    let all_rules = tile::Release::ALL.map(tile::Rules::Of).into_iter().chain([tile::Rules::OfFile]);
    for rules in all_rules {
        casts.iter().for_each(|&cast| keeps(&of_request(Standard::Tile(Tile { cast, rules }))));
    }
}

#[test]
fn every_target_of_tosa_is_kept() {
    for version in tosa::Version::ALL {
        let target = tosa::Target::of(version);
        let enabled = tosa::Features::of(&[tosa::Feature::ProFp, tosa::Feature::ExtBf16]);
        let none = tosa::Features::NONE;
        let level = tosa::LevelLimit::None;
        for target in [
            target,
            tosa::Target { enabled, ..target },
            tosa::Target { enabled: none, ..target },
            tosa::Target { level, ..target },
        ] {
            for freedoms in ["strict", "flush", "toward-zero", "flush-bf16+toward-zero"] {
                keeps(&of_request(Standard::Tosa(tosa::Cast {
                    target,
                    freedoms: freedoms.parse().unwrap(),
                    ..tosa::Cast::to(DType::F32)
                })));
            }
        }
    }
    keeps(&of_request(Standard::OpenVino(openvino::Convert::to(DType::F32))));
}

#[test]
fn what_is_no_provenance_is_refused() {
    let good = Provenance::of(&Options::default()).to_json();
    for (field, value) in [
        ("spec", json!("iso")),
        ("spec", json!(null)),
        ("version", json!("99.9")),
        ("version", json!(28)),
        ("attributes", json!({ "heat": "high" })),
        ("attributes", json!({ "saturate": "perhaps" })),
        ("attributes", json!({ "saturate": 1 })),
        ("to", json!("f33")),
        ("from", json!(3)),
        ("rules", json!([{ "glob": "[", "to": null }])),
        ("rules", json!([{ "to": null }])),
        ("min_elements", json!(-1)),
        ("lenient", json!("yes")),
    ] {
        let mut bad = good.clone();
        bad[field] = value.clone();
        let error = Provenance::from_json(&bad).unwrap_err();
        let named = if ["spec", "version"].contains(&field) { vec![field, "attributes"] } else { vec![field] };
        assert!(named.contains(&error.field), "{field} = {value}: {error}");
    }
    for field in good.as_object().unwrap().keys() {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(field);
        assert!(Provenance::from_json(&bad).is_err(), "without {field}");
    }
    assert!(Provenance::from_json(&Value::Null).is_err());
}
