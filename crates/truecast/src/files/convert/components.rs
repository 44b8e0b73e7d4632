//! Folders that hold several checkpoints: each component is converted as if it were given by itself, into the folder of its
//! name in the result, and the model around them last (`docs/spec/checkpoints.md §2.7`).

use crate::files::convert::error::CheckpointError;
use crate::files::convert::options::{Options, RunScope};
use crate::files::convert::place::resume;
use crate::files::convert::plan::{Component, Plan};
use crate::files::error::Error;
use crate::files::report::{Report, ShardReport};
use std::path::Path;
use truecast_io::folder::Folder;
use truecast_schemes::Scheme;

impl Plan {
    /// The plan of a folder, with those of the folders in it that are checkpoints.
    pub(crate) fn of_folder(src: &Path, dst: &Path, options: &Options) -> Result<Plan, Error> {
        let folder = resume::open(src, dst, options)?;
        if folder.components().is_empty() {
            return Plan::of_checkpoint(folder, dst, options);
        }
        check_options(&folder, options)?;
        let follow_links = options.onnx.follow_links;
        // Schemes are of the model around them.
        let plain = Options { writing: None, reading: Default::default(), ..options.clone() };
        let paths = folder.components().to_vec();
        let (mut plan, mut unused) = of_names(|| Ok(Folder::open(src, follow_links)?), dst, options.clone())?;
        let mut components = Vec::with_capacity(paths.len());
        for path in paths {
            let open = || Ok(Folder::open(&src.join(&path), follow_links)?);
            let (component, unused_too) = of_names(open, &dst.join(&path), plain.clone())?;
            unused.retain(|(what, _)| unused_too.iter().any(|(other, _)| other == what));
            components.push(Component { path, plan: component });
        }
        if let Some((_, error)) = unused.into_iter().next() {
            return Err(error);
        }
        // What names nothing in the model around them counts for the folder.
        plan.provenance.selection = options.selection.clone();
        if options.writing.as_ref().is_some_and(|writing| !writing.scheme.is_plain()) {
            let listed = listed(&plan.folder, "and");
            plan.warnings.push(format!("{}: {listed} not quantized: a scheme is for one model", src.display()));
        }
        Ok(Plan { components, ..plan })
    }

    /// Whether every component could be converted.
    pub(crate) fn check_components(&self) -> Result<(), Error> {
        self.components.iter().try_for_each(|component| component.plan.check())
    }
}

/// A plan in which nothing has to be named by every rule; with those that name nothing, and what is wrong with them.
fn of_names(
    open: impl Fn() -> Result<Folder, Error>,
    dst: &Path,
    mut options: Options,
) -> Result<(Plan, Vec<(String, Error)>), Error> {
    let mut unused = Vec::new();
    loop {
        match Plan::of_checkpoint(open()?, dst, &options) {
            Ok(plan) => return Ok((plan, unused)),
            Err(error) => match options.selection.without(&error) {
                Some((selection, what)) => {
                    options.selection = selection;
                    unused.push((what, error));
                }
                None => return Err(error),
            },
        }
    }
}

/// Some options are about one model.
fn check_options(folder: &Folder, options: &Options) -> Result<(), Error> {
    let is_named = |scheme: Option<Scheme>| scheme.is_some_and(|scheme| !scheme.is_plain());
    let has_model = !folder.shards().is_empty();
    let quantizes = is_named(options.writing.as_ref().map(|writing| writing.scheme));
    let given = [
        ("--part", matches!(options.share, RunScope::Part(_))),
        ("--merge", options.share == RunScope::Merge),
        ("--delete-source", options.delete_source),
        ("--scheme", quantizes && !has_model),
        ("--from-scheme", is_named(options.reading.from_scheme) && !has_model),
        ("--reference", options.reading.reference.is_some() && !has_model),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(several(folder, option)),
        None => Ok(()),
    }
}

/// What is for one model was asked of a folder of several.
pub(crate) fn several(folder: &Folder, what: &'static str) -> Error {
    let components = listed(folder, "or");
    Error::checkpoint(folder.path(), CheckpointError::Several { what, components })
}

fn listed(folder: &Folder, word: &str) -> String {
    let names: Vec<String> = folder.components().iter().map(|path| path.display().to_string()).collect();
    truecast_io::folder::listed(&names, word)
}

/// A name within a component, as it is said of the folder around it.
pub(crate) fn within(component: &Path, name: &str) -> String {
    format!("{}/{name}", component.display())
}

impl Report {
    /// What was done to a component, too: its names begin with that of its folder.
    pub(crate) fn join(&mut self, component: &Path, other: Report) {
        let named = |name: String| within(component, &name);
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
            folder.complete &= other.complete;
        }
    }
}
