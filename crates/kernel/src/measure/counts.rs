//! [`Counts`]: sums over elements, their addition, and the errors that follow from them.

/// Counts and errors of one conversion or comparison; `x` is a source value and `y` the value that represents it.
///
/// Source: `docs/spec/checkpoints.md §10`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Elements seen.
    pub elements: u64,
    /// Elements with measured errors. `exact`, `inexact`, `sign_of_zero_lost`, pairs, errors and sums cover these.
    pub measured: u64,
    /// `y = x` as numbers, or both NaN; +0 and -0 are equal.
    pub exact: u64,
    /// Measured elements that are not exact.
    pub inexact: u64,
    /// `y` is the largest finite value (or the end of an integer's range) because `x` is beyond it.
    pub saturated: u64,
    /// An integer result kept only the low bits of `x`, or is 0 for an infinity, under a wrapping policy.
    pub wrapped: u64,
    /// `x` finite, `y` infinite.
    pub to_inf: u64,
    /// `x` not NaN, `y` NaN.
    pub to_nan: u64,
    /// NaN sources.
    pub nan_in: u64,
    /// Infinite sources.
    pub inf_in: u64,
    /// Sources that are zero, of either sign.
    pub zero_in: u64,
    /// NaN results.
    pub nan_out: u64,
    /// Infinite results.
    pub inf_out: u64,
    /// `x` not zero, `y` zero.
    pub flushed_to_zero: u64,
    /// `y` is a subnormal of its type.
    pub subnormal: u64,
    /// `x` and `y` are zeros of different sign, or a nonzero `x` became a zero of the other sign.
    pub sign_of_zero_lost: u64,
    /// Results that the specification leaves open.
    pub undefined: u64,
    /// Largest `|y - x|` over pairs with both finite.
    pub max_abs_error: f64,
    /// First element with that error.
    pub index_max_abs: u64,
    /// Largest `|y - x| / |x|` over pairs with both finite and `x` not zero.
    pub max_rel_error: f64,
    /// Pairs with both finite.
    pub finite_pairs: u64,
    /// Sum of `(y - x)^2` over the finite pairs.
    pub noise: f64,
    /// Sum of `x^2` over the finite pairs.
    pub signal: f64,
    /// Sum of `y^2` over the finite pairs.
    pub image: f64,
    /// Sum of `x * y` over the finite pairs.
    pub product: f64,
}

impl Counts {
    /// Returns the counts of `elements` elements that were copied bit for bit, without a look at their values.
    #[must_use]
    pub fn copied(elements: u64) -> Counts {
        Counts { elements, measured: elements, exact: elements, ..Counts::default() }
    }

    /// Adds the counts of the elements that follow: counts and sums are added in this order, the larger errors kept.
    pub fn add(&mut self, next: &Counts) {
        if next.max_abs_error > self.max_abs_error {
            self.max_abs_error = next.max_abs_error;
            self.index_max_abs = self.elements + next.index_max_abs;
        }
        self.max_rel_error = self.max_rel_error.max(next.max_rel_error);
        for (total, part) in self.integers().into_iter().zip(next.clone_integers()) {
            *total += part;
        }
        self.noise += next.noise;
        self.signal += next.signal;
        self.image += next.image;
        self.product += next.product;
    }

    fn integers(&mut self) -> [&mut u64; 18] {
        [
            &mut self.elements,
            &mut self.measured,
            &mut self.exact,
            &mut self.inexact,
            &mut self.saturated,
            &mut self.wrapped,
            &mut self.to_inf,
            &mut self.to_nan,
            &mut self.nan_in,
            &mut self.inf_in,
            &mut self.zero_in,
            &mut self.nan_out,
            &mut self.inf_out,
            &mut self.flushed_to_zero,
            &mut self.subnormal,
            &mut self.sign_of_zero_lost,
            &mut self.undefined,
            &mut self.finite_pairs,
        ]
    }

    fn clone_integers(&self) -> [u64; 18] {
        let mut copy = *self;
        copy.integers().map(|count| *count)
    }

    /// Adds finite elements whose values are kept, without their squares.
    pub(crate) fn add_exact(&mut self, elements: u64) {
        self.measured += elements;
        self.exact += elements;
        self.finite_pairs += elements;
    }

    /// Returns the counts without the counts and errors that only measured elements have.
    #[must_use]
    pub fn unmeasured(self) -> Counts {
        let Counts { elements, saturated, wrapped, to_inf, to_nan, nan_in, inf_in, zero_in, .. } = self;
        let Counts { nan_out, inf_out, flushed_to_zero, subnormal, undefined, .. } = self;
        let known =
            Counts { elements, saturated, wrapped, to_inf, to_nan, nan_in, inf_in, zero_in, ..Counts::default() };
        Counts { nan_out, inf_out, flushed_to_zero, subnormal, undefined, ..known }
    }

    /// Whether only some elements had their errors measured.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.measured < self.elements
    }

    /// Extrapolates sums and pairs from the measured elements to all elements, so that the counts of tensors can be
    /// added.
    #[must_use]
    pub fn extrapolated(self) -> Counts {
        if !self.is_sampled() || self.measured == 0 {
            return self;
        }
        let ratio = self.elements as f64 / self.measured as f64;
        let [noise, signal, image, product] =
            [self.noise, self.signal, self.image, self.product].map(|sum| sum * ratio);
        let finite_pairs = (self.finite_pairs as f64 * ratio).round() as u64;
        Counts { finite_pairs, noise, signal, image, product, ..self }
    }

    /// Sources that are not zero.
    #[must_use]
    pub fn nonzero_in(&self) -> u64 {
        self.elements.saturating_sub(self.zero_in)
    }

    /// Returns the root of the mean squared error over the finite pairs; 0 without finite pairs.
    #[must_use]
    pub fn rmse(&self) -> f64 {
        if self.finite_pairs == 0 { 0.0 } else { (self.noise / self.finite_pairs as f64).sqrt() }
    }

    /// Returns the signal to quantization noise ratio in decibels: infinite without noise, minus infinite with noise
    /// but no signal.
    #[must_use]
    pub fn sqnr_db(&self) -> f64 {
        match (self.noise == 0.0, self.signal == 0.0) {
            (true, _) => f64::INFINITY,
            (false, true) => f64::NEG_INFINITY,
            (false, false) => 10.0 * (self.signal / self.noise).log10(),
        }
    }

    /// Returns the cosine of the angle between source and result; 1 if both are zero.
    #[must_use]
    pub fn cosine(&self) -> f64 {
        if self.signal == 0.0 && self.image == 0.0 { 1.0 } else { self.product / (self.signal * self.image).sqrt() }
    }

    /// Whether every value is kept, signs of zeros included (NaN payloads aside); false if not all were measured.
    #[must_use]
    pub fn lossless(&self) -> bool {
        self.exact == self.elements && self.sign_of_zero_lost == 0
    }
}
