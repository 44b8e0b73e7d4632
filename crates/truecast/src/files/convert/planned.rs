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

#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub name: Arc<str>,
    pub target: Tensor,
    /// Type as which the source bytes are read.
    pub from: DType,
    pub src_layout: Layout,
    pub cast: Option<CastSpec>,
    /// Reason why a preset kept the type.
    pub kept_by: Option<KeptBy>,
}

impl Planned {
    /// Combines the chosen type with the container's layout of that type.
    pub(crate) fn new(
        tensor: &Tensor,
        choice: Choice,
        kind: FileFormat,
        path: &Path,
        request: &Request,
    ) -> Result<Planned, Error> {
        let Choice { from, to, kept_by } = choice;
        // In a model, a tensor of unchanged type has unchanged bytes.
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
            // Width of the longest possible text, until the texts are read.
            (DType::String, _) => Layout::Utf32 { width: max_len(from, request.text) as u32 },
            _ => layout,
        };
        // A copy to another layout is a cast to the same type.
        let relaid = cast.is_none() && from.bits_in(layout) != from.bits_in(tensor.layout);
        let cast = if relaid { Some(CastSpec::copy(from)) } else { cast };
        let target = Tensor { name: tensor.name.clone(), dtype, layout, shape: tensor.shape.clone() };
        Ok(Planned { name: tensor.name.clone(), target, from, src_layout: tensor.layout, cast, kept_by })
    }

    pub(crate) fn item(&self, index: usize) -> Item {
        let bits = |dtype: DType, layout| dtype.bits_in(layout).expect("a container's layout fits its type");
        let (src_bits, dst_bits) = (bits(self.from, self.src_layout), bits(self.target.dtype, self.target.layout));
        Item::new(index, self.target.len(), src_bits, dst_bits)
    }
}
