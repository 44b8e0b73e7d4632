//! Stacks of matrices and grids of scales (`docs/spec/checkpoints.md §3.1`). A configuration or a scheme states the
//! block; shapes are only checked.

use truecast_core::DType;
use truecast_core::scaled::{Code, Coding, Layout, Packing, Part, Plane, Planes, Zero};
use truecast_io::Tensor;

use crate::error::Error;
use crate::found::Found;
use crate::table::Described;

/// Logical shape `[.., rows, cols]`, in stored order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) lead: Vec<u64>,
    pub(crate) rows: u64,
    pub(crate) cols: u64,
}

/// Elements of a matrix that share one entry of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScaleGrid {
    /// All elements: one entry for all matrices, or one per matrix.
    Tensor,
    Channel,
    Block([u64; 2]),
    /// A block. In the grid's shape, a dimension of size 1 may follow the rows, or rows and columns.
    Spread([u64; 2]),
    /// A group of columns in a row. The group must divide the row's length.
    Group(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    pub(crate) block: [u64; 2],
    /// True if one entry applies to the whole stack, which then counts as one matrix.
    pub(crate) is_common: bool,
}

impl Stack {
    /// Stack of the matrices that hold a group's codes. An entry of the last dimension holds `per_entry` elements.
    pub(crate) fn of_codes(found: &Found<'_>, per_entry: u64) -> Result<Stack, Error> {
        let stack =
            Stack::of(&found.codes().shape).ok_or_else(|| found.bad_shape("it has fewer than two dimensions"))?;
        Ok(Stack { cols: found.product(stack.cols, per_entry)?, ..stack })
    }

    /// Stack of matrices, which are the last two dimensions. `None` for fewer dimensions.
    pub(crate) fn of(shape: &[u64]) -> Option<Stack> {
        let [lead @ .., rows, cols] = shape else { return None };
        Some(Stack { lead: lead.to_vec(), rows: *rows, cols: *cols })
    }

    pub(crate) fn shape(&self) -> Vec<u64> {
        self.with(&[self.rows, self.cols])
    }

    fn with(&self, last: &[u64]) -> Vec<u64> {
        [&self.lead, last].concat()
    }

    fn grid(&self, [rows, cols]: [u64; 2]) -> [u64; 2] {
        [self.rows.div_ceil(rows), self.cols.div_ceil(cols)]
    }

    /// The first fit of `kinds` whose grid has the tensor's shape.
    pub(crate) fn fit(&self, found: &Found<'_>, tensor: &Tensor, kinds: &[ScaleGrid]) -> Result<Fit, Error> {
        let mut expected = Vec::new();
        for &kind in kinds {
            for (shape, fit) in self.accepted(kind) {
                if *shape == *tensor.shape {
                    return Ok(fit);
                }
                expected.push(shape);
            }
        }
        expected.dedup();
        Err(found.bad_grid(tensor, &self.shape(), &expected))
    }

    fn accepted(&self, kind: ScaleGrid) -> Vec<(Vec<u64>, Fit)> {
        let whole = [self.rows.max(1), self.cols.max(1)];
        let each = |shape, block: [u64; 2]| (shape, Fit { block, is_common: false });
        match kind {
            ScaleGrid::Tensor => {
                // With a common entry the stack counts as one matrix. An empty dimension counts as 1 in the block.
                let rows = self.lead.iter().product::<u64>().saturating_mul(whole[0]).max(1);
                let common = Fit { block: [rows, whole[1]], is_common: true };
                let mut all = vec![(vec![], common), (vec![1], common), (vec![1, 1], common)];
                if !self.lead.is_empty() {
                    let shapes = [self.with(&[]), self.with(&[1]), self.with(&[1, 1])];
                    all.extend(shapes.map(|shape| each(shape, whole)));
                }
                all
            }
            ScaleGrid::Channel => {
                [self.with(&[self.rows, 1]), self.with(&[self.rows])].map(|shape| each(shape, [1, whole[1]])).to_vec()
            }
            ScaleGrid::Block(block) => vec![each(self.with(&self.grid(block)), block)],
            ScaleGrid::Spread(block) => {
                let [rows, cols] = self.grid(block);
                let shapes = [vec![rows, 1, cols, 1], vec![rows, cols], vec![rows, 1, cols]];
                shapes.map(|last| each(self.with(&last), block)).to_vec()
            }
            ScaleGrid::Group(group) if self.cols.is_multiple_of(group) => {
                vec![each(self.with(&[self.rows, self.cols / group]), [1, group])]
            }
            ScaleGrid::Group(_) => Vec::new(),
        }
    }

    /// Fits groups of columns, after checking that the group divides the row's length.
    pub(crate) fn fit_groups(&self, found: &Found<'_>, tensor: &Tensor, group: u64) -> Result<Fit, Error> {
        self.check_groups(found, group)?;
        self.fit(found, tensor, &[ScaleGrid::Group(group)])
    }

    pub(crate) fn check_groups(&self, found: &Found<'_>, group: u64) -> Result<(), Error> {
        in_groups(self.cols, group).map(drop).map_err(|why| found.bad_shape(why))
    }

    /// Describes the logical tensor of `planes` with a matching grid.
    pub(crate) fn described(&self, fit: Fit, planes: Planes) -> Described {
        let coding = Coding::Planes(planes);
        let count = self.lead.iter().product();
        let layout = if fit.is_common {
            Layout::new(1, [self.rows.saturating_mul(count), self.cols], coding)
        } else {
            Layout::new(count, [self.rows, self.cols], coding)
        };
        Described { shape: self.shape(), layout }
    }

    pub(crate) fn times(&self, fit: Fit, codes: Plane, scales: Plane) -> Described {
        self.described(fit, Planes::times(codes, scales, fit.block))
    }
}

impl Described {
    /// Marks the tensor as transposed when read, and swaps the last two dimensions of its shape.
    pub(crate) fn transposed(mut self) -> Described {
        self.layout.transposed = true;
        let last = self.shape.len();
        self.shape.swap(last - 2, last - 1);
        self
    }
}

/// Block of a group of columns.
///
/// # Errors
/// A row length that is not a multiple of the group.
pub(crate) fn in_groups(cols: u64, group: u64) -> Result<[u64; 2], String> {
    if cols.is_multiple_of(group) {
        Ok([1, group])
    } else {
        Err(format!("rows of {cols} elements are not a whole number of groups of {group}"))
    }
}

pub(crate) fn shared(found: &Found<'_>, codes: Plane, kinds: &[ScaleGrid]) -> Result<Described, Error> {
    let (stack, scales) = (Stack::of_codes(found, 1)?, found.scales()?);
    let fit = stack.fit(found, scales, kinds)?;
    Ok(stack.times(fit, codes, scale_plane(scales.dtype)))
}

/// Describes signed bytes, minus optional zero points, times scales with a matching grid.
pub(crate) fn signed_bytes(found: &Found<'_>, stack: &Stack, fit: Fit) -> Result<Described, Error> {
    let (scales, codes) = (found.scales()?, Plane { code: Code::signed(8), packing: Packing::BYTES });
    let zero = match found.part(Part::Zeros) {
        None => Zero::None,
        Some(zeros) if zeros.shape == scales.shape => {
            let plane = if zeros.dtype == DType::I8 { codes } else { Plane::of(zeros.dtype) };
            Zero::Grid { plane, plus: 0 }
        }
        Some(zeros) => return Err(found.bad_grid(zeros, &stack.shape(), &[scales.shape.to_vec()])),
    };
    Ok(stack.described(fit, Planes { zero, ..Planes::times(codes, scale_plane(scales.dtype), fit.block) }))
}

/// Plane of a scale tensor. Integer bytes are exponents of powers of two (§5.4).
pub(crate) fn scale_plane(dtype: DType) -> Plane {
    match dtype {
        DType::U8 | DType::I8 => Plane::of(DType::F8E8M0),
        _ => Plane::of(dtype),
    }
}
