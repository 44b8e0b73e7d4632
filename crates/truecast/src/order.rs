//! Codes in the order of their values.

use truecast_core::{DType, Kind};

/// Numbers (keys) of codes in the order of values. Neighboring values have neighboring keys. NaNs are beyond the
/// infinities, and -0 is below +0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) sign: u64,
    /// Bits that are flipped in every code.
    pub(crate) flipped: u64,
    /// Bits that are also flipped in negative codes.
    pub(crate) in_negative: u64,
}

impl Keys {
    /// Keys of a type. `None` unless the type is a float, or an integer that fills its storage.
    pub(crate) fn of(dtype: DType) -> Option<Keys> {
        let sign = 1 << (dtype.code_bits() - 1);
        match dtype.kind() {
            Kind::Float(f) if f.signed => Some(Keys { sign, flipped: sign, in_negative: sign - 1 }),
            Kind::Int(f) => Some(Keys { sign, flipped: if f.signed { sign } else { 0 }, in_negative: 0 }),
            _ => None,
        }
    }

    /// Keys equal to the codes, for types without [`Keys::of`].
    pub(crate) const AS_CODES: Keys = Keys { sign: 0, flipped: 0, in_negative: 0 };

    #[inline(always)]
    pub(crate) fn key(self, code: u64) -> u64 {
        let negative = if code & self.sign != 0 { self.in_negative } else { 0 };
        code ^ (self.flipped | negative)
    }

    #[inline(always)]
    pub(crate) fn code(self, key: u64) -> u64 {
        let code = key ^ self.flipped;
        if code & self.sign != 0 { code ^ self.in_negative } else { code }
    }
}
