//! Errors of a checkpoint folder and its JSON files.

use crate::escaped::Escaped;
use crate::foreign::Foreign;

/// Maximum length of a JSON file (`docs/spec/checkpoints.md §2.2 C4`).
pub const MAX_JSON_BYTES: u64 = 128 << 20;
/// Maximum nesting of objects and arrays (C4).
pub const MAX_JSON_DEPTH: usize = 128;
/// Maximum number of values in one JSON file (C4). A value takes more memory than its text.
pub const MAX_JSON_VALUES: u64 = 1 << 21;

/// Broken rule of `docs/spec/checkpoints.md §2`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum FolderError {
    #[error("the folder holds no .safetensors file{}", instead(found, components))]
    NoShards { found: Option<(String, Foreign)>, components: Vec<String> },
    /// Source: `docs/spec/checkpoints.md §9.9`.
    #[error("the folder holds several GGUF models; give one of them, such as {}", Escaped(first))]
    SeveralGguf { first: String },
    /// Source: `docs/spec/checkpoints.md §2.7`.
    #[error("{what} is for one model, and the folder holds several; give {} by itself", listed(components))]
    Several { what: String, components: Vec<String> },
    #[error("the folder holds several indices, such as {}; give a folder with one", Escaped(&indices[0]))]
    Indices { indices: Vec<String> },
    /// Rule C1 of `docs/spec/checkpoints.md §2.2`.
    #[error(
        "tensor {}: shard name {} is not a plain file name that ends in .safetensors",
        Escaped(tensor),
        Escaped(name)
    )]
    ShardName { tensor: String, name: String },
    /// Rule C3 of `docs/spec/checkpoints.md §2.2`.
    #[error("is a symbolic link; truecast follows only the links of a Hugging Face cache")]
    Link,
    /// Rule C4 of `docs/spec/checkpoints.md §2.2`.
    #[error("the file of {bytes} bytes exceeds the limit of {limit}")]
    TooLong { bytes: u64, limit: u64 },
    /// Rule C4 of `docs/spec/checkpoints.md §2.2`.
    #[error("line {line}: key {} occurs twice", Escaped(key))]
    DuplicateKey { line: usize, key: String },
    /// Rule C4 of `docs/spec/checkpoints.md §2.2`.
    #[error("more than {MAX_JSON_VALUES} values")]
    TooManyValues,
    #[error("line {line}, column {column}: {message}")]
    Json { line: usize, column: usize, message: String },
    /// Rule C5 of `docs/spec/checkpoints.md §2.2`.
    #[error("no weight_map: an index maps the name of each tensor to the file that holds it")]
    WeightMap,
    /// Rule C5 of `docs/spec/checkpoints.md §2.2`.
    #[error("weight_map is empty: the index names no tensor and no file")]
    EmptyWeightMap,
    /// Rule C5 of `docs/spec/checkpoints.md §2.2`.
    #[error("weight_map: the value of {} is not a string", Escaped(tensor))]
    NotAShard { tensor: String },
    /// Source: `docs/spec/checkpoints.md §2.3`.
    #[error("shard {} is missing; the index lists {} in it", Escaped(shard), Escaped(tensor))]
    MissingShard { shard: String, tensor: String },
    /// Source: `docs/spec/checkpoints.md §2.3`.
    #[error("part {missing} of {of} is missing, by the name of {}; get it, or convert single files", Escaped(name))]
    MissingPart { missing: u64, of: u64, name: String },
    /// Source: `docs/spec/checkpoints.md §2.3`.
    #[error("{} and {} are of two sets of parts; move one set to another folder", Escaped(first), Escaped(second))]
    PartsOfTwo { first: String, second: String },
    /// Source: `docs/spec/checkpoints.md §2.3`.
    #[error("shard {} has no tensor {}, which the index lists", Escaped(shard), Escaped(tensor))]
    MissingTensor { shard: String, tensor: String },
    /// Source: `docs/spec/checkpoints.md §2.3`.
    #[error("tensor {} is in {} and in {}, and no index selects one", Escaped(tensor), Escaped(first), Escaped(second))]
    DuplicateTensor { tensor: String, first: String, second: String },
}

/// Last words of the message that a folder has no tensors. The words name components or other files that the folder
/// has.
fn instead(found: &Option<(String, Foreign)>, components: &[String]) -> String {
    match found {
        _ if !components.is_empty() => format!("; give {} by itself", listed(components)),
        Some((file, found)) => format!("; {}: {found}", Escaped(file)),
        None => String::new(),
    }
}

fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().map(|name| Escaped(name).to_string()).collect();
    match shown.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        all => all.concat(),
    }
}
