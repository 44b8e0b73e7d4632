//! Form of tensors in GGUF files: rows of blocks, with the row length in bytes (`docs/spec/checkpoints.md §9`).

use truecast_core::DType;
use truecast_core::scaled::{BlockType, Coding, Layout, Part};
use truecast_io::Tensor;

use super::{Content, Output, Target};

/// Target of a tensor with at least two dimensions. The error says why its rows do not consist of blocks.
pub(super) fn target(tensor: &Tensor, block: BlockType) -> Result<Target, String> {
    let mut shape = tensor.shape.to_vec();
    let columns = shape.last_mut().expect("a tensor of two dimensions");
    let (cols, of_block) = (*columns, block.elements());
    if !cols.is_multiple_of(of_block) {
        return Err(format!("rows of {cols} elements are not a whole number of blocks of {of_block}"));
    }
    *columns = cols / of_block * block.bytes();
    let rows = tensor.shape[..tensor.shape.len() - 1].iter().product();
    let layout = Layout::new(1, [rows, cols], Coding::Blocks { block, factor: false });
    layout.check().map_err(|cause| cause.to_string())?;
    let (name, layout_of_bytes) = (tensor.name.clone(), truecast_core::Layout::Packed);
    let stored = Tensor { name, dtype: DType::U8, layout: layout_of_bytes, shape: shape.into() };
    Ok(Target { layout, tensors: vec![Output { content: Content::Part(Part::Codes), tensor: stored }] })
}
