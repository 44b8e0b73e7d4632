//! Index of a folder, which names the file of each tensor (`docs/spec/checkpoints.md §2.1`, §2.4).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::json::JsonFile;
use super::open::is_shard_name;
use crate::error::folder::FolderError;
use crate::error::{Cause, Error};

/// Suffix of every index.
pub const INDEX_SUFFIX: &str = ".safetensors.index.json";

const USUAL: [&str; 2] = ["model.safetensors.index.json", "diffusion_pytorch_model.safetensors.index.json"];

/// The index of a folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// The file's name.
    pub name: String,
    /// `metadata`; empty if the file has none.
    pub metadata: Map<String, Value>,
    /// File of each tensor, by the tensor's name. A file's name is plain, never a path.
    pub weight_map: BTreeMap<String, String>,
}

impl Index {
    pub(super) fn find(names: &[String]) -> Result<Option<&str>, FolderError> {
        let all: Vec<&String> = names.iter().filter(|name| name.ends_with(INDEX_SUFFIX)).collect();
        let usual = USUAL.into_iter().find(|usual| all.iter().any(|name| name == usual));
        match (usual, all.as_slice()) {
            (Some(usual), _) => Ok(Some(usual)),
            (None, []) => Ok(None),
            (None, [one]) => Ok(Some(one)),
            (None, several) => {
                Err(FolderError::Indices { indices: several.iter().map(|name| name.to_string()).collect() })
            }
        }
    }

    /// Reads an index and checks C1 and C5.
    pub(super) fn parse(name: &str, file: &JsonFile) -> Result<Index, Error> {
        let failed = |cause: FolderError| cause.at(&file.path);
        let map = file.value.get("weight_map").and_then(Value::as_object);
        let map = map.ok_or_else(|| failed(FolderError::WeightMap))?;
        if map.is_empty() {
            return Err(failed(FolderError::EmptyWeightMap));
        }
        let mut weight_map = BTreeMap::new();
        for (tensor, shard) in map {
            let shard = shard.as_str().ok_or_else(|| failed(FolderError::NotAShard { tensor: tensor.clone() }))?;
            if !is_shard_name(shard) {
                return Err(failed(FolderError::ShardName { tensor: tensor.clone(), name: shard.into() }));
            }
            weight_map.insert(tensor.clone(), shard.to_string());
        }
        let metadata = file.value.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(Index { name: name.into(), metadata, weight_map })
    }

    /// Text of the index. Each level is indented by two spaces, keys are sorted, and a newline ends the text.
    /// `metadata` gets `total_size`, the bytes of all tensors.
    ///
    /// Source: `docs/spec/checkpoints.md §2.4`.
    ///
    /// # Examples
    /// ```
    /// use truecast_io::folder::Index;
    /// let map = [("b".to_string(), "model.safetensors".to_string())].into();
    /// let text = Index { name: "i".into(), metadata: Default::default(), weight_map: map }.text(8);
    /// let expected = "{\n  \"metadata\": {\n    \"total_size\": 8\n  },\n  \"weight_map\": {\n    \"b\": \"model.safetensors\"\n  }\n}\n";
    /// assert_eq!(text, expected);
    /// ```
    #[must_use]
    pub fn text(&self, total_size: u64) -> String {
        let mut metadata = self.metadata.clone();
        metadata.insert("total_size".into(), json!(total_size));
        metadata.sort_keys();
        let object = json!({ "metadata": metadata, "weight_map": self.weight_map });
        serde_json::to_string_pretty(&object).expect("an index has a text") + "\n"
    }
}
