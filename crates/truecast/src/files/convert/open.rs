//! Chooses the plan for the kind of source and destination. Also converts to a single file.

use crate::files::convert::container::{Container, OPTIONS_KEY, gguf};
use crate::files::convert::dequantize::reference::{Reference, contents};
use crate::files::convert::error::CheckpointError;
use crate::files::convert::llamacpp;
use crate::files::convert::options::Options;
use crate::files::convert::plan::Plan;
use crate::files::convert::shard_file::ChecksumMode;
use crate::files::convert::write::{ShardTarget, Shards};
use crate::files::error::Error;
use crate::files::paths;
use crate::files::progress::Progress;
use crate::files::report::Report;
use crate::files::select::SourceScheme;
use crate::flag::Flag;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use truecast_io::folder::{self, Folder};
use truecast_io::{FileFormat, Foreign, OpenOptions, Source, follow, look};
use truecast_schemes::{Scheme, Writing};

/// Refuses options about names that have no effect on these files.
fn check_names(src: &Path, dst: &Path, options: &Options) -> Result<(), Error> {
    let SourceScheme { like, keep_names, .. } = &options.source_scheme;
    let [is_from, is_into] = [src, dst].map(truecast_io::gguf::is_named);
    let is_back = is_from && FileFormat::of_path(dst).is_none();
    let why = "names change only between .gguf files and other checkpoints".to_string();
    let option = match (like, keep_names) {
        (Some(_), _) if is_from && is_into || !is_into && !is_back => Flag::Like,
        (_, true) if is_from || !is_into => Flag::KeepNames,
        _ => return Ok(()),
    };
    Err(Error::checkpoint(src, CheckpointError::NoEffect { option, why }))
}

impl Plan {
    /// Opens the source and plans each tensor. Writes nothing. With the source scheme `plain`, codes are converted by
    /// value, without scales. For a `.gguf` destination the source may be a folder.
    ///
    /// # Errors
    /// An invalid folder, header or option; scales whose tensor cannot be found.
    pub fn new(src: &Path, dst: &Path, options: &Options) -> Result<Plan, Error> {
        let mut plan = Plan::settled(src, dst, options)?;
        let recorded = plan.provenance.to_json().to_string();
        match (&mut plan.container, &mut plan.shards[..]) {
            (Container::File(FileFormat::Safetensors), [shard]) => {
                shard.metadata.insert(OPTIONS_KEY.into(), recorded);
            }
            (Container::Gguf(keys), _) => keys.set(OPTIONS_KEY, &recorded),
            _ => {}
        }
        if options.seed.is_some() {
            plan.check_stochastic()?;
        }
        Ok(plan)
    }

    fn settled(src: &Path, dst: &Path, options: &Options) -> Result<Plan, Error> {
        // A folder may name the GGUF model in it.
        let given = src;
        let src = &folder::single(src)?;
        let like = options.source_scheme.like.as_deref();
        let [is_gguf, into_gguf] = [src, dst].map(truecast_io::gguf::is_named);
        check_names(src, dst, options)?;
        let is_back = is_gguf && !into_gguf && FileFormat::of_path(dst).is_none();
        if let Some(like) = like.filter(|_| is_back) {
            let (folder, contents) = llamacpp::restored(src, like, options.onnx.links)?;
            return Plan::from_contents(folder, contents, options, None, dst);
        }
        if src != given {
            gguf::check_options(given, options)?;
        }
        if into_gguf {
            like.map_or(Ok(()), |like| paths::check_other(like, dst))?;
            return Plan::into_gguf(src, dst, options);
        }
        if look::is_folder(src)? {
            return Plan::of_folder(src, dst, options);
        }
        let of_source = FileFormat::of_path(src);
        let writing = options.quantize.as_ref().map(|writing| writing.scheme).filter(|scheme| !scheme.is_plain());
        if is_gguf || of_source == Some(FileFormat::Safetensors) {
            writing.map_or(Ok(()), |scheme| gguf::check_scheme(src, scheme, FileFormat::Safetensors))?;
        }
        let needs_folder =
            |scheme: &Scheme| scheme.family.writing() != Writing::Never && !scheme.family.name().starts_with("comfy:");
        let declared = writing.filter(needs_folder);
        if is_back && Foreign::of(dst) == Foreign::Unknown || is_gguf && declared.is_some() {
            let scheme = declared.map(|scheme| scheme.to_string());
            return Err(Error::checkpoint(dst, CheckpointError::FolderOfGguf { scheme }));
        }
        let writes = writing.is_some();
        let by_value = options.source_scheme.from_scheme == Some(Scheme::PLAIN) && !writes;
        if !is_gguf && (by_value || of_source != Some(FileFormat::Safetensors)) {
            FileFormat::known(src)?;
            paths::file_format(dst)?;
            // In a checkpoint, rules select tensors to reinterpret. A model states its types.
            let from = options.selection.from.filter(|_| of_source != Some(FileFormat::Safetensors));
            let source = Source::open_with(src, OpenOptions { from, onnx: options.onnx })?;
            return Plan::by_value(source, dst, options);
        }
        let folder = Folder::of_file(src)?;
        let reference = Reference::of(options)?;
        let found = contents(&folder, options, reference.as_ref())?;
        if !is_gguf && !writes && !found.is_quantized() {
            let source = folder.into_source().expect("it was opened as a file");
            return Plan::by_value(source, dst, options);
        }
        if paths::file_format(dst)? != FileFormat::Safetensors {
            return Err(Error::checkpoint(dst, CheckpointError::NotSafetensors));
        }
        let plan = Plan::from_contents(folder, found, options, reference, dst)?;
        if let (Some(file), Some(writing)) = (plan.configuration.files.first(), &options.quantize) {
            let (scheme, file) = (writing.scheme.to_string(), file.name.clone());
            return Err(Error::checkpoint(src, CheckpointError::Declared { scheme, file }));
        }
        Ok(plan)
    }

    fn into_gguf(src: &Path, dst: &Path, options: &Options) -> Result<Plan, Error> {
        let is_checkpoint =
            truecast_io::gguf::is_named(src) || FileFormat::of_path(src) == Some(FileFormat::Safetensors);
        let folder = if look::is_folder(src)? {
            gguf::check_options(src, options)?;
            Folder::open(src, options.onnx.links)?
        } else if is_checkpoint {
            Folder::of_file(src)?
        } else {
            FileFormat::known(src)?;
            return Err(Error::checkpoint(src, CheckpointError::IntoGguf));
        };
        if let Some(error) = folder.several("a .gguf file") {
            return Err(error.into());
        }
        Plan::of_checkpoint(folder, dst, options)
    }

    pub(crate) fn check_file(&self, dst: &Path) -> Result<(), Error> {
        self.refuse_source(dst)?;
        self.shards.iter().try_for_each(|shard| self.check_output(dst, shard))
    }

    fn refuse_source(&self, dst: &Path) -> Result<(), Error> {
        if self.is_source(dst)? { Err(Error::SameFile { path: self.dst.display().to_string() }) } else { Ok(()) }
    }

    /// True if the file at `path` is a source.
    ///
    /// # Errors
    /// A path that the system cannot inspect.
    pub fn is_source(&self, path: &Path) -> Result<bool, Error> {
        for shard in self.folder.shards() {
            if shard.source.same_file(path)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Converts to one file. On an error, the destination is unchanged.
    pub(crate) fn run_file(
        mut self,
        stop: &AtomicBool,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Report, Error> {
        self.check_memory()?;
        let path = &follow(&self.dst)?;
        self.refuse_source(path)?;
        self.widen_texts(stop)?;
        let (mut shards, existing) = (Shards::new(&self, stop), self.options.existing);
        // Single files have no manifest, so no checksum is needed.
        let target = ShardTarget { path, existing, new_folders: Vec::new(), checksum: ChecksumMode::Skipped };
        shards.write(0, target, progress)?;
        let outputs = [vec![path.clone()], std::mem::take(&mut shards.data)].concat();
        Ok(shards.report(self.warnings(), outputs))
    }
}
