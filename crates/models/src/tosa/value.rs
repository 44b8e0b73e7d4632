//! Declared tensors of a graph: plain elements, or blocks of 32 elements that share a scale.

use std::fmt;

use truecast_core::DType;
use truecast_core::spec::tosa::block::{BLOCK, SCALE};

use super::error::GraphError;
use super::read::{Graph, Tensor};
use crate::tensor::Data;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// Plain elements.
    Plain(DType),
    /// Elements in blocks that share a scale.
    Blocks(DType),
}

impl ElementType {
    /// Element type of a tensor in memory.
    pub fn of(tensor: &crate::Tensor) -> ElementType {
        match tensor.data {
            Data::Blocks { .. } => ElementType::Blocks(tensor.dtype),
            _ => ElementType::Plain(tensor.dtype),
        }
    }

    /// Type of the codes.
    pub const fn dtype(self) -> DType {
        match self {
            ElementType::Plain(dtype) | ElementType::Blocks(dtype) => dtype,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementType::Plain(dtype) => write!(f, "{dtype}"),
            ElementType::Blocks(dtype) => write!(f, "blocks of {dtype}"),
        }
    }
}

/// Declaration of a tensor in a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The type of the elements.
    pub element: ElementType,
    /// The dimensions.
    pub shape: Vec<u64>,
}

/// Maximum number of elements in a tensor, which prevents overflow of lengths.
const MOST_ELEMENTS: u64 = 1 << 48;

impl Declared {
    pub(super) fn of(tensor: &Tensor<'_>) -> Result<Declared, String> {
        if tensor.is_unranked {
            return Err("has no known rank".into());
        }
        let element = element_type(tensor)?;
        let dimension = |d: &i32| u64::try_from(*d).ok().filter(|d| *d > 0);
        let shape: Option<Vec<u64>> = tensor.shape.iter().map(dimension).collect();
        let shape = shape.ok_or_else(|| format!("shape {:?} is not known or has no elements", tensor.shape))?;
        let len = shape.iter().try_fold(1u64, |product, d| product.checked_mul(*d));
        if len.is_none_or(|len| len > MOST_ELEMENTS) {
            return Err(format!("shape {shape:?} has too many elements"));
        }
        Ok(Declared { element, shape })
    }

    /// Shape of the scales.
    pub fn scale_shape(&self) -> Vec<u64> {
        scale_shape(&self.shape)
    }
}

/// Declared type and shape of a tensor.
///
/// # Errors
/// [`GraphError::Tensor`] if the graph does not declare the tensor, or its type or shape is unknown.
pub fn declared(graph: &Graph<'_>, name: &str) -> Result<Declared, GraphError> {
    let wrong = |what: String| GraphError::Tensor { name: name.into(), what };
    let tensor = graph.tensors.get(name).ok_or_else(|| wrong("the graph does not declare it".into()))?;
    Declared::of(tensor).map_err(wrong)
}

/// Shape of the scales for a block-scaled tensor: the last dimension divided by 32.
pub fn scale_shape(shape: &[u64]) -> Vec<u64> {
    let mut shape = shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last /= BLOCK as u64;
    }
    shape
}

/// Element type of a tensor in a file.
///
/// # Errors
/// A text that names the unknown type.
pub fn element_type(tensor: &Tensor<'_>) -> Result<ElementType, String> {
    let dtype = dtype_of(tensor.dtype).ok_or_else(|| format!("element type {} is not known", tensor.dtype))?;
    match (tensor.scale_type, tensor.block_shape) {
        (0, _) => Ok(ElementType::Plain(dtype)),
        (FP8UE8M0, 32) => Ok(ElementType::Blocks(dtype)),
        (scale, block) => Err(format!("scales of type {scale} for blocks of {block} are not known")),
    }
}

const FP8UE8M0: u32 = 16;

/// Type with this number in the schema (`docs/spec/tosa.md §8.3`).
fn dtype_of(number: u32) -> Option<DType> {
    use DType::*;
    /// Types by number, from 1. A shape has i64 elements.
    const TYPES: [DType; 18] = [
        Bool, I4, I8, I16, I32, I48, F32, F16, Bf16, I64, F8E4M3Fn, F8E5M2, F6E2M3, F6E3M2, F4E2M1, SCALE, I64, MxInt8,
    ];
    TYPES.get((number as usize).checked_sub(1)?).copied()
}
