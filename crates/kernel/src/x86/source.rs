//! Sources of hand-written kernels for both widths of vectors. Each type reads elements as f32 in one way, exactly or
//! rounded to odd (`docs/kernels.md §2.6`). A loader computes what the lane of that name computes.

use std::arch::x86_64::{__m256i, __m512i};
use std::fmt::Debug;

pub(crate) trait Source: Copy + Debug + Send + Sync + 'static {
    const BYTES: usize;
}

pub(crate) trait Source512: Source {
    /// Loads 16 elements as f32.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`](crate::level::Avx512).
    unsafe fn load(bytes: &[u8]) -> __m512i;

    /// Loads 16 elements as f32, in a loop that waits for memory. This loader has fewer branches on elements than
    /// [`load`](Source512::load), and may take more instructions. After a mispredicted branch, the following lines
    /// would be requested late.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`](crate::level::Avx512).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn load_from_memory(bytes: &[u8]) -> __m512i {
        // SAFETY: this function has the features.
        unsafe { Self::load(bytes) }
    }
}

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
    /// f32, which needs no conversion.
    F32, 4;
    Bf16, 2;
    F16, 2;
    /// f64, rounded to odd (§4.11).
    F64, 8;
    /// f64, rounded to odd or reduced (§4.12).
    F64Reduced, 8;
}

/// An integer that becomes f32 exactly or rounded to odd (§4.13).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integer<const BYTES: usize, const SIGNED: bool>;

impl<const BYTES: usize, const SIGNED: bool> Source for Integer<BYTES, SIGNED> {
    const BYTES: usize = BYTES;
}
