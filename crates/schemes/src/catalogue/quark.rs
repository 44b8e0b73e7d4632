//! AMD Quark (§4.19): E4M3, MXFP4, MXFP6, and integers of 4 and 8 bits.

use truecast_core::DType::{self, Bf16, F4E2M1, F6E2M3, F6E3M2, F8E4M3Fn, F8E8M0, F16, F32, I8, I32, U8};
use truecast_core::scaled::{Code, Packing, Part, Plane, Planes, Zero};

use super::awq::inputs_by_outputs;
use super::compressed_tensors::{fit, float, mx_packed};
use crate::error::Error;
use crate::found::Found;
use crate::grid::{Stack, scale_plane};
use crate::scheme::{Family, Strategy};
use crate::table::Name::{self, Append, Sibling};
use crate::table::{Codes, Described, Entry, Row};

/// Two names: the usual name, and the name in memory, which some releases store.
const SCALE: &[Name] = &[Append("_scale"), Sibling("weight_quantizer.scale")];
const ZERO: &[Name] = &[Append("_zero_point"), Sibling("weight_quantizer.zero_point")];
const FLOATS: &[DType] = &[F32, Bf16, F16];
const MX_CODES: Codes = &[(Append(""), &[U8])];
const MX_SCALES: &[Row] = &[Row::scales(SCALE, &[U8, F8E8M0])];
const WORDS: Codes = &[(Append(""), &[I32])];
/// Zero points are required: only with them the order of packed 4-bit integers is certain.
const OF_WORDS: &[Row] = &[Row::scales(SCALE, FLOATS), Row::required(Part::Zeros, ZERO, &[I32])];
const OF_BYTES: &[Row] = &[Row::scales(SCALE, FLOATS), Row::optional(Part::Zeros, ZERO, &[I8, U8])];

pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(Family::QuarkFp4, MX_CODES, MX_SCALES, |found| mx_packed(found, F4E2M1, 1, 2)),
    Entry::new(Family::QuarkFp6E2M3, MX_CODES, MX_SCALES, |found| mx_packed(found, F6E2M3, 3, 4)),
    Entry::new(Family::QuarkFp6E3M2, MX_CODES, MX_SCALES, |found| mx_packed(found, F6E3M2, 3, 4)),
    Entry::new(
        Family::QuarkFp8,
        &[(Append(""), &[F8E4M3Fn])],
        &[Row::scales(SCALE, &[F32, Bf16, F16, U8, F8E8M0])],
        float,
    ),
    Entry::new(Family::QuarkInt4, WORDS, OF_WORDS, |found| {
        integers(found, Code::signed(4), Packing::Awq, Packing::AwqColumns)
    }),
    Entry::new(Family::QuarkUint4, WORDS, OF_WORDS, |found| {
        integers(found, Code::unsigned(4), Packing::Awq, Packing::AwqColumns)
    }),
    Entry::new(Family::QuarkInt4Order, WORDS, OF_WORDS, |found| {
        integers(found, Code::signed(4), Packing::WORDS, Packing::Columns { word: 32 })
    }),
    Entry::new(Family::QuarkUint4Order, WORDS, OF_WORDS, |found| {
        integers(found, Code::unsigned(4), Packing::WORDS, Packing::Columns { word: 32 })
    }),
    Entry::new(Family::QuarkInt8, &[(Append(""), &[I8, U8])], OF_BYTES, |found| {
        let code = if found.codes().dtype == U8 { Code::unsigned(8) } else { Code::signed(8) };
        integers(found, code, Packing::BYTES, Packing::BYTES)
    }),
];

/// Describes integer codes minus zero points, times scales.
///
/// With groups, the stored matrix has one row per input. `of_rows` is the packing of one zero point per row.
fn integers(found: &Found<'_>, code: Code, packing: Packing, of_rows: Packing) -> Result<Described, Error> {
    let codes = Plane { code, packing };
    if found.parameters().group.is_some() {
        return inputs_by_outputs(found, codes, Zero::None);
    }
    let per_entry = u64::from(found.codes().dtype.code_bits() / code.bits());
    let (stack, scales) = (Stack::of_codes(found, per_entry)?, found.scales()?);
    let fit = fit(found, &stack, scales)?;
    let is_of_tensor = found.parameters().strategy == Some(Strategy::Tensor);
    let zero = match found.part(Part::Zeros) {
        None => Zero::None,
        Some(zeros) => {
            let expected = if is_of_tensor { scales.shape.to_vec() } else { vec![stack.rows.div_ceil(per_entry)] };
            if *zeros.shape != *expected {
                return Err(found.bad_grid(zeros, &stack.shape(), &[expected]));
            }
            let packing = if is_of_tensor && per_entry > 1 { Packing::WORDS } else { of_rows };
            Zero::Grid { plane: Plane { code, packing }, plus: 0 }
        }
    };
    Ok(stack.described(fit, Planes { zero, ..Planes::times(codes, scale_plane(scales.dtype), fit.block) }))
}
