//! A checkpoint that is one file: it becomes one file, with nothing beside it.

use super::error::CheckpointError;
use super::gguf;
use super::options::Options;
use super::plan::Plan;
use super::reference::{Reference, contents};
use super::write::{Shards, not_numbers};
use crate::error::Error;
use crate::progress::Progress;
use crate::report::Report;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use truecast_io::folder::Folder;
use truecast_io::gguf::GgufFile;
use truecast_io::{FileFormat, Foreign, OutputFile, Source, check_output, look};
use truecast_schemes::Scheme;

/// How a file is converted.
#[derive(Debug)]
pub(crate) enum OfFile {
    /// It is quantized, or is to be.
    Quantized(Box<Plan>),
    /// Its tensors are what they look like and stay so: [`convert`](crate::convert) takes them by value. The file, if it had to
    /// be opened to know.
    ByValue(Option<Box<Source>>),
}

impl Plan {
    /// Opens a file that is quantized, or is to be, and settles what becomes of each tensor. What lies beside it does not
    /// count. Where the destination is a GGUF file the source may be a folder.
    ///
    /// # Errors
    /// Everything that is wrong with the header or the options; scales that belong to nothing that is understood.
    pub(crate) fn of_file(src: &Path, dst: &Path, options: &Options) -> Result<OfFile, Error> {
        let (is_gguf, into) = (GgufFile::is_named(src), gguf::container(dst));
        if into == FileFormat::Gguf {
            return Plan::into_gguf(src, options).map(|plan| OfFile::Quantized(Box::new(plan)));
        }
        let writes = options.writing.as_ref().is_some_and(|writing| !writing.scheme.is_plain());
        let by_value = options.reading.from_scheme == Some(Scheme::PLAIN) && !writes;
        if !is_gguf && (by_value || FileFormat::of_path(src) != Some(FileFormat::Safetensors)) {
            return Ok(OfFile::ByValue(None));
        }
        let folder = Folder::of_file(src)?;
        let reference = Reference::of(options)?;
        let found = contents(&folder, options, reference.as_ref())?;
        if !is_gguf && !writes && !found.is_quantized() {
            return Ok(OfFile::ByValue(folder.into_source().map(Box::new)));
        }
        let plan = Plan::of(folder, found, options, reference, into)?;
        if let (Some(file), Some(writing)) = (plan.configuration.files.first(), &options.writing) {
            let (scheme, file) = (writing.scheme.to_string(), file.name.clone());
            return Err(Error::checkpoint(src, CheckpointError::Declared { scheme, file }));
        }
        Ok(OfFile::Quantized(Box::new(plan)))
    }

    /// The plan of a file or a folder that becomes a GGUF file.
    fn into_gguf(src: &Path, options: &Options) -> Result<Plan, Error> {
        let is_checkpoint = GgufFile::is_named(src) || FileFormat::of_path(src) == Some(FileFormat::Safetensors);
        let folder = if look::is_folder(src)? {
            gguf::check_options(src, options)?;
            Folder::open(src, options.tensors.onnx.follow_links)?
        } else if is_checkpoint {
            Folder::of_file(src)?
        } else {
            return Err(Error::checkpoint(src, CheckpointError::IntoGguf));
        };
        let reference = Reference::of(options)?;
        let found = contents(&folder, options, reference.as_ref())?;
        Plan::of(folder, found, options, reference, FileFormat::Gguf)
    }

    /// Whether [`run_file`](Plan::run_file) could start: the memory, the destination. Nothing is written.
    ///
    /// # Errors
    /// Those of [`run_file`](Plan::run_file) that need no data.
    pub fn check_file(&self, dst: &Path) -> Result<(), Error> {
        self.check_memory()?;
        let existing = self.options.tensors.existing;
        if let Some(new) = self.gguf() {
            if self.is_source(dst)? {
                return Err(Error::SameFile { path: dst.display().to_string() });
            }
            new.check(dst)?;
            return Ok(OutputFile::check(dst, existing)?);
        }
        match FileFormat::of_path(dst) {
            Some(FileFormat::Safetensors) => {}
            Some(_) => return Err(Error::checkpoint(dst, CheckpointError::NotSafetensors)),
            None if look::is_folder(dst)? => return Err(Error::FolderForFile { path: dst.display().to_string() }),
            None => return Err(Error::UnknownKind { path: dst.display().to_string(), found: Foreign::of(dst) }),
        }
        if self.is_source(dst)? {
            return Err(Error::SameFile { path: dst.display().to_string() });
        }
        for shard in &self.shards {
            check_output(dst, FileFormat::Safetensors, &shard.targets(), &shard.metadata, existing)?;
        }
        Ok(())
    }

    /// The file at `path` is a source.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn is_source(&self, path: &Path) -> Result<bool, Error> {
        for shard in self.folder.shards() {
            if shard.source.same_file(path)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Converts the one file. `progress` is told the source bytes that are done, and the tensor.
    ///
    /// Result: the destination is complete or untouched. Cost: memory within `max_memory` of the options and that of the
    /// header.
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn run_file(
        self,
        dst: &Path,
        stop: &AtomicBool,
        mut progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Report, Error> {
        self.check_file(dst)?;
        let mut shards = Shards::new(&self, stop);
        // Nobody asks for its digest.
        shards.write(0, (dst, Vec::new()), (self.options.tensors.existing, false), &mut progress)?;
        let Shards { rows, warnings, .. } = shards;
        let warnings = self.warnings().into_iter().chain(warnings).chain(not_numbers(&rows)).collect();
        let report = Report::new(self.folder.path(), self.provenance.clone(), rows, warnings);
        Ok(Report { outputs: vec![dst.into()], dropped: self.dropped.clone(), ..report })
    }
}
