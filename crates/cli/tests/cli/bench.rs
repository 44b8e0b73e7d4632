//! `bench`: structure of the output (`docs/interfaces.md §3, §6`); the speed is not tested.

use crate::run::{Folder, Ran};
use serde_json::Value;
use truecast_testkit::json::has;

const SHORT: &str = "--sizes l2 --best-of 1 --threads 1";

fn rows(object: &Value) -> &Vec<Value> {
    object["rows"].as_array().unwrap()
}

fn measured(options: &str) -> Value {
    Folder::new().run(&format!("bench {options} --json")).succeeds().object("bench")
}

#[track_caller]
fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"))
}

#[test]
fn rows_of_json() {
    let object = measured(&format!("--pairs f32:bf16,f4e2m1:i8 {SHORT}"));
    let pairs: Vec<_> = rows(&object).iter().map(|row| [&row["src"], &row["dst"]]).collect();
    assert_eq!(pairs, [["f32", "bf16"], ["f4e2m1", "i8"]]);
    for (row, bytes_of_two) in rows(&object).iter().zip([12.0, 3.0]) {
        has(row, &serde_json::json!({ "size": "l2", "threads": 1 }));
        assert!(["baseline", "avx2", "avx512", "neon"].contains(&row["level"].as_str().unwrap()), "{row}");
        let (gbps, memcpy) = (number(row, "gbps"), number(row, "memcpy_gbps"));
        assert!(gbps > 0.0 && memcpy > 0.0, "{row}");
        assert!((number(row, "ratio") / (gbps / memcpy) - 1.0).abs() < 0.01, "{row}");
        let limit = number(row, "limit_gbps");
        assert!((number(row, "of_limit") / (gbps / limit) - 1.0).abs() < 0.01, "{row}");
        // The two arrays together take half of L2, apart from the last tile.
        let bytes = number(row, "elements") * bytes_of_two / 2.0;
        let half = number(&object, "l2_bytes") / 2.0;
        assert!(bytes <= half && bytes > half - 65536.0, "{row}");
    }
}

#[test]
fn every_pair_at_every_size() {
    let object = measured("--pairs f32:bf16,bool:u8 --sizes 96KiB,l2 --best-of 1 --threads 2");
    let seen: Vec<_> = rows(&object).iter().map(|row| [&row["src"], &row["size"]]).collect();
    assert_eq!(seen, [["f32", "96KiB"], ["f32", "l2"], ["bool", "96KiB"], ["bool", "l2"]]);
    assert!(rows(&object).iter().all(|row| row["threads"] == 2));
    assert_eq!(number(&rows(&object)[0], "elements"), 16384.0);
}

#[test]
fn the_table_for_people() {
    let ran = Folder::new().run(&format!("bench --pairs f32:f8e4m3fn,i4:bf16 {SHORT}")).succeeds();
    let lines: Vec<_> = ran.out.lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let titles = "from to size elements route GB/s limit of limit memcpy of memcpy";
    assert_eq!(words(lines[0]).join(" "), titles);
    assert_eq!(words(lines[1])[..3], ["f32", "f8e4m3fn", "l2"]);
    assert_eq!(words(lines[2])[..3], ["i4", "bf16", "l2"]);
    assert!(words(lines[2]).iter().skip(5).all(|cell| cell.parse::<f64>().is_ok()), "{}", ran.out);
    assert!(lines.last().unwrap().contains("1 thread, best of 1"), "{}", ran.out);
}

#[test]
fn representative_pairs_and_all_pairs() {
    let pairs = |options: &str| {
        let object = measured(&format!("{options} {SHORT}"));
        let pair = |row: &Value| format!("{} {}", row["src"].as_str().unwrap(), row["dst"].as_str().unwrap());
        rows(&object).iter().map(pair).collect::<Vec<_>>()
    };
    let representative = pairs("");
    assert!(representative.len() > 20 && representative.contains(&"f32 f8e4m3fn".into()), "{representative:?}");
    // Opset 1 has twelve types (docs/spec/onnx.md §1.2).
    let all = pairs("--pairs all --spec onnx@1");
    assert!(all.contains(&"f16 f64".to_string()) && all.contains(&"bool i8".to_string()), "{all:?}");
    assert!(!all.iter().any(|p| p.contains("f8") || p.contains("bf16") || p.contains("string")), "{all:?}");
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!([all.len(), distinct.len()], [12 * 12; 2]);
}

#[test]
fn levels_of_this_cpu_and_others() {
    let line = format!("bench --pairs f32:f16 {SHORT} --json");
    let by_option = |level: &str| Folder::new().run(&format!("{line} --level {level}"));
    let by_variable = |level: &str| {
        let folder = Folder::new();
        let mut command = folder.command();
        Ran::new(level.into(), command.env("TRUECAST_LEVEL", level).args(line.split_whitespace()).output().unwrap())
    };
    for run in [&by_option as &dyn Fn(&str) -> Ran, &by_variable] {
        assert_eq!(rows(&run("baseline").succeeds().object("bench"))[0]["level"], "baseline");
        run("sse9").exits(2).warns(&["baseline"]);
    }
    for level in ["avx2", "avx512", "neon"] {
        match by_option(level) {
            ran if ran.code == Some(0) => assert_eq!(rows(&ran.object("bench"))[0]["level"], level),
            ran => drop(ran.exits(2).warns(&["baseline"])),
        }
    }
}

#[test]
fn policies_are_those_of_convert() {
    let folder = Folder::new();
    let line = format!("bench --pairs f32:f8e4m3fn {SHORT}");
    folder.run(&format!("{line} --saturate false")).succeeds();
    folder.run(&format!("{line} --spec ieee --rounding toward-zero --nan canonical")).succeeds();
    // ONNX has no tf32; the error names a specification with tf32.
    folder.refused(&format!("bench --pairs f32:tf32 {SHORT}"), "unsupported-type", &["f32 to tf32", "--spec ieee"]);
    folder.run(&format!("bench --pairs f32:tf32 {SHORT} --spec ieee")).succeeds();
    folder.refused(
        &format!("bench --pairs f32:i8 {SHORT} --spec ieee --int-overflow error"),
        "refused-value",
        &["f32 to i8"],
    );
}

#[test]
fn what_cannot_be_measured() {
    let folder = Folder::new();
    folder.run("bench --pairs string:f32 --sizes l2").exits(3);
    folder.run(&format!("bench --pairs ov:f8e4m3:f32 {SHORT}")).succeeds();
}

#[test]
fn buffers_that_do_not_fit() {
    let line = "bench --pairs f64:f32 --sizes dram --threads 1 --json";
    let ran = Folder::new().run_after("ulimit -v 400000", line).exits(4);
    let error: Value = serde_json::from_str(&ran.err).unwrap();
    assert!(error["error"].as_str().unwrap().contains("--sizes"), "{error}");
}
