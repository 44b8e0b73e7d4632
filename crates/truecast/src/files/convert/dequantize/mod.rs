//! Values of quantized tensors. They are computed piece by piece (`dequantizer`), read from any tensor (`values`), and
//! compared with an unquantized checkpoint (`reference`).

pub(crate) mod dequantizer;
pub(crate) mod reference;
pub(crate) mod values;
