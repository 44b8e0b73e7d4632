//! A file of the same model that llama.cpp loads: names, keys, vocabulary, and values to compare with.

use super::by_value;
use super::hyperparameters::Dimensions;
use super::models::KINDS;
use super::names::is_always_f32;
use super::strided::Strided;
use super::view::{Piece, Renamed, Target, Values};
use super::{Item, Match, Refused, by_name, items};
use crate::files::convert::container::gguf::stored_keys;
use crate::files::convert::error::CheckpointError;
use crate::files::convert::found::Contents;
use crate::files::error::Error;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_io::folder::{self, Folder};
use truecast_io::gguf::Keys;
use truecast_io::{Escaped, counted};

/// Largest tensor that the result may take from the reference, in elements.
const MOST_COPIED: u64 = 1 << 16;

pub(super) struct Reference {
    pub folder: Arc<Folder>,
    pub items: Vec<Item>,
    pub keys: Keys,
}

impl Reference {
    pub fn open(path: &Path) -> Result<Reference, Error> {
        let refused = |what: String| Error::checkpoint(path, CheckpointError::Reference { what });
        let path = &folder::single(path)?;
        if !truecast_io::gguf::is_named(path) {
            return Err(refused("it is not a .gguf file".into()));
        }
        let folder = Folder::of_file(path)?;
        let keys = stored_keys(&folder)?.ok_or_else(|| refused("it has no keys".into()))?;
        if keys.text("general.architecture").is_none() {
            return Err(refused("its keys do not name an architecture".into()));
        }
        let contents = Contents::detect(&folder, &truecast_schemes::Options::default())?;
        let (items, _) = items(&folder, &contents);
        Ok(Reference { folder: Arc::new(folder), items, keys })
    }

    pub fn architecture(&self) -> &str {
        self.keys.text("general.architecture").unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.keys.number(&format!("{}.{key}", self.architecture()))
    }

    pub fn dimensions(&self) -> Dimensions<'_> {
        let heads = self.number("attention.head_count").unwrap_or(0);
        let rotated = self.number("rope.dimension_count").unwrap_or(0);
        let key = self.number("attention.key_length_mla").unwrap_or(0);
        Dimensions {
            architecture: self.architecture(),
            heads,
            kv_heads: self.number("attention.head_count_kv").unwrap_or(heads),
            key_rows: key.saturating_sub(rotated),
            value_rows: self.number("attention.value_length_mla").unwrap_or(0),
            layers: self.number("block_count"),
            ..Dimensions::default()
        }
    }

    /// Finds the source of each tensor of the reference.
    pub fn matched(&self, source: &Arc<Folder>, all: Vec<Item>) -> Result<Match, Error> {
        let path = self.folder.path().display();
        let refused = |what: String| {
            Error::checkpoint(source.path(), CheckpointError::Unlike { reference: path.to_string(), what })
        };
        // All tensors as f32.
        let whole = |item: &Item| {
            let order = Strided::whole(item.shape.iter().product());
            let pieces = vec![Piece { values: item.values.clone(), order }];
            Target::new(&item.name, &item.shape, item.dtype, pieces).widened()
        };
        let view = Renamed::new(self.folder.clone(), self.items.iter().map(whole).collect())?;
        if !KINDS.iter().any(|kind| kind.architecture == self.architecture()) {
            let found = by_value::matched(source, all, &self.items, &view, self.dimensions(), &refused)?;
            let Match { mut targets, mut notes } = found;
            self.add_missing(&view, &mut targets, &refused)?;
            notes.insert(0, format!("{path}: architecture {} is matched by values", Escaped(self.architecture())));
            return Ok(Match { targets, notes });
        }
        if self.dimensions().heads == 0 {
            let what = format!("its keys have no {}.attention.head_count", Escaped(self.architecture()));
            return Err(Error::checkpoint(self.folder.path(), CheckpointError::Reference { what }));
        }
        let Match { mut targets, notes: left_out } = by_name::targets(self.dimensions(), all).map_err(refused)?;
        let of_reference: HashMap<&str, &Item> = self.items.iter().map(|item| (&*item.name, item)).collect();
        for Target { tensor, .. } in &targets {
            let name = Escaped(&tensor.name);
            let Some(item) = of_reference.get(&*tensor.name) else {
                return Err(refused(format!("it has no tensor {name}")));
            };
            if *item.shape != *tensor.shape {
                let (shape, of_item) = (&tensor.shape, &item.shape);
                return Err(refused(format!("{name} has shape {of_item:?} in that file, and {shape:?} here")));
            }
        }
        self.add_missing(&view, &mut targets, &refused)?;
        let least = self.least_alike(&view, source, &targets)?;
        let mut notes = match least {
            Some((alike, name)) if alike < by_value::LEAST => {
                let (name, alike) = (Escaped(&name), alike.max(0.0));
                return Err(refused(format!("the values of {name} differ; they explain {alike:.2} of the variance")));
            }
            Some((alike, name)) => {
                let matched = counted(targets.len() as u64, "tensor");
                vec![format!("{path}: {matched} matched by name; least alike is {}: {alike:.3}", Escaped(&name))]
            }
            None => Vec::new(),
        };
        notes.extend(left_out);
        Ok(Match { targets, notes })
    }

    /// Copies small f32 tensors that no source has, such as divisors of the rotation's frequencies.
    fn add_missing(&self, view: &Renamed, targets: &mut Vec<Target>, refused: Refused<'_>) -> Result<(), Error> {
        let known: HashSet<_> = targets.iter().map(|target| target.tensor.name.clone()).collect();
        for (index, item) in self.items.iter().enumerate().filter(|(_, item)| !known.contains(&item.name)) {
            let len: u64 = item.shape.iter().product();
            if item.dtype != DType::F32 || len > MOST_COPIED || !matches!(item.values, Values::Plain(_)) {
                return Err(refused(format!("no tensor is the source of {}", Escaped(&item.name))));
            }
            let mut target = Target::known(&item.name, view.first_values(index, len as usize)?);
            target.tensor.shape = item.shape.clone().into();
            targets.push(target);
        }
        Ok(())
    }

    /// The matrix of a first layer whose values differ most from those of the reference.
    fn least_alike(
        &self,
        view: &Renamed,
        source: &Arc<Folder>,
        targets: &[Target],
    ) -> Result<Option<(f64, Arc<str>)>, Error> {
        let by_name: HashMap<&str, usize> = self.items.iter().enumerate().map(|(at, item)| (&*item.name, at)).collect();
        let mut least: Option<(f64, Arc<str>)> = None;
        let mut seen = HashSet::new();
        for target in targets.iter().filter(|target| !is_always_f32(&target.tensor.name, &target.tensor.shape)) {
            if !seen.insert(by_value::Pattern::of(&target.tensor.name).text) {
                continue;
            }
            let Some(at) = by_name.get(&*target.tensor.name) else { continue };
            let ours = Renamed::new(source.clone(), vec![target.clone().widened()])?;
            let [ours, theirs] = [ours.first_values(0, by_value::SAMPLE)?, view.first_values(*at, by_value::SAMPLE)?];
            let alike = by_value::explained(&ours, &theirs);
            if least.as_ref().is_none_or(|(least, _)| alike < *least) {
                least = Some((alike, target.tensor.name.clone()));
            }
        }
        Ok(least)
    }
}
