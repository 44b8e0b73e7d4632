//! Groups of wrong results, by the convention that the results follow, in the output of `check`.

use crate::number::{count, grouped};
use crate::table::Mark;
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::fmt::Display;
use truecast::convention::{COMPARED, ConventionGroup};

/// Heading such as `252 as if rounded through f16 first`, or `All 2_032 results are as if nothing saturates; 258 of
/// them are wrong`.
fn heading<C: Display + Copy, V>(group: &ConventionGroup<C, V>, elements: u64, terminal: &Terminal) -> String {
    let wrong = grouped(group.count);
    let text = match group.convention {
        Some(convention) if group.explains_all => {
            let all = if elements == 1 {
                "The only result is".into()
            } else {
                format!("All {} results are", grouped(elements))
            };
            let are = if group.count == 1 { "is" } else { "are" };
            format!("{all} as if {convention}; {wrong} of them {are} wrong")
        }
        Some(convention) => format!("{wrong} as if {convention}"),
        None => format!("{wrong} unexplained: no known convention gives them"),
    };
    // On a terminal, equivalent conventions are counted. A pipe and `--wide` print all their names.
    let alike: Vec<String> = group.alike.iter().map(|convention| convention.to_string()).collect();
    let also = match (alike.len() as u64, terminal.width) {
        (0, _) => String::new(),
        (n, Some(_)) => {
            format!("; {} would give the same ({})", count(n, "other convention"), terminal.reader.advice())
        }
        (_, None) => format!("; or as if {}", alike.join(", or ")),
    };
    let wrapped = terminal.wrap(&format!("{text}{also}"));
    wrapped.lines().map(|line| terminal.paint(Mark::Strong, line) + "\n").collect()
}

/// Groups with their first violations. `show` limits the number of violations in all groups together.
pub fn text<C: Display + Copy, V>(
    groups: &[ConventionGroup<C, V>],
    (elements, show): (u64, usize),
    rows: impl Fn(&[V]) -> String,
    explain: impl Fn(&V) -> Option<String>,
    terminal: &Terminal,
) -> String {
    let available: Vec<usize> = groups.iter().map(|group| group.first.len()).collect();
    let mut text = String::new();
    for (group, share) in groups.iter().zip(shares(&available, show)) {
        text += &heading(group, elements, terminal);
        text += &rows(&group.first[..share]);
        text.extend(group.first.first().and_then(&explain).map(|options| format!("truecast explain {options}\n")));
        text.push('\n');
    }
    text
}

pub fn left_out(wrong: u64, compared: u64) -> String {
    if wrong > compared && compared == COMPARED {
        format!("only the first {} wrong results were compared with known conventions\n", grouped(compared))
    } else {
        String::new()
    }
}

/// Distributes `show` examples over the groups in turns.
fn shares(available: &[usize], show: usize) -> Vec<usize> {
    let mut shares = vec![0; available.len()];
    let turns = 0..available.iter().copied().max().unwrap_or(0);
    let each = turns.flat_map(|turn| (0..available.len()).filter(move |group| available[*group] > turn));
    each.take(show).for_each(|group| shares[group] += 1);
    shares
}

pub fn to_json<C: Display + Copy, V>(
    groups: &[ConventionGroup<C, V>],
    name: impl Fn(C) -> String,
    index: impl Fn(&V) -> u64,
) -> Value {
    let group = |group: &ConventionGroup<C, V>| {
        json!({
            "convention": group.convention.map(&name), "as_if": group.convention.map(|c| c.to_string()),
            "alike": group.alike.iter().map(|c| name(*c)).collect::<Vec<_>>(), "count": group.count,
            "first": group.first.iter().map(&index).collect::<Vec<_>>(), "explains_all": group.explains_all
        })
    };
    groups.iter().map(group).collect()
}
