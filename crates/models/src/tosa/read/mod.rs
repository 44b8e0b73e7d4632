//! Parses `.tosa` files (FlatBuffers) into operators and tensors. Source: `docs/spec/tosa.md §8`.

mod flatbuffer;

use flatbuffer::{Buffer, Table};
use std::collections::HashMap;

use super::error::{FileError, MOST_OPERANDS};

/// Known bits of `features`. Bit 1: block-scaled types.
const KNOWN_FEATURES: u64 = 0b10;

/// Numbers and names of operators (`docs/spec/tosa.md §8.3`, and the schema that it names).
pub mod op {
    #![allow(missing_docs)] // The constants have the operators' names.

    #[rustfmt::skip]
    const NAMES: [&str; 95] = [
         "UNKNOWN", "ARGMAX", "AVG_POOL2D", "CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "FFT2D", "MATMUL", "MAX_POOL2D",
         "RFFT2D", "TRANSPOSE_CONV2D", "CLAMP", "ERF", "SIGMOID", "TANH", "ADD", "ARITHMETIC_RIGHT_SHIFT",
         "BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "INTDIV", "LOGICAL_AND", "LOGICAL_LEFT_SHIFT",
         "LOGICAL_RIGHT_SHIFT", "LOGICAL_OR", "LOGICAL_XOR", "MAXIMUM", "MINIMUM", "MUL", "POW", "SUB", "TABLE", "ABS",
         "BITWISE_NOT", "CEIL", "CLZ", "COS", "EXP", "FLOOR", "LOG", "LOGICAL_NOT", "NEGATE", "RECIPROCAL", "RSQRT",
         "SIN", "SELECT", "EQUAL", "GREATER", "GREATER_EQUAL", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN",
         "REDUCE_PRODUCT", "REDUCE_SUM", "CONCAT", "PAD", "RESHAPE", "REVERSE", "SLICE", "TILE", "TRANSPOSE", "GATHER",
         "SCATTER", "RESIZE", "CAST", "RESCALE", "CONST", "IDENTITY", "CUSTOM", "COND_IF", "WHILE_LOOP", "VARIABLE",
         "VARIABLE_WRITE", "VARIABLE_READ", "CONST_SHAPE", "MATMUL_T_BLOCK_SCALED", "CAST_FROM_BLOCK_SCALED",
         "CAST_TO_BLOCK_SCALED", "DIM", "CONCAT_SHAPE", "ADD_SHAPE", "SUB_SHAPE", "MUL_SHAPE", "SLICE_SHAPE",
         "EXP2_SHAPE", "LOG2_CEIL_SHAPE", "LOG2_FLOOR_SHAPE", "MAX_SHAPE", "MIN_SHAPE", "MOD_SHAPE", "DIV_CEIL_SHAPE",
         "DIV_FLOOR_SHAPE", "ASSERT_EQUAL_SHAPE", "CONV2D_BLOCK_SCALED",
    ];

    /// Name of an operator; a text with its number if unknown.
    pub fn name(number: u32) -> String {
        NAMES.get(number as usize).map_or_else(|| format!("operator {number}"), |name| (*name).into())
    }

    pub const CAST: u32 = 65;
    pub const RESCALE: u32 = 66;
    pub const CONST: u32 = 67;
    pub const IDENTITY: u32 = 68;
    pub const CONST_SHAPE: u32 = 75;
    pub const CAST_FROM_BLOCK_SCALED: u32 = 77;
    pub const CAST_TO_BLOCK_SCALED: u32 = 78;

    /// Operators that are conversions. Two of them are deprecated.
    pub const CONVERSIONS: [u32; 4] = [CAST, RESCALE, CAST_TO_BLOCK_SCALED, CAST_FROM_BLOCK_SCALED];
}

/// A graph of one block.
#[derive(Clone, Debug)]
pub struct Graph<'a> {
    /// Major, minor and patch version in the file.
    pub version: (i32, i32, i32),
    /// Operators in the order of execution.
    pub operators: Vec<Operator<'a>>,
    /// Tensors by name.
    pub tensors: HashMap<&'a str, Tensor<'a>>,
    /// Names of the graph's inputs.
    pub inputs: Vec<&'a str>,
    /// Names of the graph's outputs.
    pub outputs: Vec<&'a str>,
}

/// An operator.
#[derive(Clone, Debug)]
pub struct Operator<'a> {
    /// Number ([`op`]).
    pub op: u32,
    /// Attributes of RESCALE.
    pub rescale: Option<RescaleAttribute>,
    /// `block_size` of the two deprecated operators.
    pub block_size: u32,
    /// Names of the operands.
    pub inputs: Vec<&'a str>,
    /// Names of the results.
    pub outputs: Vec<&'a str>,
}

/// Attributes of RESCALE; an omitted attribute is false or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names are those of the attributes.
pub struct RescaleAttribute {
    pub scale32: bool,
    pub rounding_mode: u32,
    pub per_channel: bool,
    pub input_unsigned: bool,
    pub output_unsigned: bool,
}

/// A tensor as described in the file.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    /// Dimensions; -1 if unknown.
    pub shape: Vec<i32>,
    /// True if the rank is unknown.
    pub is_unranked: bool,
    /// Number of the element type (`docs/spec/tosa.md §8.3`).
    pub dtype: u32,
    /// Elements of a constant, with padding.
    pub data: &'a [u8],
    /// Number of the scales' type; 0 without scales.
    pub scale_type: u32,
    /// Scales of a block-scaled constant.
    pub scale_data: &'a [u8],
    /// Number of elements per scale.
    pub block_shape: u32,
}

/// Parses a file of one block. Files with several blocks cannot be evaluated.
///
/// Cost: memory proportional to the file; elements and names are not copied.
///
/// # Errors
/// [`FileError`].
pub fn parse(bytes: &[u8]) -> Result<Graph<'_>, FileError> {
    let mut blocks = parse_blocks(bytes)?;
    match blocks.len() {
        1 => Ok(blocks.remove(0)),
        found => Err(FileError::NotOne { what: "blocks", found }),
    }
}

/// Parses a file into one graph for each block of each region.
///
/// Cost: that of [`parse`].
///
/// # Errors
/// [`FileError`]; a file has at least one block.
pub fn parse_blocks(bytes: &[u8]) -> Result<Vec<Graph<'_>>, FileError> {
    if bytes.get(4..8) != Some(b"TOSA") {
        return Err(FileError::Identifier);
    }
    let root = Buffer(bytes).root()?;
    let version = version(root)?;
    let compatibility = root.table(10, "compatibility")?;
    let features = compatibility.map_or(Ok(0), |table| table.u64(6, "features"))?;
    if features & !KNOWN_FEATURES != 0 {
        return Err(FileError::Features { unknown: features & !KNOWN_FEATURES });
    }
    let (mut graphs, mut budget) = (Vec::new(), Budget(bytes.len()));
    for region in root.tables(6, "regions")? {
        budget.take(1)?;
        for block in region?.tables(6, "blocks")? {
            graphs.push(graph(bytes, version, block?, &mut budget)?);
        }
    }
    if graphs.is_empty() { Err(FileError::NotOne { what: "blocks", found: 0 }) } else { Ok(graphs) }
}

/// Number of parts that may still be parsed, at first the number of bytes in the file. The limit stops files whose
/// offsets share parts.
struct Budget(usize);

impl Budget {
    fn take(&mut self, parts: usize) -> Result<(), FileError> {
        self.0 = self.0.checked_sub(parts).ok_or(FileError::Repetition)?;
        Ok(())
    }
}

fn graph<'a>(
    bytes: &'a [u8],
    version: (i32, i32, i32),
    block: Table<'a>,
    budget: &mut Budget,
) -> Result<Graph<'a>, FileError> {
    budget.take(1)?;
    let mut operators = Vec::new();
    for table in block.tables(6, "operators")? {
        let operator = operator(table?)?;
        budget.take(1 + operator.inputs.len() + operator.outputs.len())?;
        operators.push(operator);
    }
    let mut tensors = HashMap::new();
    for table in block.tables(8, "tensors")? {
        let table = table?;
        let name = table.string(4, "a tensor's name")?;
        let tensor = tensor(bytes, table)?;
        budget.take(1 + tensor.shape.len())?;
        if tensors.insert(name, tensor).is_some() {
            return Err(FileError::Duplicate { name: name.into() });
        }
    }
    let mut names = |slot, what| {
        block.strings(slot, what)?.map(|name| budget.take(1).and(name)).collect::<Result<Vec<&str>, FileError>>()
    };
    Ok(Graph { version, operators, tensors, inputs: names(10, "inputs")?, outputs: names(12, "outputs")? })
}

/// Reads the version. Files of version 0.x have other type numbers and are rejected.
fn version(root: Table<'_>) -> Result<(i32, i32, i32), FileError> {
    let table = root.table(4, "the version")?.ok_or(FileError::Damaged { at: 0, what: "the version" })?;
    let part = |slot| table.i32_or(slot, -1, "the version");
    let (major, minor, patch) = (part(4)?, part(6)?, part(8)?);
    if major == 1 { Ok((major, minor, patch)) } else { Err(FileError::Version { major, minor, patch }) }
}

fn operand_names<'a>(all: impl Iterator<Item = Result<&'a str, FileError>>) -> Result<Vec<&'a str>, FileError> {
    let names: Vec<_> = all.take(MOST_OPERANDS + 1).collect::<Result<_, _>>()?;
    if names.len() > MOST_OPERANDS { Err(FileError::Operands) } else { Ok(names) }
}

fn operator(table: Table<'_>) -> Result<Operator<'_>, FileError> {
    let op = table.u32(4, "an operator")?;
    // The attribute is read only if its tag equals the operator's number.
    let attribute =
        if u32::from(table.byte(6, "an attribute's type")?) == op { table.table(8, "an attribute")? } else { None };
    let rescale = match (op, attribute) {
        (op::RESCALE, Some(a)) => Some(RescaleAttribute {
            scale32: a.boolean(4, "scale32")?,
            rounding_mode: a.u32(6, "rounding_mode")?,
            per_channel: a.boolean(8, "per_channel")?,
            input_unsigned: a.boolean(10, "input_unsigned")?,
            output_unsigned: a.boolean(12, "output_unsigned")?,
        }),
        _ => None,
    };
    let block_size = match (op, attribute) {
        (op::CAST_FROM_BLOCK_SCALED | op::CAST_TO_BLOCK_SCALED, Some(a)) => a.u32(4, "block_size")?,
        _ => 0,
    };
    Ok(Operator {
        op,
        rescale,
        block_size,
        inputs: operand_names(table.strings(10, "operands")?)?,
        outputs: operand_names(table.strings(12, "results")?)?,
    })
}

fn tensor<'a>(file: &'a [u8], table: Table<'a>) -> Result<Tensor<'a>, FileError> {
    let shape = table.elements(6, 4, "a shape")?.as_chunks().0;
    if shape.len() > MOST_OPERANDS {
        return Err(FileError::Operands);
    }
    Ok(Tensor {
        shape: shape.iter().map(|d| i32::from_le_bytes(*d)).collect(),
        is_unranked: table.boolean(14, "is_unranked")?,
        dtype: table.u32(8, "an element type")?,
        data: elements(file, table, DataSlots { inside: 10, offset: 18, size: 20 })?,
        scale_type: table.u32(22, "a scale type")?,
        scale_data: elements(file, table, DataSlots { inside: 24, offset: 28, size: 30 })?,
        block_shape: table.u32(26, "a block shape")?,
    })
}

/// Fields with the elements of a tensor: a vector inside the FlatBuffer, or in large models a place after it.
struct DataSlots {
    inside: usize,
    offset: usize,
    size: usize,
}

fn elements<'a>(file: &'a [u8], table: Table<'a>, slots: DataSlots) -> Result<&'a [u8], FileError> {
    const WHAT: &str = "a tensor's data";
    let start = table.u64(slots.offset, WHAT)?;
    if start <= 1 {
        return table.elements(slots.inside, 1, WHAT);
    }
    let end = start.checked_add(table.u64(slots.size, WHAT)?);
    let range = end.and_then(|end| Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?));
    range.and_then(|range| file.get(range)).ok_or(FileError::Damaged { at: start, what: WHAT })
}
