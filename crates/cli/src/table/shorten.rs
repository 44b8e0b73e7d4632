//! Shortening of names. The middle is omitted, and different names remain different.

use std::collections::{HashMap, HashSet};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub fn shortened(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.into();
    }
    let kept = columns.saturating_sub(1);
    ends(text, kept / 2, kept - kept / 2, "…")
}

/// Both ends of a text, at most `front` and `back` columns wide, joined by `between`.
pub fn ends(text: &str, front: usize, back: usize, between: &str) -> String {
    let within = |chars: &mut dyn Iterator<Item = char>, room: usize| -> usize {
        let mut used = 0;
        let fits = |c: &char| {
            used += c.width().unwrap_or(1);
            used <= room
        };
        chars.take_while(fits).map(char::len_utf8).sum()
    };
    let head = within(&mut text.chars(), front);
    let tail = within(&mut text[head..].chars().rev(), back);
    format!("{}{between}{}", &text[..head], &text[text.len() - tail..])
}

/// Distinct text for each name that would look like another name without its middle. All other long names with the same
/// number of components get a distinct text too. `columns` is the largest width.
pub fn told_apart<'a>(names: impl Iterator<Item = &'a str>, columns: usize) -> HashMap<&'a str, String> {
    let mut by_parts: HashMap<usize, Vec<&str>> = HashMap::new();
    let mut shown: HashMap<String, &str> = HashMap::new();
    let mut alike = HashSet::new();
    for name in names.filter(|name| name.width() > columns) {
        let parts = name.split('.').count();
        let first = *shown.entry(shortened(name, columns)).or_insert(name);
        if first != name {
            alike.extend([parts, first.split('.').count()]);
        }
        by_parts.entry(parts).or_default().push(name);
    }
    let mut told = HashMap::new();
    for names in alike.iter().filter_map(|parts| by_parts.get(parts)) {
        let parts: Vec<Vec<&str>> = names.iter().map(|name| name.split('.').collect()).collect();
        let is_other = |i: usize| parts.iter().any(|parts_of| parts_of[i] != parts[0][i]);
        let differs: Vec<bool> = (0..parts[0].len()).map(is_other).collect();
        told.extend(names.iter().zip(&parts).map(|(name, parts)| (*name, of_differing(parts, &differs, columns))));
    }
    told
}

/// Joins the differing components, and as much of the other components as fits.
fn of_differing(parts: &[&str], differs: &[bool], columns: usize) -> String {
    let (Some(first), Some(last)) = (differs.iter().position(|d| *d), differs.iter().rposition(|d| *d)) else {
        return shortened(&parts.join("."), columns);
    };
    let mut middle = String::from(parts[first]);
    for i in first + 1..=last {
        match (differs[i - 1], differs[i]) {
            (true, true) => middle += &format!(".{}", parts[i]),
            (false, true) => middle += parts[i],
            (true, false) => middle.push('…'),
            (false, false) => {}
        }
    }
    let head: String = parts[..first].iter().map(|part| format!("{part}.")).collect();
    let tail: String = parts[last + 1..].iter().map(|part| format!(".{part}")).collect();
    let room = columns.saturating_sub(middle.width());
    let behind = tail.width().min((room * 2 / 3).max(room.saturating_sub(head.width())));
    let before = room - behind;
    let cut = |text: &str, room: usize, is_head: bool| match room.checked_sub(1) {
        _ if text.width() <= room => text.into(),
        None => String::new(),
        // One or two letters are not recognizable.
        Some(kept) if kept < 3 => "…".into(),
        Some(kept) => ends(text, if is_head { kept } else { 0 }, if is_head { 0 } else { kept }, "…"),
    };
    shortened(&(cut(&head, before, true) + &middle + &cut(&tail, behind, false)), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_different() {
        let name = |layer: usize, expert: usize, matrix: &str| {
            format!(
                "model.language_model.layers.{layer}.block_sparse_moe.experts.{expert}.feed_forward.{matrix}.weight"
            )
        };
        let mut names = vec!["model.embed_tokens.weight".to_string(), "model.language_model.norm.final.weight".into()];
        for (layer, expert) in [(0, 0), (0, 127), (63, 0)] {
            names.extend(["gate_proj", "up_proj", "down_proj"].map(|matrix| name(layer, expert, matrix)));
        }
        for columns in 26..80 {
            let told = told_apart(names.iter().map(String::as_str), columns);
            let shown = |name: &String| told.get(&name[..]).cloned().unwrap_or_else(|| shortened(name, columns));
            let all: HashSet<String> = names.iter().map(shown).collect();
            assert!(all.len() == names.len() && all.iter().all(|text| text.width() <= columns), "{all:?}");
        }
        let told = told_apart(names.iter().map(String::as_str), 27);
        assert_eq!(told[&names[5][..]], "mode…0…127…gate_proj.weight");
        // Names that are already distinct get no text. With too little room, texts may be equal but are never too wide.
        assert!(told_apart(names[..3].iter().map(String::as_str), 26).is_empty());
        for columns in 0..26 {
            let told = told_apart(names.iter().map(String::as_str), columns);
            assert!(told.values().all(|text| text.width() <= columns.max(1)), "{told:?}");
        }
    }
}
