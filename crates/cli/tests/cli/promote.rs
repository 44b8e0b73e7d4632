//! `promote`: `docs/interfaces.md §3, §6` and `docs/spec/openvino.md §2, §12`.

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::json::has;

fn promote(line: &str) -> String {
    Folder::new().run(&format!("promote {line}")).exits(0).out
}

fn promote_json(line: &str) -> Value {
    serde_json::from_str(&promote(&format!("{line} --json"))).unwrap()
}

/// Adds `--system openvino` unless a system is named.
fn by_one(line: &str) -> String {
    if line.contains("--system") || line.contains("--table") {
        line.into()
    } else {
        format!("{line} --system openvino")
    }
}

#[test]
fn one_system() {
    for (line, expected) in include_str!("promote.txt").lines().map(|row| row.split_once(" => ").unwrap()) {
        assert_eq!(promote(&by_one(line)), format!("{expected}\n"), "{line}");
    }
    let object = promote_json("u8 i8 --unsafe --system openvino");
    has(&object, &json!({ "command": "promote", "system": "openvino", "lhs": "u8", "rhs": "i8" }));
    assert_eq!((&object["result"], &object["weak"], &object["warnings"]), (&json!("i16"), &json!(false), &json!([])));
}

#[test]
fn the_names_that_are_printed() {
    let folder = Folder::new();
    for system in ["openvino", "numpy", "jax", "torch", "tensorflow"] {
        let table = promote_json(&format!("--table --system {system}"));
        let rows = table["rows"].as_array().unwrap();
        let diagonal: Vec<&Value> = rows.iter().filter(|row| row["lhs"] == row["rhs"]).collect();
        assert!(diagonal.len() > 10, "{system}");
        for row in diagonal {
            let name = row["lhs"].as_str().unwrap();
            let line = format!("promote {name} {name} --system {system} --json");
            match row["result"].as_str() {
                Some(result) => {
                    let one: Value = serde_json::from_str(&folder.run(&line).exits(0).out).unwrap();
                    assert_eq!((&one["result"], &one["lhs"]), (&json!(result), &json!(name)), "{line}");
                }
                None => {
                    let error = row["error"].as_str().unwrap();
                    let is_of_type = ["TC-PRM-01", "TC-PRM-08"].iter().any(|clause| error.contains(clause));
                    let code = if is_of_type { "unsupported-type" } else { "promotion-refused" };
                    folder.refused(&line, code, &[error]);
                }
            }
        }
    }
}

#[test]
fn lossy_pairs() {
    let folder = Folder::new();
    let ran = folder.run("promote u4 f8e5m2 --system openvino");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "f8e5m2\n"));
    assert_eq!(ran.err, "truecast: warning: u4 -> f8e5m2 does not keep every value of u4; --strict refuses it\n");
    assert_eq!(folder.run("promote u4 f8e5m2 --quiet --system openvino").err, "");
    assert_eq!(promote_json("u4 f8e5m2 --system openvino")["warnings"].as_array().unwrap().len(), 1);
    assert_eq!(folder.run("promote i64 f16 --unsafe --system openvino").err, "");
}

#[test]
fn side_by_side() {
    let text = promote("i32 f32");
    assert_eq!(text, promote("i32 f32 --system all"));
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|l| l.split_whitespace().collect()).collect();
    let expected: [&[&str]; 8] = [
        &["openvino", "2026.4.1", "safe", "-", "refused", "f32", "has"],
        &["openvino", "2026.4.1", "unsafe", "f32"],
        &["numpy", "2.4.6,", "ml_dtypes", "0.6.0", "f64", "differs"],
        &["jax", "0.10.2", "x64", "f32"],
        &["jax", "0.10.2", "no", "x64", "f32"],
        &["torch", "2.15.0", "f32"],
        &["tensorflow", "2.21.0", "all", "f32"],
        &["tensorflow", "2.21.0", "safe", "-", "refused", "no", "common"],
    ];
    assert_eq!(rows.len(), expected.len(), "{text}");
    for (row, expected) in rows.iter().zip(expected) {
        assert_eq!(&row[..expected.len()], expected, "{text}");
    }
    let results = promote_json("i32 f32 --system all")["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 8);
    assert_eq!(results[2]["result"], "f64");
    assert_eq!((&results[2]["differs"], &results[3]["differs"]), (&json!(true), &json!(false)));
    assert_eq!(results[0]["error"], "TC-PRM-02");
    assert_eq!(results[3]["version"], "0.10.2");
    assert_eq!(promote("u8 u8 --system all --unsafe --jax-x64 on --tensorflow-mode safe").lines().count(), 1 + 5);
    assert!(!promote("u8 u16 --system all").lines().any(|l| l.starts_with("numpy") && l.contains("differs")));
    assert!(promote("u3 u3 --system all").contains("numpy has no element type u3"));
}

/// If most systems refuse, the others differ. A system that lacks a type neither agrees nor differs.
#[test]
fn refusals_are_answers() {
    let marks = |line: &str| -> Vec<(String, bool)> {
        let results = promote_json(&format!("{line} --system all"))["results"].as_array().unwrap().clone();
        let said = |r: &Value| r["result"].as_str().or(r["error"].as_str()).unwrap().to_string();
        results.iter().map(|r| (said(r), r["differs"].as_bool().unwrap())).collect()
    };
    let all = marks("f8e4m3fn f16");
    assert_eq!(all.iter().filter(|(said, _)| said.starts_with("TC-PRM")).count(), 6, "{all:?}");
    for (said, differs) in &all {
        assert_eq!(*differs, !said.starts_with("TC-PRM"), "{all:?}");
    }
    let all = marks("u3 u3");
    assert!(all.iter().any(|(said, _)| said == "TC-PRM-08"));
    assert!(all.iter().all(|(said, differs)| said != "TC-PRM-08" || !differs), "{all:?}");
    let [first, rest @ ..] = &marks("u1 u8")[..] else { panic!() };
    assert_eq!((first.0.as_str(), first.1), ("u8", false));
    // Refusals and u8 are equally frequent, so u8 is the common answer.
    assert!(rest.iter().all(|(said, differs)| *differs == (said == "TC-PRM-09")), "{rest:?}");
}

/// OpenVINO has 26 types, including `dynamic` and the types that it refuses.
#[test]
fn tables() {
    let rows = promote_json("--table")["rows"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 26 * 26);
    let find = |rows: &[Value], lhs: &str, rhs: &str| -> Value {
        rows.iter().find(|r| r["lhs"] == lhs && r["rhs"] == rhs).unwrap_or_else(|| panic!("{lhs} {rhs}")).clone()
    };
    assert_eq!(find(&rows, "boolean", "f8e4m3")["result"], "f8e4m3");
    let refused = find(&rows, "f16", "bf16");
    assert_eq!((&refused["error"], refused["message"].is_string()), (&json!("TC-PRM-05"), true));
    let rows = promote_json("--table --unsafe --u64-target i64")["rows"].as_array().unwrap().clone();
    assert_eq!(find(&rows, "i8", "u64")["result"], "i64");

    let text = promote("--table");
    assert_eq!(text.lines().filter(|l| l.split_whitespace().count() == 27).count(), 26);
    assert!(text.contains("f8e5m2!") && text.contains("--strict refuses it"));
    assert!(promote("--table --system jax").contains("f64*"));
    assert!(promote("--table --system numpy").lines().next().unwrap().contains("f8e4m3b11fnuz"));

    let text = promote("--table --system all");
    let row = text.lines().find(|l| l.starts_with("i32 ") && l.split_whitespace().nth(1) == Some("f32")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["i32", "f32", "differ", "P2", "f32", "f64", "f32", "f32", "f32", "f32", "-"]
    );
}
