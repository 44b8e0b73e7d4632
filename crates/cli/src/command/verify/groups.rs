//! Groups of tensors with the same difference. Most often, the tensors of a group were kept in their old type.

use crate::message::quoted;
use std::fmt;
use truecast::DType;
use truecast::io::Escaped;
use truecast::verify::{FileDifference, VerifyReport};

/// Largest number of tensors with the same difference that have a line each. More tensors form a group.
const FEW: usize = 3;
/// Largest number of globs in a suggestion.
const PATTERNS: usize = 4;

#[derive(Debug)]
pub struct Group<'a> {
    expected: DType,
    actual: DType,
    tensors: Vec<&'a str>,
    /// Globs that match exactly the tensors of the group. A tensor can have been kept only if it has its source type.
    /// Empty unless all tensors have it.
    keep: Vec<String>,
}

impl<'a> Group<'a> {
    /// Groups of tensors with the same difference. `source_type` returns the type of a source tensor; `names` lists all
    /// source tensors.
    pub fn all<'n>(
        verdict: &'a VerifyReport,
        source_type: impl Fn(&str) -> Option<DType>,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Vec<Group<'a>> {
        let mut all: Vec<Group<'a>> = Vec::new();
        for difference in &verdict.differences {
            let Some((tensor, expected, actual)) = type_alone(difference) else { continue };
            match all.iter_mut().find(|group| (group.expected, group.actual) == (expected, actual)) {
                Some(group) => group.tensors.push(tensor),
                None => all.push(Group { expected, actual, tensors: vec![tensor], keep: Vec::new() }),
            }
        }
        all.retain(|group| group.tensors.len() > FEW);
        for group in &mut all {
            let kept = |tensor: &&str| source_type(tensor) == Some(group.actual);
            if group.tensors.iter().all(kept) {
                let is_other = |name: &&str| !group.tensors.contains(name);
                group.keep = patterns(&group.tensors, &names.clone().filter(is_other).collect::<Vec<_>>());
            }
        }
        all
    }

    pub fn holds(&self, difference: &FileDifference) -> bool {
        type_alone(difference).is_some_and(|(_, expected, actual)| (self.expected, self.actual) == (expected, actual))
    }
}

/// Tensor and both types of a difference; `None` if anything other than the type differs.
fn type_alone(difference: &FileDifference) -> Option<(&str, DType, DType)> {
    match difference {
        FileDifference::Header { tensor, expected, actual } if expected.1 == actual.1 => {
            Some((tensor, expected.0, actual.0))
        }
        _ => None,
    }
}

impl fmt::Display for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Group { expected, actual, tensors, keep } = self;
        write!(f, "{} tensors have type {actual}, expected {expected}: ", tensors.len())?;
        if !keep.is_empty() {
            let rules: Vec<_> = keep.iter().map(|glob| format!("--keep {}", quoted(glob))).collect();
            return write!(f, "{}; if they were kept: {}", keep.join(", "), rules.join(" "));
        }
        let shown: Vec<_> = tensors.iter().take(FEW).map(|tensor| Escaped(tensor).to_string()).collect();
        write!(f, "{}, and {} more", shown.join(", "), tensors.len() - shown.len())
    }
}

/// Globs `*PART*` that match all of `names` and none of `others`; PART is a word of a name, split at dots. Empty if there
/// are no such globs, or too many.
fn patterns(names: &[&str], others: &[&str]) -> Vec<String> {
    let is_word = |part: &&str| part.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let telling = |part: &&str| is_word(part) && part.chars().any(|c| c.is_ascii_alphabetic());
    let mut left = names.to_vec();
    let mut globs = Vec::new();
    while let Some(first) = left.first() {
        let parts = first.split('.').filter(telling).filter(|part| !others.iter().any(|other| other.contains(part)));
        // The best part occurs in most of the remaining names. Ties go to the longest part.
        let best = parts.max_by_key(|part| (left.iter().filter(|name| name.contains(part)).count(), part.len()));
        let Some(best) = best.filter(|_| globs.len() < PATTERNS) else { return Vec::new() };
        globs.push(format!("*{best}*"));
        left.retain(|name| !name.contains(best));
    }
    globs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_these_and_no_others() {
        let norms = ["enc.0.LayerNorm.weight", "enc.0.LayerNorm.bias", "enc.1.LayerNorm.weight", "emb.words.weight"];
        assert_eq!(patterns(&norms, &["enc.0.key.weight", "enc.1.key.bias"]), ["*LayerNorm*", "*words*"]);
        // All parts of the name `b.key.w` also occur in the other names.
        assert_eq!(patterns(&["a.norm.w", "b.key.w"], &["c.key.w", "b.w", "norm.a"]), Vec::<String>::new());
        assert_eq!(patterns(&["a", "b", "c", "d", "e"], &[]), Vec::<String>::new());
    }
}
