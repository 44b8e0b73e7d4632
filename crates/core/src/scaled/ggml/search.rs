//! Searches for the scale of a group. Each keeps the candidate with the least weighted error, or the first of equals.

use super::arithmetic::{limited, nearest, square_root};
use super::groups::{Group, dot, sum, times};

/// A group whose largest magnitude is below this is zero.
pub(super) const NOTHING: f32 = 1e-15;

/// Scales and codes of `L` groups.
pub(super) struct Fit<const N: usize, const L: usize> {
    pub scale: [f32; L],
    /// Number that is subtracted from all values: the minimum of the group, with the sign changed.
    pub offset: [f32; L],
    pub codes: [[u8; L]; N],
}

/// Search for the scale of groups of `N` elements. Without weights, each search has its own.
pub(super) trait Search<const N: usize> {
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L>;
}

/// Search for a scale and a minimum: `x = scale * code + minimum`, `code` from 0 to `most`, `minimum` at most 0.
///
/// The candidates divide the range that is left above the minimum into `most + first + step * k` parts, k = 0, 1, ..,
/// `last`. For the codes of each, weighted least squares give scale and minimum.
pub(super) struct WithMinimum {
    pub most: i32,
    pub first: f32,
    pub step: f32,
    pub last: u8,
    /// If true, magnitudes of errors are summed, and the weight of an element is its magnitude. Otherwise squares are
    /// summed, and the weight is the magnitude plus the root of the group's mean square.
    pub sums_magnitudes: bool,
}

impl<const N: usize> Search<N> for WithMinimum {
    #[inline(always)]
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L> {
        let weights = &weights.map_or_else(|| self.weights(x), |weights| *weights);
        let (mut least, mut largest, mut sum_w) = (x[0], x[0], weights[0]);
        let mut sum_x = [0.0; L];
        for l in 0..L {
            sum_x[l] = weights[0][l] * x[0][l];
        }
        for (x, w) in x.iter().zip(weights).skip(1) {
            for l in 0..L {
                least[l] = if x[l] < least[l] { x[l] } else { least[l] };
                largest[l] = if x[l] > largest[l] { x[l] } else { largest[l] };
                sum_w[l] += w[l];
                sum_x[l] += w[l] * x[l];
            }
        }
        let (mut inverse, mut scale, mut is_flat) = ([0.0; L], [0.0; L], [false; L]);
        for l in 0..L {
            least[l] = if least[l] > 0.0 { 0.0 } else { least[l] };
            is_flat[l] = largest[l] == least[l];
            inverse[l] = self.most as f32 / (largest[l] - least[l]);
            scale[l] = 1.0 / inverse[l];
        }
        let mut codes = self.codes(x, &inverse, &least);
        let mut best = self.error(x, weights, &codes, &scale, &least);
        let mut minimum = least;
        for k in 0..=self.last {
            for l in 0..L {
                inverse[l] = (self.first + self.step * f32::from(k) + self.most as f32) / (largest[l] - minimum[l]);
            }
            let tried = self.codes(x, &inverse, &minimum);
            let (new_scale, new_minimum, is_solved) = solve(x, weights, &tried, &sum_w, &sum_x);
            let error = self.error(x, weights, &tried, &new_scale, &new_minimum);
            let mut takes = [false; L];
            for l in 0..L {
                takes[l] = is_solved[l] & (error[l] < best[l]);
                best[l] = if takes[l] { error[l] } else { best[l] };
                scale[l] = if takes[l] { new_scale[l] } else { scale[l] };
                minimum[l] = if takes[l] { new_minimum[l] } else { minimum[l] };
            }
            for (codes, tried) in codes.iter_mut().zip(&tried) {
                for l in 0..L {
                    codes[l] = if takes[l] { tried[l] } else { codes[l] };
                }
            }
        }
        let mut fit = Fit { scale, offset: [0.0; L], codes: [[0; L]; N] };
        for l in 0..L {
            fit.scale[l] = if is_flat[l] { 0.0 } else { scale[l] };
            fit.offset[l] = -(if is_flat[l] { least[l] } else { minimum[l] });
        }
        for (to, codes) in fit.codes.iter_mut().zip(&codes) {
            for l in 0..L {
                to[l] = if is_flat[l] { 0 } else { codes[l] as u8 };
            }
        }
        fit
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
        x: &Group<N, L>,
        weights: &Group<N, L>,
        codes: &Group<N, L>,
        scale: &[f32; L],
        minimum: &[f32; L],
    ) -> [f32; L] {
        let mut sum = [0.0; L];
        for ((x, w), code) in x.iter().zip(weights).zip(codes) {
            for l in 0..L {
                let error = scale[l] * code[l] + minimum[l] - x[l];
                sum[l] += w[l] * if self.sums_magnitudes { error.abs() } else { error * error };
            }
        }
        sum
    }
}

/// Scale and minimum of least squares for given codes, with a minimum of at most 0; and whether there is a solution.
#[inline(always)]
fn solve<const N: usize, const L: usize>(
    x: &Group<N, L>,
    weights: &Group<N, L>,
    codes: &Group<N, L>,
    sum_w: &[f32; L],
    sum_x: &[f32; L],
) -> ([f32; L], [f32; L], [bool; L]) {
    let weighted = times(weights, codes);
    let (sum_c, sum_cc, sum_xc) = (sum(&weighted), dot(&weighted, codes), dot(&weighted, x));
    let (mut scale, mut minimum, mut is_solved) = ([0.0; L], [0.0; L], [false; L]);
    for l in 0..L {
        let determinant = sum_w[l] * sum_cc[l] - sum_c[l] * sum_c[l];
        is_solved[l] = determinant > 0.0;
        let free_scale = (sum_w[l] * sum_xc[l] - sum_x[l] * sum_c[l]) / determinant;
        let free_minimum = (sum_cc[l] * sum_x[l] - sum_c[l] * sum_xc[l]) / determinant;
        let is_above = free_minimum > 0.0;
        scale[l] = if is_above { sum_xc[l] / sum_cc[l] } else { free_scale };
        minimum[l] = if is_above { 0.0 } else { free_minimum };
    }
    (scale, minimum, is_solved)
}

/// First value of the largest magnitude of each group, and whether the group is not [`NOTHING`].
#[inline(always)]
pub(super) fn ends<const N: usize, const L: usize>(x: &Group<N, L>) -> ([f32; L], [bool; L]) {
    let (mut most, mut end, mut is_something) = ([0.0; L], [0.0; L], [false; L]);
    for x in x {
        for l in 0..L {
            let is_more = x[l].abs() > most[l];
            most[l] = if is_more { x[l].abs() } else { most[l] };
            end[l] = if is_more { x[l] } else { end[l] };
        }
    }
    for l in 0..L {
        is_something[l] = most[l] >= NOTHING;
    }
    (end, is_something)
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

/// Weighted sums of `x * code` and `code * code`, from weights and weighted `x`.
#[inline(always)]
fn products<const N: usize, const L: usize>(
    [weights, weighted]: [&Group<N, L>; 2],
    codes: &Group<N, L>,
) -> ([f32; L], [f32; L]) {
    (dot(weighted, codes), dot(&times(weights, codes), codes))
}

/// Stored codes: `code + half`, but 0 for a group of nothing.
#[inline(always)]
fn stored<const N: usize, const L: usize>(codes: &Group<N, L>, half: i32, is_something: &[bool; L]) -> [[u8; L]; N] {
    let mut stored = [[0; L]; N];
    for (stored, codes) in stored.iter_mut().zip(codes) {
        for l in 0..L {
            stored[l] = if is_something[l] { (codes[l] as i32 + half) as u8 } else { 0 };
        }
    }
    stored
}

/// Search for a scale: `x = scale * code`, `code` from `-half` to `half - 1`. The weight is the square of `x`.
///
/// The candidates put the value of the largest magnitude at `-half`, and at `-(half + 0.1 * k)`, k = -9 .. 9. For the
/// codes of each, least squares give the scale.
pub(super) struct Symmetric {
    pub half: i32,
}

impl<const N: usize> Search<N> for Symmetric {
    #[inline(always)]
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L> {
        let half = self.half;
        let (end, is_something) = ends(x);
        let (mut inverse, mut scale, mut best) = ([0.0; L], [0.0; L], [0.0; L]);
        for l in 0..L {
            inverse[l] = -half as f32 / end[l];
        }
        let mut codes = signed_codes(x, &inverse, half);
        let weights = weights.map_or_else(|| times(x, x), |weights| *weights);
        let both = [&weights, &times(&weights, x)];
        let (sum_xc, sum_cc) = products(both, &codes);
        for l in 0..L {
            scale[l] = if sum_cc[l] == 0.0 { 0.0 } else { sum_xc[l] / sum_cc[l] };
            best[l] = scale[l] * sum_xc[l];
        }
        for k in (-9..=9i8).filter(|k| *k != 0) {
            for l in 0..L {
                inverse[l] = -(half as f32 + 0.1 * f32::from(k)) / end[l];
            }
            let tried = signed_codes(x, &inverse, half);
            let (sum_xc, sum_cc) = products(both, &tried);
            let mut takes = [false; L];
            for l in 0..L {
                takes[l] = (sum_cc[l] > 0.0) & (sum_xc[l] * sum_xc[l] > best[l] * sum_cc[l]);
                scale[l] = if takes[l] { sum_xc[l] / sum_cc[l] } else { scale[l] };
                best[l] = if takes[l] { scale[l] * sum_xc[l] } else { best[l] };
            }
            for (codes, tried) in codes.iter_mut().zip(&tried) {
                for l in 0..L {
                    codes[l] = if takes[l] { tried[l] } else { codes[l] };
                }
            }
        }
        for l in 0..L {
            scale[l] = if is_something[l] { scale[l] } else { 0.0 };
        }
        Fit { scale, offset: [0.0; L], codes: stored(&codes, half, &is_something) }
    }
}

/// As [`Symmetric`], with the first candidate only, whose codes are then [improved](improve).
pub(super) struct ByElement {
    pub half: i32,
}

impl<const N: usize> Search<N> for ByElement {
    #[inline(always)]
    fn fit<const L: usize>(&self, x: &Group<N, L>, weights: Option<&Group<N, L>>) -> Fit<N, L> {
        let half = self.half;
        let (end, is_something) = ends(x);
        let mut inverse = [0.0; L];
        for l in 0..L {
            inverse[l] = -half as f32 / end[l];
        }
        let mut codes = signed_codes(x, &inverse, half);
        let weights = weights.map_or_else(|| times(x, x), |weights| *weights);
        let mut scale = improve(x, &weights, &mut codes, |x| limited(x, -half, half - 1), false);
        for l in 0..L {
            scale[l] = if is_something[l] { scale[l] } else { 0.0 };
        }
        Fit { scale, offset: [0.0; L], codes: stored(&codes, half, &is_something) }
    }
}

/// Scale of least squares for codes that are improved one by one, in at most 5 rounds. With `are_bytes`, a negative code
/// is kept as its low byte.
#[inline(always)]
fn improve<const N: usize, const L: usize>(
    x: &Group<N, L>,
    weights: &Group<N, L>,
    codes: &mut Group<N, L>,
    code_of: impl Fn(f32) -> i32,
    are_bytes: bool,
) -> [f32; L] {
    let kept = |code: f32| if are_bytes { f32::from(code as i32 as u8) } else { code };
    let (mut sum_xc, mut sum_cc) = products([weights, &times(weights, x)], codes);
    codes.iter_mut().flatten().for_each(|code| *code = kept(*code));
    // Once a round changes nothing, further rounds do not.
    let (mut round, mut changes) = (0, true);
    while round < 5 && changes {
        (round, changes) = (round + 1, false);
        for ((x, w), code) in x.iter().zip(weights).zip(&mut *codes) {
            for l in 0..L {
                let others_xc = sum_xc[l] - w[l] * x[l] * code[l];
                let others_cc = sum_cc[l] - w[l] * code[l] * code[l];
                let new = code_of(x[l] * others_cc / others_xc) as f32;
                let new_xc = others_xc + w[l] * x[l] * new;
                let new_cc = others_cc + w[l] * new * new;
                let is_better = new_xc * new_xc * sum_cc[l] > sum_xc[l] * sum_xc[l] * new_cc;
                let is_possible = (others_xc > 0.0) & (!are_bytes | (others_cc > 0.0)) & (are_bytes | (new_cc > 0.0));
                let takes = is_possible & (new != code[l]) & is_better;
                changes |= takes;
                code[l] = if takes { kept(new) } else { code[l] };
                sum_xc[l] = if takes { new_xc } else { sum_xc[l] };
                sum_cc[l] = if takes { new_cc } else { sum_cc[l] };
            }
        }
    }
    let mut scale = [0.0; L];
    for l in 0..L {
        scale[l] = if sum_cc[l] > 0.0 { sum_xc[l] / sum_cc[l] } else { 0.0 };
    }
    scale
}

/// Search for a scale of numbers above 0: `x = scale * code`, `code` from 0 to `most`.
///
/// The candidates put the largest number at `most + 0.1 * k`, k = -4 .. 4. The codes of the one with the least error are
/// then [improved](improve). Codes are bytes.
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
            let mut error = [0.0; L];
            for (x, w) in x.iter().zip(weights) {
                for l in 0..L {
                    let tried = (0.1 * f32::from(k) + self.most as f32) / largest[l];
                    let code = nearest(tried * x[l]);
                    // Only the first is a byte.
                    let code = if k == 0 { i32::from(code as u8) } else { code.min(self.most) };
                    let difference = x[l] - 1.0 / tried * code as f32;
                    error[l] += w[l] * difference * difference;
                }
            }
            for l in 0..L {
                let takes = k == 0 || error[l] < best[l];
                best[l] = if takes { error[l] } else { best[l] };
                inverse[l] = if takes { (0.1 * f32::from(k) + self.most as f32) / largest[l] } else { inverse[l] };
            }
        }
        let code_of = |x| nearest(x).min(self.most);
        let mut codes = [[0.0; L]; N];
        for (codes, x) in codes.iter_mut().zip(x) {
            for l in 0..L {
                codes[l] = code_of(inverse[l] * x[l]) as f32;
            }
        }
        let mut fit =
            Fit { scale: improve(x, weights, &mut codes, code_of, true), offset: [0.0; L], codes: [[0; L]; N] };
        for l in 0..L {
            let is_something = largest[l] >= NOTHING;
            fit.scale[l] = if is_something { fit.scale[l] } else { 0.0 };
            for (to, code) in fit.codes.iter_mut().zip(&codes) {
                to[l] = if is_something { code[l] as u8 } else { 0 };
            }
        }
        fit
    }
}
