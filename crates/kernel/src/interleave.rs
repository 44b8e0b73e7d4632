//! Bytes of vectors interleaved into elements, for vectors of any architecture and width.

/// Vectors whose bytes are interleaved within their 128-bit lanes.
pub(crate) trait Unpack: Copy {
    /// Interleaves units of `UNIT` bytes of two vectors: the lower halves of each lane, and the upper halves.
    ///
    /// # Safety
    /// The CPU must have the instructions of these vectors.
    unsafe fn unpack<const UNIT: usize>(self, other: Self) -> (Self, Self);
}

/// Interleaves the bytes of `N` vectors within 128-bit lanes, in log2(N) steps: bytes, then pairs, then fours.
///
/// # Safety
/// As [`Unpack::unpack`].
#[inline(always)]
pub(crate) unsafe fn interleave<V: Unpack, const N: usize>(mut vectors: [V; N]) -> [V; N] {
    // SAFETY: as of this function.
    unsafe {
        if N >= 2 {
            vectors = interleave_step::<V, N, 1>(vectors);
        }
        if N >= 4 {
            vectors = interleave_step::<V, N, 2>(vectors);
        }
        if N >= 8 {
            vectors = interleave_step::<V, N, 4>(vectors);
        }
    }
    vectors
}

/// Interleaves units of `UNIT` bytes of vectors whose indices differ by `UNIT`.
///
/// # Safety
/// As [`Unpack::unpack`].
#[inline(always)]
unsafe fn interleave_step<V: Unpack, const N: usize, const UNIT: usize>(vectors: [V; N]) -> [V; N] {
    let mut interleaved = vectors;
    let mut pair = 0;
    while pair < N / 2 {
        let (group, j) = (pair / UNIT * 2 * UNIT, pair % UNIT);
        // SAFETY: as of this function.
        let (low, high) = unsafe { vectors[group + j].unpack::<UNIT>(vectors[group + UNIT + j]) };
        (interleaved[group + 2 * j], interleaved[group + 2 * j + 1]) = (low, high);
        pair += 1;
    }
    interleaved
}
