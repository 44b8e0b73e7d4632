//! GPTQ (§4.10) in its two formats. Stored matrices have one row per input and one column per output, and are packed
//! along the inputs.

use truecast_core::DType::{Bf16, F16, F32, I32};
use truecast_core::scaled::{Code, Group, Packing, Part, Plane, Planes, Zero};

use crate::error::Error;
use crate::found::Found;
use crate::grid::{Fit, Stack};
use crate::scheme::Family;
use crate::table::Name::Sibling;
use crate::table::{Codes, Described, Entry, Row};

const ROWS: &[Row] = &[
    Row::scales(&[Sibling("scales")], &[F16, Bf16, F32]),
    Row::required(Part::Zeros, &[Sibling("qzeros")], &[I32]),
    Row::optional(Part::Index, &[Sibling("g_idx")], &[I32]),
];
const CODES: Codes = &[(Sibling("qweight"), &[I32])];

pub(super) const ENTRIES: &[Entry] = &[
    // The first format stores each zero point minus 1.
    Entry::new(Family::Gptq, CODES, ROWS, |found| describe(found, 1)),
    Entry::new(Family::GptqV2, CODES, ROWS, |found| describe(found, 0)),
];

fn describe(found: &Found<'_>, plus: u8) -> Result<Described, Error> {
    let scales = found.scales()?;
    let bits = found.bits("a configuration states it as bits")?;
    let &[words, cols] = &*found.codes().shape else {
        return Err(found.bad_shape("it does not have two dimensions"));
    };
    let wide = u64::from(bits);
    let all_bits = found.product(words, 32)?;
    if !all_bits.is_multiple_of(wide) {
        return Err(found.bad_shape(format!("{words} words do not hold a whole number of {bits}-bit codes")));
    }
    let stack = Stack { lead: Vec::new(), rows: all_bits / wide, cols };
    let [rows, cols] = [stack.rows, stack.cols];
    let group = found.parameters().group.unwrap_or(rows).max(1);
    let groups = rows.div_ceil(group);
    if *scales.shape != [groups, cols] {
        return Err(found.bad_grid(scales, &stack.shape(), &[vec![groups, cols]]));
    }
    let code = Code::unsigned(bits as u8);
    let per_row = found.product(cols, wide)?.div_ceil(32);
    let zero = match found.part(Part::Zeros) {
        Some(zeros) if *zeros.shape == [groups, per_row] => {
            Zero::Grid { plane: Plane { code, packing: Packing::WORDS }, plus }
        }
        Some(zeros) => return Err(found.bad_grid(zeros, &stack.shape(), &[vec![groups, per_row]])),
        None => return Err(found.unknown("zero points", "the group has none")),
    };
    let order = match found.part(Part::Index) {
        None => Group::Grid,
        Some(index) if *index.shape == [rows] => Group::OfRow,
        Some(index) => return Err(found.bad_grid(index, &stack.shape(), &[vec![rows]])),
    };
    let fit = Fit { block: [group, 1], is_common: false };
    let codes = Plane { code, packing: Packing::Columns { word: 32 } };
    let planes = Planes { zero, group: order, ..Planes::times(codes, Plane::of(scales.dtype), fit.block) };
    Ok(stack.described(fit, planes).transposed())
}
