//! Elements of `L` groups side by side.

/// `N` elements of each of `L` groups.
pub(super) type Group<const N: usize, const L: usize> = [[f32; L]; N];

/// Groups `first .. first + L` of a block.
#[inline(always)]
pub(super) fn side_by_side<const N: usize, const L: usize>(x: &[f32], first: usize) -> Group<N, L> {
    let x = &x[first * N..][..N * L];
    let mut group = [[0.0; L]; N];
    for (i, lanes) in group.iter_mut().enumerate() {
        for (lane, value) in lanes.iter_mut().enumerate() {
            *value = x[lane * N + i];
        }
    }
    group
}

/// Products of elements.
#[inline(always)]
pub(super) fn times<const N: usize, const L: usize>(a: &Group<N, L>, b: &Group<N, L>) -> Group<N, L> {
    let mut products = [[0.0; L]; N];
    for ((product, a), b) in products.iter_mut().zip(a).zip(b) {
        for l in 0..L {
            product[l] = a[l] * b[l];
        }
    }
    products
}

/// Sums of elements from the first on, beginning at 0.
#[inline(always)]
pub(super) fn sum<const N: usize, const L: usize>(a: &Group<N, L>) -> [f32; L] {
    let mut sum = [0.0; L];
    for a in a {
        for l in 0..L {
            sum[l] += a[l];
        }
    }
    sum
}

/// Sums of products.
#[inline(always)]
pub(super) fn dot<const N: usize, const L: usize>(a: &Group<N, L>, b: &Group<N, L>) -> [f32; L] {
    let mut sum = [0.0; L];
    for (a, b) in a.iter().zip(b) {
        for l in 0..L {
            sum[l] += a[l] * b[l];
        }
    }
    sum
}

/// Largest value above zero, else 0.
#[inline(always)]
pub(super) fn largest(of: &[f32]) -> f32 {
    of.iter().fold(0.0, |largest, x| if *x > largest { *x } else { largest })
}

/// First value of the largest magnitude; 0 if none is above zero. NaN does not count.
#[inline(always)]
pub(super) fn farthest(of: &[f32]) -> f32 {
    let magnitude = reduced(of, 0.0, |most, x| if x.abs() > most { x.abs() } else { most });
    of.iter().copied().find(|x| x.abs() == magnitude && magnitude > 0.0).unwrap_or(0.0)
}

/// Least and largest of finite values; among zeros the first.
#[inline(always)]
pub(super) fn range(of: &[f32; 32]) -> (f32, f32) {
    let least = reduced(of, f32::MAX, |least, x| if x < least { x } else { least });
    let largest = reduced(of, -f32::MAX, |largest, x| if x > largest { x } else { largest });
    (first_zero(least, of), first_zero(largest, of))
}

/// `x`, or the first zero of the values if `x` is zero.
#[inline(always)]
fn first_zero(x: f32, of: &[f32; 32]) -> f32 {
    if x == 0.0 { of.iter().copied().find(|of| *of == x).unwrap_or(x) } else { x }
}

/// Combines eight values at a time, for operations whose result depends on the order only in signs of zeros.
#[inline(always)]
fn reduced(of: &[f32], start: f32, pick: impl Fn(f32, f32) -> f32) -> f32 {
    let (mut lanes, (groups, rest)) = ([start; 8], of.as_chunks::<8>());
    for group in groups {
        for (lane, x) in lanes.iter_mut().zip(group) {
            *lane = pick(*lane, *x);
        }
    }
    lanes.iter().chain(rest).fold(start, |all, x| pick(all, *x))
}
