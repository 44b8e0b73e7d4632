//! Errors of a checkpoint folder and its JSON files.

use crate::escaped::Escaped;
use crate::foreign::Foreign;

/// Maximum length of a JSON file (`docs/spec/checkpoints.md §2.2 C4`).
pub const MAX_JSON_BYTES: u64 = 128 << 20;
/// Maximum nesting of objects and arrays (C4).
pub const MAX_JSON_DEPTH: usize = 128;
/// Maximum number of values in one JSON file; a value takes more memory than its text (C4).
pub const MAX_JSON_VALUES: u64 = 1 << 21;

/// Broken rule of `docs/spec/checkpoints.md §2`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum FolderError {
    /// Nothing to convert.
    #[error("the folder holds no .safetensors file{}", instead(found, components))]
    NoShards { found: Option<(String, Foreign)>, components: Vec<String> },
    /// §9.9.
    #[error("the folder holds several GGUF models; give one of them, such as {}", Escaped(first))]
    SeveralGguf { first: String },
    /// §2.7.
    #[error("{what} is for one model, and the folder holds several; give {} by itself", listed(components))]
    Several { what: String, components: Vec<String> },
    /// Several indices.
    #[error("the folder holds several indices, such as {}; give a folder with one", Escaped(&indices[0]))]
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
    #[error("part {missing} of {of} is missing, by the name of {}; get it, or convert single files", Escaped(name))]
    MissingPart { missing: u64, of: u64, name: String },
    /// §2.3.
    #[error("{} and {} are of two sets of parts; move one set to another folder", Escaped(first), Escaped(second))]
    PartsOfTwo { first: String, second: String },
    /// §2.3.
    #[error("shard {} has no tensor {}, which the index lists", Escaped(shard), Escaped(tensor))]
    MissingTensor { shard: String, tensor: String },
    /// §2.3.
    #[error("tensor {} is in {} and in {}, and no index selects one", Escaped(tensor), Escaped(first), Escaped(second))]
    DuplicateTensor { tensor: String, first: String, second: String },
}

/// Returns the end of a message on the contents of a folder without tensors.
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
