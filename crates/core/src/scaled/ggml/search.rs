//! Searches for the scale of a group. Each keeps the candidate with the least weighted error, or the first of equals.
//!
//! Each search follows a paragraph of `docs/spec/checkpoints.md §9.11` and the functions of ggml that it names here. The
//! order of operations is part of the rule.

use super::arithmetic::{limited, nearest, square_root};
use super::groups::{Group, Lanes, Mask, dot, each, sum, times};

/// A group whose largest magnitude is below this is zero.
pub(super) const ZERO_BELOW: f32 = 1e-15;

/// Scales and codes of `L` groups.
pub(super) struct Fit<const N: usize, const L: usize> {
    pub scale: Lanes<L>,
    /// Number that is subtracted from all values: the minimum of the group, with the sign changed.
    pub offset: Lanes<L>,
    pub codes: [[u8; L]; N],
}

impl<const N: usize, const L: usize> Fit<N, L> {
    /// Stored codes are `code + half`. Groups that are not in `found` have the scale 0 and stored codes of 0.
    #[inline(always)]
    fn new(scale: Lanes<L>, offset: Lanes<L>, found: Mask<L>, codes: &Group<N, L>, half: i32) -> Fit<N, L> {
        let mut stored = [[0; L]; N];
        for (stored, codes) in stored.iter_mut().zip(codes) {
            let codes = found.pick(*codes, Lanes::all(-half as f32));
            for (stored, code) in stored.iter_mut().zip(codes.0) {
                *stored = (code as i32 + half) as u8;
            }
        }
        Fit { scale: found.pick(scale, Lanes::ZERO), offset, codes: stored }
    }
}

/// Search for the scale of groups of `N` elements. Without weights, each search derives them from `x`.
pub(super) trait Search<const N: usize> {
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L>;
}

/// Search for a scale and a minimum: `x = scale * code + minimum`, `code` from 0 to `most`, `minimum` at most 0.
///
/// The candidates divide the range that is left above the minimum into `most + first + step * k` parts, k = 0, 1, ..,
/// `last`. For the codes of each, weighted least squares give scale and minimum.
///
/// Source: "Scale and minimum"; `make_qkx2_quants`, and with given weights `make_qkx3_quants`.
pub(super) struct WithMinimum {
    pub most: i32,
    pub first: f32,
    pub step: f32,
    pub last: u8,
    /// If true, magnitudes of errors are summed, and the weight of an element is its magnitude. Otherwise squares are
    /// summed, and the weight is the magnitude plus the root of the group's mean square.
    pub sums_magnitudes: bool,
}

/// Values of codes: `scale * code + minimum`.
struct Line<const L: usize> {
    scale: Lanes<L>,
    minimum: Lanes<L>,
}

impl<const N: usize> Search<N> for WithMinimum {
    #[inline(always)]
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L> {
        let weights = &weights.map_or_else(|| self.weights(x), |weights| *weights);
        let elements = Elements::new(x, weights);
        let Elements { least, largest, .. } = elements;
        let inverse = Lanes::all(self.most as f32) / (largest - least);
        let mut line = Line { scale: Lanes::all(1.0) / inverse, minimum: least };
        let limits = [0, self.most];
        let mut best_codes = codes(x, inverse, least, limits);
        let mut best = self.error(&elements, &best_codes, &line);
        for k in 0..=self.last {
            let parts = self.first + self.step * f32::from(k) + self.most as f32;
            let inverse = Lanes::all(parts) / (largest - line.minimum);
            let tried = codes(x, inverse, line.minimum, limits);
            let (solution, exists) = elements.solve(&tried);
            let error = self.error(&elements, &tried, &solution);
            let takes = exists & best.is_above(error);
            best = takes.pick(error, best);
            line.scale = takes.pick(solution.scale, line.scale);
            line.minimum = takes.pick(solution.minimum, line.minimum);
            replace(&mut best_codes, &tried, takes);
        }
        let has_range = largest.differs(least);
        Fit::new(line.scale, -has_range.pick(line.minimum, least), has_range, &best_codes, 0)
    }
}

/// Replaces the codes of groups by those that were tried, where the groups take them.
#[inline(always)]
fn replace<const N: usize, const L: usize>(codes: &mut Group<N, L>, tried: &Group<N, L>, takes: Mask<L>) {
    for (codes, tried) in codes.iter_mut().zip(tried) {
        *codes = takes.pick(*tried, *codes);
    }
}

impl WithMinimum {
    /// Search with given weights.
    pub const fn weighted(most: i32) -> WithMinimum {
        WithMinimum { most, first: -0.9, step: 0.05, last: 36, sums_magnitudes: false }
    }

    #[inline(always)]
    fn weights<const N: usize, const L: usize>(&self, x: &Group<N, L>) -> Group<N, L> {
        let mean = if self.sums_magnitudes { Lanes::ZERO } else { (dot(x, x) / Lanes::all(N as f32)).map(square_root) };
        each(x, |x| mean + x.map(f32::abs))
    }

    /// Weighted sum of the errors of codes.
    #[inline(always)]
    fn error<const N: usize, const L: usize>(
        &self,
        elements: &Elements<'_, N, L>,
        codes: &Group<N, L>,
        line: &Line<L>,
    ) -> Lanes<L> {
        let mut sum = Lanes::ZERO;
        for ((x, w), code) in elements.x.iter().zip(elements.weights).zip(codes) {
            let error = line.scale * *code + line.minimum - *x;
            sum = sum + *w * if self.sums_magnitudes { error.map(f32::abs) } else { error * error };
        }
        sum
    }
}

/// Elements of groups, their weights, and sums of both.
struct Elements<'a, const N: usize, const L: usize> {
    x: &'a Group<N, L>,
    weights: &'a Group<N, L>,
    /// Least element, at most 0.
    least: Lanes<L>,
    largest: Lanes<L>,
    sum_w: Lanes<L>,
    sum_wx: Lanes<L>,
}

impl<'a, const N: usize, const L: usize> Elements<'a, N, L> {
    #[inline(always)]
    fn new(x: &'a Group<N, L>, weights: &'a Group<N, L>) -> Self {
        let (mut least, mut largest, mut sum_w, mut sum_wx) = (x[0], x[0], weights[0], weights[0] * x[0]);
        for (x, w) in x.iter().zip(weights).skip(1) {
            least = least.is_above(*x).pick(*x, least);
            largest = x.is_above(largest).pick(*x, largest);
            sum_w = sum_w + *w;
            sum_wx = sum_wx + *w * *x;
        }
        least = least.is_above(Lanes::ZERO).pick(Lanes::ZERO, least);
        Elements { x, weights, least, largest, sum_w, sum_wx }
    }

    /// Line of least squares for given codes, with a minimum of at most 0, and whether there is one.
    #[inline(always)]
    fn solve(&self, codes: &Group<N, L>) -> (Line<L>, Mask<L>) {
        let Elements { sum_w, sum_wx, .. } = *self;
        let weighted = times(self.weights, codes);
        let (sum_c, sum_cc, sum_xc) = (sum(&weighted), dot(&weighted, codes), dot(&weighted, self.x));
        let determinant = sum_w * sum_cc - sum_c * sum_c;
        let free_scale = (sum_w * sum_xc - sum_wx * sum_c) / determinant;
        let free_minimum = (sum_cc * sum_wx - sum_c * sum_xc) / determinant;
        let is_above = free_minimum.is_above(Lanes::ZERO);
        let scale = is_above.pick(sum_xc / sum_cc, free_scale);
        let minimum = is_above.pick(Lanes::ZERO, free_minimum);
        (Line { scale, minimum }, determinant.is_above(Lanes::ZERO))
    }
}

/// First value of the largest magnitude of each group, and whether the group is not zero.
#[inline(always)]
pub(super) fn farthest_of_groups<const N: usize, const L: usize>(x: &Group<N, L>) -> (Lanes<L>, Mask<L>) {
    let (mut most, mut farthest) = (Lanes::ZERO, Lanes::ZERO);
    for x in x {
        let magnitude = x.map(f32::abs);
        let is_more = magnitude.is_above(most);
        most = is_more.pick(magnitude, most);
        farthest = is_more.pick(*x, farthest);
    }
    (farthest, is_nonzero(most))
}

#[inline(always)]
fn is_nonzero<const L: usize>(most: Lanes<L>) -> Mask<L> {
    Mask::of(|l| most.0[l] >= ZERO_BELOW)
}

/// Codes within limits: `(x - minimum) * inverse`.
#[inline(always)]
fn codes<const N: usize, const L: usize>(
    x: &Group<N, L>,
    inverse: Lanes<L>,
    minimum: Lanes<L>,
    [least, most]: [i32; 2],
) -> Group<N, L> {
    each(x, |x| (inverse * (x - minimum)).map(|x| limited(x, least, most) as f32))
}

/// Weighted sums of `x * c` and `c * c`, where `c` is the code or value for an element.
pub(super) struct Products<const L: usize> {
    pub xc: Lanes<L>,
    pub cc: Lanes<L>,
}

impl<const L: usize> Products<L> {
    #[inline(always)]
    fn of_codes<const N: usize>(weights: &Group<N, L>, weighted_x: &Group<N, L>, codes: &Group<N, L>) -> Products<L> {
        Products { xc: dot(weighted_x, codes), cc: dot(&times(weights, codes), codes) }
    }

    /// Takes the scale of least squares where it lowers the error. Returns the lanes that took it.
    #[inline(always)]
    pub fn improve_scale(&self, scale: &mut Lanes<L>, best: &mut Lanes<L>) -> Mask<L> {
        let Products { xc, cc } = *self;
        let takes = cc.is_above(Lanes::ZERO) & (xc * xc).is_above(*best * cc);
        *scale = takes.pick(xc / cc, *scale);
        *best = takes.pick(*scale * xc, *best);
        takes
    }
}

/// Search for a scale: `x = scale * code`, `code` from `-half` to `half - 1`. The weight is the square of `x`.
///
/// The candidates put the value of the largest magnitude at `-half`, and at `-(half + 0.1 * k)`, k = -9 .. 9. For the
/// codes of each, least squares give the scale.
///
/// Source: "Scale"; `make_qx_quants`, and by element `make_q3_quants`.
pub(super) struct Symmetric {
    pub half: i32,
    /// If true, there is only the first candidate, whose codes are then [improved](Improvement).
    pub by_element: bool,
}

impl Symmetric {
    pub const fn of(half: i32) -> Symmetric {
        Symmetric { half, by_element: false }
    }
}

impl<const N: usize> Search<N> for Symmetric {
    #[inline(always)]
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L> {
        let (half, (farthest, is_nonzero)) = (self.half, farthest_of_groups(x));
        let weights = weights.map_or_else(|| times(x, x), |weights| *weights);
        let codes_of = |inverse| codes(x, inverse, Lanes::ZERO, [-half, half - 1]);
        let mut codes = codes_of(Lanes::all(-half as f32) / farthest);
        if self.by_element {
            let scale = Improvement::Signed.run(x, &weights, &mut codes, |x| limited(x, -half, half - 1));
            return Fit::new(scale, Lanes::ZERO, is_nonzero, &codes, half);
        }
        let weighted_x = times(&weights, x);
        let Products { xc, cc } = Products::of_codes(&weights, &weighted_x, &codes);
        let mut scale = cc.differs(Lanes::ZERO).pick(xc / cc, Lanes::ZERO);
        let mut best = scale * xc;
        for k in (-9..=9i8).filter(|k| *k != 0) {
            let tried = codes_of(Lanes::all(-(half as f32 + 0.1 * f32::from(k))) / farthest);
            let takes = Products::of_codes(&weights, &weighted_x, &tried).improve_scale(&mut scale, &mut best);
            replace(&mut codes, &tried, takes);
        }
        Fit::new(scale, Lanes::ZERO, is_nonzero, &codes, half)
    }
}

/// Improvement of codes one by one, in at most 5 rounds. ggml has it twice, with small differences.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Improvement {
    /// `make_q3_quants`.
    Signed,
    /// `make_qp_quants`. A negative code is kept as its low byte.
    Bytes,
}

impl Improvement {
    /// Improves the codes; returns the scale of least squares for them.
    #[inline(always)]
    fn run<const N: usize, const L: usize>(
        self,
        x: &Group<N, L>,
        weights: &Group<N, L>,
        codes: &mut Group<N, L>,
        code_of: impl Fn(f32) -> i32,
    ) -> Lanes<L> {
        let is_signed = self == Improvement::Signed;
        let kept = |code: f32| if is_signed { code } else { f32::from(code as i32 as u8) };
        let Products { mut xc, mut cc } = Products::of_codes(weights, &times(weights, x), codes);
        *codes = each(codes, |codes| codes.map(kept));
        // Once a round changes nothing, further rounds do not.
        let (mut round, mut changes) = (0, true);
        while round < 5 && changes {
            (round, changes) = (round + 1, false);
            for ((x, w), code) in x.iter().zip(weights).zip(&mut *codes) {
                let (x, w) = (*x, *w);
                let others_xc = xc - w * x * *code;
                let others_cc = cc - w * *code * *code;
                let new = (x * others_cc / others_xc).map(|x| code_of(x) as f32);
                let new_xc = others_xc + w * x * new;
                let new_cc = others_cc + w * new * new;
                let is_better = (new_xc * new_xc * cc).is_above(xc * xc * new_cc);
                let squares = if is_signed { new_cc } else { others_cc };
                let exists = others_xc.is_above(Lanes::ZERO) & squares.is_above(Lanes::ZERO);
                let takes = exists & new.differs(*code) & is_better;
                changes |= takes.any();
                *code = takes.pick(new.map(kept), *code);
                xc = takes.pick(new_xc, xc);
                cc = takes.pick(new_cc, cc);
            }
        }
        cc.is_above(Lanes::ZERO).pick(xc / cc, Lanes::ZERO)
    }
}

/// Search for a scale of numbers above 0: `x = scale * code`, `code` from 0 to `most`.
///
/// The candidates put the largest number at `most + 0.1 * k`, k = -4 .. 4. The codes of the one with the least error are
/// then [improved](Improvement). Codes are bytes.
///
/// Source: "Scales x and minima above 0"; `make_qp_quants`.
pub(super) struct Positive {
    pub most: i32,
}

impl<const N: usize> Search<N> for Positive {
    #[inline(always)]
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L> {
        let weights = &weights.map_or([Lanes::all(1.0); N], |weights| *weights);
        let largest = x.iter().fold(Lanes::ZERO, |largest, x| x.is_above(largest).pick(*x, largest));
        let (mut inverse, mut best) = (Lanes::ZERO, Lanes::ZERO);
        for k in [0, -4, -3, -2, -1, 1, 2, 3, 4i8] {
            let tried = Lanes::all(0.1 * f32::from(k) + self.most as f32) / largest;
            let code = |x: f32| match nearest(x) {
                // ggml stores the codes of the first candidate in a `uint8_t`.
                code if k == 0 => f32::from(code as u8),
                code => code.min(self.most) as f32,
            };
            let mut error = Lanes::ZERO;
            for (x, w) in x.iter().zip(weights) {
                let difference = *x - Lanes::all(1.0) / tried * (tried * *x).map(code);
                error = error + *w * difference * difference;
            }
            if k == 0 {
                (best, inverse) = (error, tried);
            } else {
                let takes = best.is_above(error);
                (best, inverse) = (takes.pick(error, best), takes.pick(tried, inverse));
            }
        }
        let code_of = |x| nearest(x).min(self.most);
        let mut codes = each(x, |x| (inverse * x).map(|x| code_of(x) as f32));
        let scale = Improvement::Bytes.run(x, weights, &mut codes, code_of);
        Fit::new(scale, Lanes::ZERO, is_nonzero(largest), &codes, 0)
    }
}
