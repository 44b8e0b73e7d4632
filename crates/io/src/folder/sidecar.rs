//! Files of a folder other than its weights (`docs/spec/checkpoints.md §2.7`).

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::component::is_component;
use super::index::INDEX_SUFFIX;
use super::open::open_in;
use crate::atomic::{Existing, NewFolder, OutputFile};
use crate::error::folder::FolderError;
use crate::error::{Cause, Error};
use crate::look;
use crate::options::Links;
use crate::path::folder_of;

const WEIGHTS: [&str; 11] =
    ["safetensors", "bin", "pt", "pth", "ckpt", "msgpack", "h5", "gguf", "onnx", "nemo", "distcp"];
/// Start of the names of truecast's own reports, which are not copied.
const REPORT_PREFIX: &str = "truecast-manifest";
const MAX_DEPTH: usize = 32;

/// A file that is copied unchanged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sidecar {
    /// Path relative to the folder, made of plain names only.
    pub path: PathBuf,
    /// Length when found.
    pub bytes: u64,
}

#[derive(Default)]
pub(super) struct Beside {
    pub sidecars: Vec<Sidecar>,
    /// Weight files that the checkpoint does not name, relative to the folder.
    pub strays: Vec<PathBuf>,
    pub components: Vec<PathBuf>,
    pub warnings: Vec<String>,
}

pub(super) fn find(folder: &Path, links: Links, is_shard: impl Fn(&str) -> bool) -> Result<Beside, Error> {
    let mut found = Beside::default();
    walk(folder, Path::new(""), links, &is_shard, &mut found)?;
    found.sidecars.sort();
    Ok(found)
}

/// Folders of other models in a folder, relative to it. Opens no file of tensors.
///
/// # Errors
/// An unreadable folder; a link that must not be followed.
pub fn components(folder: &Path, links: Links) -> Result<Vec<PathBuf>, Error> {
    Ok(find(folder, links, |_| false)?.components)
}

fn walk(
    folder: &Path,
    below: &Path,
    links: Links,
    is_shard: &impl Fn(&str) -> bool,
    found: &mut Beside,
) -> Result<(), Error> {
    let here = folder.join(below);
    let is_top = below.as_os_str().is_empty();
    for name in look::names(&here)? {
        let path = below.join(&name);
        let shown = folder.join(&path).display().to_string();
        let skip = |found: &mut Beside, why: &str| found.warnings.push(format!("{shown}: not copied: {why}"));
        let Some(name) = name.to_str() else {
            skip(found, "its name is not UTF-8");
            continue;
        };
        if name.starts_with('.') || (is_top && (is_shard(name) || name.starts_with(REPORT_PREFIX))) {
            continue;
        }
        let whole = folder.join(&path);
        let Some(kind) = look::at_itself(&whole)? else { continue };
        if (kind.is_dir() || kind.is_symlink()) && is_component(&here, name)? {
            if kind.is_symlink() && links == Links::Inside {
                return Err(FolderError::Link.at(&whole));
            }
            found.components.push(path.clone());
            if kind.is_dir() && below.components().count() < MAX_DEPTH {
                let mut within = Beside::default();
                walk(folder, &path, links, is_shard, &mut within)?;
                found.components.append(&mut within.components);
            }
            continue;
        }
        if kind.is_dir() {
            match below.components().count() {
                MAX_DEPTH => skip(found, "its path is too deep"),
                _ => walk(folder, &path, links, is_shard, found)?,
            }
            continue;
        }
        if is_weights(name) {
            let why = "weights that the checkpoint does not name; only named weights are converted";
            skip(found, if is_top && name.ends_with(".safetensors") { why } else { "other weights" });
            found.strays.push(path);
            continue;
        }
        match look::at(&whole)? {
            Some(target) if target.is_file() => found.sidecars.push(Sidecar { path, bytes: target.len() }),
            Some(target) if target.is_dir() => skip(found, "links to folders are not followed"),
            Some(_) => skip(found, "not a regular file"),
            None => skip(found, "a broken link"),
        }
    }
    Ok(())
}

fn is_weights(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    WEIGHTS.contains(&extension.as_str()) || name.ends_with(INDEX_SUFFIX) || name.ends_with(".bin.index.json")
}

impl Sidecar {
    /// Checks before any work that the file can be copied.
    ///
    /// # Errors
    /// [`Error::Io`], a link that must not be followed.
    pub fn check(&self, from: &Path, links: Links) -> Result<(), Error> {
        open_in(from, &self.path, links).map(drop)
    }

    /// Copies the file to the same place in another folder. `each` receives every piece and returns whether to
    /// continue. Returns the file's length; `None` if `each` stopped the copy.
    ///
    /// # Errors
    /// [`Error::Io`], a link that must not be followed, [`Error::LinkInside`].
    pub fn copy(
        &self,
        from: &Path,
        to: &Path,
        existing: Existing,
        links: Links,
        each: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Option<u64>, Error> {
        let (mut file, _) = open_in(from, &self.path, links)?;
        let (source, target) = (from.join(&self.path), look::inside(to, &self.path)?);
        let folder = NewFolder::make(folder_of(&target))?;
        let mut output = OutputFile::create(&target, existing)?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer) {
                Ok(bytes) if !each(&buffer[..bytes]) => return Ok(None),
                Ok(0) => break,
                Ok(bytes) => output.write_all(&buffer[..bytes]).map_err(Error::io(&target, "writing"))?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(&source, "reading")(error)),
            }
        }
        crate::atomic::Finished::from(output).and_folder(folder).commit().map(Some)
    }
}
