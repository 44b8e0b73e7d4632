//! Names of numbered parts: `model-00001-of-00003.safetensors` (`docs/spec/checkpoints.md §2.3`).

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::folder::FolderError;

pub(super) struct PartName<'a> {
    around: (&'a str, &'a str),
    pub number: u64,
    pub of: u64,
}

impl<'a> PartName<'a> {
    /// Parses a name; `None` without numbers.
    pub fn new(name: &'a str) -> Option<PartName<'a>> {
        let at = ["-of-", "_of_"].into_iter().filter_map(|word| name.rfind(word)).max()?;
        let (before, after) = (&name[..at], &name[at + "-of-".len()..]);
        let is_digit = |c: char| c.is_ascii_digit();
        let (stem, rest) = (before.trim_end_matches(is_digit), after.trim_start_matches(is_digit));
        let of = &after[..after.len() - rest.len()];
        Some(PartName { around: (stem, rest), number: before[stem.len()..].parse().ok()?, of: of.parse().ok()? })
    }
}

/// True if the file is one of several parts by its name, such as `model-00001-of-00002.safetensors`.
#[must_use]
pub fn is_part(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    PartName::new(&name).is_some_and(|part| part.of > 1)
}

/// Checks that all numbered files form complete sets, numbered from 0 or 1.
pub(super) fn check<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), FolderError> {
    let mut sets: BTreeMap<_, (u64, BTreeMap<u64, &str>)> = BTreeMap::new();
    for (name, part) in names.filter_map(|name| Some((name, PartName::new(name)?))) {
        let (of, set) = sets.entry(part.around).or_insert((part.of, BTreeMap::new()));
        let is_of_set = *of == part.of && part.number <= part.of;
        let other = if is_of_set { set.insert(part.number, name) } else { Some(*set.values().next().unwrap_or(&name)) };
        if let Some(first) = other {
            return Err(FolderError::PartsOfTwo { first: first.into(), second: name.into() });
        }
    }
    for (of, set) in sets.into_values() {
        let Some((&least, &name)) = set.first_key_value() else { continue };
        let first = least.min(1);
        let there = set.keys().zip(first..).take_while(|(found, number)| **found == *number).count() as u64;
        if there != of || there != set.len() as u64 {
            return Err(FolderError::MissingPart { missing: first + there, of, name: name.into() });
        }
    }
    Ok(())
}
