//! TensorFlow's NumPy behavior (`tf.experimental.numpy`), modes `all` and `safe`.
//! Reference: `docs/spec/openvino.md §12.4`.

use super::{Class, Element, Operand, Promoted, PythonNumber, class, common_float, common_integer};
use crate::dtype::DType;

/// Release whose rules this module implements. Source: `docs/spec/openvino.md §12.4`.
pub const VERSION: &str = "2.21.0";

const PROMOTED: [DType; 13] = {
    use DType::*;
    [Bool, U8, U16, U32, U64, I8, I16, I32, I64, Bf16, F16, F32, F64]
};

/// Types of TensorFlow that do not promote, even with the same type.
const REFUSED: [DType; 10] = {
    use DType::*;
    [I2, U2, I4, U4, F4E2M1, F8E4M3Fn, F8E4M3Fnuz, F8E4M3B11Fnuz, F8E5M2, F8E5M2Fnuz]
};

/// Attribute `dtype_conversion_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Every promotion of the table.
    #[default]
    All,
    /// Only promotions that TensorFlow considers safe: no lost values, and at most one type is widened.
    Safe,
}

pub(super) fn knows(dtype: DType) -> bool {
    PROMOTED.contains(&dtype) || REFUSED.contains(&dtype)
}

pub(super) fn promote(lhs: Operand, rhs: Operand, mode: Mode) -> Option<Promoted> {
    let Common { result, is_safe } = common(entry(lhs)?, entry(rhs)?);
    (mode == Mode::All || is_safe).then_some(result)
}

/// Row of the table that an operand takes: a strong row, or the weak row of Python's int or float. `None` if TensorFlow
/// does not promote the type.
fn entry(operand: Operand) -> Option<Entry> {
    match operand {
        Operand::Tensor(Element::Type(dtype)) => PROMOTED.contains(&dtype).then_some(Entry { dtype, is_weak: false }),
        Operand::Tensor(Element::Dynamic) => None,
        Operand::Python(PythonNumber::Bool) => Some(Entry { dtype: DType::Bool, is_weak: false }),
        Operand::Python(PythonNumber::Int) => Some(Entry { dtype: DType::I32, is_weak: true }),
        Operand::Python(PythonNumber::Float) => Some(Entry { dtype: DType::F32, is_weak: true }),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    dtype: DType,
    is_weak: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Common {
    result: Promoted,
    /// True if mode `safe` allows the result.
    is_safe: bool,
}

fn common(a: Entry, b: Entry) -> Common {
    let classes = |e: Entry| class(e.dtype).expect("numbers of the table have a class");
    let keep = |e: Entry| Promoted { element: Element::Type(e.dtype), is_weak: e.is_weak };
    let safe = |result| Common { result, is_safe: true };
    match (classes(a), classes(b)) {
        _ if a == b => safe(keep(a)),
        (Class::Bool, _) => safe(keep(b)),
        (_, Class::Bool) => safe(keep(a)),
        _ if a.is_weak && b.is_weak => safe(both_weak(a.dtype, b.dtype)),
        _ if a.is_weak => weak_with_strong(a.dtype, b.dtype),
        _ if b.is_weak => weak_with_strong(b.dtype, a.dtype),
        _ => both_strong(a.dtype, b.dtype),
    }
}

/// Common type of two weak types. Two integers, or two floats, give the wider type. An integer and a float give the
/// float.
fn both_weak(a: DType, b: DType) -> Promoted {
    Promoted::weak(match (class(a), class(b)) {
        (Some(Class::Float { .. }), Some(Class::Float { .. })) => common_float(a, b),
        (Some(Class::Float { .. }), _) => a,
        (_, Some(Class::Float { .. })) => b,
        _ if a.code_bits() > b.code_bits() => a,
        _ => b,
    })
}

/// The strong type wins, unless it is an integer and the weak type is a float. Then the result is a weak f64, and it is
/// safe only if the float is f64 and the integer is narrower.
fn weak_with_strong(weak: DType, strong: DType) -> Common {
    match (class(weak), class(strong)) {
        (Some(Class::Float { bits }), Some(Class::Integer(integer))) => {
            Common { result: Promoted::weak(DType::F64), is_safe: bits == 64 && integer.bits < 64 }
        }
        _ => Common { result: Promoted::strong(strong), is_safe: true },
    }
}

fn both_strong(a: DType, b: DType) -> Common {
    let strong = |common| Common { result: Promoted::strong(common), is_safe: common == a || common == b };
    match (class(a), class(b)) {
        (Some(Class::Integer(a_format)), Some(Class::Integer(b_format))) => match common_integer(a_format, b_format) {
            Some(common) => strong(common),
            None => Common { result: Promoted::weak(DType::F64), is_safe: false },
        },
        (Some(Class::Integer(integer)), Some(Class::Float { bits })) => {
            Common { result: Promoted::strong(b), is_safe: bits >= 2 * u32::from(integer.bits) }
        }
        (Some(Class::Float { .. }), Some(Class::Integer(_))) => both_strong(b, a),
        _ => strong(common_float(a, b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Includes the weak rows and columns, which no operand can name.
    #[test]
    fn the_whole_table() {
        let page = include_str!("../../../../docs/spec/openvino.md");
        let section = page.split("\n### 12.4 ").nth(1).unwrap();
        let mut lines = section.split("```").nth(1).unwrap().lines().filter(|l| !l.trim().is_empty());
        let entry = |text: &str| {
            let (name, is_weak) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
            Entry { dtype: name.parse().unwrap(), is_weak }
        };
        let columns: Vec<Entry> = lines.next().unwrap().split_whitespace().map(entry).collect();
        assert_eq!(columns.len(), 17);
        let mut cells = 0;
        for line in lines {
            let mut words = line.split_whitespace();
            let row = entry(words.next().unwrap());
            for (word, &column) in words.zip(&columns) {
                let (text, is_safe) = word.strip_suffix('!').map_or((word, true), |text| (text, false));
                let Entry { dtype, is_weak } = entry(text);
                let expected = Common { result: Promoted { element: Element::Type(dtype), is_weak }, is_safe };
                assert_eq!(common(row, column), expected, "{row:?} with {column:?}");
                cells += 1;
            }
        }
        assert_eq!(cells, 17 * 17);
    }
}
