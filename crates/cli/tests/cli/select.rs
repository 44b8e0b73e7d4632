//! Types of tensors: `--to`, `--from`, `--rule`, `--keep` (`docs/interfaces.md §3`).

use crate::run::Folder;
use truecast_testkit::npy::{npy, npy_parts};
use truecast_testkit::safetensors::{Parsed, f32s, safetensors};

fn checkpoint() -> Folder {
    let tensors = [
        ("model.norm.weight", "F32", &[2u64][..], f32s(&[1.0, 2.0])),
        ("model/attn.weight", "F32", &[2], f32s(&[1.0, 2.0])),
        ("a=b", "F32", &[2], f32s(&[1.0, 2.0])),
        ("ids", "I32", &[1], vec![5, 0, 0, 0]),
        ("mask", "BOOL", &[2], vec![1, 0]),
        ("codes", "U8", &[2], vec![0x38, 0x7e]),
    ];
    Folder::with("a.safetensors", &safetensors(&tensors, &[]))
}

/// Element types of norm, attn, a=b, ids, mask, codes.
#[track_caller]
fn dtypes(options: &[&str]) -> [String; 6] {
    let folder = checkpoint();
    let line = ["convert", "a.safetensors", "b.safetensors"].iter().chain(options);
    folder.run_args(line).exits(0);
    let result = Parsed::new(&folder.read("b.safetensors"));
    ["model.norm.weight", "model/attn.weight", "a=b", "ids", "mask", "codes"].map(|n| result.dtype(n).to_string())
}

#[test]
fn first_match_wins_in_command_line_order() {
    let rows: [(&[&str], [&str; 6]); 14] = [
        (&["--to", "bf16"], ["BF16", "BF16", "BF16", "I32", "BOOL", "U8"]),
        (&["--to", "bf16", "--keep", "*norm*"], ["F32", "BF16", "BF16", "I32", "BOOL", "U8"]),
        (&["--keep", "*norm*", "--rule", "model*=f16"], ["F32", "F16", "F32", "I32", "BOOL", "U8"]),
        (&["--rule", "model*=f16", "--keep", "*norm*"], ["F16", "F16", "F32", "I32", "BOOL", "U8"]),
        (
            &["--rule=model*=f16", "--to=f64", "--rule=*=f8e5m2"],
            ["F16", "F16", "F8_E5M2", "F8_E5M2", "F8_E5M2", "F8_E5M2"],
        ),
        (&["--rule", "a=b=f16"], ["F32", "F32", "F16", "I32", "BOOL", "U8"]),
        (&["--rule", "model?attn*=f16"], ["F32", "F16", "F32", "I32", "BOOL", "U8"]),
        (&["--rule", "{ids,mask}=f32"], ["F32", "F32", "F32", "F32", "F32", "U8"]),
        (&["--rule", "*weight=FLOAT16", "--rule", "codes=st:f8_e4m3"], ["F16", "F16", "F32", "I32", "BOOL", "F8_E4M3"]),
        (&["--to", "torch.bfloat16", "--rule", "ids=np.int64"], ["BF16", "BF16", "BF16", "I64", "BOOL", "U8"]),
        (&["--to", "bf16", "--keep", "model"], ["F32", "BF16", "BF16", "I32", "BOOL", "U8"]),
        (&["--to", "bf16", "--keep", "model.norm"], ["F32", "BF16", "BF16", "I32", "BOOL", "U8"]),
        (&["--rule", "model.norm=f16", "--keep", "model"], ["F16", "F32", "F32", "I32", "BOOL", "U8"]),
        (&["--rule", "ids=i64", "--to", "torch:half"], ["F16", "F16", "F16", "I64", "BOOL", "U8"]),
    ];
    for (options, expected) in rows {
        assert_eq!(dtypes(options), expected, "{options:?}");
    }
}

#[test]
fn rules_that_say_nothing_are_errors() {
    let folder = checkpoint();
    for options in [
        &[][..],
        &["--rule", "ids"],
        &["--rule", "ids=zork"],
        &["--rule", "ids=f8e4m3"],
        &["--rule", "[=f16"],
        &["--keep", "{a"],
        &["--rule", "="],
    ] {
        let line = ["convert", "a.safetensors", "b.safetensors"].iter().chain(options);
        folder.run_args(line).exits(2);
    }
    assert_eq!(folder.names(), ["a.safetensors"]);
}

#[test]
fn arrays_are_always_converted() {
    let folder = Folder::with("a.npy", &npy("<i4", 2, &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]));
    folder.run("convert a.npy b.npy --to f16").succeeds();
    assert_eq!(npy_parts(&folder.read("b.npy")), ("<f2".into(), &[0x00, 0x3c, 0x00, 0xbc][..]));
    folder.run("convert a.npy c.npy --keep data").succeeds();
    assert_eq!(npy_parts(&folder.read("c.npy")).0, "<i4");
    folder.write("t.npy", &npy("|b1", None, &[1]));
    folder.run("convert t.npy f.npy --to f32").succeeds();
    assert_eq!(npy_parts(&folder.read("f.npy")).1, f32s(&[1.0]));
}

#[test]
fn from_reinterprets_an_array() {
    let folder = Folder::with("v.npy", &npy("<V1", 2, &[0x38, 0x7e]));
    folder.run("convert v.npy f.npy --from f8e4m3fn --to f32").succeeds();
    assert_eq!(npy_parts(&folder.read("f.npy")).1, f32s(&[1.0, 448.0]));
    folder.refused("convert v.npy b.npy --to f32", "type-not-stated", &["v.npy", "--from"]);
    folder.refused("convert v.npy b.npy --from f16 --to f32", "type-not-applicable", &["v.npy", "f16"]);
    folder.refused("convert v.npy b.npy --from i4 --to f32", "invalid-code", &["v.npy", "element 0", "0x38"]);
    assert_eq!(folder.names(), ["f.npy", "v.npy"]);
}

#[test]
fn from_in_a_checkpoint_needs_a_rule() {
    let folder = checkpoint();
    folder.run("convert a.safetensors b.safetensors --from f8e4m3fn --rule codes=f32").succeeds();
    assert_eq!(Parsed::new(&folder.read("b.safetensors")).bytes("codes"), f32s(&[1.0, 448.0]));
    for options in ["--to f32", "--rule ids=f32", "--to f16 --keep codes"] {
        folder.refused(
            &format!("convert a.safetensors c.safetensors --from f8e4m3fn {options}"),
            "unmatched-pattern",
            &["--from"],
        );
    }
    assert!(!folder.path("c.safetensors").exists());
}

#[test]
fn ambiguous_names_list_the_choices() {
    let folder = checkpoint();
    for (name, choices) in
        [("f8e4m3", ["f8e4m3fn", "f8e4m3ieee"]), ("e4m3", ["f8e4m3fn", "f8e4m3fnuz"]), ("fp8", ["f8e4m3fn", "f8e5m2"])]
    {
        let ran = folder.run(&format!("convert a.safetensors b.safetensors --to {name}")).exits(2);
        assert!(choices.iter().all(|c| ran.err.contains(c)), "{}", ran.err);
    }
    for (name, dtype) in [("ov:f8e4m3", "F8_E4M3"), ("Float8_E4M3FNUZ", "F8_E4M3FNUZ"), ("tosa:fp16_t", "F16")] {
        let to = format!("{}.safetensors", name.replace(':', "-"));
        folder.run(&format!("convert a.safetensors {to} --to {name}")).succeeds();
        assert_eq!(Parsed::new(&folder.read(&to)).dtype("a=b"), dtype);
    }
}
