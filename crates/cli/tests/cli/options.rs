//! An option that the specification, the command or the kind of file does not have is an error (`docs/interfaces.md §2,
//! §5`), seen before any file is: none of these exists. One that changes nothing for the types at hand is accepted.

use crate::run::Folder;
use truecast_testkit::npy::npy;
use truecast_testkit::safetensors::f32s;

const CHECK_CAST: &str = "check cast --from f32 --to f16 --input a.npy --actual b.npy";
const CHECK_RESCALE: &str = "check rescale --spec tosa --to i8 --multiplier 1 --shift 2 --input a.npy --actual b.npy";

#[track_caller]
fn refuses(line: &str, option: &str, place: &str, asked: &str) {
    let said = format!("truecast: --{option} belongs to {place}; this is {asked}\n");
    let ran = Folder::new().run(&format!("{line} --{option}"));
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(2), "", said.as_str()), "{line} --{option}");
}

/// (option with its value, the specifications that have it)
const POLICIES: [(&str, &[&str]); 10] = [
    ("saturate", &["onnx"]),
    ("round-mode", &["onnx"]),
    ("rounding", &["ieee", "tile"]),
    ("overflow", &["ieee"]),
    ("inf", &["ieee"]),
    ("int-overflow", &["ieee"]),
    ("nan-to-int", &["ieee"]),
    ("subnormals", &["ieee"]),
    ("saturating", &["tile"]),
    ("profile", &["tile", "tosa"]),
];

fn value(option: &str) -> &'static str {
    match option {
        "saturate" => "true",
        "round-mode" | "rounding" => "up",
        "overflow" | "inf" | "int-overflow" | "nan-to-int" => "saturate",
        "subnormals" => "flush",
        "profile" => "hw",
        _ => "",
    }
}

#[test]
fn policies_belong_to_specifications() {
    for command in [
        "convert a.npy b.npy --to f16",
        "verify a.npy b.npy --to f16",
        "vectors cast --from f32 --to f16",
        "bench --pairs f32:f16",
        CHECK_CAST,
    ] {
        for (option, owners) in POLICIES {
            for spec in ["onnx@21", "tosa@1.0", "openvino", "tile@13.4", "ieee"] {
                let name = spec.split('@').next().unwrap();
                if owners.contains(&name) {
                    continue;
                }
                let line = format!("{command} --spec {spec} --{option} {}", value(option));
                let ran = Folder::new().run(&line);
                ran.fails(2, &[format!("--{option} belongs to "), format!("--spec {spec}")]);
            }
        }
    }
    refuses("convert a.npy b.npy --to f16", "saturating", "--spec tile", "--spec onnx");
    let ran = Folder::new().run(&format!("{CHECK_CAST} --spec tosa --rounding up"));
    ran.fails(2, &["--rounding belongs to --spec ieee or --spec tile; this is --spec tosa"]);
}

#[test]
fn options_of_tile() {
    let option = |line: &str, name: &str, place: &str, asked: &str| {
        let ran = Folder::new().run(&format!("{line} --tile-option {name}"));
        ran.fails(2, &[format!("belongs to {place}; this is {asked}")]);
    };
    for line in ["convert a.npy b.npy --to f16 --spec tile", "vectors cast --from f32 --to f16 --spec tile"] {
        let command = line.split(' ').next().unwrap();
        option(line, "strict", "run", command);
        option(line, "tf32_as_32_bit", "run or check MODEL", command);
    }
    option("convert a.npy b.npy --to f16", "strict", "--spec tile", "--spec onnx");
    // Only a module has a file version.
    for line in ["convert a.npy b.npy --to f16", CHECK_CAST, "explain 1 --to f16"] {
        let ran = Folder::new().run(&format!("{line} --spec tile@file"));
        ran.fails(2, &["--spec tile@file belongs to run or check MODEL; this is "]);
    }
    // Only one changes what is legal.
    for name in ["preserve_inf", "e4m3_nan=spec-literal", "canonical_nan", "i1_ftoi=truncate", "legacy_double_rounding"]
    {
        option("check m.mlir --spec tile", name, "check cast or run", "check m.mlir");
    }
}

#[test]
fn options_of_operators() {
    for option in ["multiplier 1", "shift 1", "input-zp 1", "output-zp 1", "scale32", "per-channel", "output-unsigned"]
    {
        let (name, value) = option.split_once(' ').unwrap_or((option, ""));
        for (line, asked) in [(CHECK_CAST, "check cast"), ("check m.onnx", "check m.onnx")] {
            let ran = Folder::new().run(&format!("{line} --{name} {value}"));
            ran.fails(2, &[format!("--{name} belongs to check rescale; this is {asked}")]);
        }
    }
    refuses(CHECK_CAST, "input-unsigned", "check rescale or check cast --spec tosa", "check cast --spec onnx");
    refuses(CHECK_RESCALE, "exact-nan", "check cast", "check rescale");
    for option in ["from f32", "to f16", "input a.npy", "actual a.npy", "show 3"] {
        let (name, _) = option.split_once(' ').unwrap();
        let ran = Folder::new().run(&format!("check m.onnx --{option}"));
        ran.fails(2, &[format!("--{name} belongs to check cast or check rescale; this is check m.onnx")]);
    }
    for (spec, option) in [
        ("onnx", "saturate true"),
        ("onnx", "round-mode up"),
        ("onnx", "nan canonical"),
        ("onnx", "exact-nan"),
        ("tile", "saturating"),
    ] {
        let name = option.split(' ').next().unwrap();
        let ran = Folder::new().run(&format!("check m.onnx --spec {spec} --{option}"));
        ran.fails(2, &[format!("--{name} belongs to check cast; this is check m.onnx")]);
    }
    Folder::new().run("check m.mlir --spec tile --rounding up").fails(2, &["--rounding belongs to "]);
    Folder::new().run("check m.onnx --spec onnx --profile hw").fails(2, &["--profile belongs to "]);
}

#[test]
fn options_of_files() {
    let onnx = ".onnx models or .pb tensors";
    let links = ".onnx models, .pb tensors or folders of checkpoints";
    for (option, onnx) in [("lenient", onnx), ("follow-links", links)] {
        refuses("convert a.npy b.npy --to f16", option, onnx, "a.npy");
        refuses("convert a.safetensors b.safetensors --to f16", option, onnx, "a.safetensors");
        refuses("verify a.npy b.npy --to f16", option, onnx, "a.npy and b.npy");
        refuses("inspect a.npz", option, onnx, "a.npz");
        refuses("compare a.npy b.safetensors", option, onnx, "a.npy and b.safetensors");
    }
    let ran = Folder::new().run("convert a.pb b.npy --to f16 --min-elements 3");
    ran.fails(2, &["--min-elements belongs to .onnx models; this is a.pb"]);
    for model in ["m.onnx", "g.tosa", "m.mlir"] {
        let ran = Folder::new().run(&format!("run {model} --output-dir out --ir-layout groups"));
        ran.fails(2, &[format!("--ir-layout belongs to OpenVINO IR (.xml); this is {model}")]);
    }
    for model in ["m.onnx", "g.tosa", "m.xml"] {
        for option in ["spec tile", "entry k", "tile-option strict"] {
            let name = option.split(' ').next().unwrap();
            let ran = Folder::new().run(&format!("run {model} --output-dir out --{option}"));
            ran.fails(2, &[format!("--{name} belongs to Tile IR modules; this is {model}")]);
        }
    }
    for model in ["m.onnx", "m.xml"] {
        let ran = Folder::new().run(&format!("run {model} --output-dir out --profile flush"));
        ran.fails(2, &[format!("--profile belongs to Tile IR modules or .tosa graphs; this is {model}")]);
    }
    for model in ["m.mlir", "m.xml"] {
        let place = ".onnx models, .pb tensors, folders of checkpoints, .safetensors files, .gguf files or other files of \
                     tensors";
        refuses(&format!("inspect {model}"), "stats", place, model);
    }
    let ran = Folder::new().run("run g.tosa --output-dir out --output-format pb");
    ran.fails(
        2,
        &["--output-format pb belongs to .onnx models, OpenVINO IR (.xml) or Tile IR modules; this is g.tosa"],
    );
}

#[test]
fn options_of_what_is_written() {
    let line = "convert a.npy b.npy --to f16 --dry-run";
    for option in ["report r.json", "fail-on nan"] {
        let name = option.split(' ').next().unwrap();
        let ran = Folder::new().run(&format!("{line} --{option}"));
        ran.fails(2, &[format!("--{name} belongs to runs that write a file; this is --dry-run")]);
    }
    let ran = Folder::new().run("convert a.npy b.npy --to f16 --resume").exits(2);
    let said = "truecast: --resume belongs to folders of checkpoints, in runs that write a file; this is a.npy\n";
    assert_eq!(ran.err, said);
    refuses("vectors cast --from f32 --to f16", "force", "runs that write a file", "standard output");
    for what in ["saturated", "wrapped", "undefined", "saturated=5"] {
        let name = what.split('=').next().unwrap();
        let ran = Folder::new().run(&format!("compare a.npy b.npy --fail-on inexact,{what}"));
        ran.fails(2, &[format!("--fail-on {name} belongs to convert; this is compare")]);
    }
    for format in ["hex", "npy -o v"] {
        let ran = Folder::new().run(&format!("vectors cast --from i4 --to f16 --json --format {format}")).exits(2);
        let format = &format[..3];
        assert!(
            ran.err.contains(&format!("--json belongs to --format json; this is --format {format}")),
            "{}",
            ran.err
        );
    }
    let object = Folder::new().run("vectors cast --from i4 --to f16 --json").succeeds().object("vectors");
    assert_eq!(object["vectors"].as_array().unwrap().len(), 16);
    for command in ["completions bash", "man"] {
        let name = command.split(' ').next().unwrap();
        let ran = Folder::new().run(&format!("{command} --json")).exits(2);
        assert!(ran.err.contains(&format!("--json belongs to commands that print results; this is {name}")));
    }
}

#[test]
fn options_of_systems() {
    for (options, owner) in [
        ("unsafe", "--system openvino"),
        ("strict", "--system openvino"),
        ("pytorch-scalar", "--system openvino"),
        ("u64-target f32", "--system openvino"),
        ("lhs-rank 0", "--system openvino or --system torch"),
        ("rhs-rank n", "--system openvino or --system torch"),
        ("jax-x64 on", "--system jax"),
        ("tensorflow-mode safe", "--system tensorflow"),
    ] {
        let name = options.split(' ').next().unwrap();
        for system in ["openvino", "numpy", "jax", "torch", "tensorflow"] {
            let ran = Folder::new().run(&format!("promote u8 i16 --system {system} --{options}"));
            match owner.contains(system) {
                true => drop(ran.exits(0)),
                false => {
                    drop(ran.fails(2, &[format!("--{name} belongs to {owner}; this is --system {system}")]));
                }
            }
        }
        Folder::new().run(&format!("promote u8 i16 --system all --{options}")).exits(0);
    }
}

#[test]
fn what_changes_nothing_is_accepted() {
    let folder = Folder::with("a.npy", &npy("<f4", 2, &f32s(&[525.0, -1.5])));
    for options in [
        "--to i8 --spec ieee --overflow saturate --nan error",
        "--to f16 --saturate false --round-mode down --string-style plain",
        "--to f16 --spec tile --saturating --tile-option preserve_inf",
        "--to i8 --spec tosa --profile flush",
    ] {
        folder.run(&format!("convert a.npy b.npy --force {options}")).succeeds();
        folder.run(&format!("verify a.npy b.npy {options}")).succeeds();
    }
    folder.run("check cast --to f32 --input a.npy --actual a.npy --exact-nan --saturate true").succeeds();
    folder.run("explain 1 --to f16 --string-style plain").succeeds();
}
