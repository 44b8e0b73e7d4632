//! bitsandbytes (§4.16). A 4-bit code selects one of 16 values, which is multiplied by the largest magnitude of the
//! block. The scheme also has 8-bit integers.

use truecast_core::DType::{Bf16, F16, F32, I8, U8};
use truecast_core::scaled::{Book, Code, Coding, Form, Global, GlobalRule, Layout, Packing, Part, Plane, Planes};

use crate::error::Error;
use crate::found::{Found, Piece};
use crate::grid::{ScaleGrid, shared};
use crate::scheme::Family;
use crate::table::Name::{Append, Sibling};
use crate::table::{Codes, Described, Entry, Need, Row};

/// A tensor may have any of these types, but its bytes are always 4-bit codes.
const FOUR: Codes = &[(Append(""), &[U8, I8, Bf16, F16, F32])];
const NF4: &[Row] = &[ABSMAX, NESTED, BOOK, values(Book::Nf4)];
const FP4: &[Row] = &[ABSMAX, NESTED, BOOK, values(Book::Fp4)];
const ABSMAX: Row = Row::scales(&[Append(".absmax")], &[F32, U8]);
const NESTED: Row = Row::optional(Part::Global, &[Append(".nested_absmax")], &[F32]);
const BOOK: Row = Row::optional(Part::Book, &[Append(".nested_quant_map")], &[F32]);
const INT8: &[Row] = &[
    Row::scales(&[Sibling("SCB")], &[F32]),
    Row { piece: Piece::Values(None), names: &[Sibling("weight_format")], dtypes: &[U8], need: Need::Optional },
];

const fn values(book: Book) -> Row {
    Row { piece: Piece::Values(Some(book)), names: &[Append(".quant_map")], dtypes: &[F32], need: Need::Optional }
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(Family::BnbNf4, FOUR, NF4, |found| four(found, Book::Nf4)),
    Entry::new(Family::BnbFp4, FOUR, FP4, |found| four(found, Book::Fp4)),
    Entry::new(Family::BnbInt8, &[(Append(""), &[I8])], INT8, int8),
];

const OVER_127: u32 = 0x3c01_0204;

fn int8(found: &Found<'_>) -> Result<Described, Error> {
    let codes = Plane { code: Code::signed(8), packing: Packing::BYTES };
    let mut described = shared(found, codes, &[ScaleGrid::Channel])?;
    if let Coding::Planes(planes) = &mut described.layout.coding {
        planes.form = Form::TimesConstant(OVER_127);
    }
    Ok(described)
}

/// Describes 4-bit codes. Blocks continue across the tensor's rows, so the layout has other rows, of whole blocks.
fn four(found: &Found<'_>, book: Book) -> Result<Described, Error> {
    let state = found.setting.bitsandbytes.as_ref();
    let state = state.ok_or_else(|| found.unknown("the block", "the group has no quant_state"))?;
    let elements = state.shape.iter().try_fold(1, |product, n| found.product(product, *n))?;
    let [rows, cols] = match (state.nested, &*state.shape) {
        (Some((group, _)), _) => rows_of(elements, found.product(state.block, group)?),
        (None, [.., cols]) if cols.is_multiple_of(state.block) => rows_of(elements, *cols),
        _ => [1, elements],
    };
    let codes = Plane { code: Code::Book(book), packing: Packing::HighFirst };
    let planes = match state.nested {
        None => Planes::times(codes, Plane::of(F32), [1, state.block]),
        Some((group, offset)) => {
            let scales = Plane { code: Code::Book(Book::Stored), packing: Packing::BYTES };
            let global = Global { rule: GlobalRule::TimesPlus(offset), block: [1, state.block * group] };
            Planes { global: Some(global), ..Planes::times(codes, scales, [1, state.block]) }
        }
    };
    Ok(Described { shape: state.shape.clone(), layout: Layout::new(1, [rows, cols], Coding::Planes(planes)) })
}

/// Returns rows of `cols` elements, or one row of all elements if `cols` does not divide their number.
fn rows_of(elements: u64, cols: u64) -> [u64; 2] {
    match elements.checked_rem(cols) {
        Some(0) => [elements / cols, cols],
        _ => [1, elements],
    }
}
