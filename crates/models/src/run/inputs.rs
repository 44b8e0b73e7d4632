//! The files that are fed into a model.

use super::error::RunError;
use std::collections::BTreeMap;
use std::path::Path;
use truecast_io::Escaped;

/// The files of the inputs by name. Names and paths may hold `=`: the split is where the name of an input ends.
pub(super) fn assign<'a>(given: &'a [String], inputs: &[&str]) -> Result<BTreeMap<&'a str, &'a Path>, RunError> {
    let wrong = |given: &str, why| {
        let names: Vec<_> = inputs.iter().map(|name| Escaped(name).to_string()).collect();
        RunError::NoInput { given: given.into(), why, inputs: names.join(", ") }
    };
    let mut files = BTreeMap::new();
    for text in given {
        let splits = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let known = |(name, _): &(&str, &str)| inputs.contains(name);
        let (name, path) =
            splits.rev().find(known).ok_or_else(|| wrong(text, "does not begin with NAME= of an input"))?;
        if files.insert(name, Path::new(path)).is_some() {
            return Err(wrong(text, "names an input twice"));
        }
    }
    Ok(files)
}
