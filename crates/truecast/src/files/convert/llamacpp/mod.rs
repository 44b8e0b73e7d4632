//! Checkpoints as llama.cpp loads them: its names, its order of elements, hyperparameters and vocabulary
//! (`docs/spec/checkpoints.md §9.12`).

mod arrangement;
mod back;
mod by_name;
mod by_value;
mod fields;
mod hyperparameters;
mod like;
mod models;
mod names;
mod pieces;
mod rope;
mod source;
mod special;
mod strided;
#[cfg(test)]
mod tests;
mod tokenizer;
mod view;
mod vocabulary;

use crate::files::convert::container::gguf;
use crate::files::convert::error::CheckpointError;
use crate::files::convert::found::{Contents, quantized, stored};
use crate::files::convert::options::Options;
use crate::files::convert::planner::{Listed, listed};
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::select::{SourceName, SourceScheme};
pub(crate) use back::restored;
use fields::refused;
use hyperparameters::Model;
use like::Reference;
pub(crate) use names::is_always_f32;
use source::Files;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use truecast_core::DType;
use truecast_io::Tensor;
use truecast_io::folder::Folder;
use truecast_io::gguf::Keys;
use truecast_schemes::{Detection, Documents};
use view::{Piece, Renamed, Target, Values};

/// Keys and types of a file for llama.cpp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Header {
    pub keys: Keys,
    /// Types of tensors unless an option chooses one.
    pub types: HashMap<Arc<str>, DType>,
    /// Form of each tensor in the source.
    pub stored_as: HashMap<Arc<str>, StoredAs>,
    /// Names of the source's tensors.
    pub sources: Vec<SourceName>,
    /// Names of tensors that the result omits, with the reason.
    pub dropped: Vec<(String, String)>,
    pub warnings: Vec<String>,
}

/// Form in which the source stores the values of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct StoredAs {
    /// Type of the elements, or of the codes of a quantized tensor.
    pub dtype: DType,
    pub scheme: Option<Arc<str>>,
    pub bytes: u64,
}

/// Renames and rearranges the tensors of a model's folder. Other sources keep their names.
///
/// # Errors
/// An architecture, a tensor or a shape that is not understood; a reference that is not the same model.
pub(crate) fn renamed(folder: Folder, contents: Contents, options: &Options) -> Result<(Folder, Contents), Error> {
    let SourceScheme { like, keep_names, .. } = &options.source_scheme;
    let is_model = || contents.documents.config.as_ref().is_some_and(|config| config.get("model_type").is_some());
    if *keep_names || like.is_none() && !is_model() {
        return Ok((folder, contents));
    }
    let folder = Arc::new(folder);
    let (all, dropped) = items(&folder, &contents);
    let names: Vec<_> = all.iter().map(|item| item.name.clone()).collect();
    let (Match { targets, notes: warnings }, keys) = match like {
        Some(like) => {
            let reference = Reference::open(like)?;
            (reference.matched(&folder, all)?, reference.keys)
        }
        None => {
            let failed = |cause| Error::checkpoint(folder.path(), cause);
            let files = Files::read(&folder)?;
            let model = Model::new(&files.config).map_err(failed)?;
            let mut found = of_model(&model, all).map_err(failed)?;
            found.notes.extend(model.warning().map_err(failed)?);
            let mut keys = keys(&model, &files).map_err(failed)?;
            gguf::set_name(&folder, &mut keys);
            let path = folder.path().display();
            found.notes.iter_mut().for_each(|note| *note = format!("{path}: {note}"));
            (found, keys)
        }
    };
    let (stored_as, sources) = (stored_as(&targets), sources(&folder, names, &targets));
    let header = Header { keys, types: HashMap::new(), stored_as, sources, dropped, warnings };
    let folder = Renamed::new(folder, targets)?.into_folder()?;
    let found = Detection { groups: Vec::new(), ..contents.found };
    let contents = plain(&folder, contents.documents, found, header);
    Ok((folder, contents))
}

/// Contents of a folder whose tensors are computed, none of them quantized.
fn plain(folder: &Folder, documents: Documents, found: Detection, header: Header) -> Contents {
    let stored: Vec<Stored> = stored(folder).collect();
    let roles = stored.iter().map(|_| truecast_schemes::Role::Plain).collect();
    Contents { stored, documents, found: Detection { roles, ..found }, llamacpp: Some(header) }
}

/// The folder of a model with the names of llama.cpp; as it is, if it is not understood.
pub(crate) fn for_llamacpp(folder: Folder) -> Folder {
    let folder = Arc::new(folder);
    let renamed = || {
        let contents = Contents::detect(&folder, &truecast_schemes::Options::default()).ok()?;
        let model = Model::new(contents.documents.config.as_ref()?).ok()?;
        let Match { targets, .. } = of_model(&model, items(&folder, &contents).0).ok()?;
        Renamed::new(folder.clone(), targets).ok()?.into_folder().ok()
    };
    renamed().unwrap_or_else(|| Arc::into_inner(folder).expect("no view holds it"))
}

/// Form of each target in the source.
fn stored_as<'a>(targets: impl IntoIterator<Item = &'a Target>) -> HashMap<Arc<str>, StoredAs> {
    let form = |target: &Target| Some((target.tensor.name.clone(), target.stored_as()?));
    targets.into_iter().filter_map(form).collect()
}

/// Names of the source's tensors, all of which `names` has, with the targets that they become.
fn sources(folder: &Folder, names: Vec<Arc<str>>, targets: &[Target]) -> Vec<SourceName> {
    let of_target = |target: &Target| {
        let tensor = Some(target.tensor.name.clone());
        let named = |piece: &Piece| Some(SourceName { name: piece.values.name(folder)?, tensor: tensor.clone() });
        target.pieces.iter().filter_map(named).collect::<Vec<_>>()
    };
    let used: Vec<_> = targets.iter().flat_map(of_target).collect();
    let known: HashSet<_> = used.iter().map(|source| source.name.clone()).collect();
    let left_out = names.into_iter().filter(|name| !known.contains(name));
    let left_out: Vec<_> = left_out.map(|name| SourceName { name, tensor: None }).collect();
    [used, left_out].concat()
}

/// A tensor of a checkpoint. A quantized tensor has one row for each output.
#[derive(Clone, Debug)]
struct Item {
    name: Arc<str>,
    shape: Vec<u64>,
    values: Values,
    /// Type of the values.
    dtype: DType,
}

/// Tensors of a checkpoint in the order of their data, and the names of dropped ones with the reasons.
fn items(folder: &Folder, contents: &Contents) -> (Vec<Item>, Vec<(String, String)>) {
    let (all, dropped) = listed(folder, &contents.stored, &contents.found, &HashMap::new());
    let item = |Listed { at, group, tensor: Tensor { name, dtype, shape, .. } }: Listed<'_>| {
        let mut shape = shape.to_vec();
        let Some(group) = group else { return Item { name, shape, values: Values::Plain(at), dtype } };
        let mut values = quantized(folder, &contents.stored, group);
        if let ([.., rows, cols], true) = (&mut shape[..], values.layout.transposed) {
            std::mem::swap(rows, cols);
            values = values.transposed();
        }
        Item { name, shape, values: Values::Quantized(Box::new(values)), dtype: DType::F32 }
    };
    (all.into_iter().map(item).collect(), dropped)
}

/// Tensors of a result, and sentences about them.
struct Match {
    targets: Vec<Target>,
    notes: Vec<String>,
}

/// Error: the source is not the model of a reference.
type Refused<'a> = &'a dyn Fn(String) -> Error;

/// Targets of a model whose architecture is known; notes are about tensors that are left out.
fn of_model(model: &Model, all: Vec<Item>) -> Result<Match, CheckpointError> {
    let mut found = by_name::targets(model.dimensions()?, all).map_err(refused)?;
    found.targets.extend(model.rope_factors()?.map(|factors| Target::known("rope_freqs.weight", factors)));
    Ok(found)
}

/// Keys of a model, except `general.name`, `general.file_type` and `general.quantization_version`.
///
/// # Errors
/// [`CheckpointError::NotOfLlamacpp`].
fn keys(model: &Model, files: &Files) -> Result<Keys, CheckpointError> {
    let mut keys = Keys::new();
    keys.set("general.architecture", model.kind.architecture);
    keys.set("general.type", "model");
    hyperparameters::sampling(files, &mut keys)?;
    model.keys(&mut keys)?;
    vocabulary::keys(model, files, &mut keys)?;
    Ok(keys)
}
