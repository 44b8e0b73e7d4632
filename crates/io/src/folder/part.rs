//! Names that say that a file is one of several: `model-00001-of-00003.safetensors` (`docs/spec/checkpoints.md §2.3`). They
//! count only where no index says which files there are.

use std::collections::BTreeMap;

use crate::error::folder::FolderError;

/// What such a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartName<'a> {
    /// What stands before and behind the numbers.
    around: (&'a str, &'a str),
    digits: usize,
    of_digits: &'a str,
    /// Which part it is.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

impl<'a> PartName<'a> {
    /// The numbers of a name; `None` if it has none.
    ///
    /// # Examples
    /// ```
    /// use truecast_io::folder::PartName;
    /// let part = PartName::of("model-00002-of-00003.safetensors").unwrap();
    /// assert_eq!((part.number, part.of), (2, 3));
    /// assert_eq!(PartName::of("model.safetensors"), None);
    /// ```
    #[must_use]
    pub fn of(name: &'a str) -> Option<PartName<'a>> {
        let at = ["-of-", "_of_"].into_iter().filter_map(|word| name.rfind(word)).max()?;
        let (before, after) = (&name[..at], &name[at + "-of-".len()..]);
        let is_digit = |c: char| c.is_ascii_digit();
        let (stem, rest) = (before.trim_end_matches(is_digit), after.trim_start_matches(is_digit));
        let (number, of) = (&before[stem.len()..], &after[..after.len() - rest.len()]);
        Some(PartName {
            around: (stem, rest),
            digits: number.len(),
            of_digits: of,
            number: number.parse().ok()?,
            of: of.parse().ok()?,
        })
    }

    /// The name of another part of the set.
    fn sibling(&self, number: u64) -> String {
        let (PartName { around: (stem, rest), of_digits, .. }, width) = (self, self.digits);
        format!("{stem}{number:0width$}-of-{of_digits}{rest}")
    }
}

/// Files that are named as parts are all parts of their sets, which are numbered from 1, or from 0.
pub(super) fn check<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), FolderError> {
    let mut sets: BTreeMap<(&str, &str), BTreeMap<u64, &str>> = BTreeMap::new();
    for (name, part) in names.filter_map(|name| Some((name, PartName::of(name)?))) {
        let set = sets.entry(part.around).or_default();
        let is_of_another_set = |other: &&&str| PartName::of(other).is_some_and(|other| other.of != part.of);
        let other = set.values().find(is_of_another_set).copied().or_else(|| set.insert(part.number, name));
        if let Some(first) = other {
            return Err(FolderError::PartsOfTwo { first: first.into(), second: name.into() });
        }
    }
    for set in sets.values() {
        let there = set.first_key_value().and_then(|(number, name)| Some((*number, *name, PartName::of(name)?)));
        let Some((least, name, part)) = there else { continue };
        let first = least.min(1);
        // The first number that is not there, of which there are at most as many as files.
        let gap = (first..).zip(set.keys().map(Some).chain([None])).find(|(number, there)| Some(number) != *there);
        let missing = gap.map_or(first, |(number, _)| number);
        if set.len() as u64 != part.of || missing - first != part.of {
            let (missing, of, there) = (part.sibling(missing), part.of, set.len() as u64);
            return Err(FolderError::MissingPart { missing, of, there, name: name.into() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_there() {
        let check = |names: &[&str]| check(names.iter().copied()).map_err(|cause| cause.to_string());
        let whole: [&[&str]; 6] = [
            &["model.safetensors", "a-of-b.safetensors", "x-1-of-99999999999999999999.safetensors"],
            &["model-00001-of-000002.safetensors", "model-00002-of-000002.safetensors"],
            &["model-00000-of-00002.safetensors", "model-00001-of-00002.safetensors"],
            &["m_1_of_1.safetensors", "1-of-1.safetensors", "n-1-of-1.fp16.safetensors"],
            &["a-1-of-2.safetensors", "a-2-of-2.safetensors", "b-1-of-1.safetensors"],
            &[],
        ];
        for names in whole {
            assert_eq!(check(names), Ok(()), "{names:?}");
        }
        let broken: [(&[&str], &str); 8] = [
            (&["m-00001-of-00003.safetensors", "m-00003-of-00003.safetensors"], "m-00002-of-00003.safetensors"),
            (&["m-00002-of-00003.safetensors", "m-00003-of-00003.safetensors"], "m-00001-of-00003.safetensors"),
            (&["m-1-of-3.safetensors", "m-2-of-3.safetensors"], "m-3-of-3.safetensors"),
            (&["m-0-of-2.safetensors"], "m-1-of-2.safetensors"),
            (&["m-1-of-18446744073709551615.safetensors"], "m-2-of-18446744073709551615.safetensors"),
            (&["m-1-of-1.safetensors", "m-2-of-1.safetensors"], "m-1-of-1.safetensors"),
            (&["m-1-of-2.safetensors", "m-2-of-3.safetensors"], "m-2-of-3.safetensors"),
            (&["m-01-of-2.safetensors", "m-1-of-2.safetensors"], "m-01-of-2.safetensors"),
        ];
        for (names, said) in broken {
            let error = check(names).unwrap_err();
            assert!(error.contains(said), "{names:?}: {error}");
        }
    }
}
