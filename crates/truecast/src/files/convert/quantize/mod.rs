//! Quantization of tensors: selection (`choice`, `sharing`), output tensors (`scaled`), codes and scales (`quantizer`),
//! errors (`error_meter`).

pub(crate) mod activations;
pub(crate) mod amax;
pub(crate) mod choice;
pub(crate) mod code;
pub(crate) mod error_meter;
pub(crate) mod flat;
pub(crate) mod importance;
pub(crate) mod input;
pub(crate) mod quantizer;
pub(crate) mod scaled;
mod sharing;
