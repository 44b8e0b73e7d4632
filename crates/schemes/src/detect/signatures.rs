//! Unsupported formats, recognized by names and types of neighboring tensors (`docs/spec/checkpoints.md §4.15`).
//!
//! Matching tensors are refused: copying their integers as numbers would be wrong.

use truecast_core::DType::{self, F8E4M3Fn, F8E5M2, I8, I16, I32, U8, U16, U32};
use truecast_core::Kind;
use truecast_io::Tensor;

use super::claims::Claims;
use crate::checkpoint::Index;
use crate::error::Error;

/// Format of tensors that no scheme describes.
struct Signature {
    format: &'static str,
    /// Programs that read the format, as a clause.
    readers: &'static str,
    /// Last component of the codes' name.
    codes: &'static str,
    /// Types of the codes; empty for any type.
    types: &'static [DType],
    /// Last components of the names of required neighbors.
    neighbors: &'static [&'static str],
}

const fn signature(
    format: &'static str,
    readers: &'static str,
    codes: &'static str,
    types: &'static [DType],
    neighbors: &'static [&'static str],
) -> Signature {
    Signature { format, readers, codes, types, neighbors }
}

/// The first match decides, so formats with more neighbors come first.
const SIGNATURES: &[Signature] = &[
    signature("EXL2", "ExLlamaV2 reads it", "q_weight", &[I32], &["q_scale", "q_groups"]),
    signature("EXL3", "ExLlamaV3 reads it", "trellis", &[I16], &["suh", "svh"]),
    signature("EXL3", "ExLlamaV3 reads it", "trellis", &[I16], &["su", "sv"]),
    signature("QTIP", "qtip reads it", "trellis", &[], &["SU", "SV"]),
    signature("QuIP#", "quip-sharp reads it", "Qidxs", &[], &["SU", "SV"]),
    signature("HQQ", "hqq and transformers read it", "W_q", &[], &["scale", "zero"]),
    signature("SINQ", "sinq and transformers read it", "W_q", PACKED, &[]),
    signature("quanto", "optimum-quanto reads it", "weight._data", &[], &["weight._scale"]),
    signature("AQLM", "aqlm and transformers read it", "codes", &[], &["codebooks", "scales"]),
    signature("VPTQ", "vptq and transformers read it", "indices", &[], &["centroids.weight"]),
    signature("SpQR", "spqr_quant and transformers read it", "dense_weights", &[], &["row_offsets", "col_vals"]),
    signature("HIGGS", "transformers with flute-kernel reads it", "weight", &[I16], &["scales", "tables", "tables2"]),
    signature("EETQ", "eetq and transformers read it", "weight", &[I8], &["weight_scales"]),
    signature("QQQ", "GPTQModel and vLLM read it", "B", &[I32], &["s_channel"]),
    signature("Marlin", "GPTQModel and vLLM read it", "B", &[I32], &["s"]),
    signature("FP-Quant", "fp_quant and transformers read it", "qweight", &[], &["scales", "forward_hadamard_matrix"]),
    signature("Nunchaku's SVDQuant", "Nunchaku reads it", "qweight", &[I8], &["wscales"]),
    signature("ParoQuant", "paroquant reads it; its weights are rotated", "qweight", &[], &["theta", "pairs"]),
    signature("SqueezeLLM", "SqueezeLLM and vLLM read it", "qweight", &[I32], &["lookup_table"]),
    signature("OWQ", "owq reads it", "qweight", &[], &["oweight", "outlieridx"]),
    signature("TurboMind's format", "LMDeploy reads it", "qweight", &[I32], &["scales_zeros"]),
    signature("AWQ version gemv_fast", "AutoAWQ reads it", "qweight", &[I16], &["scales"]),
    signature("BitBLAS", "GPTQModel reads it", "qweight", &[I8], &["scales"]),
    signature(
        "ModelOpt's format for TensorRT-LLM",
        "TensorRT-LLM reads it",
        "weight",
        PACKED,
        &["weights_scaling_factor"],
    ),
    signature("SDNQ", "SD.Next reads it", "weight", &[I8, U8, I32, U32], &["scale", "zero_point"]),
    signature("SDNQ", "SD.Next reads it", "weight", &[I8, U8, I32, U32], &["scale", "svd_up"]),
    signature("DFloat11", "dfloat11 reads it", "encoded_exponent", &[U8], &["sign_mantissa"]),
];

const PACKED: &[DType] = &[I8, U8, I16, U16, I32, U32, F8E4M3Fn, F8E5M2];

/// Last components of the names of floats that scale neighboring integer codes.
const SCALES: &[&str] = &[
    "scale", "scales", "weight_scale", "weight_scales", "w_scale", "wscales", "q_scale", "absmax", "SCB", "codebook",
    "codebooks", "lut", "lookup_table", "scaling_factor",
];

/// Refuses unclaimed tensors that match a known format.
///
/// # Errors
/// [`Error::Refused`], with the programs that read the format.
pub(super) fn refuse_known(claims: &Claims<'_>) -> Result<(), Error> {
    for index in (0..claims.index.len()).filter(|index| !claims.is_claimed(*index)) {
        let tensor = claims.index.tensor(index);
        if let Some(known) = SIGNATURES.iter().find(|signature| signature.fits(&claims.index, tensor)) {
            return Err(refused(tensor, known.format, known.readers));
        }
    }
    Ok(())
}

/// Refuses other matrices of integers that have a scale.
///
/// # Errors
/// [`Error::Refused`] for such a matrix.
pub(super) fn refuse_unexplained(claims: &Claims<'_>) -> Result<(), Error> {
    for index in (0..claims.index.len()).filter(|index| !claims.is_claimed(*index)) {
        let tensor = claims.index.tensor(index);
        if let Some(scale) = neighboring_scale(&claims.index, tensor) {
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

impl Signature {
    fn fits(&self, index: &Index<'_>, tensor: &Tensor) -> bool {
        let prefix = tensor.name.strip_suffix(self.codes).filter(|prefix| prefix.is_empty() || prefix.ends_with('.'));
        let is_there = |prefix: &str, name: &str| index.find(&format!("{prefix}{name}")).is_some();
        let is_type = self.types.is_empty() || self.types.contains(&tensor.dtype);
        prefix.is_some_and(|prefix| is_type && self.neighbors.iter().all(|name| is_there(prefix, name)))
    }
}

/// Name of a neighboring float that seems to scale the tensor, if this is a matrix of integers.
fn neighboring_scale(index: &Index<'_>, tensor: &Tensor) -> Option<String> {
    let is_matrix = tensor.shape.iter().filter(|len| **len > 1).count() >= 2;
    let is_code = matches!(tensor.dtype, I8 | U8 | I16 | U16 | I32 | U32) && is_matrix;
    let (prefix, last) = tensor.name.split_at(tensor.name.rfind('.').map_or(0, |dot| dot + 1));
    let own = ["_scale", "_scales", "_absmax"].map(|end| format!("{prefix}{last}{end}"));
    let mut names = own.into_iter().chain(SCALES.iter().map(|name| format!("{prefix}{name}")));
    let is_float = |name: &String| index.dtype_of(name).is_some_and(|dtype| matches!(dtype.kind(), Kind::Float(_)));
    if is_code { names.find(is_float) } else { None }
}
