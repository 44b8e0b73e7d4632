//! compressed-tensors (§4.4): E4M3, integers and packed integers, NVFP4, MXFP4, MXFP6, MXFP8. ModelSlim's schemes
//! with the same storage (§4.18).

use truecast_core::DType::{self, Bf16, F4E2M1, F6E2M3, F8E4M3Fn, F8E8M0, F16, F32, I8, I32, I64, U8};
use truecast_core::scaled::{Code, Global, GlobalRule, Group, Packing, Part, Plane, Planes, Zero};
use truecast_io::Tensor;

use super::fp8::{MX_FP8, mx, mx_of};
use crate::error::Error;
use crate::found::{Found, Piece};
use crate::grid::{Fit, ScaleGrid, Stack, scale_plane, signed_bytes};
use crate::scheme::{Family, Strategy};
use crate::table::Name::{self, Append};
use crate::table::{Codes, Described, Entry, Need, Row};

const FP8: Codes = &[(Append(""), &[F8E4M3Fn])];
const INT8: Codes = &[(Append(""), &[I8])];
const BYTES: Codes = &[(Append("_packed"), &[U8])];
const WORDS: Codes = &[(Append("_packed"), &[I32])];
const FLOATS: &[DType] = &[Bf16, F16, F32];
const SCALE: &[Name] = &[Append("_scale")];
const SCALES: Row = Row::scales(SCALE, FLOATS);
const MX_SCALES: &[Row] = &[Row::scales(SCALE, &[U8, F8E8M0])];
const ZERO: &[Name] = &[Append("_zero_point")];
const INTEGERS: &[Row] = &[SCALES, Row::optional(Part::Zeros, ZERO, &[I8])];
const PACKED: &[Row] = &[
    SCALES,
    Row { piece: Piece::Shape, names: &[Append("_shape")], dtypes: &[I64, I32], need: Need::Required },
    Row::optional(Part::Zeros, ZERO, &[I32]),
    Row::optional(Part::Index, &[Append("_g_idx")], &[I32]),
];
const NVFP4: &[Row] =
    &[Row::scales(SCALE, &[F8E4M3Fn]), Row::required(Part::Global, &[Append("_global_scale")], &[F32])];

pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(Family::CtFloatQuantized, FP8, &[SCALES], float),
    Entry::new(Family::CtNaiveQuantized, &[(Append(""), &[F8E4M3Fn, I8])], INTEGERS, |found| {
        if found.codes().dtype == I8 { int(found) } else { float(found) }
    }),
    Entry::new(Family::CtIntQuantized, INT8, INTEGERS, int),
    Entry::new(Family::CtPackQuantized, WORDS, PACKED, packed),
    Entry::new(Family::CtNvfp4, BYTES, NVFP4, nvfp4),
    Entry::new(Family::CtMxfp4, BYTES, MX_SCALES, |found| mx_packed(found, F4E2M1, 1, 2)),
    Entry::new(Family::CtMxfp6, BYTES, MX_SCALES, |found| mx_packed(found, F6E2M3, 3, 4)),
    Entry::new(Family::CtMxfp8, FP8, MX_SCALES, mx).written(MX_FP8),
    Entry::new(Family::ModelSlim, INT8, &[SCALES, Row::optional(Part::Zeros, &[Append("_offset")], FLOATS)], int),
];

pub(super) fn fit(found: &Found<'_>, stack: &Stack, scales: &Tensor) -> Result<Fit, Error> {
    let parameters = found.parameters();
    match (parameters.strategy, parameters.group, parameters.block) {
        (Some(Strategy::Tensor), ..) => stack.fit(found, scales, &[ScaleGrid::Tensor]),
        (Some(Strategy::Channel), ..) => stack.fit(found, scales, &[ScaleGrid::Channel]),
        (Some(Strategy::Block) | None, _, Some(block)) => stack.fit(found, scales, &[ScaleGrid::Block(block)]),
        (Some(Strategy::Group) | None, Some(group), _) => stack.fit_groups(found, scales, group),
        (None, None, None) => stack.fit(found, scales, &[ScaleGrid::Tensor, ScaleGrid::Channel]),
        (Some(Strategy::Group), None, _) => Err(found.unknown("the group", ADVICE)),
        (Some(Strategy::Block), _, None) => Err(found.unknown("the block", ADVICE)),
    }
}

const ADVICE: &str = "the configuration does not state it";

pub(super) fn float(found: &Found<'_>) -> Result<Described, Error> {
    let (stack, scales) = (Stack::of_codes(found, 1)?, found.scales()?);
    let fit = fit(found, &stack, scales)?;
    Ok(stack.times(fit, Plane::of(F8E4M3Fn), scale_plane(scales.dtype)))
}

fn int(found: &Found<'_>) -> Result<Described, Error> {
    let (stack, scales) = (Stack::of_codes(found, 1)?, found.scales()?);
    let fit = fit(found, &stack, scales)?;
    signed_bytes(found, &stack, fit)
}

/// Describes packed integers. A tensor states the logical shape, which the shape of the words must match.
fn packed(found: &Found<'_>) -> Result<Described, Error> {
    let (words, scales) = (found.codes(), found.scales()?);
    let stated = found.stated.as_deref().unwrap_or_default();
    let stack = Stack::of(stated).ok_or_else(|| found.bad_shape("its stated shape has fewer than two dimensions"))?;
    let bits = found.bits(ADVICE)?;
    let wide = |cols: u64| -> Result<(u64, u64), Error> {
        let bits_of_row = found.product(cols, bits.into())?;
        Ok((bits_of_row.div_ceil(32), cols.div_ceil(32 / u64::from(bits))))
    };
    let [lead @ .., rows, per_row] = &*words.shape else {
        return Err(found.bad_shape("it has fewer than two dimensions"));
    };
    let (dense, padded) = wide(stack.cols)?;
    if *lead != stack.lead || *rows != stack.rows || ![dense, padded].contains(per_row) {
        return Err(found.bad_shape(format!(
            "{stated:?} elements of {bits} bits take {dense} words per row, or {padded} if no element crosses a word"
        )));
    }
    // The number of words distinguishes the two packings, unless both need equally many (§4.4.2).
    let is_dense = if dense == padded && stack.cols > 32 / u64::from(bits) && 32 % bits != 0 {
        found.setting.is_dense_packing.ok_or_else(|| {
            found.unknown(
                "the packing",
                "both packings need the same number of words; state it with version in config.json",
            )
        })?
    } else {
        *per_row == dense
    };
    let (packing, columns) = if is_dense {
        (Packing::WORDS, Packing::Columns { word: 32 })
    } else {
        (Packing::Padded, Packing::PaddedColumns)
    };
    let code = Code::unsigned(bits as u8);
    let fit = fit(found, &stack, scales)?;
    let zero = match found.part(Part::Zeros) {
        None => Zero::Constant(1 << (bits - 1)),
        Some(zeros) => {
            let (dense, padded) = wide(stack.rows)?;
            let words = if is_dense { dense } else { padded };
            let groups = scales.shape.last().copied().unwrap_or(1);
            let expected = [&stack.lead[..], &[words, groups]].concat();
            if *zeros.shape != *expected {
                return Err(found.bad_grid(zeros, &stack.shape(), &[expected]));
            }
            Zero::Grid { plane: Plane { code, packing: columns }, plus: 0 }
        }
    };
    let group = match found.part(Part::Index) {
        None => Group::Grid,
        Some(index) if *index.shape == [stack.cols] && stack.lead.is_empty() => Group::OfColumn,
        Some(index) => return Err(found.bad_grid(index, &stack.shape(), &[vec![stack.cols]])),
    };
    let planes = Planes::times(Plane { code, packing }, scale_plane(scales.dtype), fit.block);
    Ok(stack.described(fit, Planes { zero, group, ..planes }))
}

fn nvfp4(found: &Found<'_>) -> Result<Described, Error> {
    let stack = Stack::of_codes(found, 2)?;
    let fit = stack.fit_groups(found, found.scales()?, 16)?;
    let global = found.part(Part::Global).ok_or_else(|| found.unknown("the global scale", "the group has none"))?;
    let whole = stack.fit(found, global, &[ScaleGrid::Tensor])?;
    let planes = Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn), fit.block);
    let global = Global { rule: GlobalRule::Divide, block: whole.block };
    // With one global scale, the whole stack is one matrix of the layout.
    Ok(stack.described(Fit { is_common: whole.is_common, ..fit }, Planes { global: Some(global), ..planes }))
}

/// Describes MX codes: `bytes` bytes hold `elements` elements.
pub(super) fn mx_packed(found: &Found<'_>, code: DType, bytes: u64, elements: u64) -> Result<Described, Error> {
    let stored = Stack::of_codes(found, 1)?;
    if !stored.cols.is_multiple_of(bytes) {
        return Err(found.bad_shape(format!("rows are not a whole number of {bytes} bytes")));
    }
    mx_of(found, &Stack { cols: found.product(stored.cols / bytes, elements)?, ..stored }, code)
}
