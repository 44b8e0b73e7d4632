//! Description of a checkpoint: headers, `__metadata__`, JSON files. Callers read headers, and pass a function that
//! reads small tensors.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};
use serde_json::Value;
use truecast_core::DType;
use truecast_io::Tensor;

use crate::error::Error;
use crate::modules::brief;

/// Maximum number of bytes read from a tensor to recognize a scheme (`docs/spec/checkpoints.md §5.1`).
pub const MAX_READ_BYTES: u64 = 1 << 20;

/// A tensor of a checkpoint, from its shard's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Name, type and shape.
    pub tensor: Tensor,
    /// Index of the tensor's shard.
    pub shard: usize,
}

/// A checkpoint of one or more shards. A tensor's number is its position in `tensors`.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint<'a> {
    /// All relevant tensors (`docs/spec/checkpoints.md §2.3`), each name once.
    pub tensors: &'a [Stored],
    /// `__metadata__` of each shard.
    pub metadata: &'a [BTreeMap<String, String>],
    /// The accompanying JSON files.
    pub documents: &'a Documents,
}

/// JSON files that describe a checkpoint; `None` for a missing file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Documents {
    /// `config.json`
    pub config: Option<Value>,
    /// ModelOpt's `hf_quant_config.json`.
    pub hf_quant_config: Option<Value>,
    /// Mistral's `params.json`.
    pub params: Option<Value>,
    /// ModelSlim's `quant_model_description.json`.
    pub quant_model_description: Option<Value>,
}

impl Documents {
    /// Names of the files, in the order of the fields.
    pub const FILES: [&str; 4] = ["config.json", "hf_quant_config.json", "params.json", "quant_model_description.json"];

    pub(crate) fn check(&self) -> Result<(), Error> {
        let values = [&self.config, &self.hf_quant_config, &self.params, &self.quant_model_description];
        for (file, value) in Documents::FILES.into_iter().zip(values) {
            if let Some(other) = value.as_ref().filter(|value| !value.is_object()) {
                let (place, key, expected) = (file.to_owned(), "the file".to_owned(), "an object".to_owned());
                return Err(Error::Value { place, key, found: brief(other), expected });
            }
        }
        Ok(())
    }
}

/// Function that reads a tensor by number: the whole tensor, or its first [`MAX_READ_BYTES`].
pub type ReadTensor<'a> = &'a mut dyn FnMut(usize) -> Result<Vec<u8>, truecast_io::Error>;

#[derive(Debug)]
pub(crate) struct Index<'a> {
    pub(crate) checkpoint: Checkpoint<'a>,
    numbers: HashMap<&'a str, usize>,
}

impl<'a> Index<'a> {
    pub(crate) fn new(checkpoint: Checkpoint<'a>) -> Result<Index<'a>, Error> {
        let mut numbers = HashMap::with_capacity(checkpoint.tensors.len());
        for (number, stored) in checkpoint.tensors.iter().enumerate() {
            if numbers.insert(&*stored.tensor.name, number).is_some() {
                return Err(Error::DuplicateName { tensor: stored.tensor.name.to_string() });
            }
        }
        Ok(Index { checkpoint, numbers })
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn tensor(&self, number: usize) -> &'a Tensor {
        &self.checkpoint.tensors[number].tensor
    }

    pub(crate) fn dtype_of(&self, name: &str) -> Option<DType> {
        self.find(name).map(|number| self.tensor(number).dtype)
    }

    pub(crate) fn len(&self) -> usize {
        self.checkpoint.tensors.len()
    }
}
