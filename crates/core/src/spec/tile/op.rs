//! The nine operations and their attributes. Variants have the order of the numbers in the bytecode (§3.8, §10.7).

use super::Release;
use crate::round::Rounding;
use crate::words::words;

words! {
    /// Signedness of an integer.
    pub enum Signedness {
        /// Plain binary.
        Unsigned = "unsigned",
        /// Two's complement.
        Signed = "signed",
    }
    /// Promise of trunci about dropped bits (§6.6).
    pub enum IntegerOverflow {
        /// No promise.
        None = "none",
        /// The dropped bits equal the top bit of the result.
        NoSignedWrap = "no_signed_wrap",
        /// The dropped bits are zero.
        NoUnsignedWrap = "no_unsigned_wrap",
        /// Both promises.
        NoWrap = "no_wrap",
    }
    /// Rounding modes of the language. A conversion never has `approx` or `full`.
    pub enum RoundingMode {
        /// To nearest, ties to even.
        NearestEven = "nearest_even",
        /// Toward zero.
        Zero = "zero",
        /// Toward -Inf.
        NegativeInf = "negative_inf",
        /// Toward +Inf.
        PositiveInf = "positive_inf",
        /// For other operations only.
        Approx = "approx",
        /// For other operations only.
        Full = "full",
        /// Toward zero, for conversions to integers.
        NearestIntToZero = "nearest_int_to_zero",
        /// To nearest, ties away from zero; since file version 13.4.
        NearestAway = "nearest_away",
    }
    /// Operations without attributes.
    pub enum Op {
        /// Copies bits.
        Bitcast = "bitcast",
        /// Widens an integer.
        Exti = "exti",
        /// Float to float.
        Ftof = "ftof",
        /// Float to integer.
        Ftoi = "ftoi",
        /// Address to pointer.
        IntToPtr = "int_to_ptr",
        /// Integer to float.
        Itof = "itof",
        /// Pointer to address.
        PtrToInt = "ptr_to_int",
        /// Pointer to pointer, with another pointee.
        PtrToPtr = "ptr_to_ptr",
        /// Narrows an integer.
        Trunci = "trunci",
    }
}

macro_rules! numbered {
    ($($name:ident)*) => {$(
        impl $name {
            /// Returns the variant of a number in the bytecode.
            #[must_use]
            pub fn of_number(number: u64) -> Option<$name> {
                usize::try_from(number).ok().and_then(|n| $name::ALL.get(n).copied())
            }
        }
    )*};
}

numbered! { Signedness IntegerOverflow RoundingMode }

impl RoundingMode {
    /// Returns the first file version with the mode. Source: §4.7.
    #[must_use]
    pub const fn since(self) -> Release {
        match self {
            RoundingMode::NearestAway => Release::V13_4,
            _ => Release::V13_1,
        }
    }

    /// Returns the rounding of this crate; `None` for modes of other operations.
    #[must_use]
    pub const fn rounding(self) -> Option<Rounding> {
        Some(match self {
            RoundingMode::NearestEven => Rounding::NearestEven,
            RoundingMode::Zero | RoundingMode::NearestIntToZero => Rounding::TowardZero,
            RoundingMode::NegativeInf => Rounding::Down,
            RoundingMode::PositiveInf => Rounding::Up,
            RoundingMode::NearestAway => Rounding::NearestAway,
            RoundingMode::Approx | RoundingMode::Full => return None,
        })
    }
}

/// Operation with attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The variants are those of `Op`, the fields the attributes of §4.2.
pub enum Conversion {
    Bitcast,
    Exti { signedness: Signedness },
    Ftof { rounding: RoundingMode },
    Ftoi { signedness: Signedness, rounding: RoundingMode, saturating: bool },
    IntToPtr,
    Itof { signedness: Signedness, rounding: RoundingMode },
    PtrToInt,
    PtrToPtr,
    Trunci { overflow: IntegerOverflow },
}

impl Conversion {
    /// Returns the operation without attributes.
    #[must_use]
    pub const fn op(self) -> Op {
        match self {
            Conversion::Bitcast => Op::Bitcast,
            Conversion::Exti { .. } => Op::Exti,
            Conversion::Ftof { .. } => Op::Ftof,
            Conversion::Ftoi { .. } => Op::Ftoi,
            Conversion::IntToPtr => Op::IntToPtr,
            Conversion::Itof { .. } => Op::Itof,
            Conversion::PtrToInt => Op::PtrToInt,
            Conversion::PtrToPtr => Op::PtrToPtr,
            Conversion::Trunci { .. } => Op::Trunci,
        }
    }

    /// Returns the rounding mode; `None` if the operation has no rounding mode.
    #[must_use]
    pub const fn rounding(self) -> Option<RoundingMode> {
        match self {
            Conversion::Ftof { rounding } | Conversion::Ftoi { rounding, .. } | Conversion::Itof { rounding, .. } => {
                Some(rounding)
            }
            _ => None,
        }
    }
}

impl Op {
    /// Returns the operation with its attributes. Optional attributes have their defaults (§9.3). `signedness` matters
    /// only for an operation that has a signedness.
    #[must_use]
    pub const fn with_defaults(self, signedness: Signedness) -> Conversion {
        match self {
            Op::Bitcast => Conversion::Bitcast,
            Op::Exti => Conversion::Exti { signedness },
            Op::Ftof => Conversion::Ftof { rounding: RoundingMode::NearestEven },
            Op::Ftoi => Conversion::Ftoi { signedness, rounding: RoundingMode::NearestIntToZero, saturating: false },
            Op::IntToPtr => Conversion::IntToPtr,
            Op::Itof => Conversion::Itof { signedness, rounding: RoundingMode::NearestEven },
            Op::PtrToInt => Conversion::PtrToInt,
            Op::PtrToPtr => Conversion::PtrToPtr,
            Op::Trunci => Conversion::Trunci { overflow: IntegerOverflow::None },
        }
    }

    /// Returns whether the operation has a signedness.
    #[must_use]
    pub const fn has_signedness(self) -> bool {
        matches!(self, Op::Exti | Op::Ftoi | Op::Itof)
    }
}
