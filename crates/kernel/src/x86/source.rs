//! Sources of hand-written kernels: one type for each way to read elements as f32, exactly or rounded to odd
//! (`docs/kernels.md §2.6`), for both widths of vectors. A loader computes the same as the lane of that name.

use std::arch::x86_64::{__m256i, __m512i};
use std::fmt::Debug;

/// Elements of a type.
pub(crate) trait Source: Copy + Debug + Send + Sync + 'static {
    /// Bytes of an element.
    const BYTES: usize;
}

/// A source that is read with vectors of 512 bits.
pub(crate) trait Source512: Source {
    /// Loads 16 elements as f32.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`](crate::level::Avx512).
    unsafe fn load(bytes: &[u8]) -> __m512i;

    /// Loads as [`load`](Source512::load) does, in a loop that waits for memory: with fewer branches on elements, even
    /// if with more instructions. After a mispredicted branch, the following lines are requested late.
    ///
    /// # Safety
    /// As [`load`](Source512::load).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn load_from_memory(bytes: &[u8]) -> __m512i {
        // SAFETY: this function has the features.
        unsafe { Self::load(bytes) }
    }
}

/// A source that is read with vectors of 256 bits.
pub(crate) trait Source256: Source {
    /// Loads eight elements as f32.
    ///
    /// # Safety
    /// Needs the features of [`Avx2`](crate::level::Avx2).
    unsafe fn load(bytes: &[u8]) -> __m256i;
}

macro_rules! sources {
    ($($(#[$doc:meta])* $name:ident, $bytes:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl Source for $name {
            const BYTES: usize = $bytes;
        }
    )*};
}

sources! {
    /// The intermediate itself.
    F32, 4;
    Bf16, 2;
    F16, 2;
    /// f64, rounded to odd (§4.11).
    F64, 8;
    /// f64, rounded to odd or reduced (§4.12).
    F64Reduced, 8;
}

/// An integer, exact or rounded to odd (§4.13).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integer<const BYTES: usize, const SIGNED: bool>;

impl<const BYTES: usize, const SIGNED: bool> Source for Integer<BYTES, SIGNED> {
    const BYTES: usize = BYTES;
}
