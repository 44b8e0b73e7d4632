//! Sort keys of `inspect --sort`.

use truecast::measure::Survey;

pub struct Item<'a> {
    pub name: &'a str,
    pub bytes: u64,
    pub elements: u64,
    pub survey: Survey,
}

#[derive(Clone, Copy)]
pub enum Key {
    Name,
    Largest(fn(&Item<'_>) -> u64),
    Min,
    Max,
}

/// Rows: value of `--sort`, true if the key needs `--stats`, and the key.
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

pub fn names() -> Vec<&'static str> {
    KEYS.map(|(name, ..)| name).into()
}
