//! A GGUF model in several numbered files (`docs/spec/checkpoints.md §9.9`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::FolderError;
use crate::error::gguf::HeaderError;
use crate::error::{Cause, Error};
use crate::gguf;
use crate::look;
use crate::open::open_regular;
use crate::path::folder_of;
use crate::source::Source;

const NO: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// Parses a part's name into common prefix, number of the part (from 1) and number of parts.
fn named(name: &str) -> Option<(&str, u64, u64)> {
    let number = |text: &str| text.parse().ok().filter(|_| text.len() == 5);
    let (rest, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (prefix, no) = rest.rsplit_once('-')?;
    Some((prefix, number(no)?, number(count)?))
}

fn number(part: &Source, key: &str) -> Option<u64> {
    part.gguf().and_then(|header| header.number(key))
}

/// Opens all parts of a model in order, given any part; or a single file.
pub(super) fn open(path: &Path) -> Result<Vec<Source>, Error> {
    let given = open_single(path)?;
    let given_name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (no, count) = (number(&given, NO).unwrap_or(0), number(&given, COUNT).unwrap_or(1));
    let named = named(&given_name);
    if count < 2 && named.is_none_or(|(.., count)| count < 2) {
        return Ok(vec![given]);
    }
    let Some((prefix, ..)) = named.filter(|(_, at, of)| (at.checked_sub(1), *of) == (Some(no), count)) else {
        return Err(HeaderError::PartName { no, count }.at(path));
    };
    let tensors = number(&given, TENSORS);
    let (mut parts, mut given, mut holders) = (Vec::new(), Some(given), HashMap::new());
    for at in 0..count {
        let name = format!("{prefix}-{:05}-of-{count:05}.gguf", at + 1);
        let whole = folder_of(path).join(&name);
        let part = match given.take_if(|_| at == no) {
            Some(part) => part,
            None if look::at(&whole)?.is_none() => return Err(HeaderError::MissingPart { file: name }.at(path)),
            None => open_single(&whole)?,
        };
        for (key, expected) in [(NO, Some(at)), (COUNT, Some(count)), (TENSORS, tensors)] {
            let found = number(&part, key);
            if let Some(expected) = expected.filter(|expected| found != Some(*expected)) {
                return Err(HeaderError::OtherPart { key, found, expected }.at(&whole));
            }
        }
        for tensor in part.tensors() {
            if let Some(first) = holders.insert(tensor.name.clone(), name.clone()) {
                return Err(HeaderError::TensorOfTwoParts { tensor: tensor.name.to_string(), first }.at(&whole));
            }
        }
        parts.push(part);
    }
    match tensors.filter(|tensors| *tensors != holders.len() as u64) {
        Some(stated) => Err(HeaderError::TensorsOfParts { stated, found: holders.len() }.at(path)),
        None => Ok(parts),
    }
}

fn open_single(path: &Path) -> Result<Source, Error> {
    let (file, found) = open_regular(path)?;
    Source::of_gguf(path, file, found.len())
}

/// Path of the model to read. For a folder with a GGUF model and without `.safetensors` files: the model's first
/// existing part. Otherwise `path` itself.
///
/// # Errors
/// [`FolderError::SeveralGguf`]; [`Error::Io`].
pub fn single(path: &Path) -> Result<PathBuf, Error> {
    if !look::is_folder(path)? {
        return Ok(path.into());
    }
    let names: Vec<String> = look::names(path)?.into_iter().filter_map(|name| name.into_string().ok()).collect();
    let of_model = |name: &str| named(name).map(|(prefix, _, count)| (prefix.to_owned(), count));
    let is_gguf = |name: &&String| gguf::is_named(Path::new(name)) && !name.starts_with('.');
    let mut models: Vec<_> = names.iter().filter(is_gguf).map(|name| (of_model(name).ok_or(name), name)).collect();
    models.dedup_by_key(|(model, _)| model.clone());
    match &models[..] {
        all if all.is_empty() || names.iter().any(|name| name.ends_with(".safetensors")) => Ok(path.into()),
        [(_, one)] => Ok(path.join(one)),
        all => Err(FolderError::SeveralGguf { first: all[0].1.clone() }.at(path)),
    }
}
