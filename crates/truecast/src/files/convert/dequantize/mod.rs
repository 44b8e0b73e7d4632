//! The values of quantized tensors: of a piece (`dequantizer`), of any tensor of a source (`values`), beside those of a dense
//! checkpoint (`reference`).

pub(crate) mod dequantizer;
pub(crate) mod reference;
pub(crate) mod values;
