//! Verification of tensors: headers, elements, metadata.

use super::{Verification, goes_on};
use crate::files::convert::container::OPTIONS_KEY;
use crate::files::convert::job::{TensorJob, elements_in};
use crate::files::convert::plan::{Plan, ShardPlan};
use crate::files::convert::recompute::by_kind;
use crate::files::convert::recompute::codes::Roundings;
use crate::files::convert::recompute::job_check::{CheckCaches, JobCheck};
use crate::files::convert::recompute::source::Amaxes;
use crate::files::error::Error;
use crate::files::progress::Progress;
use crate::files::scan::Stretch;
use crate::files::verify::VerifyReport;
use crate::files::verify::coverage::elements_of;
use crate::files::verify::difference::FileDifference;
use crate::files::verify::elements::Prepared;
use crate::files::verify::written::Written;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use truecast_core::{DType, Layout};
use truecast_io::folder::{Folder, Shard};
use truecast_io::{FileFormat, Source, Tensor};

/// Receives finished source bytes, and the tensor.
type Report<'a> = &'a mut (dyn FnMut(u64, &str) -> ControlFlow<()> + Send);

impl Verification {
    /// Verifies the wanted shards. Returns the number of elements in them.
    pub(super) fn shards(
        &self,
        result: &Folder,
        is_wanted: impl Fn(&ShardPlan) -> bool,
        stop: &AtomicBool,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
        verdict: &mut VerifyReport,
    ) -> Result<u64, Error> {
        let prepared = Prepared::new(self.plan.options.seed);
        let mut caches = CheckCaches { prepared, roundings: Roundings::default(), amaxes: Amaxes::new() };
        for (work, stretches) in self.plan.works().zip(&self.stretches) {
            if let Some(cast) = work.planned.cast {
                caches.prepared.expect(cast, elements_of(stretches));
            }
        }
        let (mut done, mut elements) = (0, 0);
        let mut report = |bytes, tensor: &str| {
            done += bytes;
            progress(Progress { bytes: done, tensor });
            goes_on(stop)
        };
        let mut rest = &self.stretches[..];
        for shard in &self.plan.shards {
            let (stretches, others) = rest.split_at(shard.works.len());
            rest = others;
            if is_wanted(shard) {
                elements += self.shard(shard, stretches, result, &mut caches, &mut report, verdict)?;
            }
        }
        Ok(elements)
    }

    /// `stretches` has a list for each job. Returns the number of elements in the shard.
    fn shard(
        &self,
        shard: &ShardPlan,
        stretches: &[Vec<Stretch>],
        result: &Folder,
        caches: &mut CheckCaches,
        report: Report<'_>,
        verdict: &mut VerifyReport,
    ) -> Result<u64, Error> {
        let is_file = self.plan.is_one_file();
        let actual = result.shards().iter().find(|found| is_file || found.name == shard.name);
        let held = actual.map(|found| held(shard, found, &self.plan.folder)).unwrap_or_default();
        let mut elements = 0;
        for (work, stretches) in shard.works.iter().zip(stretches) {
            let places = work.targets().map(|target| place(target, actual, &held, verdict)).collect::<Vec<_>>();
            let places: Option<Vec<usize>> = places.into_iter().collect();
            let Some((found, places)) = actual.zip(places) else { continue };
            let name = &work.planned.target.name;
            let shared = work.job.scaled().map_or(&[][..], |scaled| self.plan.shared(scaled));
            let written = Written {
                folder: &self.plan.folder,
                planned: &work.planned,
                shared: shared.iter().filter_map(|at| self.plan.scaled(*at)).collect(),
                result: &found.source,
                places,
                stretches,
            };
            let check = JobCheck { written, caches, progress: &mut |bytes| report(bytes, name) };
            let (differences, methods) = by_kind::compare(&*work.job, check)?;
            let kept_block = work.kept_block(&self.plan.folder);
            // Quantization is recomputed in whole blocks, so more elements than sampled are compared.
            let is_of_blocks = work.job.scaled().is_some();
            verdict.elements +=
                if is_of_blocks { methods.all() } else { elements_in(kept_block, elements_of(stretches)) };
            verdict.methods.add(&methods);
            verdict.differences.extend(differences);
            elements += elements_in(kept_block, work.planned.target.len());
        }
        let expected: BTreeSet<&str> = shard.works.iter().flat_map(TensorJob::targets).map(|of| &*of.name).collect();
        let extra: BTreeSet<&str> = held.into_keys().filter(|name| !expected.contains(name)).collect();
        verdict.differences.extend(extra.into_iter().map(|name| FileDifference::Extra { tensor: name.into() }));
        let Some(found) = actual else { return Ok(elements) };
        match found.source.format() {
            FileFormat::Gguf => verdict.differences.extend(self.plan.gguf_differences(&found.source)?),
            FileFormat::Safetensors => verdict.differences.extend(metadata(shard, found)),
            _ => verdict.differences.extend(model(&self.plan, &found.source)?),
        }
        Ok(elements)
    }
}

/// Position of an output tensor in the result. `None` if it is missing or has another header.
fn place(
    target: &Tensor,
    actual: Option<&Shard>,
    held: &HashMap<&str, usize>,
    verdict: &mut VerifyReport,
) -> Option<usize> {
    let Some((found, &at)) = actual.zip(held.get(&*target.name)) else {
        verdict.differences.push(FileDifference::Missing { tensor: target.name.to_string() });
        return None;
    };
    verdict.tensors += 1;
    let header = &found.source.tensors()[at];
    if fits(&found.source, target.dtype, header.dtype) && header.shape == target.shape {
        return Some(at);
    }
    verdict.differences.push(FileDifference::Header {
        tensor: target.name.to_string(),
        expected: (target.dtype, target.shape.to_vec()),
        actual: (header.dtype, header.shape.to_vec()),
    });
    None
}

/// Positions of the result's tensors by name. If the source or the result is a single array, its name is ignored.
fn held<'a>(shard: &'a ShardPlan, actual: &'a Shard, source: &Folder) -> HashMap<&'a str, usize> {
    let holds_one = source.shards()[0].source.format().holds_one() || actual.source.format().holds_one();
    match &shard.works[..] {
        [work] if holds_one && actual.source.tensors().len() == 1 => HashMap::from([(&*work.planned.target.name, 0)]),
        _ => by_name(actual).collect(),
    }
}

pub(super) fn by_name(shard: &Shard) -> impl Iterator<Item = (&str, usize)> {
    shard.tensors.iter().map(|&at| (&*shard.source.tensors()[at].name, at))
}

/// True if the types are equal, or if the container does not distinguish them.
fn fits(result: &Source, expected: DType, actual: DType) -> bool {
    let is_array = matches!(result.format(), FileFormat::Npy | FileFormat::Npz);
    let as_bytes = actual == DType::U8 && expected.bits_in(Layout::Bytes) == Some(8);
    expected == actual || (is_array && (as_bytes || (expected, actual) == (DType::Tf32, DType::F32)))
}

/// Compares a model and its external data with the expected bytes. The external data may have any file name.
fn model(plan: &Plan, result: &Source) -> Result<Option<FileDifference>, Error> {
    let Some(model) = result.model() else { return Ok(None) };
    let location = model.external_location().unwrap_or_default();
    let Some(new) = plan.new_model_with(location)? else { return Ok(None) };
    if let Some(offset) = new.structure_differs(result.path())? {
        return Ok(Some(FileDifference::Structure { offset }));
    }
    let Some(path) = model.data_files().pop_first() else { return Ok(None) };
    let offset = new.data_differs(&path)?;
    Ok(offset.map(|offset| FileDifference::ExternalData { location: location.into(), offset }))
}

fn metadata<'a>(shard: &'a ShardPlan, found: &'a Shard) -> impl Iterator<Item = FileDifference> + use<'a> {
    let actual = found.source.metadata();
    let keys: BTreeSet<&String> = shard.metadata.keys().chain(actual.keys()).collect();
    let right = |key: &str| shard.metadata.get(key).map(String::as_str).or((key == "format").then_some("pt"));
    // Options are a record and not a result, and another writer records no options.
    let is_compared = |key: &&String| *key != OPTIONS_KEY || actual.contains_key(*key);
    let is_wrong = |key: &&String| actual.get(*key).map(String::as_str) != right(key);
    let wrong: Vec<&String> = keys.into_iter().filter(|key| is_compared(key) && is_wrong(key)).collect();
    wrong.into_iter().map(|key| FileDifference::Metadata { key: key.clone() })
}
