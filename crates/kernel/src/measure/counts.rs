//! [`Counts`]: sums over elements, their addition, and the derived errors.

/// Counts and errors of one conversion or comparison; `x` is a source value, `y` the converted value.
///
/// Source: `docs/spec/checkpoints.md §10`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Number of elements.
    pub elements: u64,
    /// Number of elements with measured errors. `exact`, `inexact`, `sign_of_zero_lost`, pairs, errors and sums cover
    /// only measured elements.
    pub measured: u64,
    /// Number of elements for which `y = x` as numbers, or for which `x` and `y` are NaN. +0 equals -0.
    pub exact: u64,
    /// Measured elements that are not exact.
    pub inexact: u64,
    /// Elements with the largest finite `y`, or the end of an integer's range, because `x` is out of range.
    pub saturated: u64,
    /// Number of elements that a wrapping policy changed. Their integer `y` kept only the low bits of `x`, or is 0 for
    /// an infinity.
    pub wrapped: u64,
    /// Elements with finite `x` and infinite `y`.
    pub to_inf: u64,
    /// Elements with NaN `y`, while `x` is not NaN.
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
    /// Elements with nonzero `x` and zero `y`.
    pub flushed_to_zero: u64,
    /// Elements with subnormal `y`.
    pub subnormal: u64,
    /// Elements with zero `y` and the opposite sign of `x`.
    pub sign_of_zero_lost: u64,
    /// Results that the specification leaves undefined.
    pub undefined: u64,
    /// Largest `|y - x|` over finite pairs.
    pub max_abs_error: f64,
    /// Index of the first element whose error is `max_abs_error`.
    pub index_max_abs: u64,
    /// Largest `|y - x| / |x|` over finite pairs with nonzero `x`.
    pub max_rel_error: f64,
    /// Number of pairs in which `x` and `y` are finite.
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
    /// Returns the counts of `elements` elements that were copied bit for bit.
    #[must_use]
    pub fn copied(elements: u64) -> Counts {
        Counts { elements, measured: elements, exact: elements, ..Counts::default() }
    }

    /// Adds the counts of the following elements. Counts and sums are added in order; maximum errors are kept.
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
            &mut self.elements, &mut self.measured, &mut self.exact, &mut self.inexact, &mut self.saturated,
            &mut self.wrapped, &mut self.to_inf, &mut self.to_nan, &mut self.nan_in, &mut self.inf_in,
            &mut self.zero_in, &mut self.nan_out, &mut self.inf_out, &mut self.flushed_to_zero, &mut self.subnormal,
            &mut self.sign_of_zero_lost, &mut self.undefined, &mut self.finite_pairs,
        ]
    }

    fn clone_integers(&self) -> [u64; 18] {
        let mut copy = *self;
        copy.integers().map(|count| *count)
    }

    /// Adds elements that are finite and unchanged. Their squares are not added.
    pub(crate) fn add_exact(&mut self, elements: u64) {
        self.measured += elements;
        self.exact += elements;
        self.finite_pairs += elements;
    }

    /// Returns only the counts that cover all elements.
    #[must_use]
    pub fn unmeasured(self) -> Counts {
        let Counts { elements, saturated, wrapped, to_inf, to_nan, nan_in, inf_in, zero_in, .. } = self;
        let Counts { nan_out, inf_out, flushed_to_zero, subnormal, undefined, .. } = self;
        let known =
            Counts { elements, saturated, wrapped, to_inf, to_nan, nan_in, inf_in, zero_in, ..Counts::default() };
        Counts { nan_out, inf_out, flushed_to_zero, subnormal, undefined, ..known }
    }

    /// Returns whether errors were measured for only some elements.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.measured < self.elements
    }

    /// Extrapolates sums and pairs from the measured elements to all elements. Extrapolated counts of tensors can be
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

    /// Returns the number of nonzero sources.
    #[must_use]
    pub fn nonzero_in(&self) -> u64 {
        self.elements.saturating_sub(self.zero_in)
    }

    /// Returns the root mean square error over the finite pairs; 0 without finite pairs.
    #[must_use]
    pub fn rmse(&self) -> f64 {
        if self.finite_pairs == 0 { 0.0 } else { (self.noise / self.finite_pairs as f64).sqrt() }
    }

    /// Returns the signal to quantization noise ratio in decibels: infinity without noise, minus infinity with noise
    /// but without signal.
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

    /// Returns the factor between source and result: the slope of the line through zero that fits best; 1 for a source
    /// of zeros.
    #[must_use]
    pub fn gain(&self) -> f64 {
        if self.signal == 0.0 { 1.0 } else { self.product / self.signal }
    }

    /// Returns whether every value is kept, including signs of zeros but not NaN payloads. False if not all elements
    /// were measured.
    #[must_use]
    pub fn lossless(&self) -> bool {
        self.exact == self.elements && self.sign_of_zero_lost == 0
    }
}
