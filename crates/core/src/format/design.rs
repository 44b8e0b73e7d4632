//! Custom formats: construction and validity of descriptors.

use super::{FloatFormat, Specials};

/// Contradiction in the fields of a [`FloatFormat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A field is too wide, or there is no exponent.
    #[error(
        "exponent of {exp_bits} bits and fraction of {man_bits}: an exponent has 1 to 15 bits, a fraction at most 60, \
         both together at most 63"
    )]
    Width {
        /// Bits of the exponent.
        exp_bits: u8,
        /// Bits of the fraction.
        man_bits: u8,
    },
    /// The highest exponent has only one code, which is Inf.
    #[error("IEEE specials without a fraction leave no code for NaN; use Fn, or a fraction of 1 bit")]
    NoRoomForNan,
    /// The codes of the highest exponent are special, and only the exponent of subnormals is left.
    #[error("no code is a normal number: an exponent of 1 bit is too narrow for these specials")]
    NoNormal,
    /// NaN needs the code of -0, but the format has no sign or no zero.
    #[error("the NaN of FNUZ, and of extended specials with a sign, is the code of -0: that needs a sign and a zero")]
    NoNegativeZero,
}

impl FloatFormat {
    /// Returns a format with a sign, infinities, NaN and subnormals, and the bias of the IEEE 754 interchange formats:
    /// `2^(exp_bits - 1) - 1`. To make another format, replace the fields that differ.
    ///
    /// Source: IEEE 754-2019 §3.4, §3.6.
    ///
    /// # Errors
    /// [`FormatError`], from [`FloatFormat::check`].
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{FloatFormat, Specials, format::{F16, F8E4M3FN}};
    /// assert_eq!(FloatFormat::ieee(5, 10)?, F16);
    /// let e4m3 = FloatFormat { specials: Specials::Fn, ..FloatFormat::ieee(4, 3)? };
    /// assert_eq!((e4m3.check(), e4m3), (Ok(()), F8E4M3FN));
    /// assert!(FloatFormat::ieee(8, 0).is_err()); // no code for NaN
    /// # Ok::<(), truecast_core::format::FormatError>(())
    /// ```
    pub const fn ieee(exp_bits: u8, man_bits: u8) -> Result<FloatFormat, FormatError> {
        if exp_bits > MAX_EXPONENT {
            return Err(FormatError::Width { exp_bits, man_bits });
        }
        let bias = ((1 << exp_bits >> 1) - 1) as i16;
        let format = FloatFormat::new(exp_bits, man_bits, bias, Specials::Ieee);
        match format.check() {
            Ok(()) => Ok(format),
            Err(error) => Err(error),
        }
    }

    /// Checks that the fields describe a format. Functions that take a format require this. All formats of this module
    /// pass the check.
    ///
    /// # Errors
    /// [`FormatError`]: the contradiction.
    pub const fn check(&self) -> Result<(), FormatError> {
        let FloatFormat { signed, exp_bits, man_bits, specials, has_zero, .. } = *self;
        if exp_bits == 0 || exp_bits > MAX_EXPONENT || man_bits > MAX_FRACTION || exp_bits + man_bits > MAX_MAGNITUDE {
            return Err(FormatError::Width { exp_bits, man_bits });
        }
        match specials {
            Specials::Ieee if man_bits == 0 => Err(FormatError::NoRoomForNan),
            Specials::Fnuz if !signed || !has_zero => Err(FormatError::NoNegativeZero),
            Specials::Extended if signed && !has_zero => Err(FormatError::NoNegativeZero),
            // Inf and NaN take both codes of a 1-bit format.
            Specials::Extended if self.bits() < 2 => Err(FormatError::NoNormal),
            _ if self.max_code() < self.min_normal_code() => Err(FormatError::NoNormal),
            _ => Ok(()),
        }
    }
}

/// Maximum width of an exponent field. Exponents stay within ±100,000, the range of [`crate::Exact`].
pub(crate) const MAX_EXPONENT: u8 = 15;
/// Maximum width of a fraction. A sticky value of 64 bits is finer than any format.
const MAX_FRACTION: u8 = 60;
/// Maximum width of a magnitude. A code with its sign has at most 64 bits.
const MAX_MAGNITUDE: u8 = 63;
