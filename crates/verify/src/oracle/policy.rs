//! The choices that a conversion leaves open: plain enums, and `Policy`, which holds one of each.
//!
//! No behavior lives here; `convert.rs` gives each choice its meaning.

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
    /// Which neighbor an inexact value goes to.
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

    /// What a value beyond the largest finite one becomes.
    OnRange {
        /// Infinity, or NaN without one, or the largest finite value without either.
        Nonfinite,
        /// The same, also where the rounding is toward the largest finite value.
        NonfiniteAlways,
        /// The largest finite value of its sign.
        Saturate,
        /// The conversion is refused.
        Error,
    }

    /// What happens to NaN.
    Nan {
        /// Sign and leading payload bits survive between IEEE formats; an unchanged type copies the code.
        Keep,
        /// The canonical quiet NaN of its sign.
        Canonical,
        /// The conversion is refused.
        Error,
    }

    /// What NaN becomes in a format without NaN.
    NanSubstitute {
        /// +NaN gives the code of -0, -NaN that of +0.
        ZeroFlipped,
        /// The largest finite value with the sign of the NaN.
        MaxSigned,
        /// The largest finite value.
        MaxPositive,
        /// The code 0.
        CodeZero,
    }

    /// What an integer out of range becomes.
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

    /// What NaN becomes in an integer type.
    NanToInt {
        /// 0.
        Zero,
        /// The largest value of the type.
        Saturate,
        /// The least value of a signed type, all ones of an unsigned one.
        Indefinite,
        /// The code whose top bit is its only one.
        TopBit,
        /// The conversion is refused.
        Error,
    }

    /// Whether subnormals are numbers.
    Subnormals {
        /// They are.
        Keep,
        /// They read, and are written, as zero of their sign.
        Flush,
        /// They read as zero of their sign.
        FlushSource,
        /// They are written as zero of their sign.
        FlushResult,
    }

    /// On which value the range of a float destination is tested.
    Range {
        /// On the rounded value.
        Rounded,
        /// On the source value.
        Source,
    }

    /// What a negative value becomes in a format without sign.
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

    /// What zero, or a value that rounds to it, becomes in a format without zero.
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
    /// NaN, whatever the destination.
    pub nan: Nan,
    /// NaN into a float destination without NaN.
    pub nan_substitute: NanSubstitute,
    /// Values beyond the range of an integer destination.
    pub int_overflow: IntOverflow,
    /// NaN into an integer destination.
    pub nan_to_int: NanToInt,
    /// Subnormals of the source and of the destination.
    pub subnormals: Subnormals,
    /// Where the range of a float destination is tested.
    pub range: Range,
    /// Negative values into an unsigned float destination.
    pub negative: Negative,
    /// Zero into a float destination without zero.
    pub vanishing: Vanishing,
    /// Converted to this type first.
    pub via: Option<super::Type>,
    /// Whatever is negative is +0, and a NaN the canonical one.
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
