//! Moves a folder of new files into an older folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::ledger;
use crate::change::step;
use crate::error::Error;
use crate::path::folder_of;
use crate::{look, os};

/// Moves the files of the folder `from` and its subfolders to the same places in the folder `to`, and removes `from`.
/// The `outdated` files of `to` are removed first. Links in `to` are not followed.
///
/// `rank` orders the files by their paths: all files of one rank are synced before the next rank. A new file takes
/// the mode of the file that it replaces. A request to stop takes effect only at the end. After a failed system call
/// or a kill, another call continues; its `outdated` files must exist.
/// # Errors
/// [`Error::LinkInside`], before anything is changed; [`Error::Io`].
pub fn move_all(from: &Path, to: &Path, rank: impl Fn(&Path) -> u8, outdated: &[PathBuf]) -> Result<(), Error> {
    ledger::undisturbed(|| {
        let (mut files, folders) = find_all(from)?;
        files.sort_by_key(|file| (rank(file), file.clone()));
        for file in files.iter().chain(&folders).chain(outdated) {
            look::inside(to, file)?;
        }
        for file in &files {
            if let Some(old) = look::at_itself(&to.join(file))?.filter(|old| old.is_file()) {
                let permissions = os::permissions_of(&old);
                let set = || step(|| File::open(from.join(file))?.set_permissions(permissions));
                set().map_err(Error::io(&to.join(file), "keeping the mode"))?;
            }
        }
        for path in outdated.iter().map(|file| to.join(file)) {
            step(|| fs::remove_file(&path)).map_err(Error::io(&path, "removing the file"))?;
        }
        let settled = |file: &Path| {
            let folder = to.join(folder_of(file));
            step(|| os::sync_folder(&folder)).map_err(Error::io(&folder, "fsync of the folder"))
        };
        settled(Path::new("any"))?;
        for folder in &folders {
            let new = to.join(folder);
            if !look::is_folder(&new)? {
                step(|| fs::create_dir(&new)).map_err(Error::io(&new, "creating the folder"))?;
            }
        }
        for rank in files.chunk_by(|a, b| rank(a) == rank(b)) {
            for file in rank {
                let new = to.join(file);
                step(|| fs::rename(from.join(file), &new)).map_err(Error::io(&new, "giving the file its name"))?;
            }
            for file in rank.iter().collect::<Vec<_>>().chunk_by(|a, b| folder_of(a) == folder_of(b)) {
                settled(file[0])?;
            }
        }
        remove_folders(from, &folders)
    })
}

/// Removes a folder with all its contents, if it exists.
///
/// # Errors
/// [`Error::LinkInside`] if the folder is a link; [`Error::Io`].
pub fn remove_all(from: &Path) -> Result<(), Error> {
    if !look::is_folder(from)? {
        return Ok(());
    }
    let (files, folders) = find_all(from)?;
    for file in files.iter().map(|file| from.join(file)) {
        step(|| fs::remove_file(&file)).map_err(Error::io(&file, "removing the file"))?;
    }
    remove_folders(from, &folders)
}

/// Removes a folder and its subfolders, which contain no files.
fn remove_folders(from: &Path, folders: &[PathBuf]) -> Result<(), Error> {
    for folder in folders.iter().rev().map(|folder| from.join(folder)).chain([from.to_path_buf()]) {
        step(|| fs::remove_dir(&folder)).map_err(Error::io(&folder, "removing the folder"))?;
    }
    Ok(())
}

/// Lists the files and the folders below a folder that must not be a link. Each folder comes before its contents.
fn find_all(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
    look::inside(folder_of(folder), Path::new(folder.file_name().unwrap_or_default()))?;
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    find(folder, Path::new(""), &mut files, &mut folders)?;
    Ok((files, folders))
}

fn find(folder: &Path, below: &Path, files: &mut Vec<PathBuf>, folders: &mut Vec<PathBuf>) -> Result<(), Error> {
    for name in look::names(&folder.join(below))? {
        let path = below.join(name);
        match look::at_itself(&folder.join(&path))? {
            Some(found) if found.is_dir() => {
                folders.push(path.clone());
                find(folder, &path, files, folders)?;
            }
            Some(_) => files.push(path),
            None => {}
        }
    }
    Ok(())
}
