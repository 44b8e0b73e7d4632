//! Tensor data outside the model file. A location is text from an untrusted file: only regular files in the model's
//! folder are opened. Source: `docs/spec/onnx.md §3.6`, §3.7; `docs/interfaces.md §3` (links).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::change::step;
use crate::contain::{blobs_of, place_of};
use crate::error::onnx::ExternalError;
use crate::options::Links;
use crate::os;
use crate::path::folder_of;
use foldhash::{HashSet, HashSetExt};

/// Location of an external tensor's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Path of the file, relative to the model's folder.
    pub location: String,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Number of bytes, if stated.
    pub length: Option<u64>,
}

impl External {
    /// Reads the entries of `external_data` in order. Unknown keys are ignored.
    pub(crate) fn of_entries(entries: &[(String, String)]) -> Result<External, ExternalError> {
        let mut keys = HashSet::new();
        if let Some((key, _)) = entries.iter().find(|(key, _)| !keys.insert(key)) {
            return Err(ExternalError::RepeatedKey { key: key.clone() });
        }
        let value = |key: &str| entries.iter().find(|(k, _)| k == key).map(|(_, value)| value);
        let number = |key| value(key).map(|text| number(key, text)).transpose();
        Ok(External {
            location: value("location").ok_or(ExternalError::NoLocation)?.clone(),
            offset: number("offset")?.unwrap_or(0),
            length: number("length")?,
        })
    }
}

fn number(key: &'static str, text: &str) -> Result<u64, ExternalError> {
    let is_plain = (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let value = is_plain.then(|| text.parse().ok()).flatten();
    value.ok_or_else(|| ExternalError::NotANumber { key, found: text.into() })
}

#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    links: Links,
}

#[derive(Debug)]
pub(crate) enum OpenError {
    External(ExternalError),
    Io(PathBuf, io::Error),
}

impl From<ExternalError> for OpenError {
    fn from(cause: ExternalError) -> OpenError {
        OpenError::External(cause)
    }
}

#[derive(Debug)]
pub(crate) struct ExternalFile {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) bytes: u64,
}

impl Folder {
    pub(crate) fn of_model(model: &Path, links: Links) -> Folder {
        Folder { path: folder_of(model).to_path_buf(), links }
    }

    pub(crate) fn open(&self, location: &str) -> Result<ExternalFile, OpenError> {
        let path = self.path.join(relative(location)?);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                OpenError::External(ExternalError::NotFound { location: location.into() })
            }
            _ => OpenError::Io(path.clone(), error),
        };
        let outside = || OpenError::External(ExternalError::Outside { location: location.into() });
        let not_regular = || OpenError::External(ExternalError::NotRegular { location: location.into() });
        let real = step(|| path.canonicalize()).map_err(failed)?;
        if self.links == Links::Inside && !self.holds(&real).map_err(failed)? {
            return Err(outside());
        }
        if !step(|| fs::metadata(&real)).map_err(failed)?.is_file() {
            return Err(not_regular());
        }
        // Names can change between two calls, so the opened file is checked. Opening must not block, because the name
        // may lead to a pipe meanwhile.
        let file = step(|| os::open_at_once(&path)).map_err(failed)?;
        let found = step(|| file.metadata()).map_err(failed)?;
        if !found.is_file() {
            return Err(not_regular());
        }
        let is_inside = || self.holds(&place_of(&file, &real)?);
        if self.links == Links::Inside && !is_inside().map_err(failed)? {
            return Err(outside());
        }
        Ok(ExternalFile { path, file, bytes: found.len() })
    }

    /// Whether a resolved path is in the folder, or in the blobs of its Hugging Face cache.
    fn holds(&self, real: &Path) -> io::Result<bool> {
        let folder = step(|| self.path.canonicalize())?;
        Ok(real.starts_with(&folder) || blobs_of(&folder).is_some_and(|blobs| real.starts_with(blobs)))
    }
}

/// Checks a location (§3.7 rules 1 and 2) and removes `.` and `..`.
fn relative(location: &str) -> Result<PathBuf, ExternalError> {
    let bytes = location.as_bytes();
    let has_drive = bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    if bytes.is_empty() || bytes.contains(&0) || has_drive || matches!(bytes[0], b'/' | b'\\') {
        return Err(ExternalError::Location { location: location.into() });
    }
    let mut path = PathBuf::new();
    for component in location.split('/') {
        match component {
            "" | "." => {}
            ".." if !path.pop() => return Err(ExternalError::Parent { location: location.into() }),
            ".." => {}
            name => path.push(name),
        }
    }
    if path.as_os_str().is_empty() { Err(ExternalError::Location { location: location.into() }) } else { Ok(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_normalized_and_never_leave_the_folder() {
        for (location, path) in [("a", "a"), ("./x", "x"), ("dir/../x", "x"), ("a..b", "a..b"), ("d//x", "d/x")] {
            assert_eq!(relative(location), Ok(PathBuf::from(path)));
        }
        for location in ["", "/etc/passwd", "\\x", "c:\\x", "c:x", "a\0b", ".", "d/.."] {
            assert!(matches!(relative(location), Err(ExternalError::Location { .. })), "{location:?}");
        }
        for location in ["..", "../x", "a/../../x"] {
            assert!(matches!(relative(location), Err(ExternalError::Parent { .. })), "{location:?}");
        }
    }

    /// A file whose link pointed outside stays refused, even if a file inside the folder replaces the link after
    /// opening.
    #[test]
    fn an_opened_file_is_where_it_was_opened() {
        let (inside, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = Folder::of_model(&inside.path().join("m.onnx"), Links::Inside);
        let (name, secret) = (inside.path().join("w"), elsewhere.path().join("w"));
        fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, &name).unwrap();
        let through_link = File::open(&name).unwrap();
        fs::remove_file(&name).unwrap();
        fs::write(&name, "weights").unwrap();
        let place = |file: &File| place_of(file, &name.canonicalize().unwrap());
        let is_inside = |file: &File| place(file).is_ok_and(|place| folder.holds(&place).unwrap());
        assert!(!is_inside(&through_link));
        assert!(is_inside(&File::open(&name).unwrap()));
    }

    #[test]
    fn numbers_are_plain_digits() {
        assert_eq!(number("offset", "18446744073709551615"), Ok(u64::MAX));
        assert_eq!(number("offset", "00"), Ok(0));
        for text in ["", " 1", "+1", "-1", "1_0", "0x1", "18446744073709551616", "000000000000000000001", "١"] {
            assert!(number("offset", text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn keys_are_taken_once() {
        let entries =
            |list: &[(&str, &str)]| list.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect::<Vec<_>>();
        let good = entries(&[("location", "w"), ("offset", "4096"), ("basepath", "x"), ("checksum", "y")]);
        let expected = External { location: "w".into(), offset: 4096, length: None };
        assert_eq!(External::of_entries(&good), Ok(expected));
        assert_eq!(External::of_entries(&entries(&[("offset", "0")])), Err(ExternalError::NoLocation));
        let twice = entries(&[("location", "w"), ("location", "w")]);
        assert!(matches!(External::of_entries(&twice), Err(ExternalError::RepeatedKey { .. })));
    }
}
