//! E4M3 codes with scales per block, tensor or row: DeepSeek (§4.1), `mxfp8` (§4.8), Mistral (§4.13), FBGEMM (§4.14).

use truecast_core::DType::{self, Bf16, F8E4M3Fn, F8E8M0, F16, F32, U8};
use truecast_core::scaled::{Plane, Planes};

use crate::declared::known;
use crate::error::Error;
use crate::found::Found;
use crate::grid::{ScaleGrid, Stack, in_groups, shared};
use crate::scheme::Family;
use crate::table::Name::{self, Append, Sibling};
use crate::table::{Codes, Described, Entry, Row, Written};

const WEIGHT: Codes = &[(Append(""), &[F8E4M3Fn])];
const SCALE: &[Name] = &[Append("_scale_inv"), Append("_scale")];
const FLOATS: &[DType] = &[F32, Bf16, F16];
const CHANNEL: &[Row] = &[Row::scales(&[Append("_scale"), Append("_scale_inv")], FLOATS)];

pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(Family::Fp8Block, WEIGHT, &[Row::scales(SCALE, &[F32, Bf16, F16, F8E8M0, U8])], blocks),
    Entry::new(Family::Fp8Tensor, WEIGHT, &[Row::scales(SCALE, FLOATS)], |found| {
        shared(found, E4M3, &[ScaleGrid::Tensor, ScaleGrid::Channel])
    }),
    Entry::new(Family::Fp8Channel, WEIGHT, CHANNEL, |found| shared(found, E4M3, &[ScaleGrid::Channel])),
    Entry::new(Family::Mxfp8, WEIGHT, &[Row::scales(SCALE, &[F8E8M0, U8])], mx).written(MX_FP8),
    Entry::new(Family::MistralFp8, WEIGHT, &[Row::scales(&[Sibling("qscale_weight")], FLOATS)], mistral),
    Entry::new(Family::FbgemmFp8, WEIGHT, &[Row::scales(&[Append("_scale")], &[F32])], fbgemm)
        .method("fbgemm_fp8", &known::FBGEMM),
];

const E4M3: Plane = Plane::of(F8E4M3Fn);

fn blocks(found: &Found<'_>) -> Result<Described, Error> {
    let advice = "config.json states it as weight_block_size";
    shared(found, E4M3, &[ScaleGrid::Block(found.block(advice)?)])
}

pub(super) const MX_FP8: Written = Written {
    planes: |_, [_, cols]| Ok(Planes::times(E4M3, Plane::of(F8E8M0), in_groups(cols, MX_GROUP)?)),
    types: [F8E4M3Fn, U8],
};

pub(super) const MX_GROUP: u64 = 32;

pub(super) fn mx(found: &Found<'_>) -> Result<Described, Error> {
    mx_of(found, &Stack::of_codes(found, 1)?, F8E4M3Fn)
}

/// Describes codes in groups of 32, each group with a power-of-two scale.
pub(super) fn mx_of(found: &Found<'_>, stack: &Stack, code: DType) -> Result<Described, Error> {
    let fit = stack.fit_groups(found, found.scales()?, MX_GROUP)?;
    Ok(stack.times(fit, Plane::of(code), Plane::of(F8E8M0)))
}

fn mistral(found: &Found<'_>) -> Result<Described, Error> {
    match found.parameters().block {
        Some(block) => shared(found, E4M3, &[ScaleGrid::Block(block)]),
        None => shared(found, E4M3, &[ScaleGrid::Tensor]),
    }
}

fn fbgemm(found: &Found<'_>) -> Result<Described, Error> {
    if found.codes().shape.len() != 2 {
        return Err(found.bad_shape("fused experts are not supported"));
    }
    shared(found, E4M3, &[ScaleGrid::Channel])
}
