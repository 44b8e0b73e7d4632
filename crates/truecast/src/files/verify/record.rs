//! What a conversion wrote down about itself (`docs/interfaces.md §6`), read back to check its result.

use super::difference::FileDifference;
use crate::files::digest::sha256;
use crate::files::error::Error;
use crate::files::report::{Provenance, ProvenanceError, Report};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use truecast_core::ErrorKind;
use truecast_io::look;
use truecast_kernel::parallel;

/// A report that `convert --report` wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What decided the result.
    pub provenance: Provenance,
    /// The files that were written, the destination first; none if it is the report of a dry run.
    pub outputs: Vec<RecordedFile>,
    /// As the conversion named it.
    destination: PathBuf,
}

/// A file as it was when it had been written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "the object of a file")]
pub struct RecordedFile {
    /// As the conversion named it.
    #[serde(serialize_with = "shown")]
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal digits.
    #[serde(deserialize_with = "digest")]
    pub sha256: String,
}

/// A digest that may be shown and compared, whoever wrote the report.
fn digest<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    match text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        true => Ok(text),
        false => Err(D::Error::custom("sha256 is not 64 hexadecimal digits in lower case")),
    }
}

/// A path as text, whatever its bytes are.
fn shown<S: serde::Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

impl RecordedFile {
    /// The files that a conversion wrote, as they are now; of a folder with those that were finished before.
    ///
    /// # Errors
    /// Reading; [`Error::Interrupted`] once `stop` is set.
    pub fn all(report: &Report, stop: &AtomicBool) -> Result<Vec<RecordedFile>, Error> {
        let one = |at: usize| {
            let path = report.outputs[at].clone();
            let (bytes, sha256) = sha256(&path, stop)?;
            Ok(RecordedFile { path, bytes, sha256 })
        };
        parallel::map(report.outputs.len(), one).into_iter().collect()
    }
}

/// A file that is no report of a conversion.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum RecordError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] truecast_io::Error),
    /// It is not of the form.
    #[error("{path}: not a report of a conversion: {cause}")]
    Form {
        path: String,
        /// What is missing or odd, and where.
        cause: serde_json::Error,
    },
    /// It is of another command.
    #[error("{path}: a report of {command:?}, not of a conversion")]
    Command { path: String, command: String },
    /// Its options are none of this version of truecast.
    #[error("{path}: {cause}")]
    Options { path: String, cause: ProvenanceError },
}

impl RecordError {
    /// Whose fault it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            RecordError::Io(error) => error.kind(),
            _ => ErrorKind::Input,
        }
    }
}

/// What is read of a report; the rest, which is long, is passed over.
#[derive(Deserialize)]
#[serde(expecting = "the object of a report")]
struct Form {
    command: String,
    #[serde(default)]
    destination: PathBuf,
    options: Value,
    #[serde(default)]
    outputs: Vec<RecordedFile>,
}

impl Record {
    /// Reads a report.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn read(path: &Path) -> Result<Record, RecordError> {
        let (file, _) = truecast_io::open_regular(path)?;
        let path = || path.display().to_string();
        let form: Result<Form, _> = serde_json::from_reader(BufReader::new(file));
        let Form { command, options, outputs, destination } =
            form.map_err(|cause| RecordError::Form { path: path(), cause })?;
        if command != "convert" {
            return Err(RecordError::Command { path: path(), command });
        }
        let provenance = Provenance::from_json(&options);
        let provenance = provenance.map_err(|cause| RecordError::Options { path: path(), cause })?;
        Ok(Record { provenance, outputs, destination })
    }

    /// The destination, and files that belong to it and lie beside it, of which length or digest is not as recorded.
    ///
    /// # Errors
    /// Files that cannot be read, other than those that are missing; [`Error::NoOutput`] for what is no file;
    /// [`Error::Interrupted`] once `stop` is set.
    pub fn differences(&self, dst: &Path, stop: &AtomicBool) -> Result<Vec<FileDifference>, Error> {
        let mut all = Vec::new();
        let is_folder = look::is_folder(dst)?;
        for (i, expected) in self.outputs.iter().enumerate() {
            let in_folder =
                expected.path.strip_prefix(&self.destination).ok().filter(|path| path.file_name().is_some());
            let path = match (i, expected.path.file_name()) {
                (_, Some(_)) if is_folder && in_folder.is_some() => dst.join(in_folder.unwrap_or(&expected.path)),
                (0, _) | (_, None) => dst.to_path_buf(),
                (_, Some(name)) => dst.with_file_name(name),
            };
            let actual = match look::at(&path)? {
                Some(found) if found.is_file() => Some(sha256(&path, stop)?),
                Some(_) => return Err(Error::NoOutput { path: path.display().to_string() }),
                None => None,
            };
            let recorded = (expected.bytes, expected.sha256.clone());
            if actual.as_ref() != Some(&recorded) {
                let path = path.display().to_string();
                all.push(FileDifference::Digest { path, digest: "sha256", expected: recorded, actual });
            }
        }
        Ok(all)
    }
}
