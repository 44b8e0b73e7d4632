//! Findings in the pieces of a tensor.

use super::difference::{FileDifference, WrongElement};
use super::found::Found;
use super::method::Methods;
use crate::files::error::Error;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use truecast_core::DType;
use truecast_kernel::parallel;

/// Differences of a job's output tensors, and methods of comparison.
pub(crate) type Findings = (Vec<FileDifference>, Methods);

/// Findings in a tensor or a piece, and methods of comparison.
pub(crate) struct Seen {
    pub elements: Found<WrongElement>,
    /// Wrong entries of codes, scales and zero points (expected, actual). Codes include padding, and bytes of tensors
    /// without elements.
    pub entries: [Found<(u64, u64)>; 3],
    pub by: Methods,
}

impl Seen {
    pub fn new() -> Seen {
        Seen { elements: Found::new(), entries: [(); 3].map(|()| Found::new()), by: Methods::default() }
    }

    pub fn merge(mut self, other: Seen) -> Seen {
        self.by.add(&other.by);
        let [a, b, c] = self.entries;
        let [d, e, f] = other.entries;
        let entries = [a.merge(d), b.merge(e), c.merge(f)];
        Seen { elements: self.elements.merge(other.elements), entries, by: self.by }
    }

    /// Adds the bytes that differ; `first` is the index of the first byte.
    pub fn wrong_bytes(&mut self, first: u64, expected: &[u8], actual: &[u8]) {
        for (index, (expected, actual)) in (first..).zip(expected.iter().zip(actual)) {
            if expected != actual {
                self.entries[0].wrong(index, || (u64::from(*expected), u64::from(*actual)));
            }
        }
    }

    /// Converts to differences; `names` are the tensors of codes, scales and zero points.
    pub fn findings(self, names: [&str; 3], types: (DType, DType)) -> Findings {
        let (tensor, count) = (names[0].to_string(), self.elements.count);
        if let Some(index) = self.elements.refused {
            return (vec![FileDifference::Refused { tensor, index }], self.by);
        }
        let first = self.elements.first.map(|(_, first)| FileDifference::Elements { tensor, count, first, types });
        let entries = names.iter().zip(&self.entries);
        let entries = entries.filter_map(|(name, found)| FileDifference::of_found(name, found));
        (first.into_iter().chain(entries).collect(), self.by)
    }
}

/// Compares pieces in parallel and merges the findings. `progress` gets the source bytes of finished pieces; false
/// stops.
///
/// # Errors
/// The error of the first piece that failed; [`Error::Interrupted`].
pub(crate) fn compare_pieces<P>(
    pieces: impl Iterator<Item = P> + Send,
    compare: impl Fn(P) -> Result<Seen, Error> + Sync,
    bytes_per_element: f64,
    progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
) -> Result<Seen, Error> {
    let pieces = pieces.enumerate();
    let walk = Mutex::new(Walk { pieces, progress, seen: 0, failed: None });
    let locked = || walk.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || {
        let mut walk = locked();
        if walk.failed.is_none() { walk.pieces.next() } else { None }
    };
    let worker = |_| {
        let mut all = Seen::new();
        while let Some((number, piece)) = next() {
            let compared = compare(piece);
            let mut walk = locked();
            let told = compared.and_then(|seen| {
                let before = walk.seen;
                walk.seen += seen.by.all();
                let bytes = |elements| (elements as f64 * bytes_per_element) as u64;
                let bytes = bytes(walk.seen) - bytes(before);
                if (walk.progress)(bytes).is_break() { Err(Error::Interrupted) } else { Ok(seen) }
            });
            match told {
                Ok(seen) => all = all.merge(seen),
                Err(error) if walk.failed.as_ref().is_none_or(|(first, _)| number < *first) => {
                    walk.failed = Some((number, error));
                }
                Err(_) => {}
            }
        }
        all
    };
    let all = parallel::map(rayon::current_num_threads(), worker);
    let Walk { failed, .. } = walk.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or_else(|| Ok(all.into_iter().fold(Seen::new(), Seen::merge)), |(_, error)| Err(error))
}

struct Walk<'a, I> {
    pieces: I,
    progress: &'a mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    /// Number of source bytes of finished pieces.
    seen: u64,
    /// Index and error of the first piece with an error.
    failed: Option<(usize, Error)>,
}
