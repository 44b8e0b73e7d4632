//! Rules and presets that decide nothing because others come before them: no error, for each names tensors that exist, but
//! hardly what was meant.

use super::{Choice, Eligibility, Rule, Selection};
use std::path::Path;
use truecast_io::{Shown, Tensor};

/// A sentence for each rule that never applies, and for presets without effect.
pub(crate) fn idle(
    selection: &Selection,
    tensors: &[Tensor],
    eligibilities: &[Eligibility],
    choices: &[Choice],
    path: &Path,
) -> Vec<String> {
    let path = path.display();
    let rules = &selection.rules;
    let visible = || tensors.iter().zip(eligibilities).filter(|(_, eligibility)| **eligibility != Eligibility::Kept);
    // For each rule the rules that decide about what it matches.
    let mut deciding: Vec<Vec<usize>> = vec![Vec::new(); rules.len()];
    for (tensor, _) in visible() {
        let mut matching = (0..rules.len()).filter(|i| rules[*i].matches(&tensor.name));
        let Some(first) = matching.next() else { continue };
        for i in std::iter::once(first).chain(matching) {
            if !deciding[i].contains(&first) {
                deciding[i].push(first);
            }
        }
    }
    let shadowed = deciding.iter().enumerate().filter(|(i, first)| !first.is_empty() && !first.contains(i));
    let sentence = |(i, first): (usize, &Vec<usize>)| {
        let before: Vec<String> = first.iter().map(|i| shown(&rules[*i])).collect();
        let verb = if before.len() == 1 { "decides" } else { "decide" };
        format!(
            "{path}: {} never applies: before it {} {verb} about every tensor that it matches; the first match wins",
            shown(&rules[i]),
            before.join(" and ")
        )
    };
    let mut all: Vec<String> = shadowed.map(sentence).collect();
    if !selection.keep.is_empty() && choices.iter().all(|choice| choice.kept_by.is_none()) {
        let names: Vec<&str> = selection.keep.iter().map(|preset| preset.name()).collect();
        all.push(format!(
            "{path}: --keep-preset {} has no effect: rules name the tensors that it is about, or they stay as they are anyway",
            names.join(",")
        ));
    }
    all
}

fn shown(rule: &Rule) -> String {
    format!("{} {}", rule.option(), Shown(&rule.to_string()))
}
