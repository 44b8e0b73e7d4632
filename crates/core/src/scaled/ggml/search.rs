//! Searches for the scale of a group. Each keeps the candidate with the least weighted error, or the first of equals.
//!
//! Each search follows a paragraph of `docs/spec/checkpoints.md §9.11` and the functions of ggml that it names here. The
//! order of operations is part of the rule.

use super::arithmetic::{limited, nearest, square_root};
use super::groups::{Group, dot, sum, times};

/// A group whose largest magnitude is below this is zero.
pub(super) const ZERO_BELOW: f32 = 1e-15;

/// Scales and codes of `L` groups.
pub(super) struct Fit<const N: usize, const L: usize> {
    pub scale: [f32; L],
    /// Number that is subtracted from all values: the minimum of the group, with the sign changed.
    pub offset: [f32; L],
    pub codes: [[u8; L]; N],
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
    scale: [f32; L],
    minimum: [f32; L],
}

impl<const N: usize> Search<N> for WithMinimum {
    #[inline(always)]
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L> {
        let weights = &weights.map_or_else(|| self.weights(x), |weights| *weights);
        let elements = Elements::new(x, weights);
        let Elements { least, largest, .. } = elements;
        let (mut inverse, mut line) = ([0.0; L], Line { scale: [0.0; L], minimum: least });
        for l in 0..L {
            inverse[l] = self.most as f32 / (largest[l] - least[l]);
            line.scale[l] = 1.0 / inverse[l];
        }
        let mut codes = self.codes(x, &inverse, &least);
        let mut best = self.error(&elements, &codes, &line);
        for k in 0..=self.last {
            for l in 0..L {
                let parts = self.first + self.step * f32::from(k) + self.most as f32;
                inverse[l] = parts / (largest[l] - line.minimum[l]);
            }
            let tried = self.codes(x, &inverse, &line.minimum);
            let solution = elements.solve(&tried);
            let error = self.error(&elements, &tried, &solution.line);
            let mut takes = [false; L];
            for l in 0..L {
                takes[l] = solution.exists[l] & (error[l] < best[l]);
                best[l] = if takes[l] { error[l] } else { best[l] };
                line.scale[l] = if takes[l] { solution.line.scale[l] } else { line.scale[l] };
                line.minimum[l] = if takes[l] { solution.line.minimum[l] } else { line.minimum[l] };
            }
            replace(&mut codes, &tried, &takes);
        }
        let mut is_flat = [false; L];
        let mut fit = Fit { scale: [0.0; L], offset: [0.0; L], codes: [[0; L]; N] };
        for l in 0..L {
            is_flat[l] = largest[l] == least[l];
            fit.scale[l] = if is_flat[l] { 0.0 } else { line.scale[l] };
            fit.offset[l] = -(if is_flat[l] { least[l] } else { line.minimum[l] });
        }
        for (stored, codes) in fit.codes.iter_mut().zip(&codes) {
            for l in 0..L {
                stored[l] = if is_flat[l] { 0 } else { codes[l] as u8 };
            }
        }
        fit
    }
}

/// Replaces the codes of groups by those that were tried, where the groups take them.
#[inline(always)]
fn replace<const N: usize, const L: usize>(codes: &mut Group<N, L>, tried: &Group<N, L>, takes: &[bool; L]) {
    for (codes, tried) in codes.iter_mut().zip(tried) {
        for l in 0..L {
            codes[l] = if takes[l] { tried[l] } else { codes[l] };
        }
    }
}

impl WithMinimum {
    /// Search with given weights.
    pub const fn weighted(most: i32) -> WithMinimum {
        WithMinimum { most, first: -0.9, step: 0.05, last: 36, sums_magnitudes: false }
    }

    #[inline(always)]
    fn weights<const N: usize, const L: usize>(&self, x: &Group<N, L>) -> Group<N, L> {
        let (mut sum, mut mean) = ([0.0; L], [0.0; L]);
        for x in x {
            for l in 0..L {
                sum[l] += x[l] * x[l];
            }
        }
        if !self.sums_magnitudes {
            for l in 0..L {
                mean[l] = square_root(sum[l] / N as f32);
            }
        }
        let mut weights = [[0.0; L]; N];
        for (weights, x) in weights.iter_mut().zip(x) {
            for l in 0..L {
                weights[l] = mean[l] + x[l].abs();
            }
        }
        weights
    }

    #[inline(always)]
    fn codes<const N: usize, const L: usize>(
        &self,
        x: &Group<N, L>,
        inverse: &[f32; L],
        minimum: &[f32; L],
    ) -> Group<N, L> {
        let mut codes = [[0.0; L]; N];
        for (codes, x) in codes.iter_mut().zip(x) {
            for l in 0..L {
                codes[l] = limited(inverse[l] * (x[l] - minimum[l]), 0, self.most) as f32;
            }
        }
        codes
    }

    /// Weighted sum of the errors of codes.
    #[inline(always)]
    fn error<const N: usize, const L: usize>(
        &self,
        elements: &Elements<'_, N, L>,
        codes: &Group<N, L>,
        line: &Line<L>,
    ) -> [f32; L] {
        let mut sum = [0.0; L];
        for ((x, w), code) in elements.x.iter().zip(elements.weights).zip(codes) {
            for l in 0..L {
                let error = line.scale[l] * code[l] + line.minimum[l] - x[l];
                sum[l] += w[l] * if self.sums_magnitudes { error.abs() } else { error * error };
            }
        }
        sum
    }
}

/// Elements of groups, their weights, and sums of both.
struct Elements<'a, const N: usize, const L: usize> {
    x: &'a Group<N, L>,
    weights: &'a Group<N, L>,
    /// Least element, at most 0.
    least: [f32; L],
    largest: [f32; L],
    sum_w: [f32; L],
    sum_wx: [f32; L],
}

/// Result of least squares.
struct Solution<const L: usize> {
    line: Line<L>,
    exists: [bool; L],
}

impl<'a, const N: usize, const L: usize> Elements<'a, N, L> {
    #[inline(always)]
    fn new(x: &'a Group<N, L>, weights: &'a Group<N, L>) -> Self {
        let (mut least, mut largest, mut sum_w, mut sum_wx) = (x[0], x[0], weights[0], [0.0; L]);
        for l in 0..L {
            sum_wx[l] = weights[0][l] * x[0][l];
        }
        for (x, w) in x.iter().zip(weights).skip(1) {
            for l in 0..L {
                least[l] = if x[l] < least[l] { x[l] } else { least[l] };
                largest[l] = if x[l] > largest[l] { x[l] } else { largest[l] };
                sum_w[l] += w[l];
                sum_wx[l] += w[l] * x[l];
            }
        }
        for least in &mut least {
            *least = if *least > 0.0 { 0.0 } else { *least };
        }
        Elements { x, weights, least, largest, sum_w, sum_wx }
    }

    /// Line of least squares for given codes, with a minimum of at most 0.
    #[inline(always)]
    fn solve(&self, codes: &Group<N, L>) -> Solution<L> {
        let weighted = times(self.weights, codes);
        let (sum_c, sum_cc, sum_xc) = (sum(&weighted), dot(&weighted, codes), dot(&weighted, self.x));
        let (mut line, mut exists) = (Line { scale: [0.0; L], minimum: [0.0; L] }, [false; L]);
        for l in 0..L {
            let determinant = self.sum_w[l] * sum_cc[l] - sum_c[l] * sum_c[l];
            exists[l] = determinant > 0.0;
            let free_scale = (self.sum_w[l] * sum_xc[l] - self.sum_wx[l] * sum_c[l]) / determinant;
            let free_minimum = (sum_cc[l] * self.sum_wx[l] - sum_c[l] * sum_xc[l]) / determinant;
            let is_above = free_minimum > 0.0;
            line.scale[l] = if is_above { sum_xc[l] / sum_cc[l] } else { free_scale };
            line.minimum[l] = if is_above { 0.0 } else { free_minimum };
        }
        Solution { line, exists }
    }
}

/// Ends of groups.
pub(super) struct Ends<const L: usize> {
    /// First value of the largest magnitude.
    pub farthest: [f32; L],
    /// Whether the largest magnitude is below [`ZERO_BELOW`].
    pub is_zero: [bool; L],
}

impl<const L: usize> Ends<L> {
    #[inline(always)]
    pub fn of<const N: usize>(x: &Group<N, L>) -> Ends<L> {
        let (mut most, mut farthest, mut is_zero) = ([0.0; L], [0.0; L], [false; L]);
        for x in x {
            for l in 0..L {
                let is_more = x[l].abs() > most[l];
                most[l] = if is_more { x[l].abs() } else { most[l] };
                farthest[l] = if is_more { x[l] } else { farthest[l] };
            }
        }
        for l in 0..L {
            is_zero[l] = most[l] < ZERO_BELOW;
        }
        Ends { farthest, is_zero }
    }

    /// Scales of the groups; 0 for groups of zero.
    #[inline(always)]
    pub fn scale(&self, mut scale: [f32; L]) -> [f32; L] {
        for (scale, is_zero) in scale.iter_mut().zip(&self.is_zero) {
            *scale = if *is_zero { 0.0 } else { *scale };
        }
        scale
    }

    /// Scale and stored codes, which are `code + half`, but 0 for groups of zero.
    #[inline(always)]
    fn fit<const N: usize>(&self, scale: [f32; L], codes: &Group<N, L>, half: i32) -> Fit<N, L> {
        let mut fit = Fit { scale: self.scale(scale), offset: [0.0; L], codes: [[0; L]; N] };
        for (stored, codes) in fit.codes.iter_mut().zip(codes) {
            for l in 0..L {
                stored[l] = if self.is_zero[l] { 0 } else { (codes[l] as i32 + half) as u8 };
            }
        }
        fit
    }
}

/// Codes from `-half` to `half - 1` for inverse scales.
#[inline(always)]
fn signed_codes<const N: usize, const L: usize>(x: &Group<N, L>, inverse: &[f32; L], half: i32) -> Group<N, L> {
    let mut codes = [[0.0; L]; N];
    for (codes, x) in codes.iter_mut().zip(x) {
        for l in 0..L {
            codes[l] = limited(inverse[l] * x[l], -half, half - 1) as f32;
        }
    }
    codes
}

/// Weighted sums of `x * c` and `c * c`, where `c` is the code or value for an element.
pub(super) struct Products<const L: usize> {
    pub xc: [f32; L],
    pub cc: [f32; L],
}

impl<const L: usize> Products<L> {
    #[inline(always)]
    fn of_codes<const N: usize>(weights: &Group<N, L>, weighted_x: &Group<N, L>, codes: &Group<N, L>) -> Products<L> {
        Products { xc: dot(weighted_x, codes), cc: dot(&times(weights, codes), codes) }
    }

    /// Takes the scale of least squares where it lowers the error. Returns the lanes that took it.
    #[inline(always)]
    pub fn improve_scale(&self, scale: &mut [f32; L], best: &mut [f32; L]) -> [bool; L] {
        let (Products { xc, cc }, mut takes) = (self, [false; L]);
        for l in 0..L {
            takes[l] = (cc[l] > 0.0) & (xc[l] * xc[l] > best[l] * cc[l]);
            scale[l] = if takes[l] { xc[l] / cc[l] } else { scale[l] };
            best[l] = if takes[l] { scale[l] * xc[l] } else { best[l] };
        }
        takes
    }
}

/// Search for a scale: `x = scale * code`, `code` from `-half` to `half - 1`. The weight is the square of `x`.
///
/// The candidates put the value of the largest magnitude at `-half`, and at `-(half + 0.1 * k)`, k = -9 .. 9. For the
/// codes of each, least squares give the scale.
///
/// Source: "Scale"; `make_qx_quants`.
pub(super) struct Symmetric {
    pub half: i32,
}

impl<const N: usize> Search<N> for Symmetric {
    #[inline(always)]
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L> {
        let (half, ends) = (self.half, Ends::of(x));
        let (farthest, mut inverse, mut scale, mut best) = (ends.farthest, [0.0; L], [0.0; L], [0.0; L]);
        for l in 0..L {
            inverse[l] = -half as f32 / farthest[l];
        }
        let mut codes = signed_codes(x, &inverse, half);
        let weights = weights.map_or_else(|| times(x, x), |weights| *weights);
        let weighted_x = times(&weights, x);
        let Products { xc, cc } = Products::of_codes(&weights, &weighted_x, &codes);
        for l in 0..L {
            scale[l] = if cc[l] == 0.0 { 0.0 } else { xc[l] / cc[l] };
            best[l] = scale[l] * xc[l];
        }
        for k in (-9..=9i8).filter(|k| *k != 0) {
            for l in 0..L {
                inverse[l] = -(half as f32 + 0.1 * f32::from(k)) / farthest[l];
            }
            let tried = signed_codes(x, &inverse, half);
            let takes = Products::of_codes(&weights, &weighted_x, &tried).improve_scale(&mut scale, &mut best);
            replace(&mut codes, &tried, &takes);
        }
        ends.fit(scale, &codes, half)
    }
}

/// As [`Symmetric`], with the first candidate only, whose codes are then [improved](Improvement).
///
/// Source: "Scale", of Q3_K; `make_q3_quants`.
pub(super) struct ByElement {
    pub half: i32,
}

impl<const N: usize> Search<N> for ByElement {
    #[inline(always)]
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L> {
        let (half, ends) = (self.half, Ends::of(x));
        let (farthest, mut inverse) = (ends.farthest, [0.0; L]);
        for l in 0..L {
            inverse[l] = -half as f32 / farthest[l];
        }
        let mut codes = signed_codes(x, &inverse, half);
        let weights = weights.map_or_else(|| times(x, x), |weights| *weights);
        let scale = Improvement::Signed.run(x, &weights, &mut codes, |x| limited(x, -half, half - 1));
        ends.fit(scale, &codes, half)
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
    ) -> [f32; L] {
        let is_signed = self == Improvement::Signed;
        let kept = |code: f32| if is_signed { code } else { f32::from(code as i32 as u8) };
        let Products { mut xc, mut cc } = Products::of_codes(weights, &times(weights, x), codes);
        codes.iter_mut().flatten().for_each(|code| *code = kept(*code));
        // Once a round changes nothing, further rounds do not.
        let (mut round, mut changes) = (0, true);
        while round < 5 && changes {
            (round, changes) = (round + 1, false);
            for ((x, w), code) in x.iter().zip(weights).zip(&mut *codes) {
                for l in 0..L {
                    let others_xc = xc[l] - w[l] * x[l] * code[l];
                    let others_cc = cc[l] - w[l] * code[l] * code[l];
                    let new = code_of(x[l] * others_cc / others_xc) as f32;
                    let new_xc = others_xc + w[l] * x[l] * new;
                    let new_cc = others_cc + w[l] * new * new;
                    let is_better = new_xc * new_xc * cc[l] > xc[l] * xc[l] * new_cc;
                    let has_squares = if is_signed { new_cc > 0.0 } else { others_cc > 0.0 };
                    let takes = (others_xc > 0.0) & has_squares & (new != code[l]) & is_better;
                    changes |= takes;
                    code[l] = if takes { kept(new) } else { code[l] };
                    xc[l] = if takes { new_xc } else { xc[l] };
                    cc[l] = if takes { new_cc } else { cc[l] };
                }
            }
        }
        let mut scale = [0.0; L];
        for l in 0..L {
            scale[l] = if cc[l] > 0.0 { xc[l] / cc[l] } else { 0.0 };
        }
        scale
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
        let weights = weights.unwrap_or(&[[1.0; L]; N]);
        let (mut largest, mut inverse, mut best) = ([0.0; L], [0.0; L], [0.0; L]);
        for x in x {
            for l in 0..L {
                largest[l] = if x[l] > largest[l] { x[l] } else { largest[l] };
            }
        }
        for k in [0, -4, -3, -2, -1, 1, 2, 3, 4i8] {
            let (mut tried, mut error) = ([0.0; L], [0.0; L]);
            for l in 0..L {
                tried[l] = (0.1 * f32::from(k) + self.most as f32) / largest[l];
            }
            for (x, w) in x.iter().zip(weights) {
                for l in 0..L {
                    let code = nearest(tried[l] * x[l]);
                    // ggml stores the codes of the first candidate in a `uint8_t`.
                    let code = if k == 0 { i32::from(code as u8) } else { code.min(self.most) };
                    let difference = x[l] - 1.0 / tried[l] * code as f32;
                    error[l] += w[l] * difference * difference;
                }
            }
            for l in 0..L {
                let takes = k == 0 || error[l] < best[l];
                best[l] = if takes { error[l] } else { best[l] };
                inverse[l] = if takes { tried[l] } else { inverse[l] };
            }
        }
        let code_of = |x| nearest(x).min(self.most);
        let mut codes = [[0.0; L]; N];
        for (codes, x) in codes.iter_mut().zip(x) {
            for l in 0..L {
                codes[l] = code_of(inverse[l] * x[l]) as f32;
            }
        }
        let scale = Improvement::Bytes.run(x, weights, &mut codes, code_of);
        let mut is_zero = [false; L];
        for l in 0..L {
            is_zero[l] = largest[l] < ZERO_BELOW;
        }
        Ends { farthest: largest, is_zero }.fit(scale, &codes, 0)
    }
}
