//! Sort keys of `inspect --sort`.

use truecast::measure::Survey;

/// Properties by which tensors can be sorted.
pub struct Item<'a> {
    pub name: &'a str,
    pub bytes: u64,
    pub elements: u64,
    pub survey: Survey,
}

/// Key by which tensors are sorted.
#[derive(Clone, Copy)]
pub enum Key {
    Name,
    Largest(fn(&Item<'_>) -> u64),
    Min,
    Max,
}

/// Values of `--sort`, whether each needs `--stats`, and its sort key.
pub const KEYS: [(&str, bool, Key); 9] = [
    ("name", false, Key::Name),
    ("size", false, Key::Largest(|item| item.bytes)),
    ("elements", false, Key::Largest(|item| item.elements)),
    ("min", true, Key::Min),
    ("max", true, Key::Max),
    ("nan", true, Key::Largest(|item| item.survey.nan)),
    ("inf", true, Key::Largest(|item| item.survey.inf)),
    ("zero", true, Key::Largest(|item| item.survey.zero)),
    ("subnormal", true, Key::Largest(|item| item.survey.subnormal)),
];

/// Returns the names of the columns that `--sort` accepts.
pub fn names() -> Vec<&'static str> {
    KEYS.map(|(name, ..)| name).into()
}
