//! Elements of `L` groups side by side.

use core::ops::{Add, BitAnd, Div, Mul, Neg, Sub};

/// A number of each of `L` groups.
#[derive(Clone, Copy)]
pub(super) struct Lanes<const L: usize>(pub [f32; L]);

/// Whether something is so, for each of `L` groups.
#[derive(Clone, Copy)]
pub(super) struct Mask<const L: usize>([bool; L]);

/// `N` elements of each of `L` groups.
pub(super) type Group<const N: usize, const L: usize> = [Lanes<L>; N];

macro_rules! operators {
    ($($operator:ident $function:ident)*) => {$(
        impl<const L: usize> $operator for Lanes<L> {
            type Output = Lanes<L>;
            #[inline(always)]
            fn $function(mut self, other: Lanes<L>) -> Lanes<L> {
                for l in 0..L {
                    self.0[l] = self.0[l].$function(other.0[l]);
                }
                self
            }
        }
    )*};
}
operators!(Add add Sub sub Mul mul Div div);

impl<const L: usize> Neg for Lanes<L> {
    type Output = Lanes<L>;
    #[inline(always)]
    fn neg(self) -> Lanes<L> {
        self.map(|x| -x)
    }
}

impl<const L: usize> Lanes<L> {
    pub const ZERO: Lanes<L> = Lanes::all(0.0);

    #[inline(always)]
    pub const fn all(x: f32) -> Lanes<L> {
        Lanes([x; L])
    }

    #[inline(always)]
    pub fn map(mut self, of: impl Fn(f32) -> f32) -> Lanes<L> {
        for x in &mut self.0 {
            *x = of(*x);
        }
        self
    }

    #[inline(always)]
    pub fn is_above(self, other: Lanes<L>) -> Mask<L> {
        Mask::of(|l| self.0[l] > other.0[l])
    }

    #[inline(always)]
    pub fn differs(self, other: Lanes<L>) -> Mask<L> {
        Mask::of(|l| self.0[l] != other.0[l])
    }
}

impl<const L: usize> Mask<L> {
    #[inline(always)]
    pub fn of(is_so: impl Fn(usize) -> bool) -> Mask<L> {
        let mut mask = [false; L];
        for (l, mask) in mask.iter_mut().enumerate() {
            *mask = is_so(l);
        }
        Mask(mask)
    }

    /// `a` where it is so, else `b`.
    #[inline(always)]
    pub fn pick(self, a: Lanes<L>, mut b: Lanes<L>) -> Lanes<L> {
        for l in 0..L {
            b.0[l] = if self.0[l] { a.0[l] } else { b.0[l] };
        }
        b
    }

    #[inline(always)]
    pub fn any(self) -> bool {
        self.0.iter().fold(false, |any, is_so| any | is_so)
    }
}

impl<const L: usize> BitAnd for Mask<L> {
    type Output = Mask<L>;
    #[inline(always)]
    fn bitand(self, other: Mask<L>) -> Mask<L> {
        Mask::of(|l| self.0[l] & other.0[l])
    }
}

/// Groups `first .. first + L` of a block.
#[inline(always)]
pub(super) fn side_by_side<const N: usize, const L: usize>(x: &[f32], first: usize) -> Group<N, L> {
    let x = &x[first * N..][..N * L];
    let mut group = [Lanes::ZERO; N];
    for (i, lanes) in group.iter_mut().enumerate() {
        for (lane, value) in lanes.0.iter_mut().enumerate() {
            *value = x[lane * N + i];
        }
    }
    group
}

/// Products of elements.
#[inline(always)]
pub(super) fn times<const N: usize, const L: usize>(a: &Group<N, L>, b: &Group<N, L>) -> Group<N, L> {
    let mut products = *a;
    for (product, b) in products.iter_mut().zip(b) {
        *product = *product * *b;
    }
    products
}

/// Sums of products from the first element on, beginning at 0.
#[inline(always)]
pub(super) fn dot<const N: usize, const L: usize>(a: &Group<N, L>, b: &Group<N, L>) -> Lanes<L> {
    a.iter().zip(b).fold(Lanes::ZERO, |sum, (a, b)| sum + *a * *b)
}

/// Sums of elements, as of products.
#[inline(always)]
pub(super) fn sum<const N: usize, const L: usize>(a: &Group<N, L>) -> Lanes<L> {
    a.iter().fold(Lanes::ZERO, |sum, a| sum + *a)
}

/// Elements of another group, each from an element of `x`.
#[inline(always)]
pub(super) fn each<const N: usize, const L: usize>(x: &Group<N, L>, of: impl Fn(Lanes<L>) -> Lanes<L>) -> Group<N, L> {
    let mut group = *x;
    for x in &mut group {
        *x = of(*x);
    }
    group
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
