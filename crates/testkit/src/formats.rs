//! Narrow formats as the specification pages define them, independent of the code under test.
#![allow(clippy::type_complexity)] // a table's type is its heading

/// The element types, in the order of `docs/interfaces.md §1`.
pub const TYPES: &str = "bool string i1 u1 i2 u2 u3 i4 u4 u6 i8 u8 i16 u16 i32 u32 i48 i64 u64 \
    f4e2m1 f6e2m3 f6e3m2 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0 f8e3m4 f8e4m3ieee f8e4m3b11fnuz f8e5m3fnu \
    f16 bf16 tf32 f32 f64 mxint8 nf4 c64";

/// Meaning of the codes with the largest exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Top {
    /// Infinities and NaNs, as in IEEE 754.
    Ieee,
    /// Numbers, except for a NaN with all bits set.
    Fn,
    /// Numbers; the code of -0 is the only NaN.
    Fnuz,
    /// Numbers only.
    Finite,
}

/// A floating-point format: widths of the fields, bias, top codes.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Name of the type in truecast.
    pub name: &'static str,
    /// Width of the sign: 1 or 0.
    pub sign: u32,
    /// Width of the exponent in bits.
    pub exp: u32,
    /// Width of the fraction in bits.
    pub man: u32,
    /// Bias of the exponent.
    pub bias: i32,
    /// Meaning of the codes with the largest exponent.
    pub top: Top,
}

const fn format(name: &'static str, [sign, exp, man]: [u32; 3], bias: i32, top: Top) -> Format {
    Format { name, sign, exp, man, bias, top }
}

/// `docs/spec/onnx.md §2.1`, `docs/spec/tile-ir.md §3.1`, `docs/kernels.md §3.3`.
pub const FORMATS: [Format; 16] = [
    format("f32", [1, 8, 23], 127, Top::Ieee),
    format("tf32", [1, 8, 10], 127, Top::Ieee),
    format("bf16", [1, 8, 7], 127, Top::Ieee),
    format("f16", [1, 5, 10], 15, Top::Ieee),
    format("f8e5m2", [1, 5, 2], 15, Top::Ieee),
    format("f8e4m3ieee", [1, 4, 3], 7, Top::Ieee),
    format("f8e3m4", [1, 3, 4], 3, Top::Ieee),
    format("f8e4m3fn", [1, 4, 3], 7, Top::Fn),
    format("f8e5m3fnu", [0, 5, 3], 15, Top::Fn),
    format("f8e8m0", [0, 8, 0], 127, Top::Fn),
    format("f8e4m3fnuz", [1, 4, 3], 8, Top::Fnuz),
    format("f8e5m2fnuz", [1, 5, 2], 16, Top::Fnuz),
    format("f8e4m3b11fnuz", [1, 4, 3], 11, Top::Fnuz),
    format("f6e2m3", [1, 2, 3], 1, Top::Finite),
    format("f6e3m2", [1, 3, 2], 3, Top::Finite),
    format("f4e2m1", [1, 2, 1], 1, Top::Finite),
];

impl Format {
    /// Width of a code.
    pub fn bits(&self) -> u32 {
        self.sign + self.exp + self.man
    }
    /// Mask of the sign bit; 0 without a sign.
    pub fn sign_bit(&self) -> u64 {
        (self.sign as u64) << (self.exp + self.man)
    }
    /// Mask of all bits except the sign.
    pub fn magnitude_mask(&self) -> u64 {
        (1 << (self.exp + self.man)) - 1
    }
    /// True if the format has a zero; only E8M0 has none.
    pub fn has_zero(&self) -> bool {
        self.name != "f8e8m0"
    }
    /// Code of the largest finite magnitude (`docs/kernels.md §4.6`).
    pub fn max(&self) -> i64 {
        let all = self.magnitude_mask() as i64;
        match self.top {
            Top::Ieee => all - (1 << self.man),
            Top::Fn => all - 1,
            Top::Fnuz | Top::Finite => all,
        }
    }
    /// Code of the canonical NaN.
    ///
    /// # Panics
    /// If the format has no NaN.
    pub fn nan(&self) -> u64 {
        match self.top {
            Top::Ieee => self.max() as u64 + 1 + (1 << (self.man - 1)),
            Top::Fn => self.magnitude_mask(),
            Top::Fnuz => 0x80,
            Top::Finite => panic!("{} has no NaN", self.name),
        }
    }
    /// Code for an overflow without saturation.
    pub fn over(&self, neg: bool) -> u64 {
        let sign = if neg { self.sign_bit() } else { 0 };
        match self.top {
            Top::Ieee => (self.max() as u64 + 1) | sign,
            Top::Fn => self.magnitude_mask() | sign,
            Top::Fnuz => 0x80,
            Top::Finite => self.max() as u64 | sign,
        }
    }
    /// Value of a magnitude code (`docs/spec/onnx.md §2.2`). Also accepts the code after the largest. For E8M0, the
    /// code before the smallest has the value 0.
    pub fn magnitude(&self, code: i64) -> f64 {
        if !self.has_zero() {
            return if code < 0 { 0.0 } else { pow2(code as i32 - 127) };
        }
        let field = (code >> self.man) as i32;
        let fraction = (code & ((1 << self.man) - 1)) as f64 * pow2(-(self.man as i32));
        if field == 0 { pow2(1 - self.bias) * fraction } else { pow2(field - self.bias) * (1.0 + fraction) }
    }
    /// Value of a code, infinities included; `None` for NaN.
    pub fn read(&self, code: u64) -> Option<f64> {
        let (magnitude, neg) = ((code & self.magnitude_mask()) as i64, code & self.sign_bit() != 0);
        let signed = |x: f64| Some(if neg { -x } else { x });
        match self.top {
            Top::Fnuz if code == 0x80 => None,
            Top::Ieee if magnitude == self.max() + 1 => signed(f64::INFINITY),
            _ if magnitude > self.max() => None,
            _ => signed(self.magnitude(magnitude)),
        }
    }
    /// Value of a code.
    ///
    /// # Panics
    /// If the code is a NaN.
    pub fn value(&self, code: u64) -> f64 {
        self.read(code).unwrap_or_else(|| panic!("{} {code:x} is NaN", self.name))
    }
    /// Position of a code on the number line. -0 and +0 are at 0.
    pub fn ordinal(&self, code: u64) -> i64 {
        let magnitude = (code & self.magnitude_mask()) as i64;
        if code & self.sign_bit() != 0 { -magnitude } else { magnitude }
    }
    /// True if a code has exactly this value.
    pub fn holds(&self, x: f64) -> bool {
        if x < 0.0 && self.sign == 0 {
            return false;
        }
        let (mut low, mut high) = (0, self.max());
        while low < high {
            let middle = (low + high + 1) / 2;
            if self.magnitude(middle) <= x.abs() { low = middle } else { high = middle - 1 }
        }
        self.magnitude(low) == x.abs()
    }
}

/// `docs/spec/onnx.md §2.3`: codes and their values. A value is an integer and an exponent of 2.
#[rustfmt::skip]
pub const SPECIAL_CODES: [(&str, &[(u64, i64, i32)]); 5] = [
    ("f8e4m3fn", &[
        (0x00, 0, 0), (0x01, 1, -9), (0x07, 7, -9), (0x08, 1, -6), (0x30, 1, -1), (0x38, 1, 0), (0x40, 2, 0),
        (0x7e, 448, 0), (0xfe, -448, 0),
    ]),
    ("f8e4m3fnuz", &[
        (0x00, 0, 0), (0x01, 1, -10), (0x07, 7, -10), (0x08, 1, -7), (0x38, 1, -1), (0x40, 1, 0), (0x48, 2, 0),
        (0x7f, 240, 0), (0xff, -240, 0),
    ]),
    ("f8e5m2", &[
        (0x00, 0, 0), (0x01, 1, -16), (0x03, 3, -16), (0x04, 1, -14), (0x38, 1, -1), (0x3c, 1, 0), (0x40, 2, 0),
        (0x7b, 57344, 0), (0xfb, -57344, 0),
    ]),
    ("f8e5m2fnuz", &[
        (0x00, 0, 0), (0x01, 1, -17), (0x03, 3, -17), (0x04, 1, -15), (0x3c, 1, -1), (0x40, 1, 0), (0x44, 2, 0),
        (0x7f, 57344, 0), (0xff, -57344, 0),
    ]),
    ("f8e8m0", &[(0x00, 1, -127), (0x7e, 1, -1), (0x7f, 1, 0), (0x80, 2, 0), (0xfe, 1, 127)]),
];

/// `docs/spec/onnx.md §2.4`: values of the codes without a sign bit.
#[rustfmt::skip]
pub const SMALL_FLOATS: [(&str, &[f64]); 3] = [
    ("f4e2m1", &[0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]),
    ("f6e2m3", &[
        0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875,
        1.0, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875,
        2.0, 2.25, 2.5, 2.75, 3.0, 3.25, 3.5, 3.75,
        4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5,
    ]),
    ("f6e3m2", &[
        0.0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375,
        0.5, 0.625, 0.75, 0.875, 1.0, 1.25, 1.5, 1.75,
        2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0,
        8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0, 28.0,
    ]),
];

/// `docs/spec/openvino.md §1.3`: values of NF4, as f32 bits.
#[rustfmt::skip]
pub const NF4: [u32; 16] = [
    0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F, 0xBDBA7871, 0x00000000,
    0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A, 0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, 0x3F800000,
];

/// Thresholds between the values of NF4.
#[rustfmt::skip]
pub const NF4_THRESHOLDS: [u32; 15] = [
    0xBF591CD9, 0xBF1C5270, 0xBEEB8480, 0xBEADEA76, 0xBE703CEC, 0xBE0D38BC, 0xBD3A7871, 0x3D22FAFF,
    0x3DF64863, 0x3E5067E0, 0x3E9582D4, 0x3EC753F9, 0x3F006D03, 0x3F248DAF, 0x3F5C89D9,
];

/// Value of an E4M3FN code: exponent of four bits with bias 7, fraction of three bits. 0x7f and 0xff are NaN.
#[must_use]
pub fn e4m3(code: u8) -> f32 {
    let (exponent, fraction) = (i32::from(code >> 3 & 15), f32::from(code & 7));
    let magnitude = match (exponent, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => fraction * 2f32.powi(-9),
        _ => (8.0 + fraction) * 2f32.powi(exponent - 10),
    };
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// Values of the E2M1 codes.
pub const E2M1: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// Nearest bf16, ties to even. NaN becomes 0x7fc0 with the sign of `x`.
#[must_use]
pub fn bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() { 0x7fc0 | (bits >> 16) as u16 & 0x8000 } else { ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16 }
}

/// Little-endian elements of two bytes.
#[must_use]
pub fn halves(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// 2^e for exponents of normal f64 numbers.
#[must_use]
pub fn pow2(e: i32) -> f64 {
    assert!((-1022..=1023).contains(&e));
    f64::from_bits(((e + 1023) as u64) << 52)
}
