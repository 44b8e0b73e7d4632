//! `rescale`, `check` and `run` of TOSA (`docs/interfaces.md §3`). Expected results: `docs/spec/tosa.md`.

use crate::run::Folder;
use truecast_testkit::flatbuffer::{Graph, Operator, Tensor};
use truecast_testkit::json::has;
use truecast_testkit::npy::{npy, npy_parts, npy_text};
use truecast_testkit::safetensors::{f32s, i32s};

/// Flags and mode of a RESCALE that rounds once.
pub const SINGLE: Option<([bool; 4], u32)> = Some(([true, false, false, false], 1));

/// A graph that has the operands of a RESCALE by 2^30 from i32 to i8: `m`, `s`, `iz` and `oz`.
pub fn graph_of_rescale(
    shift: &[u8],
    tensors: &[Tensor<'_>],
    operators: &[Operator<'_>],
    inputs: &[&str],
    outputs: &[&str],
) -> Vec<u8> {
    let operands = [
        Tensor("m", &[1], 5, &[0, 0, 0, 64]),
        Tensor("s", &[1], 3, shift),
        Tensor("iz", &[1], 5, &[0; 4]),
        Tensor("oz", &[1], 3, &[0]),
    ];
    let constants = [["m"], ["s"], ["iz"], ["oz"]];
    let constants = constants.iter().filter(|name| !inputs.contains(&name[0]));
    let constants: Vec<Operator<'_>> = constants.map(|name| Operator(67, &[], name, None)).collect();
    let (tensors, operators) = ([tensors, &operands].concat(), [&constants, operators].concat());
    Graph { version: 1, tensors: &tensors, operators: &operators, inputs, outputs }.file()
}

/// §4.8: 10^9 and -10^9 saturate.
#[test]
fn rescale_an_array() {
    let folder = Folder::with("x.npy", &npy("<i4", 4, &i32s(&[3, -3, 1_000_000_000, -1_000_000_000])));
    let line = "rescale x.npy y.npy --to i8 --multiplier 1073741824 --shift 31 --scale32";
    let object = folder.run(&format!("{line} --json")).succeeds().object("rescale");
    assert_eq!((object["elements"].clone(), object["saturated"].clone()), (4.into(), 2.into()));
    let expected = serde_json::json!({
        "spec": "tosa", "version": "1.0", "rounding": "single", "scale32": true, "per_channel": false,
        "input_unsigned": false, "output_unsigned": false, "input_zp": 0, "output_zp": 0,
        "multiplier": [1073741824], "shift": [31]
    });
    assert_eq!(object["options"], expected);
    assert_eq!(npy_parts(&folder.read("y.npy")).1, [2, 0xff, 127, 0x80]);
    folder.refused(line, "destination-exists", &["y.npy", "--force"]);
    let text = folder.run(&format!("{line} --force --input-zp 0 --rounding double")).succeeds().out;
    let options = "--spec tosa@1.0 --to i8 --multiplier 1073741824 --shift 31 --rounding double --scale32";
    assert!(text.starts_with(&format!("options: {options}\ni32 to i8: 4 elements, 2 saturated\n")), "{text}");
    folder.run(&format!("rescale x.npy again.npy {options}")).succeeds();
    assert_eq!(folder.read("again.npy"), folder.read("y.npy"));
    // An unsigned type with a zero point; per-channel scales from a file.
    folder.write("b.npy", &npy("|i1", 3, &[0x80, 0, 127]));
    folder.run("rescale b.npy u.npy --to u8 --output-zp 128 --multiplier 1073741824 --shift 30 --scale32").succeeds();
    assert_eq!(npy_parts(&folder.read("u.npy")).1, [0, 128, 255]);
    folder.write("m.npy", &npy("<i4", 3, &i32s(&[1 << 30, 1 << 29, 1 << 28])));
    folder.write("t.npy", &npy("|i1", 3, &[20, 20, 20]));
    folder.run("rescale t.npy c.npy --to i8 --multiplier m.npy --shift 30,30,30 --scale32 --per-channel").succeeds();
    assert_eq!(npy_parts(&folder.read("c.npy")).1, [20, 10, 5]);
}

/// The file exceeds the memory limit; several threads; rows end anywhere in a part.
#[test]
fn a_rescale_in_parts() {
    let values: Vec<i32> = (0..1_000_002).map(|i: i32| i.wrapping_mul(0x9e37_79b1_u32 as i32) >> 8).collect();
    let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (333334, 3)}";
    let folder = Folder::with("x.npy", &npy_text(header, &i32s(&values)));
    let line =
        "rescale x.npy y.npy --to i16 --multiplier 1073741824,536870912,1 --shift 38,40,62 --scale32 --per-channel";
    let object = folder.run(&format!("{line} --max-memory 1MiB --threads 3 --json")).succeeds().object("rescale");
    let (expected, mut saturated) = (Vec::new(), 0u64);
    let expected = values.iter().enumerate().fold(expected, |mut all, (i, &v)| {
        let (m, s) = [(1i64 << 30, 38), (1 << 29, 40), (1, 62)][i % 3];
        let q = (i64::from(v) * m + (1 << (s - 1))) >> s;
        saturated += (q != q.clamp(-32768, 32767)) as u64;
        all.extend((q.clamp(-32768, 32767) as i16).to_le_bytes());
        all
    });
    assert!(saturated == 0 || saturated < 1_000_002);
    assert!(npy_parts(&folder.read("y.npy")).1 == expected);
    assert_eq!((&object["elements"], &object["saturated"]), (&1_000_002.into(), &saturated.into()));
    folder.refused(&format!("{line} --force --max-memory 1000"), "memory-limit", &["1000", "--max-memory"]);
    let worse = line.replace("62", "2") + " --force --threads 3 --max-memory 1MiB";
    folder.refused(&worse, "undefined-result", &["R3", "2"]);
    assert!(npy_parts(&folder.read("y.npy")).1 == expected);
    assert_eq!(folder.names(), ["x.npy", "y.npy"]);
}

/// i48 takes 64 bits (§7.1); a value beyond 48 bits is an error.
#[test]
fn rescale_of_wide_and_unsigned_integers() {
    let i64s =
        |values: &[i64]| npy("<i8", values.len(), &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
    let folder = Folder::with("x.npy", &i64s(&[1 << 40, -(1 << 40), 1 << 46, -(1 << 47)]));
    let line = "rescale x.npy y.npy --to i32 --multiplier 16384 --shift 34 --force";
    folder.run(line).succeeds();
    assert_eq!(npy_parts(&folder.read("y.npy")).1, i32s(&[1048576, -1048576, 67108864, -134217728])); // §4.8
    folder.write("x.npy", &i64s(&[0, 1 << 47]));
    folder.refused(line, "invalid-code", &["x.npy", "element 1", "48 bits"]);
    folder.write("b.npy", &npy("|u1", 2, &[0, 255]));
    let line = "rescale b.npy c.npy --to i8 --input-zp 128 --multiplier 1073741824 --shift 30 --scale32";
    assert!(folder.run(line).succeeds().out.contains("\nu8 to i8: 2 elements"));
}

/// §2.4: every dimension is at least 1.
#[test]
fn empty_tensors_are_refused() {
    let folder = Folder::with("x.npy", &npy("<i4", 0, &[]));
    folder.write("y.npy", &npy("|i1", 0, &[]));
    let scale = "--to i8 --multiplier 1073741824 --shift 31 --scale32";
    let files = "--spec tosa --input x.npy --actual y.npy";
    for line in [
        format!("rescale x.npy z.npy {scale}"),
        format!("check rescale {scale} {files}"),
        format!("check cast --from i32 --to i8 {files}"),
    ] {
        folder.refused(&line, "shape-mismatch", &["[0]"]);
    }
    assert_eq!(folder.names(), ["x.npy", "y.npy"]);
}

/// A scale replaces multiplier and shift (§4.7). A file may give a scale for each channel.
#[test]
fn rescale_by_a_scale() {
    let folder = Folder::with(
        "x.npy",
        &npy_text("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2)}", &i32s(&[1000, -1000, 100_000, 3])),
    );
    let rescale = |options: &str| folder.run(&format!("rescale x.npy y.npy --to i8 --force {options}"));
    let ran = rescale("--scale 0.0013 --scale32").succeeds();
    let scale =
        "options: --spec tosa@1.0 --to i8 --scale 0.0013 --scale32\nmultiplier 1429365116, shift 40: 0.0012999999999";
    assert!(ran.out.starts_with(scale), "{}", ran.out);
    let by_scale = folder.read("y.npy");
    assert_eq!(npy_parts(&by_scale).1, [1, 0xff, 127, 0]);
    rescale("--multiplier 1429365116 --shift 40 --scale32").succeeds();
    assert_eq!(folder.read("y.npy"), by_scale);
    let object = rescale("--scale 0.5 --json").succeeds().object("rescale");
    assert_eq!((&object["multiplier"], &object["shift"]), (&serde_json::json!([16384]), &serde_json::json!([15])));
    // The file has one scale for each index of the last dimension. Any float type is valid.
    folder.write("f.npy", &npy("<f4", 2, &f32s(&[0.5, 0.25])));
    folder.write("d.npy", &npy("<f8", 2, &[0.5f64, 0.25].map(f64::to_le_bytes).concat()));
    for scales in ["f.npy", "d.npy", "0.5,0.25"] {
        let object = rescale(&format!("--scale {scales} --scale32 --per-channel --json")).succeeds().object("rescale");
        assert_eq!(object["shift"], serde_json::json!([31, 32]), "{scales}");
    }
    for (options, words) in [
        ("--scale -1 --scale32", "-1"),
        ("--scale nan --scale32", "NaN"),
        ("--scale 1e9 --scale32", "268435456"),
        ("--scale big --scale32", "big"),
    ] {
        folder.refused(&format!("rescale x.npy y.npy --to i8 --force {options}"), "invalid-value", &[words]);
    }
    folder.refused("rescale x.npy f.npy --to i8 --scale f.npy --scale32 --force", "same-file", &["f.npy"]);
    rescale("--scale 0.5 --shift 3").fails(2, &["--shift"]);
    folder.refused("rescale x.npy y.npy --to i8 --force --scale x.npy --scale32", "type-mismatch", &["x.npy"]);
}

#[test]
fn a_rescale_keeps_what_it_reads() {
    let folder = Folder::with("x.npy", &npy("|i1", 2, &[4, 4]));
    folder.write("m.npy", &npy("<i4", 1, &i32s(&[1 << 30])));
    let (x, m) = (folder.read("x.npy"), folder.read("m.npy"));
    for (line, code, words) in [
        ("rescale x.npy x.npy --multiplier 1073741824", "same-file", ["x.npy", "same file"]),
        ("rescale x.npy ./x.npy --multiplier 1073741824", "same-file", ["x.npy", "same file"]),
        ("rescale x.npy m.npy --multiplier m.npy", "same-file", ["m.npy", "result"]),
        ("rescale x.npy y.safetensors --multiplier 1073741824", "unsuitable-destination", ["y.safetensors", ".npy"]),
    ] {
        folder.refused(&format!("{line} --to i8 --shift 30 --scale32 --force"), code, &words);
        assert_eq!(folder.names(), ["m.npy", "x.npy"]);
        assert_eq!((folder.read("x.npy"), folder.read("m.npy")), (x.clone(), m.clone()));
    }
}

/// §3.1: the attribute is in the 1.1 draft, for integers only.
#[test]
fn check_a_cast_of_unsigned_integers() {
    let folder = Folder::with("x.npy", &npy("<i2", 3, &[0xff, 0xff, 1, 0, 2, 0]));
    folder.write("unsigned.npy", &npy("<f4", 3, &f32s(&[65535.0, 1.0, 2.0])));
    folder.write("signed.npy", &npy("<f4", 3, &f32s(&[-1.0, 1.0, 2.0])));
    let line = |version: &str, actual: &str, flag: &str| {
        format!("check cast --spec tosa@{version} --from i16 --to f32 --input x.npy --actual {actual}.npy {flag}")
    };
    folder.run(&line("1.1", "unsigned", "--input-unsigned")).succeeds();
    folder.run(&line("1.1", "signed", "--input-unsigned")).exits(1);
    folder.run(&line("1.1", "signed", "")).succeeds();
    folder.refused(&line("1.0", "signed", "--input-unsigned"), "invalid-attribute", &["input_unsigned", "1.1"]);
}

/// §6.6: NaN for 448, Inf for 65504, wrong sign of zero. Arm's verifier accepts all three, the text does not.
#[test]
fn check_cast_by_profile() {
    let folder = Folder::with("x.npy", &npy("<f4", 3, &f32s(&[448.0, 1.0, -0.0])));
    folder.write("y.npy", &npy("<V1", 3, &[0x7f, 0x38, 0x00]));
    let line = "check cast --spec tosa@1.0 --from f32 --to f8e4m3fn --input x.npy --actual y.npy";
    let object = folder.run(&format!("{line} --json")).exits(1).object("check");
    assert_eq!((&object["profile"], &object["wrong"]), (&"spec-1.0".into(), &2.into()));
    assert_eq!(object["violations"][0]["verdict"], "allowed-by-verifier-only");
    assert_eq!(object["violations"][0]["permitted"], serde_json::json!(["0x7d", "0x7e"]));
    // The keys of every specification (`docs/interfaces.md §6`).
    for (field, expected) in [("spec", "tosa@1.0"), ("from", "f32"), ("to", "f8e4m3fn")] {
        assert_eq!(object[field], expected);
    }
    assert_eq!((&object["elements"], &object["undefined"]), (&3.into(), &0.into()));
    assert_eq!(object["lints"]["zero-sign"], 1);
    folder.run(&format!("{line} --profile arm-verifier-2026.8")).succeeds();
    folder.run(&format!("{line} --profile strict")).exits(1);
    folder.refused(&format!("{line} --profile seed"), "invalid-attribute", &["spec-seed-2025-03"]);
    folder.refused(
        "check cast --spec tosa@1.0 --from f16 --to bf16 --input x.npy --actual y.npy",
        "unsupported-pair",
        &["f16", "bf16"],
    );
}

/// §5.7: 7.0 and 31 times 0.25. The draft's tolerance is one step of the scale. Arm's verifier accepts any smaller
/// scale if the elements are saturated (§5.5).
#[test]
fn check_block_scaled_casts() {
    let mut block = vec![0.25f32; 32];
    block[0] = 7.0;
    let folder = Folder::with("x.npy", &npy("<f4", 32, &f32s(&block)));
    let packed = |first: u8, others: u8| {
        let mut bytes = vec![others << 4 | others; 16];
        bytes[0] = others << 4 | first;
        npy("|u1", 16, &bytes)
    };
    let scale = |code: u8| npy("<V1", 1, &[code]);
    let to_blocks =
        "check cast --spec tosa@1.1 --from f32 --to f4e2m1 --input x.npy --actual y.npy --actual-scale s.npy";
    let verdict = |profile: &str| folder.run(&format!("{to_blocks} --profile {profile}")).code;
    // Scale 2: 3.5 rounds to 4, and 0.125 rounds to 0.
    folder.write("y.npy", &packed(6, 0));
    folder.write("s.npy", &scale(0x80));
    assert_eq!(["strict", "spec-1.1-draft", "arm-verifier-2026.8"].map(verdict), [Some(0); 3]);
    let ran = folder.run(&format!("{to_blocks} --json")).succeeds().object("check");
    assert_eq!((&ran["elements"], &ran["wrong"], &ran["scales"]["wrong"]), (&32.into(), &0.into(), &0.into()));
    // Scale 2^-20: all elements saturate.
    folder.write("y.npy", &packed(7, 7));
    folder.write("s.npy", &scale(0x6b));
    assert_eq!(["strict", "spec-1.1-draft", "arm-verifier-2026.8"].map(verdict), [Some(1), Some(1), Some(0)]);
    let ran = folder.run(&format!("{to_blocks} --json"));
    let object = ran.object("check");
    assert_eq!((&object["wrong"], &object["scales"]["wrong"]), (&32.into(), &1.into()));
    let expected = serde_json::json!({"block": 0, "actual": "0x6b", "permitted": ["0x7f", "0x80", "0x81"]});
    assert_eq!(object["scales"]["violations"][0], expected);
    folder.write("z.npy", &npy("<f4", 32, &f32s(&[1.5f32; 32])));
    folder.write("w.npy", &packed(3, 3));
    folder.write("s.npy", &scale(0x7f));
    let from_blocks =
        "check cast --spec tosa@1.1 --from f4e2m1 --to f32 --input w.npy --actual z.npy --input-scale s.npy";
    folder.run(from_blocks).succeeds();
    // The cases are C2, the version, blocks on both sides, a file of another length, and options without effect on a
    // block-scaled CAST.
    folder.refused(&from_blocks.replace("1.1", "1.0"), "illegal-operation", &["1.1 draft"]);
    folder.refused(&format!("{from_blocks} --actual-scale s.npy"), "conflicting-options", &["--input-scale"]);
    folder.refused(&format!("{from_blocks} --exact-nan"), "inapplicable-option", &["--exact-nan"]);
    folder.write("s.npy", &npy("<V1", 2, &[1, 1]));
    folder.refused(from_blocks, "shape-mismatch", &["s.npy", "[2]", "[1]"]);
    folder.write("w.npy", &npy("|u1", 8, &[0; 8]));
    folder.write("z.npy", &npy("<f4", 16, &f32s(&[0.0; 16])));
    folder.refused(from_blocks, "illegal-operation", &["C2", "16"]);
    folder.refused(&to_blocks.replace("tosa@1.1", "onnx"), "inapplicable-option", &["--actual-scale", "tosa"]);
}

/// NaN bits are compared only on request, with the bits of the one NaN rule.
#[test]
fn check_cast_of_nan() {
    let folder = Folder::with("x.npy", &npy("<f4", 1, &0xffc0_0001u32.to_le_bytes()));
    folder.write("y.npy", &npy("<f2", 1, &[0x00, 0x7e]));
    let line = "check cast --spec tosa --from f32 --to f16 --input x.npy --actual y.npy";
    folder.run(line).succeeds();
    for (options, permitted) in [("--exact-nan", serde_json::json!(["0xfe00"])), ("--nan error", serde_json::json!([]))]
    {
        let object = folder.run(&format!("{line} {options} --json")).exits(1).object("check");
        assert_eq!(object["violations"][0]["permitted"], permitted, "{options}");
    }
}

/// R0: above the level's rank, any result is permitted.
#[test]
fn check_of_a_rank_above_the_level() {
    let rank7 = |descr: &str, data: &[u8]| {
        npy_text(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1)}}"), data)
    };
    let folder = Folder::with("x.npy", &rank7("<i4", &i32s(&[1])));
    folder.write("y.npy", &rank7("|i1", &[77]));
    let cast = "check cast --spec tosa --from i32 --to i8 --input x.npy --actual y.npy";
    assert!(folder.run(cast).succeeds().out.contains("R0"));
    assert_eq!(folder.run(&format!("{cast} --json")).succeeds().object("check")["status"], "unpredictable");
    folder.refused("rescale x.npy z.npy --to i8 --multiplier 1 --shift 40 --scale32", "undefined-result", &["R0"]);
}

#[test]
fn check_rescale_by_profile() {
    let folder = Folder::with("x.npy", &npy("<i4", 2, &i32s(&[1 << 24, 5])));
    folder.write("y.npy", &npy("<i4", 2, &i32s(&[(1 << 24) + 4, 5])));
    let line = "check rescale --to i32 --multiplier 1073741824 --shift 30 --scale32 --rounding inexact --input x.npy \
                --actual y.npy --spec tosa";
    folder.run(line).succeeds();
    let object = folder.run(&format!("{line} --profile spec-seed-2025-03 --json")).exits(1).object("check");
    assert_eq!(object["violations"][0]["index"], 0);
    folder.run(&format!("{line} --from i32")).succeeds();
    folder.refused(&format!("{line} --from i16"), "type-not-applicable", &["--from", "i16", "x.npy", "i32"]);
    // An unpredictable graph permits everything, an illegal graph nothing.
    let unpredictable = line.replace("--shift 30", "--shift 63");
    assert!(folder.run(&unpredictable).succeeds().out.contains("R2"));
    folder.run(&format!("{line} --output-zp 7")).exits(1).says(&["E12"]);
}

/// §4.8 and the formulas: ties, ends, and no inputs that violate a requirement. Only the listed results are accepted.
#[test]
fn vectors_of_rescale() {
    let folder = Folder::new();
    let scale = "--multiplier 1073741824 --shift 31 --scale32";
    let line = format!("vectors rescale --spec tosa --from i32 --to i8 {scale}");
    let text = folder.run(&line).succeeds().out;
    for row in ["00000003 02", "fffffffd ff", "000000fe 7f", "ffffff00 80"] {
        assert!(text.lines().any(|line| line == row), "{row} in {text}");
    }
    assert!(text.starts_with("# truecast vectors: rescale i32 i8, tosa@1.0 multiplier=1073741824 shift=31"));
    // R3: 2^30 does not fit in the 31 bits of shift 31.
    assert!(!text.contains("\n40000000 ") && text.contains("\n3fffffff 7f\n") && text.contains("\nc0000000 80\n"));
    folder.run(&format!("{line} --format npy -o v")).succeeds();
    let check = |rounding: &str| {
        let files = "--input v.input.npy --actual v.output.npy";
        folder.run(&format!("check rescale --spec tosa --to i8 {scale} --rounding {rounding} {files}")).code
    };
    assert_eq!([check("single"), check("double"), check("inexact")], [Some(0); 3]);
    let wide = "vectors rescale --spec tosa --from i48 --to i32 --multiplier 16384 --shift 34 --format npy -o w";
    folder.run(wide).succeeds();
    let wide =
        "check rescale --spec tosa --to i32 --multiplier 16384 --shift 34 --input w.input.npy --actual w.output.npy";
    folder.run(wide).succeeds();
    // Results in an interval are open; the codes are listed.
    let object = folder.run(&format!("{line} --rounding inexact --format json")).succeeds().object("vectors");
    let one = object["vectors"].as_array().unwrap().iter().find(|v| v["input"] == "0x00000001").unwrap();
    assert_eq!(one["accepted"], serde_json::json!(["0x00", "0x01"])); // §4.8: lo 0, hi 1
    folder.refused(&format!("{line} --per-channel"), "inapplicable-option", &["--per-channel"]);
    folder.refused(&format!("{line} --output-unsigned"), "illegal-operation", &["E5"]);
    folder.refused(&format!("{line} --level exhaustive"), "invalid-value", &["i32", "boundary"]);
}

/// A CAST of NaN to an integer is open; the documented result is 0 (§3.5).
#[test]
fn run_counts_what_is_left_open() {
    let graph = Graph {
        version: 1,
        tensors: &[Tensor("x", &[2], 7, &[]), Tensor("y", &[2], 3, &[])],
        operators: &[Operator(65, &["x"], &["y"], None)],
        inputs: &["x"],
        outputs: &["y"],
    };
    let folder = Folder::with("x.npy", &npy("<f4", 2, &f32s(&[f32::NAN, 1e30])));
    folder.write("g.tosa", &graph.file());
    let object = folder.run("run g.tosa --input x=x.npy --output-dir out --json").succeeds().object("run");
    assert_eq!(npy_parts(&folder.read("out/y.npy")).1, [0, 127]);
    let [open] = &object["undefined"].as_array().unwrap()[..] else { panic!("{object:?}") };
    has(open, &serde_json::json!({ "conversion": "CAST \"y\"", "elements": 2, "undefined": 1 }));
    folder.refused("run g.tosa --output-dir new", "missing-argument", &["g.tosa", "\"x\"", "--input x=FILE"]);
    assert_eq!(folder.names(), ["g.tosa", "out", "x.npy"]);
}

#[test]
fn graphs_are_judged_and_described() {
    let folder = Folder::new();
    let graph = |shift: u8, to, dims| {
        let tensors = [Tensor("x", dims, 5, &[]), Tensor("y", dims, 3, &[]), Tensor("z", dims, to, &[])];
        let operators = [
            Operator(66, &["x", "m", "s", "iz", "oz"], &["y"], SINGLE),
            Operator(32, &["y"], &["y2"], None),
            Operator(65, &["x"], &["z"], None),
        ];
        graph_of_rescale(&[shift], &tensors, &operators, &["x"], &["y", "z"])
    };
    let judged = |spec: &str| folder.run(&format!("check g.tosa --spec {spec} --json"));
    folder.write("g.tosa", &graph(31, 7, &[2, 3]));
    let object = judged("tosa").succeeds().object("check");
    assert_eq!((&object["conversions"], &object["illegal"]), (&2.into(), &serde_json::json!([])));
    // The draft added i32 to i64. A dimension may be unknown.
    for dims in [&[2, 3][..], &[2, -1]] {
        folder.write("g.tosa", &graph(31, 17, dims));
        judged("tosa@1.0").exits(1);
        assert_eq!(judged("tosa@1.0").object("check")["illegal"][0]["node"], "CAST \"z\"");
        judged("tosa@1.1").exits(0);
    }
    // R2, violated by a constant.
    folder.write("g.tosa", &graph(63, 7, &[2, 3]));
    assert!(folder.run("check g.tosa --spec tosa").out.contains("RESCALE \"y\": unpredictable: the shift"));
    assert!(folder.run("check g.tosa").out.contains("RESCALE \"y\": unpredictable: the shift"));
    let object = folder.run("inspect g.tosa --json").succeeds().object("inspect");
    has(&object, &serde_json::json!({ "model": { "operators": { "ABS": 1, "CONST": 4 } } }));
    assert_eq!(object["constants"].as_array().unwrap().len(), 4);
    let rescale =
        serde_json::json!({"node": "\"y\"", "operation": "RESCALE SINGLE_ROUND scale32", "from": "i32", "to": "i8"});
    assert_eq!(object["model"]["conversions"][0], rescale);
    assert!(folder.run("inspect g.tosa").succeeds().out.contains("7 operations"));
    folder.refused("inspect g.tosa --stats", "inapplicable-option", &["--stats", "g.tosa"]);
}

/// `docs/spec/tosa.md` §4.1: a multiplier that is an input needs EXT-DYNAMIC. All extensions are on by default.
#[test]
fn operands_that_are_no_constants_need_an_extension() {
    let tensors = [Tensor("x", &[2], 5, &[]), Tensor("y", &[2], 3, &[])];
    let rescale = Operator(66, &["x", "m", "s", "iz", "oz"], &["y"], SINGLE);
    let folder = Folder::with("g.tosa", &graph_of_rescale(&[31], &tensors, &[rescale], &["x", "m"], &["y"]));
    let ran = folder.run("check g.tosa").exits(0);
    assert!(ran.out.starts_with("legal: 1 conversion"), "{}", ran.out);
    assert!(ran.err.contains("RESCALE \"y\": an operand is not a constant, which needs EXT-DYNAMIC"), "{}", ran.err);
    let object = folder.run("check g.tosa --json").succeeds().object("check");
    assert_eq!((&object["illegal"], object["warnings"].as_array().unwrap().len()), (&serde_json::json!([]), 1));
}

#[test]
fn run_a_graph() {
    let graph = |shift: u8, mode| {
        let tensors = [Tensor("x", &[2], 5, &[]), Tensor("i", &[2], 5, &[]), Tensor("y", &[2], 3, &[])];
        let rescale = Some(([true, false, false, false], mode));
        let operators =
            [Operator(68, &["x"], &["i"], None), Operator(66, &["i", "m", "s", "iz", "oz"], &["y"], rescale)];
        graph_of_rescale(&[shift], &tensors, &operators, &["x"], &["y"])
    };
    let folder = Folder::with("x.npy", &npy("<i4", 2, &i32s(&[3, -3])));
    let line = "run g.tosa --input x=x.npy --output-dir out --json";
    folder.write("g.tosa", &graph(31, 1));
    assert_eq!(folder.run(line).succeeds().object("run")["status"], "valid");
    assert_eq!(npy_parts(&folder.read("out/y.npy")).1, [2, 0xff]);
    for (shift, mode, status, words) in [(63, 1, "unpredictable", "R2"), (31, 0, "error", "E18")] {
        folder.write("g.tosa", &graph(shift, mode));
        let object = folder.run(line).exits(3).warns(&[words]).object("run");
        assert_eq!(object["status"], status);
    }
    folder.run("run g.tosa --input x=x.npy --output-dir new").exits(3);
    assert!(!folder.path("new").exists());
    folder.write("g.tosa", b"\x08\0\0\0TOSA\xff\xff\xff\xff");
    folder.refused(line, "malformed-file", &["damaged"]);
    folder.refused("run g.tosa --output-dir out", "malformed-file", &["damaged"]);
}
