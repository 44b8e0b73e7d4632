//! Report of a conversion (`docs/interfaces.md §6`), read again for a verification.

use super::difference::FileDifference;
use crate::files::digest::sha256_with;
use crate::files::error::Error;
use crate::files::report::{Provenance, ProvenanceError, Report};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use truecast_core::ErrorCode;
use truecast_io::look;
use truecast_kernel::parallel;

/// A report written by `convert --report`.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Options that determined the result.
    pub provenance: Provenance,
    /// Written files, destination first. Empty for a dry run.
    pub outputs: Vec<RecordedFile>,
    destination: PathBuf,
}

/// A written file, with its size and digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "the object of a file")]
pub struct RecordedFile {
    /// Path that the conversion was given.
    #[serde(serialize_with = "shown")]
    pub path: PathBuf,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 in lower-case hexadecimal.
    #[serde(deserialize_with = "digest")]
    pub sha256: String,
}

/// Refuses any other text, because the digest may be printed.
fn digest<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        Ok(text)
    } else {
        Err(D::Error::custom("sha256 is not 64 hexadecimal digits in lower case"))
    }
}

/// Writes a path as text, also if it is not UTF-8.
fn shown<S: serde::Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

impl RecordedFile {
    /// Lists the written files with their current lengths and digests; for a folder, also files of earlier runs. Calls
    /// `progress` with a file and the length of each piece that was read.
    ///
    /// # Errors
    /// An unreadable file; [`Error::Interrupted`] once `stop` is set.
    pub fn all(
        report: &Report,
        stop: &AtomicBool,
        progress: &(dyn Fn(&Path, u64) + Sync),
    ) -> Result<Vec<RecordedFile>, Error> {
        let one = |at: usize| {
            let path = report.outputs[at].clone();
            let (bytes, sha256) = sha256_with(&path, stop, |bytes| progress(&path, bytes))?;
            Ok(RecordedFile { path, bytes, sha256 })
        };
        parallel::map(report.outputs.len(), one).into_iter().collect()
    }
}

/// Error of a file that is not a report of a conversion.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The error messages name the fields.
pub enum RecordError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] truecast_io::Error),
    /// The file is not such a JSON object.
    #[error("{path}: not a report of a conversion: {cause}")]
    Form {
        path: String,
        /// Missing or unexpected key, with its position.
        cause: serde_json::Error,
    },
    /// The report belongs to another command.
    #[error("{path}: a report of {command:?}, not of a conversion")]
    Command { path: String, command: String },
    /// This version of truecast does not know the options.
    #[error("{path}: {cause}")]
    Options { path: String, cause: ProvenanceError },
}

impl RecordError {
    /// Stable code of the error.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            RecordError::Io(error) => error.error_code(),
            _ => ErrorCode::MalformedFile,
        }
    }
}

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

    /// Length of the recorded files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.outputs.iter().fold(0, |sum, output| sum.saturating_add(output.bytes))
    }

    /// Compares the lengths and digests of destination and accompanying files with the record. Calls `progress` with a
    /// file and the length of each piece that was read.
    ///
    /// # Errors
    /// An unreadable file, unless it is missing; [`Error::NoOutput`] if a path is not a file; [`Error::Interrupted`]
    /// once `stop` is set.
    pub fn differences(
        &self,
        dst: &Path,
        stop: &AtomicBool,
        progress: &dyn Fn(&Path, u64),
    ) -> Result<Vec<FileDifference>, Error> {
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
                Some(found) if found.is_file() => Some(sha256_with(&path, stop, |bytes| progress(&path, bytes))?),
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
