//! Folders inside a checkpoint that are checkpoints too, such as the models of a pipeline (`docs/spec/checkpoints.md
//! §2.7`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::json::JsonFile;
use super::open::is_shard_name;
use crate::error::folder::FolderError;
use crate::error::{Cause, Error};
use crate::foreign::Foreign;
use crate::look;
use crate::options::Links;

/// File that describes a pipeline: an object whose keys are the folders of models. Each value is a pair of library and
/// class.
const PIPELINE: &str = "model_index.json";
/// File that describes a model's modules. It is a list with the path of each module's folder. The empty path means the
/// model's folder itself.
const MODULES: &str = "modules.json";
/// Folder that repeats the weights in another form. It is not a component.
const COPY: &str = "original";

/// Whether a subfolder directly contains files of tensors. Never true for hidden names and [`COPY`].
pub(super) fn is_component(folder: &Path, name: &str) -> Result<bool, Error> {
    let path = folder.join(name);
    if name == COPY || name.starts_with('.') || !look::is_folder(&path)? {
        return Ok(false);
    }
    let names = look::names(&path)?.into_iter().filter_map(|name| name.into_string().ok());
    let mut shards = names.filter(|name| is_shard_name(name) && !name.starts_with('.'));
    shards.try_fold(false, |found, name| Ok(found || look::is_file(&path.join(name))?))
}

pub(super) struct Declared {
    pub is_pipeline: bool,
    /// Paths of the declared folders, relative to the model's folder.
    pub folders: BTreeSet<PathBuf>,
    /// Classes of a pipeline's models, by folder.
    pub classes: BTreeMap<PathBuf, String>,
}

impl Declared {
    pub fn read(folder: &Path, names: &[String], links: Links) -> Result<Declared, Error> {
        let read = |name| Ok::<_, Error>(JsonFile::read(folder, name, links)?.map(|file| file.value));
        let (pipeline, modules) = (read(PIPELINE)?, read(MODULES)?);
        let of_pipeline = pipeline.iter().filter_map(Value::as_object).flat_map(|models| models.keys());
        let of_modules = modules.iter().filter_map(Value::as_array).flatten();
        let paths = of_modules.filter_map(|module| module.get("path")?.as_str());
        let folders = of_pipeline.map(String::as_str).chain(paths).map(PathBuf::from).collect();
        let class = |(folder, pair): (&String, &Value)| Some((folder.into(), pair.get(1)?.as_str()?.to_owned()));
        let classes = pipeline.iter().filter_map(Value::as_object).flatten().filter_map(class).collect();
        let has_models = || names.iter().try_fold(false, |found, name| Ok(found || is_component(folder, name)?));
        Ok(Declared { is_pipeline: pipeline.is_some() && has_models()?, folders, classes })
    }

    /// Fails if no file is read from a declared folder with weights. `read` lists folders from which files are read;
    /// `strays` lists files of other weights.
    pub fn check(&self, folder: &Path, strays: &[PathBuf], read: &BTreeSet<&Path>) -> Result<(), Error> {
        let is_lost = |of: &Path| self.folders.contains(of) && !read.contains(of);
        let lost = strays.iter().find_map(|stray| Some((stray.parent().filter(|of| is_lost(of))?, stray.file_name()?)));
        let Some((of, name)) = lost else { return Ok(()) };
        let path = folder.join(of);
        let found = Some((name.to_string_lossy().into_owned(), Foreign::of(&path.join(name))));
        Err(FolderError::NoShards { found, components: Vec::new() }.at(&path))
    }
}
