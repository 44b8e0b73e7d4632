//! What can be wrong with a checkpoint folder and with the JSON files in it.

use crate::escaped::Escaped;

/// The longest JSON file that is read (`docs/spec/checkpoints.md §2.2 C4`).
pub const MAX_JSON_BYTES: u64 = 128 << 20;
/// How deep objects and arrays may lie in each other (C4).
pub const MAX_JSON_DEPTH: usize = 128;
/// Values of one JSON file, each of which takes more memory than text (C4).
pub const MAX_JSON_VALUES: u64 = 1 << 21;

/// Which rule of `docs/spec/checkpoints.md §2` a folder breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum FolderError {
    /// Nothing to convert is there.
    #[error("the folder holds no .safetensors file{}", if *pickles { "; pickles (.bin, .pt) are never opened" } else { "" })]
    NoShards { pickles: bool },
    /// §9.9.
    #[error("the folder holds several GGUF models; give one of them, such as {}", Escaped(first))]
    SeveralGguf { first: String },
    /// §2.7.
    #[error("is a pipeline of several models (model_index.json); give {} by itself", listed(components))]
    Pipeline { components: Vec<String> },
    /// Two files say where tensors are.
    #[error("the folder holds several indices ({}); give a folder with one", listed(indices))]
    Indices { indices: Vec<String> },
    /// C1.
    #[error(
        "tensor {}: shard name {} is not a plain file name that ends in .safetensors",
        Escaped(tensor),
        Escaped(name)
    )]
    ShardName { tensor: String, name: String },
    /// C3.
    #[error("is a symbolic link; truecast follows only the links of a Hugging Face cache")]
    Link,
    /// C4.
    #[error("a JSON file of {bytes} bytes exceeds the limit of {MAX_JSON_BYTES}")]
    JsonTooLong { bytes: u64 },
    /// C4.
    #[error("line {line}: key {} occurs twice", Escaped(key))]
    DuplicateKey { line: usize, key: String },
    /// C4.
    #[error("more than {MAX_JSON_VALUES} values")]
    TooManyValues,
    /// No JSON.
    #[error("line {line}, column {column}: {message}")]
    Json { line: usize, column: usize, message: String },
    /// C5.
    #[error("no weight_map: an index maps the name of each tensor to the file that holds it")]
    WeightMap,
    /// C5.
    #[error("weight_map is empty: the index names no tensor and no file")]
    EmptyWeightMap,
    /// C5.
    #[error("weight_map: the value of {} is not a string", Escaped(tensor))]
    NotAShard { tensor: String },
    /// §2.3.
    #[error("shard {} is missing; the index lists {} in it", Escaped(shard), Escaped(tensor))]
    MissingShard { shard: String, tensor: String },
    /// §2.3.
    #[error("shard {} has no tensor {}, which the index lists", Escaped(shard), Escaped(tensor))]
    MissingTensor { shard: String, tensor: String },
    /// §2.3.
    #[error("tensor {} is in {} and in {}, and no index selects one", Escaped(tensor), Escaped(first), Escaped(second))]
    DuplicateTensor { tensor: String, first: String, second: String },
}

impl FolderError {
    /// The folder is not what was meant, rather than damaged.
    pub(crate) fn is_usage(&self) -> bool {
        use FolderError::{Indices, NoShards, Pipeline, SeveralGguf};
        matches!(self, NoShards { .. } | SeveralGguf { .. } | Pipeline { .. } | Indices { .. })
    }
}

fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().map(|name| Escaped(name).to_string()).collect();
    match shown.as_slice() {
        [] => "each of its folders".into(),
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        all => all.concat(),
    }
}
