//! Files of a model's folder.

use crate::files::error::Error;
use serde_json::Value;
use truecast_io::folder::Folder;

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
            template: folder.bytes("chat_template.jinja", MOST_BYTES)?,
            pieces: folder.bytes("tokenizer.model", MOST_BYTES)?,
        })
    }
}
