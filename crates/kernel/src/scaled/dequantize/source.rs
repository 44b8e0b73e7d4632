//! Codes and operands from which the elements of a row are computed.

use crate::scaled::blocks::BlockRow;
use crate::scaled::grid::GridRow;
use crate::scaled::values::Operands;

pub(super) enum Source<'a> {
    Grid(Box<GridRow<'a>>),
    Blocks(BlockRow<'a>),
}

impl Source<'_> {
    /// Operands of each block of a row.
    pub fn operands(&self) -> Operands<'_> {
        match self {
            Source::Grid(row) => row.operands(),
            Source::Blocks(row) => {
                Operands { scales: &row.scales, biases: row.biases.as_deref(), ..Operands::default() }
            }
        }
    }
}
