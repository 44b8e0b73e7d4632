//! The common element type of two operands, by the rules of five systems.
//!
//! Each system has its own module. Read with `docs/spec/openvino.md §2` and §12.

mod error;
pub mod jax;
pub mod numpy;
pub mod openvino;
pub mod tensorflow;
pub mod torch;

pub use error::PromotionError;

use crate::dtype::{DType, Ecosystem, Kind, ParseTypeError};
use crate::format::IntFormat;
use crate::words::words;

/// Element type of an operand: known, or not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// A type.
    Type(DType),
    /// Unknown type (OpenVINO only). The result is decided again when the type is known.
    Dynamic,
}

impl Element {
    /// Reads an element name: first in the vocabulary `words`, if given, then as any name of `docs/interfaces.md §1`.
    /// Case does not matter.
    ///
    /// # Errors
    /// [`ParseTypeError`] for unknown names and names of several types.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, Ecosystem, promote::Element};
    /// let fn_type = Element::Type(DType::F8E4M3Fn);
    /// assert_eq!(Element::parse("f8e4m3", Some(Ecosystem::OpenVino)), Ok(fn_type)); // OpenVINO's word
    /// assert_eq!(Element::parse("float8_e4m3fn", Some(Ecosystem::OpenVino)), Ok(fn_type)); // everybody's
    /// assert!(Element::parse("f8e4m3", None).is_err()); // IEEE-like in MLIR and ml_dtypes
    /// ```
    pub fn parse(text: &str, words: Option<Ecosystem>) -> Result<Element, ParseTypeError> {
        if openvino::is_dynamic(text) {
            return Ok(Element::Dynamic);
        }
        let own = words.and_then(|ecosystem| DType::parse_in(ecosystem, text).ok());
        own.map_or_else(|| DType::parse(text), Ok).map(Element::Type)
    }
}

words! {
    /// Kind of a Python number, which has no element type.
    #[allow(missing_docs)]
    pub enum PythonNumber {
        Bool = "py:bool",
        Int = "py:int",
        Float = "py:float",
    }
}

/// One operand of a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A tensor.
    Tensor(Element),
    /// A Python number.
    Python(PythonNumber),
}

/// Rank of a tensor, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Rank {
    /// Rank 0.
    Scalar,
    /// A known rank above 0.
    #[default]
    Dimensioned,
    /// Unknown (OpenVINO only).
    Dynamic,
}

impl Rank {
    /// Every state.
    pub const ALL: [Rank; 3] = [Rank::Scalar, Rank::Dimensioned, Rank::Dynamic];
}

/// Operand with rank; a Python number has no rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// Tensor or Python number.
    pub operand: Operand,
    /// Rank of the operand.
    pub rank: Rank,
}

impl From<DType> for Input {
    /// Returns a tensor of known rank above 0.
    fn from(dtype: DType) -> Input {
        Input { operand: Operand::Tensor(Element::Type(dtype)), rank: Rank::Dimensioned }
    }
}

/// Common type of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Promoted {
    /// The common type.
    pub element: Element,
    /// True if any stronger type wins over this type in the next promotion (JAX and TensorFlow).
    pub is_weak: bool,
}

impl Promoted {
    const fn strong(dtype: DType) -> Promoted {
        Promoted { element: Element::Type(dtype), is_weak: false }
    }

    const fn weak(dtype: DType) -> Promoted {
        Promoted { element: Element::Type(dtype), is_weak: true }
    }
}

/// Promotion system with all of its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum System {
    /// OpenVINO ConvertPromoteTypes-14.
    OpenVino(openvino::ConvertPromoteTypes, openvino::SafeMode),
    /// NumPy with ml_dtypes.
    Numpy,
    /// JAX.
    Jax(jax::X64),
    /// PyTorch.
    Torch,
    /// TensorFlow's NumPy behavior.
    TensorFlow(tensorflow::Mode),
}

impl System {
    /// Returns the system's name in requests and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            System::OpenVino(..) => "openvino",
            System::Numpy => "numpy",
            System::Jax(_) => "jax",
            System::Torch => "torch",
            System::TensorFlow(_) => "tensorflow",
        }
    }

    /// Returns the release whose rules are implemented.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            System::OpenVino(..) => openvino::VERSION,
            System::Numpy => numpy::VERSION,
            System::Jax(_) => jax::VERSION,
            System::Torch => torch::VERSION,
            System::TensorFlow(_) => tensorflow::VERSION,
        }
    }

    /// Returns the ecosystem whose type names the system uses.
    #[must_use]
    pub const fn ecosystem(self) -> Ecosystem {
        match self {
            System::OpenVino(..) => Ecosystem::OpenVino,
            System::Torch => Ecosystem::Torch,
            System::Numpy | System::Jax(_) | System::TensorFlow(_) => Ecosystem::Numpy,
        }
    }

    /// Returns the system's name for an element.
    #[must_use]
    pub fn name_of(self, element: Element) -> &'static str {
        match element {
            Element::Type(dtype) => dtype.names_in(self.ecosystem()).next().unwrap_or(dtype.name()),
            Element::Dynamic => openvino::DYNAMIC,
        }
    }

    /// Returns every element that the system knows, including refused elements.
    pub fn elements(self) -> impl Iterator<Item = Element> {
        let dynamic = matches!(self, System::OpenVino(..)).then_some(Element::Dynamic);
        DType::ALL.into_iter().filter(move |&t| self.knows(t)).map(Element::Type).chain(dynamic)
    }

    fn knows(self, dtype: DType) -> bool {
        match self {
            System::OpenVino(..) => openvino::knows(dtype),
            System::Numpy => numpy::TYPES.contains(&dtype),
            System::Jax(_) => jax::TYPES.contains(&dtype),
            System::Torch => torch::TYPES.contains(&dtype),
            System::TensorFlow(_) => tensorflow::knows(dtype),
        }
    }

    /// Returns the common type of two operands. Source: `docs/spec/openvino.md §2`, §12.
    ///
    /// # Errors
    /// [`PromotionError`]: the system refuses or does not know an operand.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, promote::{Element, System, jax::X64}};
    /// let bf16 = System::Torch.promote(DType::I64.into(), DType::Bf16.into())?;
    /// assert_eq!(bf16.element, Element::Type(DType::Bf16));
    /// let refused = System::Numpy.promote(DType::I64.into(), DType::Bf16.into()).unwrap_err();
    /// assert_eq!(refused.code(), "TC-PRM-09");
    /// # Ok::<(), truecast_core::promote::PromotionError>(())
    /// ```
    pub fn promote(self, lhs: Input, rhs: Input) -> Result<Promoted, PromotionError> {
        for input in [lhs, rhs] {
            self.admits(input.operand)?;
        }
        let refused = || PromotionError::Refused { system: self.name(), lhs: lhs.operand, rhs: rhs.operand };
        match self {
            System::OpenVino(attributes, mode) => {
                let tensor = |input: Input| match input.operand {
                    Operand::Tensor(element) => openvino::TensorType { element, rank: input.rank },
                    Operand::Python(_) => unreachable!("not admitted above"),
                };
                let element = attributes.promote(tensor(lhs), tensor(rhs), mode)?;
                Ok(Promoted { element, is_weak: false })
            }
            System::Numpy => numpy::promote(lhs.operand, rhs.operand).ok_or_else(refused),
            System::Jax(x64) => jax::promote(lhs.operand, rhs.operand, x64).ok_or_else(refused),
            System::Torch => torch::promote(lhs, rhs).ok_or_else(refused),
            System::TensorFlow(mode) => tensorflow::promote(lhs.operand, rhs.operand, mode).ok_or_else(refused),
        }
    }

    /// Source: `docs/spec/openvino.md §12.1`.
    fn admits(self, operand: Operand) -> Result<(), PromotionError> {
        let known = match operand {
            Operand::Tensor(Element::Type(dtype)) => self.knows(dtype),
            Operand::Tensor(Element::Dynamic) => matches!(self, System::OpenVino(..)),
            Operand::Python(_) => !matches!(self, System::OpenVino(..)),
        };
        if known { Ok(()) } else { Err(PromotionError::UnknownType { system: self.name(), operand }) }
    }
}

impl core::fmt::Display for Element {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Element::Type(dtype) => dtype.fmt(f),
            Element::Dynamic => f.pad(openvino::DYNAMIC),
        }
    }
}

impl core::fmt::Display for Operand {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Operand::Tensor(element) => element.fmt(f),
            Operand::Python(number) => number.fmt(f),
        }
    }
}

/// Class of a type, with width in bits. Code books, fixed point, complex numbers and text have no class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Bool,
    Integer(IntFormat),
    Float { bits: u32 },
}

const fn class(dtype: DType) -> Option<Class> {
    match dtype.kind() {
        Kind::Bool => Some(Class::Bool),
        Kind::Int(format) => Some(Class::Integer(format)),
        Kind::Float(f) => Some(Class::Float { bits: f.bits() }),
        Kind::Fixed(_) | Kind::Book(_) | Kind::Complex(_) | Kind::String => None,
    }
}

fn integer(format: IntFormat) -> Option<DType> {
    DType::ALL.into_iter().find(|&t| class(t) == Some(Class::Integer(format)))
}

/// Narrowest integer type that holds two integer types; `None` for u64 with a signed integer.
fn common_integer(a: IntFormat, b: IntFormat) -> Option<DType> {
    // A signed type that holds an unsigned type has twice its width.
    let bits = |integer: IntFormat, other: IntFormat| integer.bits << u32::from(other.signed && !integer.signed);
    integer(IntFormat { bits: bits(a, b).max(bits(b, a)), signed: a.signed || b.signed })
}

/// Common type of two different floats of at least 16 bits: the wider type, or f32 for bf16 with f16.
fn common_float(a: DType, b: DType) -> DType {
    match a.code_bits().cmp(&b.code_bits()) {
        core::cmp::Ordering::Greater => a,
        core::cmp::Ordering::Less => b,
        core::cmp::Ordering::Equal => DType::F32,
    }
}
