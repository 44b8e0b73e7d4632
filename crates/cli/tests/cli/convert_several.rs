//! `convert SRC.. FOLDER`: several sources into one folder.

use crate::run::Folder;
use truecast_testkit::npy::{npy, npy_parts};
use truecast_testkit::safetensors::{Parsed, f32s, one_tensor, safetensors};

fn arrays() -> Folder {
    let folder = Folder::with("a.npy", &npy("<f4", 2, &f32s(&[1.0, -2.0])));
    folder.write("b.safetensors", &one_tensor(&[0.5]));
    folder
}

fn names(folder: &Folder, inside: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path(inside)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn each_source_is_converted_as_if_alone() {
    let folder = arrays();
    folder.run("convert a.npy alone.npy --to f16").succeeds();
    let ran = folder.run("convert a.npy --to f16 b.safetensors new/out").succeeds();
    ran.says(&[
        "a.npy\noptions: --spec onnx@28 --to f16", "\n\nb.safetensors\noptions: --spec onnx@28 --to f16",
        "new/out/a.npy", "new/out/b.safetensors",
    ]);
    assert_eq!(names(&folder, "new/out"), ["a.npy", "b.safetensors"]);
    assert_eq!(folder.read("new/out/a.npy"), folder.read("alone.npy"));
    assert_eq!(Parsed::new(&folder.read("new/out/b.safetensors")).dtype("w"), "F16");
    let ran = folder.run("convert a.npy b.safetensors new/out --to bf16 --force --json").succeeds();
    let objects = serde_json::Deserializer::from_str(&ran.out).into_iter::<serde_json::Value>();
    let destinations: Vec<String> = objects.map(|object| object.unwrap()["destination"].to_string()).collect();
    assert_eq!(destinations, [r#""new/out/a.npy""#, r#""new/out/b.safetensors""#]);
    assert_eq!(npy_parts(&folder.read("new/out/a.npy")).0, "<V2");
    folder.run("convert a.npy b.safetensors dry --to f16 --dry-run").succeeds().says(&["dry run", "dry/a.npy"]);
    assert!(!folder.names().contains(&"dry".into()));
}

#[test]
fn folders_and_quantize() {
    let folder = arrays();
    std::fs::create_dir_all(folder.path("models/m")).unwrap();
    folder.write("models/m/model.safetensors", &one_tensor(&[1.0]));
    folder.run("convert models/m b.safetensors out --to f16").succeeds();
    assert!(names(&folder, "out/m").contains(&"model.safetensors".into()));
    folder.refused("convert models/m b.safetensors out --to f16", "destination-exists", &["out/m", "--force"]);
    folder.refused("convert models/m models/m/ out2 --to f16", "destination-exists", &["models/m and models/m"]);
    folder.refused("convert models/m .. out3 --to f16", "invalid-value", &["..: no name"]);
    let matrix = safetensors(&[("l.weight", "F32", &[16, 16], f32s(&[1.0; 256]))], &[]);
    ["x", "y"].iter().for_each(|name| folder.write(&format!("{name}.safetensors"), &matrix));
    folder.run("quantize x.safetensors y.safetensors q comfy:float8_e4m3fn").succeeds();
    folder.run("quantize x.safetensors alone.safetensors comfy:float8_e4m3fn").succeeds();
    assert_eq!(folder.read("q/y.safetensors"), folder.read("alone.safetensors"));
    folder.refused("quantize b.safetensors q", "missing-argument", &["SCHEME"]);
}

#[test]
fn a_source_that_fails() {
    let folder = arrays();
    folder.write("bad.npy", b"no array");
    folder.run("convert a.npy missing.npy out --to f16").exits(4).warns(&["missing.npy"]);
    assert!(!folder.path("out").exists());
    let ran = folder.run("convert bad.npy a.npy b.safetensors out --to f16").exits(3);
    ran.warns(&["bad.npy"]).says(&["out/b.safetensors"]);
    assert_eq!(names(&folder, "out"), ["a.npy", "b.safetensors"]);
    folder.run("convert bad.npy a.npy out --to bf16 --force --quiet").exits(3).warns(&["bad.npy"]);
    folder.run("convert a.npy b.safetensors out --to i8 --force --quiet --fail-on inexact").exits(1);
}
