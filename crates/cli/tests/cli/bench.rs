//! `bench`: structure of the output (`docs/interfaces.md §3, §6`); the speed is not tested.

use crate::run::Folder;
use serde_json::Value;
use truecast_testkit::json::has;

const SHORT: &str = "--sizes l2 --best-of 1 --threads 1";

fn rows(object: &Value) -> &Vec<Value> {
    object["rows"].as_array().unwrap()
}

#[track_caller]
fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"))
}

#[test]
fn rows_of_json() {
    let ran = Folder::new().run(&format!("bench --pairs f32:bf16,f4e2m1:i8 {SHORT} --json")).succeeds();
    let object = ran.object("bench");
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
    let line = "bench --pairs i8:f32,bool:u8 --sizes llc,l2 --best-of 1 --threads 2 --json";
    let object = Folder::new().run(line).succeeds().object("bench");
    let seen: Vec<_> = rows(&object).iter().map(|row| [&row["src"], &row["size"]]).collect();
    assert_eq!(seen, [["i8", "llc"], ["i8", "l2"], ["bool", "llc"], ["bool", "l2"]]);
    for row in rows(&object) {
        assert_eq!(row["threads"], 2);
    }
}

#[test]
fn sizes_in_bytes() {
    let line = "bench --pairs f32:bf16 --sizes 3MiB,96KiB --best-of 1 --threads 1 --json";
    let object = Folder::new().run(line).succeeds().object("bench");
    let seen: Vec<_> =
        rows(&object).iter().map(|row| (row["size"].as_str().unwrap(), number(row, "elements"))).collect();
    assert_eq!(seen, [("3MiB", 3.0 * 1048576.0 / 6.0), ("96KiB", 16384.0)]);
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
    let folder = Folder::new();
    let pairs = |options: &str| {
        let object = folder.run(&format!("bench {options} {SHORT} --json")).succeeds().object("bench");
        let pair = |row: &Value| format!("{} {}", row["src"].as_str().unwrap(), row["dst"].as_str().unwrap());
        rows(&object).iter().map(pair).collect::<Vec<_>>()
    };
    let representative = pairs("");
    for pair in ["f32 f8e4m3fn", "f8e4m3fn f32", "f32 f4e2m1", "i4 bf16", "i64 f8e4m3fn", "f64 f32", "f8e5m2 bf16"] {
        assert!(representative.iter().any(|p| p == pair), "{pair}");
    }
    // Opset 1 has twelve types (docs/spec/onnx.md §1.2).
    let all = pairs("--pairs all --spec onnx@1");
    assert!(all.contains(&"f16 f64".to_string()) && all.contains(&"bool i8".to_string()), "{all:?}");
    assert!(!all.iter().any(|p| p.contains("f8") || p.contains("bf16") || p.contains("string")), "{all:?}");
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!([all.len(), distinct.len()], [12 * 12; 2]);
}

#[test]
fn levels_of_this_cpu_and_others() {
    let folder = Folder::new();
    let run = |level: &str| folder.run(&format!("bench --pairs f32:f16 {SHORT} --level {level} --json"));
    assert_eq!(rows(&run("baseline").succeeds().object("bench"))[0]["level"], "baseline");
    for level in ["avx2", "avx512", "neon"] {
        match run(level) {
            ran if ran.code == Some(0) => assert_eq!(rows(&ran.object("bench"))[0]["level"], level),
            ran => assert!(ran.exits(2).err.contains("baseline")),
        }
    }
    run("sse9").exits(2);
}

#[test]
fn policies_are_those_of_convert() {
    let folder = Folder::new();
    let line = format!("bench --pairs f32:f8e4m3fn {SHORT}");
    folder.run(&format!("{line} --saturate false")).succeeds();
    folder.run(&format!("{line} --spec ieee --rounding toward-zero --nan canonical")).succeeds();
    folder.refused(&format!("{line} --rounding toward-zero"), "inapplicable-option", &["--rounding", "ieee"]);
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
fn environment_names_the_level() {
    let line = format!("bench --pairs f32:bf16 {SHORT} --json");
    let run = |level: &str| {
        let folder = Folder::new();
        folder.command().env("TRUECAST_LEVEL", level).args(line.split_whitespace()).output().unwrap()
    };
    let made = run("baseline");
    let object: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(object["rows"][0]["level"], "baseline");
    let refused = run("avx9");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("baseline"), "{refused:?}");
}

#[test]
fn what_cannot_be_measured() {
    let folder = Folder::new();
    folder.refused("bench --pairs f32:zork", "unknown-type", &["f32:zork", "zork"]);
    folder.refused("bench --pairs f32", "invalid-value", &["f32", "SRC:DST"]);
    folder.refused("bench --pairs f32:f8e4m3", "ambiguous-type", &["ambiguous", "f8e4m3fn"]);
    folder.refused("bench --sizes l9", "invalid-value", &["l9", "l2, llc, dram", "512MiB"]);
    folder.refused("bench --sizes 0MiB", "invalid-value", &["0MiB", "0 bytes"]);
    folder.refused("bench --best-of 0", "invalid-value", &["best-of"]);
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
