//! What becomes of a checkpoint, file by file and tensor by tensor, settled before anything is written.

use super::config::{self, NewFile};
use super::error::CheckpointError;
use super::manifest::{Manifest, ShardEntry, SourceEntry};
use super::options::{Options, Share};
use super::shard::{ShardPlan, Stored, Work};
use crate::convert::planned::Planned;
use crate::digest::Sha256;
use crate::error::Error;
use crate::report::Provenance;
use crate::select::Eligibility;
use crate::stream::{Item, LEAST_MEMORY};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use truecast_core::{CastSpec, DType};
use truecast_io::folder::{Folder, Index, Shard};
use truecast_io::{FileFormat, Shown, Tensor};

/// The index of a checkpoint that had none.
const INDEX: &str = "model.safetensors.index.json";

/// A conversion of a checkpoint whose every question is settled: nothing was written yet.
#[derive(Debug)]
pub struct Plan {
    pub(super) folder: Folder,
    pub(super) provenance: Provenance,
    pub(super) shards: Vec<ShardPlan>,
    /// Files beside the shards that are written anew.
    pub(super) files: Vec<NewFile>,
    pub(super) options: Options,
}

impl Plan {
    /// Opens the source and settles what becomes of each tensor. Nothing is written.
    ///
    /// # Errors
    /// Everything that is wrong with the folder, the headers or the options.
    pub fn new(src: &Path, options: &Options) -> Result<Plan, Error> {
        let folder = Folder::open(src, options.tensors.onnx.follow_links)?;
        if let Some(what) = config::quantised(&folder)? {
            return Err(Error::checkpoint(src, CheckpointError::Quantised { what }));
        }
        let stored: Vec<Stored> = stored(&folder).collect();
        let tensor = |at: &Stored| folder.shards()[at.shard].source.tensors()[at.tensor].clone();
        let tensors: Vec<Tensor> = stored.iter().map(tensor).collect();
        let kind = FileFormat::Safetensors;
        let eligibilities: Vec<_> = tensors.iter().map(|tensor| Eligibility::in_container(kind, tensor)).collect();
        let choices = options.tensors.selection.choose(kind, &tensors, &eligibilities, src)?;
        let of_shard = |shard: &Shard| {
            let metadata = shard.source.metadata().clone();
            ShardPlan { name: shard.name.clone(), works: Vec::new(), metadata }
        };
        let mut shards: Vec<ShardPlan> = folder.shards().iter().map(of_shard).collect();
        for ((stored, tensor), choice) in stored.into_iter().zip(&tensors).zip(choices) {
            let path = folder.shards()[stored.shard].source.path();
            let planned = Planned::new(tensor, choice, kind, path, &options.tensors.request)?;
            shards[stored.shard].works.push(Work { stored, planned });
        }
        let files = config::rewritten(&folder, options.tensors.selection.to)?;
        let provenance = Provenance::of(&options.tensors);
        Ok(Plan { folder, provenance, shards, files, options: options.clone() })
    }

    /// The source that was opened.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// What decides the result.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// From which type to which each tensor that is converted goes.
    pub fn conversions(&self) -> impl Iterator<Item = (DType, DType)> {
        let converted = |t: &&Planned| t.cast.is_some_and(|cast| cast != CastSpec::copy(t.from));
        self.works().map(|work| &work.planned).filter(converted).map(|t| (t.from, t.target.dtype))
    }

    pub(super) fn works(&self) -> impl Iterator<Item = &Work> + Clone {
        self.shards.iter().flat_map(|shard| &shard.works)
    }

    /// The shard is converted by this run.
    pub(super) fn is_mine(&self, shard: usize) -> bool {
        match self.options.share {
            Share::Whole => true,
            Share::Part(part) => part.has(shard),
            Share::Merge => false,
        }
    }

    /// Bytes of tensor data that this run will read and write.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let mine = self.shards.iter().enumerate().filter(|(at, _)| self.is_mine(*at)).map(|(_, shard)| shard.bytes());
        mine.fold((0, 0), |sum, bytes| (sum.0 + bytes.0, sum.1 + bytes.1))
    }

    /// What a user should know before relying on the result.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.folder.warnings().to_vec();
        let is_f6 = |work: &&Work| matches!(work.planned.from, DType::F6E2M3 | DType::F6E3M2);
        warnings.extend(self.works().find(is_f6).map(|work| {
            let (path, name) = (self.folder.path().display(), Shown(&work.planned.name));
            format!("{path}: tensor {name}: no convention exists for F6 elements; read as one little-endian bit stream")
        }));
        warnings
    }

    /// Every worker has room for the least piece of every tensor.
    pub(super) fn check_memory(&self) -> Result<(), Error> {
        let items = self.works().enumerate().map(|(index, work)| work.item(index));
        let least = items.map(|item: Item| item.least_memory()).fold(LEAST_MEMORY, u64::max);
        match self.options.tensors.max_memory {
            got if got < least => Err(Error::Memory { got, least }),
            _ => Ok(()),
        }
    }

    /// The manifest before anything is done.
    pub(super) fn manifest(&self) -> Result<Manifest, Error> {
        let mut shards = Vec::with_capacity(self.shards.len());
        for shard in self.folder.shards() {
            let mut head = shard.source.head();
            let mut digest = Sha256::new();
            let mut buffer = vec![0; 1 << 16];
            loop {
                let path = || shard.source.path().to_path_buf();
                let read = head.read(&mut buffer);
                match read.map_err(|source| truecast_io::Error::Io { path: path(), action: "reading", source })? {
                    0 => break,
                    bytes => digest.add(&buffer[..bytes]),
                }
            }
            let source = SourceEntry { bytes: shard.source.file_bytes(), header_sha256: digest.finish() };
            shards.push(ShardEntry { name: shard.name.clone(), source, output: None });
        }
        let mut options = self.provenance.to_json();
        options["sidecars"] = json!(self.options.sidecars);
        Ok(Manifest { truecast: env!("CARGO_PKG_VERSION").into(), options, complete: false, shards })
    }

    /// The index of the result with its name, if it gets one (`docs/spec/checkpoints.md §2.4`).
    pub(super) fn index(&self) -> Option<(String, String)> {
        let written = self.shards.iter().filter(|shard| !shard.is_empty());
        if self.folder.index().is_none() && written.clone().count() < 2 {
            return None;
        }
        let mut weight_map = BTreeMap::new();
        let mut total_size = 0;
        for shard in written {
            for work in &shard.works {
                weight_map.insert(work.planned.target.name.clone(), shard.name.clone());
                total_size += work.planned.target.bytes();
            }
        }
        let (name, metadata) = match self.folder.index() {
            Some(index) => (index.name.clone(), index.metadata.clone()),
            None => (INDEX.into(), Default::default()),
        };
        let text = Index { name: name.clone(), metadata, weight_map }.text(total_size);
        Some((name, text))
    }

    /// The names of all files of the result at its top, but the sidecars.
    pub(super) fn names(&self) -> Vec<String> {
        let shards = self.shards.iter().filter(|shard| !shard.is_empty()).map(|shard| shard.name.clone());
        shards
            .chain(self.index().map(|(name, _)| name))
            .chain(self.files.iter().map(|file| file.name.clone()))
            .collect()
    }

    /// Sidecars that are copied as they are.
    pub(super) fn copied(&self) -> impl Iterator<Item = &truecast_io::folder::Sidecar> {
        let all = if self.options.sidecars { self.folder.sidecars() } else { &[] };
        all.iter().filter(|sidecar| !self.files.iter().any(|file| Path::new(&file.name) == sidecar.path))
    }
}

/// Every tensor that counts, in the order of files and data.
fn stored(folder: &Folder) -> impl Iterator<Item = Stored> {
    let of_shard =
        |(shard, held): (usize, &Shard)| held.tensors.clone().into_iter().map(move |tensor| Stored { shard, tensor });
    folder.shards().iter().enumerate().flat_map(of_shard)
}
