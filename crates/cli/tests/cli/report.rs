//! The report of `convert` (`docs/interfaces.md §6`, `docs/spec/checkpoints.md §10`), and `--fail-on`.

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::json::has;
use truecast_testkit::npy::npy;
use truecast_testkit::safetensors::{Parsed, f32s, one_tensor, safetensors};

#[test]
fn every_field_by_hand() {
    // To f8e4m3fn: 465 -> 448 saturated, 1 exact, 2^-9 subnormal, 1e-9 -> 0, NaN, 1.0625 -> 1 (a tie).
    let values = [465.0, 1.0, 0.001953125, 1e-9, f32::NAN, 1.0625];
    let integers = ("ids", "I32", &[1u64][..], vec![1, 0, 0, 0]);
    let tensors = [("w", "F32", &[2u64, 3][..], f32s(&values)), integers];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    let ran = folder.run("convert a.safetensors b.safetensors --to f8e4m3fn --json --report r.json").succeeds();
    let report = ran.object("convert");
    assert_eq!(folder.json("r.json"), report);
    assert_eq!(report["tensors"].as_array().unwrap().len(), 2);
    let row = &report["tensors"][0];
    let expected = json!({
        "name": "w", "shape": [2, 3], "from": "f32", "to": "f8e4m3fn", "elements": 6, "bytes_in": 24, "bytes_out": 6,
        "exact": 3, "inexact": 3, "saturated": 1, "wrapped": 0, "to_inf": 0, "to_nan": 0, "nan_in": 1, "nan_out": 1,
        "inf_in": 0, "zero_in": 0, "inf_out": 0, "flushed_to_zero": 1, "subnormal": 1, "sign_of_zero_lost": 0,
        "undefined": 0,
        "max_abs_error": 17.0, "index_max_abs": 0, "max_rel_error": 1.0, "lossless": false,
    });
    has(row, &expected);
    let of_one = ["name", "shape", "from", "to", "index_max_abs", "lossless"];
    for field in expected.as_object().unwrap().keys().filter(|field| !of_one.contains(&field.as_str())) {
        assert!(!report["total"]["converted"][field].is_null(), "total {field}");
    }
    // JSON has no infinity.
    let copied = json!({ "name": "ids", "from": "i32", "to": "i32", "exact": 1, "inexact": 0, "sqnr_db": "Infinity" });
    has(&report["tensors"][1], &copied);
    let total = &report["total"];
    has(total, &json!({ "elements": 7, "exact": 4, "inexact": 3, "bytes_in": 28, "bytes_out": 10 }));
    assert!(total["sqnr_db"].is_null(), "errors of weights and integers are not mixed");
    let of = |group: &str| [&total[group]["tensors"], &total[group]["elements"]].map(Value::clone);
    assert_eq!(
        [of("converted"), of("kept"), of("integers")],
        [[1, 6], [0, 0], [1, 1]].map(|two| two.map(|n| json!(n)))
    );
}

/// Rows: name of the count, options, source values, expected count.
const COUNTED: [(&str, &str, &[f32], u64); 7] = [
    ("saturated", "--to f8e4m3fn", &[465.0, -1e9, 1.0], 2),
    ("wrapped", "--to i8", &[300.0, 1.0], 1),
    ("to_nan", "--to f8e4m3fn --saturate false", &[465.0, 1.0], 1),
    ("to_inf", "--to f16", &[1e6, -1e6, 1.0], 2),
    ("flushed_to_zero", "--to f16", &[1e-30, 0.0, 1.0], 1),
    ("inexact", "--to f16", &[1.0001, 1.0, 0.1], 2),
    ("undefined", "--to i8", &[300.0, f32::NAN, 1.0], 2),
];

#[test]
fn fail_on_counts_and_keeps_the_output() {
    for (name, options, values, count) in COUNTED {
        let folder = Folder::with("a.npy", &npy("<f4", values.len(), &f32s(values)));
        let run = |limit: &str, code: i32| {
            let line = format!("convert a.npy b.npy {options} --fail-on {name}{limit} --report r.json --force --quiet");
            let ran = folder.run(&line).exits(code);
            assert!(folder.path("b.npy").exists() && folder.path("r.json").exists(), "{line}");
            assert_eq!(ran.err.lines().count(), code as usize, "{line}: {}", ran.err);
            ran
        };
        run("", 1).warns(&[format!("{name}: {count}, the limit is 0")]);
        run(&format!("={}", count - 1), 1);
        run(&format!("={count}"), 0);
    }
}

#[test]
fn several_limits() {
    let folder = Folder::with("a.npy", &npy("<f4", 2, &f32s(&[465.0, 1.0001])));
    let line = "convert a.npy b.npy --to f8e4m3fn --force --quiet";
    folder.run(&format!("{line} --fail-on nan --fail-on saturated=5,inexact=1")).exits(1);
    folder.run(&format!("{line} --fail-on nan,saturated=5 --fail-on inexact>2")).exits(0);
}

#[test]
fn the_report_file() {
    let folder = Folder::with("a.safetensors", &one_tensor(&[1.0]));
    folder.write("r.json", b"old");
    folder.refused("convert a.safetensors b.safetensors --to f16 --report r.json", "destination-exists", &["r.json"]);
    folder.refused("convert a.safetensors b.safetensors --to f16 --report no/r.json", "not-found", &["no/r.json"]);
    assert_eq!(folder.names(), ["a.safetensors", "r.json"]);
    folder.run("convert a.safetensors b.safetensors --to f16 --report r.json --force").succeeds();
    let report = folder.json("r.json");
    assert_eq!((&report["command"], &report["warnings"]), (&json!("convert"), &json!([])));
    assert_eq!(folder.names(), ["a.safetensors", "b.safetensors", "r.json"]);
    // Compares with the digest of `sha256sum` (`docs/spec/checkpoints.md §10`).
    let summed = std::process::Command::new("sha256sum").arg(folder.path("b.safetensors")).output().unwrap();
    let digest = String::from_utf8(summed.stdout).unwrap().split(' ').next().unwrap().to_string();
    let bytes = folder.read("b.safetensors").len();
    assert_eq!(report["outputs"], json!([{ "path": "b.safetensors", "bytes": bytes, "sha256": digest }]));
}

#[test]
fn warnings_are_part_of_the_report() {
    let folder = Folder::with("a.safetensors", &safetensors(&[("w", "F6_E2M3", &[4], vec![0, 0, 0])], &[]));
    let line = "convert a.safetensors b.safetensors --rule w=f32 --force";
    let said = folder.run(line).exits(0).err;
    assert!(said.starts_with("truecast: warning: ") && said.contains("no convention for F6"), "{said}");
    folder.run(&format!("{line} --quiet")).succeeds();
    for line in [line.to_string(), format!("{line} --dry-run")] {
        let warnings = folder.run(&format!("{line} --json")).succeeds().object("convert")["warnings"].clone();
        assert!(warnings[0].as_str().unwrap().contains("no convention for F6"), "{warnings}");
    }
}

#[test]
fn the_report_is_neither_source_nor_destination() {
    let folder = Folder::with("a.safetensors", &one_tensor(&[1.0]));
    let source = folder.read("a.safetensors");
    std::os::unix::fs::symlink("a.safetensors", folder.path("link.json")).unwrap();
    for report in ["a.safetensors", "./a.safetensors", "link.json"] {
        folder.run(&format!("convert a.safetensors b.safetensors --to f16 --report {report} --force")).exits(2);
        assert_eq!(folder.read("a.safetensors"), source, "{report}");
        assert!(!folder.path("b.safetensors").exists(), "{report}");
    }
    for force in ["", "--force"] {
        for report in ["b.safetensors", "./b.safetensors"] {
            folder.run(&format!("convert a.safetensors b.safetensors --to f16 --report {report} {force}")).exits(2);
            assert!(!folder.path("b.safetensors").exists(), "{report} {force}");
        }
    }
    folder.run("convert a.safetensors b.safetensors --to f16").succeeds();
    folder.run("convert a.safetensors b.safetensors --to f16 --report b.safetensors --force").exits(2);
    assert_eq!(Parsed::new(&folder.read("b.safetensors")).dtype("w"), "F16");
}

#[test]
fn how_the_result_came_about() {
    let tensors = [("w", "F32", &[1u64][..], f32s(&[1.0])), ("norm", "F32", &[1], f32s(&[2.0]))];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    let options = "--spec onnx@21 --saturate false --rule w=f8e5m2 --keep n* --to f8e4m3fn";
    let line = format!("convert a.safetensors b.safetensors {options} --force");
    let expected = json!({
        "spec": "onnx", "version": "21", "attributes": { "saturate": false }, "to": "f8e4m3fn", "from": null,
        "rules": [{ "glob": "w", "to": "f8e5m2" }, { "glob": "n*", "to": null }],
        "min_elements": 1024, "lenient": false, "follow_links": false
    });
    for more in ["", "--dry-run"] {
        let said = folder.run(&format!("{line} {more}")).exits(0).out;
        let first = "options: --spec onnx@21 --saturate false --to f8e4m3fn --rule w=f8e5m2 --keep 'n*'\n";
        assert!(said.starts_with(first), "{said}");
        assert_eq!(folder.run(&format!("{line} {more} --json")).succeeds().object("convert")["options"], expected);
    }
    folder.run(&format!("{line} --report r.json")).exits(0);
    assert_eq!(folder.json("r.json")["options"], expected);
}

#[test]
fn lost_values_are_seen() {
    let folder = Folder::with("a.npy", &npy("<f4", 4, &f32s(&[1e6, -3e38, 1.0001, 2.0])));
    for line in ["convert a.npy b.npy --to f16", "compare a.npy b.npy"] {
        let said = folder.run(line).exits(0).out;
        let (heading, row) = (said.lines().nth(1).unwrap(), said.lines().nth(2).unwrap());
        assert!(heading.contains("to inf") && heading.contains("left out"), "{said}");
        assert!(row.split_whitespace().filter(|cell| *cell == "2").count() >= 2, "{said}");
        assert!(row.contains('(') && !row.contains(" 0.99"), "{said}");
        assert!(said.contains("2 of 4 values became Inf"), "{said}");
        assert!(said.contains("( ): measured"), "{said}");
    }
    // An Inf of the source is not lost.
    folder.write("c.npy", &npy("<f4", 2, &f32s(&[f32::INFINITY, 1.0001])));
    folder.run("convert c.npy d.npy --to f16").exits(0).lacks(&["( ): measured"]);
    folder.write("e.npy", &npy("<f4", 2, &f32s(&[1e6, 2.0])));
    folder.run("convert e.npy f.npy --to f16").exits(0).says(&[" lost\n", "lost: no others differ"]);
}

#[test]
fn totals_have_a_row_for_each_group() {
    let tensors = [
        ("w", "F32", &[3u64][..], f32s(&[0.1, -0.3, 1e-9])),
        ("norm", "F32", &[2], f32s(&[1.5, 1e9])),
        ("ids", "I64", &[1], 511u64.to_le_bytes().to_vec()),
    ];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    for (line, groups) in [
        ("convert a.safetensors b.safetensors --to f8e4m3fn --keep norm", ["converted", "kept", "integers", "all"]),
        ("compare a.safetensors b.safetensors", ["types differ", "same types", "integers", "all"]),
    ] {
        folder.run(line).exits(0).says(&groups.map(|row| format!("\n{row} ")));
    }
}

/// Four layers of weights. One layer has biases that f8e4m3fn cannot represent.
fn layers() -> Folder {
    let (good, tiny) = (f32s(&[0.5, 0.75, 1.1, -2.3]), f32s(&[1e-5, -2e-5, 1.1e-5, 0.5e-5]));
    let names: Vec<(String, bool)> = (0..4)
        .flat_map(|i| {
            [(format!("l.{i}.weight"), false), (format!("l.{i}.bias"), i % 2 == 0), (format!("l.{i}.gain"), false)]
        })
        .collect();
    let tensors: Vec<_> = names
        .iter()
        .map(|(name, lost)| (name.as_str(), "F32", &[4u64][..], if *lost { tiny.clone() } else { good.clone() }))
        .collect();
    Folder::with("a.safetensors", &safetensors(&tensors, &[]))
}

#[test]
fn the_worst_tensors_are_named_and_can_be_kept() {
    let folder = layers();
    let line = "convert a.safetensors b.safetensors --to f8e4m3fn --force";
    let said = folder.run(line).exits(0).says(&["worst tensors: 2 of 12 changed tensors"]).out;
    let row = said.lines().find(|line| line.starts_with("  l.0.bias")).unwrap_or_else(|| panic!("{said}"));
    assert!(row.contains("SQNR 0.0 dB") && row.contains("4 of 4 nonzero values flushed to zero"), "{row}");
    let advice = said.lines().find(|line| line.contains("would leave")).unwrap().split(" would leave").next().unwrap();
    folder.run(&format!("{line} {}", advice.replace('\'', ""))).exits(0).lacks(&["worst tensors"]);
    let warnings = folder.run(&format!("{line} --json")).succeeds().object("convert")["warnings"].clone();
    let all: Vec<&str> = warnings.as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    let lost = "4 of 4 nonzero values flushed to zero";
    assert!(all.iter().any(|w| w.contains("l.2.bias") && w.contains(lost)), "{all:?}");
    assert!(all.iter().any(|w| w.contains("--keep") && w.ends_with("would leave them all unchanged")), "{all:?}");
    folder.run(&format!("{line} --worst 1")).exits(0).says(&["\n  l.0.bias", "and 1 more"]).lacks(&["\n  l.2.bias"]);
    assert!(!folder.run(&format!("{line} --worst 0")).exits(0).out.contains("worst tensors"));
    folder.run("compare a.safetensors b.safetensors").exits(0).says(&["\n  l.0.bias"]).lacks(&["--keep"]);
}

#[test]
fn small_floats_to_integers_are_warned_of() {
    let folder = Folder::with("a.npy", &npy("<f4", 4, &f32s(&[0.5, -0.25, 0.75, 1.0])));
    let ran = folder.run("convert a.npy b.npy --to i8").exits(0);
    ran.says(&["3 of 4 nonzero values became 0", "do not scale", "int8-channel"]);
    let object = folder.run("convert a.npy c.npy --to i8 --json").succeeds().object("convert");
    assert!(object["warnings"][0].as_str().unwrap().contains("do not scale"), "{}", object["warnings"]);
    let whole = Folder::with("a.npy", &npy("<f4", 2, &f32s(&[3.0, -4.0])));
    assert!(!whole.run("convert a.npy b.npy --to i8").exits(0).out.contains("scale"));
}

#[test]
fn lists_are_sorted_or_left_out() {
    let folder = layers();
    let line = "convert a.safetensors b.safetensors --to f8e4m3fn --force";
    let names = |options: &str| -> Vec<String> {
        let object = folder.run(&format!("{line} {options} --json")).succeeds().object("convert");
        let rows = object["tensors"].as_array().unwrap();
        rows.iter().map(|row| row["name"].as_str().unwrap().into()).collect()
    };
    let data_order = names("");
    let mut by_name = data_order.clone();
    by_name.sort();
    assert_eq!(names("--sort name"), by_name);
    for column in ["sqnr", "sqnr_db", "flushed_to_zero", "flushed"] {
        assert_eq!(names(&format!("--sort {column}"))[..2], ["l.0.bias", "l.2.bias"], "{column}");
    }
    assert_eq!(names("--sort size"), data_order);
    let text = folder.run(&format!("{line} --sort sqnr")).exits(0).out;
    assert!(text.lines().nth(2).unwrap().starts_with("l.0.bias"), "{text}");
    folder.run(&format!("{line} --summary")).exits(0).says(&["converted"]).lacks(&["l.0.weight"]);
    let object = folder.run(&format!("{line} --summary --json")).succeeds().object("convert");
    assert!(object["tensors"].is_null() && object["total"]["tensors"] == 12, "{object}");
    folder.run(&format!("{line} --summary --report r.json")).exits(0);
    assert_eq!(folder.json("r.json")["tensors"].as_array().unwrap().len(), 12);
    folder.refused(&format!("{line} --sort heat"), "invalid-value", &["--sort", "heat"]);
    folder.run(&format!("{line} --sort name --summary")).exits(0).says(&["12 tensors"]).lacks(&["\nl.0.key"]);
    folder.refused(&format!("{line} --dry-run --sort sqnr"), "inapplicable-option", &["--dry-run"]);
    folder.refused(&format!("{line} --dry-run --worst 1"), "inapplicable-option", &["--worst"]);
    folder.refused("compare a.safetensors b.safetensors --sort saturated", "inapplicable-option", &["convert"]);
    folder
        .run("compare a.safetensors b.safetensors --sort sqnr --summary --worst 1")
        .exits(0)
        .says(&["largest error ["]);
}

/// Reports from other programs: invalid digest, output that is a folder.
#[test]
fn outputs_of_a_report_that_are_none() {
    let folder = Folder::with("a.safetensors", &safetensors(&[("w", "F32", &[1u64][..], f32s(&[1.0]))], &[]));
    std::fs::create_dir(folder.path("folder.safetensors")).unwrap();
    folder.run("convert a.safetensors b.safetensors --to f16 --report r.json --quiet").succeeds();
    folder.run("verify a.safetensors b.safetensors --report r.json").succeeds();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut report = folder.json("r.json");
        change(&mut report["outputs"][0]);
        folder.write("changed.json", report.to_string().as_bytes());
        folder.run("verify a.safetensors b.safetensors --report changed.json")
    };
    let (short, upper) = ("0".repeat(63), "A".repeat(64));
    for digest in ["\u{1b}]0;title\u{7}\u{1b}[31mred", "", &short, &upper] {
        let ran = changed(&|output| output["sha256"] = json!(digest));
        ran.fails(3, &["changed.json: not a report of a conversion: sha256 is not 64 hexadecimal digits"]);
    }
    let bytes = folder.read("b.safetensors").len();
    let said = format!("; the report has {bytes} bytes with 000");
    changed(&|output| output["sha256"] = json!("0".repeat(64))).exits(1).says(&[&said]);
    let mut report = folder.json("r.json");
    let mut other = report["outputs"][0].clone();
    other["path"] = json!("folder.safetensors");
    report["outputs"].as_array_mut().unwrap().push(other);
    folder.write("changed.json", report.to_string().as_bytes());
    folder.refused("verify a.safetensors b.safetensors --report changed.json", "missing-file", &["folder.safetensors"]);
}

/// Approximately normal values: sums of twelve uniform values.
fn normal(n: usize, deviation: f32, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut even = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..n).map(|_| ((0..12).map(|_| even()).sum::<f32>() - 6.0) * deviation).collect()
}

/// The usual loss of a format names no tensor; a larger loss does (`docs/interfaces.md` §3).
#[test]
fn what_every_tensor_loses_is_not_much() {
    let folder = Folder::new();
    let good = normal(64 * 256, 0.02, 1);
    // In `small`, all values are far below the smallest step of FP8. In `spiked`, each group has one value so large
    // that all other values vanish.
    let small: Vec<f32> = normal(64 * 256, 1e-4, 2);
    let spiked: Vec<f32> =
        normal(64 * 256, 0.02, 3).iter().enumerate().map(|(i, x)| if i % 16 == 0 { 4.0 } else { *x }).collect();
    let shape = &[64u64, 256][..];
    let file = |bad: &[f32]| {
        safetensors(&[("a.weight", "F32", shape, f32s(&good)), ("b.weight", "F32", shape, f32s(bad))], &[])
    };
    let named = |line: &str| {
        let warnings =
            folder.run(&format!("{line} --json")).exits(0).object(line.split(' ').next().unwrap())["warnings"].clone();
        let all = warnings.as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_string());
        all.filter(|w| w.starts_with("tensor \"") && (w.contains("SQNR") || w.contains("flushed"))).collect::<Vec<_>>()
    };
    for (options, bad) in [
        ("--to bf16", None),
        ("--to f16", None),
        ("--to f8e4m3fn", Some(&small)),
        ("--to f8e5m2", None),
        ("--scheme fp8-block", None),
        ("--scheme mxfp8", None),
        ("--scheme mxfp4", Some(&spiked)),
        ("--scheme mxfp4 --mx-scale floor", Some(&spiked)),
        ("--scheme nvfp4", Some(&spiked)),
        ("--scheme int4-group", Some(&spiked)),
        ("--scheme int4-channel", Some(&spiked)),
        ("--scheme int8-channel", None),
    ] {
        folder.write("m/model.safetensors", &file(&good));
        let line = format!("convert m out --force {options} --quantize *.weight");
        let line = if options.contains("scheme") { line } else { line.replace(" --quantize *.weight", "") };
        assert_eq!(named(&line), [""; 0], "{options}");
        assert_eq!(named("compare m out"), [""; 0], "{options}");
        if let Some(bad) = bad {
            folder.write("m/model.safetensors", &file(bad));
            let (of_convert, of_compare) = (named(&line), named("compare m out"));
            for named in [of_convert, of_compare] {
                assert!(matches!(&named[..], [one] if one.contains("b.weight")), "{options}: {named:?}");
            }
        }
    }
}

/// A high ratio of signal to noise may hide a loss: the verdict also considers zeros.
#[test]
fn a_normal_ratio_does_not_hide_zeros() {
    let folder = Folder::new();
    let good = normal(64 * 256, 0.02, 1);
    let of = |f: &dyn Fn(usize, f32) -> f32| -> Vec<f32> {
        normal(64 * 256, 0.02, 4).iter().enumerate().map(|(i, x)| f(i, *x)).collect()
    };
    let tiny = of(&|i, x| if i % 16 < 5 { x * 1e-3 } else { x });
    // Two rows of blocks are far below the largest scale of the tensor.
    let uneven = of(&|i, x| if i < 512 { x * 1e-7 } else { x });
    let sparse = of(&|i, x| if i % 16 == 0 { x } else { 0.0 });
    // `b` comes first in the file, so that order does not put `a` first.
    let shape = &[64u64, 256][..];
    for (bad, named) in [
        (&tiny, "not normal for modelopt:W4A16_NVFP4: tensor \"a.weight\": 3"),
        (&uneven, "not normal for modelopt:W4A16_NVFP4: tensor \"a.weight\": 3.1 % of the blocks became zero"),
        (&sparse, "dB over 1 tensor, more than 24.5 dB: most values of the source are zeros"),
    ] {
        let is_lost = named.starts_with("not normal");
        let all = [("b.weight", "F32", shape, f32s(&good)), ("a.weight", "F32", shape, f32s(bad))];
        let all = if is_lost { &all[..] } else { &all[1..] };
        folder.write("m/model.safetensors", &safetensors(all, &[]));
        let ran =
            folder.run("convert m out --force --scheme modelopt:W4A16_NVFP4 --quantize *.weight --worst 2").exits(0);
        let out = ran.says(&[named]).out;
        if is_lost {
            let rows: Vec<&str> = out.lines().filter(|line| line.starts_with("  ")).collect();
            assert!(rows[0].starts_with("  a.weight") && rows[1].starts_with("  b.weight"), "{out}");
        }
    }
}

/// The verdict states the ratio of the usual tensor, whatever the size of others' values.
#[test]
fn large_values_of_one_tensor_hide_no_others() {
    let large: Vec<f32> = vec![240.0; 64];
    let large = [&large[..], &[239.0]].concat();
    let [a, b] = [1, 2].map(|seed| f32s(&normal(4096, 0.02, seed)));
    let tensors =
        [("a", "F32", &[4096u64][..], a), ("b", "F32", &[4096][..], b), ("large", "F32", &[65][..], f32s(&large))];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    let ran = folder.run("convert a.safetensors b.safetensors --to f8e5m2").succeeds();
    let verdict = ran.out.lines().find(|line| line.starts_with("normal for")).unwrap_or_else(|| panic!("{}", ran.out));
    assert!(
        verdict.starts_with("normal for f8e5m2: 25.") && verdict.ends_with("dB, the median of 3 tensors"),
        "{verdict}"
    );
}

#[test]
fn fail_on_measures() {
    let tensors = [
        ("good", "F32", &[2u64][..], f32s(&[1.0, 2.0])),
        ("noisy", "F32", &[2][..], f32s(&[1.1, 2.3])),
        ("lost", "F32", &[2][..], f32s(&[1.0, 1e9])),
    ];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors[..2], &[]));
    folder.write("l.safetensors", &safetensors(&tensors, &[]));
    let run = |file: &str, limit: &str| {
        folder.run_args(["convert", file, "b.safetensors", "--to", "f16", "--force", "--quiet", "--fail-on", limit])
    };
    run("a.safetensors", "sqnr_db<40,cosine<0.9,rmse>1,max_abs_error>1,max_rel_error>0.1").exits(0);
    for (limit, than) in [("sqnr_db<200", "less than 200"), ("rmse>0", "more than 0"), ("cosine<1", "less than 1")] {
        let said = ["--fail-on", " of tensor \"noisy\" is ", than, "the result was written"];
        run("a.safetensors", limit).fails(1, &said);
    }
    let lost = "tensor \"lost\" is not measured, for values became Inf or NaN";
    run("l.safetensors", "rmse>1e30").fails(1, &[lost]).lacks(&["other tensor"]);
    run("l.safetensors", "max_abs_error>1e-9").fails(1, &[lost, "; 1 other tensor too"]);
    folder.run_args(["compare", "a.safetensors", "b.safetensors", "--quiet", "--fail-on", "sqnr_db<200"]).exits(1);
}

#[test]
fn the_worst_that_lost_little() {
    let tensors = [
        ("a", "F32", &[1u64][..], f32s(&[1.1])),
        ("b", "F32", &[1][..], f32s(&[1.003])),
        ("c", "F32", &[1][..], f32s(&[1.0])),
    ];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    let convert = "convert a.safetensors b.safetensors --to bf16 --force --summary";
    folder.run(convert).succeeds().lacks(&["worst tensors"]);
    let ran = folder.run(&format!("{convert} --worst 2")).succeeds();
    ran.says(&["worst tensors: none of 3 changed tensors lost much", "  a ", "  b ", "SQNR "]).lacks(&["  c "]);
    assert_eq!(folder.run(&format!("{convert} --worst 2 --json")).object("convert")["warnings"], json!([]));
}

#[test]
fn a_conversion_that_changes_nothing_says_so() {
    let folder = Folder::with("a.safetensors", &one_tensor(&[1.0]));
    let convert = "convert a.safetensors b.safetensors --force";
    let ran = folder.run_args(["convert", "a.safetensors", "b.safetensors", "--to", "bf16", "--keep", "*"]).exits(0);
    ran.warns(&["every tensor is kept: type bf16 changes nothing"]);
    folder.run(&format!("{convert} --to f16")).succeeds();
}
