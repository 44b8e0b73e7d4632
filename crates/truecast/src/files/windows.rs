//! Dequantizes a range of elements in windows (`truecast_kernel::scaled`), from bytes in memory.

use std::borrow::Cow;
use std::ops::Range;
use truecast_core::scaled::{Part, Parts, ScaledError};
use truecast_kernel::scaled::{Dequantizer, Read};

/// Computes the elements of a range. `get` returns the bytes of each read, in order.
///
/// Shapes: `dst` has exactly these elements.
///
/// # Errors
/// Codes or scales without a value.
pub(crate) fn dequantize<'a>(
    dequantizer: &Dequantizer,
    elements: Range<u64>,
    mut get: impl FnMut(&Read) -> Cow<'a, [u8]>,
    mut dst: &mut [u8],
) -> Result<(), ScaledError> {
    let width = dst.len() as u64 / (elements.end - elements.start).max(1);
    for window in dequantizer.windows(elements) {
        let held: Vec<(Part, Cow<'_, [u8]>)> =
            dequantizer.reads(&window).iter().map(|read| (read.part, get(read))).collect();
        let parts = Parts::of(|part| held.iter().find(|(of, _)| *of == part).map_or(&[], |(_, bytes)| bytes));
        let elements = window.elements();
        let (now, rest) = dst.split_at_mut(((elements.end - elements.start) * width) as usize);
        dequantizer.run(&window, &parts, now)?;
        dst = rest;
    }
    Ok(())
}

/// Gathers the bytes of a read. `bytes` begins at byte `base` of the part.
pub(crate) fn gathered<'a>(bytes: &'a [u8], base: u64, read: &Read) -> Cow<'a, [u8]> {
    let piece = |i: u64| &bytes[(read.first - base + i * read.stride) as usize..][..read.len as usize];
    match read.count {
        1 => Cow::Borrowed(piece(0)),
        count => (0..count).flat_map(piece).copied().collect(),
    }
}
