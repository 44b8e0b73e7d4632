//! Loops over blocks of 16 or 32 elements.

/// Prefetches operands of later blocks. A loop over short blocks that does so is compiled as written, each block in
/// vectors of its elements, not as one that takes an element of each of several blocks in a vector, and scatters them.
#[inline(always)]
pub(super) fn alone<const N: usize>(operand: &[u8; N]) {
    #[cfg(target_arch = "x86_64")]
    crate::x86::prefetch(operand.as_ptr().wrapping_add(256));
    #[cfg(not(target_arch = "x86_64"))]
    let _ = operand;
}
