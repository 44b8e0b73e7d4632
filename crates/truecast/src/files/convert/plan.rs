//! Plan of a conversion, by file and tensor. `planner` and `container::by_value` make plans.

use crate::files::convert::container::Container;
use crate::files::convert::container::config::Configuration;
use crate::files::convert::error::CheckpointError;
use crate::files::convert::job::TensorJob;
use crate::files::convert::llamacpp::StoredAs;
use crate::files::convert::options::{Options, RunScope};
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::relayout::Relaid;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::report::Provenance;
use crate::files::stream::{Item, LEAST_MEMORY};
use crate::flag::Flag;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use truecast_core::{CastSpec, DType};
use truecast_io::folder::{Folder, Shard};
use truecast_io::{Escaped, FileFormat, Tensor};
use truecast_kernel::{Counts, PlanError, StochasticCaster};

/// A planned conversion; nothing is written yet.
#[derive(Debug)]
pub struct Plan {
    pub(crate) dst: PathBuf,
    pub(crate) folder: Folder,
    pub(crate) container: Container,
    pub(crate) provenance: Provenance,
    pub(crate) shards: Vec<ShardPlan>,
    pub(crate) configuration: Configuration,
    /// Paths and plans of checkpoints inside the folder; they are converted first.
    pub(crate) components: Vec<(PathBuf, Plan)>,
    /// Sets of tensors that share a global scale.
    pub(crate) shares: Vec<Vec<Stored>>,
    /// For each tensor in `shares`, the index of its job in the shard.
    pub(crate) sharing: HashMap<Stored, usize>,
    /// Quantized tensors whose codes and scales are carried over.
    pub(crate) relaid: Vec<Relaid>,
    /// Names of tensors that the result omits, with the reason.
    pub(crate) dropped: Vec<(String, String)>,
    pub(crate) warnings: Vec<String>,
    /// Form in the source of tensors that a view computes.
    pub(crate) stored_as: HashMap<Arc<str>, StoredAs>,
    pub(crate) options: Options,
}

impl Plan {
    /// Opened source.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Options that determine the result.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    pub(crate) fn works(&self) -> impl Iterator<Item = &TensorJob> + Clone {
        self.shards.iter().flat_map(|shard| &shard.works)
    }

    /// Tensors with the same global scale, including this one.
    pub(crate) fn shared(&self, scaled: &Scaled) -> &[Stored] {
        scaled.share.map_or(&[], |set| &self.shares[set])
    }

    /// Quantized tensor with a shared global scale.
    pub(crate) fn scaled(&self, at: Stored) -> Option<&Scaled> {
        let work = *self.sharing.get(&at)?;
        self.shards[at.shard].works[work].job.scaled()
    }

    pub(crate) fn is_mine(&self, shard: usize) -> bool {
        match self.options.scope {
            RunScope::Whole => true,
            RunScope::Part(part) => part.contains_shard(shard),
            RunScope::Merge => false,
        }
    }

    /// True if the result is one file.
    #[must_use]
    pub fn is_one_file(&self) -> bool {
        !matches!(self.container, Container::Folder)
    }

    /// Number of bytes that this run reads, and number of bytes that it writes.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let mine = self.shards.iter().enumerate().filter(|(at, _)| self.is_mine(*at)).map(|(_, shard)| shard.bytes());
        let others = self.components.iter().map(|(_, plan)| plan.bytes());
        mine.chain(others).fold((0, 0), |sum, bytes| (sum.0 + bytes.0, sum.1 + bytes.1))
    }

    /// Warnings about the result.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        // A GGUF result keeps metadata arrays; safetensors files cannot hold arrays.
        let is_gguf = || self.folder.shards().iter().all(|shard| shard.source.format() == FileFormat::Gguf);
        let of_folder =
            if matches!(self.container, Container::Gguf(_)) && is_gguf() { &[] } else { self.folder.warnings() };
        let mut warnings = [of_folder, &self.warnings].concat();
        warnings.extend(self.changes_nothing());
        let is_in_safetensors = |at: Stored| at.source(&self.folder).format() == FileFormat::Safetensors;
        let is_model = |shard: &Shard| shard.source.format() == FileFormat::Onnx;
        if !matches!(self.container, Container::Model(..)) && self.folder.shards().iter().any(is_model) {
            warnings.push(format!("{}: only the weights are written, not the graph", self.folder.path().display()));
        }
        let is_f6 = |work: &&TensorJob| {
            matches!(work.planned.from, DType::F6E2M3 | DType::F6E3M2)
                && work.job.stored().is_some_and(is_in_safetensors)
        };
        warnings.extend(self.works().find(is_f6).map(|work| {
            let (path, name) = (self.folder.path().display(), Escaped(&work.planned.name));
            format!(
                "{path}: tensor {name}: there is no convention for F6 elements; they are read as one little-endian \
                 bit stream"
            )
        }));
        warnings.extend(self.components.iter().flat_map(|(_, plan)| plan.warnings()));
        warnings
    }

    fn changes_nothing(&self) -> Option<String> {
        let is_converted = |work: &TensorJob| self.row(work, Counts::default()).converted;
        let is_repacked = |relaid: &Relaid| {
            let is_renamed =
                |(part, name): &(_, String)| *relaid.quantized.stored(*part).header(&self.folder).name != **name;
            relaid.quantized.layout != relaid.layout || relaid.parts.iter().any(is_renamed)
        };
        if self.works().next().is_none() || self.works().any(is_converted) || self.relaid.iter().any(is_repacked) {
            return None;
        }
        let Options { selection, quantize, .. } = &self.options;
        let asked = match (quantize, selection.to) {
            (Some(writing), _) => format!("scheme {}", writing.scheme),
            (None, to) => format!("type {}", to?),
        };
        Some(format!("{}: every tensor is kept: {asked} changes nothing", self.folder.path().display()))
    }

    /// Checks that every cast can round stochastically.
    pub(crate) fn check_stochastic(&self) -> Result<(), Error> {
        self.components.iter().try_for_each(|(_, plan)| plan.check_stochastic())?;
        if self.works().any(|work| work.job.scaled().is_some()) {
            let (option, why) = (Flag::Seed, "a scheme rounds to nearest; random bits round plain casts".to_string());
            return Err(Error::checkpoint(self.folder.path(), CheckpointError::NoEffect { option, why }));
        }
        if self.options.request.chooses_rounding() {
            let (option, why) = (Flag::Seed, "the specification's options choose another rounding".to_string());
            return Err(Error::checkpoint(self.folder.path(), CheckpointError::NoEffect { option, why }));
        }
        for (work, CastSpec { src, dst, .. }) in self.works().filter_map(|work| Some((work, work.planned.cast?))) {
            if !StochasticCaster::converts(src, dst) {
                let (path, cause) = (self.folder.path(), PlanError::NotStochastic { src, dst });
                return Err(Error::tensor(path, &work.planned.name, cause));
            }
        }
        Ok(())
    }

    /// Checks that each worker has memory for the smallest piece of every tensor.
    pub(crate) fn check_memory(&self) -> Result<(), Error> {
        let items = self.works().enumerate().map(|(index, work)| work.item(index));
        let least = items.map(|item: Item| item.least_memory()).fold(LEAST_MEMORY, u64::max);
        match self.options.max_memory {
            got if got < least => Err(Error::Memory { got, least }),
            _ => Ok(()),
        }
    }
}

/// A file of the result. The source has a file with this name.
#[derive(Debug)]
pub(crate) struct ShardPlan {
    pub name: String,
    /// Jobs in the order of the source's data.
    pub works: Vec<TensorJob>,
    pub metadata: BTreeMap<String, String>,
}

impl ShardPlan {
    /// Output tensors; empty if the shard is not written.
    pub fn targets(&self) -> Vec<Tensor> {
        self.works.iter().flat_map(TensorJob::targets).cloned().collect()
    }

    /// Number of bytes that are read for the file, and number of bytes that are written.
    pub fn bytes(&self) -> (u64, u64) {
        let read = self.works.iter().map(TensorJob::bytes_in).sum();
        (read, self.works.iter().map(TensorJob::bytes_out).sum())
    }

    pub fn is_empty(&self) -> bool {
        self.works.is_empty()
    }
}
