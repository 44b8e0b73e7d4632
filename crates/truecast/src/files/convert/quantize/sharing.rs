//! Sets of tensors that share a global scale (`docs/spec/checkpoints.md §7.4`).

use crate::files::convert::stored::Stored;
use crate::files::select::{QuantizeOptions, SharedGlobalScale};
use std::collections::HashMap;
use truecast_io::Escaped;

pub(super) struct Sharing {
    /// The requested patterns, or those that loaders expect.
    patterns: Vec<SharedGlobalScale>,
    /// True for each glob of the requested patterns that matched a tensor.
    matched: Vec<Vec<bool>>,
    pub sets: Vec<Vec<Stored>>,
    /// Index in `sets` for each (index of the pattern, name of the group).
    set_of_group: HashMap<(usize, String), usize>,
}

impl Sharing {
    pub fn new(options: &QuantizeOptions) -> Sharing {
        let requested = &options.share;
        Sharing {
            patterns: if requested.is_empty() {
                SharedGlobalScale::usual(options.scheme.family)
            } else {
                requested.clone()
            },
            matched: requested.iter().map(|pattern| vec![false; pattern.globs().len()]).collect(),
            sets: Vec::new(),
            set_of_group: HashMap::new(),
        }
    }

    /// Adds a tensor with a global scale to the set of its group. Returns the index of the set; `None` for a tensor of
    /// no group.
    pub fn add(&mut self, at: Stored, name: &str) -> Option<usize> {
        for (matched, pattern) in self.matched.iter_mut().zip(&self.patterns) {
            matched.iter_mut().zip(pattern.globs()).for_each(|(matched, glob)| *matched |= glob.matches(name));
        }
        let mut groups = self.patterns.iter().enumerate();
        let group = groups.find_map(|(i, pattern)| Some((i, pattern.group(name)?.to_string())))?;
        let set = *self.set_of_group.entry(group).or_insert(self.sets.len());
        if set == self.sets.len() {
            self.sets.push(Vec::new());
        }
        self.sets[set].push(at);
        Some(set)
    }

    /// Reason if a requested pattern has no effect.
    pub fn without_effect(&self, options: &QuantizeOptions) -> Option<String> {
        let globs =
            self.patterns.iter().zip(&self.matched).flat_map(|(pattern, matched)| pattern.globs().iter().zip(matched));
        let (unmatched, _) = globs.clone().find(|(_, matched)| !**matched)?;
        Some(if globs.into_iter().all(|(_, matched)| !matched) {
            format!("{} has no global scale, or no pattern matches", options.scheme)
        } else {
            format!("{} matches no tensor that is quantized", Escaped(unmatched.as_str()))
        })
    }
}
