//! What a file holds: tensors, and on request the range and special values of each.

use crate::error::Error;
use crate::scan::{Chunk, Side, Stretch, scan};
use truecast_io::Source;
use truecast_kernel::Level;
use truecast_kernel::measure::Survey;

/// Looks at every element of tensor `index`, on all threads of the current pool of rayon and in a few MiB for each.
/// `progress` is told how many more bytes are done.
///
/// # Errors
/// Reading. Complex tensors and text give an empty survey.
pub fn stats(
    source: &Source,
    index: usize,
    level: Level,
    mut progress: impl FnMut(u64) + Send,
) -> Result<Survey, Error> {
    let tensor = &source.tensors()[index];
    let side = Side { source, index, dtype: tensor.dtype };
    let look = |survey: &mut Survey, (_, [codes]): Chunk<'_, 1>| {
        if codes.dtype().is_numeric() {
            survey.add(codes, level);
        }
    };
    let seen = scan([side], &Stretch::whole(tensor.len()), Survey::default, look, &mut progress)?;
    Ok(seen.iter().fold(Survey::default(), |mut all, part| {
        all.merge(part);
        all
    }))
}
