//! ComfyUI: scaled FP8 (§4.6.1) and the formats of layer markers (§4.6.2).

use truecast_core::DType::{self, Bf16, F4E2M1, F8E4M3Fn, F8E5M2, F8E8M0, F16, F32, I8, U8};
use truecast_core::scaled::{Code, Global, GlobalRule, Packing, Part, Plane, Planes};
use truecast_io::Tensor;

use super::fp8::MX_GROUP;
use crate::error::Error;
use crate::found::{Found, Nibbles};
use crate::grid::{Fit, ScaleGrid, Stack, scale_plane, shared};
use crate::scheme::{Family, Strategy};
use crate::table::Name::{self, Append, Sibling};
use crate::table::{Codes, Described, Entry, Row};

/// Last name component of a tensor that marks scaled FP8.
pub(crate) const SCALED_FP8_MARKER: &str = "scaled_fp8";

const SCALE: &[Name] = &[Append("_scale")];
const FLOATS: &[DType] = &[F32, Bf16, F16];
const FLOAT_SCALES: &[Row] = &[Row::scales(SCALE, FLOATS)];
const FP8: Codes = &[(Append(""), &[F8E4M3Fn])];
const INT8_CODES: Codes = &[(Append(""), &[I8])];
const NVFP4: &[Row] =
    &[Row::scales(SCALE, &[F8E4M3Fn, U8]), Row::required(Part::Global, &[Append("_scale_2")], &[F32])];

pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(
        Family::ComfyScaledFp8,
        &[(Append(""), &[F8E4M3Fn, F8E5M2])],
        &[Row::scales(&[Sibling("scale_weight")], FLOATS)],
        scaled_fp8,
    ),
    Entry::new(Family::ComfyFp8E4M3, &[(Append(""), &[F8E4M3Fn, U8])], FLOAT_SCALES, |found| {
        shared(found, Plane::of(F8E4M3Fn), &[ScaleGrid::Tensor])
    }),
    Entry::new(Family::ComfyFp8E5M2, &[(Append(""), &[F8E5M2, U8])], FLOAT_SCALES, |found| {
        shared(found, Plane::of(F8E5M2), &[ScaleGrid::Tensor])
    }),
    Entry::new(Family::ComfyFp8Rows, FP8, FLOAT_SCALES, |found| {
        shared(found, Plane::of(F8E4M3Fn), &[ScaleGrid::Channel])
    }),
    Entry::new(Family::ComfyFp8Blocks, FP8, FLOAT_SCALES, |found| squares(found, Plane::of(F8E4M3Fn))),
    Entry::new(Family::ComfyInt8, INT8_CODES, FLOAT_SCALES, |found| match found.parameters().strategy {
        Some(Strategy::Channel) => shared(found, INT8, &[ScaleGrid::Channel]),
        _ => shared(found, INT8, &[ScaleGrid::Tensor, ScaleGrid::Channel]),
    }),
    Entry::new(Family::ComfyInt8Blocks, INT8_CODES, FLOAT_SCALES, |found| squares(found, INT8)),
    Entry::new(Family::ComfyNvfp4, &[(Append(""), &[U8])], NVFP4, nvfp4),
    Entry::new(Family::ComfyMxfp8, FP8, &[Row::scales(SCALE, &[U8, F8E8M0])], mxfp8),
];

const INT8: Plane = Plane { code: Code::signed(8), packing: Packing::BYTES };

/// Describes codes in square blocks. The marker's group size is the side of a block.
fn squares(found: &Found<'_>, codes: Plane) -> Result<Described, Error> {
    let side = found.parameters().group.ok_or_else(|| found.unknown("the block", "its marker has no group_size"))?;
    shared(found, codes, &[ScaleGrid::Block([side, side])])
}

/// Describes scaled FP8: one scale per tensor or per row; if the scales have three dimensions, one per group in a
/// row.
fn scaled_fp8(found: &Found<'_>) -> Result<Described, Error> {
    let (stack, scales) = (Stack::of_codes(found, 1)?, found.scales()?);
    let codes = Plane::of(found.codes().dtype);
    match &*scales.shape {
        [rows, groups, 1] if *rows == stack.rows && *groups != 0 && stack.cols.is_multiple_of(*groups) => {
            let fit = Fit { block: [1, (stack.cols / groups).max(1)], is_common: false };
            Ok(stack.times(fit, codes, scale_plane(scales.dtype)))
        }
        _ => shared(found, codes, &[ScaleGrid::Tensor, ScaleGrid::Channel]),
    }
}

/// Shape without padding: the reference tensor's, else the stored shape.
fn kept(found: &Found<'_>, stack: &Stack) -> Result<[u64; 2], Error> {
    match found.reference.as_deref() {
        None => Ok([stack.rows, stack.cols]),
        Some(&[rows, cols]) if rows <= stack.rows && cols <= stack.cols => Ok([rows, cols]),
        Some(shape) => {
            Err(found.bad_shape(format!("the reference has {shape:?}, which does not fit in {:?}", stack.shape())))
        }
    }
}

/// Checks the shape of scales in tiles of 128 rows and 4 columns (§3.8).
fn check_tiles(found: &Found<'_>, stack: &Stack, scales: &Tensor, group: u64) -> Result<Fit, Error> {
    let (rows, cols) = (stack.rows.div_ceil(128) * 128, stack.cols.div_ceil(group).div_ceil(4) * 4);
    let shapes = [vec![rows, cols], vec![rows * cols]];
    if !stack.lead.is_empty() || !shapes.iter().any(|shape| **shape == *scales.shape) {
        return Err(found.bad_grid(scales, &stack.shape(), &shapes));
    }
    stack.check_groups(found, group)?;
    Ok(Fit { block: [1, group], is_common: false })
}

fn padded(found: &Found<'_>, stack: &Stack, fit: Fit, planes: Planes) -> Result<Described, Error> {
    let mut described = stack.described(fit, planes);
    described.layout.kept = kept(found, stack)?;
    described.shape = described.layout.kept.to_vec();
    Ok(described)
}

fn nvfp4(found: &Found<'_>) -> Result<Described, Error> {
    let (stack, scales) = (Stack::of_codes(found, 2)?, found.scales()?);
    let fit = check_tiles(found, &stack, scales, 16)?;
    let global = found.part(Part::Global).ok_or_else(|| found.unknown("the global scale", "the group has none"))?;
    let whole = stack.fit(found, global, &[ScaleGrid::Tensor])?;
    let packing = match found.nibbles {
        Nibbles::Low => Packing::BYTES,
        Nibbles::High => Packing::HighFirst,
    };
    let (codes, scales) = (Plane::of(F4E2M1).packed(packing), Plane::of(F8E4M3Fn).packed(Packing::Swizzled));
    let global = Some(Global { rule: GlobalRule::Times, block: whole.block });
    padded(found, &stack, fit, Planes { global, ..Planes::times(codes, scales, fit.block) })
}

fn mxfp8(found: &Found<'_>) -> Result<Described, Error> {
    let (stack, scales) = (Stack::of_codes(found, 1)?, found.scales()?);
    let fit = check_tiles(found, &stack, scales, MX_GROUP)?;
    let scales = Plane::of(F8E8M0).packed(Packing::Swizzled);
    padded(found, &stack, fit, Planes::times(Plane::of(F8E4M3Fn), scales, fit.block))
}
