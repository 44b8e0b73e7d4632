//! JAX: `jax.numpy.promote_types`, and weak types for Python numbers. Reference: `docs/spec/openvino.md §12.3`.

use super::{Class, Element, Operand, Promoted, PythonNumber, class, common_integer};
use crate::dtype::DType;
use crate::format::IntFormat;

/// Release whose rules this module implements. Source: `docs/spec/openvino.md §12.3`.
pub const VERSION: &str = "0.10.2";

/// Types of JAX.
pub const TYPES: [DType; 30] = super::numpy::TYPES;

/// Setting `jax_enable_x64`: whether 64-bit types exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum X64 {
    /// 64-bit types exist.
    #[default]
    On,
    /// 32-bit types replace 64-bit types.
    Off,
}

pub(super) fn promote(lhs: Operand, rhs: Operand, x64: X64) -> Option<Promoted> {
    let result = match (lhs, rhs) {
        (Operand::Tensor(Element::Type(a)), Operand::Tensor(Element::Type(b))) => {
            common(narrowed(a, x64), narrowed(b, x64), x64)
        }
        (Operand::Tensor(Element::Type(array)), Operand::Python(number))
        | (Operand::Python(number), Operand::Tensor(Element::Type(array))) => with_python(narrowed(array, x64), number),
        (Operand::Python(a), Operand::Python(b)) => Some(of_python(a.max(b))),
        (Operand::Tensor(Element::Dynamic), _) | (_, Operand::Tensor(Element::Dynamic)) => None,
    }?;
    let Element::Type(dtype) = result.element else { return Some(result) };
    Some(Promoted { element: Element::Type(narrowed(dtype, x64)), ..result })
}

fn narrowed(dtype: DType, x64: X64) -> DType {
    match (x64, dtype) {
        (X64::Off, DType::U64) => DType::U32,
        (X64::Off, DType::I64) => DType::I32,
        (X64::Off, DType::F64) => DType::F32,
        _ => dtype,
    }
}

/// Python's bool is an ordinary boolean; int and float are weak.
const fn of_python(number: PythonNumber) -> Promoted {
    match number {
        PythonNumber::Bool => Promoted::strong(DType::Bool),
        PythonNumber::Int => Promoted::weak(DType::I64),
        PythonNumber::Float => Promoted::weak(DType::F64),
    }
}

fn with_python(array: DType, number: PythonNumber) -> Option<Promoted> {
    match (class(array)?, number) {
        (_, PythonNumber::Bool) => Some(Promoted::strong(array)),
        (Class::Bool, _) => Some(of_python(number)),
        (Class::Integer(IntFormat { bits: ..8, .. }), PythonNumber::Float) => None,
        (Class::Integer(_), PythonNumber::Float) => Some(of_python(number)),
        _ => Some(Promoted::strong(array)),
    }
}

fn common(a: DType, b: DType, x64: X64) -> Option<Promoted> {
    match (class(a)?, class(b)?) {
        _ if a == b => Some(Promoted::strong(a)),
        (Class::Bool, _) => Some(Promoted::strong(b)),
        (_, Class::Bool) => Some(Promoted::strong(a)),
        // Integers narrower than a byte promote only with the same type.
        (Class::Integer(IntFormat { bits: ..8, .. }), _) | (_, Class::Integer(IntFormat { bits: ..8, .. })) => None,
        (Class::Integer(a), Class::Integer(b)) => {
            let widest = if x64 == X64::On { 64 } else { 32 };
            let common = common_integer(a, b);
            Some(match common.filter(|t| t.code_bits() <= widest) {
                Some(common) => Promoted::strong(common),
                // No integer holds both types. The result is a weak f64, or the widest signed integer if 64-bit types
                // do not exist.
                None if x64 == X64::On => Promoted::weak(DType::F64),
                None => Promoted::strong(DType::I32),
            })
        }
        (Class::Integer(_), Class::Float { .. }) => Some(Promoted::strong(b)),
        (Class::Float { .. }, Class::Integer(_)) => Some(Promoted::strong(a)),
        (Class::Float { bits: ..=8 }, Class::Float { .. }) | (Class::Float { .. }, Class::Float { bits: ..=8 }) => None,
        (Class::Float { .. }, Class::Float { .. }) => Some(Promoted::strong(super::common_float(a, b))),
    }
}
