//! Tensors of GGUF files that are written: rows of blocks, listed as the bytes of their rows (`docs/spec/checkpoints.md §9`).

use truecast_core::DType;
use truecast_core::scaled::{BlockType, Coding, Layout, Part};
use truecast_io::Tensor;

use super::{Content, Output, Target};
use crate::detect::gguf::{factor_of, module_of};

/// What a tensor becomes, or why its rows are no blocks. It has two dimensions or more.
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

/// The same beside the global scales of a quantized tensor: NVFP4 has a factor for all matrices, or one for each (§9.5).
/// `source` is how the tensor is stored.
pub(super) fn with_factor(target: Target, tensor: &Tensor, source: &Layout) -> Result<Target, String> {
    let Target { layout, mut tensors } = target;
    let global = source.planes().and_then(|planes| planes.global);
    let (Coding::Blocks { block: block @ BlockType::Nvfp4, .. }, Some(global)) = (layout.coding, global) else {
        return Ok(Target { layout, tensors });
    };
    let count = source.matrices * source.grid(global.block).iter().product::<u64>();
    let experts = if tensor.shape.len() > 2 { tensor.shape[0] } else { 1 };
    if count != 1 && count != experts {
        return Err(format!("it has {count} global scales for {experts} matrices"));
    }
    let layout = Layout {
        matrices: count,
        rows: layout.rows / count,
        kept: [layout.rows / count, layout.cols],
        coding: Coding::Blocks { block, factor: true },
        ..layout
    };
    let (name, layout_of_entries) = (factor_of(module_of(&tensor.name)), truecast_core::Layout::Packed);
    let stored = Tensor { name: name.into(), dtype: DType::F32, layout: layout_of_entries, shape: [count].into() };
    tensors.push(Output { content: Content::Part(Part::Global), tensor: stored });
    Ok(Target { layout, tensors })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Scheme, target_of_layout};
    use truecast_core::scaled::{Global, GlobalRule, Plane, Planes};

    fn nvfp4(matrices: u64, shape: [u64; 2], of_global: Option<[u64; 2]>) -> Layout {
        let global = of_global.map(|block| Global { rule: GlobalRule::Times, block });
        let planes = Planes::times(Plane::of(DType::F4E2M1), Plane::of(DType::F8E4M3Fn), [1, 16]);
        Layout::new(matrices, shape, Coding::Planes(Planes { global, ..planes }))
    }

    fn tensors(name: &str, shape: &[u64], source: &Layout) -> Result<Vec<(String, Vec<u64>)>, String> {
        let tensor =
            Tensor { name: name.into(), dtype: DType::F32, layout: truecast_core::Layout::Packed, shape: shape.into() };
        let made = target_of_layout(&tensor, Scheme::of(Family::Gguf(BlockType::Nvfp4)), source);
        let (target, _) = made.map_err(|cause| cause.to_string())?;
        Ok(target
            .tensors
            .into_iter()
            .map(|output| (output.tensor.name.to_string(), output.tensor.shape.to_vec()))
            .collect())
    }

    #[test]
    fn factors_are_named_and_counted_as_the_page_says() {
        let of =
            |list: &[(&str, &[u64])]| Ok(list.iter().map(|(name, shape)| ((*name).into(), shape.to_vec())).collect());
        let one = nvfp4(1, [5, 128], Some([5, 128]));
        assert_eq!(tensors("a.weight", &[5, 128], &one), of(&[("a.weight", &[5, 72]), ("a.scale", &[1])]));
        let plain = nvfp4(1, [5, 128], None);
        assert_eq!(tensors("a.weight", &[5, 128], &plain), of(&[("a.weight", &[5, 72])]));
        let each = nvfp4(3, [5, 64], Some([5, 64]));
        assert_eq!(tensors("w1", &[3, 5, 64], &each), of(&[("w1", &[3, 5, 36]), ("w1.scale", &[3])]));
        // One for all matrices makes one of them.
        let common = nvfp4(1, [15, 64], Some([15, 64]));
        assert_eq!(tensors("w1", &[3, 5, 64], &common), of(&[("w1", &[3, 5, 36]), ("w1.scale", &[1])]));
        let halves = nvfp4(3, [6, 64], Some([3, 64]));
        let refused = tensors("w1", &[3, 6, 64], &halves).unwrap_err();
        assert!(refused.contains("6 global scales for 3 matrices"), "{refused}");
        let narrow = tensors("a.weight", &[5, 96], &nvfp4(1, [5, 96], None)).unwrap_err();
        assert!(narrow.contains("rows of 96 elements are not a whole number of blocks of 64"), "{narrow}");
    }
}
