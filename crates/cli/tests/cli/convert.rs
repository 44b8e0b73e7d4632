//! `convert`: results, and options that do not change values.

use crate::run::Folder;
use serde_json::{Value, json};
use truecast_testkit::npy::{array, npy, npy_parts};
use truecast_testkit::safetensors::{Parsed, f32s, one_tensor, safetensors};

#[test]
fn narrow_floats_fill_whole_bytes() {
    let folder = Folder::with("odd.safetensors", &safetensors(&[("w", "F32", &[2, 3], f32s(&[0.0; 6]))], &[]));
    folder.refused("convert odd.safetensors o.safetensors --to f4e2m1", "shape-mismatch", &["\"w\"", "odd"]);
    folder.write("five.safetensors", &one_tensor(&[0.0; 5]));
    folder.refused("convert five.safetensors o.safetensors --to f6e2m3", "shape-mismatch", &["\"w\""]);
    assert_eq!(folder.names(), ["five.safetensors", "odd.safetensors"]);
}

/// `truecast.options` records the run. The name of the tensor that is kept comes first, since its type has the widest
/// elements (`docs/spec/checkpoints.md §1.5`).
#[test]
fn metadata_records_the_options() {
    let tensors = [("z", "F32", &[1u64][..], f32s(&[1.0])), ("a", "F32", &[1], f32s(&[2.0]))];
    let folder = Folder::with("a.safetensors", &safetensors(&tensors, &[]));
    folder.run("convert a.safetensors b.safetensors --to bf16 --keep a").succeeds();
    let result = Parsed::new(&folder.read("b.safetensors"));
    assert_eq!(result.names(), ["a", "z"]);
    let options: Value = serde_json::from_str(result.metadata()["truecast.options"].as_str().unwrap()).unwrap();
    assert_eq!((&options["to"], &options["rules"][0]["glob"]), (&json!("bf16"), &json!("a")));
}

#[test]
fn a_file_without_tensors() {
    let folder = Folder::with("none.safetensors", &safetensors(&[], &[]));
    folder.run("convert none.safetensors n.safetensors --to f16").succeeds();
    assert!(Parsed::new(&folder.read("n.safetensors")).names().is_empty());
}

#[test]
fn between_containers() {
    // interfaces.md §4: an array in safetensors keeps its name or is `data`. One tensor becomes .npy, several become
    // .npz.
    let folder = Folder::with("a.npy", &npy("<f4", 2, &f32s(&[1.0, 2.0])));
    folder.run("convert a.npy b.safetensors --to f16").succeeds();
    let result = Parsed::new(&folder.read("b.safetensors"));
    assert_eq!((result.names(), result.dtype("data")), (vec!["data"], "F16"));
    folder.run("convert b.safetensors c.npy --to f32").succeeds();
    assert_eq!(folder.read("c.npy")[128..], f32s(&[1.0, 2.0]));

    let two = [("a/b", "F32", &[1u64][..], f32s(&[1.0])), ("c", "F32", &[1], f32s(&[2.0]))];
    folder.write("two.safetensors", &safetensors(&two, &[]));
    folder.refused("convert two.safetensors two.npy --to f16", "unsuitable-destination", &["two.npy", ".npz"]);
    folder.run("convert two.safetensors two.npz --to f16").succeeds();
    folder.run("convert two.npz back.safetensors --to f32").succeeds();
    let back = Parsed::new(&folder.read("back.safetensors"));
    assert_eq!((back.names(), back.bytes("c")), (vec!["a/b", "c"], &f32s(&[2.0])[..]));
    folder.refused("convert a.npy i.safetensors --to i4", "unstorable-type", &["\"data\"", "i4", "safetensors"]);
}

#[test]
fn arrays_in_fortran_order() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let (by_rows, by_columns) = (f32s(&values), f32s(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    let folder = Folder::with("c.npy", &array("<f4", "False", "(2, 3)", &by_rows));
    folder.write("f.npy", &array("<f4", "True", "(2, 3)", &by_columns));
    folder.run("compare f.npy c.npy --fail-on different").succeeds();
    assert_eq!(folder.run("show f.npy --json").object("show")["values"], json!([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]));
    assert_eq!(folder.run("show f.npy [1,1:] --json").object("show")["values"], json!([5.0, 6.0]));
    folder.run("inspect f.npy --stats").succeeds().says(&["6"]);
    folder.run("check cast --spec onnx --to f32 --input f.npy --actual c.npy").succeeds();
    folder.run("check cast --spec onnx --to f32 --input c.npy --actual f.npy").succeeds();
    let ints = |order: &[i32]| order.iter().flat_map(|i| i.to_le_bytes()).collect::<Vec<_>>();
    folder.write("i.npy", &array("<i4", "True", "(2, 2)", &ints(&[10, 30, 20, 40])));
    folder.run("rescale i.npy j.npy --to i8 --scale 0.5 --scale32").succeeds();
    assert_eq!(npy_parts(&folder.read("j.npy")).1, [5, 10, 15, 20]);
}

#[test]
fn a_dry_run_writes_nothing() {
    let folder = Folder::with("a.safetensors", &one_tensor(&[1.0, 465.0]));
    folder.run("convert a.safetensors b.safetensors --to f8e4m3fn --dry-run").succeeds().says(&["dry run"]);
    assert_eq!(folder.names(), ["a.safetensors"]);
    // Without the values, a cast to the same type may change a tensor.
    let ran = folder.run("convert a.safetensors b.safetensors --to f32 --dry-run").succeeds().says(&[" f32 "]);
    ran.lacks(&["f32 -> f32"]);
    let plan = folder.run("convert a.safetensors b.safetensors --to f8e4m3fn --dry-run --json").succeeds();
    let plan = plan.object("convert");
    assert_eq!(plan["dry_run"], true);
    let expected = json!({ "name": "w", "shape": [2], "from": "f32", "to": "f8e4m3fn", "converted": true,
        "group": "converted", "elements": 2, "bytes_in": 8, "bytes_out": 2 });
    assert_eq!(plan["tensors"], json!([expected]));
    assert_eq!(folder.names(), ["a.safetensors"]);
}

#[test]
fn a_dry_run_refuses_what_the_run_would() {
    let two = [("a", "F32", &[1u64][..], f32s(&[1.0])), ("b", "F32", &[1], f32s(&[2.0]))];
    let folder = Folder::with("two.safetensors", &safetensors(&two, &[]));
    folder.write("odd.safetensors", &safetensors(&[("w", "F32", &[2, 3], f32s(&[0.0; 6]))], &[]));
    folder.write("x.npy", b"old");
    for (line, code) in [
        ("convert two.safetensors two.npy --to f16", 2),
        ("convert odd.safetensors o.safetensors --to f4e2m1", 3),
        ("convert odd.safetensors o.safetensors --to f16 --max-memory 7", 2),
        ("convert odd.safetensors x.npy --to f16", 2),
        ("convert odd.safetensors o.safetensors --to f16 --rule no=f32", 2),
        ("convert odd.safetensors missing/o.safetensors --to f16", 4),
    ] {
        folder.run(line).exits(code);
        folder.run(&format!("{line} --dry-run")).exits(code);
    }
    folder.refused("convert odd.safetensors missing/o.safetensors --to f16", "not-found", &["missing/o"]);
}

#[test]
fn sizes_and_counts_on_the_command_line() {
    let folder = Folder::with("a.npy", &npy("<f4", 1, &f32s(&[1.0])));
    for (i, size) in ["4194304", "4MiB", "512M", "1GiB", "8MB", "4000kB", "8192KiB", "0.5GB"].into_iter().enumerate() {
        let line = format!("convert a.npy s{i}.npy --to f16 --quiet --max-memory {size}");
        assert_eq!(folder.run(&line).succeeds().out, "");
    }
    for wrong in ["", "4 parsecs", "MiB", "-1", "1e3", "7"] {
        folder.run_args(["convert", "a.npy", "x.npy", "--to", "f16", "--max-memory", wrong]).exits(2);
    }
    for wrong in ["0", "-1", "x"] {
        folder.run_args(["convert", "a.npy", "x.npy", "--to", "f16", "--threads", wrong]).exits(2);
    }
    assert!(!folder.path("x.npy").exists());
}

#[test]
fn verdicts_of_integers() {
    let folder = Folder::new();
    let values: Vec<f32> = (0..1000).map(|i| (i * 37 % 201) as f32 - 100.25).collect();
    folder.write("f.safetensors", &one_tensor(&values));
    let out = folder.run("convert f.safetensors i.safetensors --to i8").succeeds().out;
    assert!(out.contains(" dB over 1 tensor") && !out.contains("normal for"), "{out}");
    let wide: Vec<u8> = (0..1000i64).flat_map(|i| if i == 7 { 300i64 } else { 100 }.to_le_bytes()).collect();
    folder.write("w.safetensors", &safetensors(&[("w", "I64", &[1000], wide)], &[]));
    let out = folder.run("convert w.safetensors n.safetensors --rule w=i8").succeeds().out;
    assert!(out.contains("wrapped") && !out.contains("exact: no value changed"), "{out}");
}
