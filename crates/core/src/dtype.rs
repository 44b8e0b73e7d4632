//! The element types: one table row per type, with kind, storage and the names in all ecosystems.
//!
//! The canonical names are from `docs/interfaces.md §1`.

use crate::error_code::ErrorCode;
use crate::format::*;
use alloc::string::String;
use alloc::vec::Vec;

/// Kind of number, with the descriptor of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Truth value; any nonzero code is true.
    Bool,
    /// Integer.
    Int(IntFormat),
    /// Sign-magnitude binary float.
    Float(FloatFormat),
    /// Fixed point.
    Fixed(FixedFormat),
    /// Code book.
    Book(&'static CodeBook),
    /// Pair of floats; can only be copied.
    Complex(FloatFormat),
    /// Text.
    String,
}

impl Kind {
    /// Returns the number of bits of a code; 0 for text.
    #[must_use]
    pub const fn code_bits(self) -> u32 {
        match self {
            Kind::Bool => 1,
            Kind::Int(f) => f.bits as u32,
            Kind::Float(f) => f.bits(),
            Kind::Fixed(f) => f.int.bits as u32,
            Kind::Book(_) => 4,
            Kind::Complex(f) => 2 * f.bits(),
            Kind::String => 0,
        }
    }
}

/// Layout of text, and layout of elements that are narrower than a byte. Elements of other types are stored in one way,
/// whatever the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// One little-endian bit stream: element `i` occupies the bits `i * bits ..`, counted from the least significant
    /// bit of the first byte. The unused bits of the last byte are zero.
    #[default]
    Packed,
    /// One element a byte, in its low bits (NumPy's layout).
    Bytes,
    /// Text in cells of `width` 32-bit code points, padded with zeros (NumPy's `<U`).
    Utf32 {
        /// Code points per cell.
        width: u32,
    },
}

/// Vocabulary that a type name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Ecosystem {
    /// ONNX `DataType` names.
    Onnx,
    /// NumPy and ml_dtypes.
    Numpy,
    /// PyTorch.
    Torch,
    /// MLIR (and Tile IR's text).
    Mlir,
    /// OpenVINO attribute and IR names.
    OpenVino,
    /// TOSA.
    Tosa,
    /// CUDA Tile IR.
    Tile,
    /// safetensors headers.
    Safetensors,
}

impl Ecosystem {
    /// `(prefix, ecosystem)` for every prefix of a type name.
    pub const PREFIXES: [(&'static str, Ecosystem); 9] = [
        ("onnx", Ecosystem::Onnx),
        ("numpy", Ecosystem::Numpy),
        ("np", Ecosystem::Numpy),
        ("torch", Ecosystem::Torch),
        ("mlir", Ecosystem::Mlir),
        ("ov", Ecosystem::OpenVino),
        ("tosa", Ecosystem::Tosa),
        ("tile", Ecosystem::Tile),
        ("st", Ecosystem::Safetensors),
    ];

    /// Python modules whose attributes are types, as in `torch.bfloat16`.
    const MODULES: [(&'static str, Ecosystem); 7] = [
        ("torch", Ecosystem::Torch),
        ("np", Ecosystem::Numpy),
        ("numpy", Ecosystem::Numpy),
        ("jnp", Ecosystem::Numpy),
        ("jax.numpy", Ecosystem::Numpy),
        ("ml_dtypes", Ecosystem::Numpy),
        ("tf", Ecosystem::Numpy),
    ];

    const fn column(self) -> usize {
        self as usize
    }
}

struct Row {
    dtype: DType,
    name: &'static str,
    kind: Kind,
    /// Bits of one element in packed storage; 0 for text.
    storage_bits: u32,
    /// Names by ecosystem, in the order of [`Ecosystem`]. Several names in one ecosystem are separated by a blank.
    names: [&'static str; 8],
}

const fn int(bits: u8, signed: bool) -> Kind {
    Kind::Int(IntFormat { bits, signed })
}

macro_rules! types {
    ($($dtype:ident $name:literal $kind:expr, $bits:literal, [$($eco:literal)*];)*) => {
        /// An element type of `docs/interfaces.md §1`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        #[allow(missing_docs)] // The variants are the names of the table.
        pub enum DType { $($dtype),* }

        const TABLE: &[Row] =
            &[$(Row { dtype: DType::$dtype, name: $name, kind: $kind, storage_bits: $bits, names: [$($eco),*] },)*];

        impl DType {
            /// Every type, in the order of `docs/interfaces.md §1`.
            pub const ALL: [DType; TABLE.len()] = [$(DType::$dtype),*];
        }
    };
}

//           onnx | numpy, ml_dtypes | torch | mlir | openvino | tosa | tile | safetensors
types! {
    Bool "bool" Kind::Bool, 8, ["BOOL" "bool bool_" "bool" "" "boolean" "bool_t" "" "BOOL"];
    String "string" Kind::String, 0, ["STRING" "str" "" "" "string" "" "" ""];
    I1 "i1" int(1, true), 8, ["" "int1" "int1" "i1" "" "" "i1" ""];
    U1 "u1" int(1, false), 1, ["" "uint1" "uint1" "ui1" "u1 bin" "" "" ""];
    I2 "i2" int(2, true), 2, ["INT2" "int2" "int2" "i2" "" "" "" ""];
    U2 "u2" int(2, false), 2, ["UINT2" "uint2" "uint2" "ui2" "u2" "" "" ""];
    U3 "u3" int(3, false), 3, ["" "" "uint3" "ui3" "u3" "" "" ""];
    I4 "i4" int(4, true), 4, ["INT4" "int4" "int4" "i4" "i4" "i4_t int4" "i4" ""];
    U4 "u4" int(4, false), 4, ["UINT4" "uint4" "uint4" "ui4" "u4" "" "" ""];
    U6 "u6" int(6, false), 6, ["" "" "uint6" "ui6" "u6" "" "" ""];
    I8 "i8" int(8, true), 8, ["INT8" "int8" "int8" "i8 si8" "i8" "i8_t" "i8" "I8"];
    U8 "u8" int(8, false), 8, ["UINT8" "uint8" "uint8" "ui8" "u8" "" "" "U8"];
    I16 "i16" int(16, true), 16, ["INT16" "int16 short" "int16 short" "i16 si16" "i16" "i16_t" "i16" "I16"];
    U16 "u16" int(16, false), 16, ["UINT16" "uint16" "uint16" "ui16" "u16" "" "" "U16"];
    I32 "i32" int(32, true), 32, ["INT32" "int32" "int32 int" "i32 si32" "i32" "i32_t" "i32" "I32"];
    U32 "u32" int(32, false), 32, ["UINT32" "uint32" "uint32" "ui32" "u32" "" "" "U32"];
    I48 "i48" int(48, true), 48, ["" "" "" "i48" "" "i48_t int48" "" ""];
    I64 "i64" int(64, true), 64, ["INT64" "int64" "int64 long" "i64 si64" "i64" "i64_t" "i64" "I64"];
    U64 "u64" int(64, false), 64, ["UINT64" "uint64" "uint64" "ui64" "u64" "" "" "U64"];
    F4E2M1 "f4e2m1" Kind::Float(F4E2M1), 4, ["FLOAT4E2M1" "float4_e2m1fn" "float4_e2m1fn_x2" "f4E2M1FN" "f4e2m1" "fp4e2m1_t fp4e2m1" "f4E2M1FN fp4e2m1fn" "F4"];
    F6E2M3 "f6e2m3" Kind::Float(F6E2M3), 6, ["FLOAT6E2M3" "float6_e2m3fn" "" "f6E2M3FN" "" "fp6e2m3_t fp6e2m3" "" "F6_E2M3"];
    F6E3M2 "f6e3m2" Kind::Float(F6E3M2), 6, ["FLOAT6E3M2" "float6_e3m2fn" "" "f6E3M2FN" "" "fp6e3m2_t fp6e3m2" "" "F6_E3M2"];
    F8E4M3Fn "f8e4m3fn" Kind::Float(F8E4M3FN), 8, ["FLOAT8E4M3FN" "float8_e4m3fn" "float8_e4m3fn" "f8E4M3FN" "f8e4m3" "fp8e4m3_t fp8e4m3 f8e4m3" "f8E4M3FN fp8e4m3fn" "F8_E4M3 f8e4m3"];
    F8E4M3Fnuz "f8e4m3fnuz" Kind::Float(F8E4M3FNUZ), 8, ["FLOAT8E4M3FNUZ" "float8_e4m3fnuz" "float8_e4m3fnuz" "f8E4M3FNUZ" "" "" "" "F8_E4M3FNUZ"];
    F8E5M2 "f8e5m2" Kind::Float(F8E5M2), 8, ["FLOAT8E5M2" "float8_e5m2" "float8_e5m2" "f8E5M2" "f8e5m2" "fp8e5m2_t fp8e5m2" "f8E5M2 fp8e5m2" "F8_E5M2"];
    F8E5M2Fnuz "f8e5m2fnuz" Kind::Float(F8E5M2FNUZ), 8, ["FLOAT8E5M2FNUZ" "float8_e5m2fnuz" "float8_e5m2fnuz" "f8E5M2FNUZ" "" "" "" "F8_E5M2FNUZ"];
    F8E8M0 "f8e8m0" Kind::Float(F8E8M0), 8, ["FLOAT8E8M0" "float8_e8m0fnu" "float8_e8m0fnu" "f8E8M0FNU" "f8e8m0" "fp8ue8m0_t fp8ue8m0" "f8E8M0FNU fp8e8m0fnu" "F8_E8M0"];
    F8E3M4 "f8e3m4" Kind::Float(F8E3M4), 8, ["" "float8_e3m4" "" "f8E3M4" "" "" "" ""];
    F8E4M3Ieee "f8e4m3ieee" Kind::Float(F8E4M3IEEE), 8, ["" "float8_e4m3 f8e4m3" "" "f8E4M3" "" "" "" ""];
    F8E4M3B11Fnuz "f8e4m3b11fnuz" Kind::Float(F8E4M3B11FNUZ), 8, ["" "float8_e4m3b11fnuz" "" "f8E4M3B11FNUZ" "" "" "" ""];
    F8E5M3Fnu "f8e5m3fnu" Kind::Float(F8E5M3FNU), 8, ["" "" "" "" "" "" "fnv8E5M3FNU" ""];
    F16 "f16" Kind::Float(F16), 16, ["FLOAT16" "float16 half" "float16 half" "f16" "f16 fp16" "fp16_t fp16" "f16" "F16"];
    Bf16 "bf16" Kind::Float(BF16), 16, ["BFLOAT16" "bfloat16" "bfloat16" "bf16" "bf16" "bf16_t" "bf16" "BF16"];
    Tf32 "tf32" Kind::Float(TF32), 32, ["" "" "" "tf32" "" "" "tf32" ""];
    F32 "f32" Kind::Float(F32), 32, ["FLOAT" "float32" "float32 float" "f32" "f32 fp32" "fp32_t fp32" "f32" "F32"];
    F64 "f64" Kind::Float(F64), 64, ["DOUBLE" "float64 double float" "float64 double" "f64" "f64 fp64" "fp64_t" "f64" "F64"];
    MxInt8 "mxint8" Kind::Fixed(MXINT8), 8, ["" "" "" "" "" "mxint8_t" "" ""];
    Nf4 "nf4" Kind::Book(&NF4), 4, ["" "" "" "" "nf4" "" "" ""];
    C64 "c64" Kind::Complex(F32), 64, ["COMPLEX64" "complex64" "complex64 cfloat" "complex<f32>" "" "" "" "C64"];
}

/// Abbreviated names, and the types that each may mean. Such a name needs a prefix, even if only one ecosystem has the
/// name.
const AMBIGUOUS: &[(&str, &[DType])] = {
    use DType::*;
    &[
        ("f8e4m3", &[F8E4M3Fn, F8E4M3Ieee, F8E4M3Fnuz, F8E4M3B11Fnuz]),
        ("e4m3", &[F8E4M3Fn, F8E4M3Ieee, F8E4M3Fnuz, F8E4M3B11Fnuz]),
        ("fp8e4m3", &[F8E4M3Fn, F8E4M3Ieee, F8E4M3Fnuz, F8E4M3B11Fnuz]),
        ("fp8_e4m3", &[F8E4M3Fn, F8E4M3Ieee, F8E4M3Fnuz, F8E4M3B11Fnuz]),
        ("float8_e4m3", &[F8E4M3Fn, F8E4M3Ieee, F8E4M3Fnuz, F8E4M3B11Fnuz]),
        ("e5m2", &[F8E5M2, F8E5M2Fnuz]),
        ("fp8e5m2", &[F8E5M2, F8E5M2Fnuz]),
        ("fp8_e5m2", &[F8E5M2, F8E5M2Fnuz]),
        ("fp8", &[F8E4M3Fn, F8E5M2, F8E4M3Fnuz, F8E5M2Fnuz]),
        ("f8", &[F8E4M3Fn, F8E5M2, F8E4M3Fnuz, F8E5M2Fnuz]),
        ("float8", &[F8E4M3Fn, F8E5M2, F8E4M3Fnuz, F8E5M2Fnuz]),
        ("fp6", &[F6E2M3, F6E3M2]),
        ("f6", &[F6E2M3, F6E3M2]),
        ("float6", &[F6E2M3, F6E3M2]),
        ("fp4", &[F4E2M1, Nf4]),
        ("f4", &[F4E2M1, Nf4]),
        ("float4", &[F4E2M1, Nf4]),
        ("float", &[F32, F64]),
        ("int", &[I32, I64]),
        ("uint", &[U32, U64]),
    ]
};

/// Error in a type name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseTypeError {
    /// No ecosystem uses this name.
    #[error("unknown type {name:?}")]
    Unknown {
        /// The name in the user's spelling.
        name: String,
    },
    /// The name means different types in different places.
    #[error("type name {name:?} is ambiguous: write one of {}{}", list(.choices), prefixed(.name))]
    Ambiguous {
        /// The name in the user's spelling.
        name: String,
        /// Types that the name can mean.
        choices: Vec<DType>,
    },
    /// The prefix is not an ecosystem.
    #[error("unknown prefix {prefix:?} of a type name; known prefixes are onnx, np, torch, mlir, ov, tosa, tile, st")]
    Prefix {
        /// The prefix in the user's spelling.
        prefix: String,
    },
}

impl ParseTypeError {
    /// Returns the stable code of the error.
    #[must_use]
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            ParseTypeError::Ambiguous { .. } => ErrorCode::AmbiguousType,
            _ => ErrorCode::UnknownType,
        }
    }
}

fn list(types: &[DType]) -> String {
    types.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ")
}

/// Text such as `, or ov:f8e4m3`, with the prefixes that give an ambiguous name one meaning.
fn prefixed(name: &str) -> String {
    let is_known = |(_, ecosystem): &&(&str, Ecosystem)| DType::parse_in(*ecosystem, name).is_ok();
    let known = Ecosystem::PREFIXES.iter().filter(is_known);
    let known: Vec<String> = known.map(|(prefix, _)| format!("{prefix}:{name}")).collect();
    if known.is_empty() { String::new() } else { format!(", or {}", known.join(", ")) }
}

impl DType {
    const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Returns the canonical name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the kind of number.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> Kind {
        self.row().kind
    }

    /// Returns the number of bits of one element in a packed buffer; `None` for text.
    #[must_use]
    pub const fn storage_bits(self) -> Option<u32> {
        match self.row().storage_bits {
            0 => None,
            bits => Some(bits),
        }
    }

    /// Returns the number of bits that a code of [`crate::exact`] has. Storage is wider for bool and i1 (code 1 bit,
    /// storage 8) and tf32 (code 19 bits, storage 32).
    #[must_use]
    pub const fn code_bits(self) -> u32 {
        self.kind().code_bits()
    }

    /// Returns the code that a storage element holds.
    ///
    /// Source: `docs/spec/tile-ir.md §3.2` (i1: any nonzero byte), §3.3 (tf32: the low 13 bits are dropped).
    #[inline]
    #[must_use]
    pub const fn code_of_storage(self, storage: u64) -> u64 {
        match self {
            DType::Bool | DType::I1 => (storage != 0) as u64,
            DType::Tf32 => (storage & 0xffff_ffff) >> 13,
            DType::String => 0,
            _ => storage & (u64::MAX >> (64 - self.code_bits())),
        }
    }

    /// Returns the storage element for a code of [`DType::code_bits`] bits.
    #[must_use]
    pub const fn storage_of_code(self, code: u64) -> u64 {
        match self {
            DType::Tf32 => code << 13,
            _ => code,
        }
    }

    /// Returns the smallest number of elements that fill whole bytes. A packed buffer may be split at multiples of that
    /// number.
    #[must_use]
    pub const fn granule(self) -> usize {
        match self.row().storage_bits % 8 {
            0 => 1,
            4 => 2,
            2 | 6 => 4,
            _ => 8,
        }
    }

    /// Returns the number of bits per element in a buffer; `None` for text in a layout other than [`Layout::Utf32`].
    #[must_use]
    pub const fn bits_in(self, layout: Layout) -> Option<u32> {
        match (self.storage_bits(), layout) {
            (Some(bits), Layout::Bytes) if bits < 8 => Some(8),
            (None, Layout::Utf32 { width }) => width.checked_mul(32),
            (bits, _) => bits,
        }
    }

    /// Returns the number of bytes of `len` elements; `None` if [`DType::bits_in`] is `None`, or on overflow.
    #[must_use]
    pub const fn bytes_in(self, layout: Layout, len: u64) -> Option<u64> {
        let Some(bits) = self.bits_in(layout) else { return None };
        let total = len as u128 * bits as u128;
        let bytes = total.div_ceil(8);
        if bytes > u64::MAX as u128 { None } else { Some(bytes as u64) }
    }

    /// Returns whether the type is floating point, fixed point or a code book.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float(_) | Kind::Fixed(_) | Kind::Book(_))
    }

    /// Returns whether the type is a number or truth value. Any two such types can be converted.
    #[must_use]
    pub const fn is_numeric(self) -> bool {
        !matches!(self.kind(), Kind::Complex(_) | Kind::String)
    }

    /// Returns whether every value of `self` is a value of `wider`. NaN and infinities count; the sign of zero does
    /// not. The result is false for a fixed-point type and another type.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::DType;
    /// assert!(DType::I16.embeds_in(DType::F32));
    /// assert!(!DType::U4.embeds_in(DType::F8E5M2)); // 9 is between 8 and 10
    /// ```
    #[must_use]
    pub const fn embeds_in(self, wider: DType) -> bool {
        if self as u8 == wider as u8 {
            return true;
        }
        match (self.kind(), wider.kind()) {
            (Kind::Bool, Kind::Float(f)) => f.holds_integers_of(&IntFormat { bits: 1, signed: false }),
            (Kind::Bool, Kind::Int(f)) => f.max() >= 1,
            (Kind::Int(a), Kind::Int(b)) => a.min() >= b.min() && a.max() <= b.max(),
            (Kind::Int(a), Kind::Float(b)) => b.holds_integers_of(&a),
            (Kind::Float(a), Kind::Float(b)) => {
                a.embeds_in(&b)
                    && (a.inf_code().is_none() || b.inf_code().is_some())
                    && (a.nan_code().is_none() || b.nan_code().is_some())
            }
            (Kind::Book(_), Kind::Float(b)) => F32.embeds_in(&b),
            _ => false,
        }
    }

    /// Returns the names of the type in an ecosystem, the preferred spelling first.
    pub fn names_in(self, ecosystem: Ecosystem) -> impl Iterator<Item = &'static str> {
        self.row().names[ecosystem.column()].split(' ').filter(|n| !n.is_empty())
    }

    /// Reads a type name: the canonical name or a name of any ecosystem, also with a prefix (`ov:f8e4m3`) or a Python
    /// module (`torch.bfloat16`, `jnp.float32`). Case does not matter.
    ///
    /// # Errors
    /// [`ParseTypeError`]: unknown name, unknown prefix, or a name of several types.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::DType;
    /// assert_eq!("FLOAT8E4M3FN".parse(), Ok(DType::F8E4M3Fn));
    /// assert_eq!("ov:f8e4m3".parse(), Ok(DType::F8E4M3Fn));
    /// assert_eq!("mlir:f8E4M3".parse(), Ok(DType::F8E4M3Ieee));
    /// assert_eq!("torch.bfloat16".parse(), Ok(DType::Bf16));
    /// assert_eq!("e2m1".parse(), Ok(DType::F4E2M1));
    /// assert!("f8e4m3".parse::<DType>().is_err()); // one of the two above
    /// ```
    pub fn parse(text: &str) -> Result<DType, ParseTypeError> {
        if let Some((prefix, name)) = text.split_once(':') {
            let known = Ecosystem::PREFIXES.iter().find(|(p, _)| p.eq_ignore_ascii_case(prefix));
            let (_, ecosystem) = known.ok_or_else(|| ParseTypeError::Prefix { prefix: prefix.into() })?;
            return DType::parse_in(*ecosystem, name);
        }
        if let Some((module, name)) = text.rsplit_once('.')
            && let Some((_, ecosystem)) = Ecosystem::MODULES.iter().find(|(m, _)| m.eq_ignore_ascii_case(module))
        {
            let unknown = |_| ParseTypeError::Unknown { name: text.into() };
            return DType::parse_in(*ecosystem, name).map_err(unknown);
        }
        if let Some((_, choices)) = AMBIGUOUS.iter().find(|(n, _)| n.eq_ignore_ascii_case(text)) {
            return Err(ParseTypeError::Ambiguous { name: text.into(), choices: choices.to_vec() });
        }
        if let Some(row) = TABLE.iter().find(|row| row.name.eq_ignore_ascii_case(text)) {
            return Ok(row.dtype);
        }
        let named = |row: &&Row| row.names.iter().any(|names| has_word(names, text));
        let mut choices: Vec<DType> = TABLE.iter().filter(named).map(|row| row.dtype).collect();
        match (choices.pop(), choices.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                choices.push(last);
                Err(ParseTypeError::Ambiguous { name: text.into(), choices })
            }
            (None, _) => {
                let is_it = |row: &&Row| fields(row.name).is_some_and(|fields| fields.eq_ignore_ascii_case(text));
                let row = TABLE.iter().find(is_it);
                row.map(|row| row.dtype).ok_or_else(|| ParseTypeError::Unknown { name: text.into() })
            }
        }
    }

    /// Reads a name of one ecosystem. Case does not matter. A canonical name is accepted unless the ecosystem uses the
    /// name for another type.
    ///
    /// # Errors
    /// [`ParseTypeError::Unknown`].
    pub fn parse_in(ecosystem: Ecosystem, name: &str) -> Result<DType, ParseTypeError> {
        let column = ecosystem.column();
        TABLE
            .iter()
            .find(|row| has_word(row.names[column], name))
            .or_else(|| TABLE.iter().find(|row| row.name.eq_ignore_ascii_case(name)))
            .map(|row| row.dtype)
            .ok_or_else(|| ParseTypeError::Unknown { name: name.into() })
    }
}

/// Fields of a float in its canonical name: `e4m3fn` of `f8e4m3fn`.
fn fields(name: &str) -> Option<&str> {
    let fields = name.strip_prefix('f')?.trim_start_matches(|c: char| c.is_ascii_digit());
    fields.starts_with('e').then_some(fields)
}

fn has_word(names: &str, name: &str) -> bool {
    !name.is_empty() && names.split(' ').any(|n| n.eq_ignore_ascii_case(name))
}

impl core::str::FromStr for DType {
    type Err = ParseTypeError;
    fn from_str(text: &str) -> Result<DType, ParseTypeError> {
        DType::parse(text)
    }
}

impl core::fmt::Display for DType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}
