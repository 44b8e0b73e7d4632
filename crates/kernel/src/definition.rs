//! The definition as a stage, and from storage element to storage element.

use crate::stage::{Refusal, Stage, slot_bytes};
use truecast_core::policy::Condition;
use truecast_core::{CastSpec, Outcome, cast_one};

/// The definition, one element at a time: right for every pair and policy.
#[derive(Debug)]
pub(crate) struct Scalar(pub CastSpec);

impl Stage for Scalar {
    fn widths(&self) -> (usize, usize) {
        (slot_bytes(self.0.src), slot_bytes(self.0.dst))
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        let (src_bytes, dst_bytes) = self.widths();
        for (index, (s, d)) in src.chunks_exact(src_bytes).zip(dst.chunks_exact_mut(dst_bytes)).enumerate() {
            let mut wide = [0; 8];
            wide[..src_bytes].copy_from_slice(s);
            let result = scalar(&self.0, u64::from_le_bytes(wide)).map_err(|condition| Refusal { index, condition })?;
            d.copy_from_slice(&result.to_le_bytes()[..dst_bytes]);
        }
        Ok(())
    }
}

/// The definition from storage element to storage element.
pub(crate) fn scalar(spec: &CastSpec, storage: u64) -> Result<u64, Condition> {
    match cast_one(spec, spec.src.code_of_storage(storage)) {
        Outcome::Defined(code) | Outcome::Undefined { code, .. } => Ok(spec.dst.storage_of_code(code)),
        Outcome::Refused { condition } => Err(condition),
    }
}
