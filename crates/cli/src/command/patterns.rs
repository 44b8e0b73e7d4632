//! Groups of tensors with a common name pattern, such as `layers.{0..60}.mlp.experts.{0..255}.up_proj.weight`.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Largest number of runs in a pattern. With more runs, the pattern shows only the lowest and highest number.
const MOST_RUNS: usize = 3;

/// Tensors whose names differ only in numbers.
#[derive(Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Name with all values of each number.
    pub name: String,
    pub members: Vec<usize>,
}

/// Patterns in the order of their first members. Members of a pattern have equal values of `alike`.
pub fn patterns<'a, L: Eq + Hash>(
    tensors: impl Iterator<Item = usize>,
    name: impl Fn(usize) -> &'a str,
    alike: impl Fn(usize) -> L,
) -> Vec<Pattern> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<(Vec<&str>, L), usize> = HashMap::new();
    for tensor in tensors {
        let key = (words(name(tensor)), alike(tensor));
        let group = *known.entry(key).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(tensor);
    }
    let pattern = |members: Vec<usize>| Pattern { name: pattern(members.iter().map(|&i| name(i))), members };
    groups.into_iter().map(pattern).collect()
}

enum Part<'a> {
    Text(&'a str),
    Number(u64),
}

/// Splits a name. A number with a leading zero, or above `u64::MAX`, counts as text.
fn parts(name: &str) -> impl Iterator<Item = Part<'_>> {
    let number = |part: &str| {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
        part.parse().ok().filter(|_| is_number)
    };
    name.split_inclusive(['.', '/', '_', ':']).flat_map(move |part| {
        let end = part.trim_end_matches(['.', '/', '_', ':']);
        match number(end) {
            Some(n) => [Part::Number(n), Part::Text(&part[end.len()..])],
            None => [Part::Text(end), Part::Text(&part[end.len()..])],
        }
    })
}

/// Texts of a name, with `{}` for each number.
fn words(name: &str) -> Vec<&str> {
    parts(name).map(|part| if let Part::Text(text) = part { text } else { "{}" }).collect()
}

fn pattern<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut values: Vec<BTreeSet<u64>> = Vec::new();
    for name in names.clone() {
        let numbers = parts(name).filter_map(|part| if let Part::Number(n) = part { Some(n) } else { None });
        for (place, n) in numbers.enumerate() {
            if place == values.len() {
                values.push(BTreeSet::new());
            }
            values[place].insert(n);
        }
    }
    let mut values = values.iter();
    let first = names.into_iter().next().unwrap_or_default();
    let text = |part: Part<'_>| match part {
        Part::Text(text) => text.to_owned(),
        Part::Number(_) => values.next().map_or(String::new(), numbers),
    };
    parts(first).map(text).collect()
}

/// Values of a number: `7`, `{0..60}`, `{0..2,5}`, `{41 of 0..60}`.
fn numbers(values: &BTreeSet<u64>) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &n in values {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => runs.push((n, n)),
        }
    }
    let run = |&(first, last): &(u64, u64)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}..{last}"),
    };
    match (&runs[..], values.first(), values.last()) {
        ([(first, last)], ..) if first == last => first.to_string(),
        (runs, Some(first), Some(last)) if runs.len() > MOST_RUNS => {
            format!("{{{} of {first}..{last}}}", values.len())
        }
        (runs, ..) => format!("{{{}}}", runs.iter().map(run).collect::<Vec<_>>().join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<(String, usize)> {
        let name = |i: usize| names[i];
        patterns(0..names.len(), name, |_| ()).into_iter().map(|p| (p.name, p.members.len())).collect()
    }

    #[test]
    fn numbers_between_separators_make_a_pattern() {
        let names: Vec<String> =
            (0..3).flat_map(|l| (0..4).map(move |e| format!("layers.{l}.experts.{e}.w1.weight"))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(of(&names), [("layers.{0..2}.experts.{0..3}.w1.weight".to_owned(), 12)]);
        assert_eq!(of(&["blk.1.k", "blk.1.q", "blk.2.k"]), [("blk.{1,2}.k".into(), 2), ("blk.1.q".into(), 1)]);
        assert_eq!(of(&["double_blocks_0_img", "double_blocks_7_img"]), [("double_blocks_{0,7}_img".into(), 2)]);
    }

    #[test]
    fn what_is_no_number_stays() {
        let names = ["fc1.bias", "fc2.bias", "a.01", "a.02", "b.99999999999999999999", "", "..", "7"];
        assert_eq!(of(&names), names.map(|name| (name.to_owned(), 1)));
    }

    #[test]
    fn gaps_are_said() {
        let name = |layers: &[u64]| {
            let names: Vec<String> = layers.iter().map(|l| format!("l.{l}")).collect();
            let found = patterns(0..names.len(), |i| &names[i], |_| ());
            assert_eq!(found.len(), 1);
            found[0].name.clone()
        };
        assert_eq!(name(&[0, 1, 2, 5]), "l.{0..2,5}");
        assert_eq!(name(&[0, 2, 4, 6]), "l.{4 of 0..6}");
        assert_eq!(name(&[u64::MAX - 1, u64::MAX]), format!("l.{{{},{}}}", u64::MAX - 1, u64::MAX));
    }

    #[test]
    fn unlike_tensors_have_patterns_of_their_own() {
        let names = ["l.0.w", "l.1.w", "l.2.w"];
        let found = patterns(0..3, |i| names[i], |i| i == 1);
        let found: Vec<_> = found.into_iter().map(|p| (p.name, p.members)).collect();
        assert_eq!(found, [("l.{0,2}.w".to_owned(), vec![0, 2]), ("l.1.w".to_owned(), vec![1])]);
    }
}
