//! Folders with several checkpoints. Each component becomes a folder of the same name in the result; the enclosing
//! model is converted last (`docs/spec/checkpoints.md §2.7`).

use crate::files::convert::options::{Options, RunScope};
use crate::files::convert::plan::Plan;
use crate::files::error::Error;
use crate::files::report::{Report, ShardReport};
use crate::flag::Flag;
use std::path::Path;
use truecast_io::folder::Folder;

impl Plan {
    pub(crate) fn of_folder(src: &Path, dst: &Path, options: &Options) -> Result<Plan, Error> {
        let folder = Folder::open(src, options.onnx.follow_links)?;
        if folder.components().is_empty() {
            return Plan::of_checkpoint(folder, dst, options);
        }
        let option = for_one(options, !folder.shards().is_empty());
        if let Some(error) = option.and_then(|option| folder.several_folders(&option.keyword())) {
            return Err(error.into());
        }
        let (mut plan, mut unused) = of_names(src, dst, options.clone())?;
        // A scheme applies only to the enclosing model.
        let plain = Options { writing: None, reading: Default::default(), ..options.clone() };
        for path in folder.components() {
            let (component, unused_too) = of_names(&src.join(path), &dst.join(path), plain.clone())?;
            unused.extend(unused_too);
            plan.components.push((path.clone(), component));
        }
        let plans = || plan.components.iter().map(|(_, plan)| plan).chain([&plan]);
        let selections = || plans().map(|plan| &plan.options.selection);
        let is_unused = |error: &Error| selections().all(|of| of.clone().without(error).is_none_or(|rest| rest == *of));
        if let Some(error) = unused.into_iter().find(is_unused) {
            return Err(error);
        }
        // The record has the selection as requested: rules without a match in the enclosing model apply to components.
        plan.provenance.selection = options.selection.clone();
        if options.writing.as_ref().is_some_and(|writing| !writing.scheme.is_plain()) {
            plan.warnings.push(format!("{}: models in its folders are not quantized", src.display()));
        }
        Ok(plan)
    }
}

/// Plans one checkpoint. Rules that match no tensor are left out, and an error for each such rule is returned.
fn of_names(src: &Path, dst: &Path, mut options: Options) -> Result<(Plan, Vec<Error>), Error> {
    let mut unused = Vec::new();
    loop {
        let error = match Plan::of_checkpoint(Folder::open(src, options.onnx.follow_links)?, dst, &options) {
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
fn for_one(options: &Options, has_model: bool) -> Option<Flag> {
    let given = [
        (Flag::Part, matches!(options.share, RunScope::Part(_))),
        (Flag::Merge, options.share == RunScope::Merge),
        (Flag::Scheme, !has_model && options.writing.as_ref().is_some_and(|writing| !writing.scheme.is_plain())),
        (Flag::FromScheme, !has_model && options.reading.from_scheme.is_some()),
        (Flag::Reference, !has_model && options.reading.reference.is_some()),
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
