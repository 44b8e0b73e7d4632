//! Element types, pointers and tiles (§3).

use super::{Release, Signedness};
use crate::dtype::{DType, Ecosystem, Kind};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Number type of [`DType::code_bits`] bits: 19 for tf32, 1 for i1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Type in truecast. Integers of Tile IR have no sign, and are represented by the signed type.
    pub dtype: DType,
    /// Tag of the type in the bytecode.
    pub tag: u64,
    /// First file version with the type.
    pub since: Release,
}

/// Every number type. Source: §3.1.
pub const NUMBERS: [Number; 16] = {
    use DType::*;
    use Release::*;
    const fn row(dtype: DType, tag: u64, since: Release) -> Number {
        Number { dtype, tag, since }
    }
    [
        row(I1, 0, V13_1),
        row(I4, 22, V13_3),
        row(I8, 1, V13_1),
        row(I16, 2, V13_1),
        row(I32, 3, V13_1),
        row(I64, 4, V13_1),
        row(F16, 5, V13_1),
        row(Bf16, 6, V13_1),
        row(F32, 7, V13_1),
        row(Tf32, 8, V13_1),
        row(F64, 9, V13_1),
        row(F8E4M3Fn, 10, V13_1),
        row(F8E5M2, 11, V13_1),
        row(F8E8M0, 18, V13_2),
        row(F4E2M1, 19, V13_3),
        row(F8E5M3Fnu, 130, V13_4),
    ]
};

impl Number {
    /// Returns the row of a type; `None` if Tile IR does not have the type.
    #[must_use]
    pub fn of(dtype: DType) -> Option<Number> {
        NUMBERS.into_iter().find(|n| n.dtype == dtype)
    }

    /// Returns the row for a spelling in text, also for a spelling of release 13.1 (§3.1). Case matters.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Number> {
        NUMBERS.into_iter().find(|n| n.dtype.names_in(Ecosystem::Tile).any(|spelling| spelling == name))
    }
}

/// Returns the spelling of a number type in text.
#[must_use]
pub fn spelling(dtype: DType) -> &'static str {
    dtype.names_in(Ecosystem::Tile).next().unwrap_or(dtype.name())
}

/// Element type of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// A number, one of [`NUMBERS`].
    Number(DType),
    /// 64-bit address, and the type of its target.
    Pointer(DType),
}

impl ElementType {
    /// Returns whether the type is an integer.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self, ElementType::Number(n) if matches!(n.kind(), Kind::Int(_)))
    }

    /// Returns whether the type is a float.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, ElementType::Number(n) if matches!(n.kind(), Kind::Float(_)))
    }

    /// Returns the type of an element's code in a buffer. An address is an unsigned integer (§3.6).
    #[must_use]
    pub const fn storage(self) -> DType {
        match self {
            ElementType::Number(n) => n,
            ElementType::Pointer(_) => DType::U64,
        }
    }

    /// Returns the number of bits that the verifier counts.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.storage().code_bits()
    }

    /// Returns the first file version with the type.
    #[must_use]
    pub fn since(self) -> Release {
        let (ElementType::Number(n) | ElementType::Pointer(n)) = self;
        Number::of(n).map_or(Release::V13_1, |number| number.since)
    }
}

impl core::fmt::Display for ElementType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ElementType::Number(n) => f.pad(spelling(*n)),
            ElementType::Pointer(n) => write!(f, "ptr<{}>", spelling(*n)),
        }
    }
}

/// Maximum number of elements in a tile. Source: §3.7.
pub const MAX_ELEMENTS: u64 = 1 << 24;

/// Shape and element type; rank 0 is a scalar.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TileType {
    /// Dimensions.
    pub shape: Vec<u64>,
    /// Element type.
    pub element: ElementType,
}

/// Reason that a tile type is malformed (T014). Source: §3.6, §3.7.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum Malformed {
    /// A dimension is not a power of two.
    #[error("{tile} has a dimension of {dimension}, which is not a positive power of two; pad the tile")]
    Dimension { dimension: u64, tile: TileType },
    /// The tile has too many elements.
    #[error("{0} has more than 16777216 elements; split the tile")]
    Elements(TileType),
    /// The number of f4E2M1FN elements is odd and does not fill whole bytes.
    #[error("{0} has an odd number of 4-bit elements; f4E2M1FN tiles need a dimension of at least 2")]
    HalfByte(TileType),
    /// A pointer to f4E2M1FN is in a tile of rank above 0.
    #[error("{0} is a tile of pointers to f4E2M1FN, which must have rank 0")]
    PackedPointers(TileType),
    /// A pointer has a target type without an address.
    #[error("ptr<{0}> points to a type without an address; use ptr<i8>")]
    Pointee(String),
}

impl TileType {
    /// Returns the number of elements, after a successful [`TileType::check`].
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shape.iter().fold(1, |n, &d| n.saturating_mul(d))
    }

    /// Returns whether the tile has no elements; such a type is malformed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks the rules of §3.7.
    ///
    /// # Errors
    /// [`Malformed`]: the first broken rule.
    pub fn check(&self) -> Result<(), Malformed> {
        if let Some(&bad) = self.shape.iter().find(|d| !d.is_power_of_two()) {
            return Err(Malformed::Dimension { dimension: bad, tile: self.clone() });
        }
        if self.len() > MAX_ELEMENTS {
            return Err(Malformed::Elements(self.clone()));
        }
        match self.element {
            ElementType::Pointer(DType::I4) => Err(Malformed::Pointee(spelling(DType::I4).into())),
            ElementType::Number(DType::F4E2M1) if self.len() < 2 => Err(Malformed::HalfByte(self.clone())),
            ElementType::Pointer(DType::F4E2M1) if !self.shape.is_empty() => {
                Err(Malformed::PackedPointers(self.clone()))
            }
            _ => Ok(()),
        }
    }
}

impl core::fmt::Display for TileType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("tile<")?;
        self.shape.iter().try_for_each(|d| write!(f, "{d}x"))?;
        write!(f, "{}>", self.element)
    }
}

pub(super) fn shape_text(shape: &[u64]) -> String {
    let dimensions: Vec<_> = shape.iter().map(u64::to_string).collect();
    format!("[{}]", dimensions.join("x"))
}

impl Signedness {
    /// Returns the type for reading or writing an integer with this signedness.
    #[must_use]
    pub const fn dtype(self, integer: DType) -> DType {
        match (self, integer) {
            (Signedness::Signed, _) => integer,
            (Signedness::Unsigned, DType::I1) => DType::U1,
            (Signedness::Unsigned, DType::I4) => DType::U4,
            (Signedness::Unsigned, DType::I8) => DType::U8,
            (Signedness::Unsigned, DType::I16) => DType::U16,
            (Signedness::Unsigned, DType::I32) => DType::U32,
            (Signedness::Unsigned, DType::I64) => DType::U64,
            (Signedness::Unsigned, other) => other,
        }
    }
}
