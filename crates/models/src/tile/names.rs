//! Names of the dialect's operations (§9.3, §10.8), each with its first release.

use truecast_core::spec::tile::{Op, Release};
use truecast_core::spelling;

use crate::tile::bytecode::layout::LAYOUTS;

/// Operations that are read individually, in addition to the nine conversions.
const READ: [(&str, Release); 7] = [
    ("constant", Release::V13_1),
    ("entry", Release::V13_1),
    ("global", Release::V13_1),
    ("module", Release::V13_1),
    ("return", Release::V13_1),
    ("pack", Release::V13_3),
    ("unpack", Release::V13_3),
];

fn dated_names() -> impl Iterator<Item = (&'static str, Release)> {
    let conversions = Op::ALL.iter().map(|op| (op.name(), Release::V13_1));
    conversions.chain(READ).chain(LAYOUTS.iter().map(|layout| (layout.name, layout.since)))
}

pub(crate) fn since(name: &str) -> Option<Release> {
    dated_names().find(|(known, _)| *known == name).map(|(_, since)| since)
}

pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let most = if name.len() > 3 { 2 } else { 1 };
    spelling::nearest(name, dated_names().map(|(known, _)| known), most)
}

/// Whether the operation belongs to test builds of the dialect (`testing$func`). No release has such operations.
pub(crate) fn is_unreleased(name: &str) -> bool {
    ["experimental$", "internal$", "testing$"].iter().any(|prefix| name.starts_with(prefix))
}

pub(crate) fn operation_name(word: &str) -> &str {
    word.strip_prefix("cuda_tile.").unwrap_or(word)
}

/// Whether a word is an operation: a known name, or any name with the dialect's prefix.
pub(crate) fn is_operation(word: &str) -> bool {
    let name = operation_name(word);
    name != word || since(name).is_some() || is_unreleased(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_one_name() {
        let mut names: Vec<_> = dated_names().map(|(name, _)| name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!((since("ftof"), since("unpack")), (Some(Release::V13_1), Some(Release::V13_3)));
        assert_eq!((since("atan2"), since("FTOF"), since("ftfo")), (Some(Release::V13_2), None, None));
    }

    #[test]
    fn what_was_meant() {
        for (name, meant) in [("ftfo", Some("ftof")), ("FToF", Some("ftof")), ("truncii", Some("trunci"))] {
            assert_eq!(nearest(name), meant);
        }
        assert_eq!((nearest("func.func"), nearest("hello"), nearest("")), (None, None, None));
    }
}
