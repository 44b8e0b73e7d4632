//! Codes and operands from which the elements of a row are computed.

use crate::scaled::blocks::BlockRow;
use crate::scaled::grid::GridRow;

pub(super) enum Source<'a> {
    Grid(Box<GridRow<'a>>),
    Blocks(BlockRow<'a>),
}

/// Operands of each block of a row, as f32 bytes.
#[derive(Clone, Copy)]
pub(super) struct OfRow<'a> {
    pub scales: &'a [u8],
    pub zeros: Option<&'a [u8]>,
    pub biases: Option<&'a [u8]>,
}

impl<'a> OfRow<'a> {
    /// Zero points or biases; no layout has both.
    pub fn others(&self) -> &'a [u8] {
        self.zeros.or(self.biases).unwrap_or(&[])
    }
}

impl Source<'_> {
    pub fn operands(&self) -> OfRow<'_> {
        match self {
            Source::Grid(row) => {
                let (scales, zeros, biases) = row.operands();
                OfRow { scales, zeros, biases }
            }
            Source::Blocks(row) => OfRow { scales: &row.scales, zeros: None, biases: row.biases.as_deref() },
        }
    }
}
