//! Parallel loop of all proofs: pieces of a tensor, in rounds of a few per thread, with merged findings.

use crate::files::error::Error;
use crate::files::verify::Methods;
use crate::files::verify::difference::{FileDifference, WrongElement};
use crate::files::verify::found::Found;
use std::ops::ControlFlow;
use truecast_core::DType;
use truecast_kernel::parallel;

/// Pieces per thread between two calls of `progress`.
const ROUND: usize = 16;

/// Adds the findings of all pieces to `found`. `progress` gets the number of finished pieces and decides whether to
/// continue.
///
/// # Errors
/// The errors of a piece; [`Error::Interrupted`].
pub(crate) fn prove<P: Sync, T: Send>(
    pieces: impl IntoIterator<Item = P>,
    mut found: T,
    of_piece: impl Fn(&P) -> Result<T, Error> + Sync,
    merge: impl Fn(T, T) -> T,
    mut progress: impl FnMut(&[P]) -> ControlFlow<()>,
) -> Result<T, Error> {
    let mut pieces = pieces.into_iter();
    loop {
        let some: Vec<P> = pieces.by_ref().take(ROUND * rayon::current_num_threads()).collect();
        if some.is_empty() {
            return Ok(found);
        }
        for of_one in parallel::map(some.len(), |i| of_piece(&some[i])) {
            found = merge(found, of_one?);
        }
        if progress(&some).is_break() {
            return Err(Error::Interrupted);
        }
    }
}

/// Findings, and methods of comparison.
pub(crate) struct Seen<T> {
    pub found: Found<T>,
    pub by: Methods,
}

impl<T> Seen<T> {
    pub fn new() -> Seen<T> {
        Seen { found: Found::new(), by: Methods::default() }
    }

    pub fn merge(mut self, other: Seen<T>) -> Seen<T> {
        self.by.add(&other.by);
        Seen { found: self.found.merge(other.found), by: self.by }
    }
}

/// Difference report for elements of a cast.
pub(crate) fn of_elements(tensor: &str, found: Found<WrongElement>, types: (DType, DType)) -> Option<FileDifference> {
    let (tensor, count) = (tensor.to_string(), found.count);
    match (found.refused, found.first) {
        (Some(index), _) => Some(FileDifference::Refused { tensor, index }),
        (None, Some((_, first))) => Some(FileDifference::Elements { tensor, count, first, types }),
        (None, None) => None,
    }
}
