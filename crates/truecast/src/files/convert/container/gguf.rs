//! Keys and block types of a GGUF result (`docs/spec/checkpoints.md §9.8`). `truecast_io::gguf` defines the layout.

use crate::files::convert::container::OPTIONS_KEY;
use crate::files::convert::error::CheckpointError;
use crate::files::convert::job::TensorJob;
use crate::files::convert::llamacpp::is_always_f32;
use crate::files::convert::options::{Options, RunScope};
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::importance::Importance;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::report::Provenance;
use crate::flag::Flag;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::scaled::{Coding, Layout};
use truecast_io::folder::Folder;
use truecast_io::gguf::{Keys, NewTensor, SPLIT, is_named};
use truecast_io::{Escaped, FileFormat, Tensor};
use truecast_schemes::{Documents, Family, Form, Group, Hyperparameters, Mixture, Scheme, Writing};

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
    let is_blocks = scheme.family.is_gguf();
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

/// Keys of the source's GGUF file; `None` for other sources. The first part of a file has the keys.
pub(crate) fn stored_keys(folder: &Folder) -> Result<Option<Keys>, Error> {
    let Some(shard) = folder.shards().first().filter(|shard| shard.source.format() == FileFormat::Gguf) else {
        return Ok(None);
    };
    let mut keys = Keys::of(&shard.source)?;
    // The result is not split, and has options of its own.
    keys.retain(|key| !key.starts_with(SPLIT) && key != OPTIONS_KEY);
    Ok(Some(keys))
}

/// The options that a file records. `None` without a record, and if the record is of another file type: a program that
/// changes the types of tensors, such as llama-quantize, keeps keys that it does not know.
///
/// # Errors
/// The reason why the record cannot be read.
pub(crate) fn recorded_options(keys: &Keys) -> Result<Option<Provenance>, String> {
    let Some(text) = keys.text(OPTIONS_KEY) else { return Ok(None) };
    let record = Provenance::parse(text)?;
    let family = record.quantize.as_ref().map(|writing| writing.scheme.family);
    let of = |mixture| file_type(mixture, family, record.selection.to).map(u64::from);
    let is_of_file = [family.and_then(Family::mixture), None].map(of).contains(&keys.number(FILE_TYPE));
    Ok(Some(record).filter(|_| is_of_file))
}

/// Sets the keys that do not tell about a result to those of another file: places of files that were read.
pub(crate) fn forget_places(keys: &mut Keys, found: &Keys) {
    if let Some(path) = found.text(Importance::FILE).filter(|_| keys.text(Importance::FILE).is_some()) {
        keys.set(Importance::FILE, path);
    }
    let without_places = |keys: &Keys| {
        let mut options: Value = serde_json::from_str(keys.text(OPTIONS_KEY)?).ok()?;
        let object = options.as_object_mut()?;
        object.retain(|key, _| !["imatrix", "activation_ranges"].contains(&key.as_str()));
        Some(options)
    };
    if let Some(text) = found.text(OPTIONS_KEY).filter(|_| without_places(keys) == without_places(found)) {
        keys.set(OPTIONS_KEY, text);
    }
}

/// Keys of the result: the given keys without types, or those that follow from a folder.
pub(crate) fn keys(
    folder: &Folder,
    documents: &Documents,
    options: &Options,
    mixture: Option<Mixture>,
    given: Option<Keys>,
    works: &[TensorJob],
) -> Keys {
    let mut keys = given.unwrap_or_else(|| {
        let mut keys = Keys::new();
        let architecture = documents.config.as_ref().and_then(|config| config.get("model_type"));
        if let Some(Value::String(name)) = architecture {
            keys.set("general.architecture", name);
        }
        set_name(folder, &mut keys);
        keys
    });
    let scheme = options.quantize.as_ref().map(|writing| writing.scheme.family);
    // GGUF has no type U8. A target of type U8 therefore holds the bytes of blocks.
    if works.iter().flat_map(TensorJob::targets).any(|target| target.dtype == DType::U8) {
        keys.set(QUANTIZATION_VERSION, &2u32)
    } else {
        keys.remove(QUANTIZATION_VERSION)
    }
    match file_type(mixture, scheme, options.selection.to) {
        Some(number) => keys.set(FILE_TYPE, &number),
        None => keys.remove(FILE_TYPE),
    }
    keys
}

/// Sets the name of a model: that of its folder, or of its repository, whose folder in the cache of Hugging Face is
/// `models--OWNER--NAME/snapshots/COMMIT`.
pub(crate) fn set_name(folder: &Folder, keys: &mut Keys) {
    let path = std::path::absolute(folder.path()).unwrap_or_else(|_| folder.path().into());
    let above = path.parent().filter(|above| above.ends_with("snapshots")).and_then(Path::parent);
    let of_cache = || above?.file_name()?.to_str()?.strip_prefix("models--")?.rsplit("--").next();
    let own = || if folder.is_file() { path.file_stem() } else { path.file_name() }?.to_str();
    if let Some(name) = of_cache().or_else(own) {
        keys.set("general.name", name);
    }
}

/// Number of the file type, which states the type of most tensors (§9.2).
fn file_type(mixture: Option<Mixture>, scheme: Option<Family>, to: Option<DType>) -> Option<u32> {
    match (mixture, scheme, to) {
        (Some(mixture), ..) => Some(mixture.file_type()),
        (_, Some(Family::Gguf(block)), _) => Mixture::of_only(block).map(Mixture::file_type),
        (.., Some(DType::F32)) => Some(0),
        (.., Some(DType::F16)) => Some(1),
        (.., Some(DType::Bf16)) => Some(32),
        _ => None,
    }
}

/// Mixture that the scheme means for a model: with llama.cpp's names of tensors, by a table; with others the scheme is
/// one block type.
///
/// # Errors
/// A mixture for a model with other names.
pub(crate) fn mixture(
    folder: &Folder,
    scheme: Scheme,
    tensors: &[Tensor],
    keeps_names: bool,
) -> Result<Option<Mixture>, Error> {
    match scheme.family {
        family if Mixture::applies_to(tensors) => Ok(family.mixture()),
        Family::Mixture(_) => {
            let (scheme, block) = (scheme.to_string(), scheme.family.base().name());
            let is_gguf = folder.shards().iter().any(|shard| shard.source.format() == FileFormat::Gguf);
            let why = match (keeps_names, is_gguf, folder.is_file()) {
                (true, ..) => "and the result keeps other names",
                (_, true, _) => "which this model does not have",
                (.., true) => "which need the config.json of a folder, and this is a file by itself",
                _ => "which need a config.json with a model_type, and this folder has none",
            };
            Err(Error::checkpoint(folder.path(), CheckpointError::NoMixture { scheme, block, why }))
        }
        _ => Ok(None),
    }
}

/// Form of each tensor in a mixture.
///
/// # Errors
/// A tensor without a layer.
pub(crate) fn forms(
    src: &Path,
    mixture: Mixture,
    about: &Hyperparameters,
    tensors: &[Tensor],
) -> Result<HashMap<Arc<str>, Form>, Error> {
    let failed = |first| Error::checkpoint(src, CheckpointError::NoForm { first, others: Vec::new() });
    mixture.forms(about, tensors).map_err(failed)
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
    let written = work.job.scaled().and_then(|scaled| blocks(&scaled.layout));
    written.is_some() && written == blocks(&group.layout)
}

/// Warnings about a result. `is_renamed`: its names are no longer those of the source.
pub(crate) fn warnings(folder: &Folder, tensors: &[NewTensor], is_renamed: bool, is_for_llamacpp: bool) -> Vec<String> {
    let path = folder.path().display();
    let is_gguf = folder.shards().iter().any(|shard| shard.source.format() == FileFormat::Gguf);
    let names = (!is_gguf && !is_renamed).then(|| {
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
    let is_narrow = |tensor: &&NewTensor| {
        is_for_llamacpp && tensor.block.dtype() != Some(DType::F32) && is_always_f32(&tensor.name, &tensor.shape)
    };
    let mut narrow = tensors.iter().filter(is_narrow);
    let narrow = narrow.next().map(|first| {
        let (name, others) = (Escaped(&first.name), narrow.count());
        format!("{path}: tensor {name} and {others} others are not f32: llama.cpp aborts when it computes with them")
    });
    names.into_iter().chain(too_long).chain(deep).chain(narrow).collect()
}
