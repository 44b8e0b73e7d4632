//! gpt-oss MXFP4 (§4.3).

use truecast_core::DType::{F4E2M1, U8};

use super::fp8::{MX_GROUP, mx_of};
use crate::declared::known;
use crate::error::Error;
use crate::found::Found;
use crate::grid::Stack;
use crate::scheme::Family;
use crate::table::Name::Append;
use crate::table::{Codes, Described, Entry, Row};

const CODES: Codes = &[(Append("_blocks"), &[U8]), (Append(".blocks"), &[U8])];
const ROWS: &[Row] = &[Row::scales(&[Append("_scales"), Append(".scales")], &[U8])];

pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(Family::GptOss, CODES, ROWS, describe).method("mxfp4", &known::METHOD_ONLY)];

const BLOCK_BYTES: u64 = 16;
/// Names of weights that transformers loads with one row per input.
const TRANSPOSED: [&str; 2] = ["gate_up_proj", "down_proj"];

fn describe(found: &Found<'_>) -> Result<Described, Error> {
    let [lead @ .., rows, blocks, BLOCK_BYTES] = &*found.codes().shape else {
        return Err(found.bad_shape("expected [.., rows, blocks, 16]"));
    };
    let stack = Stack { lead: lead.to_vec(), rows: *rows, cols: found.product(*blocks, MX_GROUP)? };
    let described = mx_of(found, &stack, F4E2M1)?;
    Ok(if has_input_rows(found.name) { described.transposed() } else { described })
}

pub(crate) fn has_input_rows(name: &str) -> bool {
    TRANSPOSED.iter().any(|end| name.ends_with(end))
}
