//! TOSA RESCALE on an array in a file.

use crate::files::error::Error;
use crate::files::paths;
use crate::files::stream::{self, Chunk, Item, LEAST_MEMORY, Limits, room, stream_chunks};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use truecast_core::ErrorCode;
use truecast_core::spec::tosa::rescale::{Operand, Operands, ScaleError};
use truecast_core::spec::tosa::{Requirement, Rescale, RescaleSpec, Target, signless};
use truecast_core::spec::{SpecError, ieee};
use truecast_core::{DType, Layout, cast_one};
use truecast_io::npy::tosa::{self, Array, Reader};
use truecast_io::{Existing, FileFormat, Source, Tensor, Writer};
use truecast_kernel::{CastOptions, Elements, ElementsMut, RescaleCounts, RescaleError, Rescaler};
use truecast_models::{Data, array as array_of_a_type};

/// Error of a RESCALE of an array.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The error messages name the fields.
pub enum RescaleFailure {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] Error),
    /// A file is not the expected array.
    #[error(transparent)]
    Array(#[from] truecast_io::Error),
    /// The specification forbids the operation.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A number does not fit the operand.
    #[error("{operand} {value} does not fit in {dtype}{hint}")]
    Number { operand: &'static str, value: i64, dtype: DType, hint: &'static str },
    /// An array of integers is expected.
    #[error("{path}: {found}; expected one array of integers")]
    Integers { path: String, found: String },
    /// An array of scales is expected.
    #[error("{path}: {found}; expected one array of floats")]
    Floats { path: String, found: String },
    /// A file of scales cannot be read.
    #[error(transparent)]
    Given(#[from] array_of_a_type::ArrayError),
    /// A number is not a valid scale.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// Two arrays that belong together have different shapes.
    #[error("{path}: shape {found:?}, but the input has {expected:?}")]
    Shape { path: String, found: Vec<u64>, expected: Vec<u64> },
    /// The result is unpredictable.
    #[error("{path}: unpredictable: {requirement}{}", index.map_or(String::new(), |i| format!(", first at element {i}")))]
    Unpredictable { path: String, requirement: Requirement, index: Option<u64> },
}

impl RescaleFailure {
    /// Stable code of the error.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            RescaleFailure::File(error) => error.error_code(),
            RescaleFailure::Array(error) => error.error_code(),
            RescaleFailure::Given(error) => error.error_code(),
            RescaleFailure::Spec(error) => match error.error_code() {
                code @ (ErrorCode::UnsupportedType | ErrorCode::UnsupportedPair) => code,
                _ => ErrorCode::IllegalOperation,
            },
            RescaleFailure::Scale(_) | RescaleFailure::Number { .. } => ErrorCode::InvalidValue,
            RescaleFailure::Integers { .. } | RescaleFailure::Floats { .. } => ErrorCode::TypeMismatch,
            RescaleFailure::Shape { .. } => ErrorCode::ShapeMismatch,
            RescaleFailure::Unpredictable { .. } => ErrorCode::UndefinedResult,
        }
    }
}

/// RESCALE with numbers as operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RescaleRequest {
    /// Types and attributes.
    pub op: Rescale,
    /// One multiplier, or one per channel.
    pub multipliers: Vec<i64>,
    /// One shift per multiplier.
    pub shifts: Vec<i64>,
    /// Zero point of the input. Signed or unsigned, like the input.
    pub input_zp: i64,
    /// Zero point of the output. Signed or unsigned, like the output.
    pub output_zp: i64,
    /// Version, profiles, extensions, level.
    pub target: Target,
}

impl RescaleRequest {
    /// Calls `use_operands` with the operands as tensors.
    ///
    /// # Errors
    /// [`RescaleFailure::Number`] for a number outside its type.
    pub fn with_operands<R>(&self, use_operands: impl FnOnce(&Operands<'_>) -> R) -> Result<R, RescaleFailure> {
        let Rescale { input, output, .. } = self.op;
        let [input_shown, output_shown] = self.op.types();
        let hint = if self.op.scale32 { "" } else { "; scale32 makes it i32" };
        let (input_zp, output_zp) = ([self.input_zp], [self.output_zp]);
        let lengths = [self.multipliers.len() as u64, self.shifts.len() as u64];
        let operands = Operands {
            multiplier: operand("multiplier", [self.op.multiplier_type(); 2], hint, &lengths[..1], &self.multipliers)?,
            shift: operand("shift", [DType::I8; 2], "", &lengths[1..], &self.shifts)?,
            input_zp: operand("input zero point", [input, input_shown], "", &[1], &input_zp)?,
            output_zp: operand("output zero point", [output, output_shown], "", &[1], &output_zp)?,
        };
        Ok(use_operands(&operands))
    }

    /// Resolves the request for an input of this shape.
    ///
    /// # Errors
    /// [`RescaleFailure::Number`], [`RescaleFailure::Spec`].
    pub fn resolve(&self, shape: &[u64]) -> Result<RescaleSpec, RescaleFailure> {
        Ok(self.with_operands(|operands| self.op.resolve(shape, operands, &self.target))??)
    }
}

/// Checks the values of an operand against its type. `dtype` is signless; `shown` is the type in messages.
fn operand<'a>(
    name: &'static str,
    [dtype, shown]: [DType; 2],
    hint: &'static str,
    shape: &'a [u64],
    values: &'a [i64],
) -> Result<Operand<'a>, RescaleFailure> {
    let bits = dtype.code_bits();
    let range = if dtype != shown { 0..1i128 << bits } else { -(1i128 << (bits - 1))..1i128 << (bits - 1) };
    match values.iter().find(|&&value| !range.contains(&value.into())) {
        Some(&value) => Err(RescaleFailure::Number { operand: name, value, dtype: shown, hint }),
        None => Ok(Operand { dtype, shape, values }),
    }
}

/// Integers of an array in a file.
///
/// # Errors
/// [`RescaleFailure::File`], [`RescaleFailure::Integers`].
pub fn integers(path: &Path) -> Result<Vec<i64>, RescaleFailure> {
    let dtype = signless(element_type(path)?);
    let Array { shape, codes } = tosa::read(path, dtype)?;
    Ok(truecast_models::Tensor { dtype, shape, data: Data::Codes(codes) }.integers())
}

/// Scales that a file with a float array has. They are exact f64 values.
///
/// # Errors
/// [`RescaleFailure::File`], [`RescaleFailure::Floats`].
pub fn scales(path: &Path) -> Result<Vec<f64>, RescaleFailure> {
    let shown = || path.display().to_string();
    let source = Source::open(path, None).map_err(Error::from)?;
    let [tensor] = source.tensors() else {
        return Err(RescaleFailure::Floats { path: shown(), found: format!("{} tensors", source.tensors().len()) });
    };
    let dtype = tensor.dtype;
    if !matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64) {
        return Err(RescaleFailure::Floats { path: shown(), found: format!("elements are {dtype}") });
    }
    let tensor = array_of_a_type::read(path, dtype, &CastOptions::default())?;
    let wide = ieee::Cast::to(DType::F64).resolve(dtype)?;
    let code = tensor.reader();
    let one = |index| f64::from_bits(cast_one(&wide, code(index)).code().expect("no policy refuses a value"));
    Ok((0..tensor.len()).map(one).collect())
}

/// Element type of an array of integers; 64-bit integers hold i48.
///
/// # Errors
/// [`RescaleFailure::File`], [`RescaleFailure::Integers`].
pub fn element_type(path: &Path) -> Result<DType, RescaleFailure> {
    let source = Source::open(path, None).map_err(Error::from)?;
    let shown = path.display().to_string();
    let [tensor] = source.tensors() else {
        return Err(RescaleFailure::Integers { path: shown, found: format!("{} tensors", source.tensors().len()) });
    };
    match tensor.dtype {
        dtype @ (DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32) => Ok(dtype),
        DType::I64 => Ok(DType::I48),
        other => Err(RescaleFailure::Integers { path: shown, found: format!("elements are {other}") }),
    }
}

/// Options for a RESCALE of a file.
#[derive(Clone, Copy, Debug)]
pub struct RescaleOptions {
    /// Treatment of an existing destination.
    pub existing: Existing,
    /// Limit on buffers, in bytes.
    pub max_memory: u64,
    /// Instruction set and threads.
    pub exec: CastOptions,
}

/// Rescales an array in a `.npy` file. An unsigned result has an unsigned type in the file.
///
/// Cost: `max_memory`, for arrays of any size.
///
/// # Errors
/// [`RescaleFailure`]; [`Error::Interrupted`] once `stop` is set. The destination is then unchanged.
pub fn rescale(
    request: &RescaleRequest,
    src: &Path,
    dst: &Path,
    options: &RescaleOptions,
    stop: &AtomicBool,
) -> Result<RescaleCounts, RescaleFailure> {
    let shown = || src.display().to_string();
    if FileFormat::of_path(dst) != Some(FileFormat::Npy) {
        let why = "a rescaled array is written as .npy; choose a name that ends in .npy";
        return Err(Error::Unsuitable { path: dst.display().to_string(), why }.into());
    }
    let source = Source::open(src, None).map_err(Error::from)?;
    paths::check_other(src, dst)?;
    let shape = Reader::open(src, request.op.input)?.shape().to_vec();
    let failed = |error| match error {
        RescaleError::Unpredictable { index, requirement } => {
            RescaleFailure::Unpredictable { path: shown(), requirement, index: Some(index) }
        }
        RescaleError::Wide { index } => truecast_io::Error::Wide { path: src.into(), index }.into(),
        other => unreachable!("shapes were resolved: {other}"),
    };
    let rank = request.target.check_rank(shape.len());
    rank.map_err(|requirement| RescaleFailure::Unpredictable { path: shown(), requirement, index: None })?;
    let spec = request.resolve(&shape)?;
    let output = request.op.output;
    let bits = |dtype: DType| dtype.storage_bits().expect("integers have a width");
    let stored = if request.op.input == DType::I48 { DType::I64 } else { request.op.input };
    let item = Item::new(0, shape.iter().product(), bits(stored), bits(output));
    let least = item.least_memory().max(LEAST_MEMORY);
    if options.max_memory < least {
        return Err(Error::Memory { got: options.max_memory, least }.into());
    }
    let [_, dtype] = request.op.types();
    let tensor = Tensor { name: "data".into(), dtype, layout: Layout::Packed, shape: shape.into() };
    let writer = Writer::create(dst, FileFormat::Npy, vec![tensor], &BTreeMap::new(), options.existing);
    // Each thread works on a whole chunk.
    let rescaler = Rescaler::new(&spec, &CastOptions { threads: NonZeroUsize::MIN, ..options.exec });
    let items = [item];
    let work = |Chunk { first, len, .. }: Chunk, src: &[u8], dst: &mut Vec<u8>| {
        let codes = Elements::new(stored, len as usize, src).expect("a chunk has the bytes of its elements");
        let dst = stream::room(dst, items[0].dst_bytes(len)).map_err(Error::from)?;
        let bytes = dst.len();
        let room = ElementsMut::new(output, len as usize, dst).expect("the room is as large");
        rescaler.rescale_part(first, codes, room).map(|counts| (counts, bytes)).map_err(failed)
    };
    let mut total = RescaleCounts::default();
    let done = |_, part: RescaleCounts, _| {
        total.elements += part.elements;
        total.saturated += part.saturated;
    };
    let limits = Limits { threads: options.exec.threads, max_memory: options.max_memory, stop };
    let (mut reader, mut writer) = (source.reader(0)?, writer.map_err(Error::from)?);
    let read = |chunk: Chunk, buffer: &mut Vec<u8>| {
        let bytes = room(buffer, items[0].src_bytes(chunk.len))?;
        reader.read(bytes)?;
        Ok(bytes.len())
    };
    stream_chunks(read, |_, bytes: &[u8]| Ok(writer.write(bytes)?), &items, &limits, work, done)?;
    writer.finish().map_err(Error::from)?;
    Ok(total)
}
