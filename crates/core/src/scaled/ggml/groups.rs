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

/// Largest value above zero, else 0.
#[inline(always)]
pub(super) fn largest(of: &[f32]) -> f32 {
    of.iter().fold(0.0, |largest, x| if *x > largest { *x } else { largest })
}

/// First value of the largest magnitude; 0 if none is above zero.
#[inline(always)]
pub(super) fn farthest(of: &[f32]) -> f32 {
    let magnitude = of.iter().fold(0.0f32, |most, x| if x.abs() > most { x.abs() } else { most });
    of.iter().copied().find(|x| x.abs() == magnitude && magnitude > 0.0).unwrap_or(0.0)
}
