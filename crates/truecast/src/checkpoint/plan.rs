//! What becomes of a checkpoint, file by file and tensor by tensor, settled before anything is written.

use super::begun;
use super::config::Configuration;
use super::error::CheckpointError;
use super::found::{Contents, quantised};
use super::gguf;
use super::manifest::{Manifest, ShardEntry, SourceEntry};
use super::options::{Options, Share};
use super::quantise::{Quantising, Settled};
use super::reference::{Reference, contents, nothing_ignored};
use super::relayout::{Relaid, relaid};
use super::scaled::Scaled;
use super::shard::{Origin, ShardPlan, Work};
use super::stored::Stored;
use crate::convert::planned::Planned;
use crate::digest::Sha256;
use crate::error::Error;
use crate::report::Provenance;
use crate::select::{Choice, Detected, Eligibility, Selection, idle};
use crate::stream::{Item, LEAST_MEMORY};
use serde_json::json;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::path::Path;
use truecast_core::scaled::{Packing, Part};
use truecast_core::{CastSpec, DType, Layout};
use truecast_io::folder::{Folder, Index, Shard};
use truecast_io::gguf::Keys;
use truecast_io::{FileFormat, Shown, Tensor};
use truecast_schemes::{Detection, Family, Group, Nibbles, Outcome, Role, Scheme};

/// The index of a checkpoint that had none.
const INDEX: &str = "model.safetensors.index.json";

/// A conversion of a checkpoint whose every question is settled: nothing was written yet.
#[derive(Debug)]
pub struct Plan {
    pub(super) folder: Folder,
    pub(super) provenance: Provenance,
    pub(super) shards: Vec<ShardPlan>,
    /// Files beside the shards that are written anew, or not copied.
    pub(super) configuration: Configuration,
    /// Sets of tensors with a common second scale.
    pub(super) shares: Vec<Vec<Stored>>,
    /// Of the tensors in them their places among the works of their shards.
    sharing: HashMap<Stored, usize>,
    /// Quantised tensors whose codes and scales are carried over.
    pub(super) relaid: Vec<Relaid>,
    /// Tensors that the result lacks because they mean nothing without others, with the reason.
    pub(super) dropped: Vec<(String, String)>,
    /// Tensors of the source whose data this plan was made from.
    pub(super) read: Vec<Stored>,
    /// Of a GGUF file, if that is the result.
    pub(super) keys: Option<Keys>,
    warnings: Vec<String>,
    pub(super) options: Options,
}

impl Plan {
    /// Opens the source and settles what becomes of each tensor. Nothing is written.
    ///
    /// # Errors
    /// Everything that is wrong with the folder, the headers or the options.
    pub fn new(src: &Path, options: &Options) -> Result<Plan, Error> {
        let folder = begun::open(src, options)?;
        let reference = Reference::of(options)?;
        let found = contents(&folder, options, reference.as_ref())?;
        Plan::of(folder, found, options, reference, FileFormat::Safetensors)
    }

    /// Settles what becomes of each tensor of a checkpoint that was opened.
    pub(super) fn of(
        folder: Folder,
        contents: Contents,
        options: &Options,
        reference: Option<Reference>,
        into: FileFormat,
    ) -> Result<Plan, Error> {
        let Contents { stored, documents, found, read } = contents;
        let src = folder.path();
        let tensor = |at: &Stored| &folder.shards()[at.shard].source.tensors()[at.tensor];
        // What the result holds, in the order of files and data: a group stands where its codes do.
        let (mut made, mut dropped) = (Vec::new(), Vec::new());
        for (number, role) in found.roles.iter().enumerate() {
            match role {
                Role::Plain => made.push((stored[number], None)),
                Role::Part { group, part: Part::Codes } => made.push((stored[number], Some(&found.groups[*group]))),
                Role::Part { .. } => {}
                Role::Dropped(why) => dropped.push((tensor(&stored[number]).name.clone(), why.to_string())),
            }
        }
        let kind = FileFormat::Safetensors;
        let logical = |(at, group): &(Stored, Option<&Group>)| match group {
            None => tensor(at).clone(),
            Some(group) => Tensor {
                name: group.name.clone(),
                dtype: group.layout.code_type(),
                layout: Layout::Packed,
                shape: group.shape.clone(),
            },
        };
        let tensors: Vec<Tensor> = made.iter().map(logical).collect();
        let eligible = |((_, group), tensor): (&(Stored, Option<&Group>), &Tensor)| match group {
            None => Eligibility::in_container(kind, tensor),
            Some(_) => Eligibility::Converted,
        };
        let eligibilities: Vec<_> = made.iter().zip(&tensors).map(eligible).collect();
        let writing = options.writing.as_ref().filter(|writing| !writing.scheme.is_plain());
        writing.map_or(Ok(()), |writing| gguf::check_scheme(src, writing.scheme, into))?;
        let selection = &options.tensors.selection;
        // What is not quantised is treated as without a scheme.
        let beside = Selection { keep: writing.map_or(selection.keep.clone(), |_| Vec::new()), ..selection.clone() };
        let choices = beside.choose(kind, &tensors, &eligibilities, src)?;
        let idle = idle(&beside, &tensors, &eligibilities, &choices, src);
        let was_quantised = !found.groups.is_empty();
        if !was_quantised {
            nothing_ignored(options, src)?;
        }
        let is_gguf = folder.shards().iter().any(|shard| shard.source.format() == FileFormat::Gguf);
        let carried = writing.and_then(|writing| Some((writing.scheme, writing.relayout?)));
        let quantising = writing.filter(|writing| writing.relayout.is_none());
        let mut quantising = quantising.map(|writing| Quantising::new(writing, selection));
        let (mut all_relaid, mut dense) = (Vec::new(), Vec::new());
        let of_shard = |shard: &Shard| {
            let metadata = shard.source.metadata();
            let metadata = if was_quantised || is_gguf {
                truecast_schemes::metadata(metadata, &found.groups)
            } else {
                metadata.clone()
            };
            ShardPlan { name: shard.name.clone(), works: Vec::new(), metadata }
        };
        let mut shards: Vec<ShardPlan> = folder.shards().iter().map(of_shard).collect();
        // Everything becomes one file.
        let is_one = into == FileFormat::Gguf;
        shards.truncate(if is_one { 1 } else { usize::MAX });
        let of_result = |at: Stored| if is_one { 0 } else { at.shard };
        let mut names = HashSet::new();
        let mut settled_scheme = None;
        for (((at, group), tensor), choice) in made.into_iter().zip(&tensors).zip(choices) {
            let path = folder.shards()[at.shard].source.path();
            let value = match group {
                Some(_) => &Tensor { dtype: DType::F32, ..tensor.clone() },
                None => tensor,
            };
            if let (Some((scheme, how)), Some(group), None) = (carried, group, choice.to) {
                // What is open of the scheme is as it is in the first tensor.
                let scheme = settled_scheme.unwrap_or(scheme);
                let made = truecast_schemes::target_of_layout(value, scheme, &group.layout);
                let (target, scheme) = made.map_err(|cause| Error::scheme(path, cause))?;
                settled_scheme = Some(scheme);
                let source = (quantised(&folder, &stored, group), group.scheme);
                let (works, relaid) = relaid(&folder, source, (target, scheme), how)?;
                for work in works {
                    if !names.insert(work.planned.target.name.clone()) {
                        let tensor = work.planned.target.name;
                        return Err(Error::scheme(src, truecast_schemes::Error::DuplicateName { tensor }));
                    }
                    shards[of_result(at)].works.push(work);
                }
                all_relaid.push(relaid);
                continue;
            }
            if let (Some(_), Some(module), true) =
                (carried, tensor.name.strip_suffix(".weight"), tensor.shape.len() >= 2)
            {
                dense.push(module.to_string());
            }
            let of_group = || group.map(|group| Box::new(quantised(&folder, &stored, group).flat()));
            let scaled = quantising.as_mut().map(|quantising| quantising.work(at, value, of_group, path));
            let scaled = scaled.transpose()?.flatten();
            let stays =
                scaled.as_ref().map_or(choice.to.is_none(), |work| group.is_some_and(|g| gguf::is_alike(work, g)));
            let of_blocks = group.filter(|_| is_one && stays).and_then(|group| gguf::copied(&folder, &stored, group));
            if let Some(works) = of_blocks {
                names.extend(works.iter().map(|work| work.planned.target.name.clone()));
                shards[0].works.extend(works);
                continue;
            }
            let work = match (scaled, group) {
                (Some(Work { planned, origin }), _) => {
                    Work { planned: Planned { from: tensor.dtype, ..planned }, origin }
                }
                (None, None) => {
                    let planned = Planned::new(tensor, choice, into, path, &options.tensors.request)?;
                    let kept_by = quantising.as_ref().map_or(choice.kept_by, |quantising| quantising.kept_by(tensor));
                    Work { origin: Origin::Stored(at), planned: Planned { kept_by, ..planned } }
                }
                (None, Some(group)) => {
                    let Some(to) = choice.to else {
                        let (tensor, scheme) = (tensor.name.clone(), group.scheme.to_string());
                        return Err(Error::checkpoint(src, CheckpointError::Kept { tensor, scheme }));
                    };
                    let choice = Choice { from: DType::F32, to: Some(to), kept_by: None };
                    let planned = Planned::new(value, choice, into, path, &options.tensors.request)?;
                    let kept_by = quantising.as_ref().and_then(|quantising| quantising.kept_by(value));
                    let planned = Planned { from: tensor.dtype, kept_by, ..planned };
                    let quantised = quantised(&folder, &stored, group).flat();
                    Work { origin: Origin::Quantised(Box::new(quantised)), planned }
                }
            };
            if let Some(twice) = work.targets().find(|target| !names.insert(target.name.clone())) {
                let cause = truecast_schemes::Error::DuplicateName { tensor: twice.name.clone() };
                return Err(Error::scheme(src, cause));
            }
            shards[of_result(at)].works.push(work);
        }
        let settled = quantising.map(|quantising| quantising.finish(src)).transpose()?;
        let Settled { kept, shares, warnings: of_quantised } = settled.unwrap_or_default();
        let kept = [kept, dense].concat();
        if carried.is_some() && all_relaid.is_empty() {
            let (option, why) = ("--relayout", "no tensor is quantised, or rules make all of them dense".to_string());
            return Err(Error::checkpoint(src, CheckpointError::NoEffect { option, why }));
        }
        let scheme = settled_scheme.unwrap_or(writing.map_or(Scheme::PLAIN, |writing| writing.scheme));
        let outcome = (was_quantised || !scheme.is_plain()).then_some(Outcome { scheme, kept: &kept });
        let configuration = match is_one {
            true => Configuration::default(),
            false => Configuration::of(&folder, &documents, selection.to, outcome)?,
        };
        let keys = is_one.then(|| gguf::keys(&folder, &documents, options, &shards[0].works)).transpose()?;
        let (reading, detected) = (options.reading.clone(), detected(&found));
        let provenance =
            Provenance { writing: writing.cloned(), reading, detected, ..Provenance::of(&options.tensors) };
        // What is said of names is about other files.
        let choices = if is_gguf && is_one { Vec::new() } else { found.choices };
        let mut warnings = [choices, found.warnings, of_quantised, idle].concat();
        let rounded: Vec<&Relaid> = all_relaid.iter().filter(|relaid| relaid.is_rounded).collect();
        if let Some(first) = rounded.first() {
            let (path, name) = (src.display(), Shown(&first.quantised.name));
            let others = match rounded.len() - 1 {
                0 => String::new(),
                1 => " and 1 other".into(),
                n => format!(" and {n} others"),
            };
            warnings.push(format!("{path}: tensor {name}{others}: the second scale is rounded to f32"));
        }
        warnings.extend(all_relaid.iter().filter_map(|relaid| {
            let (path, name, value) = (src.display(), Shown(&relaid.quantised.name), relaid.unlikely?);
            Some(format!(
                "{path}: tensor {name}: magnitudes give the second scale {value:?}, which looks like one of the other \
                 convention; --trust-scales reads it"
            ))
        }));
        if let Some(reference) = reference {
            let all: Vec<_> = found.groups.iter().map(|group| quantised(&folder, &stored, group)).collect();
            warnings.extend(reference.check_nibbles(&folder, &all)?);
        }
        let mut sharing = HashMap::new();
        for shard in &shards {
            for (at, work) in shard.works.iter().enumerate() {
                if let Origin::Dense(scaled) = &work.origin
                    && scaled.share.is_some()
                {
                    sharing.insert(scaled.from, at);
                }
            }
        }
        let plan = Plan {
            folder,
            provenance,
            shards,
            configuration,
            shares,
            sharing,
            relaid: all_relaid,
            dropped,
            read,
            keys,
            warnings,
            options: options.clone(),
        };
        let of_gguf = plan.gguf().map(|new| gguf::warnings(&plan.folder, &new.tensors)).unwrap_or_default();
        Ok(Plan { warnings: [plan.warnings, of_gguf].concat(), ..plan })
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
        let converted = |t: &&Planned| t.cast.is_some_and(|cast| cast != CastSpec::copy(cast.src));
        self.works()
            .map(|work| &work.planned)
            .filter(converted)
            .map(|t| (t.cast.map_or(t.from, |cast| cast.src), t.target.dtype))
    }

    pub(super) fn works(&self) -> impl Iterator<Item = &Work> + Clone {
        self.shards.iter().flat_map(|shard| &shard.works)
    }

    /// The tensors that have a second scale in common with this one, itself among them.
    pub(super) fn shared(&self, scaled: &Scaled) -> &[Stored] {
        scaled.share.map_or(&[], |set| &self.shares[set])
    }

    /// A tensor that has a second scale in common with others, by its place in the source.
    pub(super) fn scaled(&self, at: Stored) -> Option<&Scaled> {
        let work = *self.sharing.get(&at)?;
        match &self.shards[at.shard].works[work].origin {
            Origin::Dense(scaled) => Some(scaled),
            _ => None,
        }
    }

    /// The shard is converted by this run.
    pub(super) fn is_mine(&self, shard: usize) -> bool {
        match self.options.share {
            Share::Whole => true,
            Share::Part(part) => part.has(shard),
            Share::Merge => false,
        }
    }

    /// The result is one file.
    pub(super) fn is_one_file(&self) -> bool {
        self.keys.is_some() || self.folder.is_file()
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
        // Arrays that safetensors files cannot hold are not left out of GGUF files.
        let of_folder = if self.keys.is_some() && self.folder.is_file() { &[] } else { self.folder.warnings() };
        let mut warnings = [of_folder, &self.warnings].concat();
        let is_f6 = |work: &&Work| {
            let is_plain = matches!(work.origin, Origin::Stored(_));
            is_plain && matches!(work.planned.from, DType::F6E2M3 | DType::F6E3M2)
        };
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
            for target in shard.works.iter().flat_map(Work::targets) {
                weight_map.insert(target.name.clone(), shard.name.clone());
                total_size += target.bytes();
            }
        }
        let (name, mut metadata) = match self.folder.index() {
            Some(index) => (index.name.clone(), index.metadata.clone()),
            None => (INDEX.into(), Default::default()),
        };
        // Codes, scales and what is dropped change how many parameters are counted.
        if !self.dropped.is_empty()
            || !self.relaid.is_empty()
            || self.works().any(|work| !matches!(work.origin, Origin::Stored(_)))
        {
            metadata.shift_remove("total_parameters");
        }
        let text = Index { name: name.clone(), metadata, weight_map }.text(total_size);
        Some((name, text))
    }

    /// The names of all files of the result at its top, but the sidecars.
    pub(super) fn names(&self) -> Vec<String> {
        let shards = self.shards.iter().filter(|shard| !shard.is_empty()).map(|shard| shard.name.clone());
        shards
            .chain(self.index().map(|(name, _)| name))
            .chain(self.configuration.files.iter().map(|file| file.name.clone()))
            .collect()
    }

    /// Sidecars that are copied as they are.
    pub(super) fn copied(&self) -> impl Iterator<Item = &truecast_io::folder::Sidecar> {
        let all = if self.options.sidecars { self.folder.sidecars() } else { &[] };
        let Configuration { files, dropped, .. } = &self.configuration;
        let names: Vec<&str> =
            files.iter().map(|file| file.name.as_str()).chain(dropped.iter().map(String::as_str)).collect();
        all.iter().filter(move |sidecar| !names.iter().any(|name| Path::new(name) == sidecar.path))
    }
}

/// What was found out of a source and decides its values.
fn detected(found: &Detection) -> Detected {
    let order = |group: &Group| match (group.scheme.family, group.layout.planes()?.codes.packing) {
        (Family::ComfyNvfp4, Packing::HighFirst) => Some(Nibbles::High),
        (Family::ComfyNvfp4, _) => Some(Nibbles::Low),
        _ => None,
    };
    let mut schemes: Vec<String> = found.groups.iter().map(|group| group.scheme.to_string()).collect();
    schemes.sort();
    schemes.dedup();
    Detected { schemes, nibbles: found.groups.iter().find_map(order) }
}
