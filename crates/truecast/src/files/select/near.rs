//! Suggested names for a pattern without a match.

use std::ops::Range;
use truecast_core::spelling;

const MAX_SUGGESTIONS: usize = 3;
/// Largest number of compared pairs of letters. Names and patterns come from files.
const MAX_COMPARISONS: usize = 1 << 27;
const SEPARATORS: [char; 2] = ['.', '/'];

/// Names nearest to the longest literal part of a glob, in the order of the file; empty if no name is near. A glob
/// without wildcards may be near to a module. Ignores case.
pub fn nearest<'a>(glob: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let pieces: Vec<&str> = glob.split(['*', '?', '[', ']', '{', '}', ',', '!', '\\']).collect();
    let may_name_a_module = pieces.len() == 1;
    let longest =
        pieces.iter().map(|piece| piece.trim_matches(SEPARATORS)).max_by_key(|piece| piece.len()).unwrap_or_default();
    let wanted = longest.to_lowercase();
    if wanted.chars().count() < 2 {
        return Vec::new();
    }
    let parts = wanted.split(SEPARATORS).count();
    let mut distance = wanted.chars().count().div_ceil(3);
    let mut best = Vec::new();
    for (name, span) in compared(names, parts, wanted.len()) {
        let end = span.end;
        let Some(edits) = spelling::edits(&wanted, &name[span], distance) else { continue };
        let is_module = may_name_a_module && name[end..].starts_with('.');
        let found = if is_module { &name[..end] } else { name };
        if edits < distance {
            (distance, best) = (edits, vec![found]);
        } else if best.last() != Some(&found) && best.len() < MAX_SUGGESTIONS {
            best.push(found);
        }
    }
    best.into_iter().map(str::to_owned).collect()
}

/// The compared spans of names, each with its name. Ends when [`MAX_COMPARISONS`] would be exceeded.
fn compared<'a>(
    names: impl IntoIterator<Item = &'a str>,
    parts: usize,
    wanted: usize,
) -> impl Iterator<Item = (&'a str, Range<usize>)> {
    let mut budget = MAX_COMPARISONS;
    let spans = names.into_iter().flat_map(move |name| spans_of_parts(name, parts).map(move |span| (name, span)));
    spans.take_while(move |(_, span)| {
        let rest = budget.checked_sub(cost(span.len(), wanted));
        budget = rest.unwrap_or(0);
        rest.is_some()
    })
}

fn cost(span: usize, wanted: usize) -> usize {
    1 + span * wanted.min(span)
}

/// Every `parts` consecutive parts of a name, and the whole name.
fn spans_of_parts(name: &str, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let bounds: Vec<usize> = name.match_indices(SEPARATORS).map(|(at, _)| at).collect();
    let begins: Vec<usize> = std::iter::once(0).chain(bounds.iter().map(|at| at + 1)).collect();
    let ends: Vec<usize> = bounds.into_iter().chain([name.len()]).collect();
    let spans = begins.into_iter().enumerate().filter_map(move |(i, begin)| Some(begin..*ends.get(i + parts - 1)?));
    spans.chain(std::iter::once(0..name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_on_hostile_names_is_bounded() {
        let long = ["y.".repeat(30_000), "x".repeat(100_000), "z".repeat(250)];
        let names: Vec<String> = (0..20_000).map(|i| format!("{}{i}", "a.".repeat(100))).collect();
        let all = || long.iter().chain(&names).map(String::as_str);
        // The spans of the first name alone cost more.
        for (parts, wanted) in [(100, 200), (1, 100_000), (30_000, 60_000), (1, 250)] {
            let total: usize = compared(all(), parts, wanted).map(|(_, span)| cost(span.len(), wanted)).sum();
            assert!(total <= MAX_COMPARISONS, "{parts} {wanted}: {total}");
        }
        assert!(nearest(&"b.".repeat(100), all()).len() <= MAX_SUGGESTIONS);
    }

    #[test]
    fn typing_errors_find_what_was_meant() {
        let names = [
            "embeddings.LayerNorm.weight", "encoder.layer.0.attention.self.key.weight",
            "encoder.layer.0.attention.self.key.bias", "ids",
        ];
        assert_eq!(nearest("*LayerNrom*", names), ["embeddings.LayerNorm.weight"]);
        assert_eq!(nearest("key.wieght", names), ["encoder.layer.0.attention.self.key.weight"]);
        assert_eq!(nearest("*LAYERNORM*", names), ["embeddings.LayerNorm.weight"]);
        assert_eq!(nearest("key.weight", names), ["encoder.layer.0.attention.self.key.weight"]);
        // A pattern without wildcards may name a module.
        assert_eq!(nearest("LayerNrom", names), ["embeddings.LayerNorm"]);
        assert_eq!(nearest("layer.9", names), ["encoder.layer.0"]);
        assert_eq!(nearest("*lm_head*", names), [""; 0]);
        assert_eq!((nearest("*", names), nearest("", names)), (vec![], vec![]));
        assert_eq!(nearest("*a*", ["x", "é/ü"]), [""; 0]);
        assert_eq!(nearest("ab.c", ["ab.d.ab.e", "abd", "ab.e"]), ["ab.d", "ab.d.ab.e", "ab.e"]);
    }
}
