//! NVIDIA ModelOpt (§4.5).

use truecast_core::DType::{self, Bf16, F4E2M1, F8E4M3Fn, F8E8M0, F16, F32, I8, U8};
use truecast_core::scaled::{Code, Global, GlobalRule, Packing, Part, Plane, Planes};

use super::fp8::{MX_FP8, mx, mx_of};
use crate::error::Error;
use crate::found::Found;
use crate::grid::{Fit, ScaleGrid, Stack, scale_plane, shared};
use crate::scheme::Family;
use crate::table::Name::{self, Append, Sibling};
use crate::table::{Codes, Described, Entry, Row};

/// Suffixes after a module's weight, and after fused experts.
const SCALE: &[Name] = &[Append("_scale"), Append("_weight_scale")];
const SCALE_2: &[Name] = &[Append("_scale_2"), Append("_weight_scale_2")];
const FLOATS: &[DType] = &[F32, Bf16, F16];
/// Factor of the activation. The stored weight is the model's weight only if all factors are 1.
const FACTOR: Row = Row::factor(&[Sibling("pre_quant_scale")], FLOATS);

const SCALED: &[Row] = &[Row::scales(SCALE, FLOATS), FACTOR];
const MX_SCALES: &[Row] = &[Row::scales(SCALE, &[U8, F8E8M0])];
const NVFP4: &[Row] = &[
    Row::scales(SCALE, &[F8E4M3Fn]),
    Row::required(Part::Global, SCALE_2, &[F32]),
    FACTOR,
    Row::factor(&[Sibling("svdquant_lora_a")], FLOATS),
    Row::factor(&[Sibling("svdquant_lora_b")], FLOATS),
];
const E4M3: Codes = &[(Append(""), &[F8E4M3Fn])];
/// E4M3 codes. Old exports store the same bits as I8.
const E4M3_OR_I8: Codes = &[(Append(""), &[F8E4M3Fn, I8])];
const BYTES: Codes = &[(Append(""), &[U8])];

pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(Family::ModelOptFp8, E4M3_OR_I8, SCALED, |found| shared(found, FP8, &[ScaleGrid::Tensor])),
    Entry::new(Family::ModelOptFp8PerChannel, E4M3, SCALED, |found| shared(found, FP8, &[ScaleGrid::Channel])),
    Entry::new(Family::ModelOptFp8Blocks, E4M3, SCALED, |found| {
        shared(found, FP8, &[ScaleGrid::Spread(found.parameters().block.unwrap_or([128, 128]))])
    }),
    Entry::new(Family::ModelOptInt8, &[(Append(""), &[I8])], SCALED, |found| {
        shared(found, INT8, &[ScaleGrid::Channel])
    }),
    Entry::new(Family::ModelOptNvfp4, BYTES, NVFP4, nvfp4),
    Entry::new(Family::ModelOptNvfp4Weights, BYTES, NVFP4, nvfp4),
    Entry::new(Family::ModelOptNvfp4Awq, BYTES, NVFP4, nvfp4),
    Entry::new(Family::ModelOptNvfp4Svd, BYTES, NVFP4, nvfp4),
    Entry::new(Family::ModelOptNvfp4Fp8, BYTES, NVFP4, nvfp4),
    Entry::new(Family::ModelOptMxfp8, E4M3, MX_SCALES, mx).written(MX_FP8),
    Entry::new(Family::ModelOptMxfp4, BYTES, MX_SCALES, |found| mx_of(found, &Stack::of_codes(found, 2)?, F4E2M1)),
    Entry::new(Family::ModelOptAwq, BYTES, SCALED, awq),
];

const FP8: Plane = Plane::of(F8E4M3Fn);
const INT8: Plane = Plane { code: Code::signed(8), packing: Packing::BYTES };

fn nvfp4(found: &Found<'_>) -> Result<Described, Error> {
    let stack = Stack::of_codes(found, 2)?;
    let fit = stack.fit_groups(found, found.scales()?, 16)?;
    let global = found.part(Part::Global).ok_or_else(|| found.unknown("the global scale", "the group has none"))?;
    // Fused experts may have two global scales, for gate and for up; each applies to half of the rows.
    let halves = ScaleGrid::Block([stack.rows.div_ceil(2).max(1), stack.cols.max(1)]);
    let is_halved = !stack.lead.is_empty() && stack.rows.is_multiple_of(2) && global.shape.last() == Some(&2);
    let whole = if is_halved && global.shape.len() == stack.lead.len() + 1 {
        let column = truecast_io::Tensor { shape: [&global.shape[..], &[1]].concat().into(), ..global.clone() };
        stack.fit(found, &column, &[halves])?
    } else {
        stack.fit(found, global, &[ScaleGrid::Tensor])?
    };
    let planes = Planes::times(Plane::of(F4E2M1), FP8, fit.block);
    let global = Global { rule: GlobalRule::Times, block: whole.block };
    Ok(stack.described(Fit { is_common: whole.is_common, ..fit }, Planes { global: Some(global), ..planes }))
}

/// Describes AWQ, where a byte holds the codes of two rows.
fn awq(found: &Found<'_>) -> Result<Described, Error> {
    let stored = Stack::of_codes(found, 1)?;
    let (stack, scales) = (Stack { rows: found.product(stored.rows, 2)?, ..stored }, found.scales()?);
    let advice = "a configuration states it as group_size";
    let fit = stack.fit_groups(found, scales, found.group(advice)?)?;
    let codes = Plane { code: Code::signed(4), packing: Packing::Columns { word: 8 } };
    Ok(stack.times(fit, codes, scale_plane(scales.dtype)))
}
