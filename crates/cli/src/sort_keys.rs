//! Keys of `--sort` that are not counts of a report.

use truecast::Counts;
use truecast::report::Count;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Known {
    Sizes,
    Differences,
    Conversions,
}

pub struct Item<'a> {
    pub name: &'a str,
    pub bytes: u64,
    pub elements: u64,
    pub counts: &'a Counts,
}

#[derive(Clone, Copy)]
pub enum Key {
    Name,
    Largest(fn(&Item<'_>) -> u64),
    Count(Count),
    /// Sorts in ascending order: the smallest value is the worst.
    Smallest(fn(&Counts) -> f64),
    Greatest(fn(&Counts) -> f64),
}

/// Rows: value of `--sort`, true if the key needs the values of tensors, and the key.
pub const KEYS: [(&str, bool, Key); 8] = [
    ("name", false, Key::Name),
    ("size", false, Key::Largest(|item| item.bytes)),
    ("elements", false, Key::Largest(|item| item.elements)),
    ("sqnr_db", true, Key::Smallest(Counts::sqnr_db)),
    ("cosine", true, Key::Smallest(Counts::cosine)),
    ("rmse", true, Key::Greatest(Counts::rmse)),
    ("max_abs_error", true, Key::Greatest(|c| c.max_abs_error)),
    ("max_rel_error", true, Key::Greatest(|c| c.max_rel_error)),
];
