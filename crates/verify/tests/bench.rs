//! `verify bench`: the lines that it prints, never the speed.

use std::process::Command;

/// The fields of each line; `None` if the program fails.
fn bench(line: &str) -> Option<Vec<Vec<String>>> {
    let args = ["--level", "baseline", "bench"].into_iter().chain(line.split(' '));
    let ran = Command::new(env!("CARGO_BIN_EXE_verify")).args(args).output().unwrap();
    let lines = String::from_utf8(ran.stdout).unwrap();
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect();
    ran.status.success().then(|| lines.lines().map(fields).collect())
}

#[test]
fn routes() {
    let lines = bench("routes --pairs f32:f32,f8e5m2:f16").unwrap();
    assert_eq!(lines, [["f32", "f32", "baseline", "copy"], ["f8e5m2", "f16", "baseline", "table8"]]);
    assert!(bench("routes").unwrap().len() > 50);
    assert_eq!(bench("routes --pairs f32:zork"), None);
    assert_eq!(bench("routes --pairs string:f32"), None);
}

#[test]
fn counts() {
    let lines = bench("counts --pairs f32:f16,f16:f32 --size l2 --best-of 1").unwrap();
    for (line, pair) in lines.iter().zip([["f32", "f16"], ["f16", "f32"]]) {
        assert_eq!(line[..3], [pair[0], pair[1], "baseline"]);
        assert!(line[3..].iter().all(|number| number.parse::<f64>().unwrap() > 0.0), "{line:?}");
    }
    assert_eq!(lines.len(), 2);
}

/// Always in the order of the list; layouts that are written, both ways.
#[test]
fn scaled() {
    let lines = bench("scaled awq fp8-tensor --best-of 1").unwrap();
    let seen: Vec<_> = lines.iter().map(|line| [&line[0], &line[1]]).collect();
    assert_eq!(seen, [["fp8-tensor", "to bf16"], ["fp8-tensor", "from bf16"], ["awq", "to bf16"]]);
    assert!(lines.iter().all(|line| line[3].parse::<f64>().unwrap() > 0.0), "{lines:?}");
    assert_eq!(bench("scaled fp9"), None);
}
