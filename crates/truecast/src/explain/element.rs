//! One element: code, value, adjacent values and the parts of a NaN.

use truecast_core::exact::decode;
use truecast_core::format::IntFormat;
use truecast_core::{DType, Exact, Kind};

/// A code with its type and value.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Type of the element.
    pub dtype: DType,
    /// Code of the element.
    pub code: u64,
    /// Exact value of the element.
    pub value: Exact,
}

impl Decoded {
    pub(super) fn new(dtype: DType, code: u64) -> Decoded {
        Decoded { dtype, code, value: decode(dtype, code) }
    }

    /// Returns the next lower and the next higher value of the element's type, or `None` if the type has no such value.
    /// Both are `None` for NaN, infinities and Bool.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::DType;
    /// use truecast::explain::explain;
    /// let one = explain(DType::F16, 0x3c00, DType::F32).source;
    /// assert_eq!(one.adjacent().map(|e| e.map(|e| e.code)), [Some(0x3bff), Some(0x3c01)]);
    /// ```
    #[must_use]
    pub fn adjacent(&self) -> [Option<Decoded>; 2] {
        let Exact::Finite { neg, .. } = self.value else { return [None, None] };
        let of_integer = |f: IntFormat| {
            let value = f.value(self.code);
            [value - 1, value + 1].map(|v| (f.min()..=f.max()).contains(&v).then(|| f.code(v)))
        };
        let codes = match self.dtype.kind() {
            Kind::Float(f) => {
                let (magnitude, sign) = (self.code & f.magnitude_mask(), self.code & f.sign_bit());
                let outward = (magnitude < f.max_code()).then(|| sign | (magnitude + 1));
                let inward = match magnitude {
                    // Beyond zero, the other sign begins.
                    0 => f.signed.then(|| (sign ^ f.sign_bit()) | 1),
                    1 if !f.has_negative_zero() => Some(0),
                    _ => Some(sign | (magnitude - 1)),
                };
                if neg { [outward, inward] } else { [inward, outward] }
            }
            Kind::Int(f) => of_integer(f),
            Kind::Fixed(f) => of_integer(f.int),
            Kind::Book(book) => {
                [self.code.checked_sub(1), Some(self.code + 1).filter(|code| *code < book.values.len() as u64)]
            }
            _ => [None, None],
        };
        codes.map(|code| code.map(|code| Decoded::new(self.dtype, code)))
    }

    /// Returns the parts of a NaN; `None` for other values.
    #[must_use]
    pub fn nan(&self) -> Option<NanParts> {
        let Exact::Nan { neg, payload } = self.value else { return None };
        let fields = payload.zip(match self.dtype.kind() {
            Kind::Float(f) => Some(u32::from(f.man_bits)),
            _ => None,
        });
        let (is_quiet, payload, payload_bits) = match fields {
            // The fraction is left-aligned; its first bit is the quiet bit.
            Some((bits, width)) => (Some(bits >> 63 == 1), (bits << 1).checked_shr(65 - width).unwrap_or(0), width - 1),
            None => (None, 0, 0),
        };
        Some(NanParts { neg, is_quiet, payload, payload_bits })
    }
}

/// The parts of a NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NanParts {
    /// The sign bit.
    pub neg: bool,
    /// Quiet or signaling; `None` for formats with one NaN per sign.
    pub is_quiet: Option<bool>,
    /// The fraction bits below the quiet bit.
    pub payload: u64,
    /// Number of payload bits.
    pub payload_bits: u32,
}
