//! A checkpoint that is a folder: an index, files of tensors, and other files. A checkpoint of one file is a folder
//! without other files.
//!
//! Opening reads every header and checks every name. Names in files never open anything outside the folder. Read
//! first: `docs/spec/checkpoints.md §2`.

mod component;
mod files;
mod index;
mod json;
mod open;
mod part;
mod sidecar;
mod split;

pub use crate::error::folder::{FolderError, MAX_JSON_BYTES, MAX_JSON_DEPTH, MAX_JSON_VALUES};
pub use files::{free_bytes, remove, write};
pub use index::{INDEX_SUFFIX, Index};
pub use json::{Edit, JsonFile, edit, parse};
pub use sidecar::{Sidecar, components};
pub use split::single;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Cause, Error};
use crate::escaped::{Escaped, counted};
use crate::foreign::Foreign;
use crate::gguf::{self, Value};
use crate::look;
use crate::open::open_regular;
use crate::options::Links;
use crate::source::Source;
use crate::tensor::{FileFormat, Tensor};
use crate::view::View;
use component::Declared;
use foldhash::{HashMap, HashMapExt};
use part::PartName;
pub use part::is_part;

/// Names of files that hold a whole checkpoint, in order of preference. They count only in a folder without an index.
const SINGLE: [&str; 2] = ["model.safetensors", "diffusion_pytorch_model.safetensors"];
/// File of an adapter, which PEFT loads in addition to the model's weights.
const ADAPTER: &str = "adapter_model.safetensors";

/// A file of tensors in a folder.
#[derive(Debug)]
pub struct Shard {
    /// Plain name, never a path.
    pub name: String,
    /// The opened file.
    pub source: Source,
    /// Indices of the tensors in `source` that count, in data order. Another shard holds the copies that count of the
    /// rest.
    pub tensors: Vec<usize>,
}

/// A file of computed tensors.
#[derive(Debug)]
pub struct ViewedShard {
    /// Plain name, never a path.
    pub name: String,
    /// Metadata of the file.
    pub metadata: BTreeMap<String, String>,
    /// Tensors in data order.
    pub tensors: Vec<Tensor>,
    /// Computes the tensors.
    pub view: Arc<dyn View>,
}

/// An opened checkpoint.
///
/// # Examples
/// ```
/// use std::collections::BTreeMap;
/// use truecast_core::{DType, Layout};
/// use truecast_io::{Existing, FileFormat, Links, Tensor, Writer, folder::Folder};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.safetensors");
/// let tensor = Tensor { name: "w".into(), dtype: DType::U8, layout: Layout::Packed, shape: [2].into() };
/// let mut writer = Writer::create(&path, FileFormat::Safetensors, vec![tensor], &BTreeMap::new(), Existing::Refuse)?;
/// writer.write(&[1, 2])?;
/// writer.finish()?;
/// let opened = Folder::open(folder.path(), Links::Inside)?;
/// assert_eq!(&*opened.shards()[0].source.tensors()[0].name, "w");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Folder of the other files, if it is not `path`.
    beside: Option<PathBuf>,
    /// Whether the path is a file: the only shard, or a part of a split GGUF model.
    is_file: bool,
    links: Links,
    shards: Vec<Shard>,
    index: Option<Index>,
    sidecars: Vec<Sidecar>,
    strays: Vec<PathBuf>,
    components: Vec<PathBuf>,
    /// Classes of a pipeline's models, by folder.
    classes: BTreeMap<PathBuf, String>,
    warnings: Vec<String>,
}

impl Folder {
    /// Opens a folder: its index, the header of every file that it names, and the list of other files.
    ///
    /// Cost: memory proportional to the headers; one open handle for each file.
    /// Source: `docs/spec/checkpoints.md §2.1` to §2.3, §2.7.
    ///
    /// # Errors
    /// [`Error::Folder`] and the errors of [`Source::open`].
    pub fn open(path: &Path, links: Links) -> Result<Folder, Error> {
        let names = names_in(path)?;
        let declared = Declared::read(path, &names, links)?;
        let name = Index::find(&names).map_err(|cause| cause.at(path))?.filter(|_| !declared.is_pipeline);
        let index = match name {
            Some(name) => match JsonFile::read(path, name, links)? {
                Some(file) => Some(Index::parse(name, &file)?),
                None => None,
            },
            None => None,
        };
        let there = || names.iter().map(String::as_str);
        let single = || SINGLE.into_iter().find(|single| there().any(|name| name == *single));
        let wanted: BTreeSet<&str> = match &index {
            None if declared.is_pipeline => [].into(), // Files next to the description are copies of its models.
            Some(index) => index.weight_map.values().map(String::as_str).collect(),
            None => match single() {
                Some(single) => [single].into(),
                None => {
                    let all: BTreeSet<&str> = there().filter(|name| open::is_shard_name(name)).collect();
                    part::check(all.iter().copied()).map_err(|cause| cause.at(path))?;
                    let is_own = |name: &&str| all.len() == 1 || *name != ADAPTER;
                    all.iter().copied().filter(is_own).collect()
                }
            },
        };
        let mut shards = Vec::new();
        for name in wanted {
            if look::at_itself(&path.join(name))?.is_none() {
                let of_shard = |(tensor, shard): (&String, &String)| (shard == name).then(|| tensor.clone());
                let tensor = index.iter().flat_map(|index| &index.weight_map).find_map(of_shard).unwrap_or_default();
                return Err(FolderError::MissingShard { shard: name.into(), tensor }.at(path));
            }
            let (file, bytes) = open::open_in(path, Path::new(name), links)?;
            let source = Source::of_safetensors(&path.join(name), file, bytes)?;
            let tensors = (0..source.tensors().len()).collect();
            shards.push(Shard { name: name.into(), source, tensors });
        }
        let is_weights = |name: &str| shards.iter().any(|shard| shard.name == name);
        let is_index = |name: &str| index.as_ref().is_some_and(|index| index.name == name);
        let beside = sidecar::find(path, links, |name| is_weights(name) || is_index(name))?;
        let sidecar::Beside { sidecars, strays, components, warnings: left_out } = beside;
        let read = components.iter().map(PathBuf::as_path).chain(shards.first().map(|_| Path::new("")));
        declared.check(path, &strays, &read.collect())?;
        if shards.is_empty() && (declared.folders.is_empty() || components.is_empty()) {
            let found = Foreign::among(path, &names).filter(|_| components.is_empty());
            let components = components.iter().map(|path| path.display().to_string()).collect();
            return Err(FolderError::NoShards { found, components }.at(path));
        }
        let (path, classes, warnings) = (path.into(), declared.classes, Vec::new());
        let mut folder = Folder {
            path,
            beside: None,
            is_file: false,
            links,
            shards,
            index,
            sidecars,
            strays,
            components,
            classes,
            warnings,
        };
        folder.choose()?;
        folder.warnings.extend(folder.contradictions());
        folder.warnings.extend(left_out);
        Ok(folder)
    }

    /// Opens a `.safetensors` or `.gguf` file as a checkpoint of one shard; each part of a split GGUF model is a shard.
    /// Other files next to it are ignored. Tensors of a GGUF file that consist of blocks are listed as bytes, with
    /// their block types in [`Source::blocks`].
    ///
    /// Cost: memory proportional to the header.
    ///
    /// # Errors
    /// Errors of [`Source::open`]; [`Error::Gguf`].
    pub fn of_file(path: &Path) -> Result<Folder, Error> {
        if !gguf::is_named(path) {
            let (file, found) = open_regular(path)?;
            return Ok(Folder::of_source(Source::of_safetensors(path, file, found.len())?));
        }
        let parts = split::open(path)?;
        let metadata = parts.iter().find_map(Source::gguf).map_or(&[][..], |header| &header.metadata);
        let is_lost = |(key, value): &&(String, Value)| {
            matches!(value, Value::Array { .. }) && !key.starts_with(gguf::ORIGINAL_SHAPE)
        };
        let lists: Vec<&str> = metadata.iter().filter(is_lost).map(|(key, _)| key.as_str()).collect();
        let shown: Vec<String> = lists.iter().take(3).map(|key| Escaped(key).to_string()).collect();
        let dots = if lists.len() > 3 { ", .." } else { "" };
        let warning = (!lists.is_empty()).then(|| {
            let (path, some) = (path.display(), shown.join(", "));
            let keys = counted(lists.len() as u64, "key");
            let (hold, are) = if lists.len() == 1 { ("holds an array", "is") } else { ("hold arrays", "are") };
            format!("{path}: {keys} {hold}, which __metadata__ cannot hold, and {are} left out: {some}{dots}")
        });
        Ok(Folder { warnings: warning.into_iter().collect(), ..Folder::of_sources(path, parts) })
    }

    /// Makes a checkpoint of one shard from an open container.
    #[must_use]
    pub fn of_source(source: Source) -> Folder {
        let path = source.path().to_path_buf();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let part = PartName::new(&name).filter(|part| part.of > 1 && source.format() == FileFormat::Safetensors);
        let warning = part.map(|PartName { number, of, .. }| {
            format!("{}: only part {number} of {of}, by its name; give the folder to convert all", path.display())
        });
        Folder { warnings: warning.into_iter().collect(), ..Folder::of_sources(&path, vec![source]) }
    }

    fn of_sources(path: &Path, sources: Vec<Source>) -> Folder {
        let shard = |source: Source| {
            let name = source.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            Shard { name, tensors: (0..source.tensors().len()).collect(), source }
        };
        Folder {
            path: path.into(),
            beside: None,
            is_file: true,
            links: Links::Inside,
            shards: sources.into_iter().map(shard).collect(),
            index: None,
            sidecars: Vec::new(),
            strays: Vec::new(),
            components: Vec::new(),
            classes: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }

    /// Opens a folder for its files other than weights. It has no shards.
    ///
    /// # Errors
    /// [`Error::Io`]; a link that must not be followed.
    pub fn without_weights(path: &Path, links: Links) -> Result<Folder, Error> {
        let sidecar::Beside { sidecars, warnings, .. } = sidecar::find(path, links, |_| false)?;
        Ok(Folder { is_file: false, links, sidecars, warnings, ..Folder::of_sources(path, Vec::new()) })
    }

    /// Checkpoint of one file whose tensors `view` computes from those of `of`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of_view(of: &Folder, tensors: Vec<Tensor>, view: Arc<dyn View>) -> Result<Folder, Error> {
        let sources: Vec<&Source> = of.shards.iter().map(|shard| &shard.source).collect();
        let source = Source::of_view(&of.path, &sources, tensors, BTreeMap::new(), view)?;
        let viewed = Folder::of_sources(&of.path, vec![source]);
        Ok(Folder { links: of.links, warnings: of.warnings.clone(), ..viewed })
    }

    /// Folder with the files and shards of `like`, whose tensors are computed from those of `of`: name, metadata,
    /// tensors and view of each shard.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of_views(of: &Folder, like: Folder, shards: Vec<ViewedShard>) -> Result<Folder, Error> {
        let sources: Vec<&Source> = of.shards.iter().map(|shard| &shard.source).collect();
        let shard = |ViewedShard { name, metadata, tensors, view }| {
            let all = (0..tensors.len()).collect();
            Ok(Shard { name, source: Source::of_view(&of.path, &sources, tensors, metadata, view)?, tensors: all })
        };
        let shards = shards.into_iter().map(shard).collect::<Result<_, Error>>()?;
        Ok(Folder { path: of.path.clone(), beside: Some(like.path), shards, warnings: Vec::new(), ..like })
    }

    /// Container of a checkpoint that is one file.
    #[must_use]
    pub fn into_source(mut self) -> Option<Source> {
        self.shards.pop().filter(|_| self.is_file && self.shards.is_empty()).map(|shard| shard.source)
    }

    /// Warnings about index and files that disagree without affecting a value (§2.3).
    fn contradictions(&self) -> Vec<String> {
        let Some(index) = &self.index else { return Vec::new() };
        let (path, name) = (self.path.display(), Escaped(&index.name));
        let bytes: u64 = self.shards.iter().flat_map(|shard| shard.source.tensors()).map(Tensor::bytes).sum();
        let stated = index.metadata.get("total_size").and_then(serde_json::Value::as_u64);
        let of_size = stated.filter(|stated| *stated != bytes).map(|stated| {
            format!("{path}: total_size in {name} is {stated}, but the tensors of its files take {bytes} bytes")
        });
        let of_parts = part::check(self.shards.iter().map(|shard| shard.name.as_str())).err();
        let of_parts = of_parts.map(|cause| format!("{path}: {name} names no tensor of some parts: {cause}"));
        of_size.into_iter().chain(of_parts).collect()
    }

    /// Chooses the copy of each tensor that counts (§2.3).
    fn choose(&mut self) -> Result<(), Error> {
        let Folder { path, shards, index, warnings, .. } = self;
        if let Some(index) = index {
            let by_name: HashMap<&str, &Shard> = shards.iter().map(|shard| (shard.name.as_str(), shard)).collect();
            let held: HashMap<&str, BTreeSet<&str>> = by_name
                .iter()
                .map(|(name, shard)| (*name, shard.source.tensors().iter().map(|t| &*t.name).collect()))
                .collect();
            for (tensor, shard) in &index.weight_map {
                if !held[shard.as_str()].contains(tensor.as_str()) {
                    let (shard, tensor) = (shard.clone(), tensor.clone());
                    return Err(FolderError::MissingTensor { shard, tensor }.at(path));
                }
            }
        }
        let mut first: HashMap<Arc<str>, &str> = HashMap::new();
        for shard in shards.iter_mut() {
            let Shard { name, source, tensors, .. } = shard;
            let mut counts = Vec::with_capacity(tensors.len());
            for &at in tensors.iter() {
                let tensor = &source.tensors()[at].name;
                let named = index.as_ref().and_then(|index| index.weight_map.get(&**tensor));
                match named {
                    Some(holder) if holder != name => {
                        let shown = (Escaped(tensor), Escaped(name), Escaped(holder));
                        warnings.push(format!(
                            "tensor {}: the copy in {} is left out; the index names {}",
                            shown.0, shown.1, shown.2
                        ));
                        continue;
                    }
                    Some(_) => {}
                    None => {
                        if let Some(first) = first.insert(tensor.clone(), name) {
                            let (tensor, first, second) = (tensor.to_string(), first.to_string(), name.clone());
                            return Err(FolderError::DuplicateTensor { tensor, first, second }.at(path));
                        }
                        if index.is_some() {
                            let (tensor, name) = (Escaped(tensor), Escaped(name));
                            warnings
                                .push(format!("tensor {tensor} of {name} is not in the index; it is converted anyway"));
                        }
                    }
                }
                counts.push(at);
            }
            *tensors = counts;
        }
        Ok(())
    }

    /// Path that `open` was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Folder of the files other than weights.
    #[must_use]
    pub fn beside(&self) -> &Path {
        self.beside.as_deref().unwrap_or(&self.path)
    }

    /// Returns the files of tensors, by name.
    #[must_use]
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Returns the index, if there is one.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        self.index.as_ref()
    }

    /// Returns the files other than shards that are copied.
    #[must_use]
    pub fn sidecars(&self) -> &[Sidecar] {
        &self.sidecars
    }

    /// Weight files that the checkpoint does not name, as paths in the folder. Another program may load them.
    #[must_use]
    pub fn strays(&self) -> &[PathBuf] {
        &self.strays
    }

    /// Subfolders at any depth that have weights of their own, as paths in the folder. Each is a checkpoint.
    #[must_use]
    pub fn components(&self) -> &[PathBuf] {
        &self.components
    }

    /// Class that the description of a pipeline (`model_index.json`) states for a component. `None` for other folders.
    #[must_use]
    pub fn class_of(&self, component: &Path) -> Option<&str> {
        self.classes.get(component).map(String::as_str)
    }

    /// Returns the error that `what` needs one checkpoint, if the folder has several. `None` for one checkpoint.
    #[must_use]
    pub fn several(&self, what: &str) -> Option<Error> {
        let model = self.shards.first().filter(|_| self.shards.len() == 1);
        self.one_of(what, model.map(|shard| shard.name.clone()))
    }

    /// Error for a folder of several checkpoints if `what` needs a folder; `None` for one checkpoint.
    #[must_use]
    pub fn several_folders(&self, what: &str) -> Option<Error> {
        self.one_of(what, None)
    }

    fn one_of(&self, what: &str, model: Option<String>) -> Option<Error> {
        let others = self.components.iter().map(|path| path.display().to_string());
        let (what, components) = (what.to_owned(), model.into_iter().chain(others).collect());
        (!self.components.is_empty()).then(|| FolderError::Several { what, components }.at(&self.path))
    }

    /// Returns warnings about the checkpoint.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether the checkpoint is one file or a split GGUF model. Other files are then ignored.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// Reads a JSON file of the folder; `None` if it does not exist or the checkpoint is not a folder.
    ///
    /// # Errors
    /// [`Error::Folder`] for violations of C3 or C4, [`Error::Io`].
    pub fn json(&self, name: &str) -> Result<Option<JsonFile>, Error> {
        if self.is_file { Ok(None) } else { JsonFile::read(self.beside(), name, self.links) }
    }

    /// Reads another file of the folder, of at most `limit` bytes; `None` if it does not exist or the checkpoint is not
    /// a folder.
    ///
    /// # Errors
    /// [`Error::Folder`] for violations of C3, and for a longer file; [`Error::Io`].
    pub fn bytes(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Error> {
        if self.is_file { Ok(None) } else { open::read_in(self.beside(), name, self.links, limit) }
    }

    /// Links in the folder that are followed.
    #[must_use]
    pub fn links(&self) -> Links {
        self.links
    }
}

fn names_in(path: &Path) -> Result<Vec<String>, Error> {
    Ok(look::names(path)?.into_iter().filter_map(|name| name.into_string().ok()).collect())
}
