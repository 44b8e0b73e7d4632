//! Settling what becomes of a checkpoint, tensor by tensor and file by file: the one way to make a [`Plan`].

use crate::convert::container::Container;
use crate::convert::container::config::Configuration;
use crate::convert::container::gguf;
use crate::convert::dequantize::reference::{Reference, contents};
use crate::convert::error::CheckpointError;
use crate::convert::found::{Contents, quantized};
use crate::convert::job::TensorJob;
use crate::convert::options::Options;
use crate::convert::place::resume;
use crate::convert::plan::Plan;
use crate::convert::planned::Planned;
use crate::convert::quantize::activations::Activations;
use crate::convert::quantize::choice::{Decision, Quantizing};
use crate::convert::relayout::{self, Relaid, relaid};
use crate::convert::shard::ShardPlan;
use crate::convert::stored::Stored;
use crate::error::Error;
use crate::report::Provenance;
use crate::select::{Choice, Detected, Eligibility, Selection};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use truecast_core::scaled::{Packing, Part};
use truecast_core::{DType, Layout};
use truecast_io::folder::{Folder, Shard};
use truecast_io::{Escaped, FileFormat, Tensor};
use truecast_schemes::{Detection, Family, Group, Model, Nibbles, Outcome, Role, Scheme};

impl Plan {
    /// The plan of a folder that becomes a folder.
    pub(crate) fn of_folder(src: &Path, dst: &Path, options: &Options) -> Result<Plan, Error> {
        let folder = resume::open(src, dst, options)?;
        let reference = Reference::of(options)?;
        let found = contents(&folder, options, reference.as_ref())?;
        Plan::of(folder, found, options, reference, dst)
    }

    /// Settles what becomes of each tensor of a checkpoint that was opened.
    pub(crate) fn of(
        folder: Folder,
        contents: Contents,
        options: &Options,
        reference: Option<Reference>,
        dst: &Path,
    ) -> Result<Plan, Error> {
        let into = gguf::container(dst);
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
                Role::Dropped(why) => dropped.push((tensor(&stored[number]).name.to_string(), why.to_string())),
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
        let selection = &options.selection;
        // What is not quantized is treated as without a scheme.
        let beside = Selection { keep: writing.map_or(selection.keep.clone(), |_| Vec::new()), ..selection.clone() };
        let choices = beside.choose(kind, &tensors, &eligibilities, src)?;
        let was_quantized = !found.groups.is_empty();
        let is_gguf = folder.shards().iter().any(|shard| shard.source.format() == FileFormat::Gguf);
        let carried = writing.and_then(|writing| Some((writing.scheme, writing.relayout?)));
        let quantizing = writing.filter(|writing| writing.relayout.is_none());
        let model = Model::new(&tensors, documents.config.as_ref());
        let mut activations = Activations::new(&folder, &stored, &found, writing)?;
        let mut quantizing = quantizing.map(|writing| Quantizing::new(writing, selection, &model));
        let (mut all_relaid, mut dense, mut relaid_modules) = (Vec::new(), Vec::new(), Vec::new());
        let of_shard = |shard: &Shard| {
            let metadata = shard.source.metadata();
            let metadata = if was_quantized || is_gguf {
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
                let (mut target, scheme) = made.map_err(|cause| Error::scheme(path, cause))?;
                target.tensors.extend(activations.output(value));
                settled_scheme = Some(scheme);
                let source = (quantized(&folder, &stored, group), group.scheme);
                let (works, relaid) = relaid(&folder, source, (target, scheme), how)?;
                for work in works {
                    if !names.insert(work.planned.target.name.clone()) {
                        let tensor = work.planned.target.name;
                        return Err(Error::scheme(
                            src,
                            truecast_schemes::Error::DuplicateName { tensor: tensor.to_string() },
                        ));
                    }
                    shards[of_result(at)].works.push(work);
                }
                relaid_modules.extend(truecast_schemes::loaded_module(tensor));
                all_relaid.push(Relaid { shard: of_result(at), ..relaid });
                continue;
            }
            if carried.is_some() {
                dense.extend(truecast_schemes::loaded_module(tensor));
            }
            let of_group = || group.map(|group| Box::new(quantized(&folder, &stored, group)));
            let scaled = quantizing
                .as_mut()
                .map(|quantizing| quantizing.work((at, group.is_some()), value, of_group, path, &mut activations));
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
                (Some(TensorJob { planned, job }), _) => {
                    TensorJob { planned: Planned { from: tensor.dtype, ..planned }, job }
                }
                (None, None) => {
                    let planned = Planned::new(tensor, choice, into, path, &options.request)?;
                    let kept_by = quantizing.as_ref().map_or(choice.kept_by, |quantizing| quantizing.kept_by(tensor));
                    TensorJob { job: Arc::new(at), planned: Planned { kept_by, ..planned } }
                }
                (None, Some(group)) => {
                    let Some(to) = choice.to else {
                        let (tensor, scheme) = (tensor.name.clone(), group.scheme.to_string());
                        return Err(Error::checkpoint(
                            src,
                            CheckpointError::Kept { tensor: tensor.to_string(), scheme },
                        ));
                    };
                    if is_narrow(to) && beside.rule(&tensor.name).is_none() {
                        let (tensor, scheme) = (tensor.name.clone(), group.scheme.to_string());
                        return Err(Error::checkpoint(
                            src,
                            CheckpointError::Narrow { tensor: tensor.to_string(), scheme, to },
                        ));
                    }
                    let choice = Choice { from: DType::F32, to: Some(to), kept_by: None };
                    let planned = Planned::new(value, choice, into, path, &options.request)?;
                    let kept_by = quantizing.as_ref().and_then(|quantizing| quantizing.kept_by(value));
                    let planned = Planned { from: tensor.dtype, kept_by, ..planned };
                    let quantized = quantized(&folder, &stored, group).flat();
                    TensorJob { job: Arc::new(quantized), planned }
                }
            };
            if let Some(twice) = work.targets().find(|target| !names.insert(target.name.clone())) {
                let cause = truecast_schemes::Error::DuplicateName { tensor: twice.name.to_string() };
                return Err(Error::scheme(src, cause));
            }
            shards[of_result(at)].works.push(work);
        }
        let settled = quantizing.map(|quantizing| quantizing.finish(src)).transpose()?;
        let Decision { kept, modules, shares, warnings: of_quantized } = settled.unwrap_or_default();
        if carried.is_some() {
            dense.extend(model.absent_heads());
        }
        let (kept, modules) = ([kept, dense].concat(), [modules, relaid_modules].concat());
        activations.check(src, writing.map_or(Scheme::PLAIN, |writing| writing.scheme))?;
        dropped.retain(|(name, _)| !activations.carries(name));
        if carried.is_some() && all_relaid.is_empty() {
            let (option, why) = ("--relayout", "no tensor is quantized, or rules make all of them dense".to_string());
            return Err(Error::checkpoint(src, CheckpointError::NoEffect { option, why }));
        }
        let scheme = settled_scheme.unwrap_or(writing.map_or(Scheme::PLAIN, |writing| writing.scheme));
        let outcome = (was_quantized || !scheme.is_plain()).then_some(Outcome {
            scheme,
            kept: &kept,
            quantized: &modules,
            activations: activations.are_declared(),
        });
        let configuration = match is_one {
            true => Configuration::default(),
            false => Configuration::of(&folder, &documents, selection.to, outcome)?,
        };
        let container = match is_one {
            true => Container::Gguf(gguf::keys(&folder, &documents, options, &shards[0].works)?),
            false if folder.is_file() => Container::File(FileFormat::Safetensors),
            false => Container::Folder,
        };
        let provenance = Provenance { detected: detected(&found), ..Provenance::of(options) };
        // What is said of names is about other files.
        let choices = if is_gguf && is_one { Vec::new() } else { found.choices };
        let mut warnings = [choices, found.warnings, of_quantized, configuration.warnings.clone()].concat();
        warnings.extend(carried_over(src, &all_relaid));
        if let Some(reference) = reference {
            let all: Vec<_> = found.groups.iter().map(|group| quantized(&folder, &stored, group)).collect();
            warnings.extend(reference.check_nibbles(&folder, &all)?);
        }
        let plan = Plan {
            dst: dst.into(),
            folder,
            container,
            provenance,
            sharing: sharing(&shards),
            shards,
            configuration,
            shares,
            relaid: all_relaid,
            dropped,
            read,
            warnings,
            options: options.clone(),
        };
        let of_gguf = plan.gguf().map(|new| gguf::warnings(&plan.folder, &new.tensors)).unwrap_or_default();
        Ok(Plan { warnings: [plan.warnings, of_gguf].concat(), ..plan })
    }
}

/// Types of which weights are written with scales.
fn is_narrow(to: DType) -> bool {
    to.storage_bits().is_some_and(|bits| bits <= 8)
}

/// Of the tensors with a common second scale their places among the works of their shards.
fn sharing(shards: &[ShardPlan]) -> HashMap<Stored, usize> {
    let mut sharing = HashMap::new();
    for shard in shards {
        for (at, work) in shard.works.iter().enumerate() {
            if let Some(scaled) = work.job.scaled()
                && scaled.share.is_some()
            {
                sharing.insert(scaled.from, at);
            }
        }
    }
    sharing
}

/// What a user should know of codes and scales that are carried over.
fn carried_over(src: &Path, all: &[Relaid]) -> Vec<String> {
    let mut warnings = Vec::new();
    let rounded: Vec<&Relaid> = all.iter().filter(|relaid| relaid.is_rounded).collect();
    if let Some(first) = rounded.first() {
        let (path, name) = (src.display(), Escaped(&first.quantized.name));
        let others = match rounded.len() - 1 {
            0 => String::new(),
            1 => " and 1 other".into(),
            n => format!(" and {n} others"),
        };
        warnings.push(format!("{path}: tensor {name}{others}: the second scale is rounded to f32"));
    }
    warnings.extend(relayout::warning(src, all));
    warnings
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
