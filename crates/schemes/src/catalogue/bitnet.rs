//! BitNet (§4.11). Two-bit codes mean three values, which are divided by a scale or multiplied by it.

use truecast_core::DType::{Bf16, F16, F32, U8};
use truecast_core::scaled::{Code, Form, Packing, Plane, Planes, Zero};

use crate::error::Error;
use crate::found::Found;
use crate::grid::{ScaleGrid, Stack};
use crate::scheme::Family;
use crate::table::Name::Append;
use crate::table::{Described, Entry, Row};

const ROWS: &[Row] = &[Row::scales(&[Append("_scale")], &[Bf16, F16, F32])];

pub(super) const ENTRIES: &[Entry] = &[Entry::new(Family::BitNet, &[(Append(""), &[U8])], ROWS, describe)];

fn describe(found: &Found<'_>) -> Result<Described, Error> {
    let stored = Stack::of_codes(found, 1)?;
    if !stored.lead.is_empty() {
        return Err(found.bad_shape("it has more than two dimensions"));
    }
    let (stack, scales) = (Stack { rows: found.product(stored.rows, 4)?, ..stored }, found.scales()?);
    let fit = stack.fit(found, scales, &[ScaleGrid::Tensor])?;
    let codes = Plane { code: Code::unsigned(2), packing: Packing::Planes };
    let planes = Planes::times(codes, Plane::of(scales.dtype), fit.block);
    let form = if found.setting.multiplies { Form::Times } else { Form::Divide };
    Ok(stack.described(fit, Planes { zero: Zero::Constant(1), form, refused: Some(3), ..planes }))
}
