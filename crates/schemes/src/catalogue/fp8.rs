//! E4M3 codes times scales of blocks, tensors or rows: DeepSeek (§4.1), `mxfp8` (§4.8), Mistral (§4.13), FBGEMM (§4.14).

use truecast_core::DType::{self, Bf16, F8E4M3Fn, F8E8M0, F16, F32, U8};
use truecast_core::scaled::{Part, Plane};

use crate::error::Error;
use crate::found::Found;
use crate::grid::{Share, Stack, scale_plane};
use crate::scheme::Family;
use crate::table::Name::{Append, Sibling};
use crate::table::{Described, Entry, Row};

const WEIGHT: &[(crate::table::Name, &[DType])] = &[(Append(""), &[F8E4M3Fn])];

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        family: Family::Fp8Block,
        codes: WEIGHT,
        rows: &[Row::required(Part::Scales, &[Append("_scale_inv"), Append("_scale")], &[F32, Bf16, F16, F8E8M0, U8])],
        describe: blocks,
    },
    Entry {
        family: Family::Fp8Tensor,
        codes: WEIGHT,
        rows: &[Row::required(Part::Scales, &[Append("_scale_inv"), Append("_scale")], &[F32, Bf16, F16])],
        describe: |found| shared(found, &[Share::Tensor, Share::Channel]),
    },
    Entry {
        family: Family::Fp8Channel,
        codes: WEIGHT,
        rows: &[Row::required(Part::Scales, &[Append("_scale"), Append("_scale_inv")], &[F32, Bf16, F16])],
        describe: |found| shared(found, &[Share::Channel]),
    },
    Entry {
        family: Family::Mxfp8,
        codes: WEIGHT,
        rows: &[Row::required(Part::Scales, &[Append("_scale_inv"), Append("_scale")], &[F8E8M0, U8])],
        describe: mx,
    },
    Entry {
        family: Family::MistralFp8,
        codes: WEIGHT,
        rows: &[Row::required(Part::Scales, &[Sibling("qscale_weight")], &[F32, Bf16, F16])],
        describe: mistral,
    },
    Entry {
        family: Family::FbgemmFp8,
        codes: WEIGHT,
        rows: &[Row::required(Part::Scales, &[Append("_scale")], &[F32])],
        describe: fbgemm,
    },
];

/// The block that the configuration names.
fn blocks(found: &Found<'_>) -> Result<Described, Error> {
    let block = found.parameters().block.ok_or_else(|| {
        found.unknown(
            "the block",
            "give it with --from-scheme fp8-block:128x128, or as weight_block_size in config.json",
        )
    })?;
    shared(found, &[Share::Block(block)])
}

fn shared(found: &Found<'_>, kinds: &[Share]) -> Result<Described, Error> {
    let scales = found.scales()?;
    let stack = Stack::of_codes(found, 1)?;
    let fit = stack.fit(found, scales, kinds)?;
    Ok(stack.times(fit, Plane::of(F8E4M3Fn), scale_plane(scales.dtype)))
}

/// Elements that share a scale of two.
pub(super) const MX_GROUP: u64 = 32;

pub(super) fn mx(found: &Found<'_>) -> Result<Described, Error> {
    let scales = found.scales()?;
    let stack = Stack::of_codes(found, 1)?;
    let fit = stack.fit_groups(found, scales, MX_GROUP)?;
    Ok(stack.times(fit, Plane::of(F8E4M3Fn), Plane::of(F8E8M0)))
}

fn mistral(found: &Found<'_>) -> Result<Described, Error> {
    match found.parameters().block {
        Some(block) => shared(found, &[Share::Block(block)]),
        None => shared(found, &[Share::Tensor]),
    }
}

fn fbgemm(found: &Found<'_>) -> Result<Described, Error> {
    if found.codes().shape.len() != 2 {
        return Err(found.bad_shape("fused experts are not supported"));
    }
    shared(found, &[Share::Channel])
}
