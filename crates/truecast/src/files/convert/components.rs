//! Folders with several checkpoints. Each component becomes a folder of the same name in the result; the enclosing
//! model is converted last (`docs/spec/checkpoints.md §2.7`).

use crate::files::convert::error::CheckpointError;
use crate::files::convert::options::{Options, RunScope};
use crate::files::convert::plan::Plan;
use crate::files::error::Error;
use crate::files::report::{Provenance, Report, ShardReport};
use crate::flag::Flag;
use std::path::Path;
use truecast_io::folder::Folder;

/// Beginnings of the folders of a pipeline whose models a scheme quantizes, and parts of the classes of such models.
/// Other models of a pipeline (autoencoders, encoders of images, classifiers) are cast only.
const QUANTIZED: ([&str; 3], [&str; 2]) = (["transformer", "unet", "text_encoder"], ["Transformer", "UNet"]);

impl Plan {
    pub(crate) fn of_folder(src: &Path, dst: &Path, options: &Options) -> Result<Plan, Error> {
        let folder = Folder::open(src, options.onnx.links)?;
        if folder.components().is_empty() {
            return Plan::of_checkpoint(folder, dst, options);
        }
        let has_model = !folder.shards().is_empty();
        let is_quantized = |path: &Path| !has_model && folder.class_of(path).is_some_and(|class| is_model(path, class));
        let option = for_one(options, has_model, folder.components().iter().any(|path| is_quantized(path)));
        if let Some(error) = option.and_then(|option| folder.several_folders(&option.keyword())) {
            return Err(error.into());
        }
        let writes = options.quantize.as_ref().is_some_and(|writing| !writing.scheme.is_plain());
        let plain = Options { quantize: None, source_scheme: Default::default(), ..options.clone() };
        let (mut plan, mut unused) = of_names(src, dst, if has_model { options.clone() } else { plain.clone() })?;
        plan.provenance = Provenance { detected: plan.provenance.detected, ..Provenance::of(options) };
        let (mut is_any_quantized, mut cast_only, mut without_effect) = (has_model, Vec::new(), None);
        for path in folder.components() {
            let plan_with = |options: &Options| of_names(&src.join(path), &dst.join(path), options.clone());
            let quantized = match (writes && is_quantized(path)).then(|| plan_with(options)) {
                Some(Err(error)) if quantizes_nothing(&error) => {
                    without_effect = without_effect.or(Some(error));
                    None
                }
                planned => planned.transpose()?,
            };
            is_any_quantized |= quantized.is_some();
            let (component, unused_too) = match quantized {
                Some(planned) => planned,
                None => {
                    cast_only.push(path.display().to_string());
                    plan_with(&plain)?
                }
            };
            unused.extend(unused_too);
            plan.components.push((path.clone(), component));
        }
        if let Some(error) = without_effect.filter(|_| !is_any_quantized) {
            return Err(error);
        }
        let plans = || plan.components.iter().map(|(_, plan)| plan).chain([&plan]);
        let selections = || plans().map(|plan| &plan.options.selection);
        let is_unused = |error: &Error| selections().all(|of| of.clone().without(error).is_none_or(|rest| rest == *of));
        if let Some(error) = unused.into_iter().find(is_unused) {
            return Err(error);
        }
        // The record has the selection as requested: rules without a match in the enclosing model apply to components.
        plan.provenance.selection = options.selection.clone();
        if writes && has_model {
            plan.warnings.push(format!("{}: models in its folders are not quantized", src.display()));
        } else if writes && !cast_only.is_empty() {
            plan.configuration.changes.push(format!("not quantized: {}", cast_only.join(", ")));
        }
        Ok(plan)
    }
}

/// True if a scheme quantizes a model of a pipeline. The pipeline states the folder and the class.
fn is_model(path: &Path, class: &str) -> bool {
    let (folders, classes) = QUANTIZED;
    let folder = path.to_string_lossy();
    folders.iter().any(|begin| folder.starts_with(begin)) || classes.iter().any(|part| class.contains(part))
}

fn quantizes_nothing(error: &Error) -> bool {
    let Error::Checkpoint { cause: CheckpointError::NoEffect { option, .. }, .. } = error else { return false };
    [Flag::Scheme, Flag::Relayout].contains(option)
}

/// Plans one checkpoint. Rules that match no tensor are left out, and an error for each such rule is returned.
fn of_names(src: &Path, dst: &Path, mut options: Options) -> Result<(Plan, Vec<Error>), Error> {
    let mut unused = Vec::new();
    loop {
        let error = match Plan::of_checkpoint(Folder::open(src, options.onnx.links)?, dst, &options) {
            Ok(plan) => return Ok((plan, unused)),
            Err(error) => error,
        };
        match options.selection.clone().without(&error) {
            Some(selection) => options.selection = selection,
            None => return Err(error),
        }
        unused.push(error);
    }
}

/// The first option that is only valid for a single model.
fn for_one(options: &Options, has_model: bool, is_any_quantized: bool) -> Option<Flag> {
    let writing = options.quantize.as_ref().filter(|writing| !writing.scheme.is_plain());
    let given = [
        (Flag::Part, matches!(options.scope, RunScope::Part(_))),
        (Flag::Merge, options.scope == RunScope::Merge),
        (Flag::Scheme, !has_model && !is_any_quantized && writing.is_some()),
        (Flag::ActivationRanges, !has_model && writing.is_some_and(|writing| writing.activation_ranges.is_some())),
        (Flag::Imatrix, !has_model && writing.is_some_and(|writing| writing.imatrix.is_some())),
        (Flag::FromScheme, !has_model && options.source_scheme.from_scheme.is_some()),
        (Flag::Reference, !has_model && options.source_scheme.reference.is_some()),
    ];
    given.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option)
}

impl Report {
    /// Names in the report get the component's folder as a prefix.
    pub(crate) fn join(&mut self, component: &Path, other: Report) {
        let named = |name: String| format!("{}/{name}", component.display());
        for mut row in other.tensors {
            self.total.add(row.group(), row.elements, (row.bytes_in, row.bytes_out), &row.counts);
            row.name = named(row.name.to_string()).into();
            self.tensors.push(row);
        }
        self.warnings.extend(other.warnings);
        self.outputs.extend(other.outputs);
        self.dropped.extend(other.dropped.into_iter().map(|(name, why)| (named(name), why)));
        if let (Some(folder), Some(other)) = (&mut self.folder, other.folder) {
            let shards = other.shards.into_iter().map(|shard| ShardReport { name: named(shard.name.clone()), ..shard });
            folder.shards.extend(shards);
            folder.changes.extend(other.changes.into_iter().map(named));
            folder.sidecars.extend(other.sidecars.into_iter().map(named));
        }
    }
}
