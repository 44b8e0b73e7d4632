//! Options without effect are an error (`docs/interfaces.md §2, §5`), found before any file is opened: none of these
//! files exists.

use crate::run::Folder;
use truecast::setting::Setting;
use truecast_testkit::npy::npy;
use truecast_testkit::safetensors::f32s;

const CHECK_CAST: &str = "check cast --from f32 --to f16 --input a.npy --actual b.npy";

/// Expects an error for the line with the option. The error names `place` (where the option is valid) and `asked` (the
/// run).
#[track_caller]
fn refuses(line: &str, option: &str, place: &str, asked: &str) {
    let name = format!("--{}", option.split(' ').next().unwrap());
    Folder::new().refused(&format!("{line} --{option}"), "inapplicable-option", &[&name, place, asked]);
}

#[test]
fn policies_belong_to_specifications() {
    for command in [
        "convert a.npy b.npy --to f16", "verify a.npy b.npy --to f16", "vectors cast --from f32 --to f16",
        "bench --pairs f32:f16", CHECK_CAST,
    ] {
        for setting in Setting::all().filter(|setting| setting.about_if_universal().is_none()) {
            for spec in ["onnx@21", "tosa@1.0", "openvino", "tile@13.4", "ieee"] {
                let (name, owners) = (spec.split('@').next().unwrap(), setting.specs());
                if !owners.contains(&name) {
                    // The first rounding is the only one of some specifications, which then accept it.
                    let value = match setting {
                        flag if flag.is_flag() => "",
                        number if number.is_integer() => "-1",
                        words => words.values(owners[0]).last().unwrap(),
                    };
                    let line = format!("{command} --spec {spec} --{} {value}", setting.name());
                    let said = [format!("--{} belongs to ", setting.name()), format!("--spec {spec}")];
                    Folder::new().refused(&line, "inapplicable-option", &said);
                }
            }
        }
    }
    refuses("convert a.npy b.npy --to f16", "saturating", "--spec tile", "--spec onnx");
    refuses(
        &format!("{CHECK_CAST} --spec tosa"),
        "rounding up",
        "--spec ieee, --spec tile or --spec NAME of a language or chip",
        "--spec tosa",
    );
}

#[test]
fn options_of_what_is_written() {
    let line = "convert a.npy b.npy --to f16 --dry-run";
    for option in ["report r.json", "fail-on nan"] {
        refuses(line, option, "runs that write a file", "--dry-run");
    }
    let place = "checkpoint folders, in runs that write a file";
    refuses("convert a.npy b.npy --to f16", "resume", place, "a.npy");
    refuses("vectors cast --from f32 --to f16", "force", "runs that write a file", "standard output");
    for what in ["saturated", "wrapped", "undefined", "saturated=5"] {
        let name = what.split('=').next().unwrap();
        Folder::new().refused(
            &format!("compare a.npy b.npy --fail-on inexact,{what}"),
            "inapplicable-option",
            &[format!("--fail-on {name} belongs to convert; this is compare")],
        );
    }
    for format in ["hex", "npy -o v"] {
        let ran = Folder::new().run(&format!("vectors cast --from i4 --to f16 --json --format {format}")).exits(2);
        ran.warns(&[format!("--json belongs to --format json; this is --format {}", &format[..3])]);
    }
    let object = Folder::new().run("vectors cast --from i4 --to f16 --json").succeeds().object("vectors");
    assert_eq!(object["vectors"].as_array().unwrap().len(), 16);
    for command in ["completions bash", "man"] {
        let name = command.split(' ').next().unwrap();
        let ran = Folder::new().run(&format!("{command} --json")).exits(2);
        assert!(ran.err.contains(&format!("--json belongs to commands that print results; this is {name}")));
        Folder::new().run(&format!("{name} --help")).succeeds().lacks(&["--json", "--wide", "--color"]);
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
        for system in ["openvino", "numpy", "jax", "torch", "tensorflow"] {
            let line = format!("promote u8 i16 --system {system}");
            if owner.contains(system) {
                Folder::new().run(&format!("{line} --{options}")).exits(0);
            } else {
                refuses(&line, options, owner, &format!("--system {system}"));
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
