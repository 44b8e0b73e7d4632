//! What happens to the elements of a tensor, chunk by chunk.

use crate::files::convert::planned::Planned;
use crate::files::error::Cause;
use truecast_core::DType;
use truecast_kernel::measure::Measure;
use truecast_kernel::text::{CellCaster, is_text};
use truecast_kernel::{CastError, CastOptions, Caster, Counts, Elements, ElementsMut, PlanError};

/// What happens to elements, whatever tensor they belong to.
pub(crate) enum Action {
    Cast(Box<Caster>),
    /// From text or to it.
    Text(Box<CellCaster>),
    /// Bytes are kept; numbers are still looked at.
    Copy(Option<Box<Measure>>),
}

impl Action {
    pub fn new(tensor: &Planned, exec: &CastOptions) -> Result<Self, PlanError> {
        Ok(match &tensor.cast {
            Some(cast) if is_text(cast) => Action::Text(Box::new(CellCaster::new(cast, exec)?)),
            Some(cast) if cast.dst != DType::String => Action::Cast(Box::new(Caster::new(cast, exec)?)),
            _ => {
                let between = || Box::new(Measure::between(tensor.from, tensor.from, exec));
                Action::Copy(tensor.from.is_numeric().then(between))
            }
        })
    }

    /// Does it to a chunk of a tensor. Counts in parts, to be added in order.
    pub fn run(
        &self,
        tensor: &Planned,
        first: u64,
        len: usize,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<Vec<Counts>, Cause> {
        let Planned { target, from, src_layout, .. } = tensor;
        let codes = Elements::with_layout(*from, *src_layout, len, src)?;
        let room = |dst| ElementsMut::with_layout(target.dtype, target.layout, len, dst);
        match self {
            Action::Cast(caster) => {
                Ok(caster.cast_parts(codes, room(dst)?).map_err(|error| from_element(error, first))?)
            }
            Action::Text(caster) => {
                let block = tensor.item(0).unit as usize;
                Ok(caster.cast_parts(codes, room(dst)?, block).map_err(|error| error.after(first))?)
            }
            Action::Copy(measure) => {
                dst.copy_from_slice(src);
                // What cannot be measured is not left out of the measures.
                let copied = || vec![Counts { finite_pairs: len as u64, ..Counts::copied(len as u64) }];
                Ok(measure.as_ref().map_or_else(copied, |measure| measure.compare(codes, codes)))
            }
        }
    }
}

/// An element's index in its tensor, from that in a chunk.
fn from_element(error: CastError, first: u64) -> CastError {
    match error {
        CastError::Value { index, condition, src, dst, code } => {
            CastError::Value { index: index + first as usize, condition, src, dst, code }
        }
        other => other,
    }
}
