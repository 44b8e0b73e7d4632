//! MLX (§4.12): codes in 32-bit words, with scales and biases, or with scales only.

use truecast_core::DType::{self, Bf16, F4E2M1, F8E4M3Fn, F8E8M0, F16, F32, U8, U32};
use truecast_core::scaled::{Code, Form, Global, GlobalRule, Packing, Part, Plane, Planes};

use crate::error::Error;
use crate::found::Found;
use crate::grid::{Fit, ScaleGrid, Stack};
use crate::scheme::Family;
use crate::table::Name::{Append, Sibling};
use crate::table::{Codes, Described, Entry, Row};

const CODES: Codes = &[(Append(""), &[U32])];
const FLOATS: &[DType] = &[Bf16, F16, F32];
const FLOAT_SCALES: Row = Row::scales(&[Sibling("scales")], FLOATS);
const BYTE_SCALES: Row = Row::scales(&[Sibling("scales")], &[U8]);
const AFFINE: &[Row] = &[FLOAT_SCALES, Row::required(Part::Biases, &[Sibling("biases")], FLOATS)];
const NVFP4: &[Row] = &[BYTE_SCALES, Row::optional(Part::Global, &[Sibling("global_scale")], &[F32])];

pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(Family::MlxAffine, CODES, AFFINE, describe_affine),
    Entry::new(Family::MlxMxfp4, CODES, &[BYTE_SCALES], |found| describe_words(found, F4E2M1, F8E8M0, 32)),
    Entry::new(Family::MlxMxfp8, CODES, &[BYTE_SCALES], |found| describe_words(found, F8E4M3Fn, F8E8M0, 32)),
    Entry::new(Family::MlxNvfp4, CODES, NVFP4, describe_nvfp4),
];

/// Shape in elements, if rows are 32-bit words. A row must hold whole codes.
fn unpacked_stack(found: &Found<'_>, bits: u32) -> Result<Stack, Error> {
    let stored = Stack::of_codes(found, 32)?;
    if !stored.cols.is_multiple_of(bits.into()) {
        return Err(found.bad_shape(format!("rows are not a whole number of {bits}-bit codes")));
    }
    Ok(Stack { cols: stored.cols / u64::from(bits), ..stored })
}

fn describe_affine(found: &Found<'_>) -> Result<Described, Error> {
    let scales = found.scales()?;
    let advice = "config.json states it in quantization";
    let (bits, group) = (found.bits(advice)?, found.group(advice)?);
    let stack = unpacked_stack(found, bits)?;
    let fit = stack.fit_groups(found, scales, group)?;
    let biases = found.part(Part::Biases).ok_or_else(|| found.unknown("biases", "the group has none"))?;
    if biases.shape != scales.shape {
        return Err(found.bad_grid(biases, &stack.shape(), &[scales.shape.to_vec()]));
    }
    if biases.dtype != scales.dtype {
        return Err(found.bad_shape("its scales and biases are of different types"));
    }
    let codes = Plane { code: Code::unsigned(bits as u8), packing: Packing::WORDS };
    let planes = Planes::times(codes, Plane::of(scales.dtype), fit.block);
    Ok(stack.described(fit, Planes { form: Form::Affine, ..planes }))
}

fn describe_words(found: &Found<'_>, code: DType, scale: DType, group: u64) -> Result<Described, Error> {
    let stack = unpacked_stack(found, code.code_bits())?;
    let fit = stack.fit_groups(found, found.scales()?, group)?;
    Ok(stack.times(fit, Plane::of(code).packed(Packing::WORDS), Plane::of(scale)))
}

fn describe_nvfp4(found: &Found<'_>) -> Result<Described, Error> {
    const BLOCK: [u64; 2] = [1, 16];
    let described = describe_words(found, F4E2M1, F8E4M3Fn, BLOCK[1])?;
    let Some(global) = found.part(Part::Global) else { return Ok(described) };
    let stack = unpacked_stack(found, F4E2M1.code_bits())?;
    let whole = stack.fit(found, global, &[ScaleGrid::Tensor])?;
    let codes = Plane::of(F4E2M1).packed(Packing::WORDS);
    let planes = Planes::times(codes, Plane::of(F8E4M3Fn), BLOCK);
    let global = Some(Global { rule: GlobalRule::Amax, block: whole.block });
    Ok(stack.described(Fit { block: BLOCK, is_common: whole.is_common }, Planes { global, ..planes }))
}
