//! Writes a `.npy` header with the same bytes as NumPy 2.
//!
//! Version 1.0 always suffices: it allows 65,535 bytes, and 64 dimensions of 20 digits take fewer than 1,500.

use super::MAGIC;
use super::descr::descr;
use crate::tensor::Tensor;

/// Width to which NumPy pads the first dimension, so that it can grow in place (`numpy.lib.format` since 1.24).
const GROWTH_DIGITS: usize = 21;

/// Header of a C-contiguous array, padded so that the data starts at a multiple of 64. `None` if the type has no
/// descriptor.
pub(crate) fn emit(tensor: &Tensor) -> Option<Vec<u8>> {
    Some(header(&descr(tensor.dtype, tensor.layout)?, &tensor.shape))
}

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
    // NumPy adds 64 bytes if no padding is needed.
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
