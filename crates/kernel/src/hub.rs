//! The types in which values are looked at.

use crate::stage::slot_bytes;
use truecast_core::DType;

/// The type in which values are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hub {
    F32,
    F64,
}

impl Hub {
    pub fn dtype(self) -> DType {
        match self {
            Hub::F32 => DType::F32,
            Hub::F64 => DType::F64,
        }
    }

    pub fn bytes(self) -> usize {
        slot_bytes(self.dtype())
    }
}
