//! Values of quantized tensors: piece by piece (`dequantizer`), for any tensor (`values`), compared with an unquantized
//! checkpoint (`reference`).

pub(crate) mod dequantizer;
pub(crate) mod reference;
pub(crate) mod values;
