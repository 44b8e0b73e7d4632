//! NumPy with ml_dtypes: `numpy.promote_types`, and `numpy.result_type` for Python numbers.
//! Reference: `docs/spec/openvino.md §12.2`.
//!
//! NumPy's own types are widened until the integers fit. The types of ml_dtypes follow irregular tables of safe casts.

use super::{Class, Element, Operand, Promoted, PythonNumber, class, common_integer};
use crate::dtype::DType;
use crate::format::IntFormat;

/// Releases whose rules this module implements. Source: `docs/spec/openvino.md §12.2`.
pub const VERSION: &str = "2.4.6, ml_dtypes 0.6.0";

/// Types of NumPy with ml_dtypes.
pub const TYPES: [DType; 30] = {
    use DType::*;
    [
        Bool, U1, U2, U4, U8, U16, U32, U64, I1, I2, I4, I8, I16, I32, I64, F4E2M1, F6E3M2, F6E2M3, F8E5M2Fnuz,
        F8E4M3Fnuz, F8E4M3Fn, F8E4M3B11Fnuz, F8E4M3Ieee, F8E3M4, F8E5M2, F8E8M0, Bf16, F16, F32, F64,
    ]
};

/// Narrow floats. Two types of this list promote to the later type.
const CHAIN: [DType; 9] = {
    use DType::*;
    [F4E2M1, F6E3M2, F6E2M3, F8E5M2Fnuz, F8E4M3Fnuz, F8E4M3Fn, F8E4M3B11Fnuz, F8E4M3Ieee, F8E3M4]
};

pub(super) fn promote(lhs: Operand, rhs: Operand) -> Option<Promoted> {
    match (lhs, rhs) {
        (Operand::Tensor(Element::Type(a)), Operand::Tensor(Element::Type(b))) => common(a, b),
        (Operand::Tensor(Element::Type(array)), Operand::Python(number))
        | (Operand::Python(number), Operand::Tensor(Element::Type(array))) => with_python(array, number),
        (Operand::Python(a), Operand::Python(b)) => common(default_of(a), default_of(b)),
        (Operand::Tensor(Element::Dynamic), _) | (_, Operand::Tensor(Element::Dynamic)) => None,
    }
    .map(Promoted::strong)
}

const fn default_of(number: PythonNumber) -> DType {
    match number {
        PythonNumber::Bool => DType::Bool,
        PythonNumber::Int => DType::I64,
        PythonNumber::Float => DType::F64,
    }
}

/// Refuses a type of ml_dtypes with a Python number: NumPy gives contradictory results.
fn with_python(array: DType, number: PythonNumber) -> Option<DType> {
    match (class(array)?, number) {
        _ if !is_builtin(array) => None,
        (Class::Bool, _) => Some(default_of(number)),
        (Class::Integer(_), PythonNumber::Float) => Some(DType::F64),
        _ => Some(array),
    }
}

fn is_builtin(dtype: DType) -> bool {
    match class(dtype) {
        Some(Class::Bool) => true,
        Some(Class::Integer(format)) => format.bits >= 8,
        _ => matches!(dtype, DType::F16 | DType::F32 | DType::F64),
    }
}

fn common(a: DType, b: DType) -> Option<DType> {
    match (class(a)?, class(b)?) {
        _ if a == b => Some(a),
        (Class::Bool, _) => Some(b),
        (_, Class::Bool) => Some(a),
        (Class::Integer(a), Class::Integer(b)) => integers(a, b),
        (Class::Integer(_), Class::Float { .. }) => integer_with_float(a, b),
        (Class::Float { .. }, Class::Integer(_)) => integer_with_float(b, a),
        (Class::Float { .. }, Class::Float { .. }) => floats(a, b),
    }
}

/// Common type of two integers. A signed integer narrower than a byte does not promote with an
/// unsigned integer. An unsigned integer narrower than a byte promotes with a wider signed integer to the signed type.
fn integers(a: IntFormat, b: IntFormat) -> Option<DType> {
    if a.signed == b.signed {
        return common_integer(a, b);
    }
    let (unsigned, signed) = if a.signed { (b, a) } else { (a, b) };
    match (unsigned.bits, signed.bits) {
        (_, ..8) => None,
        (..8, _) => super::integer(signed),
        _ => common_integer(unsigned, signed).or(Some(DType::F64)),
    }
}

fn integer_with_float(integer: DType, float: DType) -> Option<DType> {
    let bits = integer.code_bits();
    let widest = match bits {
        ..=8 => DType::F16,
        16 => DType::F32,
        _ => DType::F64,
    };
    let at_least = |least: DType| if class_bits(widest) > class_bits(least) { widest } else { least };
    match float {
        DType::F16 | DType::F32 | DType::F64 => Some(at_least(float)),
        DType::F8E5M2 if bits > 8 => Some(widest),
        DType::F8E5M2 | DType::F8E8M0 | DType::Bf16 => (bits == 8).then_some(float),
        DType::F6E2M3 if bits == 4 => None,
        _ => (bits <= 8 && CHAIN.contains(&float) && TYPES.contains(&integer)).then_some(float),
    }
}

const fn class_bits(float: DType) -> u32 {
    float.code_bits()
}

fn floats(a: DType, b: DType) -> Option<DType> {
    let place = |t: DType| CHAIN.iter().position(|&c| c == t);
    match (a, b) {
        (DType::F64, _) | (_, DType::F64) => Some(DType::F64),
        (DType::F32, _) | (_, DType::F32) => Some(DType::F32),
        (DType::F8E5M2, DType::F16) | (DType::F16, DType::F8E5M2) => Some(DType::F32),
        _ => Some(CHAIN[place(a)?.max(place(b)?)]),
    }
}
