//! Meaning of a checkpoint's tensors: plain, quantized or dropped. `truecast_schemes` detects the meaning.

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::llamacpp::Header;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use std::collections::BTreeMap;
use truecast_core::scaled::Part;
use truecast_io::FileFormat;
use truecast_io::folder::{Folder, Shard};
use truecast_schemes::{Checkpoint, Detection, Documents, Group, MAX_READ_BYTES, Role, detect, detect_gguf};

pub(crate) struct Contents {
    /// All relevant tensors, sorted by file, then by offset of their data.
    pub stored: Vec<Stored>,
    pub documents: Documents,
    pub found: Detection,
    /// For a result that llama.cpp loads.
    pub llamacpp: Option<Header>,
}

impl Contents {
    /// Reads headers, JSON files, and small tensors that describe others.
    ///
    /// # Errors
    /// Quantized tensors that are not understood.
    pub fn detect(folder: &Folder, options: &truecast_schemes::Options<'_>) -> Result<Contents, Error> {
        let stored: Vec<Stored> = stored(folder).collect();
        let documents = documents(folder)?;
        let found = detection(folder, &stored, &documents, options)?;
        Ok(Contents { stored, documents, found, llamacpp: None })
    }

    pub fn is_quantized(&self) -> bool {
        self.found.roles.iter().any(|role| *role != Role::Plain)
    }
}

pub(crate) fn stored(folder: &Folder) -> impl Iterator<Item = Stored> {
    let of_shard =
        |(shard, held): (usize, &Shard)| held.tensors.clone().into_iter().map(move |tensor| Stored { shard, tensor });
    folder.shards().iter().enumerate().flat_map(of_shard)
}

pub(crate) fn documents(folder: &Folder) -> Result<Documents, Error> {
    let read = |name| Ok::<_, Error>(folder.json(name)?.map(|file| file.value));
    let [config, hf_quant_config, params, description] = Documents::FILES.map(read);
    Ok(Documents {
        config: config?,
        hf_quant_config: hf_quant_config?,
        params: params?,
        quant_model_description: description?,
    })
}

fn detection(
    folder: &Folder,
    stored: &[Stored],
    documents: &Documents,
    options: &truecast_schemes::Options<'_>,
) -> Result<Detection, Error> {
    let tensor = |at: &Stored| at.header(folder).clone();
    let is_gguf = |shard: &Shard| shard.source.format() == FileFormat::Gguf;
    if !folder.shards().is_empty() && folder.shards().iter().all(is_gguf) {
        let tensors: Vec<_> = folder.shards().iter().flat_map(|shard| shard.source.tensors()).collect();
        let blocks: Vec<_> = folder.shards().iter().flat_map(|shard| shard.source.blocks()).copied().collect();
        return detect_gguf(&tensors, &blocks).map_err(|cause| Error::scheme(folder.path(), cause));
    }
    let tensors: Vec<_> =
        stored.iter().map(|at| truecast_schemes::Stored { tensor: tensor(at), shard: at.shard }).collect();
    let metadata: Vec<BTreeMap<String, String>> =
        folder.shards().iter().map(|shard| shard.source.metadata().clone()).collect();
    let mut read = |number: usize| {
        let at = stored[number];
        let mut bytes = vec![0; at.header(folder).bytes().min(MAX_READ_BYTES) as usize];
        at.source(folder).read_at(at.tensor, 0, &mut bytes)?;
        Ok(bytes)
    };
    let checkpoint = Checkpoint { tensors: &tensors, metadata: &metadata, documents };
    detect(checkpoint, &mut read, options).map_err(|cause| Error::scheme(folder.path(), cause))
}

/// Quantized tensor that a group describes, with the positions of its parts.
pub(crate) fn quantized(folder: &Folder, stored: &[Stored], group: &Group) -> Quantized {
    let parts: Vec<(Part, Stored)> = group.parts.iter().map(|&(part, number)| (part, stored[number])).collect();
    let bytes = parts.iter().map(|(_, at)| at.header(folder).bytes()).sum();
    let (name, scheme) = (group.name.clone(), group.scheme.to_string().into());
    Quantized { name, layout: group.layout, parts, scheme, bytes }
}
