//! Options with which a result was made.

use crate::files::convert::container::OPTIONS_KEY;
use crate::files::convert::container::gguf::recorded_options;
use crate::files::convert::error::CheckpointError;
use crate::files::convert::place::manifest::{self, MANIFEST, Manifest};
use crate::files::error::Error;
use crate::files::report::Provenance;
use std::path::Path;
use truecast_io::folder::Folder;
use truecast_io::gguf::{Keys, is_named};
use truecast_io::{FileFormat, Source, look};

/// Reads the options with which a result was made. They are in the manifest of a folder, in the metadata of a
/// `.safetensors` file, or in a key of a GGUF file. `None` if the result records no options.
///
/// # Errors
/// An unreadable manifest, one of another version, or one of an unfinished conversion; an unreadable file.
pub fn recorded(dst: &Path) -> Result<Option<Provenance>, Error> {
    if !look::is_folder(dst)? {
        return recorded_in_file(dst);
    }
    let unfinished = |what| Err(Error::checkpoint(dst, CheckpointError::Unfinished { what }));
    let Some(Manifest { options, complete, .. }) = Manifest::read(dst, MANIFEST)? else {
        return match manifest::names(dst)?.into_iter().next() {
            Some(part) => unfinished(format!("{part} belongs to only one part")),
            None => Ok(None),
        };
    };
    if !complete {
        return unfinished(format!("{MANIFEST} says so"));
    }
    let failed = |why: String| {
        let file = MANIFEST.into();
        Error::checkpoint(dst, CheckpointError::Manifest { file, why })
    };
    Provenance::from_json(&options).map(Some).map_err(|cause| failed(cause.to_string()))
}

fn recorded_in_file(file: &Path) -> Result<Option<Provenance>, Error> {
    let failed = |why: String| Error::checkpoint(file, CheckpointError::Manifest { file: OPTIONS_KEY.into(), why });
    if is_named(file) {
        // The first part of a model has the keys.
        let parts = Folder::of_file(file)?;
        let keys = parts.shards().first().map(|shard| Keys::of(&shard.source)).transpose()?;
        return keys.map_or(Ok(None), |keys| recorded_options(&keys)).map_err(failed);
    }
    if FileFormat::of_path(file) != Some(FileFormat::Safetensors) {
        return Ok(None);
    }
    let source = Source::open(file, None)?;
    source.metadata().get(OPTIONS_KEY).map(|text| Provenance::parse(text).map_err(failed)).transpose()
}
