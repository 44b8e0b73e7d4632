//! Both of a pair: as `map` of arrays, of which the compiler has a hundred lines to simplify for each call.

/// The results of a function for both.
#[inline(always)]
pub(super) fn both<T, U>([first, second]: [T; 2], of: impl Fn(T) -> U) -> [U; 2] {
    [of(first), of(second)]
}
