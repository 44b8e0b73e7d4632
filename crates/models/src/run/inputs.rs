//! Assigns input files to a model's inputs.

use super::error::RunError;
use std::collections::BTreeMap;
use std::path::Path;
use truecast_io::Escaped;

/// Files by input name. Names and paths may contain `=`, so each text is split after the name of an input.
pub(super) fn assign<'a>(given: &'a [String], inputs: &[&str]) -> Result<BTreeMap<&'a str, &'a Path>, RunError> {
    let names = || inputs.iter().map(|name| Escaped(name).to_string()).collect::<Vec<_>>().join(", ");
    let wrong = |given: &str, why| RunError::NoInput { given: given.into(), why, inputs: names() };
    let mut files = BTreeMap::new();
    for text in given {
        let splits = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let known = |(name, _): &(&str, &str)| inputs.contains(name);
        let (name, path) = splits.clone().rev().find(known).ok_or_else(|| match splits.clone().next() {
            Some((name, _)) => RunError::UnknownInput { name: name.into(), inputs: names() },
            None => wrong(text, "is not of the form NAME=FILE"),
        })?;
        if files.insert(name, Path::new(path)).is_some() {
            return Err(wrong(text, "names an input twice"));
        }
    }
    Ok(files)
}
