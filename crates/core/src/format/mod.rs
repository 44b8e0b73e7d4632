//! Number formats as `const` descriptors: six fields per floating-point format; all other quantities are derived.
//!
//! `p` is the precision with the hidden bit, and `t = p - 1` the number of stored fraction bits. `emin` is the exponent
//! of the smallest normal. `q = emin - t` is the exponent of the smallest unit in the last place. A *magnitude* is a
//! code without its sign bit.

mod design;

pub use design::FormatError;
pub(crate) use design::MAX_EXPONENT;

/// Meaning of the codes at the top of the range, and meaning of the code of -0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Specials {
    /// All-ones exponent: Inf with a zero fraction, NaN otherwise.
    Ieee,
    /// No Inf; the all-ones magnitude is NaN.
    Fn,
    /// No Inf and no -0; the code of -0 is the only NaN.
    Fnuz,
    /// Extended formats of IEEE P3109. The only NaN is the code of -0 if there is a sign, else the last code. The
    /// largest magnitude that is not NaN is Inf.
    Extended,
    /// Every code is a number.
    Finite,
}

/// A sign-magnitude binary floating-point format of at most 64 bits.
///
/// Source: `docs/spec/onnx.md §2.1`, `docs/spec/tile-ir.md §3.1`.
///
/// # Examples
/// ```
/// use truecast_core::format::F8E4M3FN;
/// assert_eq!(F8E4M3FN.max_code(), 0x7e); // 448
/// assert_eq!(F8E4M3FN.inf_code(), None); // no infinity: overflow is NaN or 448, never Inf
/// assert_eq!(F8E4M3FN.quantum(), -9); // smallest subnormal 2^-9
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatFormat {
    /// True if the top bit is a sign bit.
    pub signed: bool,
    /// Width of the exponent field in bits.
    pub exp_bits: u8,
    /// Explicit fraction bits, `t`.
    pub man_bits: u8,
    /// Exponent bias.
    pub bias: i16,
    /// Inf, NaN and -0.
    pub specials: Specials,
    /// False in a format without zero and subnormals (E8M0): code 0 is the normal number `2^-bias`.
    pub has_zero: bool,
}

impl FloatFormat {
    const fn new(exp_bits: u8, man_bits: u8, bias: i16, specials: Specials) -> Self {
        Self { signed: true, exp_bits, man_bits, bias, specials, has_zero: true }
    }

    /// Returns the width of a code in bits.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.signed as u32 + self.exp_bits as u32 + self.man_bits as u32
    }

    /// Returns the number of significand bits, including the hidden bit.
    #[must_use]
    pub const fn precision(&self) -> u32 {
        self.man_bits as u32 + 1
    }

    /// Returns the mask of all magnitude bits.
    #[must_use]
    pub const fn magnitude_mask(&self) -> u64 {
        (1 << (self.exp_bits as u32 + self.man_bits as u32)) - 1
    }

    /// Returns the mask of the sign bit; 0 in a format without one.
    #[must_use]
    pub const fn sign_bit(&self) -> u64 {
        if self.signed { self.magnitude_mask() + 1 } else { 0 }
    }

    /// Returns the fields of a code: sign bit (`None` in a format without one), exponent field and fraction field.
    #[must_use]
    pub const fn fields(&self, code: u64) -> (Option<bool>, u64, u64) {
        let sign = if self.signed { Some(code & self.sign_bit() != 0) } else { None };
        let fraction = code & ((1 << self.man_bits) - 1);
        (sign, (code & self.magnitude_mask()) >> self.man_bits, fraction)
    }

    /// Returns the exponent of the smallest normal. Its exponent field is 1 in a format with zero, else 0.
    #[must_use]
    pub const fn emin(&self) -> i32 {
        self.has_zero as i32 - self.bias as i32
    }

    /// Returns `q`, the exponent of the smallest unit in the last place.
    #[must_use]
    pub const fn quantum(&self) -> i32 {
        self.emin() - self.man_bits as i32
    }

    /// Returns the exponent of the smallest positive value: `q`, or `emin` in a format without zero.
    #[must_use]
    pub const fn smallest(&self) -> i32 {
        if self.has_zero { self.quantum() } else { self.emin() }
    }

    /// Returns the magnitude of the largest finite value.
    #[must_use]
    pub const fn max_code(&self) -> u64 {
        let all = self.magnitude_mask();
        match self.specials {
            Specials::Ieee => all - (1 << self.man_bits),
            Specials::Fn => all - 1,
            Specials::Extended if self.signed => all - 1,
            Specials::Extended => all - 2,
            Specials::Fnuz | Specials::Finite => all,
        }
    }

    /// Returns the exponent of the largest finite value.
    #[must_use]
    pub const fn emax(&self) -> i32 {
        let field = (self.max_code() >> self.man_bits) as i32;
        field - self.bias as i32
    }

    /// Returns the magnitude of Inf; `None` if the format has no Inf.
    #[must_use]
    pub const fn inf_code(&self) -> Option<u64> {
        match self.specials {
            Specials::Ieee | Specials::Extended => Some(self.max_code() + 1),
            Specials::Fn | Specials::Fnuz | Specials::Finite => None,
        }
    }

    /// Returns the code of the canonical quiet NaN with positive sign; `None` if the format has no NaN. FNUZ and
    /// extended formats have only this NaN.
    #[must_use]
    pub const fn nan_code(&self) -> Option<u64> {
        match self.specials {
            Specials::Ieee => Some(self.max_code() + 1 + (1 << (self.man_bits - 1))),
            Specials::Fnuz | Specials::Extended if self.signed => Some(self.sign_bit()),
            Specials::Fn | Specials::Fnuz | Specials::Extended => Some(self.magnitude_mask()),
            Specials::Finite => None,
        }
    }

    /// Returns whether the format has a code for -0.
    #[must_use]
    pub const fn has_negative_zero(&self) -> bool {
        self.signed && self.has_zero && !matches!(self.specials, Specials::Fnuz | Specials::Extended)
    }

    /// Returns the magnitude of the smallest normal; 0 if there are no subnormals.
    #[must_use]
    pub const fn min_normal_code(&self) -> u64 {
        if self.has_zero { 1 << self.man_bits } else { 0 }
    }

    /// Returns the overflow threshold of nearest rounding, `max + ulp(max)/2`, as `(significand, exponent)`. Greater
    /// magnitudes overflow. The threshold itself is a tie.
    #[must_use]
    pub const fn overflow_threshold(&self) -> (u64, i32) {
        let fraction = self.max_code() & ((1 << self.man_bits) - 1);
        let significand = fraction | 1 << self.man_bits;
        (2 * significand + 1, self.emax() - self.man_bits as i32 - 1)
    }

    /// Returns whether every value of `self` is a value of `wider`, ignoring infinities, NaN and -0. Maximum values are
    /// compared by exponent only, which is exact for the formats of this module.
    #[must_use]
    pub const fn embeds_in(&self, wider: &FloatFormat) -> bool {
        wider.precision() >= self.precision()
            && wider.quantum() <= self.quantum()
            && wider.smallest() <= self.smallest()
            && (wider.has_zero || !self.has_zero)
            && wider.emax() >= self.emax()
            && (wider.signed || !self.signed)
    }

    /// Returns whether every value of `integer` is a value of this format.
    #[must_use]
    pub const fn holds_integers_of(&self, integer: &IntFormat) -> bool {
        // Magnitudes are the integers below 2^v, and 2^v itself in signed types.
        let v = integer.bits as i32 - integer.signed as i32;
        if !self.has_zero || (integer.signed && !self.signed) || (self.precision() as i32) < v || self.quantum() > 0 {
            return false;
        }
        // If 2^v - 1 is in the last binade, its significand must not exceed the largest significand.
        let t = self.man_bits as i32;
        let largest = self.max_code() & ((1 << t) - 1) | 1 << t;
        self.emax() >= v || (!integer.signed && self.emax() == v - 1 && largest >= ((1 << v) - 1) << (t - (v - 1)))
    }

    /// Returns whether two roundings, to odd in `self` and then to `dst` in any deterministic mode, equal one rounding.
    ///
    /// Source: `docs/kernels.md §3.1`, conditions 1 to 4 with two guard bits.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::format::*;
    /// assert!(F32.is_safe_odd_intermediate_for(&BF16));
    /// assert!(!F16.is_safe_odd_intermediate_for(&F8E5M3FNU)); // its overflow threshold is above 65504
    /// ```
    #[must_use]
    pub const fn is_safe_odd_intermediate_for(&self, dst: &FloatFormat) -> bool {
        const GUARD: i32 = 2;
        let (sig, exp) = dst.overflow_threshold();
        let threshold_exponent = exp + 63 - sig.leading_zeros() as i32;
        // The threshold has at most p_dst + 1 <= p_self significant bits, so only its exponent can be out of range. If
        // the exponents are equal, the largest significand of `self` is at least the threshold's, because it is all
        // ones.
        let covers = self.emax() >= threshold_exponent;
        matches!(self.specials, Specials::Ieee)
            && self.signed
            && self.precision() as i32 >= dst.precision() as i32 + GUARD
            && self.quantum() <= dst.quantum() - GUARD
            && covers
    }
}

/// Two's-complement or plain binary integer of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntFormat {
    /// Width in bits, 1 to 64.
    pub bits: u8,
    /// True for two's complement.
    pub signed: bool,
}

impl IntFormat {
    /// Returns the mask of all bits of a code.
    #[must_use]
    pub const fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits as u32)
    }

    /// Returns the smallest value.
    #[must_use]
    pub const fn min(&self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    /// Returns the largest value.
    #[must_use]
    pub const fn max(&self) -> i128 {
        (1 << (self.bits - self.signed as u8)) - 1
    }

    /// Returns the value of a code.
    #[must_use]
    pub const fn value(&self, code: u64) -> i128 {
        let code = code & self.mask();
        if self.signed && code >> (self.bits - 1) != 0 { code as i128 - (1 << self.bits) } else { code as i128 }
    }

    /// Returns the code with the low bits of `value`.
    #[must_use]
    pub const fn code(&self, value: i128) -> u64 {
        value as u64 & self.mask()
    }
}

/// Two's-complement integer divided by a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedFormat {
    /// Format of the stored integer.
    pub int: IntFormat,
    /// The value is the integer times `2^-frac_bits`.
    pub frac_bits: u8,
}

/// Code book of 16 arbitrary values and 15 thresholds.
///
/// Source: `docs/spec/openvino.md §1.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeBook {
    /// Value of each code, ascending, as f32 bits.
    pub values: [u32; 16],
    /// Largest value that rounds to each code except the last, as f32 bits.
    pub thresholds: [u32; 15],
    /// The code of zero.
    pub zero_code: u64,
}

use Specials::{Finite, Fn, Fnuz, Ieee};

/// IEEE 754 binary64.
pub const F64: FloatFormat = FloatFormat::new(11, 52, 1023, Ieee);
/// IEEE 754 binary32.
pub const F32: FloatFormat = FloatFormat::new(8, 23, 127, Ieee);
/// TensorFloat-32: 19 bits, stored in the layout of f32.
pub const TF32: FloatFormat = FloatFormat::new(8, 10, 127, Ieee);
/// bfloat16.
pub const BF16: FloatFormat = FloatFormat::new(8, 7, 127, Ieee);
/// IEEE 754 binary16.
pub const F16: FloatFormat = FloatFormat::new(5, 10, 15, Ieee);
/// OCP E5M2.
pub const F8E5M2: FloatFormat = FloatFormat::new(5, 2, 15, Ieee);
/// E4M3 with IEEE-like specials.
pub const F8E4M3IEEE: FloatFormat = FloatFormat::new(4, 3, 7, Ieee);
/// E3M4 with IEEE-like specials.
pub const F8E3M4: FloatFormat = FloatFormat::new(3, 4, 3, Ieee);
/// OCP E4M3.
pub const F8E4M3FN: FloatFormat = FloatFormat::new(4, 3, 7, Fn);
/// E4M3 without Inf and -0.
pub const F8E4M3FNUZ: FloatFormat = FloatFormat::new(4, 3, 8, Fnuz);
/// E5M2 without Inf and -0.
pub const F8E5M2FNUZ: FloatFormat = FloatFormat::new(5, 2, 16, Fnuz);
/// E4M3 with bias 11, without Inf and -0.
pub const F8E4M3B11FNUZ: FloatFormat = FloatFormat::new(4, 3, 11, Fnuz);
/// Unsigned E5M3 (Tile IR).
pub const F8E5M3FNU: FloatFormat = FloatFormat { signed: false, ..FloatFormat::new(5, 3, 15, Fn) };
/// OCP E8M0: powers of two, no sign, no zero.
pub const F8E8M0: FloatFormat = FloatFormat { signed: false, has_zero: false, ..FloatFormat::new(8, 0, 127, Fn) };
/// OCP E2M3.
pub const F6E2M3: FloatFormat = FloatFormat::new(2, 3, 1, Finite);
/// OCP E3M2.
pub const F6E3M2: FloatFormat = FloatFormat::new(3, 2, 3, Finite);
/// OCP E2M1.
pub const F4E2M1: FloatFormat = FloatFormat::new(2, 1, 1, Finite);

/// OCP MX INT8: two's complement 64ths. Source: `docs/spec/tosa.md §2.1`.
pub const MXINT8: FixedFormat = FixedFormat { int: IntFormat { bits: 8, signed: true }, frac_bits: 6 };

/// The 4-bit normal-float code book, NF4. Source: `docs/spec/openvino.md §1.3`.
pub static NF4: CodeBook = CodeBook {
    values: [
        0xbf800000, 0xbf3239b1, 0xbf066b30, 0xbeca32a0, 0xbe91a24d, 0xbe3d353f, 0xbdba7871, 0x00000000, 0x3da2faff,
        0x3e24cae3, 0x3e7c04dd, 0x3ead033a, 0x3ee1a4b8, 0x3f1007ab, 0x3f3913b3, 0x3f800000,
    ],
    thresholds: [
        0xbf591cd9, 0xbf1c5270, 0xbeeb8480, 0xbeadea76, 0xbe703cec, 0xbe0d38bc, 0xbd3a7871, 0x3d22faff, 0x3df64863,
        0x3e5067e0, 0x3e9582d4, 0x3ec753f9, 0x3f006d03, 0x3f248daf, 0x3f5c89d9,
    ],
    zero_code: 7,
};
