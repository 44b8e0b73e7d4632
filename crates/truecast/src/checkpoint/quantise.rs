//! Which dense tensors are quantised, and what they become together (`docs/spec/checkpoints.md §7.1`, §7.4, §11.3).

use super::dense::Quantised;
use super::error::CheckpointError;
use super::scaled::{Cut, Scaled};
use super::shard::{Origin, Work};
use super::stored::Stored;
use crate::convert::planned::Planned;
use crate::error::{Cause, Error};
use crate::select::{KeptBy, Selection, UNUSED_PRESET, Writing};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use truecast_core::scaled::{self, Code, MxScale, Search};
use truecast_core::{DType, Layout};
use truecast_io::{Shown, Tensor, counted};
use truecast_schemes::{Family, Preset, target};

/// The dense tensors of a checkpoint, one after the other.
pub(super) struct Quantising<'a> {
    writing: &'a Writing,
    selection: &'a Selection,
    /// Tensors that the scheme cannot hold, with the reason of the first.
    refused: Option<(truecast_schemes::Error, Vec<String>)>,
    /// Modules with a matrix that is not quantised.
    kept: Vec<String>,
    /// Of each set of tensors with a common second scale its place in `shares`.
    groups: HashMap<(usize, String), usize>,
    shares: Vec<Vec<Stored>>,
    /// Patterns of shares that matched.
    used: Vec<Vec<bool>>,
    /// Tensors that were quantised, and those of them that a preset would keep.
    quantised: usize,
    named: Vec<(Preset, String, usize)>,
    has_powers_of_two: bool,
    /// How tensors are cut, by their layouts and types.
    cuts: HashMap<(scaled::Layout, DType), Cut>,
    /// A preset matched.
    is_kept: bool,
}

/// What is known once all tensors were seen.
#[derive(Default)]
pub(super) struct Settled {
    /// Modules with a matrix that is not quantised.
    pub kept: Vec<String>,
    /// Tensors with a common second scale.
    pub shares: Vec<Vec<Stored>>,
    pub warnings: Vec<String>,
}

impl<'a> Quantising<'a> {
    pub fn new(writing: &'a Writing, selection: &'a Selection) -> Quantising<'a> {
        Quantising {
            writing,
            selection,
            refused: None,
            kept: Vec::new(),
            groups: HashMap::new(),
            shares: Vec::new(),
            used: writing.share.iter().map(|share| vec![false; share.globs().len()]).collect(),
            quantised: 0,
            named: Vec::new(),
            has_powers_of_two: false,
            cuts: HashMap::new(),
            is_kept: false,
        }
    }

    /// What the tensor becomes if it is quantised; `None` of one that is not. Of one that was quantised `tensor` has the type
    /// of its values, f32.
    ///
    /// # Errors
    /// A scheme that is not written. What the scheme cannot hold is told by [`finish`](Quantising::finish), all together.
    pub fn work(
        &mut self,
        at: Stored,
        tensor: &Tensor,
        source: impl FnOnce() -> Option<Box<Quantised>>,
        path: &Path,
    ) -> Result<Option<Work>, Error> {
        let name = &tensor.name;
        let preset = self.selection.preset(name);
        self.is_kept |= preset.is_some();
        if !Writing::is_about(tensor) || self.selection.names(name) || preset.is_some() {
            if let (Some(module), true) = (name.strip_suffix(".weight"), tensor.shape.len() >= 2) {
                self.kept.push(module.to_string());
            }
            return Ok(None);
        }
        let scheme = self.writing.scheme;
        let target = match target(tensor, scheme) {
            Ok(target) => target,
            Err(cause @ truecast_schemes::Error::NoForm { .. }) => {
                self.refused.get_or_insert((cause, Vec::new())).1.push(name.clone());
                return Ok(None);
            }
            Err(cause) => return Err(Error::scheme(path, cause)),
        };
        let layout = target.layout;
        let (how, dtype, cuts) = (self.writing.how, tensor.dtype, &mut self.cuts);
        let cut = |layout: &scaled::Layout| match cuts.entry((*layout, dtype)) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(place) => Ok(*place.insert(Cut::of(layout, dtype, &how)?)),
        };
        let scaled = Scaled::new((at, dtype, source()), (layout, target.tensors), scheme, how, cut);
        let mut scaled = scaled.map_err(|cause| Error::tensor(path, name, Cause::Scaled(cause)))?;
        let planes = layout.planes();
        if planes.is_some_and(|planes| planes.global.is_some()) {
            scaled.share = self.share(at, name);
        }
        self.has_powers_of_two |= planes.is_some_and(|p| p.scales.plane.code == Code::Float(DType::F8E8M0));
        self.quantised += 1;
        for (_, preset) in Preset::NAMES.into_iter().filter(|(_, preset)| preset.keeps(name)) {
            match self.named.iter_mut().find(|(known, ..)| *known == preset) {
                Some((.., count)) => *count += 1,
                None => self.named.push((preset, name.clone(), 1)),
            }
        }
        let shape = tensor.shape.clone();
        let target = Tensor { name: name.clone(), dtype: layout.code_type(), layout: Layout::Packed, shape };
        let (name, from, src_layout) = (name.clone(), tensor.dtype, tensor.layout);
        let planned = Planned { name, target, from, src_layout, cast: None, kept_by: None };
        Ok(Some(Work { planned, origin: Origin::Dense(Box::new(scaled)) }))
    }

    /// Why a tensor that could be quantised is not, if a preset is the reason.
    pub fn kept_by(&self, tensor: &Tensor) -> Option<KeptBy> {
        let could_be = Writing::is_about(tensor) && !self.selection.names(&tensor.name);
        self.selection.preset(&tensor.name).filter(|_| could_be).map(KeptBy::Preset)
    }

    /// The place of the set that the tensor belongs to.
    fn share(&mut self, at: Stored, name: &str) -> Option<usize> {
        let mut found = None;
        for (i, share) in self.writing.share.iter().enumerate() {
            for (used, glob) in self.used[i].iter_mut().zip(share.globs()) {
                *used |= glob.matches(name);
            }
            found = found.or_else(|| share.group(name).map(|group| (i, group.to_string())));
        }
        let (groups, shares) = (&mut self.groups, &mut self.shares);
        let place = *groups.entry(found?).or_insert_with(|| {
            shares.push(Vec::new());
            shares.len() - 1
        });
        shares[place].push(at);
        Some(place)
    }

    /// Ends it.
    ///
    /// # Errors
    /// Tensors that the scheme cannot hold; options that change nothing.
    pub fn finish(self, path: &Path) -> Result<Settled, Error> {
        let failed = |cause| Err(Error::checkpoint(path, cause));
        let (Writing { scheme, how, share, relayout: _ }, keep) = (self.writing, &self.selection.keep);
        if let Some((first, names)) = self.refused {
            let others = names.into_iter().skip(1).collect();
            return failed(CheckpointError::NoForm { first: first.to_string(), others });
        }
        let no_effect = |option, why| failed(CheckpointError::NoEffect { option, why });
        if self.quantised == 0 {
            return no_effect("--scheme", "no tensor of two dimensions or more is left to be quantised".to_string());
        }
        if !keep.is_empty() && !self.is_kept {
            return Err(Error::UnusedPreset { path: path.display().to_string(), why: UNUSED_PRESET });
        }
        let of_scales =
            [(how.search != Search::Formula, "--scale-search"), (how.mx != MxScale::default(), "--mx-scale")];
        if let (Family::Gguf(_), Some((_, option))) = (scheme.family, of_scales.into_iter().find(|(given, _)| *given)) {
            return no_effect(option, format!("scales of {scheme} have one formula"));
        }
        if how.mx != MxScale::default() && !self.has_powers_of_two {
            return no_effect("--mx-scale", format!("{scheme} has no scales that are powers of two"));
        }
        if !share.is_empty() && self.shares.is_empty() && self.used.iter().flatten().all(|used| !used) {
            return no_effect("--share-global", format!("{scheme} has no second scale, or no pattern matches"));
        }
        for (share, used) in share.iter().zip(&self.used) {
            if let Some((glob, _)) = share.globs().iter().zip(used).find(|(_, used)| !**used) {
                let why = format!("{} matches no tensor that is quantised", Shown(glob.as_str()));
                return no_effect("--share-global", why);
            }
        }
        if !share.is_empty() && self.shares.iter().all(|set| set.len() < 2) {
            return no_effect("--share-global", "no module has two tensors that match".to_string());
        }
        let sentence = |(preset, name, count): &(Preset, String, usize)| {
            let of = match count - 1 {
                0 => " is".to_string(),
                n => format!(" and {} are", counted(n as u64, "other")),
            };
            let preset = preset.name();
            format!(
                "{}: tensor {}{of} quantised, which many programs expect in high precision; --keep-preset {preset} keeps it",
                path.display(),
                Shown(name)
            )
        };
        let unkept = self.named.iter().filter(|(preset, ..)| !keep.contains(preset));
        Ok(Settled { kept: self.kept, shares: self.shares, warnings: unkept.map(sentence).collect() })
    }
}
