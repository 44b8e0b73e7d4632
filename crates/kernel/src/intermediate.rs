//! Types for measuring values.

use crate::stage::slot_bytes;
use truecast_core::DType;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intermediate {
    F32,
    F64,
}

impl Intermediate {
    pub fn dtype(self) -> DType {
        match self {
            Intermediate::F32 => DType::F32,
            Intermediate::F64 => DType::F64,
        }
    }

    pub fn bytes(self) -> usize {
        slot_bytes(self.dtype())
    }
}
