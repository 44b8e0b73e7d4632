//! Types: names, layouts, decoding by textbook formulas, and search for neighbors. Sources: `docs/spec/onnx.md §2.1`,
//! §2.2, `docs/spec/openvino.md §1.3`.

use std::sync::OnceLock;

use super::dyadic::Magnitude;

/// Codes of a float format that are not numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Specials {
    /// All-ones exponent: infinity with fraction 0, else NaN.
    Ieee,
    /// No infinity; the all-ones magnitude is NaN.
    Fn,
    /// No infinity and no -0; the code of -0 is the only NaN.
    Fnuz,
    /// Every code is a number.
    Finite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) signed: bool,
    pub(super) exponent_bits: u32,
    pub(super) fraction_bits: u32,
    pub(super) bias: i32,
    pub(super) specials: Specials,
    pub(super) has_zero: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Float(Format),
    /// Two's complement or unsigned binary integers.
    Int {
        signed: bool,
        bits: u32,
    },
    Bool,
    /// n/64, with n in two's complement.
    MxInt8,
    /// Code book `NF4_VALUES`.
    Nf4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// `fraction` is the fraction field of an IEEE NaN, otherwise 0.
    Nan {
        negative: bool,
        fraction: u64,
    },
    Inf {
        negative: bool,
    },
    /// Zero keeps its sign.
    Finite {
        negative: bool,
        magnitude: Magnitude,
    },
}

macro_rules! types {
    ($($(#[$doc:meta])* $variant:ident $name:literal $bits:literal $class:expr;)+) => {
        /// A numeric type, named as in `docs/interfaces.md §1`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Type { $($(#[$doc])* $variant),+ }

        impl Type {
            pub const ALL: &'static [Type] = &[$(Type::$variant),+];

            pub const fn name(self) -> &'static str {
                match self { $(Type::$variant => $name),+ }
            }

            /// Width of a code in bits. tf32 has 19. bool and i1 have 8: a byte, in which every nonzero code is
            /// accepted.
            pub const fn bits(self) -> u32 {
                match self { $(Type::$variant => $bits),+ }
            }

            pub(super) const fn class(self) -> Class {
                match self { $(Type::$variant => $class),+ }
            }
        }
    };
}

types! {
    /// IEEE binary64.
    F64 "f64" 64 float(11, 52, 1023, Specials::Ieee);
    /// IEEE binary32.
    F32 "f32" 32 float(8, 23, 127, Specials::Ieee);
    /// TensorFloat-32. The 13 padding bits of its storage are left out.
    Tf32 "tf32" 19 float(8, 10, 127, Specials::Ieee);
    /// bfloat16.
    Bf16 "bf16" 16 float(8, 7, 127, Specials::Ieee);
    /// IEEE binary16.
    F16 "f16" 16 float(5, 10, 15, Specials::Ieee);
    /// OCP 8-bit float with infinities.
    F8E5M2 "f8e5m2" 8 float(5, 2, 15, Specials::Ieee);
    /// E4M3 with infinities.
    F8E4M3Ieee "f8e4m3ieee" 8 float(4, 3, 7, Specials::Ieee);
    /// E3M4 with infinities.
    F8E3M4 "f8e3m4" 8 float(3, 4, 3, Specials::Ieee);
    /// OCP 8-bit float without infinities.
    F8E4M3Fn "f8e4m3fn" 8 float(4, 3, 7, Specials::Fn);
    /// Unsigned E5M3; FF is NaN.
    F8E5M3Fnu "f8e5m3fnu" 8 Class::Float(Format {
        signed: false, exponent_bits: 5, fraction_bits: 3, bias: 15, specials: Specials::Fn, has_zero: true,
    });
    /// E4M3, bias 8, one NaN in the place of -0.
    F8E4M3Fnuz "f8e4m3fnuz" 8 float(4, 3, 8, Specials::Fnuz);
    /// E5M2, bias 16, one NaN in the place of -0.
    F8E5M2Fnuz "f8e5m2fnuz" 8 float(5, 2, 16, Specials::Fnuz);
    /// E4M3, bias 11, one NaN in the place of -0.
    F8E4M3B11Fnuz "f8e4m3b11fnuz" 8 float(4, 3, 11, Specials::Fnuz);
    /// OCP 6-bit float, 2 exponent bits.
    F6E2M3 "f6e2m3" 6 float(2, 3, 1, Specials::Finite);
    /// OCP 6-bit float, 3 exponent bits.
    F6E3M2 "f6e3m2" 6 float(3, 2, 3, Specials::Finite);
    /// OCP 4-bit float.
    F4E2M1 "f4e2m1" 4 float(2, 1, 1, Specials::Finite);
    /// OCP scale: powers of two, no sign, no zero.
    F8E8M0 "f8e8m0" 8 Class::Float(Format {
        signed: false, exponent_bits: 8, fraction_bits: 0, bias: 127, specials: Specials::Fn, has_zero: false,
    });
    /// Signed 1-bit integer, stored in a byte: 0 and -1.
    I1 "i1" 8 int(true, 1);
    /// Unsigned 1-bit integer.
    U1 "u1" 1 int(false, 1);
    /// Signed 2-bit integer.
    I2 "i2" 2 int(true, 2);
    /// Unsigned 2-bit integer.
    U2 "u2" 2 int(false, 2);
    /// Unsigned 3-bit integer.
    U3 "u3" 3 int(false, 3);
    /// Signed 4-bit integer.
    I4 "i4" 4 int(true, 4);
    /// Unsigned 4-bit integer.
    U4 "u4" 4 int(false, 4);
    /// Unsigned 6-bit integer.
    U6 "u6" 6 int(false, 6);
    /// Signed 8-bit integer.
    I8 "i8" 8 int(true, 8);
    /// Unsigned 8-bit integer.
    U8 "u8" 8 int(false, 8);
    /// Signed 16-bit integer.
    I16 "i16" 16 int(true, 16);
    /// Unsigned 16-bit integer.
    U16 "u16" 16 int(false, 16);
    /// Signed 32-bit integer.
    I32 "i32" 32 int(true, 32);
    /// Unsigned 32-bit integer.
    U32 "u32" 32 int(false, 32);
    /// Signed 48-bit integer.
    I48 "i48" 48 int(true, 48);
    /// Signed 64-bit integer.
    I64 "i64" 64 int(true, 64);
    /// Unsigned 64-bit integer.
    U64 "u64" 64 int(false, 64);
    /// Truth value, stored in a byte.
    Bool "bool" 8 Class::Bool;
    /// MX 8-bit integer: n/64.
    MxInt8 "mxint8" 8 Class::MxInt8;
    /// The 4-bit code book of QLoRA.
    Nf4 "nf4" 4 Class::Nf4;
}

const fn float(exponent_bits: u32, fraction_bits: u32, bias: i32, specials: Specials) -> Class {
    Class::Float(Format { signed: true, exponent_bits, fraction_bits, bias, specials, has_zero: true })
}

const fn int(signed: bool, bits: u32) -> Class {
    Class::Int { signed, bits }
}

/// `2^bits - 1`, for up to 64 bits.
pub(super) const fn all_ones(bits: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> (64 - bits) }
}

impl Type {
    /// Finds a type by its canonical name.
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL.iter().copied().find(|t| t.name() == name)
    }

    /// Clears the bits above the type's width.
    pub(super) fn mask(self, code: u64) -> u64 {
        code & all_ones(self.bits())
    }

    pub(super) fn decode(self, code: u64) -> Value {
        let code = self.mask(code);
        match self.class() {
            Class::Float(format) => format.decode(code),
            Class::Int { signed, bits } => {
                // For `bits` = 1 in a wider storage, every nonzero code means 1.
                let code = if self.bits() > bits { u64::from(code != 0) } else { code };
                let wraps = signed && code >> (bits - 1) == 1;
                integer_value(if wraps { i128::from(code) - (1 << bits) } else { i128::from(code) }, 0)
            }
            Class::Bool => integer_value(i128::from(code != 0), 0),
            Class::MxInt8 => integer_value(i128::from(code as u8 as i8), -6),
            Class::Nf4 => f32_value(NF4_VALUES[code as usize]),
        }
    }

    /// Number of magnitude codes with a value <= x. The code after the largest finite value counts too. `format` is
    /// this type's format.
    ///
    /// The lower neighbor of x is the last of these codes. 0 means that x is below the smallest value of a format
    /// without zero.
    pub(super) fn count_not_above(self, format: Format, x: Magnitude) -> u64 {
        // Values of narrow types, computed once. Wide types use the formula in the search.
        static GRIDS: [OnceLock<Vec<Magnitude>>; Type::ALL.len()] = [const { OnceLock::new() }; Type::ALL.len()];
        let end = format.max_finite() + 2;
        if self.bits() <= 16 {
            let grid = GRIDS[self as usize].get_or_init(|| (0..end).map(|code| format.value(code)).collect());
            return grid.partition_point(|value| *value <= x) as u64;
        }
        let (mut not_above, mut above) = (0, end);
        while not_above < above {
            let middle = not_above + (above - not_above) / 2;
            if format.value(middle) <= x {
                not_above = middle + 1;
            } else {
                above = middle;
            }
        }
        not_above
    }
}

/// `n * 2^e`.
fn integer_value(n: i128, e: i32) -> Value {
    Value::Finite { negative: n < 0, magnitude: Magnitude::new(n.unsigned_abs(), e) }
}

/// Value of f32 bits.
pub(super) fn f32_value(bits: u32) -> Value {
    Type::F32.decode(u64::from(bits))
}

impl Format {
    /// Position of the sign bit, which is also the width of a magnitude code.
    pub(super) fn magnitude_bits(self) -> u32 {
        self.exponent_bits + self.fraction_bits
    }

    /// The sign bit in its position; 0 for an unsigned format.
    pub(super) fn sign(self, negative: bool) -> u64 {
        if negative && self.signed { 1 << self.magnitude_bits() } else { 0 }
    }

    pub(super) fn max_finite(self) -> u64 {
        match self.specials {
            Specials::Ieee => (all_ones(self.exponent_bits) << self.fraction_bits) - 1,
            Specials::Fn => all_ones(self.magnitude_bits()) - 1,
            Specials::Fnuz | Specials::Finite => all_ones(self.magnitude_bits()),
        }
    }

    pub(super) fn is_subnormal(self, magnitude_code: u64) -> bool {
        self.has_zero && magnitude_code != 0 && magnitude_code >> self.fraction_bits == 0
    }

    /// Code for a sign and a magnitude code. Handles formats without -0.
    pub(super) fn encode(self, negative: bool, magnitude_code: u64) -> u64 {
        if magnitude_code == 0 && self.specials == Specials::Fnuz {
            return 0;
        }
        self.sign(negative) | magnitude_code
    }

    /// Textbook formula for any magnitude code. Beyond the largest finite one, the exponent field continues.
    pub(super) fn value(self, magnitude_code: u64) -> Magnitude {
        let exponent = (magnitude_code >> self.fraction_bits) as i32;
        let fraction = magnitude_code & all_ones(self.fraction_bits);
        let scale = self.fraction_bits as i32;
        if exponent == 0 && self.has_zero {
            Magnitude::new(u128::from(fraction), 1 - self.bias - scale)
        } else {
            Magnitude::new((1 << self.fraction_bits) + u128::from(fraction), exponent - self.bias - scale)
        }
    }

    fn decode(self, code: u64) -> Value {
        let magnitude_code = code & all_ones(self.magnitude_bits());
        let negative = code != magnitude_code;
        let fraction = code & all_ones(self.fraction_bits);
        match self.specials {
            Specials::Ieee if magnitude_code > self.max_finite() => {
                if fraction == 0 {
                    Value::Inf { negative }
                } else {
                    Value::Nan { negative, fraction }
                }
            }
            Specials::Fn if magnitude_code > self.max_finite() => Value::Nan { negative, fraction: 0 },
            Specials::Fnuz if negative && magnitude_code == 0 => Value::Nan { negative: true, fraction: 0 },
            _ => Value::Finite { negative, magnitude: self.value(magnitude_code) },
        }
    }
}

/// NF4 values as f32 bits, by code (`docs/spec/openvino.md §1.3`).
pub(super) const NF4_VALUES: [u32; 16] = [
    0xBF80_0000, 0xBF32_39B1, 0xBF06_6B30, 0xBECA_32A0, 0xBE91_A24D, 0xBE3D_353F, 0xBDBA_7871, 0x0000_0000,
    0x3DA2_FAFF, 0x3E24_CAE3, 0x3E7C_04DD, 0x3EAD_033A, 0x3EE1_A4B8, 0x3F10_07AB, 0x3F39_13B3, 0x3F80_0000,
];

/// NF4 thresholds as f32 bits. There is a threshold above each code except the last (`docs/spec/openvino.md §1.3`).
pub(super) const NF4_THRESHOLDS: [u32; 15] = [
    0xBF59_1CD9, 0xBF1C_5270, 0xBEEB_8480, 0xBEAD_EA76, 0xBE70_3CEC, 0xBE0D_38BC, 0xBD3A_7871, 0x3D22_FAFF,
    0x3DF6_4863, 0x3E50_67E0, 0x3E95_82D4, 0x3EC7_53F9, 0x3F00_6D03, 0x3F24_8DAF, 0x3F5C_89D9,
];
