//! [`both`] maps the two elements of a pair. The compiler takes a hundred lines to simplify each call of `map` of
//! arrays.

#[inline(always)]
pub(super) fn both<T, U>([first, second]: [T; 2], of: impl Fn(T) -> U) -> [U; 2] {
    [of(first), of(second)]
}
