//! `explain`.

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::formats::TYPES;
use truecast_testkit::json::has;

#[track_caller]
fn explained(line: &str) -> Value {
    Folder::new().run(&format!("explain {line} --json")).succeeds().object("explain")
}

/// Specification, attributes, bits and value of every result.
fn results(object: &Value) -> Vec<[String; 4]> {
    let text = |v: &Value| v.as_str().unwrap().to_string();
    let row = |r: &Value| [text(&r["spec"]), text(&r["attributes"]), text(&r["bits"]), text(&r["value"])];
    object["results"].as_array().unwrap().iter().map(row).collect()
}

#[track_caller]
fn result(object: &Value, spec: &str, attributes: &str) -> (String, String) {
    let all = results(object);
    let found = all.iter().find(|r| r[0] == spec && r[1] == attributes);
    let [_, _, bits, value] = found.unwrap_or_else(|| panic!("no {spec} {attributes} in {all:?}"));
    (bits.clone(), value.clone())
}

fn pair(bits: &str, value: &str) -> (String, String) {
    (bits.into(), value.into())
}

#[test]
fn the_value_of_the_acceptance_line() {
    let ran = Folder::new().run("explain 465 --to f8e4m3fn --clauses").succeeds();
    let line = |words: &[&str]| {
        let found = ran.out.lines().any(|l| words.iter().all(|w| l.contains(w)));
        assert!(found, "no line with {words:?} in\n{}", ran.out);
    };
    line(&["onnx@28", "saturate=1", "0x7e", "448"]);
    line(&["onnx@28", "saturate=0", "0x7f", "nan"]);
    line(&["below     448                  0x7e         0.53125  0     1111 110"]);
    line(&["next      465.000030517578125  0x43e88001            0 10000111 11010001000000000000001"]);
    line(&["beyond", "480", "0x7f is nan", "0.46875"]);
    line(&["tie at 464", "even code 0x7e"]);
    line(&["2 answers  f8e4m3fn  names"]);
    line(&["nan        0x7f      onnx:saturate=0, tosa, openvino, "]);
    line(&["448        0x7e      onnx:saturate=1, "]);
    line(&["open       -         stablehlo"]);
    assert_eq!(Folder::new().run("explain 465 --to f8e4m3fn --wide").succeeds().out, ran.out);

    let object = explained("465 --to f8e4m3fn");
    assert_eq!(result(&object, "onnx", "saturate=1"), pair("0x7e", "448"));
    let below = json!({ "bits": "0x7e", "value": "448" });
    let beyond = json!({ "value": "480", "code": { "bits": "0x7f" } });
    let near = json!({ "below": below, "above": Value::Null, "beyond": beyond, "midpoint": "464" });
    has(&object["neighbors"], &near);
    for row in object["results"].as_array().unwrap() {
        for field in ["spec", "version", "attributes", "to", "bits", "value", "undefined", "clause"] {
            assert!(row.get(field).is_some(), "no {field} in {row}");
        }
        assert_eq!(row["to"], "f8e4m3fn");
        assert!(!row["clause"].as_str().unwrap().is_empty());
    }
}

#[test]
fn answers_come_first() {
    let folder = Folder::new();
    let lines = |line: &str| {
        let out = folder.run(&format!("explain {line}")).succeeds().out;
        out.lines().filter(|line| !line.is_empty()).map(String::from).collect::<Vec<_>>()
    };
    let of_465 = lines("465 --to f8e4m3fn");
    let [input, line, numbers, heading, saturated, nan, open, more] = &of_465[..] else { panic!("{of_465:?}") };
    assert_eq!(input, "f32 465 = 0x43e88000 = 0 10000111 11010001000000000000000");
    assert_eq!(line, "0x7e |---------------+*--------------| 0x7f is nan");
    assert_eq!(numbers, "448 < 464 (midpoint) < 465 < 480");
    assert!(heading.starts_with("2 answers ") && open.starts_with("open "), "{of_465:?}");
    assert!(saturated.starts_with("448 ") && saturated.contains(" 0x7e ") && saturated.contains("torch@2.15"));
    assert!(nan.starts_with("nan ") && nan.contains(" 0x7f ") && nan.contains("torch@2.11"));
    assert!(more.contains("--clauses"), "{more}");
    for (value, [first, second]) in [
        ("0.25 --to f4e2m1", ["0x0 |---------------*---------------| 0x1", "0 < 0.25 (midpoint) < 0.5"]),
        ("241 --to f8e4m3fnuz", ["0x7f |-*-------------+---------------| no code", "240 < 241 < 248 (midpoint) < 256"]),
        ("-0.25 --to u8", ["no code |---------------+-------*-------| 0x00", "-1 < -0.5 (midpoint) < -0.25 < 0"]),
        (
            "-465 --to f8e4m3fn",
            ["0xff is -nan |--------------*+---------------| 0xfe", "-480 < -465 < -464 (midpoint) < -448"],
        ),
        (
            "464.0000000000000000001 --from string --to f8e4m3fn",
            [
                "0x7e |---------------+*--------------| 0x7f is nan",
                "448 < 464 (midpoint) < 464.0000000000000000001 < 480",
            ],
        ),
    ] {
        assert_eq!(lines(value)[1..3], [first, second], "{value}");
    }
    assert!(lines("inf --to f16").iter().any(|line| line.starts_with("not rounded")));
    let object = explained("1 --to f16");
    let specs = object["results"].as_array().unwrap().iter().map(|row| row["spec"].as_str().unwrap());
    let names = specs.collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(lines("1 --to f16")[2], format!("all {names} names agree: 0x3c00 = 1"));
    assert_eq!(lines("1 --to f16 --spec onnx")[2], "onnx: 0x3c00 = 1");
    assert_eq!(lines("300 --to i8 --spec onnx")[2], "onnx: open 0x2c = 44");
}

#[test]
fn different_answers_have_different_labels() {
    for line in
        ["3 --to f8e8m0", "465 --to f8e4m3fn", "nan --to i32", "0.75 --to f4e2m1", "70000 --to f16", "-0 --to f8e8m0"]
    {
        let object = explained(line);
        let answers = object["answers"].as_array().unwrap();
        let given: Vec<_> = answers.iter().map(|answer| (&answer["bits"], &answer["value"])).collect();
        let labels: Vec<&Value> = answers.iter().flat_map(|answer| answer["labels"].as_array().unwrap()).collect();
        assert!((0..given.len()).all(|at| !given[..at].contains(&given[at])), "{line}: {given:?}");
        assert!((0..labels.len()).all(|at| !labels[..at].contains(&labels[at])), "{line}: {labels:?}");
        let defined = object["results"].as_array().unwrap().iter().filter(|result| result["undefined"].is_null());
        let is_given = |result: &Value| given.iter().any(|(_, value)| **value == result["value"]);
        assert!(defined.into_iter().all(is_given), "{line}");
    }
    let answers = &explained("3 --to f8e8m0 --spec onnx")["answers"];
    let labels = json!(["onnx:round_mode=up", "onnx:round_mode=nearest"]);
    assert_eq!(answers[0], json!({ "bits": "0x81", "value": "4", "labels": labels }));
    assert_eq!(answers[1], json!({ "bits": "0x80", "value": "2", "labels": ["onnx:round_mode=down"] }));
    // Before opset 24, `saturate=1` leaves the results of infinities open.
    let labels = explained("inf --to f8e4m3fnuz")["answers"].to_string();
    assert!(
        ["onnx@28:saturate=1", "onnx:saturate=0", "onnx@23:saturate=1"].iter().all(|l| labels.contains(l)),
        "{labels}"
    );
    Folder::new().run("explain 1 --to f16").succeeds().lacks(&["answer"]);
}

#[test]
fn bits_and_decimals_as_input() {
    for row in include_str!("source_bits.txt").lines() {
        let (line, bits) = row.split_once(" => ").unwrap();
        let (bits, rounded) = bits.split_once(' ').map_or((bits, false), |(bits, _)| (bits, true));
        let object = explained(line);
        assert_eq!(object["source"]["bits"], bits, "{line}");
        assert_eq!(object["source"]["rounded"], rounded, "{line}");
    }
}

#[test]
fn results_by_value() {
    for row in include_str!("results.txt").lines() {
        let [line, spec, attributes, bits, value] = row.split(" | ").collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(result(&explained(line), spec, attributes), pair(bits, value), "{line}");
    }
    for (line, attributes, bits) in [
        ("1.0001 --to f16 --spec ieee --rounding up", "rounding=up", "0x3c01"),
        ("465 --to f8e4m3fn --spec onnx@23 --saturate false", "saturate=0", "0x7f"),
        ("300 --to i8 --spec tile --profile hw", "profile=hw", "0x2c"),
        ("inf --to f8e5m2 --spec tile --tile-option preserve_inf", "profile=spec, preserve_inf", "0x7c"),
    ] {
        let all = results(&explained(line));
        assert_eq!(all.len(), 1, "{line}: {all:?}");
        assert_eq!([all[0][1].as_str(), all[0][2].as_str()], [attributes, bits], "{line}");
    }
    // Undefined results, with the clause: onnx.md §4.11 U1, U2, U4.
    for (line, row) in [("300 --to i8", "U1"), ("-1 --to f8e8m0", "U2"), ("nan --to f4e2m1", "U4")] {
        let object = explained(line);
        let undefined = object["results"][0]["undefined"].as_str().unwrap_or_default();
        assert!(undefined.contains(row), "{line}: {undefined:?}");
    }
    assert_eq!(explained("1 --to i8")["results"][0]["undefined"], Value::Null);
    assert_eq!(explained("nan --to f16")["source"]["exact"], "NaN");
}

#[test]
fn neighbors_and_ties() {
    for row in include_str!("neighbors.txt").lines() {
        let [line, expected, decision] = row.split(" => ").collect::<Vec<_>>().try_into().unwrap();
        let near = &explained(line)["neighbors"];
        let value = |found: &Value| found.get("value").unwrap_or(found).as_str().unwrap_or("-").to_string();
        assert_eq!(["below", "above", "midpoint"].map(|at| value(&near[at])).join(" "), expected, "{line}");
        assert!(near["decision"].as_str().unwrap().ends_with(decision), "{line}: {}", near["decision"]);
    }
    assert_eq!(explained("300 --to i8")["neighbors"]["beyond"], json!({ "value": "128", "code": null }));
    assert_eq!(explained("1e30 --to u64")["neighbors"]["beyond"]["value"], "18446744073709551616");
}

#[test]
fn reading_is_not_converting() {
    let out = Folder::new().run("explain 0.1 --to f32").succeeds().out;
    assert!(out.contains("\n0.1 rounded to f32 when it was read; the f32 is larger by 1.49e-9 (0.2 ulp)"), "{out}");
    assert!(out.contains("exact: 0.1 rounded to f32 is a value of f32"), "{out}");
    let source = &explained("0.1 --to f32")["source"];
    assert_eq!((&source["rounded"], &source["previous"]["bits"]), (&json!(true), &json!("0x3dcccccc")));
    assert!(source["error_ulp"].as_f64().unwrap() < 0.5);
    assert!(explained("0.5 --to f32")["source"].get("error").is_none());
}

/// Expected digits: Python's `fractions.Fraction`.
#[test]
fn what_reading_lost_has_right_digits() {
    for (line, says) in include_str!("reading.txt").lines().map(|row| row.split_once(" => ").unwrap()) {
        let out = Folder::new().run(&format!("explain {line} --to f32")).succeeds().out;
        let second = out.lines().nth(1).unwrap();
        assert!(second.contains(&format!("{says} ")), "{line}: {second}");
    }
    let tiny = explained("5e-324 --from f64 --to f32");
    assert_eq!(tiny["source"]["error"], "5.9343541587534558e-326");
    assert_eq!(explained("0.1 --from f64 --to f32")["source"]["error"].as_f64(), Some(-5.551115123125783e-18));
}

#[test]
fn rules_in_words() {
    for (line, words) in include_str!("decisions.txt").lines().map(|row| row.split_once(" => ").unwrap()) {
        let object = explained(line);
        let said = object["neighbors"]["decision"].as_str().unwrap();
        assert!(said.contains(words), "{line}: {said}");
        let clauses = object["results"].as_array().unwrap().iter().map(|r| r["clause"].as_str().unwrap());
        let is_float = ["bf16", "f32", "f8e"].iter().any(|to| line.contains(to)) || line.contains("--spec");
        assert!(is_float || !clauses.clone().any(|c| c.contains("§5.4") || c.contains("§7.4")), "{line}");
    }
    assert_eq!(
        explained("0x7f800001 --to bf16")["source"]["nan"],
        json!({ "negative": false, "quiet": false, "payload": "0x1" })
    );
}

#[test]
fn long_values() {
    let folder = Folder::new();
    let short = folder.run("explain 1e-300 --from f64 --to f32").succeeds().out;
    assert!(short.contains("1.0000000000000000250590…e-300, 750 digits"), "{short}");
    let lines = |text: &str| text.lines().filter(|line| !line.contains("onnx, ")).map(|l| l.chars().count()).max();
    assert!(lines(&short) <= Some(160), "{short}");
    let exact = folder.run("explain 1e-300 --from f64 --to f32 --exact").succeeds().out;
    assert!(exact.lines().any(|line| line.chars().count() > 1000) && !exact.contains('…'), "{exact}");
    let value = explained("0.1 --to f32")["results"][0]["value"].clone();
    assert_eq!(value, "0.100000001490116119384765625");
}

#[test]
fn who_lacks_the_pair() {
    let out = Folder::new().run("explain 300 --to u8 --clauses").succeeds().out;
    assert!(out.lines().any(|line| line.starts_with("tosa ") && line.ends_with("no u8")), "{out}");
    let of_draft = explained("1 --from f32 --to bool");
    let absent = &of_draft["absent"][0];
    assert_eq!((&absent["spec"], &absent["version"]), (&json!("tosa"), &json!("1.0")));
    assert!(of_draft["results"].as_array().unwrap().iter().any(|r| r["spec"] == "tosa" && r["version"] == "1.1"));
    // C and Rust lack the type, and CDNA 3 has other types; RISC-V converts f32.
    let line = "465 --to f8e4m3fn";
    let all = explained(line)["absent"].clone();
    let absent = |spec: &str| all.as_array().unwrap().iter().find(|one| one["spec"] == spec).cloned();
    for (spec, version) in [("c", ""), ("rust", ""), ("numpy", ""), ("amd", "cdna3")] {
        let right = json!({ "spec": spec, "version": version, "why": "no f32 to f8e4m3fn" });
        assert_eq!(absent(spec), Some(right), "{all}");
    }
    assert!(["riscv", "torch", "ptx"].iter().all(|spec| absent(spec).is_none()), "{all}");
    let out = Folder::new().run(&format!("explain {line} --clauses")).succeeds().out;
    assert!(out.contains("\nno such conversion: c, rust, ") && out.contains(", amd@cdna3, numpy"), "{out}");
    Folder::new().run(&format!("explain {line} --spec riscv --clauses")).succeeds().lacks(&["no such conversion"]);
}

#[test]
fn every_pair_at_the_edges() {
    let types = TYPES.split_whitespace().filter(|name| !["string", "c64"].contains(name));
    let folder = Folder::new();
    for to in types.clone() {
        for value in
            ["0x0", "0x1", "0x7fefffffffffffff", "0x8000000000000001", "0xc07d100000000000", "0x3f40000000000001"]
        {
            folder.run(&format!("explain {value} --from f64 --to {to}")).succeeds().says(&["--clauses"]);
        }
    }
    for from in types {
        folder.run(&format!("explain 0x1 --from {from} --to f8e5m3fnu")).succeeds();
        folder.run(&format!("explain 0x1 --from {from} --to f64")).succeeds();
    }
}

/// An older version is listed only if its result differs (`docs/spec/onnx.md §5`, row 1).
#[test]
fn one_specification_or_what_versions_differ_in() {
    let versions = |line: &str| {
        let object = explained(line);
        let rows = object["results"].as_array().unwrap().clone();
        let text = |v: &Value| v.as_str().unwrap_or_default().to_string();
        let own =
            rows.iter().filter(|r| ["onnx", "tosa", "openvino", "tile", "ieee"].contains(&text(&r["spec"]).as_str()));
        own.map(|r| format!("{}@{}", text(&r["spec"]), text(&r["version"]))).collect::<Vec<_>>()
    };
    assert_eq!(versions("inf --to f8e4m3fnuz"), ["onnx@28", "onnx@23", "onnx@28", "ieee@", "ieee@"]);
    assert_eq!(versions("241 --to f8e4m3fnuz"), ["onnx@28", "onnx@28", "ieee@", "ieee@"]);
    assert_eq!(versions("inf --to f8e4m3fnuz --spec onnx@21"), ["onnx@21", "onnx@21"]);
    assert_eq!(versions("inf --to f8e4m3fnuz --spec onnx"), ["onnx@28", "onnx@28"]);
    assert_eq!(versions("1 --to f16 --spec ieee"), ["ieee@", "ieee@"]);
    assert_eq!(versions("inf --from string --to f8e4m3fnuz"), ["onnx@28", "onnx@23", "onnx@28", "ieee@", "ieee@"]);
    assert_eq!(versions("1 --to string --spec onnx@9"), ["onnx@9"]);
    let older = &explained("inf --to f8e4m3fnuz --spec onnx@23")["results"][0];
    assert!(older["undefined"].as_str().unwrap().contains("U6"));
}

/// All digits of the text are used (`docs/spec/onnx.md §5`, row 24).
#[test]
fn text_is_not_rounded_first() {
    let tie = explained("464.0000000000000000001 --from string --to f8e4m3fn");
    assert_eq!(result(&tie, "onnx", "saturate=0"), pair("0x7f", "NaN"));
    assert_eq!(result(&tie, "onnx", "saturate=1"), pair("0x7e", "448"));
    assert!(tie["neighbors"]["decision"].as_str().unwrap().contains("rounds beyond the largest finite value"));
    assert_eq!(tie["source"]["exact"], "464.0000000000000000001");
    let wide = explained("18446744073709551617 --from string --to u64");
    assert_eq!(result(&wide, "onnx", "").0, "0x0000000000000001");
    assert!(wide["results"][0]["undefined"].as_str().unwrap().contains("U8"));
    let truth = explained("TRUE --from string --to bool");
    assert_eq!(result(&truth, "onnx", "").1, "1");
}

/// `docs/spec/onnx.md §6.3`.
#[test]
fn elements_as_text() {
    for (line, text) in [
        ("0x3b200000 --to string", "0.0024414062"),
        ("65504 --from f16 --to string", "65500.0"),
        ("448 --from f8e4m3fn --to string", "448.0"),
        ("-8 --from i4 --to string", "-8"),
        ("1 --from bool --to string", "True"),
    ] {
        let object = explained(line);
        let rows = object["results"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["value"] == text), "{line}: {rows:?}");
        assert_eq!(object["known_differences"], json!([]));
        assert!(rows[0]["spec"] == "onnx" && rows[0]["undefined"].as_str().unwrap().contains("U9"));
    }
    Folder::new().run("explain 0.1 --to string").succeeds().says(&["0.1 rounded to f32", "UNDEFINED"]);
}

#[test]
fn a_number_beyond_the_source_is_said_to_be() {
    let folder = Folder::new();
    let f32 = "is out of the range of f32 (largest 3.40e38) and was read as inf";
    for (line, said, others) in [
        ("1e40 --to f16", f32, "; --from f64 or --from string takes it"),
        ("1e400 --to f64", f32, "; --from string takes it"),
        ("-1e6 --to f32 --from f16", "(largest 65504) and was read as -inf", "; --from f32 or --from f64 or"),
        ("1000 --to f16 --from f8e4m3fn", "(largest 448) and was read as nan", "; --from f32 or"),
        ("1_0e40 --to f16", f32, "; --from f64 takes it"),
    ] {
        let number = line.split(' ').next().unwrap();
        let out = folder.run(&format!("explain {line}")).succeeds().out;
        let is_it = |line: &str| line.starts_with(number) && line.contains(&format!("{said}{others}"));
        assert!(out.lines().any(is_it), "{line}: {out}");
    }
    for line in ["inf --to f16", "1e38 --to f16", "-1 --to f16 --from f8e8m0"] {
        assert!(!folder.run(&format!("explain {line}")).out.contains("out of the range"), "{line}");
    }
}

#[test]
fn every_type_at_once() {
    let folder = Folder::new();
    let ran = folder.run("explain 0.1").succeeds();
    let ran = ran
        .says(&["0x3dcccccd          0.100000001490116119384765625 ", " 1.49e-9\n", "\nf8e4m3fn "])
        .lacks(&["\ni8 "]);
    assert!(ran.out.lines().count() <= 24, "{}", ran.out);
    let object = folder.run("explain 0.1 --json").succeeds().object("explain");
    let of = |object: &Value, dtype: &str| {
        object["types"].as_array().unwrap().iter().find(|row| row["dtype"] == dtype).unwrap().clone()
    };
    for (dtype, bits) in [("f64", "0x3fb999999999999a"), ("f32", "0x3dcccccd"), ("f16", "0x2e66"), ("f8e4m3fn", "0x1d")]
    {
        assert_eq!(of(&object, dtype)["bits"], bits, "{dtype}");
    }
    assert!(of(&object, "f32")["error"].as_f64().unwrap() > 1.4e-9);
    let object = folder.run("explain 0.1 --from f32 --json").succeeds().object("explain");
    assert_eq!(
        (&of(&object, "f64")["bits"], &of(&object, "f32")["exact"]),
        (&json!("0x3fb99999a0000000"), &json!(true))
    );
    let out = folder.run("explain 300").succeeds().out;
    let rows: Vec<String> = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in ["i8 - out of range", "i16 0x012c 300 exact", "f16 0x5cb0 300 exact", "f8e4m3fn 0x79 288 -1.20e1"] {
        assert!(rows.iter().any(|found| found == row), "{row}: {out}");
    }
    folder.run("explain nan").succeeds().says(&["f16 ", "nan"]);
    folder.run("explain 0x7e --from f8e4m3fn").succeeds().says(&["448"]);
}

/// `docs/spec/p3109.md §3`: each rounding with each saturation.
#[test]
fn projections_of_p3109() {
    let folder = Folder::new();
    let rows = |line: &str| {
        let out = folder.run(&format!("explain {line}")).succeeds().out;
        out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let is_there = |rows: &[String], row: &str| assert!(rows.iter().any(|found| found == row), "{row}: {rows:?}");
    let beyond = rows("465 --to binary8p4se");
    is_there(&beyond, "below 224 0x7e 15.0625 0 1111 110");
    is_there(&beyond, "beyond 240 0x7f is inf 14.0625");
    is_there(&beyond, "NearestTiesToEven 0x7e 224 0x7e 224 0x7f inf");
    is_there(&beyond, "TowardZero 0x7e 224 0x7e 224 0x7e 224");
    // Infinity remains infinity, unless it saturates.
    is_there(&rows("0x7f --from binary8p3se --to binary8p4se"), "TowardZero 0x7e 224 0x7f inf 0x7f inf");
    let negative = rows("-1 --to binary8p4ue");
    is_there(&negative, "NearestTiesToEven 0x00 0 0x00 0 0xff nan");
    is_there(&negative, "TowardPositive 0x00 0 0x00 0 0x00 0");
    // 1.03125 is a quarter of the step from 1 to 1.125; the random number has 2 bits.
    let random = rows("1.03125 --to binary8p4se --random-bits 2/2");
    is_there(&random, "StochasticA 2/2 0x40 1 0x40 1 0x40 1");
    is_there(&rows("1.03125 --to binary8p4se --random-bits 3/2"), "StochasticB 3/2 0x41 1.125 0x41 1.125 0x41 1.125");

    // The typed number is just above the tie between 16 and 18. Rounded to f32, the number is the tie.
    let even = "rounding=NearestTiesToEven, saturation=SatNone";
    // Exponents of 15 bits, with a bias of 2^14.
    for (value, code, is) in [("0x1p-10000", 16384 - 10000, "0x1p-10000"), ("1e4000", 16384 + 13288, "0x1p+13288")] {
        let object = explained(&format!("{value} --to binary16p1se"));
        let made = result(&object, "p3109", even);
        assert_eq!(made.0, format!("{code:#06x}"), "{value} {is}: {made:?}");
    }
    let object = explained("17.00000000000000000000001 --to binary8p4se");
    assert_eq!(result(&object, "p3109", even), pair("0x61", "18"));
    has(&object, &json!({ "from": null, "to": "binary8p4se", "source": { "exact": "17.00000000000000000000001" } }));
    has(&object["neighbors"], &json!({ "below": { "bits": "0x60", "value": "16" }, "midpoint": "17" }));
    let object = explained("17.00000000000000000000001 --from f64 --to binary8p4se");
    assert_eq!((result(&object, "p3109", even), &object["from"]), (pair("0x60", "16"), &json!("f64")));
    for row in object["results"].as_array().unwrap() {
        has(row, &json!({ "version": "4.0", "group": "standards", "to": "binary8p4se", "undefined": null }));
        assert!(row["clause"].as_str().unwrap().contains("§4.7"));
    }
    assert_eq!(object["results"].as_array().unwrap().len(), 18);
    assert_eq!(result(&explained("nan --to binary8p4se"), "p3109", even), pair("0x80", "NaN"));
    folder.run("explain 0x7d --from binary8p4se").succeeds().says(&["208"]);
}
