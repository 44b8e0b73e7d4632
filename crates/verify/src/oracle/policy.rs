//! Choices that a conversion leaves open: enums, and [`Policy`] with one value of each. `convert.rs` has the semantics.

/// Declares enums with lists of all their values.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
        }
    )+};
}

choices! {
    /// Neighbor to which an inexact value rounds.
    Rounding {
        /// Nearest; ties to the even code.
        NearestEven,
        /// Nearest; ties away from zero.
        NearestAway,
        /// Neighbor nearer to zero.
        TowardZero,
        /// Neighbor nearer to +infinity.
        Up,
        /// Neighbor nearer to -infinity.
        Down,
        /// Neighbor farther from zero.
        AwayFromZero,
        /// Nearest; ties toward +infinity.
        NearestUp,
        /// Neighbor with the odd code.
        ToOdd,
    }

    /// Result for a value beyond the largest finite value.
    OnRange {
        /// Infinity, or else NaN, or else the largest finite value: the first that the format has.
        Nonfinite,
        /// As [`OnRange::Nonfinite`], even if the rounding is toward the largest finite value.
        NonfiniteAlways,
        /// The largest finite value of the same sign.
        Saturate,
        Error,
    }

    /// Treatment of NaN.
    Nan {
        /// Sign and leading payload bits are kept between IEEE formats; an unchanged type copies the code.
        Keep,
        /// The canonical quiet NaN of the same sign.
        Canonical,
        Error,
    }

    /// Result for NaN in a format without NaN.
    NanSubstitute {
        /// Code of -0 for +NaN, code of +0 for -NaN.
        ZeroFlipped,
        /// The largest finite value with the sign of the NaN.
        MaxSigned,
        /// The largest finite value.
        MaxPositive,
        CodeZero,
    }

    /// Result for an integer out of range.
    IntOverflow {
        /// The residue modulo 2^N.
        Wrap,
        /// The nearest bound.
        Saturate,
        /// The smallest value of a signed type, or all ones in an unsigned type.
        Indefinite,
        /// The nearest bound, or the next f32 toward zero.
        SaturateToF32,
        Error,
    }

    /// Result for NaN in an integer type.
    NanToInt {
        Zero,
        /// The largest value of the type.
        Saturate,
        /// The smallest value of a signed type, or all ones in an unsigned type.
        Indefinite,
        /// The code with only its top bit set.
        TopBit,
        Error,
    }

    /// Treatment of subnormals.
    Subnormals {
        Keep,
        /// Subnormals are read and written as zeros of the same sign.
        Flush,
        /// Subnormals are read as zeros of the same sign.
        FlushSource,
        /// Subnormals are written as zeros of the same sign.
        FlushResult,
    }

    /// Value whose range is tested, for a float destination.
    Range {
        Rounded,
        Source,
    }

    /// Result for a negative value in an unsigned format.
    Negative {
        /// The smallest code, 0.
        Smallest,
        Nan,
        /// The result for the magnitude.
        Magnitude,
        Error,
    }

    /// Result for zero, or for a value that rounds to zero, in a format without zero.
    Vanishing {
        /// The smallest code, 0.
        Smallest,
        Nan,
        Error,
    }
}

/// One value of each choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Rounding to float formats, mxint8 and nf4.
    pub to_float: Rounding,
    /// Rounding to integer types.
    pub to_int: Rounding,
    /// Finite values beyond the range of a float destination.
    pub overflow: OnRange,
    /// Infinities, for a float destination.
    pub inf: OnRange,
    /// NaN, for any destination.
    pub nan: Nan,
    /// NaN, for a float destination without NaN.
    pub nan_substitute: NanSubstitute,
    /// Values beyond the range of an integer destination.
    pub int_overflow: IntOverflow,
    /// NaN, for an integer destination.
    pub nan_to_int: NanToInt,
    /// Subnormals in source and destination.
    pub subnormals: Subnormals,
    /// Value whose range is tested, for a float destination.
    pub range: Range,
    /// Negative values, for an unsigned float destination.
    pub negative: Negative,
    /// Zero, for a float destination without zero.
    pub vanishing: Vanishing,
    /// Intermediate type of a conversion in two steps.
    pub via: Option<super::Type>,
    /// Negative values become +0, and NaN the canonical NaN.
    pub relu: bool,
    /// Power of two with which finite values are multiplied first.
    pub scale_exponent: i32,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            to_float: Rounding::NearestEven,
            to_int: Rounding::TowardZero,
            overflow: OnRange::Nonfinite,
            inf: OnRange::Nonfinite,
            nan: Nan::Keep,
            nan_substitute: NanSubstitute::ZeroFlipped,
            int_overflow: IntOverflow::Wrap,
            nan_to_int: NanToInt::Zero,
            subnormals: Subnormals::Keep,
            range: Range::Rounded,
            negative: Negative::Nan,
            vanishing: Vanishing::Nan,
            via: None,
            relu: false,
            scale_exponent: 0,
        }
    }
}
