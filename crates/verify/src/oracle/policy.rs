//! Choices that a conversion leaves open: plain enums, and `Policy`, which holds one of each.
//!
//! The semantics are in `convert.rs`.

/// Declares plain enums with the list of all their values, which sweeps need.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
        }
    )+};
}

choices! {
    /// Neighbor that an inexact value rounds to.
    Rounding {
        /// The nearer one; a tie goes to the even code.
        NearestEven,
        /// The nearer one; a tie goes away from zero.
        NearestAway,
        /// The one nearer to zero.
        TowardZero,
        /// The one nearer to +infinity.
        Up,
        /// The one nearer to -infinity.
        Down,
        /// The one farther from zero.
        AwayFromZero,
        /// The nearer one; a tie goes toward +infinity.
        NearestUp,
        /// The one with the odd code.
        ToOdd,
    }

    /// Result for a value beyond the largest finite one.
    OnRange {
        /// Infinity, or NaN without one, or the largest finite value without either.
        Nonfinite,
        /// [`OnRange::Nonfinite`], also if the rounding is toward the largest finite value.
        NonfiniteAlways,
        /// The largest finite value of the same sign.
        Saturate,
        /// The conversion is refused.
        Error,
    }

    /// Treatment of NaN.
    Nan {
        /// Sign and leading payload bits survive between IEEE formats; an unchanged type copies the code.
        Keep,
        /// The canonical quiet NaN of the same sign.
        Canonical,
        /// The conversion is refused.
        Error,
    }

    /// Result for NaN in a format without NaN.
    NanSubstitute {
        /// The code of -0 for +NaN, of +0 for -NaN.
        ZeroFlipped,
        /// The largest finite value with the sign of the NaN.
        MaxSigned,
        /// The largest finite value.
        MaxPositive,
        /// The code 0.
        CodeZero,
    }

    /// Result for an integer out of range.
    IntOverflow {
        /// Its residue modulo 2^N.
        Wrap,
        /// The nearest bound.
        Saturate,
        /// The least value of a signed type, all ones of an unsigned one.
        Indefinite,
        /// The nearest bound, or the next f32 toward zero from it.
        SaturateToF32,
        /// The conversion is refused.
        Error,
    }

    /// Result for NaN in an integer type.
    NanToInt {
        /// 0.
        Zero,
        /// The largest value of the type.
        Saturate,
        /// The least value of a signed type, all ones of an unsigned one.
        Indefinite,
        /// The code with only its top bit set.
        TopBit,
        /// The conversion is refused.
        Error,
    }

    /// Treatment of subnormals.
    Subnormals {
        /// Kept.
        Keep,
        /// Read and written as zero of the same sign.
        Flush,
        /// Read as zero of the same sign.
        FlushSource,
        /// Written as zero of the same sign.
        FlushResult,
    }

    /// Value that the range test of a float destination examines.
    Range {
        /// The rounded value.
        Rounded,
        /// The source value.
        Source,
    }

    /// Result for a negative value in an unsigned format.
    Negative {
        /// The smallest code, 0.
        Smallest,
        /// NaN.
        Nan,
        /// Its magnitude is converted.
        Magnitude,
        /// The conversion is refused.
        Error,
    }

    /// Result for zero, or a value that rounds to it, in a format without zero.
    Vanishing {
        /// The smallest code, 0.
        Smallest,
        /// NaN.
        Nan,
        /// The conversion is refused.
        Error,
    }
}

/// One complete set of choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Rounding into float formats, mxint8 and nf4.
    pub to_float: Rounding,
    /// Rounding into integer types.
    pub to_int: Rounding,
    /// Finite values beyond the range of a float destination.
    pub overflow: OnRange,
    /// Infinities into a float destination.
    pub inf: OnRange,
    /// NaN, for any destination.
    pub nan: Nan,
    /// NaN into a float destination without NaN.
    pub nan_substitute: NanSubstitute,
    /// Values beyond the range of an integer destination.
    pub int_overflow: IntOverflow,
    /// NaN into an integer destination.
    pub nan_to_int: NanToInt,
    /// Subnormals of the source and of the destination.
    pub subnormals: Subnormals,
    /// Value for the range test of a float destination.
    pub range: Range,
    /// Negative values into an unsigned float destination.
    pub negative: Negative,
    /// Zero into a float destination without zero.
    pub vanishing: Vanishing,
    /// Type to convert to first.
    pub via: Option<super::Type>,
    /// Negative values become +0, and NaN the canonical one.
    pub relu: bool,
    /// Finite values are multiplied by this power of two first.
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
