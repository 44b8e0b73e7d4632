//! gpt-oss MXFP4 (§4.3).

use truecast_core::DType::{F4E2M1, F8E8M0, U8};
use truecast_core::scaled::{Part, Plane};

use crate::error::Error;
use crate::found::Found;
use crate::grid::{Share, Stack};
use crate::scheme::Family;
use crate::table::Name::Append;
use crate::table::{Described, Entry, Row};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    family: Family::GptOss,
    codes: &[(Append("_blocks"), &[U8]), (Append(".blocks"), &[U8])],
    rows: &[Row::required(Part::Scales, &[Append("_scales"), Append(".scales")], &[U8])],
    describe,
}];

/// Bytes of a block of 32 elements.
const BLOCK_BYTES: u64 = 16;
/// The model class of transformers loads these with inputs as rows.
const TRANSPOSED: [&str; 2] = ["gate_up_proj", "down_proj"];

fn describe(found: &Found<'_>) -> Result<Described, Error> {
    let [lead @ .., rows, blocks, BLOCK_BYTES] = &*found.codes().shape else {
        return Err(found.bad_shape("expected [.., rows, blocks, 16]"));
    };
    let cols = blocks.checked_mul(32).ok_or_else(|| found.bad_shape("it is too big"))?;
    let stack = Stack { lead: lead.to_vec(), rows: *rows, cols };
    let fit = stack.fit(found, found.scales()?, &[Share::Group(32)])?;
    let described = stack.times(fit, Plane::of(F4E2M1), Plane::of(F8E8M0));
    Ok(if has_input_rows(found.name) { described.transposed() } else { described })
}

/// The dense tensor of this name has a row for each input.
pub(crate) fn has_input_rows(name: &str) -> bool {
    TRANSPOSED.iter().any(|end| name.ends_with(end))
}
