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
    /// Whether the row sums the patterns below it in a [`tree`].
    pub is_module: bool,
}

/// Patterns in the order of their first members. All members of a pattern have the same value of `alike`.
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
    let pattern =
        |members: Vec<usize>| Pattern { name: pattern(members.iter().map(|&i| name(i))), members, is_module: false };
    groups.into_iter().map(pattern).collect()
}

/// Puts a row for their module above patterns that share one, and indents their names.
pub fn tree(patterns: Vec<Pattern>) -> Vec<Pattern> {
    let leaves = patterns.into_iter().map(|pattern| {
        let path = path(&pattern.name).into_iter().map(str::to_owned).collect();
        (path, pattern.members)
    });
    let mut rows = Vec::new();
    add_rows(leaves.collect(), 0, &mut rows);
    rows
}

type Leaf = (Vec<String>, Vec<usize>);

fn add_rows(leaves: Vec<Leaf>, depth: usize, rows: &mut Vec<Pattern>) {
    let mut modules: Vec<Vec<Leaf>> = Vec::new();
    for leaf in leaves {
        match modules.iter_mut().find(|module| module[0].0[0] == leaf.0[0]) {
            Some(module) => module.push(leaf),
            None => modules.push(vec![leaf]),
        }
    }
    let named = |path: &[String]| format!("{}{}", "  ".repeat(depth), path.concat().trim_end_matches('.'));
    for mut module in modules {
        if let [(path, members)] = &mut module[..] {
            rows.push(Pattern { name: named(path), members: std::mem::take(members), is_module: false });
            continue;
        }
        // Every name keeps its last component.
        let shortest = module.iter().map(|(path, _)| path.len() - 1).min().unwrap_or(0);
        let is_shared = |at: usize| module.iter().all(|(path, _)| path[at] == module[0].0[at]);
        let shared = (0..shortest).take_while(|&at| is_shared(at)).count();
        if shared == 0 {
            // Patterns with equal names and other shapes.
            let rest =
                module.into_iter().map(|(path, members)| Pattern { name: named(&path), members, is_module: false });
            rows.extend(rest);
            continue;
        }
        let members = module.iter().flat_map(|(_, members)| members.iter().copied()).collect();
        rows.push(Pattern { name: named(&module[0].0[..shared]), members, is_module: true });
        let below = module.into_iter().map(|(mut path, members)| (path.split_off(shared), members));
        add_rows(below.collect(), depth + 1, rows);
    }
}

/// Components of a pattern, each with its dot. Dots in braces separate numbers.
fn path(name: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut all) = (0, 0, Vec::new());
    for (at, c) in name.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            '.' if depth == 0 => {
                all.push(&name[begin..=at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    all.push(&name[begin..]);
    all
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

/// Texts between the numbers of a name, with `{}` in place of each number.
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
    fn modules_stand_above_their_tensors() {
        let names =
            ["m.embed.weight", "m.l.0.q.weight", "m.l.0.q.bias", "m.l.1.q.weight", "m.l.1.q.bias", "m.norm.w", "h"];
        let rows = tree(patterns(0..names.len(), |i| names[i], |_| ()));
        let shown: Vec<_> = rows.iter().map(|row| (&*row.name, row.members.len(), row.is_module)).collect();
        let expected = [
            ("m", 6, true),
            ("  embed.weight", 1, false),
            ("  l.{0,1}.q", 4, true),
            ("    weight", 2, false),
            ("    bias", 2, false),
            ("  norm.w", 1, false),
            ("h", 1, false),
        ];
        assert_eq!(shown, expected);
        // Braces of a name that close nothing, equal names, and empty components.
        let odd = ["}.a", "}.b", "a", "a", "..", ""];
        let rows = tree(patterns(0..odd.len(), |i| odd[i], |i| i));
        assert_eq!(rows.iter().filter(|row| !row.is_module).map(|row| row.members.len()).sum::<usize>(), odd.len());
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
