//! Reports as pages and as Markdown, and the magnitudes that pages show (`docs/interfaces.md §3, §6.1`).

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::json::has;
use truecast_testkit::safetensors::{f32s, safetensors};

const ODD: &str = "</script><script>alert(1)</script>|`\u{202e}";

fn folder() -> Folder {
    let values = [465.0, 1.0, 0.75, 1e-9, f32::NAN, f32::INFINITY, 0.0];
    let tensors =
        [("w", "F32", &[7u64][..], f32s(&values)), (ODD, "F32", &[1], f32s(&[1.5])), ("none", "F32", &[0], vec![])];
    Folder::with("a.safetensors", &safetensors(&tensors, &[]))
}

/// The JSON in a page.
#[track_caller]
fn in_page(folder: &Folder, name: &str) -> Value {
    let page = String::from_utf8(folder.read(name)).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "text of a file is in an element");
    assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("://"), "a page asks nothing of others");
    let (_, rest) = page.split_once("id=\"report\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_page_has_the_report_with_magnitudes() {
    let folder = folder();
    folder.run("convert a.safetensors b.safetensors --to f8e4m3fn --report r.html").succeeds();
    let report = in_page(&folder, "r.html");
    assert_eq!(report["command"], "convert");
    assert!(report["verdict"].as_str().unwrap().contains("f8e4m3fn"));
    assert_eq!(report["worst_tensors"][0]["name"], "w");
    // 465 and infinity become 448. NumPy counts the powers in tests/python/test_report.py.
    let magnitudes = &report["tensors"][0]["magnitudes"];
    has(&magnitudes["from"], &json!({ "first": -30, "zero": 1, "nan": 1, "inf": 1 }));
    assert_eq!(
        magnitudes["to"],
        json!({ "first": -1, "counts": [1, 1, 0, 0, 0, 0, 0, 0, 0, 2], "zero": 2, "nan": 1, "inf": 0 })
    );
    assert_eq!(report["tensors"][1]["name"], ODD);
    assert_eq!(report["tensors"][2].get("magnitudes"), None);
}

#[test]
fn json_has_magnitudes_only_if_asked() {
    let folder = folder();
    folder.run("convert a.safetensors b.safetensors --to bf16 --report r.json").succeeds();
    assert_eq!(folder.json("r.json")["tensors"][0].get("magnitudes"), None);
    folder.run("convert a.safetensors b.safetensors --to bf16 --force --report r.json --magnitudes").succeeds();
    folder.run("report r.json -o r.html").succeeds().says(&["r.html"]);
    assert_eq!(in_page(&folder, "r.html"), folder.json("r.json"));
    folder.refused("report r.json -o r.html", "destination-exists", &["r.html"]);
    folder.run("report r.json -o r.html --force").succeeds();
    let unmeasured = "convert a.safetensors c.safetensors --to bf16 --measure off --report r.json --force --magnitudes";
    folder.run(unmeasured).succeeds();
    assert_eq!(folder.json("r.json")["tensors"][0].get("magnitudes"), None);
    // The report still gives `verify` its options.
    folder.run("verify a.safetensors c.safetensors --report r.json").succeeds();
}

#[test]
fn compare_and_verify_write_pages() {
    let folder = folder();
    folder.run("convert a.safetensors b.safetensors --to f8e4m3fn").succeeds();
    folder.run("compare a.safetensors b.safetensors --report c.html").succeeds();
    let compared = in_page(&folder, "c.html");
    assert!(compared["verdict"].as_str().unwrap().contains("different: "));
    assert_eq!(compared["tensors"][0]["magnitudes"]["to"]["zero"], 2);
    folder.run("compare a.safetensors b.safetensors --report c.json").succeeds();
    assert_eq!(folder.json("c.json")["tensors"][0].get("magnitudes"), None);
    folder.refused("compare a.safetensors b.safetensors --report c.json", "destination-exists", &["c.json"]);
    folder.run("verify a.safetensors b.safetensors --report v.html").succeeds();
    assert_eq!(in_page(&folder, "v.html")["verdict"], "verified: 3 tensors, 8 elements recomputed");
    assert_eq!(in_page(&folder, "v.html")["destination"], "b.safetensors");
    folder.refused("verify a.safetensors b.safetensors --report v.html", "destination-exists", &["v.html"]);
    folder.run("verify a.safetensors b.safetensors --report v.html --force").succeeds();
    folder.run("verify a.safetensors b.safetensors --to bf16 --report v.md").exits(1);
    let text = String::from_utf8(folder.read("v.md")).unwrap();
    assert!(text.contains("**DIFFERENT: "), "{text}");
}

#[test]
fn markdown_is_a_table() {
    let folder = folder();
    folder.run("convert a.safetensors b.safetensors --to f8e4m3fn --report r.md").succeeds();
    folder.run("convert a.safetensors b.safetensors --to f8e4m3fn --report r.json --force").succeeds();
    folder.run("report r.json -o again.md").succeeds();
    let text = String::from_utf8(folder.read("r.md")).unwrap();
    for line in [
        "| source | `a.safetensors` |", "| options | `--spec onnx@28 --to f8e4m3fn` |",
        "| types | f32 → f8e4m3fn (3 tensors) |", "| worst tensors |",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("<script"), "{text}");
    assert_eq!(String::from_utf8(folder.read("again.md")).unwrap(), text);
}

#[test]
fn what_is_not_a_report_is_refused() {
    let folder = folder();
    for text in
        ["", "[]", "{}", "{\"truecast\": 1, \"command\": \"convert\"}", "{\"truecast\": \"0\", \"command\": \"x\"}"]
    {
        folder.write("r.json", text.as_bytes());
        folder.refused("report r.json -o r.html", "malformed-file", &["r.json"]);
    }
    folder.refused("report r.json -o r.txt", "unsuitable-destination", &[".html or .md"]);
    folder.refused("report none.json -o r.html", "not-found", &["none.json"]);
    // A page shows a report without the usual fields.
    let odd =
        json!({ "truecast": "0", "command": "compare", "first": 5, "tensors": [null, { "name": 7 }], "total": 3 });
    folder.write("r.json", odd.to_string().as_bytes());
    folder.run("report r.json -o r.html").succeeds();
    folder.run("report r.json -o r.md").succeeds();
}

/// A report never replaces a file that is read.
#[test]
fn inputs_are_kept() {
    let folder = folder();
    folder.run("convert a.safetensors b.safetensors --to bf16 --report r.json").succeeds();
    folder.write("r.md", &folder.read("r.json"));
    for (line, input) in [
        ("compare a.safetensors b.safetensors --report a.safetensors --force", "a.safetensors"),
        ("report r.md -o r.md --force", "r.md"),
    ] {
        let before = folder.read(input);
        folder.refused(line, "unsuitable-destination", &[input]);
        assert_eq!(folder.read(input), before, "{line}");
    }
    let before = folder.read("r.json");
    folder.run("report r.json -o r.md --force").succeeds();
    assert_eq!(folder.read("r.json"), before);
}
