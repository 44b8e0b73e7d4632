//! The description of a logical tensor: shape, packing of the codes, scales and their grid, arithmetic.

use super::blocks::BlockType;
use super::book::Book;
use super::error::ScaledError;
use super::packing::Packing;
use super::part::{Part, Parts};
use crate::dtype::{DType, Kind};
use crate::format::{FloatFormat, IntFormat};

/// A logical tensor as stored: `matrices` matrices `[rows, cols]`, one after the other in each part.
///
/// A tensor `[.., M, K]` has one matrix for each index of its leading dimensions. If scale blocks do not restart at
/// each matrix, all rows may be those of a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Number of matrices.
    pub matrices: u64,
    /// Rows of a stored matrix.
    pub rows: u64,
    /// Columns of a stored matrix, in elements.
    pub cols: u64,
    /// Rows and columns that belong to the tensor; the others are padding (§4.6.2).
    pub kept: [u64; 2],
    /// Rows of the tensor are the columns of a stored matrix (§4.3, §4.9, §4.10).
    pub transposed: bool,
    /// Coding of the elements.
    pub coding: Coding,
}

/// Coding of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coding {
    /// Codes, scales, zero points and biases in tensors of their own.
    Planes(Planes),
    /// Blocks of a GGUF file along the columns, each with its codes and scales (§9).
    Blocks {
        /// Type of the blocks.
        block: BlockType,
        /// Values are multiplied by an f32 ([`Part::Global`], one for each matrix; §9.5).
        factor: bool,
    },
}

/// Type of one entry of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// A floating-point code, by value. `DType` is one of floating-point [`Kind::Float`].
    Float(DType),
    /// An integer.
    Int(IntFormat),
    /// The number of a value in a list.
    Book(Book),
}

/// A matrix of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plane {
    /// An entry.
    pub code: Code,
    /// Positions of the entries.
    pub packing: Packing,
}

/// Codes with scales: the stored parts of a tensor, and how they are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Planes {
    /// One entry for each element.
    pub codes: Plane,
    /// Zero point, subtracted from integer codes.
    pub zero: Zero,
    /// Scales on a grid.
    pub scales: Scales,
    /// A second, f32 scale.
    pub global: Option<Global>,
    /// Combination of code and scale.
    pub form: Form,
    /// Whether [`Part::Index`] maps rows or columns to the grid (§4.4.1, §4.10).
    pub group: Group,
    /// A code that no element may have (§4.11).
    pub refused: Option<u64>,
}

/// Scales on a grid: element `[i, j]` uses entry `[i div block[0], j div block[1]]` (§3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scales {
    /// An entry: f32, f16, bf16, f8e4m3fn or f8e8m0.
    pub plane: Plane,
    /// Rows and columns of the stored matrix that share a scale.
    pub block: [u64; 2],
}

/// Zero point, subtracted from an integer code before scaling (§3.2, form A4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zero {
    /// Nothing.
    None,
    /// A number: `2^(b-1)` for codes that are stored without a sign.
    Constant(i32),
    /// An entry on the grid of the scales.
    Grid {
        /// Integers; or f32, f16 or bf16, and the difference is rounded to f32 (§4.18).
        plane: Plane,
        /// Added to an entry, wrapping at its width: 1 for GPTQ's first format (§4.10).
        plus: u8,
    },
}

/// A second, f32 scale on a grid of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Global {
    /// Combination with the first scale.
    pub rule: GlobalRule,
    /// Rows and columns of the stored matrix that share an entry.
    pub block: [u64; 2],
}

/// Combination of a global scale `g` with the first, `s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GlobalRule {
    /// `RN32(s * g)`: form A2.
    Times,
    /// `RN32(s / g)`: form A3.
    Divide,
    /// `RN32(s * RN32(g / 2688))`: §4.12.
    Amax,
    /// `RN32(RN32(s * g) + o)`, `o` the f32 of these bits: §4.16.
    TimesPlus(u32),
}

/// Combination of code and scale (§3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `RN32(c * s)`: A1 to A4, and P2, which is the same.
    Times,
    /// `RN32(c / s)`: A5.
    Divide,
    /// `RNt(RNt(q * s) + b)`, `t` the type of the scales: A6. Biases ([`Part::Biases`]) are arranged like the scales.
    Affine,
    /// `RN32(RN32(c * s) * k)`, `k` the f32 of these bits: A7.
    TimesConstant(u32),
}

/// Mapping of rows and columns to the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// By division.
    Grid,
    /// Row `i` is in the grid's row `index[i]`.
    OfRow,
    /// Column `j` is in the grid's column `index[j]`.
    OfColumn,
}

impl Code {
    /// Signed integers.
    #[must_use]
    pub const fn signed(bits: u8) -> Code {
        Code::Int(IntFormat { bits, signed: true })
    }

    /// Unsigned integers.
    #[must_use]
    pub const fn unsigned(bits: u8) -> Code {
        Code::Int(IntFormat { bits, signed: false })
    }

    /// Bits of an entry.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Code::Float(dtype) => dtype.code_bits(),
            Code::Int(f) => f.bits as u32,
            Code::Book(book) => book.bits(),
        }
    }

    /// Its format, if it is a float.
    #[must_use]
    pub const fn format(self) -> Option<FloatFormat> {
        match self {
            Code::Float(dtype) => match dtype.kind() {
                Kind::Float(f) => Some(f),
                _ => None,
            },
            Code::Int(_) | Code::Book(_) => None,
        }
    }
}

impl Plane {
    /// Entries of a type, row after row without gaps.
    #[must_use]
    pub const fn of(dtype: DType) -> Plane {
        Plane { code: Code::Float(dtype), packing: Packing::BYTES }
    }

    /// The same plane with another packing.
    #[must_use]
    pub const fn packed(self, packing: Packing) -> Plane {
        Plane { packing, ..self }
    }

    /// Bytes of a matrix of entries; `None` if this packing cannot hold it.
    #[must_use]
    pub fn bytes(&self, shape: [u64; 2]) -> Option<u64> {
        self.packing.bytes(self.code.bits(), shape)
    }
}

impl Planes {
    /// Codes times one scale for each block: no zero point, no global scale.
    #[must_use]
    pub const fn times(codes: Plane, scales: Plane, block: [u64; 2]) -> Planes {
        Planes {
            codes,
            zero: Zero::None,
            scales: Scales { plane: scales, block },
            global: None,
            form: Form::Times,
            group: Group::Grid,
            refused: None,
        }
    }

    /// The values of its scales are in [`Part::Book`].
    #[must_use]
    pub fn has_book(&self) -> bool {
        self.scales.plane.code == Code::Book(Book::Stored)
    }
}

impl Layout {
    /// Matrices whose rows and columns all belong to the tensor, not transposed.
    #[must_use]
    pub const fn new(matrices: u64, [rows, cols]: [u64; 2], coding: Coding) -> Layout {
        Layout { matrices, rows, cols, kept: [rows, cols], transposed: false, coding }
    }

    /// Rows and columns of a matrix of the tensor, as read.
    #[must_use]
    pub const fn out(&self) -> [u64; 2] {
        let [rows, cols] = self.kept;
        if self.transposed { [cols, rows] } else { [rows, cols] }
    }

    /// The type of the codes, or the narrowest type of whole bytes that holds them.
    #[must_use]
    pub fn code_type(&self) -> DType {
        match self.coding {
            Coding::Planes(Planes { codes: Plane { code: Code::Float(dtype), .. }, .. }) => dtype,
            Coding::Planes(Planes { codes: Plane { code: Code::Int(format), .. }, .. }) => {
                let is_format = |dtype: &DType| matches!(dtype.kind(), Kind::Int(of) if of == format);
                DType::ALL.into_iter().find(is_format).unwrap_or(if format.signed { DType::I8 } else { DType::U8 })
            }
            Coding::Planes(Planes { codes: Plane { code: Code::Book(Book::Nf4), .. }, .. }) => DType::Nf4,
            Coding::Planes(Planes { codes: Plane { code: Code::Book(_), .. }, .. }) => DType::U4,
            Coding::Blocks { block: BlockType::Mxfp4 | BlockType::Nvfp4, .. } => DType::F4E2M1,
            _ => DType::I8,
        }
    }

    /// Elements of the tensor.
    #[must_use]
    pub const fn elements(&self) -> u64 {
        self.matrices * self.kept[0] * self.kept[1]
    }

    /// Rows and columns of the grid of a block.
    #[must_use]
    pub const fn grid(&self, block: [u64; 2]) -> [u64; 2] {
        [self.rows.div_ceil(block[0]), self.cols.div_ceil(block[1])]
    }

    /// The planes, if this is [`Coding::Planes`].
    #[must_use]
    pub const fn planes(&self) -> Option<&Planes> {
        match &self.coding {
            Coding::Planes(planes) => Some(planes),
            Coding::Blocks { .. } => None,
        }
    }

    /// Rows and columns of the grid of scales. With [`Group::OfRow`] and [`Group::OfColumn`] it has the same number of
    /// groups as by division.
    #[must_use]
    pub const fn scale_grid(&self) -> Option<[u64; 2]> {
        match self.planes() {
            Some(planes) => Some(self.grid(planes.scales.block)),
            None => None,
        }
    }

    /// Plane of a part, and the rows and columns that share an entry; `None` if the layout does not have the part or
    /// the part is not a plane.
    #[must_use]
    pub fn plane(&self, part: Part) -> Option<(Plane, [u64; 2])> {
        let planes = self.planes()?;
        let Scales { plane, block } = planes.scales;
        match (part, planes) {
            (Part::Codes, _) => Some((planes.codes, [1, 1])),
            (Part::Scales, _) | (Part::Biases, Planes { form: Form::Affine, .. }) => Some((plane, block)),
            (Part::Global, Planes { global: Some(global), .. }) => Some((Plane::of(DType::F32), global.block)),
            (Part::Zeros, Planes { zero: Zero::Grid { plane, .. }, .. }) => Some((*plane, block)),
            _ => None,
        }
    }

    /// Bytes of a part of one matrix: `Ok(None)` if there is no such part.
    fn matrix_bytes(&self, part: Part) -> Result<Option<u64>, ScaledError> {
        let (bytes, shape) = match (part, &self.coding) {
            (Part::Codes, Coding::Blocks { block, .. }) => {
                let shape = [self.rows, self.cols];
                (block.bytes_of(shape), shape)
            }
            (Part::Global, Coding::Blocks { factor: true, .. }) => return Ok(Some(4)),
            (Part::Book, Coding::Planes(planes)) if planes.has_book() => return Ok(Some(Book::STORED * 4)),
            (Part::Index, Coding::Planes(Planes { group: Group::OfRow, .. })) => return Ok(Some(self.rows * 4)),
            (Part::Index, Coding::Planes(Planes { group: Group::OfColumn, .. })) => return Ok(Some(self.cols * 4)),
            _ => {
                let Some((plane, block)) = self.plane(part) else { return Ok(None) };
                (plane.bytes(self.grid(block)), self.grid(block))
            }
        };
        bytes.map(Some).ok_or(ScaledError::Shape { part, shape })
    }

    /// Bytes of a part; `None` if the layout does not have it.
    ///
    /// # Errors
    /// [`ScaledError::Shape`] if a matrix of this shape cannot be packed so.
    pub fn part_bytes(&self, part: Part) -> Result<Option<u64>, ScaledError> {
        let Some(bytes) = self.matrix_bytes(part)? else { return Ok(None) };
        let shape = [self.rows, self.cols];
        bytes.checked_mul(self.matrices).filter(|b| *b <= 1 << 60).map(Some).ok_or(ScaledError::Shape { part, shape })
    }

    /// Checks that the fields describe a tensor.
    ///
    /// # Errors
    /// The fault of the layout.
    pub fn check(&self) -> Result<(), ScaledError> {
        let invalid = |why| Err(ScaledError::Layout { why });
        if self.kept[0] > self.rows || self.kept[1] > self.cols {
            return invalid("more rows or columns are kept than exist");
        }
        let elements = [self.rows, self.cols].iter().try_fold(self.matrices, |n, m| n.checked_mul(*m));
        if elements.is_none_or(|n| n > 1 << 60) {
            return invalid("it has too many elements");
        }
        match &self.coding {
            Coding::Planes(planes) => planes.check()?,
            Coding::Blocks { .. } if self.kept != [self.rows, self.cols] || self.transposed => {
                return invalid("blocks cannot be transposed or cut off");
            }
            Coding::Blocks { .. } => {}
        }
        for part in Part::ALL {
            self.part_bytes(part)?;
        }
        Ok(())
    }

    /// Checks the size of each part.
    ///
    /// # Errors
    /// [`ScaledError::Size`], and the errors of [`Layout::check`].
    pub fn check_parts(&self, parts: &Parts<'_>) -> Result<(), ScaledError> {
        self.check()?;
        for part in Part::ALL {
            let (expected, got) = (self.part_bytes(part)?.unwrap_or(0), parts.get(part).len() as u64);
            if expected != got {
                return Err(ScaledError::Size { part, expected, got });
            }
        }
        Ok(())
    }
}

impl Planes {
    fn check(&self) -> Result<(), ScaledError> {
        let invalid = |why| Err(ScaledError::Layout { why });
        let scale = self.scales.plane.code;
        let is_scale = matches!(
            scale,
            Code::Float(DType::F32 | DType::F16 | DType::Bf16 | DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E8M0)
        ) || self.has_book();
        let blocks = [Some(self.scales.block), self.global.map(|g| g.block)];
        match self {
            _ if blocks.iter().flatten().flatten().any(|n| *n == 0) => invalid("a block has no rows or no columns"),
            _ if !is_scale => invalid("scales are not f32, f16, bf16, f8e4m3fn, f8e5m2, f8e8m0 or in a stored book"),
            _ if !(1..=8).contains(&self.codes.code.bits()) => invalid("codes do not have 1 to 8 bits"),
            _ if self.codes.code == Code::Book(Book::Stored) => invalid("the values of its codes are not known"),
            Planes { form: Form::Affine, .. } if self.has_book() => invalid("biases are in a stored book"),
            _ if self.codes.code.format().is_none() && matches!(self.codes.code, Code::Float(_)) => {
                invalid("codes are not floating-point codes")
            }
            Planes { zero: Zero::Constant(_) | Zero::Grid { .. }, codes, .. }
                if !matches!(codes.code, Code::Int(_)) =>
            {
                invalid("codes that are not integers have a zero point")
            }
            Planes { zero: Zero::Grid { plane: Plane { code, .. }, .. }, .. }
                if !matches!(code, Code::Int(f) if f.bits <= 32)
                    && !matches!(code, Code::Float(DType::F32 | DType::F16 | DType::Bf16)) =>
            {
                invalid("zero points are not integers of 32 bits or fewer, f32, f16 or bf16")
            }
            Planes { form: Form::Affine, global: Some(_), .. } => {
                invalid("biases and a global scale exclude each other")
            }
            Planes { form: Form::Affine, zero, .. } if *zero != Zero::None => {
                invalid("biases and a zero point exclude each other")
            }
            _ => Ok(()),
        }
    }
}
