//! Target of a tensor in a writable scheme: tensors to write, and their layout (`docs/spec/checkpoints.md §7`). Names
//! come from [`crate::catalogue`]; other crates compute the codes.

mod experts;
mod forms;
mod gguf;

use truecast_core::Kind;
use truecast_core::scaled::{Layout, Part};
use truecast_io::Tensor;

use crate::catalogue;
use crate::error::Error;
use crate::found::Piece;
use crate::grid::Stack;
use crate::scheme::{Family, Scheme, Writing};
use crate::table::{Entry, Name};
pub use experts::target_of_experts;
use forms::StoredForm;

/// Tensors that represent one tensor in a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Layout of the tensors.
    pub layout: Layout,
    /// Tensors to write; the codes come first.
    pub tensors: Vec<Output>,
}

/// An output tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Content of the tensor.
    pub content: Content,
    /// Name, type and shape.
    pub tensor: Tensor,
}

/// Content of an output tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A part of the layout.
    Part(Part),
    /// Fixed bytes, independent of the values.
    Bytes(Vec<u8>),
}

/// Makes the target of an unquantized tensor in a scheme.
///
/// Source: `docs/spec/checkpoints.md §5.6`, last paragraph, and §7.
///
/// # Errors
/// [`Error::NotWritten`] for a scheme that is not written from unquantized tensors. [`Error::NoForm`] for a tensor that
/// is not a float of at least 16 bits, or whose shape does not fit the scheme.
///
/// # Examples
/// ```
/// use truecast_core::{DType, Layout};
/// use truecast_io::Tensor;
/// use truecast_schemes::target;
/// let tensor = Tensor { name: "a.weight".into(), dtype: DType::Bf16, layout: Layout::Packed, shape: [576, 256].into() };
/// let target = target(&tensor, "fp8-block".parse()?)?;
/// let names: Vec<_> = target.tensors.iter().map(|output| (&*output.tensor.name, &output.tensor.shape[..])).collect();
/// assert_eq!(names, [("a.weight", &[576, 256][..]), ("a.weight_scale_inv", &[5, 2])]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn target(tensor: &Tensor, scheme: Scheme) -> Result<Target, Error> {
    match scheme.family.writing() {
        Writing::Yes | Writing::Gguf => target_of(tensor, scheme),
        writing => Err(Error::NotWritten { scheme: Box::new(scheme), relayout: writing == Writing::Relayout }),
    }
}

/// Makes the target of a quantized tensor whose values do not change (relayout). Also returns the scheme with all
/// parameters.
///
/// Accepts also schemes that are written only by relayout. `tensor` is the dequantized tensor. `source` is its stored
/// layout, which gives unspecified parameters.
///
/// Source: `docs/spec/checkpoints.md §8`.
///
/// # Errors
/// The errors of [`target`].
pub fn target_of_layout(tensor: &Tensor, scheme: Scheme, source: &Layout) -> Result<(Target, Scheme), Error> {
    if scheme.family.writing() == Writing::Never {
        return Err(Error::NotWritten { scheme: Box::new(scheme), relayout: false });
    }
    let scheme = scheme.as_stored(source);
    Ok((target_of(tensor, scheme)?, scheme))
}

fn target_of(tensor: &Tensor, scheme: Scheme) -> Result<Target, Error> {
    let refused = |why: String| Error::NoForm { tensor: tensor.name.to_string(), scheme: Box::new(scheme), why };
    let is_wide = matches!(tensor.dtype.kind(), Kind::Float(_)) && tensor.dtype.storage_bits().is_some_and(|b| b >= 16);
    if !is_wide {
        return Err(refused(format!("its elements are {}", tensor.dtype)));
    }
    let Some(stack) = Stack::of(&tensor.shape) else {
        return Err(refused("it has fewer than two dimensions".to_owned()));
    };
    if tensor.shape.contains(&0) {
        return Err(refused("it has no elements".to_owned()));
    }
    match scheme.family {
        Family::Gguf(block) => return gguf::target(tensor, block).map_err(refused),
        Family::Mixture(mixture) => return gguf::target(tensor, mixture.base()).map_err(refused),
        _ => {}
    }
    if scheme.family.name().starts_with("comfy:") {
        // A ComfyUI marker declares the scheme of a matrix named `P.weight` only (§4.6.2).
        if !tensor.name.ends_with(".weight") {
            return Err(refused(
                "its name does not end in .weight, so no marker could declare that it is quantized".to_owned(),
            ));
        }
        if !stack.lead.is_empty() {
            return Err(refused("it has more than two dimensions".to_owned()));
        }
    }
    let Some(form) = StoredForm::new(scheme, &tensor.name, stack).map_err(refused)? else {
        return Err(Error::NotWritten { scheme: Box::new(scheme), relayout: false });
    };
    form.layout.check().map_err(|cause| refused(cause.to_string()))?;
    let entry = catalogue::entry(scheme.family).expect("schemes that are written have an entry");
    let mut tensors = Vec::new();
    for part in Part::ALL {
        let Some((dtype, shape)) = form.stored(part) else { continue };
        let name = name_of(entry, part, &tensor.name)
            .ok_or_else(|| refused("its name is not the name of a weight".to_owned()))?;
        let bytes = form.layout.part_bytes(part).map_err(|cause| refused(cause.to_string()))?;
        let stored = Tensor { name: name.into(), dtype, layout: truecast_core::Layout::Packed, shape: shape.into() };
        if bytes != Some(stored.bytes()) {
            return Err(refused(format!("{} of {:?}", part.name(), stored.shape)));
        }
        tensors.push(Output { content: Content::Part(part), tensor: stored });
    }
    tensors.extend(forms::constants(scheme, &tensor.name, &tensor.shape));
    Ok(Target { layout: form.layout, tensors })
}

fn name_of(entry: &Entry, part: Part, name: &str) -> Option<String> {
    let is_weight = name == "weight" || name.ends_with(".weight");
    if part == Part::Codes {
        return entry.codes.first()?.0.stored(name);
    }
    let row = entry.rows.iter().find(|row| row.piece == Piece::Part(part))?;
    // Scales of fused experts have names such as `gate_up_proj_weight_scale`.
    let fused = row.names.iter().find(|rule| matches!(rule, Name::Append(end) if end.starts_with("_weight")));
    let rule = if is_weight { row.names.first() } else { fused.or(row.names.first()) };
    rule?.stored(name)
}
