//! Description of a logical tensor. It states the shape, the packing of codes, the grid of scales, and the arithmetic.

use super::book::Book;
use super::error::ScaledError;
use super::gguf::BlockType;
use super::packing::Packing;
use super::part::{Part, Parts};
use crate::dtype::{DType, Kind};
use crate::format::{FloatFormat, IntFormat};

/// Stored form of a logical tensor. Each part has `matrices` matrices `[rows, cols]`, one after the other.
///
/// A tensor `[.., M, K]` has one matrix per index of the leading dimensions. If scale blocks do not restart at each
/// matrix, one matrix may hold all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Number of matrices.
    pub matrices: u64,
    /// Rows of a stored matrix.
    pub rows: u64,
    /// Columns of a stored matrix, in elements.
    pub cols: u64,
    /// Size `[rows, cols]` of the tensor within a stored matrix. All other entries of the matrix are padding (§4.6.2).
    pub kept: [u64; 2],
    /// True if rows of the tensor are columns of a stored matrix (§4.3, §4.9, §4.10).
    pub transposed: bool,
    /// Coding of the elements.
    pub coding: Coding,
}

/// Coding of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coding {
    /// Codes, scales, zero points and biases in separate tensors.
    Planes(Planes),
    /// Blocks of a GGUF file along the columns; each block has codes and scales (§9).
    Blocks {
        /// Type of the blocks.
        block: BlockType,
        /// If true, values are multiplied by the f32 in [`Part::Global`], one per matrix (§9.5).
        factor: bool,
    },
}

/// Type of the entries in a [`Plane`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Floating-point number; [`Kind::Float`] only.
    Float(DType),
    /// Integer.
    Int(IntFormat),
    /// Index of a value in a code book.
    Book(Book),
}

/// Stored matrix of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plane {
    /// Type of the entries.
    pub code: Code,
    /// Positions of the entries.
    pub packing: Packing,
}

/// Codes and scales. They are stored parts of a tensor, and `form` says how they are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Planes {
    /// One entry for each element.
    pub codes: Plane,
    /// Zero point, subtracted from integer codes.
    pub zero: Zero,
    /// Scales on a grid.
    pub scales: Scales,
    /// Second, f32 scale.
    pub global: Option<Global>,
    /// Combination of code and scale.
    pub form: Form,
    /// Mapping from rows or columns to the grid by [`Part::Index`] (§4.4.1, §4.10).
    pub group: Group,
    /// Excluded code of an element (§4.11).
    pub refused: Option<u64>,
}

/// Scales on a grid: element `[i, j]` uses entry `[i / block[0], j / block[1]]` (§3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scales {
    /// Entries of type f32, f16, bf16, f8e4m3fn or f8e8m0.
    pub plane: Plane,
    /// Rows and columns of the stored matrix that share a scale.
    pub block: [u64; 2],
}

/// Zero point, subtracted from an integer code before scaling (§3.2, form A4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zero {
    /// No zero point.
    None,
    /// Constant zero point: `2^(b-1)` for signed codes that are stored unsigned.
    Constant(i32),
    /// Zero points on the grid of the scales, one for each entry.
    Grid {
        /// Integers; or f32, f16 or bf16, with the difference rounded to f32 (§4.18).
        plane: Plane,
        /// Number that is added to an entry. The sum wraps at the width of the entry. It is 1 for GPTQ's first format
        /// (§4.10).
        plus: u8,
    },
}

/// Second, f32 scale with its own grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Global {
    /// Combination with the first scale.
    pub rule: GlobalRule,
    /// Rows and columns of the stored matrix that share an entry.
    pub block: [u64; 2],
}

/// Combination of first scale `s` and global scale `g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GlobalRule {
    /// `RN32(s * g)`: form A2.
    Times,
    /// `RN32(s / g)`: form A3.
    Divide,
    /// `RN32(s * RN32(g / 2688))`: §4.12.
    Amax,
    /// `RN32(RN32(s * g) + o)`, with `o` as f32 bits: §4.16.
    TimesPlus(u32),
}

/// Combination of code and scale (§3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `RN32(c * s)`: A1 to A4, and the identical P2.
    Times,
    /// `RN32(c / s)`: A5.
    Divide,
    /// `RNt(RNt(q * s) + b)`: A6. `t` is the type of the scales; the biases `b` ([`Part::Biases`]) have the grid of the
    /// scales.
    Affine,
    /// `RN32(RN32(c * s) * k)`, with `k` as f32 bits: A7.
    TimesConstant(u32),
}

/// Mapping from rows and columns to the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Division by the block size.
    Grid,
    /// Row `i` uses grid row `index[i]`.
    OfRow,
    /// Column `j` uses grid column `index[j]`.
    OfColumn,
}

impl Code {
    /// Returns the signed integer code of `bits` bits.
    #[must_use]
    pub const fn signed(bits: u8) -> Code {
        Code::Int(IntFormat { bits, signed: true })
    }

    /// Returns the unsigned integer code of `bits` bits.
    #[must_use]
    pub const fn unsigned(bits: u8) -> Code {
        Code::Int(IntFormat { bits, signed: false })
    }

    /// Number of bits in an entry.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Code::Float(dtype) => dtype.code_bits(),
            Code::Int(f) => f.bits as u32,
            Code::Book(book) => book.bits(),
        }
    }

    /// Floating-point format; `None` for integers and code books.
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
    /// Returns a plane of floating-point entries, row after row without gaps.
    #[must_use]
    pub const fn of(dtype: DType) -> Plane {
        Plane { code: Code::Float(dtype), packing: Packing::BYTES }
    }

    /// Returns the same plane with another packing.
    #[must_use]
    pub const fn packed(self, packing: Packing) -> Plane {
        Plane { packing, ..self }
    }

    /// Returns the size of a `shape` matrix in bytes; `None` if the packing cannot hold the matrix.
    #[must_use]
    pub fn bytes(&self, shape: [u64; 2]) -> Option<u64> {
        self.packing.bytes(self.code.bits(), shape)
    }
}

impl Planes {
    /// Returns the planes of codes that are multiplied by one scale per block. There is no zero point and no global
    /// scale.
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

    /// Returns whether the values of the scales are in [`Part::Book`].
    #[must_use]
    pub fn has_book(&self) -> bool {
        self.scales.plane.code == Code::Book(Book::Stored)
    }
}

impl Layout {
    /// Returns a layout without padding, not transposed.
    #[must_use]
    pub const fn new(matrices: u64, [rows, cols]: [u64; 2], coding: Coding) -> Layout {
        Layout { matrices, rows, cols, kept: [rows, cols], transposed: false, coding }
    }

    /// Returns the rows and columns that a matrix has after any transposition.
    #[must_use]
    pub const fn out(&self) -> [u64; 2] {
        let [rows, cols] = self.kept;
        if self.transposed { [cols, rows] } else { [rows, cols] }
    }

    /// Returns the type of the codes, or the narrowest type of whole bytes that holds the codes.
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
            Coding::Blocks { block: BlockType::MXFP4 | BlockType::NVFP4, .. } => DType::F4E2M1,
            // Codebooks take fewer bits than their numbers.
            Coding::Blocks { block, .. } => match u64::from(block.bits()).min(8 * block.bytes() / block.elements()) {
                ..3 => DType::U2,
                3 | 4 => DType::U4,
                _ => DType::I8,
            },
        }
    }

    /// Number of elements in the tensor.
    #[must_use]
    pub const fn elements(&self) -> u64 {
        self.matrices * self.kept[0] * self.kept[1]
    }

    /// Returns rows and columns of the grid for a block size.
    #[must_use]
    pub const fn grid(&self, block: [u64; 2]) -> [u64; 2] {
        [self.rows.div_ceil(block[0]), self.cols.div_ceil(block[1])]
    }

    /// Returns the planes of [`Coding::Planes`].
    #[must_use]
    pub const fn planes(&self) -> Option<&Planes> {
        match &self.coding {
            Coding::Planes(planes) => Some(planes),
            Coding::Blocks { .. } => None,
        }
    }

    /// Returns rows and columns of the grid of scales. [`Group::OfRow`] and [`Group::OfColumn`] do not change the size.
    #[must_use]
    pub const fn scale_grid(&self) -> Option<[u64; 2]> {
        match self.planes() {
            Some(planes) => Some(self.grid(planes.scales.block)),
            None => None,
        }
    }

    /// Returns the plane of a part, and the rows and columns that share an entry; `None` for other parts.
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

    /// `Ok(None)` if the layout does not have the part.
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

    /// Returns the size of a part in bytes; `None` if the layout does not have the part.
    ///
    /// # Errors
    /// [`ScaledError::Shape`] if the packing cannot hold a matrix of this shape.
    pub fn part_bytes(&self, part: Part) -> Result<Option<u64>, ScaledError> {
        let Some(bytes) = self.matrix_bytes(part)? else { return Ok(None) };
        let shape = [self.rows, self.cols];
        bytes.checked_mul(self.matrices).filter(|b| *b <= 1 << 60).map(Some).ok_or(ScaledError::Shape { part, shape })
    }

    /// Checks that the fields describe a tensor.
    ///
    /// # Errors
    /// [`ScaledError`]: the first contradiction.
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
