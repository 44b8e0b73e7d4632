//! What a file holds: tensors, and on request the range and special values of each.

use crate::error::Error;
use crate::parts::Parts;
use truecast_io::Source;
use truecast_kernel::Level;
use truecast_kernel::measure::Survey;

/// Looks at every element of tensor `index`.
///
/// # Errors
/// Reading. Complex tensors give an empty survey.
pub fn stats(source: &Source, index: usize, level: Level, mut progress: impl FnMut(u64)) -> Result<Survey, Error> {
    let dtype = source.tensors()[index].dtype;
    let mut survey = Survey::default();
    let mut parts = Parts::new(source, index, dtype)?;
    while let Some(codes) = parts.next()? {
        if dtype.is_numeric() {
            survey.add(codes, level);
        }
        progress(codes.bytes().len() as u64);
    }
    Ok(survey)
}
