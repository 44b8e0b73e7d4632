//! Matches tensors by layer, shape and values, where no table has their names.

use super::arrangement::{Arrangement, How};
use super::by_name::said_of_left_out;
use super::hyperparameters::Dimensions;
use super::names::{is_always_f32, left_out};
use super::view::{Part, Piece, Renamed, Target};
use super::{Item, Match, Refused};
use crate::files::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use truecast_io::Escaped;
use truecast_io::folder::Folder;

/// Elements of a tensor that are compared.
pub(super) const SAMPLE: usize = 1 << 16;
/// Least part of the variance that equal tensors explain. Blocks of 2 bits explain about 0.9.
pub(super) const LEAST: f64 = 0.5;
/// Largest part that another candidate may explain.
const OTHER: f64 = 0.25;
/// Largest residual of the best candidate, as a part of the other's residual, if the other explains more.
const CLEARLY: f64 = 0.1;

/// A name with `#` in place of each number, and the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub text: String,
    pub numbers: Vec<u64>,
}

impl Pattern {
    pub fn of(name: &str) -> Pattern {
        let mut numbers = Vec::new();
        let part = |part: &str| match part.parse::<u32>() {
            Ok(number) => {
                numbers.push(number.into());
                "#".to_owned()
            }
            Err(_) => part.to_owned(),
        };
        let text = name.split('.').map(part).collect::<Vec<_>>().join(".");
        Pattern { text, numbers }
    }
}

/// Tensors of one pattern: by layer, then by expert.
type Layers<'a> = BTreeMap<Option<u64>, BTreeMap<Option<u64>, &'a Item>>;

fn layers(all: &[Item]) -> BTreeMap<String, Layers<'_>> {
    let mut patterns = BTreeMap::<String, Layers<'_>>::new();
    for item in all {
        let Pattern { text, numbers } = Pattern::of(&item.name);
        if numbers.len() <= 2 {
            let of_layer = patterns.entry(text).or_default().entry(numbers.first().copied()).or_default();
            of_layer.insert(numbers.get(1).copied(), item);
        }
    }
    patterns
}

/// Way in which a tensor of the reference is made of tensors of the source.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    how: How,
    add: Option<f32>,
}

impl Way {
    fn said(self) -> String {
        let how = match self.how {
            How::Rotary => ", rows of each head permuted",
            How::Transposed => ", transposed",
            _ => "",
        };
        format!("{how}{}", if self.add.is_some() { ", plus 1" } else { "" })
    }
}

const AS_IS: Way = Way { how: How::AsIs, add: None };

/// Finds the source of each pattern of the reference.
///
/// # Errors
/// An ambiguous or missing tensor; an unreadable file.
pub(super) fn matched(
    source: &Arc<Folder>,
    all: Vec<Item>,
    reference: &[Item],
    view: &Renamed,
    dimensions: Dimensions<'_>,
    refused: Refused<'_>,
) -> Result<Match, Error> {
    let ours = layers(&all);
    let place: BTreeMap<&str, usize> = reference.iter().enumerate().map(|(at, item)| (&*item.name, at)).collect();
    let mut used = BTreeSet::new();
    let mut found = Match { targets: Vec::new(), notes: Vec::new() };
    for (pattern, theirs) in layers(reference) {
        let Some((&layer, first)) = theirs.iter().next() else { continue };
        let Some(item) = first.get(&None) else { continue };
        let name = Escaped(&pattern).to_string();
        let values = view.first_values(place[&*item.name], SAMPLE)?;
        let mut candidates = Vec::new();
        for (text, ours) in ours.iter().filter(|(text, ours)| ours.keys().eq(theirs.keys()) && !used.contains(*text)) {
            for way in ways(item) {
                // A permutation that changes nothing does not count as a second way.
                let is_new = |target: &Target| {
                    way == AS_IS || way.add.is_some() || !target.pieces.iter().all(|piece| piece.order.is_whole())
                };
                if let Some(target) = made(item, &ours[&layer], way, dimensions).filter(is_new) {
                    let trial = Renamed::new(source.clone(), vec![target.widened()])?;
                    candidates.push((explained(&trial.first_values(0, SAMPLE)?, &values), text, way));
                }
            }
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
        let [best, others @ ..] = &candidates[..] else { continue };
        if best.0 < LEAST {
            continue;
        }
        // A better candidate has a residual that is much smaller.
        let is_near = |other: f64| other > OTHER && (1.0 - best.0) >= CLEARLY * (1.0 - other);
        if let Some(other) = others.first().filter(|other| is_near(other.0)) {
            let (a, b) = (Escaped(best.1), Escaped(other.1));
            let ways = [best.2.said(), other.2.said()];
            return Err(refused(format!("{name} may be {a}{} or {b}{}", ways[0], ways[1])));
        }
        let (alike, text, way) = *best;
        for (layer, theirs) in &theirs {
            let Some(item) = theirs.get(&None) else { continue };
            let Some(target) = made(item, &ours[text][layer], way, dimensions) else {
                return Err(refused(format!("{} is not of the shape of its source", Escaped(&item.name))));
            };
            let is_f32 = is_always_f32(&item.name, &item.shape) || way.add.is_some();
            found.targets.push(if is_f32 { target.widened() } else { target });
        }
        found.notes.push(format!("{name} is {}{} ({alike:.3})", Escaped(text), way.said()));
        used.insert(text.clone());
    }
    let is_left = |item: &&Item| !used.contains(&Pattern::of(&item.name).text) && left_out("", &item.name).is_none();
    found.notes.extend(said_of_left_out("", &all));
    match all.iter().find(is_left) {
        Some(item) => Err(refused(format!("none of its tensors has the values of {}", Escaped(&item.name)))),
        None => Ok(found),
    }
}

/// Ways in which a tensor may be stored.
fn ways(item: &Item) -> Vec<Way> {
    match item.shape.len() {
        0 | 1 => vec![AS_IS, Way { add: Some(1.0), ..AS_IS }],
        2 => vec![AS_IS, Way { how: How::Rotary, ..AS_IS }, Way { how: How::Transposed, ..AS_IS }],
        _ => vec![AS_IS, Way { how: How::Transposed, ..AS_IS }],
    }
}

/// Tensor of the reference's name and shape; `None` if the source has another shape.
fn made(item: &Item, ours: &BTreeMap<Option<u64>, &Item>, way: Way, dimensions: Dimensions<'_>) -> Option<Target> {
    let part = |(expert, source): (&Option<u64>, &&Item)| {
        let found = Arrangement::new(&item.name, way.how, &source.shape, dimensions, true)?;
        let piece = Piece { values: source.values.clone(), order: found.order() };
        Some(Part { expert: *expert, shape: found.shape, dtype: source.dtype, piece })
    };
    let target = Target::of_parts(&item.name, ours.iter().map(part).collect::<Option<_>>()?).ok()?;
    (*target.tensor.shape == *item.shape).then_some(Target { add: way.add, ..target })
}

/// Part of the variance of `theirs` that `ours` explains: 1 for equal values, about 0 or below for others.
pub(super) fn explained(ours: &[f32], theirs: &[f32]) -> f64 {
    let n = theirs.len() as f64;
    let mean = theirs.iter().map(|&value| f64::from(value)).sum::<f64>() / n;
    let variance: f64 = theirs.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum();
    let error: f64 = ours.iter().zip(theirs).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
    match error {
        0.0 => 1.0,
        error if ours.len() == theirs.len() && variance > 0.0 && error.is_finite() => 1.0 - error / variance,
        _ => f64::NEG_INFINITY,
    }
}
