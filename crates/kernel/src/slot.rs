//! Elements in memory: unsigned integers of 1, 2, 4 or 8 bytes, little-endian, at any alignment.
//!
//! A byte buffer is viewed as arrays of bytes, without `unsafe` or an aligned buffer; the compiler loads an array like
//! an integer. Lanes use no `f32` or `f64` slices (`docs/kernels.md §4.1`).

pub(crate) trait Slot: Copy + Send + Sync + std::fmt::Debug + 'static {
    const BYTES: usize;
    type Bytes: Copy;

    fn view(bytes: &[u8]) -> &[Self::Bytes];
    fn view_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    fn load(bytes: Self::Bytes) -> Self;
    fn store(self) -> Self::Bytes;

    fn wide(self) -> u64;
    fn sign_extended(self) -> i64;
    /// Element from the low bits of `value`.
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
