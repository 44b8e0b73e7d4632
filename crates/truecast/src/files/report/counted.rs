//! Compact counts of a tensor.

use std::ops::Deref;
use std::sync::LazyLock;
use truecast_kernel::Counts;

/// Counts that take almost no memory if they are zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted(Option<Box<Counts>>);

static NOTHING: LazyLock<Counts> = LazyLock::new(Counts::default);

impl Counted {
    pub(crate) fn add(&mut self, next: &Counts) {
        self.0.get_or_insert_default().add(next);
    }
}

impl From<Counts> for Counted {
    fn from(counts: Counts) -> Counted {
        Counted((counts != *NOTHING).then(|| counts.into()))
    }
}

impl Deref for Counted {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}
