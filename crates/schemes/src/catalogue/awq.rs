//! AutoAWQ (§4.9): stored matrices have one row per input and one column per output.

use truecast_core::DType::{Bf16, F16, I32};
use truecast_core::scaled::{Code, Packing, Part, Plane, Planes, Zero};

use crate::error::Error;
use crate::found::Found;
use crate::grid::{Fit, Stack};
use crate::scheme::Family;
use crate::table::Name::Sibling;
use crate::table::{Codes, Described, Entry, Row};

const ROWS: &[Row] =
    &[Row::scales(&[Sibling("scales")], &[F16, Bf16]), Row::optional(Part::Zeros, &[Sibling("qzeros")], &[I32])];

const CODES: Codes = &[(Sibling("qweight"), &[I32])];

pub(super) const ENTRIES: &[Entry] = &[Entry::new(Family::Awq, CODES, ROWS, |found| {
    inputs_by_outputs(found, Plane { code: Code::unsigned(4), packing: Packing::Awq }, Zero::Constant(8))
})];

/// Describes a stored matrix `[inputs, outputs]`, in which a group of inputs shares a scale for each output.
/// `without` replaces missing zero points.
pub(super) fn inputs_by_outputs(found: &Found<'_>, codes: Plane, without: Zero) -> Result<Described, Error> {
    let per_entry = u64::from(found.codes().dtype.code_bits() / codes.code.bits());
    let stack = Stack::of_codes(found, per_entry)?;
    let scales = found.scales()?;
    let group = found.group("a configuration states it as group_size")?;
    if !stack.lead.is_empty() || !stack.rows.is_multiple_of(group) {
        return Err(found.bad_shape(format!("{} inputs are not a whole number of groups of {group}", stack.rows)));
    }
    let groups = stack.rows / group;
    if *scales.shape != [groups, stack.cols] {
        return Err(found.bad_grid(scales, &stack.shape(), &[vec![groups, stack.cols]]));
    }
    let packed = vec![groups, stack.cols / per_entry];
    let zero = match found.part(Part::Zeros) {
        None => without,
        Some(zeros) if *zeros.shape == *packed => Zero::Grid { plane: codes, plus: 0 },
        Some(zeros) => return Err(found.bad_grid(zeros, &stack.shape(), &[packed])),
    };
    let fit = Fit { block: [group, 1], is_common: false };
    let planes = Planes { zero, ..Planes::times(codes, Plane::of(scales.dtype), fit.block) };
    Ok(stack.described(fit, planes).transposed())
}
