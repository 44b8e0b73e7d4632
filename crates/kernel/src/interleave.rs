//! Interleaving of the bytes of vectors. The vectors may have any width, and belong to any architecture.

/// Vector whose bytes can be interleaved within 128-bit lanes.
pub(crate) trait Unpack: Copy {
    /// Interleaves units of `UNIT` bytes of two vectors. Returns the lower halves of each lane, and the upper halves.
    ///
    /// # Safety
    /// The CPU must have the instructions for these vectors.
    unsafe fn unpack<const UNIT: usize>(self, other: Self) -> (Self, Self);
}

/// Interleaves the bytes of `N` vectors within 128-bit lanes, in log2(N) steps: bytes, then pairs, then fours.
///
/// # Safety
/// The CPU must have the instructions for these vectors.
#[inline(always)]
pub(crate) unsafe fn interleave<V: Unpack, const N: usize>(mut vectors: [V; N]) -> [V; N] {
    // SAFETY: the caller guarantees the instructions.
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

/// Interleaves units of `UNIT` bytes in pairs of vectors whose indices differ by `UNIT`.
///
/// # Safety
/// The CPU must have the instructions for these vectors.
#[inline(always)]
unsafe fn interleave_step<V: Unpack, const N: usize, const UNIT: usize>(vectors: [V; N]) -> [V; N] {
    let mut interleaved = vectors;
    let mut pair = 0;
    while pair < N / 2 {
        let (group, j) = (pair / UNIT * 2 * UNIT, pair % UNIT);
        // SAFETY: the caller guarantees the instructions.
        let (low, high) = unsafe { vectors[group + j].unpack::<UNIT>(vectors[group + UNIT + j]) };
        (interleaved[group + 2 * j], interleaved[group + 2 * j + 1]) = (low, high);
        pair += 1;
    }
    interleaved
}
