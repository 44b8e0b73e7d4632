//! Form of tensors in GGUF files: rows of blocks, with the row length in bytes (`docs/spec/checkpoints.md §9`).

use truecast_core::scaled::{BlockType, Coding, Layout, Part};
use truecast_io::Tensor;
use truecast_io::gguf::{Block, NewTensor};

use super::{Content, Output, Target};

/// Target of a tensor with at least two dimensions. The error says why its rows do not consist of blocks.
pub(super) fn target(tensor: &Tensor, block: BlockType) -> Result<Target, String> {
    let (columns, rows) = tensor.shape.split_last().expect("a tensor of two dimensions");
    let of_block = block.elements();
    if !columns.is_multiple_of(of_block) {
        return Err(format!("rows of {columns} elements are not a whole number of blocks of {of_block}"));
    }
    let layout = Layout::new(1, [rows.iter().product(), *columns], Coding::Blocks { block, factor: false });
    layout.check().map_err(|cause| cause.to_string())?;
    let (name, block) = (tensor.name.clone(), Block::of_scaled(block));
    let stored = NewTensor { name, block, shape: tensor.shape.clone() }.listed();
    Ok(Target { layout, tensors: vec![Output { content: Content::Part(Part::Codes), tensor: stored }] })
}
