//! Unsupported formats, recognized by names and types of neighboring tensors (`docs/spec/checkpoints.md §4.15`).
//!
//! Matching tensors are rejected, because integers are copied only if they are numbers.

use truecast_core::DType::{self, F8E4M3Fn, F8E5M2, I8, I16, I32, U8, U16, U32};
use truecast_core::Kind;
use truecast_io::Tensor;

use super::claims::Claims;
use crate::checkpoint::Index;
use crate::error::Error;

/// A signature is (name of the format, its readers, last component of the codes' name, types of the codes or none for
/// any type, required neighbors).
type Signature = (&'static str, &'static str, &'static str, &'static [DType], &'static str);

/// Signatures of formats. The first match decides, so formats with more neighbors come first.
const TABLE: &[Signature] = &[
    ("EXL2", "ExLlamaV2 reads it", "q_weight", &[I32], "q_scale q_groups"),
    ("EXL3", "ExLlamaV3 reads it", "trellis", &[I16], "suh svh"),
    ("EXL3", "ExLlamaV3 reads it", "trellis", &[I16], "su sv"),
    ("QTIP", "qtip reads it", "trellis", &[], "SU SV"),
    ("QuIP#", "quip-sharp reads it", "Qidxs", &[], "SU SV"),
    ("HQQ", "hqq and transformers read it", "W_q", &[], "scale zero"),
    ("SINQ", "sinq and transformers read it", "W_q", PACKED, ""),
    ("quanto", "optimum-quanto reads it", "weight._data", &[], "weight._scale"),
    ("AQLM", "aqlm and transformers read it", "codes", &[], "codebooks scales"),
    ("VPTQ", "vptq and transformers read it", "indices", &[], "centroids.weight"),
    ("SpQR", "spqr_quant and transformers read it", "dense_weights", &[], "row_offsets col_vals"),
    ("HIGGS", "transformers with flute-kernel reads it", "weight", &[I16], "scales tables tables2"),
    ("EETQ", "eetq and transformers read it", "weight", &[I8], "weight_scales"),
    ("QQQ", "GPTQModel and vLLM read it", "B", &[I32], "s_channel"),
    ("Marlin", "GPTQModel and vLLM read it", "B", &[I32], "s"),
    ("FP-Quant", "fp_quant and transformers read it", "qweight", &[], "scales forward_hadamard_matrix"),
    ("Nunchaku's SVDQuant", "Nunchaku reads it", "qweight", &[I8], "wscales"),
    ("ParoQuant", "paroquant reads it; its weights are rotated", "qweight", &[], "theta pairs"),
    ("SqueezeLLM", "SqueezeLLM and vLLM read it", "qweight", &[I32], "lookup_table"),
    ("OWQ", "owq reads it", "qweight", &[], "oweight outlieridx"),
    ("TurboMind's format", "LMDeploy reads it", "qweight", &[I32], "scales_zeros"),
    ("AWQ version gemv_fast", "AutoAWQ reads it", "qweight", &[I16], "scales"),
    ("BitBLAS", "GPTQModel reads it", "qweight", &[I8], "scales"),
    ("ModelOpt's format for TensorRT-LLM", "TensorRT-LLM reads it", "weight", PACKED, "weights_scaling_factor"),
    ("SDNQ", "SD.Next reads it", "weight", &[I8, U8, I32, U32], "scale zero_point"),
    ("SDNQ", "SD.Next reads it", "weight", &[I8, U8, I32, U32], "scale svd_up"),
    ("DFloat11", "dfloat11 reads it", "encoded_exponent", &[U8], "sign_mantissa"),
];

const PACKED: &[DType] = &[I8, U8, I16, U16, I32, U32, F8E4M3Fn, F8E5M2];

/// Last components of the names of floats that scale neighboring integer codes.
const SCALES: &str = "scale scales weight_scale weight_scales w_scale wscales q_scale absmax SCB codebook codebooks lut lookup_table scaling_factor";

/// # Errors
/// [`Error::Refused`] for unclaimed codes, with the program that reads them.
pub(super) fn check(claims: &Claims<'_>) -> Result<(), Error> {
    for number in (0..claims.index.len()).filter(|number| !claims.is_claimed(*number)) {
        let tensor = claims.index.tensor(number);
        if let Some((format, why, ..)) = TABLE.iter().find(|signature| fits(signature, &claims.index, tensor)) {
            return Err(refused(tensor, format, why));
        }
    }
    Ok(())
}

/// # Errors
/// [`Error::Refused`] for a matrix of integers with unexplained scales.
pub(super) fn check_rest(claims: &Claims<'_>) -> Result<(), Error> {
    for number in (0..claims.index.len()).filter(|number| !claims.is_claimed(*number)) {
        let tensor = claims.index.tensor(number);
        if let Some(scale) = scale_beside(&claims.index, tensor) {
            let what = format!("a format of {} codes with {}", tensor.dtype, truecast_io::Escaped(&scale));
            return Err(refused(tensor, &what, "no scheme explains it, and codes are not copied as numbers"));
        }
    }
    Ok(())
}

fn refused(tensor: &Tensor, what: &str, why: &'static str) -> Error {
    let place = format!("tensor {}", truecast_io::Escaped(&tensor.name));
    Error::Refused { place, what: what.to_owned(), why }
}

fn fits(signature: &Signature, index: &Index<'_>, tensor: &Tensor) -> bool {
    let (_, _, codes, types, beside) = signature;
    let front = tensor.name.strip_suffix(codes).filter(|front| front.is_empty() || front.ends_with('.'));
    let is_there = |front: &str| beside.split_whitespace().all(|name| index.find(&format!("{front}{name}")).is_some());
    front.is_some_and(|front| (types.is_empty() || types.contains(&tensor.dtype)) && is_there(front))
}

/// Name of a neighboring float that seems to scale the tensor, if this is a matrix of integers.
fn scale_beside(index: &Index<'_>, tensor: &Tensor) -> Option<String> {
    let is_matrix = tensor.shape.iter().filter(|len| **len > 1).count() >= 2;
    let is_code = matches!(tensor.dtype, I8 | U8 | I16 | U16 | I32 | U32) && is_matrix;
    let (front, last) = tensor.name.split_at(tensor.name.rfind('.').map_or(0, |dot| dot + 1));
    let own = ["_scale", "_scales", "_absmax"].map(|end| format!("{front}{last}{end}"));
    let mut names = own.into_iter().chain(SCALES.split_whitespace().map(|name| format!("{front}{name}")));
    let is_float = |name: &String| index.dtype_of(name).is_some_and(|dtype| matches!(dtype.kind(), Kind::Float(_)));
    if is_code && !front.is_empty() { names.find(is_float) } else { None }
}
