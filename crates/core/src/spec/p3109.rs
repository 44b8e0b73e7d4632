//! IEEE P3109 (interim report 4.0): formats by name, and projection of a number into a format. Read with
//! `docs/spec/p3109.md`.
//!
//! The formats are not element types, so a projection returns a code, not a [`crate::CastSpec`].

use crate::exact::{Exact, RandomBits, Stochastic, encode_float, unit};
use crate::format::{FloatFormat, FormatError, MAX_EXPONENT, Specials};
use crate::policy::{CastPolicy, Overflow, Unrepresentable};
use crate::round::Rounding;
use crate::words::words;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// Version of the interim report.
pub const VERSION: &str = "4.0";

/// Clause with the rules of projections.
pub const CLAUSE: &str = "P3109 interim report 4.0 §4.7; docs/spec/p3109.md §3";

/// Rounding modes without random bits (§4.7.4).
pub const ROUNDINGS: [(&str, Rounding); 6] = [
    ("NearestTiesToEven", Rounding::NearestEven),
    ("NearestTiesToAway", Rounding::NearestAway),
    ("TowardPositive", Rounding::Up),
    ("TowardNegative", Rounding::Down),
    ("TowardZero", Rounding::TowardZero),
    ("ToOdd", Rounding::ToOdd),
];

words! {
    /// Signedness, with the letter in the name of a format.
    pub enum Signedness {
        /// With a sign bit.
        Signed = "s",
        /// Without a sign bit.
        Unsigned = "u",
    }

    /// Domain, with or without infinities; the last letter in the name of a format.
    pub enum Domain {
        /// With infinities.
        Extended = "e",
        /// Without infinities.
        Finite = "f",
    }

    /// Result for a rounded value beyond the finite range (§4.7.5).
    pub enum Saturation {
        /// The largest finite value, also for infinities.
        Finite = "SatFinite",
        /// The largest finite value; infinities are kept.
        Propagate = "SatPropagate",
        /// Extended format: Inf, unless the rounding stops at the largest finite value. Finite format: the largest
        /// finite value.
        /// Unsigned format: NaN for -Inf and for a finite value that rounds to a negative value. A rounding toward zero
        /// or up gives 0 for that finite value.
        None = "SatNone",
    }
}

/// Error for a format that does not exist or is not supported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum InvalidFormat {
    #[error(
        "{name:?} is not a format of P3109, such as binary8p4se: bits, precision, s or u (signed, unsigned), e or f \
         (extended, finite)"
    )]
    Name { name: String },
    /// Fewer than 3 bits.
    #[error("a format of P3109 has at least 3 bits, not {bits}")]
    Bits {
        /// Requested number of bits.
        bits: u8,
    },
    /// The precision is 0 or leaves no bit for an exponent.
    #[error("precision {precision}: with {bits} bits, a format of P3109 of this signedness has 1 to {most}")]
    Precision {
        /// Number of bits in the format.
        bits: u8,
        /// Requested precision.
        precision: u8,
        /// Highest precision.
        most: u8,
    },
    /// P3109 has the format, but truecast does not support it.
    #[error("too wide for truecast: {0}")]
    Width(#[from] FormatError),
}

/// Format `Binary{K, P, signedness, domain}`.
///
/// # Examples
/// ```
/// use truecast_core::{Exact, Rounding, spec::p3109::{Format, Saturation}};
/// let format: Format = "binary8p4se".parse()?;
/// assert_eq!((format.float().max_code(), format.float().nan_code()), (0x7e, Some(0x80))); // 224; the code of -0
/// let x = Exact::Finite { neg: false, sig: 465, exp: 0, sticky: false };
/// let code = |saturation| format.project(Rounding::NearestEven, saturation, x);
/// assert_eq!(Saturation::ALL.map(code), [0x7e, 0x7e, 0x7f]); // the last is Inf
/// # Ok::<(), truecast_core::spec::p3109::InvalidFormat>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format(FloatFormat);

impl Format {
    /// Returns the format with `bits` bits (K) and precision `precision` (P), including the hidden bit.
    ///
    /// Source: `docs/spec/p3109.md §1`.
    ///
    /// # Errors
    /// [`InvalidFormat`]: P3109 does not have the format, or truecast does not support it.
    pub const fn new(bits: u8, precision: u8, signedness: Signedness, domain: Domain) -> Result<Format, InvalidFormat> {
        let signed = matches!(signedness, Signedness::Signed);
        if bits < 3 {
            return Err(InvalidFormat::Bits { bits });
        }
        let most = bits - signed as u8;
        if precision == 0 || precision > most {
            return Err(InvalidFormat::Precision { bits, precision, most });
        }
        let (exp_bits, man_bits) = (most - precision + 1, precision - 1);
        let specials = match (domain, signedness) {
            (Domain::Extended, _) => Specials::Extended,
            (Domain::Finite, Signedness::Signed) => Specials::Fnuz,
            (Domain::Finite, Signedness::Unsigned) => Specials::Fn,
        };
        // If the exponent is too wide, `check` fails for any bias.
        let bias = if exp_bits > MAX_EXPONENT { 0 } else { 1 << (exp_bits - 1) };
        let format = FloatFormat { signed, exp_bits, man_bits, bias, specials, has_zero: true };
        match format.check() {
            Ok(()) => Ok(Format(format)),
            Err(error) => Err(InvalidFormat::Width(error)),
        }
    }

    /// Returns the descriptor of the format.
    #[must_use]
    pub const fn float(&self) -> &FloatFormat {
        &self.0
    }

    /// Returns the code of a value, rounded once with exponents unbounded above, then saturated. Roundings outside
    /// P3109 are accepted, too.
    ///
    /// Source: `docs/spec/p3109.md §3`.
    #[must_use]
    pub fn project(&self, rounding: Rounding, saturation: Saturation, value: Exact) -> u64 {
        let overflow = match rounding {
            Rounding::ToOdd if self.0.signed => Overflow::NonfiniteAlways,
            _ => Overflow::Nonfinite,
        };
        let negative = match rounding {
            Rounding::TowardZero | Rounding::Up => Unrepresentable::Smallest,
            _ => Unrepresentable::Nan,
        };
        self.saturated(CastPolicy { to_float: rounding, overflow, negative, ..CastPolicy::IEEE }, saturation, value)
    }

    /// Projects a value with stochastic rounding, and otherwise like [`Format::project`].
    ///
    /// Source: `docs/spec/p3109.md §4`.
    #[must_use]
    pub fn project_stochastic(
        &self,
        variant: Stochastic,
        random: RandomBits,
        saturation: Saturation,
        value: Exact,
    ) -> u64 {
        let to_float = random.rounding(variant, unit(self.0.last_place(), value), value);
        let policy = CastPolicy { to_float, overflow: Overflow::NonfiniteAlways, ..CastPolicy::IEEE };
        self.saturated(policy, saturation, value)
    }

    /// `none` is the policy of SatNone, for all numbers in an extended format, and for negative numbers in any unsigned
    /// format.
    fn saturated(&self, none: CastPolicy, saturation: Saturation, value: Exact) -> u64 {
        let f = &self.0;
        let policy = match (saturation, f.specials) {
            (Saturation::None, Specials::Extended) => none,
            (Saturation::Propagate, Specials::Extended) => CastPolicy { overflow: Overflow::Saturate, ..none },
            _ => CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, ..none },
        };
        let rounds_to_zero = || {
            let code = encode_float(&FloatFormat { signed: true, ..*f }, &policy, value).code;
            code.is_some_and(|code| code & f.magnitude_mask() == 0)
        };
        let negative = match value {
            _ if saturation != Saturation::None => Unrepresentable::Smallest,
            Exact::Inf { .. } => Unrepresentable::Nan,
            _ if rounds_to_zero() => Unrepresentable::Smallest,
            _ => none.negative,
        };
        encode_float(f, &CastPolicy { negative, ..policy }, value).code.expect("no policy here refuses a value")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let f = &self.0;
        let signedness = if f.signed { Signedness::Signed } else { Signedness::Unsigned };
        let domain = if f.specials == Specials::Extended { Domain::Extended } else { Domain::Finite };
        write!(out, "binary{}p{}{signedness}{domain}", f.bits(), f.precision())
    }
}

impl FromStr for Format {
    type Err = InvalidFormat;

    /// Reads `binary8p4se`; case does not matter.
    fn from_str(name: &str) -> Result<Format, InvalidFormat> {
        let number = |digits: &str| digits.parse().ok().filter(|_| !digits.starts_with(['+', '0']));
        let read = || {
            let lower = name.to_ascii_lowercase();
            let (bits, rest) = lower.strip_prefix("binary")?.split_once('p')?;
            let (precision, letters) = rest.split_at_checked(rest.len().checked_sub(2)?)?;
            let (signedness, domain) = letters.split_at_checked(1)?;
            Some((number(bits)?, number(precision)?, Signedness::of_name(signedness)?, Domain::of_name(domain)?))
        };
        let (bits, precision, signedness, domain) = read().ok_or_else(|| InvalidFormat::Name { name: name.into() })?;
        Format::new(bits, precision, signedness, domain)
    }
}
