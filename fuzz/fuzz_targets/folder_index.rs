//! The index of a folder of two shards. What is accepted names files of the folder only, and each tensor counts once
//! (`docs/spec/checkpoints.md §2.1` to §2.3).
#![no_main]

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use truecast_io::folder::Folder;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = truecast_fuzz::folder();
    for (name, tensors) in [("a", ["x", "y"]), ("b", ["y", "z"])] {
        let tensor = |(i, name): (usize, &str)| {
            format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#, i + 1)
        };
        let header = format!("{{{}}}", tensors.into_iter().enumerate().map(tensor).collect::<Vec<_>>().join(","));
        let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[1, 2]].concat();
        std::fs::write(folder.join(format!("{name}.safetensors")), file).expect("the file can be written");
    }
    folder
});

fuzz_target!(|index: &[u8]| {
    std::fs::write(FOLDER.join("model.safetensors.index.json"), index).expect("the file can be written");
    match Folder::open(&FOLDER, false) {
        Ok(folder) => {
            let mut names = HashSet::new();
            for shard in folder.shards() {
                assert!(["a.safetensors", "b.safetensors"].contains(&shard.name.as_str()));
                assert!(shard.tensors.iter().all(|&at| names.insert(shard.source.tensors()[at].name.clone())));
            }
            let index = folder.index().expect("the folder has one");
            assert!(index.weight_map.keys().all(|name| names.contains(name)));
            let text = index.text(6);
            assert!(truecast_io::folder::parse(&text).is_ok());
        }
        Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
    }
});
