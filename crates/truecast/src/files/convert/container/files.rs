//! Files of the result except shards: index, sidecars, initial manifest.

use crate::files::convert::container::config::Configuration;
use crate::files::convert::job::TensorJob;
use crate::files::convert::place::manifest::{Manifest, ShardEntry, SourceEntry};
use crate::files::convert::plan::Plan;
use crate::files::digest::Summing;
use crate::files::error::Error;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use truecast_io::folder::Index;

const INDEX: &str = "model.safetensors.index.json";

impl Plan {
    /// Initial manifest: options and source, no finished work.
    pub(crate) fn manifest(&self) -> Result<Manifest, Error> {
        let mut shards = Vec::with_capacity(self.shards.len());
        for shard in self.folder.shards() {
            let mut head = shard.source.head();
            let mut sum = Summing::default();
            let mut buffer = vec![0; 1 << 16];
            loop {
                let path = || shard.source.path().to_path_buf();
                let read = head.read(&mut buffer);
                match read.map_err(|source| truecast_io::Error::Io { path: path(), action: "reading", source })? {
                    0 => break,
                    bytes => sum.add(&buffer[..bytes]),
                }
            }
            let source = SourceEntry { bytes: shard.source.file_bytes(), header_xxh3: sum.finish() };
            shards.push(ShardEntry { name: shard.name.clone(), source, output: None });
        }
        let mut options = self.provenance.to_json();
        options["sidecars"] = json!(self.options.copy_sidecars);
        Ok(Manifest { truecast: env!("CARGO_PKG_VERSION").into(), options, complete: false, shards })
    }

    /// `docs/spec/checkpoints.md §2.4`
    pub(crate) fn index(&self) -> Option<(String, String)> {
        let written = self.shards.iter().filter(|shard| !shard.is_empty());
        // The name of a single remaining shard still has a part number, so an index is needed.
        if self.folder.index().is_none() && self.folder.shards().len() < 2 {
            return None;
        }
        let mut weight_map = BTreeMap::new();
        let mut total_size = 0;
        for shard in written {
            for target in shard.works.iter().flat_map(TensorJob::targets) {
                weight_map.insert(target.name.to_string(), shard.name.clone());
                total_size += target.bytes();
            }
        }
        let (name, mut metadata) = match self.folder.index() {
            Some(index) => (index.name.clone(), index.metadata.clone()),
            None => (INDEX.into(), Default::default()),
        };
        // Codes, scales and dropped tensors change the number of parameters.
        if !self.dropped.is_empty() || !self.relaid.is_empty() || self.works().any(|work| work.job.stored().is_none()) {
            metadata.shift_remove("total_parameters");
        }
        let text = Index { name: name.clone(), metadata, weight_map }.text(total_size);
        Some((name, text))
    }

    /// Names at the top level. Sidecars are left out.
    pub(crate) fn names(&self) -> Vec<String> {
        let shards = self.shards.iter().filter(|shard| !shard.is_empty()).map(|shard| shard.name.clone());
        shards
            .chain(self.index().map(|(name, _)| name))
            .chain(self.configuration.files.iter().map(|file| file.name.clone()))
            .collect()
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.names().into_iter().map(PathBuf::from).chain(self.copied().map(|sidecar| sidecar.path.clone()))
    }

    pub(crate) fn copied(&self) -> impl Iterator<Item = &truecast_io::folder::Sidecar> {
        let all = if self.options.copy_sidecars { self.folder.sidecars() } else { &[] };
        let Configuration { files, dropped, .. } = &self.configuration;
        let names: Vec<&str> =
            files.iter().map(|file| file.name.as_str()).chain(dropped.iter().map(String::as_str)).collect();
        all.iter().filter(move |sidecar| !names.iter().any(|name| Path::new(name) == sidecar.path))
    }
}
