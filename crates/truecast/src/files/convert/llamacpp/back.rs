//! A folder that transformers loads, from a file that llama.cpp loads: names and order of elements undone.

use super::arrangement::Arrangement;
use super::hyperparameters::{Dimensions, Model};
use super::like::Reference;
use super::names::{Numbers, Role, role, source_names};
use super::view::{Piece, Renamed, Target};
use super::{Header, Item, plain};
use crate::files::convert::error::CheckpointError;
use crate::files::convert::found::{Contents, documents};
use crate::files::error::Error;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use truecast_io::folder::{Folder, FolderError, ViewedShard};
use truecast_io::{Escaped, Links, Tensor, look};
use truecast_schemes::Detection;

/// Name of the weights if the folder with the configuration has none.
const WEIGHTS: &str = "model.safetensors";

/// A file of tensors, as the result has it.
struct Shard {
    name: String,
    metadata: BTreeMap<String, String>,
    /// Names and, if known, types of the tensors, in order.
    tensors: Vec<(Arc<str>, Option<Tensor>)>,
}

/// Renames and rearranges the tensors of the `.gguf` file at `src`. `like` is a folder of the same model, or its
/// `config.json`: it gives files other than weights and, if it has weights, types, order and files of tensors.
///
/// # Errors
/// An architecture, a tensor or a shape that is not understood.
pub(crate) fn restored(src: &Path, like: &Path, links: Links) -> Result<(Folder, Contents), Error> {
    let like = if look::is_folder(like)? {
        like
    } else {
        like.parent().filter(|_| like.ends_with("config.json")).unwrap_or(like)
    };
    let like = if like.as_os_str().is_empty() { Path::new(".") } else { like };
    let refused = |what: String| Error::checkpoint(like, CheckpointError::Reference { what });
    if !look::is_folder(like)? {
        return Err(refused("it is neither a folder nor a config.json".into()));
    }
    let reference = Reference::open(src)?;
    let model = Folder::without_weights(like, links)?;
    let config = model.json("config.json")?.ok_or_else(|| refused("it has no config.json".into()))?.value;
    let dimensions = Model::new(&config).and_then(|model| model.dimensions());
    let dimensions = dimensions.map_err(|cause| Error::checkpoint(like, cause))?;
    if dimensions.architecture != reference.architecture() {
        let (ours, theirs) = (Escaped(reference.architecture()), Escaped(dimensions.architecture));
        return Err(refused(format!("its architecture is {theirs}, and that of {} is {ours}", src.display())));
    }
    let shards = match Folder::open(like, links) {
        Ok(folder) if config.get("quantization_config").is_none() => of_weights(&folder),
        // The folder of a quantized model has other tensors.
        Ok(_) | Err(truecast_io::Error::Folder { cause: FolderError::NoShards { .. }, .. }) => {
            vec![of_names(dimensions, &reference.items)]
        }
        Err(error) => return Err(error.into()),
    };
    let items: HashMap<&str, &Item> = reference.items.iter().map(|item| (&*item.name, item)).collect();
    if let Some(item) = reference.items.iter().find(|item| item.shape.contains(&0)) {
        return Err(refused(format!("tensor {} of the file has no elements", Escaped(&item.name))));
    }
    let mut used = HashSet::new();
    let (mut types, mut stored_as, mut sources) = (HashMap::new(), HashMap::new(), Vec::new());
    let mut viewed = Vec::new();
    for Shard { name: file, metadata, tensors } in shards {
        let mut targets = Vec::new();
        for (name, tensor) in tensors {
            let target = restore(dimensions, &name, &items, &mut used).map_err(refused)?;
            if let Some(tensor) = tensor {
                if tensor.shape != target.tensor.shape {
                    let (theirs, ours) = (&tensor.shape, &target.tensor.shape);
                    let name = Escaped(&name);
                    return Err(refused(format!(
                        "{name} has shape {theirs:?} in the folder, and {ours:?} in the file"
                    )));
                }
                types.insert(name, tensor.dtype);
            }
            targets.push(target);
        }
        stored_as.extend(super::stored_as(&targets));
        sources.extend(super::sources(&reference.folder, Vec::new(), &targets));
        let tensors = targets.iter().map(|target| target.tensor.clone()).collect();
        let view = Arc::new(Renamed::new(reference.folder.clone(), targets)?);
        viewed.push(ViewedShard { name: file, metadata, tensors, view });
    }
    let is_lost = |item: &&Item| !used.contains(&*item.name) && !item.name.starts_with("rope_f");
    if let Some(lost) = reference.items.iter().find(is_lost) {
        return Err(refused(format!("tensor {} of the file has no place in the folder", Escaped(&lost.name))));
    }
    let folder = Folder::of_views(&reference.folder, model, viewed)?;
    let header = Header { types, stored_as, sources, ..Header::default() };
    let contents = plain(&folder, documents(&folder)?, Detection::default(), header);
    Ok((folder, contents))
}

fn of_weights(folder: &Folder) -> Vec<Shard> {
    let shard = |shard: &truecast_io::folder::Shard| {
        let tensors = shard.tensors.iter().map(|at| shard.source.tensors()[*at].clone());
        let tensors = tensors.map(|tensor| (tensor.name.clone(), Some(tensor))).collect();
        Shard { name: shard.name.clone(), metadata: shard.source.metadata().clone(), tensors }
    };
    folder.shards().iter().map(shard).collect()
}

/// Names that follow from those of the `.gguf` file.
fn of_names(dimensions: Dimensions<'_>, items: &[Item]) -> Shard {
    let mut tensors = Vec::new();
    for item in items {
        let experts = item.shape.first().copied().filter(|experts| dimensions.experts == Some(*experts)).unwrap_or(0);
        tensors.extend(
            source_names(dimensions.architecture, &item.name, experts).into_iter().map(|name| (name.into(), None)),
        );
    }
    Shard { name: WEIGHTS.into(), metadata: [("format".into(), "pt".into())].into(), tensors }
}

/// Makes a tensor of the folder from those of the file.
fn restore(
    dimensions: Dimensions<'_>,
    name: &str,
    items: &HashMap<&str, &Item>,
    used: &mut HashSet<Arc<str>>,
) -> Result<Target, String> {
    let architecture = dimensions.architecture;
    let unknown = || format!("tensor {} is not known for architecture {architecture}", Escaped(name));
    let (results, expert) = match role(architecture, name) {
        Role::Mapped(results, Numbers { expert, .. }) => (results, expert),
        Role::OtherMode => {
            let name = Escaped(name);
            return Err(format!("tensor {name} encodes images or sound, and the file holds a language model only"));
        }
        Role::Computed | Role::Unknown => return Err(unknown()),
    };
    let find = |result: &str| items.get(result).copied().ok_or_else(|| format!("the file has no {}", Escaped(result)));
    let sources: Vec<_> =
        results.iter().map(|(result, how)| Ok((find(result)?, *how))).collect::<Result<_, String>>()?;
    used.extend(sources.iter().map(|(item, _)| item.name.clone()));
    let [(first, how), ..] = &sources[..] else { return Err(unknown()) };
    let misfit = |item: &Item| format!("the shape {:?} of {} does not fit", item.shape, Escaped(&item.name));
    let shape = match (&first.shape[..], expert) {
        (shape, None) => shape,
        ([experts, shape @ ..], Some(expert)) if expert < *experts && dimensions.experts == Some(*experts) => shape,
        _ => return Err(misfit(first)),
    };
    let begin = expert.unwrap_or(0) * shape.iter().product::<u64>();
    let shape_in_folder = how.shape_in_folder(shape, dimensions);
    let mut alternates = false;
    let mut parts = Vec::new();
    for (item, how) in &sources {
        let found = Arrangement::new(&item.name, *how, &shape_in_folder, dimensions, true);
        let shape = &item.shape[usize::from(expert.is_some())..];
        let fits = |of: &Arrangement| of.shape == shape && item.dtype == first.dtype;
        let found = found.filter(fits).ok_or_else(|| misfit(item))?;
        alternates |= found.alternates();
        parts.push(found.inverse(begin).into_iter().map(|order| Piece { values: item.values.clone(), order }));
    }
    let mut pieces: Vec<Piece> = Vec::new();
    while let Some(next) = parts.iter_mut().map(Iterator::next).collect::<Option<Vec<_>>>() {
        pieces.extend(next);
    }
    let mut target = Target { alternates, ..Target::new(name, &shape_in_folder, first.dtype, pieces) };
    if architecture.starts_with("gemma") && first.name.ends_with("norm.weight") {
        target = Target { add: Some(-1.0), ..target.widened() };
    }
    Ok(target)
}
