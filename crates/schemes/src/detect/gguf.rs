//! Step 2: tensors of a GGUF file are rows of blocks (`docs/spec/checkpoints.md §9`).

use std::sync::Arc;

use foldhash::HashMap;
use truecast_core::DType;
use truecast_core::scaled::{BlockType, Coding, Layout, Part};
use truecast_io::Tensor;
use truecast_io::gguf::Block;

use crate::detection::{Detection, Dropped, Group, Role};
use crate::error::Error;
use crate::scheme::{Family, Scheme};

/// Last component of a weight's name (§9.5).
const WEIGHT: &str = ".weight";

/// Common prefix in the names of a weight and its factor.
pub(crate) fn module_of(name: &str) -> &str {
    name.strip_suffix(WEIGHT).unwrap_or(name)
}

pub(crate) fn factor_of(module: &str) -> String {
    format!("{module}.scale")
}

/// Detects the meaning of every tensor of a GGUF file. In shapes of tensors in scaled blocks, the row length is in
/// bytes.
///
/// Source: `docs/spec/checkpoints.md §9.2`, §9.5.
///
/// # Errors
/// [`Error::Grid`] and [`Error::Type`] for a factor that does not fit.
pub fn detect_gguf(tensors: &[&Tensor], blocks: &[Block]) -> Result<Detection, Error> {
    let numbers: HashMap<&str, usize> = tensors.iter().enumerate().map(|(i, tensor)| (&*tensor.name, i)).collect();
    let (mut roles, mut groups, mut schemes) = (vec![Role::Plain; tensors.len()], Vec::new(), Vec::new());
    for (number, (tensor, block)) in tensors.iter().zip(blocks).enumerate() {
        let Some(block) = block.scaled() else { continue };
        let module = module_of(&tensor.name).to_owned();
        let beside = |name: String| numbers.get(name.as_str()).copied();
        let factor = beside(factor_of(&module)).filter(|_| block == BlockType::NVFP4);
        let (shape, layout) = described(tensor, block, factor.map(|factor| tensors[factor]))?;
        let mut parts = vec![(Part::Codes, number)];
        roles[number] = Role::Part { group: groups.len(), part: Part::Codes };
        if let Some(factor) = factor {
            parts.push((Part::Global, factor));
            roles[factor] = Role::Part { group: groups.len(), part: Part::Global };
        }
        if let Some(of_activations) = beside(format!("{module}.input_scale")).filter(|_| block == BlockType::NVFP4) {
            roles[of_activations] = Role::Dropped(Dropped::ActivationScale);
        }
        let scheme = Scheme::of(Family::Gguf(block));
        if !schemes.contains(&scheme) {
            schemes.push(scheme);
        }
        let name = tensor.name.clone();
        groups.push(Group { name, module, scheme, shape, parts, layout, original: None });
    }
    let choices =
        vec!["tensors keep their GGUF names; other loaders may expect those that the option like gives".to_owned()];
    let (warnings, findings) = (Vec::new(), Vec::new());
    Ok(Detection { roles, groups, schemes, choices, warnings, findings })
}

/// Shape in elements, and layout, which has one matrix per entry of the factor.
fn described(tensor: &Tensor, block: BlockType, factor: Option<&Tensor>) -> Result<(Arc<[u64]>, Layout), Error> {
    let scheme = || Box::new(Scheme::of(Family::Gguf(block)));
    let mut shape = tensor.shape.clone();
    let columns = Arc::make_mut(&mut shape).last_mut().expect("a scalar is no row of blocks");
    *columns = *columns / block.bytes() * block.elements();
    let (rows, cols) = shape.split_at(shape.len() - 1);
    let rows: u64 = rows.iter().product();
    let mut matrices = 1;
    if let Some(factor) = factor {
        if factor.dtype != DType::F32 {
            let (tensor, part, found) = (factor.name.to_string(), Part::Global.name(), factor.dtype);
            return Err(Error::Type { tensor, scheme: scheme(), part, found, expected: vec![DType::F32] });
        }
        let experts = if shape.len() > 2 { shape[0] } else { 1 };
        matrices = match factor.len() {
            1 => 1,
            entries if entries == experts => experts,
            _ => {
                return Err(Error::Grid {
                    tensor: factor.name.to_string(),
                    codes: tensor.name.to_string(),
                    scheme: scheme(),
                    found: (*factor.shape).into(),
                    logical: (*shape).into(),
                    expected: "one entry, or one for each matrix".into(),
                });
            }
        };
    }
    let coding = Coding::Blocks { block, factor: factor.is_some() };
    let layout = Layout::new(matrices, [rows / matrices.max(1), cols[0]], coding);
    let checked = layout.check();
    checked.map_err(|cause| Error::Layout { tensor: tensor.name.to_string(), cause: cause.to_string() })?;
    Ok((shape, layout))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, dtype: DType, shape: &[u64]) -> Tensor {
        Tensor { name: name.into(), dtype, layout: truecast_core::Layout::Packed, shape: shape.into() }
    }

    fn detect(tensors: &[(Tensor, u32)]) -> Result<Detection, Error> {
        let blocks: Vec<Block> = tensors.iter().map(|(_, id)| Block::of_id(*id).unwrap()).collect();
        detect_gguf(&tensors.iter().map(|(tensor, _)| tensor).collect::<Vec<_>>(), &blocks)
    }

    #[test]
    fn a_factor_belongs_to_the_matrices_of_its_weight() {
        let weight = |shape: &[u64]| (tensor("a.weight", DType::U8, shape), 40);
        let scale = |shape: &[u64]| (tensor("a.scale", DType::F32, shape), 0);
        let input = (tensor("a.input_scale", DType::F32, &[1]), 0);
        let found = detect(&[weight(&[3, 5, 72]), scale(&[3]), input]).unwrap();
        assert_eq!(found.groups[0].shape, [3, 5, 128].into());
        let Layout { matrices, rows, cols, coding, .. } = found.groups[0].layout;
        assert_eq!((matrices, rows, cols), (3, 5, 128));
        assert_eq!(coding, Coding::Blocks { block: BlockType::NVFP4, factor: true });
        assert_eq!(found.roles[1], Role::Part { group: 0, part: Part::Global });
        assert_eq!(found.roles[2], Role::Dropped(Dropped::ActivationScale));
        let one = detect(&[weight(&[3, 5, 72]), scale(&[])]).unwrap();
        assert_eq!((one.groups[0].layout.matrices, one.groups[0].layout.rows), (1, 15));
        for wrong in [&[2][..], &[3, 5]] {
            assert!(matches!(detect(&[weight(&[3, 5, 72]), scale(wrong)]), Err(Error::Grid { .. })), "{wrong:?}");
        }
        let half = (tensor("a.scale", DType::F16, &[1]), 1);
        assert!(matches!(detect(&[weight(&[5, 72]), half]), Err(Error::Type { .. })));
        // Only NVFP4 has a factor.
        let plain = detect(&[(tensor("a.weight", DType::U8, &[5, 68]), 8), scale(&[1])]).unwrap();
        assert_eq!((plain.roles[1], &plain.groups[0].shape[..]), (Role::Plain, &[5, 64][..]));
    }
}
