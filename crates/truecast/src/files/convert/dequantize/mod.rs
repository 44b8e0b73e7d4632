//! Values of quantized tensors: by piece (`dequantizer`), for any tensor of a source (`values`), compared with an
//! unquantized checkpoint (`reference`).

pub(crate) mod dequantizer;
pub(crate) mod reference;
pub(crate) mod values;
