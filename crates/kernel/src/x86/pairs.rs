//! A function of both elements of a pair, like `map` of arrays, which costs the compiler a hundred lines to simplify in
//! each call.

/// Returns the results of a function for both elements.
#[inline(always)]
pub(super) fn both<T, U>([first, second]: [T; 2], of: impl Fn(T) -> U) -> [U; 2] {
    [of(first), of(second)]
}
