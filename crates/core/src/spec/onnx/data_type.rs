//! `TensorProto.DataType`: numbers of types in attributes, tensors and value infos. Source: `docs/spec/onnx.md §1.7`.

use crate::dtype::DType;

/// Row of the enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataType {
    /// Number in files.
    pub code: i32,
    /// Name in the standard.
    pub name: &'static str,
    /// Element type; `None` for UNDEFINED and for the unsupported COMPLEX128.
    pub dtype: Option<DType>,
}

macro_rules! rows {
    ($($code:literal $name:ident $dtype:expr;)*) => {
        &[$(DataType { code: $code, name: stringify!($name), dtype: $dtype }),*]
    };
}

/// Every row; the index of a row is its code.
#[rustfmt::skip]
pub const DATA_TYPES: &[DataType] = {
    use DType::*;
    rows! {
        0 UNDEFINED None;
        1 FLOAT Some(F32);
        2 UINT8 Some(U8);
        3 INT8 Some(I8);
        4 UINT16 Some(U16);
        5 INT16 Some(I16);
        6 INT32 Some(I32);
        7 INT64 Some(I64);
        8 STRING Some(String);
        9 BOOL Some(Bool);
        10 FLOAT16 Some(F16);
        11 DOUBLE Some(F64);
        12 UINT32 Some(U32);
        13 UINT64 Some(U64);
        14 COMPLEX64 Some(C64);
        15 COMPLEX128 None;
        16 BFLOAT16 Some(Bf16);
        17 FLOAT8E4M3FN Some(F8E4M3Fn);
        18 FLOAT8E4M3FNUZ Some(F8E4M3Fnuz);
        19 FLOAT8E5M2 Some(F8E5M2);
        20 FLOAT8E5M2FNUZ Some(F8E5M2Fnuz);
        21 UINT4 Some(U4);
        22 INT4 Some(I4);
        23 FLOAT4E2M1 Some(F4E2M1);
        24 FLOAT8E8M0 Some(F8E8M0);
        25 UINT2 Some(U2);
        26 INT2 Some(I2);
        27 FLOAT6E2M3 Some(F6E2M3);
        28 FLOAT6E3M2 Some(F6E3M2);
    }
};

impl DataType {
    /// Returns the row for a number in files.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, spec::onnx::DataType};
    /// assert_eq!(DataType::of_code(17).unwrap().dtype, Some(DType::F8E4M3Fn));
    /// assert_eq!(DataType::of_code(0).unwrap().name, "UNDEFINED");
    /// assert!(DataType::of_code(29).is_none() && DataType::of_code(-1).is_none());
    /// ```
    #[must_use]
    pub fn of_code(code: i64) -> Option<&'static DataType> {
        DATA_TYPES.get(usize::try_from(code).ok()?)
    }

    /// Returns the row of a type; `None` for types that ONNX does not have.
    #[must_use]
    pub fn of(dtype: DType) -> Option<&'static DataType> {
        DATA_TYPES.iter().find(|row| row.dtype == Some(dtype))
    }

    /// Returns the row with exactly this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static DataType> {
        DATA_TYPES.iter().find(|row| row.name == name)
    }
}
