//! NVIDIA ModelOpt (§4.5).

use truecast_core::DType::{self, Bf16, F4E2M1, F8E4M3Fn, F8E8M0, F16, F32, I8, U8};
use truecast_core::scaled::{Code, Global, GlobalRule, Packing, Part, Plane, Planes};

use super::fp8::{MX_GROUP, mx};
use crate::error::Error;
use crate::found::{Found, Piece};
use crate::grid::{Fit, Share, Stack, scale_plane};
use crate::scheme::Family;
use crate::table::Name::{self, Append, Sibling};
use crate::table::{Described, Entry, Need, Row};

const WEIGHT: Name = Append("");
/// Of a module's weight, and of fused experts.
const SCALE: &[Name] = &[Append("_scale"), Append("_weight_scale")];
const SCALE_2: &[Name] = &[Append("_scale_2"), Append("_weight_scale_2")];
const FLOATS: &[DType] = &[F32, Bf16, F16];
/// Multiplies the activation: the weight is another one than its tensors say, unless all of it is 1.
const FACTOR: Row =
    Row { piece: Piece::Factor, names: &[Sibling("pre_quant_scale")], dtypes: FLOATS, need: Need::Optional };

/// One scale beside the codes.
const SCALED: &[Row] = &[Row::required(Part::Scales, SCALE, FLOATS), FACTOR];
const E4M3: &[(Name, &[DType])] = &[(WEIGHT, &[F8E4M3Fn])];

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        family: Family::ModelOptFp8,
        // Old exports have the same bits as I8.
        codes: &[(WEIGHT, &[F8E4M3Fn, I8])],
        rows: SCALED,
        describe: |found| shared(found, FP8, &[Share::Tensor]),
    },
    Entry {
        family: Family::ModelOptFp8PerChannel,
        codes: E4M3,
        rows: SCALED,
        describe: |found| shared(found, FP8, &[Share::Channel]),
    },
    Entry {
        family: Family::ModelOptFp8Blocks,
        codes: E4M3,
        rows: SCALED,
        describe: |found| shared(found, FP8, &[Share::Spread(found.parameters().block.unwrap_or([128, 128]))]),
    },
    Entry {
        family: Family::ModelOptInt8,
        codes: &[(WEIGHT, &[I8])],
        rows: SCALED,
        describe: |found| shared(found, INT8, &[Share::Channel]),
    },
    NVFP4,
    Entry { family: Family::ModelOptNvfp4Weights, ..NVFP4 },
    Entry { family: Family::ModelOptNvfp4Awq, ..NVFP4 },
    Entry { family: Family::ModelOptNvfp4Svd, ..NVFP4 },
    Entry { family: Family::ModelOptNvfp4Fp8, ..NVFP4 },
    Entry {
        family: Family::ModelOptMxfp8,
        codes: E4M3,
        rows: &[Row::required(Part::Scales, SCALE, &[U8, F8E8M0])],
        describe: mx,
    },
    Entry {
        family: Family::ModelOptMxfp4,
        codes: &[(WEIGHT, &[U8])],
        rows: &[Row::required(Part::Scales, SCALE, &[U8, F8E8M0])],
        describe: mxfp4,
    },
    Entry {
        family: Family::ModelOptAwq,
        codes: &[(WEIGHT, &[U8])],
        rows: &[Row::required(Part::Scales, SCALE, FLOATS), FACTOR],
        describe: awq,
    },
];

/// NVFP4, whatever becomes of activations.
const NVFP4: Entry = Entry {
    family: Family::ModelOptNvfp4,
    codes: &[(WEIGHT, &[U8])],
    rows: &[
        Row::required(Part::Scales, SCALE, &[F8E4M3Fn]),
        Row::required(Part::Global, SCALE_2, &[F32]),
        FACTOR,
        Row { piece: Piece::Factor, names: &[Sibling("svdquant_lora_a")], dtypes: FLOATS, need: Need::Optional },
        Row { piece: Piece::Factor, names: &[Sibling("svdquant_lora_b")], dtypes: FLOATS, need: Need::Optional },
    ],
    describe: nvfp4,
};

const FP8: Plane = Plane::of(F8E4M3Fn);
const INT8: Plane = Plane { code: Code::signed(8), packing: Packing::BYTES };

fn shared(found: &Found<'_>, codes: Plane, kinds: &[Share]) -> Result<Described, Error> {
    let (stack, scales) = (Stack::of_codes(found, 1)?, found.scales()?);
    let fit = stack.fit(found, scales, kinds)?;
    Ok(stack.times(fit, codes, scale_plane(scales.dtype)))
}

fn nvfp4(found: &Found<'_>) -> Result<Described, Error> {
    let stack = Stack::of_codes(found, 2)?;
    let fit = stack.fit_groups(found, found.scales()?, 16)?;
    let global = found.part(Part::Global).ok_or_else(|| found.unknown("the second scale", "the group has none"))?;
    // One for gate and one for up: the halves of the rows.
    let halves = Share::Block([stack.rows.div_ceil(2).max(1), stack.cols.max(1)]);
    let is_halved = !stack.lead.is_empty() && stack.rows.is_multiple_of(2) && global.shape.last() == Some(&2);
    let whole = match is_halved && global.shape.len() == stack.lead.len() + 1 {
        true => {
            let column = truecast_io::Tensor { shape: [&global.shape[..], &[1]].concat().into(), ..global.clone() };
            stack.fit(found, &column, &[halves])?
        }
        false => stack.fit(found, global, &[Share::Tensor])?,
    };
    let planes = Planes::times(Plane::of(F4E2M1), FP8, fit.block);
    let global = Global { rule: GlobalRule::Times, block: whole.block };
    Ok(stack.described(Fit { is_common: whole.is_common, ..fit }, Planes { global: Some(global), ..planes }))
}

fn mxfp4(found: &Found<'_>) -> Result<Described, Error> {
    let stack = Stack::of_codes(found, 2)?;
    let fit = stack.fit_groups(found, found.scales()?, MX_GROUP)?;
    Ok(stack.times(fit, Plane::of(F4E2M1), Plane::of(F8E8M0)))
}

/// Bytes hold two rows.
fn awq(found: &Found<'_>) -> Result<Described, Error> {
    let stored = Stack::of_codes(found, 1)?;
    let rows = stored.rows.checked_mul(2).ok_or_else(|| found.bad_shape("it is too big"))?;
    let (stack, scales) = (Stack { rows, ..stored }, found.scales()?);
    let group = found.parameters().group.ok_or_else(|| {
        found.unknown(
            "the group",
            "give it with --from-scheme modelopt:W4A16_AWQ,group=128, or as group_size in the configuration",
        )
    })?;
    let fit = stack.fit_groups(found, scales, group)?;
    let codes = Plane { code: Code::signed(4), packing: Packing::Columns { word: 8 } };
    Ok(stack.times(fit, codes, scale_plane(scales.dtype)))
}
