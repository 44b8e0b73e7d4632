//! Short list of globs that match some names but no others, chosen greedily.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

/// Largest number of globs that a person would type.
const MOST_GLOBS: usize = 5;

/// Fixed part of a glob; the rest is `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pattern<'a> {
    Suffix(&'a str),
    Prefix(&'a str),
    Whole(&'a str),
}

impl<'a> Pattern<'a> {
    /// Patterns that cut the name at a dot or slash, and the whole name.
    fn all(name: &'a str) -> impl Iterator<Item = Pattern<'a>> {
        let ends = name.bytes().enumerate().filter(|(i, b)| *i > 0 && matches!(b, b'.' | b'/')).map(|(i, _)| i);
        let parts = ends.flat_map(|i| [Pattern::Suffix(&name[i..]), Pattern::Prefix(&name[..=i])]);
        parts.chain([Pattern::Whole(name)])
    }

    fn glob(self) -> String {
        match self {
            Pattern::Suffix(text) => format!("*{}", escaped(text)),
            Pattern::Prefix(text) => format!("{}*", escaped(text)),
            Pattern::Whole(text) => escaped(text),
        }
    }
}

fn escaped(text: &str) -> String {
    let is_special = |c: char| "*?[]{}\\".contains(c);
    text.chars().flat_map(|c| is_special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Globs that match many of `names` and none of `others`. Also returns the number of matched names.
pub(super) fn spare<'a>(names: &[&'a str], others: impl Iterator<Item = &'a str>) -> (Vec<String>, u64) {
    let mut patterns: HashMap<Pattern<'a>, Vec<usize>> = HashMap::new();
    for (i, name) in names.iter().enumerate() {
        Pattern::all(name).for_each(|pattern| patterns.entry(pattern).or_default().push(i));
    }
    for name in others {
        if patterns.is_empty() {
            break;
        }
        Pattern::all(name).for_each(|pattern| drop(patterns.remove(&pattern)));
    }
    let (mut globs, mut matched) = (Vec::new(), HashSet::new());
    while globs.len() < MOST_GLOBS && matched.len() < names.len() {
        let gain = |of: &Vec<usize>| of.iter().filter(|i| !matched.contains(*i)).count();
        let best = patterns.iter().map(|(pattern, of)| (gain(of), pattern.glob(), of));
        // Most names first, then the shortest glob, then alphabetical order.
        let Some((gain, glob, of)) =
            best.max_by(|a, b| a.0.cmp(&b.0).then(b.1.len().cmp(&a.1.len())).then(b.1.cmp(&a.1)))
        else {
            break;
        };
        if gain == 0 {
            break;
        }
        matched.extend(of.iter().copied());
        globs.push(glob);
    }
    (globs, matched.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::select::{Eligibility, Rule, Selection};
    use truecast_core::{DType, Layout};
    use truecast_io::{FileFormat, Tensor};

    /// Names that `--keep` with the globs still converts.
    fn converted(globs: &[String], names: &[&str]) -> Vec<String> {
        let rules = globs.iter().map(|glob| Rule::new(glob, None).unwrap()).collect();
        let selection = Selection { to: Some(DType::Bf16), rules, ..Selection::default() };
        let tensor =
            |name: &&str| Tensor { name: (*name).into(), dtype: DType::F32, layout: Layout::Packed, shape: [1].into() };
        let tensors: Vec<Tensor> = names.iter().map(tensor).collect();
        let eligibilities = vec![Eligibility::Converted; tensors.len()];
        let choices =
            selection.choose(FileFormat::Safetensors, &tensors, &eligibilities, std::path::Path::new("x")).unwrap();
        tensors
            .into_iter()
            .zip(choices)
            .filter(|(_, choice)| choice.to.is_some())
            .map(|(t, _)| t.name.to_string())
            .collect()
    }

    #[track_caller]
    fn check(names: &[&str], others: &[&str], expected: &[&str]) {
        let (globs, matched) = spare(names, others.iter().copied());
        assert_eq!(globs, expected);
        let all: Vec<&str> = names.iter().chain(others).copied().collect();
        let left = converted(&globs, &all);
        assert!(
            others.iter().all(|other| left.iter().any(|name| name == other)),
            "{globs:?} also matches of {others:?}"
        );
        assert_eq!(left.len(), all.len() - matched as usize);
    }

    #[test]
    fn a_common_end_or_beginning_is_found() {
        let names = ["enc.0.attn.key.bias", "enc.1.attn.key.bias", "enc.7.attn.key.bias"];
        check(&names, &["enc.0.attn.query.bias", "enc.0.attn.key.weight"], &["*.key.bias"]);
        check(&["head.w", "head.b"], &["body.w", "body.b"], &["head.*"]);
        check(&["a.norm.w", "b.norm.w", "head.x"], &["a.w", "b.w"], &["*.norm.w", "*.x"]);
    }

    #[test]
    fn a_name_alone_stands_for_itself() {
        check(&["w"], &["v"], &["w"]);
        check(&["a.w"], &["b.w", "a.v"], &["a.w"]);
        // A pattern does not cut a word.
        check(&["x.key"], &["x.monkey"], &["*.key"]);
    }

    #[test]
    fn characters_of_globs_mean_themselves() {
        check(&["a*[0]{x}?\\"], &["ab[0]{x}?\\", "b"], &["a\\*\\[0\\]\\{x\\}\\?\\\\"]);
    }

    #[test]
    fn no_more_globs_than_a_person_types() {
        let names: Vec<String> = (0..20).map(|i| format!("t{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (globs, matched) = spare(&names, ["other"].into_iter());
        assert_eq!((globs.len(), matched), (MOST_GLOBS, 5));
    }
}
