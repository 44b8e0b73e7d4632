//! Writing of a `.npy` header for a tensor, with the same bytes that NumPy 2 writes.
//!
//! Version 1.0 always suffices: its header may have 65,535 bytes, and 64 dimensions of 20 digits take fewer than 1,500.

use super::MAGIC;
use super::descr::descr;
use crate::tensor::Tensor;

/// NumPy leaves room for the first dimension to grow in place to 21 digits (`numpy.lib.format`, version 1.24 and
/// later).
const GROWTH_DIGITS: usize = 21;

/// Returns the header of a C-contiguous array, padded so that the data starts at a multiple of 64. `None` if the type
/// has no descriptor.
pub(crate) fn emit(tensor: &Tensor) -> Option<Vec<u8>> {
    Some(header(&descr(tensor.dtype, tensor.layout)?, &tensor.shape))
}

/// Returns the header for a descriptor and a shape, as [`emit`] does for a tensor.
pub(crate) fn header(descr: &str, shape: &[u64]) -> Vec<u8> {
    let dimensions: Vec<String> = shape.iter().map(u64::to_string).collect();
    let shape = match &dimensions[..] {
        [only] => format!("({only},)"),
        all => format!("({})", all.join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    if let Some(first) = dimensions.first() {
        text.extend(std::iter::repeat_n(' ', GROWTH_DIGITS.saturating_sub(first.len())));
    }
    // NumPy pads by 64 even if the length is already a multiple of 64.
    let padding = 64 - (10 + text.len() + 1) % 64;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let length = u16::try_from(text.len()).expect("at most 64 dimensions of 20 digits");
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&length.to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header
}
