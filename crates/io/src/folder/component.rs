//! Folders of a checkpoint that are checkpoints themselves: modules of sentence-transformers, models of a diffusers pipeline,
//! adapters (`docs/spec/checkpoints.md §2.7`).

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::json::JsonFile;
use super::open::{is_plain_name, is_shard_name};
use crate::error::folder::FolderError;
use crate::error::{Cause, Error};
use crate::foreign::Foreign;
use crate::look;

/// Describes the models of a pipeline: an object whose keys name their folders.
const PIPELINE: &str = "model_index.json";
/// Describes the modules of a model: a list whose paths name their folders, the empty path the folder itself.
const MODULES: &str = "modules.json";
/// The same weights in the form of whoever published them first.
const COPY: &str = "original";

/// A folder that holds files of tensors.
pub(super) fn is_component(folder: &Path, name: &str) -> Result<bool, Error> {
    let path = folder.join(name);
    if name == COPY || !look::is_folder(&path)? {
        return Ok(false);
    }
    let names = look::names(&path)?;
    let mut shards = names.iter().filter_map(|name| name.to_str()).filter(|name| is_shard_name(name));
    shards.try_fold(false, |found, name| Ok(found || (!name.starts_with('.') && look::is_file(&path.join(name))?)))
}

/// Some of these names are of such folders.
pub(super) fn has_some(folder: &Path, names: &[String]) -> Result<bool, Error> {
    let mut names = names.iter().filter(|name| !name.starts_with('.'));
    names.try_fold(false, |found, name| Ok(found || is_component(folder, name)?))
}

/// What a folder says of the folders in it.
pub(super) struct Declared {
    pub is_pipeline: bool,
    /// Folders that belong to the model, relative to it.
    folders: Vec<PathBuf>,
}

impl Declared {
    pub fn of(folder: &Path, follow_links: bool) -> Result<Declared, Error> {
        let read = |name| Ok::<_, Error>(JsonFile::read(folder, name, follow_links)?.map(|file| file.value));
        let (pipeline, modules) = (read(PIPELINE)?, read(MODULES)?);
        let of_pipeline = pipeline.iter().filter_map(Value::as_object).flat_map(|models| models.keys());
        let of_modules = modules.iter().filter_map(Value::as_array).flatten();
        let paths = of_modules.filter_map(|module| module.get("path")?.as_str());
        let paths = of_pipeline.map(String::as_str).chain(paths);
        let is_inside = |path: &&str| path.split('/').all(is_plain_name) || path.is_empty();
        Ok(Declared { is_pipeline: pipeline.is_some(), folders: paths.filter(is_inside).map(PathBuf::from).collect() })
    }

    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// What belongs to the model and has weights has some that are read; `strays` are files of other weights.
    pub fn check(&self, folder: &Path, has_shards: bool, strays: &[PathBuf], others: &[PathBuf]) -> Result<(), Error> {
        let is_read = |path: &Path| if path == Path::new("") { has_shards } else { others.iter().any(|o| o == path) };
        let belongs = |path: &Path| self.folders.iter().any(|of| of == path);
        let is_lost = |stray: &&PathBuf| stray.parent().is_some_and(|path| belongs(path) && !is_read(path));
        let Some(stray) = strays.iter().find(is_lost) else { return Ok(()) };
        let (path, file) = (stray.parent().unwrap_or(stray), stray.display().to_string());
        if path == Path::new("") {
            let found = Some((file, Foreign::of(&folder.join(stray))));
            return Err(FolderError::NoShards { found, components: Vec::new() }.at(folder));
        }
        Err(FolderError::OtherWeights { component: path.display().to_string(), file }.at(folder))
    }
}
