//! DeepSeek V4 (§4.2). I8 holds pairs of E2M1 codes, and blocks hold E4M3 codes. The scales of both kinds are named
//! `.scale`.

use truecast_core::DType::{self, F4E2M1, F8E4M3Fn, F8E8M0, F32, I8};
use truecast_core::scaled::Plane;

use super::fp8::mx_of;
use crate::error::Error;
use crate::found::Found;
use crate::grid::{ScaleGrid, Stack, shared};
use crate::scheme::Family;
use crate::table::Name::{Append, Sibling};
use crate::table::{Codes, Described, Entry, Row};

const CODES: Codes = &[(Append(""), &[I8, F8E4M3Fn])];
const ROWS: &[Row] = &[Row::scales(&[Sibling("scale")], &[F8E8M0, F32])];

pub(super) const ENTRIES: &[Entry] = &[Entry::new(Family::DeepSeekV4, CODES, ROWS, describe)];

fn describe(found: &Found<'_>) -> Result<Described, Error> {
    let scales = found.scales()?;
    check_expert(found, found.codes().dtype)?;
    if found.codes().dtype == I8 {
        if scales.dtype != F8E8M0 {
            return Err(found.bad_shape(format!("pairs of f4e2m1 have scales of f8e8m0, not {}", scales.dtype)));
        }
        return mx_of(found, &Stack::of_codes(found, 2)?, F4E2M1);
    }
    let advice = "config.json states it as weight_block_size";
    shared(found, Plane::of(F8E4M3Fn), &[ScaleGrid::Block(found.block(advice)?)])
}

fn check_expert(found: &Found<'_>, stored: DType) -> Result<(), Error> {
    let stored = if stored == I8 { F4E2M1 } else { stored };
    match found.setting.expert {
        Some(expert) if expert != stored && found.name.contains(".experts.") => {
            Err(found.bad_shape(format!("the configuration says that experts are {expert}, this one is {stored}")))
        }
        _ => Ok(()),
    }
}
