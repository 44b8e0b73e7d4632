//! Keys and block types of a GGUF result (`docs/spec/checkpoints.md §9.8`). `truecast_io::gguf` defines the layout.

use crate::files::convert::container::OPTIONS_KEY;
use crate::files::convert::error::CheckpointError;
use crate::files::convert::job::TensorJob;
use crate::files::convert::options::{Options, RunScope};
use crate::files::convert::planned::Planned;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::flag::Flag;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::scaled::{BlockType, Coding, Layout};
use truecast_io::folder::Folder;
use truecast_io::gguf::{Keys, NewTensor, SPLIT, is_named};
use truecast_io::{Escaped, FileFormat, Tensor};
use truecast_schemes::{Documents, Family, Group, Scheme, Writing};

const FILE_TYPE: &str = "general.file_type";
const QUANTIZATION_VERSION: &str = "general.quantization_version";

/// Longest tensor name in bytes that ggml accepts.
const LONGEST_NAME: usize = 63;
/// Largest number of dimensions that ggml accepts.
const GGML_RANK: usize = 4;

/// Format of a result at `dst`: `Gguf` for a `.gguf` name, otherwise `Safetensors`.
pub(crate) fn container(dst: &Path) -> FileFormat {
    if is_named(dst) { FileFormat::Gguf } else { FileFormat::Safetensors }
}

pub(crate) fn check_options(src: &Path, options: &Options) -> Result<(), Error> {
    let given = [
        (options.resume, Flag::Resume),
        (matches!(options.scope, RunScope::Part(_)), Flag::Part),
        (options.scope == RunScope::Merge, Flag::Merge),
        (!options.copy_sidecars, Flag::NoSidecars),
    ];
    let why = || "truecast writes a .gguf or .safetensors file as one file, and no other files".to_string();
    let found = given.into_iter().find_map(|(is_given, option)| is_given.then_some(option));
    let refused = |option| Err(Error::checkpoint(src, CheckpointError::NoEffect { option, why: why() }));
    found.map_or(Ok(()), refused)
}

pub(crate) fn check_scheme(src: &Path, scheme: Scheme, into: FileFormat) -> Result<(), Error> {
    let is_blocks = matches!(scheme.family, Family::Gguf(_));
    let name = || scheme.to_string();
    let cause = match into {
        _ if scheme.is_plain() => return Ok(()),
        FileFormat::Gguf if !is_blocks => CheckpointError::NotOfGguf { scheme: name() },
        // Read-only blocks get another error.
        FileFormat::Safetensors if is_blocks && scheme.family.writing() != Writing::Never => {
            CheckpointError::OfGguf { scheme: name() }
        }
        _ => return Ok(()),
    };
    Err(Error::checkpoint(src, cause))
}

/// Keys of the result. They are the keys of the source's GGUF file without its types, or are derived from a folder.
pub(crate) fn keys(
    folder: &Folder,
    documents: &Documents,
    options: &Options,
    given: Option<Keys>,
    works: &[TensorJob],
) -> Result<Keys, Error> {
    let mut keys = match folder.shards() {
        _ if given.is_some() => given.unwrap_or_default(),
        // The keys are in the first file.
        [shard, ..] if shard.source.format() == FileFormat::Gguf => {
            let mut keys = Keys::of(&shard.source)?;
            // The result is not split, and has options of its own.
            keys.retain(|key| !key.starts_with(SPLIT) && key != OPTIONS_KEY);
            keys
        }
        _ => {
            let mut keys = Keys::new();
            let architecture = documents.config.as_ref().and_then(|config| config.get("model_type"));
            if let Some(Value::String(name)) = architecture {
                keys.set_text("general.architecture", name);
            }
            let path = folder.path();
            let name = if folder.is_file() { path.file_stem() } else { path.file_name() };
            if let Some(name) = name.and_then(|name| name.to_str()) {
                keys.set_text("general.name", name);
            }
            keys
        }
    };
    let scheme = options.quantize.as_ref().map(|writing| writing.scheme.family);
    // GGUF has no type U8. A target of type U8 therefore holds the bytes of blocks.
    if works.iter().flat_map(TensorJob::targets).any(|target| target.dtype == DType::U8) {
        keys.set_u32(QUANTIZATION_VERSION, 2)
    } else {
        keys.remove(QUANTIZATION_VERSION)
    }
    match file_type(scheme, options.selection.to) {
        Some(number) => keys.set_u32(FILE_TYPE, number),
        None => keys.remove(FILE_TYPE),
    }
    Ok(keys)
}

/// Number of the file type, which states the type of most tensors (§9.2).
fn file_type(scheme: Option<Family>, to: Option<DType>) -> Option<u32> {
    match (scheme, to) {
        (Some(Family::Gguf(BlockType::Q8_0)), _) => Some(7),
        (Some(Family::Gguf(BlockType::Mxfp4)), _) => Some(38),
        (_, Some(DType::F32)) => Some(0),
        (_, Some(DType::F16)) => Some(1),
        (_, Some(DType::Bf16)) => Some(32),
        _ => None,
    }
}

/// Jobs that copy a group's blocks; `None` if GGUF has no such blocks.
pub(crate) fn copied(folder: &Folder, stored: &[Stored], group: &Group) -> Option<Vec<TensorJob>> {
    let Family::Gguf(_) = group.scheme.family else { return None };
    Some(group.parts.iter().map(|(_, number)| copy(folder, stored[*number])).collect())
}

pub(crate) fn copy(folder: &Folder, at: Stored) -> TensorJob {
    let tensor = at.header(folder).clone();
    let Tensor { name, dtype: from, layout: src_layout, .. } = tensor.clone();
    let planned = Planned { name, target: tensor, from, src_layout, cast: None, kept_by: None };
    TensorJob { planned, job: Arc::new(at) }
}

/// True if the requested blocks have the type of the source's blocks.
pub(crate) fn is_alike(work: &TensorJob, group: &Group) -> bool {
    let blocks = |layout: &Layout| match layout.coding {
        Coding::Blocks { block, factor: false } => Some(block),
        _ => None,
    };
    work.job
        .scaled()
        .is_some_and(|scaled| blocks(&scaled.layout).is_some() && blocks(&scaled.layout) == blocks(&group.layout))
}

pub(crate) fn warnings(folder: &Folder, tensors: &[NewTensor], has_names: bool) -> Vec<String> {
    let path = folder.path().display();
    let is_gguf = folder.shards().iter().any(|shard| shard.source.format() == FileFormat::Gguf);
    let names = (!is_gguf && !has_names).then(|| {
        format!(
            "{path}: tensors keep their names, and hyperparameters and vocabulary are not written: llama.cpp cannot load \
             the file, for which it needs a folder with config.json, or --like"
        )
    });
    let mut long = tensors.iter().filter(|tensor| tensor.name.len() > LONGEST_NAME);
    let too_long = long.next().map(|first| {
        let (name, others) = (Escaped(&first.name), long.count());
        format!(
            "{path}: the names of tensor {name} and {others} others are longer than ggml takes ({LONGEST_NAME} bytes)"
        )
    });
    let deep = tensors.iter().find(|tensor| tensor.shape.len() > GGML_RANK).map(|tensor| {
        let (name, rank) = (Escaped(&tensor.name), tensor.shape.len());
        format!("{path}: tensor {name} has {rank} dimensions, more than ggml takes ({GGML_RANK})")
    });
    names.into_iter().chain(too_long).chain(deep).collect()
}
