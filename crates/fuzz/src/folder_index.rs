//! Index of a folder with two shards. An accepted index names only files of the folder, and each tensor once
//! (`docs/spec/checkpoints.md §2.1` to §2.3).

use std::collections::HashSet;

use truecast_io::Links;
use truecast_io::folder::{Folder, parse};

use crate::accepted;
use crate::input_file::InputFile;

thread_local! {
    static INDEX: InputFile = InputFile::new("model.safetensors.index.json")
        .with_sibling("a.safetensors", &shard(["x", "y"]))
        .with_sibling("b.safetensors", &shard(["y", "z"]));
}

/// A file with two tensors of one byte each.
fn shard(names: [&str; 2]) -> Vec<u8> {
    let [first, second] = names.map(|name| format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":"#));
    let header = format!("{{{first}[0,1]}},{second}[1,2]}}}}");
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[1, 2]].concat()
}

/// The input is the index.
pub fn folder_index(index: &[u8]) {
    INDEX.with(|file| {
        file.write(index);
        let Some(folder) = accepted(Folder::open(file.folder(), Links::Inside)) else { return };
        let mut names = HashSet::new();
        for shard in folder.shards() {
            assert!(["a.safetensors", "b.safetensors"].contains(&shard.name.as_str()));
            assert!(shard.tensors.iter().all(|&at| names.insert(shard.source.tensors()[at].name.clone())));
        }
        let index = folder.index().expect("the folder has one");
        assert!(index.weight_map.keys().all(|name| names.contains(&**name)));
        assert!(parse(&index.text(6)).is_ok());
    });
}
