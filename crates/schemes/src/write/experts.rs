//! Target of fused experts whose loaders expect separate layers for each expert (`docs/spec/checkpoints.md §11.3`).

use truecast_core::scaled::Layout;
use truecast_io::Tensor;

use super::{Output, Target, target};
use crate::error::Error;
use crate::scheme::Scheme;

/// Names of fused tensors, each with the layers that its rows contain for an expert, in order.
const FUSED: [(&str, &[&str]); 2] = [("gate_up_proj", &["gate_proj", "up_proj"]), ("down_proj", &["down_proj"])];

/// Returns the target of fused experts, split into tensors for each expert's layers, and the unquantized layers (names,
/// types and shapes).
///
/// `experts.gate_up_proj` becomes `experts.0.gate_proj.weight`, `experts.0.up_proj.weight`,
/// `experts.1.gate_proj.weight`, .. The tensors of one part, such as the codes, follow each other in the order of the
/// part's bytes. A part that all layers share, such as a global scale, is repeated for each layer. With
/// `has_input_rows` the layout is transposed.
///
/// # Errors
/// The errors of [`target`]; [`Error::NoForm`] for a tensor with another name or number of dimensions.
///
/// # Examples
/// ```
/// use truecast_core::{DType, Layout};
/// use truecast_io::Tensor;
/// use truecast_schemes::target_of_experts;
/// let (name, shape) = ("mlp.experts.gate_up_proj".into(), [16, 512, 256].into());
/// let tensor = Tensor { name, dtype: DType::Bf16, layout: Layout::Packed, shape };
/// let (target, layers) = target_of_experts(&tensor, "ct:float-quantized".parse()?, true)?;
/// assert_eq!((&*layers[1].name, &layers[1].shape[..]), ("mlp.experts.0.up_proj.weight", &[128, 512][..]));
/// assert_eq!(&*target.tensors[32].tensor.name, "mlp.experts.0.gate_proj.weight_scale");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn target_of_experts(
    tensor: &Tensor,
    scheme: Scheme,
    has_input_rows: bool,
) -> Result<(Target, Vec<Tensor>), Error> {
    let refused = |why: &str| Error::NoForm {
        tensor: tensor.name.to_string(),
        scheme: Box::new(scheme),
        why: format!("its loaders make a layer of each expert, and {why}"),
    };
    let (around, last) = tensor.name.rsplit_once('.').unwrap_or(("", &tensor.name));
    let Some((_, layers)) = FUSED.iter().find(|(name, _)| *name == last) else {
        return Err(refused("it is not gate_up_proj or down_proj"));
    };
    let [experts, rows, cols] = *tensor.shape else { return Err(refused("it does not have three dimensions")) };
    let [rows, cols] = if has_input_rows { [cols, rows] } else { [rows, cols] };
    let count = layers.len() as u64;
    if !rows.is_multiple_of(count) {
        return Err(refused("its rows do not divide into gate and up"));
    }
    let layer = |name: String, lead: &[u64]| Tensor {
        name: name.into(),
        shape: [lead, &[rows / count, cols]].concat().into(),
        ..tensor.clone()
    };
    let stack = target(&layer(format!("{around}.weight"), &[experts * count]), scheme)?;
    // The targets of the layers differ only in the names.
    let each = (0..experts).flat_map(|expert| layers.iter().map(move |name| (expert, name)));
    let modules: Vec<String> = each.map(|(expert, name)| format!("{around}.{expert}.{name}")).collect();
    let layers: Vec<Tensor> = modules.iter().map(|module| layer(format!("{module}.weight"), &[])).collect();
    let outputs = target(&layers[0], scheme)?.tensors;
    let renamed = |output: &Output, module: &str| {
        let end = output.tensor.name.strip_prefix(&*modules[0]).expect("tensors of a layer have its name in front");
        let tensor = Tensor { name: format!("{module}{end}").into(), ..output.tensor.clone() };
        Output { content: output.content.clone(), tensor }
    };
    let tensors = outputs.iter().flat_map(|output| modules.iter().map(|module| renamed(output, module))).collect();
    Ok((Target { layout: Layout { transposed: has_input_rows, ..stack.layout }, tensors }, layers))
}
