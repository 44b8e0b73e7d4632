//! `formats`, compared with the decoder of the tests, and `inspect`.

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::formats::{FORMATS, NF4, TYPES};
use truecast_testkit::json::has;
use truecast_testkit::safetensors::{f32s, safetensors};

/// (type, bits, value of a code)
type Narrow = (String, u32, Box<dyn Fn(u64) -> f64>);

fn narrow_types() -> Vec<Narrow> {
    let mut all: Vec<Narrow> = Vec::new();
    for f in FORMATS.into_iter().filter(|f| f.bits() <= 8) {
        all.push((f.name.into(), f.bits(), Box::new(move |code| f.read(code).unwrap_or(f64::NAN))));
    }
    for bits in [1, 2, 4, 8] {
        let signed = move |code: u64| ((code << (64 - bits)) as i64 >> (64 - bits)) as f64;
        all.push((format!("i{bits}"), bits, Box::new(signed)));
    }
    for bits in [1, 2, 3, 4, 6, 8] {
        all.push((format!("u{bits}"), bits, Box::new(|code| code as f64)));
    }
    all.push(("bool".into(), 1, Box::new(|code| code as f64)));
    all.push(("mxint8".into(), 8, Box::new(|code| f64::from(code as u8 as i8) / 64.0)));
    all.push(("nf4".into(), 4, Box::new(|code| f32::from_bits(NF4[code as usize]).into())));
    all
}

fn number(value: &Value) -> f64 {
    value.as_str().unwrap().to_lowercase().parse().unwrap()
}

#[track_caller]
fn same(got: f64, expected: f64, what: &str) {
    let equal = (got.is_nan() && expected.is_nan()) || got.to_bits() == expected.to_bits();
    assert!(equal, "{what}: {got:e}, not {expected:e}");
}

#[test]
fn every_code_of_every_narrow_type() {
    let folder = Folder::new();
    for (name, bits, decode) in narrow_types() {
        let object = folder.run(&format!("formats {name} --json")).succeeds().object("formats");
        assert_eq!((&object["name"], &object["code_bits"]), (&json!(name), &json!(bits)));
        let codes = object["codes"].as_array().unwrap();
        assert_eq!(codes.len(), 1 << bits, "{name}");
        let digits = bits.div_ceil(4) as usize;
        for (code, entry) in codes.iter().enumerate() {
            assert_eq!(entry["bits"], format!("{code:#0width$x}", width = digits + 2), "{name}");
            same(number(&entry["value"]), decode(code as u64), &format!("{name} {code:#x}"));
        }
        for (what, entry) in object["special"].as_object().unwrap() {
            let code = u64::from_str_radix(&entry["bits"].as_str().unwrap()[2..], 16).unwrap();
            same(number(&entry["value"]), decode(code), &format!("{name} {what}"));
        }
    }
}

/// `docs/spec/onnx.md §2.3`, `docs/spec/p3109.md §1`.
#[test]
fn special_codes() {
    let folder = Folder::new();
    let object = |name: &str| folder.run(&format!("formats {name} --json")).succeeds().object("formats");
    let special = object("f8e4m3fn")["special"].clone();
    has(&special, &json!({ "largest_finite": { "bits": "0x7e", "value": "448" }, "NaN": { "bits": "0x7f" } }));
    assert!(special.get("infinity").is_none() && object("f4e2m1")["special"].get("NaN").is_none(), "{special}");
    let signed = object("Binary8p4se");
    has(&signed, &json!({ "name": "binary8p4se", "code_bits": 8, "storage_bits": null, "bias": 8, "names": {} }));
    let special = json!({
        "largest_finite": { "bits": "0x7e", "value": "224" }, "most_negative": { "bits": "0xfe", "value": "-224" },
        "infinity": { "bits": "0x7f" }, "negative_infinity": { "bits": "0xff" }, "NaN": { "bits": "0x80" },
        "smallest_subnormal": { "bits": "0x01", "value": "0.0009765625" }
    });
    has(&signed["special"], &special);
    assert_eq!(signed["codes"].as_array().unwrap().len(), 256);
    assert_eq!(signed["codes"][0x80]["value"], "NaN");
    // Powers of two: no subnormals, no sign, one infinity.
    let unsigned = object("binary8p1ue");
    has(&unsigned["special"], &json!({ "infinity": { "bits": "0xfe" }, "NaN": { "bits": "0xff" } }));
    has(&unsigned["special"], &json!({ "smallest_normal": { "bits": "0x01" }, "largest_finite": { "bits": "0xfd" } }));
    for absent in ["smallest_subnormal", "largest_subnormal", "negative_infinity", "negative_zero", "most_negative"] {
        assert!(unsigned["special"].get(absent).is_none(), "{absent}");
    }
    assert_eq!(object("binary16p8sf")["codes"], json!([]));
    let text = folder.run("formats binary8p4sf").succeeds().says(&["P3109", "(bias 8)", "240"]);
    assert!(text.out.starts_with("binary8p4sf: float, 8 bits"), "{}", text.out);
}

#[test]
fn the_list_has_every_type() {
    let folder = Folder::new();
    let text = folder.run("formats").succeeds().out;
    let object = folder.run("formats --json").succeeds().object("formats");
    let listed: Vec<&str> = object["types"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    for name in TYPES.split_whitespace() {
        assert!(text.lines().any(|l| l.split_whitespace().next() == Some(name)), "{name}");
        assert!(listed.contains(&name), "{name}");
        let detail = folder.run(&format!("formats {name}")).succeeds();
        assert!(detail.out.starts_with(name), "{}", detail.out);
    }
    folder.run("formats FLOAT8E4M3FN").succeeds();
    folder.run("formats zork").exits(2);
    let f32 = folder.run("formats f32 --json").succeeds().object("formats");
    has(&f32, &json!({ "codes": [], "exponent_bits": 8, "fraction_bits": 23, "bias": 127 }));
}

fn checkpoint() -> Folder {
    let values = [-3.5, 2.0, f32::NAN, f32::INFINITY, 0.0, -0.0, 1e-40];
    let tensors = [
        ("w", "F32", &[7u64][..], f32s(&values)),
        ("ids", "I32", &[2], vec![5, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]),
        ("f8", "F8_E4M3", &[2, 2], vec![0x7f, 0x01, 0x7e, 0x80]),
        ("none", "F32", &[0], vec![]),
        ("nans", "F16", &[1], vec![0x00, 0x7e]),
    ];
    Folder::with("a.safetensors", &safetensors(&tensors, &[("who", "me")]))
}

#[test]
fn inspect_lists_tensors() {
    let folder = checkpoint();
    let object = folder.run("inspect a.safetensors --json").succeeds().object("inspect");
    assert_eq!(object["metadata"], json!({ "who": "me" }));
    assert_eq!(object["file_bytes"], json!(folder.read("a.safetensors").len()));
    folder.run("inspect a.safetensors").succeeds().says(&["w", "f8e4m3fn", "[2, 2]", "who: me", "5 tensors"]);
}

#[test]
fn stats_against_data_made_by_hand() {
    let folder = checkpoint();
    let object = folder.run("inspect a.safetensors --stats --json").succeeds().object("inspect");
    let stats = |name: &str| {
        let rows = object["tensors"].as_array().unwrap();
        rows.iter().find(|r| r["name"] == name).unwrap()["stats"].clone()
    };
    let w = stats("w");
    has(&w, &json!({ "nan": 1, "inf": 1, "zero": 2, "subnormal": 1, "min": -3.5 }));
    let magnitudes = json!({ "first": 1, "counts": [1, 1], "every": 1 });
    has(&stats("ids"), &json!({ "min": -2.0, "max": 5.0, "nan": 0, "zero": 0, "magnitudes": magnitudes }));
    let nothing = json!({ "min": null, "max": null, "inf": 0, "subnormal": 0, "magnitudes": { "counts": [] } });
    ["none", "nans"].iter().for_each(|name| has(&stats(name), &nothing));
    folder.run("inspect a.safetensors --stats").succeeds().says(&["-3.5", "448"]);
}

#[test]
fn schemes_are_listed() {
    let folder = Folder::new();
    let text = folder.run("schemes").succeeds().out;
    let text = &text[text.find("\n  scheme ").unwrap() + 1..];
    let json = folder.run("schemes --json").succeeds().object("schemes");
    let schemes = json["schemes"].as_array().unwrap();
    assert_eq!(schemes.len(), truecast::scaled::Family::all().count());
    for scheme in schemes {
        let name = scheme["name"].as_str().unwrap();
        let line = text.lines().find(|line| line.trim().split(' ').next() == Some(name)).unwrap();
        let stored = scheme["stored"].as_str().unwrap();
        assert_eq!(line.find(&format!(" {stored}")), text.find(" codes, scale per"), "{line}");
        assert!(line.contains(scheme["written"].as_str().unwrap()), "{line}");
        let can_be_written = scheme["written"] != "no";
        let as_target = truecast::scaled::written_to_files().contains(&name) || scheme["written"] == "relayout";
        assert_eq!(can_be_written, as_target, "{name}");
    }
    for goal in json["goals"].as_array().unwrap() {
        let of = |field: &str| goal[field].as_str().unwrap();
        let line =
            folder.run("schemes").succeeds().out.lines().find(|line| line.starts_with(of("goal"))).unwrap().to_owned();
        assert!(line.contains(of("scheme")) && line.ends_with(of("loads_in")), "{line}");
        let bits = goal["bits"].as_f64().unwrap();
        assert!(line.contains(&format!(" {bits:.2} ")) && goal["usual_sqnr_db"].is_number(), "{line}");
    }
    for (name, stored, written, of) in [
        ("fp8-block", "e4m3, block 128x128", "yes", "DeepSeek, Qwen"),
        ("awq", "4 bits, group", "no", "AutoAWQ"),
        ("gguf:Q8_0", "8.5 bits, 32", "gguf", "llama.cpp"),
        ("gguf:Q4_K_M", "mostly Q4_K", "gguf", "llama.cpp"),
        ("mlx:mxfp4", "e2m1, 32", "relayout", "MLX"),
    ] {
        let scheme = schemes.iter().find(|scheme| scheme["name"] == name).unwrap();
        assert_eq!([&scheme["stored"], &scheme["written"], &scheme["used_by"]], [stored, written, of], "{name}");
    }
    assert_eq!(json["short_names"]["mxfp4"], "ct:mxfp4-pack-quantized");
    assert!(text.contains("short names") && folder.run("formats").succeeds().out.contains("truecast schemes"));
    folder.run("schemes int4-group").succeeds().says(&["ct:pack-quantized,bits=4", "group="]);
}
