//! PyTorch: `torch.promote_types`, and `torch.result_type` for zero-dimensional tensors and Python numbers.
//! Reference: `docs/spec/openvino.md §12.5`.

use super::{Class, Element, Input, Operand, Promoted, PythonNumber, Rank, class, common_integer};
use crate::dtype::DType;
use crate::format::IntFormat;

/// Release whose rules this module implements. Source: `docs/spec/openvino.md §12.5`.
pub const VERSION: &str = "2.15.0";

/// Types of PyTorch.
pub const TYPES: [DType; 27] = {
    use DType::*;
    [
        Bool, U1, U2, U3, U4, U6, U8, U16, U32, U64, I1, I2, I4, I8, I16, I32, I64, F4E2M1, F8E4M3Fn, F8E4M3Fnuz,
        F8E5M2, F8E5M2Fnuz, F8E8M0, Bf16, F16, F32, F64,
    ]
};

/// Precedence of an operand. Within a category (boolean, integer, float), the type of a later level wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Number,
    ZeroDimensional,
    Dimensioned,
}

pub(super) fn promote(lhs: Input, rhs: Input) -> Option<Promoted> {
    let ((a_level, a), (b_level, b)) = (leveled(lhs)?, leveled(rhs)?);
    let result = match a_level.cmp(&b_level) {
        core::cmp::Ordering::Equal => common(a, b),
        core::cmp::Ordering::Greater => common_across_levels(a, b),
        core::cmp::Ordering::Less => common_across_levels(b, a),
    };
    result.map(Promoted::strong)
}

fn leveled(input: Input) -> Option<(Level, DType)> {
    match (input.operand, input.rank) {
        (Operand::Python(PythonNumber::Bool), _) => Some((Level::Number, DType::Bool)),
        (Operand::Python(PythonNumber::Int), _) => Some((Level::Number, DType::I64)),
        // PyTorch's default dtype.
        (Operand::Python(PythonNumber::Float), _) => Some((Level::Number, DType::F32)),
        (Operand::Tensor(Element::Type(dtype)), Rank::Scalar) => Some((Level::ZeroDimensional, dtype)),
        (Operand::Tensor(Element::Type(dtype)), Rank::Dimensioned) => Some((Level::Dimensioned, dtype)),
        (Operand::Tensor(_), _) => None,
    }
}

/// Common type of operands at different levels. The type at the higher level loses only to a higher category: boolean,
/// integer, float.
fn common_across_levels(high: DType, low: DType) -> Option<DType> {
    match (class(high)?, class(low)?) {
        (Class::Float { .. }, _) => Some(high),
        (Class::Bool, _) | (_, Class::Float { .. }) => common(high, low),
        (Class::Integer(_), _) => Some(high),
    }
}

/// True if an integer promotes only with its own type. As an exception, an unsigned integer promotes with four floats.
fn is_bare(integer: DType) -> bool {
    !matches!(integer, DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64)
}

fn common(a: DType, b: DType) -> Option<DType> {
    match (class(a)?, class(b)?) {
        _ if a == b => Some(a),
        (Class::Float { bits: ..=8 }, _) | (_, Class::Float { bits: ..=8 }) => None,
        (Class::Float { .. }, Class::Float { .. }) => Some(super::common_float(a, b)),
        (Class::Float { .. }, _) => with_float(b, a),
        (_, Class::Float { .. }) => with_float(a, b),
        (Class::Bool, Class::Integer(_)) => (!is_bare(b)).then_some(b),
        (Class::Integer(_), Class::Bool) => (!is_bare(a)).then_some(a),
        (Class::Integer(_), Class::Integer(_)) if is_bare(a) || is_bare(b) => None,
        (Class::Integer(a), Class::Integer(b)) => common_integer(a, b),
        (Class::Bool, Class::Bool) => Some(DType::Bool),
    }
}

fn with_float(other: DType, float: DType) -> Option<DType> {
    match class(other)? {
        Class::Integer(IntFormat { bits: ..8, signed: true }) => None,
        _ => Some(float),
    }
}
