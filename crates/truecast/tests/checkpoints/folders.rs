//! Folders that are damaged, changed or mixed (`docs/spec/checkpoints.md §2`).

use crate::work::Work;
use truecast_testkit::folder::{FIRST, SECOND, files};

fn checkpoint() -> Work {
    let work = Work::new();
    files().into_iter().for_each(|(name, bytes)| work.write(&format!("model/{name}"), &bytes));
    work
}

#[test]
fn damage_and_strays_are_differences() {
    let work = checkpoint();
    let convert = || drop(work.convert("model", "out", "to=bf16 replace"));
    let differs = |text: &str| {
        let found = format!("{:?}", work.checked("model", "out", "").differences);
        assert!(found.contains(text), "{text}: {found}");
    };
    for stray in ["model-00009-of-00002.safetensors", "model.safetensors", "pytorch_model.bin", "code/a.pt"] {
        convert();
        work.write(&format!("out/{stray}"), &work.read(&format!("out/{FIRST}")));
        differs(stray);
        std::fs::remove_file(work.path(&format!("out/{stray}"))).unwrap();
        work.verify("model", "out", "");
    }
    let index = String::from_utf8(work.read("out/model.safetensors.index.json")).unwrap();
    let moved = index.replace(&format!("\"a.ids\": \"{FIRST}\""), &format!("\"a.ids\": \"{SECOND}\""));
    assert_ne!(moved, index);
    let damages: [(&str, Option<&[u8]>, &str); 5] = [
        (SECOND, None, SECOND),
        (SECOND, Some(b"\x08\0\0\0\0\0\0\0{\"a\": 1"), SECOND),
        (SECOND, Some(b""), SECOND),
        ("model.safetensors.index.json", Some(moved.as_bytes()), "a.ids"),
        ("config.json", None, "config.json"),
    ];
    for (file, content, text) in damages {
        convert();
        match content {
            Some(bytes) => work.write(&format!("out/{file}"), bytes),
            None => std::fs::remove_file(work.path(&format!("out/{file}"))).unwrap(),
        }
        differs(text);
    }
}

/// The length and header are unchanged.
#[test]
fn a_source_that_changed_is_not_resumed() {
    let work = checkpoint();
    work.convert("model", "out", "to=bf16");
    let path = format!("model/{SECOND}");
    let mut bytes = work.read(&path);
    std::thread::sleep(std::time::Duration::from_millis(20));
    work.write(&path, &bytes);
    work.convert("model", "out", "to=bf16 resume");
    *bytes.last_mut().unwrap() ^= 1;
    std::thread::sleep(std::time::Duration::from_millis(20));
    work.write(&path, &bytes);
    work.refused("model", "out", "to=bf16 resume", "not-resumable", &[SECOND]);
    work.convert("model", "out", "to=bf16 replace");
    work.convert("model", "out", "to=bf16 resume");
    work.verify("model", "out", "");
}

/// Old files next to a new part would look like a complete checkpoint.
#[test]
fn a_part_leaves_no_mixture() {
    let work = checkpoint();
    work.convert("model", "out", "to=f16");
    let names = [FIRST, SECOND, "config.json", "model.safetensors.index.json", "tokenizer.json", "code/run.py"];
    let whole = names.map(|name| work.read(&format!("out/{name}")));
    let part = "to=bf16 part=1/2 replace";
    work.refused("model", "out", part, "destination-exists", &["out"]);
    std::fs::remove_file(work.path("out/truecast-manifest.json")).unwrap();
    work.refused("model", "out", part, "destination-exists", &["out"]);
    assert!(names.map(|name| work.read(&format!("out/{name}"))) == whole);
    for name in ["model.safetensors.index.json", "config.json"] {
        std::fs::remove_file(work.path(&format!("out/{name}"))).unwrap();
    }
    work.convert("model", "out", part);
    work.convert("model", "out", "to=bf16 part=2/2 replace");
    work.convert("model", "out", "to=bf16 merge");
    work.convert("model", "expected", "to=bf16");
    let shards = |name: &str| [FIRST, SECOND].map(|shard| work.read(&format!("{name}/{shard}")));
    assert_eq!(shards("out"), shards("expected"));
}
