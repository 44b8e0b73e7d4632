//! Plan of one tensor.

use crate::files::error::Error;
use crate::files::select::{Choice, KeptBy};
use crate::files::stream::Item;
use crate::request::Request;
use std::path::Path;
use std::sync::Arc;
use truecast_core::spec::SpecError;
use truecast_core::text::max_len;
use truecast_core::{CastSpec, DType, Layout};
use truecast_io::{FileFormat, Tensor, layout_for};

/// Types, layouts and cast of one tensor.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Its name in the source.
    pub name: Arc<str>,
    /// The output tensor.
    pub target: Tensor,
    /// The type that its payload is read as.
    pub from: DType,
    /// Layout in the source.
    pub src_layout: Layout,
    /// `None` copies the bytes.
    pub cast: Option<CastSpec>,
    /// Reason why a preset kept it.
    pub kept_by: Option<KeptBy>,
}

impl Planned {
    /// Combines the chosen type with the container's layout for it.
    pub(crate) fn new(
        tensor: &Tensor,
        choice: Choice,
        kind: FileFormat,
        path: &Path,
        request: &Request,
    ) -> Result<Planned, Error> {
        let Choice { from, to, kept_by } = choice;
        // In a model an unchanged type means unchanged bytes.
        let to = to.filter(|&to| kind != FileFormat::Onnx || to != from);
        let cast = to.map(|to| request.resolve(from, to)).transpose();
        let cast = cast.map_err(|cause| Error::tensor(path, &tensor.name, cause))?;
        if let Some(cast) = cast.filter(|cast| kind == FileFormat::Onnx && cast.policy.scale_exponent != 0) {
            let cause = SpecError::Attribute {
                spec: request.to_string(),
                name: "scale-exponent",
                why: "a model would compute with the scaled weights; convert arrays or a checkpoint".into(),
                clause: cast.clause,
            };
            return Err(Error::tensor(path, &tensor.name, cause));
        }
        let dtype = to.unwrap_or(from);
        let layout = layout_for(kind, dtype).map_err(|cause| Error::tensor(path, &tensor.name, cause))?;
        let layout = match (dtype, from) {
            (DType::String, DType::String) => tensor.layout,
            // An upper bound, until the longest text is known.
            (DType::String, _) => Layout::Utf32 { width: max_len(from, request.text) as u32 },
            _ => layout,
        };
        // A copy to another layout of narrow elements is a cast to the same type.
        let relaid = cast.is_none() && from.bits_in(layout) != from.bits_in(tensor.layout);
        let cast = if relaid { Some(CastSpec::copy(from)) } else { cast };
        let target = Tensor { name: tensor.name.clone(), dtype, layout, shape: tensor.shape.clone() };
        Ok(Planned { name: tensor.name.clone(), target, from, src_layout: tensor.layout, cast, kept_by })
    }

    /// Description for the stream.
    pub(crate) fn item(&self, index: usize) -> Item {
        let bits = |dtype: DType, layout| dtype.bits_in(layout).expect("a container's layout fits its type");
        let (src_bits, dst_bits) = (bits(self.from, self.src_layout), bits(self.target.dtype, self.target.layout));
        Item::new(index, self.target.len(), src_bits, dst_bits)
    }
}
