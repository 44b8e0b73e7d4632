//! Elements in memory: unsigned integers of 1, 2, 4 or 8 bytes, little-endian, at any alignment.
//!
//! Lanes never see `f32` or `f64` slices (`docs/kernels.md §4.1`). A byte buffer is viewed as arrays of bytes, which
//! the compiler loads like the integer, so no view needs `unsafe` or an aligned buffer.

/// An element as stored in a buffer.
pub(crate) trait Slot: Copy + Send + Sync + std::fmt::Debug + 'static {
    const BYTES: usize;
    type Bytes: Copy;

    fn view(bytes: &[u8]) -> &[Self::Bytes];
    fn view_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    fn load(bytes: Self::Bytes) -> Self;
    fn store(self) -> Self::Bytes;

    /// Returns the element, zero-extended.
    fn wide(self) -> u64;
    /// Returns the element, sign-extended.
    fn sign_extended(self) -> i64;
    /// Returns the element in the low bits of `value`.
    fn low(value: u64) -> Self;
}

macro_rules! slot {
    ($($unsigned:ty, $signed:ty, $bytes:literal;)*) => {$(
        impl Slot for $unsigned {
            const BYTES: usize = $bytes;
            type Bytes = [u8; $bytes];
            #[inline(always)]
            fn view(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks().0
            }
            #[inline(always)]
            fn view_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
                bytes.as_chunks_mut().0
            }
            #[inline(always)]
            fn load(bytes: Self::Bytes) -> Self {
                <$unsigned>::from_le_bytes(bytes)
            }
            #[inline(always)]
            fn store(self) -> Self::Bytes {
                self.to_le_bytes()
            }
            #[inline(always)]
            fn wide(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn sign_extended(self) -> i64 {
                self as $signed as i64
            }
            #[inline(always)]
            fn low(value: u64) -> Self {
                value as $unsigned
            }
        }
    )*};
}

slot! {
    u8, i8, 1;
    u16, i16, 2;
    u32, i32, 4;
    u64, i64, 8;
}
