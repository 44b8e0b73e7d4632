//! Type rule of OpenVINO ConvertPromoteTypes-14. Reference: `docs/spec/openvino.md §2` to §5.
//!
//! [`crate::spec::openvino`] converts the values.

use super::{Class, Element, PromotionError, Rank, class, common_integer};
use crate::dtype::{DType, Ecosystem};
use crate::format::IntFormat;
use alloc::string::String;
use alloc::vec::Vec;

/// Release whose rules this module implements. Source: `docs/spec/openvino.md §2`.
pub const VERSION: &str = "2026.4.1";

/// Types that the operator takes, in the order of the reference page, without `dynamic`.
pub const ACCEPTED: [DType; 18] = {
    use DType::*;
    [Bool, U1, U4, U8, U16, U32, U64, I4, I8, I16, I32, I64, F8E4M3Fn, F8E5M2, Bf16, F16, F32, F64]
};

/// Types of OpenVINO that the operator refuses.
pub const REJECTED: [DType; 7] = {
    use DType::*;
    [U2, U3, U6, Nf4, F8E8M0, F4E2M1, String]
};

/// Name of the unknown type.
pub const DYNAMIC: &str = "dynamic";

pub(super) fn knows(dtype: DType) -> bool {
    ACCEPTED.contains(&dtype) || REJECTED.contains(&dtype)
}

/// Returns the name of an element type in attributes of models: `f32`, `dynamic`.
#[must_use]
pub fn name(element: Element) -> &'static str {
    match element {
        Element::Type(dtype) => dtype.names_in(Ecosystem::OpenVino).next().unwrap_or(dtype.name()),
        Element::Dynamic => DYNAMIC,
    }
}

/// The unknown type has two spellings. Source: `docs/spec/openvino.md §1.1`.
pub(super) fn is_dynamic(text: &str) -> bool {
    [DYNAMIC, "undefined"].iter().any(|word| word.eq_ignore_ascii_case(text))
}

pub(super) fn names(types: &[DType]) -> String {
    types.iter().map(|&t| name(Element::Type(t))).collect::<Vec<_>>().join(", ")
}

/// Reads an element type, as in attributes. Case does not matter; legacy names (`FP32`) are not accepted.
///
/// Source: `docs/spec/openvino.md §1.1`, §11.3.
pub fn element(text: &str) -> Option<Element> {
    if is_dynamic(text) {
        return Some(Element::Dynamic);
    }
    let known = ACCEPTED.into_iter().chain(REJECTED).map(Element::Type);
    known.into_iter().find(|&e| name(e).eq_ignore_ascii_case(text))
}

/// Attribute `u64_integer_promotion_target`: a type that Convert can produce from u64 and from every signed integer.
///
/// Source: `docs/spec/openvino.md §2.4`.
///
/// # Examples
/// ```
/// use truecast_core::promote::openvino::U64Target;
/// assert!("F64".parse::<U64Target>().is_ok());
/// assert!("FP64".parse::<U64Target>().unwrap_err().to_string().ends_with("the spelling here is f64"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct U64Target(DType);

impl U64Target {
    /// All valid targets.
    pub const ALL: [DType; 21] = {
        use DType::*;
        [Bool, U1, U2, U3, U4, U6, U8, U16, U32, U64, I4, I8, I16, I32, I64, F8E4M3Fn, F8E5M2, Bf16, F16, F32, F64]
    };

    /// Returns `dtype` as a target.
    ///
    /// # Errors
    /// [`PromotionError::U64Target`] for a type outside [`U64Target::ALL`].
    pub fn new(dtype: DType) -> Result<Self, PromotionError> {
        let refused = || PromotionError::U64Target { value: name(Element::Type(dtype)).into(), meant: None };
        U64Target::ALL.contains(&dtype).then_some(U64Target(dtype)).ok_or_else(refused)
    }

    /// Returns the type.
    #[must_use]
    pub const fn dtype(self) -> DType {
        self.0
    }
}

impl Default for U64Target {
    fn default() -> Self {
        U64Target(DType::F32)
    }
}

impl core::str::FromStr for U64Target {
    type Err = PromotionError;
    fn from_str(text: &str) -> Result<Self, PromotionError> {
        if let Some(Element::Type(dtype)) = element(text) {
            return U64Target::new(dtype);
        }
        let legacy = DType::parse_in(Ecosystem::OpenVino, text).ok().filter(|t| U64Target::ALL.contains(t));
        Err(PromotionError::U64Target { value: text.into(), meant: legacy })
    }
}

/// Guarantee of a safe promotion (`promote_unsafe` is false); some guarantees still allow values to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum SafeMode {
    /// Behavior of release 2026.4, which can lose values.
    #[default]
    OpenVino,
    /// Every value of both inputs is a value of the result.
    Strict,
}

/// Input of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub element: Element,
    /// Rank.
    pub rank: Rank,
}

/// Attributes of the operator, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ConvertPromoteTypes {
    /// `promote_unsafe`.
    pub promote_unsafe: bool,
    /// `pytorch_scalar_promotion`.
    pub pytorch_scalar_promotion: bool,
    /// `u64_integer_promotion_target`.
    pub u64_integer_promotion_target: U64Target,
}

impl ConvertPromoteTypes {
    /// Returns the type of both outputs.
    ///
    /// Source: `docs/spec/openvino.md §2.2` and §2.6. The numbers of steps in comments are from §2.2.
    ///
    /// # Errors
    /// [`Element`](PromotionError::Element), [`IntegerWithFloat`](PromotionError::IntegerWithFloat),
    /// [`Scalar`](PromotionError::Scalar), [`UnsignedWithSigned`](PromotionError::UnsignedWithSigned) and
    /// [`SameWidth`](PromotionError::SameWidth); in the strict mode also [`Lossy`](PromotionError::Lossy).
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType::*, promote::{Element, Rank}};
    /// use truecast_core::promote::openvino::{ConvertPromoteTypes, SafeMode, TensorType};
    /// let safe = ConvertPromoteTypes::default();
    /// let tensor = |dtype| TensorType { element: Element::Type(dtype), rank: Rank::Dimensioned };
    /// let refused = safe.promote(tensor(U8), tensor(I8), SafeMode::OpenVino).unwrap_err();
    /// assert_eq!(refused.code(), "TC-PRM-04");
    /// let unsafely = ConvertPromoteTypes { promote_unsafe: true, ..safe };
    /// assert_eq!(unsafely.promote(tensor(U8), tensor(I8), SafeMode::OpenVino), Ok(Element::Type(I16)));
    /// ```
    pub fn promote(&self, lhs: TensorType, rhs: TensorType, mode: SafeMode) -> Result<Element, PromotionError> {
        let result = self.common(lhs, rhs)?;
        match (mode, self.loss(lhs.element, rhs.element, result)) {
            (SafeMode::Strict, Some(loss)) => Err(loss),
            _ => Ok(result),
        }
    }

    /// Returns the error of the strict mode if a safe promotion loses values of an input. Mode `openvino` accepts such
    /// a promotion. `result` is the result of [`promote`](ConvertPromoteTypes::promote) in that mode.
    #[must_use]
    pub fn loss(&self, lhs: Element, rhs: Element, result: Element) -> Option<PromotionError> {
        let Element::Type(result) = result else { return None };
        let loses = |&element: &Element| match element {
            Element::Type(dtype) => !dtype.embeds_in(result),
            Element::Dynamic => false,
        };
        match [lhs, rhs].into_iter().find(loses) {
            Some(Element::Type(element)) if !self.promote_unsafe => Some(PromotionError::Lossy { element, result }),
            _ => None,
        }
    }

    fn common(&self, lhs: TensorType, rhs: TensorType) -> Result<Element, PromotionError> {
        // Step 1
        for (input, tensor) in [lhs, rhs].into_iter().enumerate() {
            if let Element::Type(element) = tensor.element
                && !ACCEPTED.contains(&element)
            {
                return Err(PromotionError::Element { element, input });
            }
        }
        let (Element::Type(a), Element::Type(b)) = (lhs.element, rhs.element) else {
            return Ok(Element::Dynamic); // step 2
        };
        let class_of = |t| class(t).expect("every accepted type has a class");
        let result = match (class_of(a), class_of(b)) {
            _ if a == b => a,      // step 3
            (Class::Bool, _) => b, // step 4
            (_, Class::Bool) => a,
            (Class::Integer(_), Class::Float { .. }) => self.integer_with_float(a, b)?,
            (Class::Float { .. }, Class::Integer(_)) => self.integer_with_float(b, a)?,
            _ if self.pytorch_scalar_promotion => match (lhs.rank, rhs.rank) {
                (Rank::Dynamic, _) | (_, Rank::Dynamic) => return Ok(Element::Dynamic), // step 6a
                (Rank::Scalar, Rank::Dimensioned) => self.scalar(a, b)?,
                (Rank::Dimensioned, Rank::Scalar) => self.scalar(b, a)?,
                (Rank::Scalar, Rank::Scalar) | (Rank::Dimensioned, Rank::Dimensioned) => self.same_class(a, b)?,
            },
            _ => self.same_class(a, b)?,
        };
        Ok(Element::Type(result))
    }

    /// Step 5: an integer with a float.
    fn integer_with_float(&self, integer: DType, float: DType) -> Result<DType, PromotionError> {
        let (float_bits, needed_bits) = (width(float), 2 * width(integer));
        if self.promote_unsafe || float_bits >= needed_bits {
            return Ok(float);
        }
        Err(PromotionError::IntegerWithFloat { integer, float, float_bits, needed_bits })
    }

    /// Step 6b: the tensor's type wins. If the scalar is unsigned, the test doubles the width of the tensor's type, not
    /// the width of the scalar's type. Values can therefore be lost (`docs/spec/openvino.md §4` D3, D4).
    fn scalar(&self, scalar: DType, dimensioned: DType) -> Result<DType, PromotionError> {
        let fits = match (is_signed(scalar), is_signed(dimensioned)) {
            (s, d) if s == d => width(dimensioned) >= width(scalar),
            (false, _) => 2 * width(dimensioned) >= width(scalar),
            (true, _) => false,
        };
        if self.promote_unsafe || fits {
            return Ok(dimensioned);
        }
        Err(PromotionError::Scalar { scalar, dimensioned })
    }

    /// Steps 7 to 9: two integers, or two floats.
    fn same_class(&self, a: DType, b: DType) -> Result<DType, PromotionError> {
        if is_signed(a) != is_signed(b) {
            return self.unsigned_with_signed(a, b); // step 7
        }
        if width(a) != width(b) {
            return Ok(if width(a) > width(b) { a } else { b }); // step 8
        }
        // Step 9: {f8e4m3, f8e5m2} or {bf16, f16}
        let unsafe_result = if width(a) == 8 { DType::F16 } else { DType::F32 };
        if self.promote_unsafe {
            return Ok(unsafe_result);
        }
        Err(PromotionError::SameWidth { lhs: a, rhs: b, unsafe_result })
    }

    /// Step 7: an unsigned integer with a signed one.
    fn unsigned_with_signed(&self, a: DType, b: DType) -> Result<DType, PromotionError> {
        let (unsigned, signed) = if is_signed(a) { (b, a) } else { (a, b) };
        let (signed_bits, needed_bits) = (width(signed), 2 * width(unsigned));
        let format = |dtype: DType| IntFormat { bits: width(dtype) as u8, signed: is_signed(dtype) };
        let holds_both = common_integer(format(a), format(b));
        match holds_both {
            Some(common) if self.promote_unsafe || needed_bits <= signed_bits => Ok(common),
            None if self.promote_unsafe => Ok(self.u64_integer_promotion_target.dtype()),
            _ => Err(PromotionError::UnsignedWithSigned {
                unsigned,
                signed,
                signed_bits,
                needed_bits,
                unsafe_result: holds_both.unwrap_or(self.u64_integer_promotion_target.dtype()),
            }),
        }
    }
}

const fn width(dtype: DType) -> u32 {
    dtype.code_bits()
}

/// Floats count as signed.
const fn is_signed(dtype: DType) -> bool {
    !matches!(class(dtype), Some(Class::Integer(IntFormat { signed: false, .. })))
}
