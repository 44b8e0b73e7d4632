//! Files of a model's folder.

use super::fields::refused;
use crate::files::error::Error;
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use truecast_io::folder::Folder;
use truecast_io::{look, open_regular};

/// Longest file that is read, other than JSON. Files of real models have 5 MB.
const MOST_BYTES: u64 = 64 << 20;

/// Files that keys are made from; `None` for a missing file.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// `config.json`, or null.
    pub config: Value,
    /// `generation_config.json`
    pub generation_config: Option<Value>,
    /// `tokenizer.json`
    pub tokenizer: Option<Value>,
    /// `tokenizer_config.json`
    pub tokenizer_config: Option<Value>,
    /// `added_tokens.json`
    pub added_tokens: Option<Value>,
    /// `chat_template.json`
    pub template_json: Option<Value>,
    /// `chat_template.jinja`
    pub template: Option<Vec<u8>>,
    /// `tokenizer.model` of SentencePiece.
    pub pieces: Option<Vec<u8>>,
}

impl Files {
    /// Reads the files of a folder.
    ///
    /// # Errors
    /// A file that is unreadable, too long or not JSON.
    pub fn read(folder: &Folder) -> Result<Files, Error> {
        let json = |name: &str| Ok::<_, Error>(folder.json(name)?.map(|file| file.value));
        Ok(Files {
            config: json("config.json")?.unwrap_or_default(),
            generation_config: json("generation_config.json")?,
            tokenizer: json("tokenizer.json")?,
            tokenizer_config: json("tokenizer_config.json")?,
            added_tokens: json("added_tokens.json")?,
            template_json: json("chat_template.json")?,
            template: bytes(&folder.path().join("chat_template.jinja"))?,
            pieces: bytes(&folder.path().join("tokenizer.model"))?,
        })
    }
}

fn bytes(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    if look::at(path)?.is_none() {
        return Ok(None);
    }
    let (file, found) = open_regular(path)?;
    if found.len() > MOST_BYTES {
        let what = format!("{} has {} bytes; at most {MOST_BYTES} are read", path.display(), found.len());
        return Err(Error::checkpoint(path, refused(what)));
    }
    let mut bytes = Vec::new();
    let failed = |source| truecast_io::Error::Io { path: path.into(), action: "reading", source };
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}
