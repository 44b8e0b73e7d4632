//! The vocabulary: tokens with their types, scores and merges.

use super::fields::{Fields, refused, shown};
use super::hyperparameters::Model;
use super::models::Tokens;
use super::pieces::{self, PIECES};
use super::source::Files;
use super::special;
use super::tokenizer::{Added, TOKENIZER, Tokenizer};
use crate::files::convert::error::CheckpointError;
use foldhash::{HashMap, HashMapExt};
use serde_json::Value;
use truecast_io::gguf::Keys;

/// Most tokens. Vocabularies of real models have up to 300,000.
const MOST_TOKENS: u32 = 1 << 20;

const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED: i32 = 5;
const BYTE: i32 = 6;

/// Scores of tokens that no merge makes, and of numbers without a token.
const NO_SCORE: f32 = -1000.0;
const NO_TOKEN: f32 = -10_000.0;

/// Size of Code Llama's vocabulary, by which the converter knows it, and its tokens for filling in code.
const CODE_LLAMA: u32 = 32016;
const CODE_TOKENS: [(&str, u32); 4] = [("prefix", 32007), ("suffix", 32008), ("middle", 32009), ("eot", 32010)];
/// Size of the vocabulary of small Granite models, which add no token to texts.
const GRANITE: u32 = 49152;

struct Vocabulary {
    texts: Vec<String>,
    kinds: Vec<i32>,
    scores: Vec<f32>,
}

impl Vocabulary {
    fn new(tokens: u32) -> Vocabulary {
        Vocabulary {
            texts: (0..tokens).map(|i| format!("[PAD{i}]")).collect(),
            kinds: vec![UNUSED; tokens as usize],
            scores: vec![NO_TOKEN; tokens as usize],
        }
    }

    fn set(&mut self, id: usize, text: String, kind: i32, score: f32) {
        (self.texts[id], self.kinds[id], self.scores[id]) = (text, kind, score);
    }

    fn len(&self) -> usize {
        self.texts.len()
    }

    fn keys(&self, has_scores: bool, keys: &mut Keys) -> Result<(), CheckpointError> {
        let mut numbers = HashMap::with_capacity(self.len());
        for (number, text) in self.texts.iter().enumerate() {
            if let Some(other) = numbers.insert(text, number) {
                let text = shown(&text[..].into());
                return Err(refused(format!("tokens {other} and {number} have the same text, {text}")));
            }
        }
        keys.set("tokenizer.ggml.tokens", &self.texts[..]);
        if has_scores {
            keys.set("tokenizer.ggml.scores", &self.scores[..]);
        }
        keys.set("tokenizer.ggml.token_type", &self.kinds[..]);
        Ok(())
    }
}

/// Sets the keys of the vocabulary.
pub(super) fn keys(model: &Model, files: &Files, keys: &mut Keys) -> Result<(), CheckpointError> {
    let size = model.fields.needed_u32("vocab_size")?;
    if size > MOST_TOKENS {
        return Err(model.fields.unexpected("vocab_size", &format!("at most {MOST_TOKENS}")));
    }
    let from = model.kind.tokens;
    let config = Fields {
        place: "tokenizer_config.json".into(),
        values: files.tokenizer_config.as_ref().and_then(Value::as_object).cloned().unwrap_or_default(),
    };
    let mut limit = size;
    match &files.pieces {
        Some(file) if from != Tokens::Bytes => {
            let vocabulary = of_pieces(file, files, &config, size)?;
            named("llama", "default", keys);
            vocabulary.keys(true, keys)?;
        }
        _ => {
            let missing = || {
                let or = if from == Tokens::Bytes { String::new() } else { format!(" or {PIECES}") };
                refused(format!("the folder has no {TOKENIZER}{or}; download it into the folder"))
            };
            let tokenizer = Tokenizer::new(files.tokenizer.as_ref().ok_or_else(missing)?)?;
            if matches!(from, Tokens::Any | Tokens::Pieces) && tokenizer.is_of_pieces() {
                named("llama", "default", keys);
                of_tokenizer(&tokenizer, &config, size, true)?.keys(true, keys)?;
            } else {
                named("gpt2", &tokenizer.pre_tokenizer()?, keys);
                of_tokenizer(&tokenizer, &config, size, false)?.keys(false, keys)?;
                keys.set("tokenizer.ggml.merges", &tokenizer.merges[..]);
                limit = u32::MAX;
            }
        }
    }
    match from {
        Tokens::Any => {
            if let Some(is_added) = config.get("add_prefix_space").and_then(Value::as_bool) {
                keys.set("tokenizer.ggml.add_space_prefix", &is_added);
            }
        }
        Tokens::Pieces => keys.set("tokenizer.ggml.add_space_prefix", &false),
        Tokens::Bytes | Tokens::PiecesOrBytes => {}
    }
    special::keys(files, limit, keys);
    if from == Tokens::Any && size == CODE_LLAMA {
        CODE_TOKENS.iter().for_each(|(name, id)| keys.set(&format!("tokenizer.ggml.{name}_token_id"), id));
    }
    if from == Tokens::Any && size == GRANITE {
        keys.set("tokenizer.ggml.add_bos_token", &false);
    }
    Ok(())
}

fn named(model: &str, pre: &str, keys: &mut Keys) {
    keys.set("tokenizer.ggml.model", model);
    keys.set("tokenizer.ggml.pre", pre);
}

/// Tokens of SentencePiece, and those that other files add. Tokens beyond the size are left out, as by the converter.
fn of_pieces(file: &[u8], files: &Files, config: &Fields, size: u32) -> Result<Vocabulary, CheckpointError> {
    let mut vocabulary = Vocabulary::new(size);
    for (id, piece) in pieces::read(file)?.into_iter().enumerate().take(size as usize) {
        let kinds = [UNKNOWN, CONTROL, UNUSED, BYTE];
        let kind = kinds.into_iter().find(|kind| u64::try_from(*kind) == Ok(piece.kind)).unwrap_or(NORMAL);
        vocabulary.set(id, piece.text, kind, piece.score);
    }
    for (text, id) in files.added_tokens.iter().filter_map(Value::as_object).flatten() {
        let id = id.as_u64().and_then(|id| usize::try_from(id).ok());
        let id = id.ok_or_else(|| {
            refused(format!("added_tokens.json: the number of {} is not one", shown(&text[..].into())))
        })?;
        if id < vocabulary.len() {
            vocabulary.set(id, text.clone(), USER_DEFINED, NO_SCORE);
        }
    }
    for (id, token) in config.get("added_tokens_decoder").and_then(Value::as_object).into_iter().flatten() {
        let entry = id.parse::<usize>().ok().zip(token["content"].as_str());
        let (id, text) = entry.ok_or_else(|| config.unexpected("added_tokens_decoder", "tokens by their numbers"))?;
        if id >= vocabulary.len() {
            continue;
        }
        if token["special"] == true || looks_special(text) {
            vocabulary.set(id, text.to_owned(), CONTROL, NO_SCORE);
        } else {
            vocabulary.set(id, text.replace('\u{2581}', " "), USER_DEFINED, NO_SCORE);
        }
    }
    Ok(vocabulary)
}

/// Tokens of `tokenizer.json`: of bytes, or pieces of text (`is_of_pieces`), which have scores instead of merges.
fn of_tokenizer(
    tokenizer: &Tokenizer<'_>,
    config: &Fields,
    size: u32,
    is_of_pieces: bool,
) -> Result<Vocabulary, CheckpointError> {
    let mut vocabulary = Vocabulary::new(size);
    let texts = tokenizer.vocabulary.iter().copied();
    let added = tokenizer.added.iter().map(|added| (added.text, added.id));
    if let Some((text, id)) = texts.clone().chain(added).find(|(_, id)| *id >= vocabulary.len()) {
        let text = shown(&text.into());
        return Err(refused(format!("{TOKENIZER}: token {text} has the number {id}, and vocab_size is {size}")));
    }
    let order = if is_of_pieces { tokenizer.order() } else { HashMap::new() };
    // llama.cpp merges pieces with the highest score first.
    let score = |text: &str| order.get(text).map_or(NO_SCORE, |i| 0.0 - *i as f32);
    for (text, id) in texts {
        let kind = if is_of_pieces && is_byte(text) { BYTE } else { NORMAL };
        vocabulary.set(id, text.to_owned(), kind, score(text));
    }
    for Added { id, text, is_special } in &tokenizer.added {
        let is_special = *is_special || is_named(config, text) || (!is_of_pieces && looks_special(text));
        if is_special || is_of_pieces {
            let kind = if is_special { CONTROL } else { USER_DEFINED };
            vocabulary.set(*id, (*text).to_owned(), kind, score(text));
        } else {
            vocabulary.set(*id, text.replace('\u{2581}', " "), USER_DEFINED, NO_SCORE);
        }
    }
    Ok(vocabulary)
}

/// Whether a token is one for a byte, for example `<0x0A>`.
fn is_byte(text: &str) -> bool {
    let digits = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Whether the configuration names a token as a special one.
fn is_named(config: &Fields, text: &str) -> bool {
    let of_kind = |kind: &str| config.get(&format!("{kind}_token"));
    special::KINDS.iter().filter_map(|(kind, _)| of_kind(kind)).any(|value| *value == text || value["content"] == text)
}

/// Whether a token is a special one by its text, as some models do not mark theirs.
fn looks_special(text: &str) -> bool {
    let is_between = |begin: &str, end: &str| text.starts_with(begin) && text.ends_with(end);
    ["<pad>", "<mask>", "<2mass>", "[@BOS@]"].contains(&text)
        || is_between("<|", "|>")
        || is_between("<｜", "｜>")
        || is_between("<unused", ">")
}
