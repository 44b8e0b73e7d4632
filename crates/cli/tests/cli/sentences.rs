//! What errors say, of mistakes that are easily made: in words of the user, with what to do.

use crate::files::{f32s, npy, safetensors};
use crate::run::Folder;

fn folder() -> Folder {
    let folder = Folder::with("a.npy", &npy("<f4", 2, &f32s(&[525.0, -1.5])));
    folder.write("ints.npy", &npy("<i4", 1, &[1, 0, 0, 0]));
    folder.write("a.safetensors", &safetensors(&[("a.weight", "F32", &[1, 2], f32s(&[1.0, 2.0]))], &[]));
    folder
}

#[test]
fn destinations_and_reports() {
    let folder = folder();
    std::fs::create_dir(folder.path("out")).unwrap();
    for (line, said) in [
        ("convert a.npy out --to f16", "out: is a folder, and one file is to be written; name a file in it"),
        ("convert a.safetensors out --to f16", "out: is a folder, and one file is to be written; name a file in it"),
        (
            "convert a.safetensors b.npy --scheme comfy:float8_e4m3fn",
            "quantised tensors, and what is made of them, go to .safetensors or .gguf files",
        ),
        (
            "verify a.npy a.npy --to f32",
            "a.npy: source and result are the same file; verify compares a result with what",
        ),
        ("verify a.npy ./a.npy --to f32", "source and result are the same file"),
        ("rescale ints.npy o.npy --to i8 --multiplier 1 --shift 2 --max-memory 1", "buffers of 1 byte are too small"),
    ] {
        folder.run(line).fails(2, &[said]);
    }
    if cfg!(unix) {
        let line = "convert a.npy b.npy --to f16 --report /dev/null --force";
        folder.run(line).fails(2, &["/dev/null: --report writes a file; --json prints the report"]);
    }
}

/// A type that RESCALE does not have, of more bits than the others.
#[test]
fn rescale_to_64_bits() {
    let line = "rescale ints.npy o.npy --to i64 --multiplier 1 --shift 2";
    folder()
        .run(line)
        .fails(3, &["there is none from i32 to i64; inputs are i8, i16, i32 or i48, outputs i8, i16 or i32"]);
}

/// No word of the program's language.
#[test]
fn a_report_that_is_none() {
    let folder = folder();
    for text in ["[1]", "3", "{\"command\": 3}", "{}"] {
        folder.write("r.json", text.as_bytes());
        let ran = folder.run("verify a.npy ints.npy --report r.json").fails(3, &["r.json: no report of a conversion"]);
        assert!(!ran.err.contains("struct"), "{}", ran.err);
    }
}

/// Finite as f64, but not as the f32 that scales are computed in.
#[test]
fn values_beyond_f32_have_no_scale() {
    let folder = Folder::new();
    let values: Vec<u8> = [1.0, 1e39].iter().flat_map(|x: &f64| x.to_le_bytes()).collect();
    folder.write("a.safetensors", &safetensors(&[("a.weight", "F64", &[1, 2], values)], &[]));
    let ran = folder.run("convert a.safetensors b.safetensors --scheme comfy:float8_e4m3fn");
    ran.fails(3, &["a.weight", "element 1 is NaN or infinite, or beyond f32"]);
}

/// Arrays store i48 in 64 bits: as `vectors` writes it, `check` reads it.
#[test]
fn vectors_of_i48_are_checked() {
    let folder = folder();
    folder.run("vectors cast --from i48 --to i32 --spec ieee --format npy -o v").succeeds();
    let line = "check cast --from i48 --to i32 --spec ieee --input v.input.npy --actual v.output.npy";
    folder.run(line).exits(0);
    let wide: Vec<u8> = [1i64, 1 << 47].iter().flat_map(|x| x.to_le_bytes()).collect();
    folder.write("wide.npy", &npy("<i8", 2, &wide));
    folder.write("two.npy", &npy("<i4", 2, &[0; 8]));
    let line = "check cast --from i48 --to i32 --spec ieee --input wide.npy --actual two.npy";
    folder.run(line).fails(3, &["wide.npy: element 1 does not fit in 48 bits"]);
    // One that is wrong is found, as it was.
    let one: Vec<u8> = [-1i64, 5].iter().flat_map(|x| x.to_le_bytes()).collect();
    folder.write("one.npy", &npy("<i8", 2, &one));
    let ran = folder.run("check cast --from i48 --to i32 --spec ieee --input one.npy --actual two.npy --json").exits(1);
    assert_eq!(ran.object("check")["violations"][0]["input"], "0xffffffffffff");
}
