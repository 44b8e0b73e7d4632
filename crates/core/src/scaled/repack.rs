//! Conversion of a plane to another plane with the same values (`docs/spec/checkpoints.md §8`).

use super::dequantize::zero_point;
use super::layout::{Code, Plane};
use crate::exact::encode_float;
use crate::policy::CastPolicy;
use core::cmp::Ordering;

/// Conversion of plane `from` to plane `to`. Rows and columns refer to stored matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Repacking {
    /// Source plane.
    pub from: Plane,
    /// Rows and columns of `from`.
    pub from_shape: [u64; 2],
    /// Destination plane.
    pub to: Plane,
    /// Rows and columns of `to`.
    pub to_shape: [u64; 2],
    /// Size `[rows, cols]` of the part of `to` that holds entries of `from`. All other bits are 0.
    pub kept: [u64; 2],
    /// If true, rows of `to` are columns of `from`.
    pub transposed: bool,
    /// Change of each entry.
    pub change: Change,
}

/// Change of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Bits are unchanged.
    None,
    /// Integer, plus `add`.
    Integer {
        /// Number to add to the value.
        add: i32,
        /// Offsets of stored entries in `from` and `to`, as in [`super::Zero::Grid`].
        plus: [u8; 2],
    },
    /// Floating-point number, converted to another type.
    Float,
}

impl Change {
    /// Returns the code in `to` for a code of `from`; `None` if no code has that value.
    #[must_use]
    pub fn code(self, [from, to]: [Plane; 2], code: u64) -> Option<u64> {
        match (self, to.code) {
            (Change::None, _) => Some(code),
            (Change::Integer { add, plus }, Code::Int(format)) => {
                let value = zero_point(&from, plus[0], code) + i64::from(add);
                let made = (value as u64) & format.mask();
                let is_same = format.value(made) as i64 == value;
                is_same.then_some(made.wrapping_sub(plus[1].into()) & format.mask())
            }
            (Change::Float, Code::Float(_)) => {
                let value = from.code.value(code);
                let made = encode_float(&to.code.format()?, &CastPolicy::IEEE, value).code?;
                (to.code.value(made).cmp_value(value) == Ordering::Equal).then_some(made)
            }
            _ => None,
        }
    }
}

impl Repacking {
    /// Returns the code in `to` for a code of `from`; `None` if no code has that value.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, scaled::{Change, Code, Packing, Plane, Repacking}};
    /// let nibbles = |code| Plane { code, packing: Packing::BYTES };
    /// // Signed integers as unsigned ones less 8.
    /// let repacking = Repacking {
    ///     from: nibbles(Code::signed(4)), from_shape: [1, 2], to: nibbles(Code::unsigned(4)), to_shape: [1, 2],
    ///     kept: [1, 2], transposed: false, change: Change::Integer { add: 8, plus: [0, 0] },
    /// };
    /// assert_eq!([0, 7, 8, 15].map(|code| repacking.code(code)), [Some(8), Some(15), Some(0), Some(7)]);
    /// let scales = Repacking {
    ///     from: Plane::of(DType::F32), to: Plane::of(DType::F8E8M0), change: Change::Float, ..repacking
    /// };
    /// assert_eq!(scales.code(0.5f32.to_bits().into()), Some(126));
    /// assert_eq!(scales.code(0.75f32.to_bits().into()), None);
    /// ```
    #[must_use]
    pub fn code(&self, code: u64) -> Option<u64> {
        self.change.code([self.from, self.to], code)
    }

    /// Returns the position in `from` of an entry in `to`; `None` beyond `kept`.
    #[must_use]
    pub fn source(&self, [row, col]: [u64; 2]) -> Option<[u64; 2]> {
        let is_kept = row < self.kept[0] && col < self.kept[1];
        is_kept.then_some(if self.transposed { [col, row] } else { [row, col] })
    }
}
