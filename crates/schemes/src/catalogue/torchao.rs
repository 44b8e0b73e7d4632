//! torchao (§4.7): the header lists the parts of each tensor.

use serde_json::Value;
use truecast_core::DType::{self, Bf16, F4E2M1, F8E4M3Fn, F8E5M2, F8E8M0, F16, F32, I8, U8};
use truecast_core::Ecosystem;
use truecast_core::scaled::{Global, GlobalRule, Packing, Part, Plane, Planes};
use truecast_io::Tensor;

use super::fp8::MX_GROUP;
use crate::error::Error;
use crate::found::{Found, Torchao};
use crate::grid::{Fit, ScaleGrid, Stack, signed_bytes};
use crate::scheme::Family;
use crate::table::Name::Hidden;
use crate::table::{Codes, Described, Entry, Row};

const CODES: Codes = &[(Hidden("qdata"), &[F8E4M3Fn, F8E5M2, U8, I8])];
const ROWS: &[Row] = &[
    Row::scales(&[Hidden("scale")], &[F32, Bf16, F16, F8E8M0, F8E4M3Fn, U8]),
    Row::optional(Part::Zeros, &[Hidden("zero_point")], &[I8, F32, Bf16, F16]),
    Row::optional(Part::Global, &[Hidden("per_tensor_scale")], &[F32]),
    // Factor of the activation (SmoothQuant).
    Row::factor(&[Hidden("act_pre_scale")], &[F32, Bf16, F16]),
];

pub(super) const ENTRIES: &[Entry] = &[Entry::new(Family::Torchao, CODES, ROWS, describe)];

/// Reads a tensor's entry in a header; `None` for an unquantized tensor, or for an entry without a class.
pub(crate) fn attributes(entry: &Value) -> Option<Torchao> {
    let class = entry.get("_type")?.as_str()?;
    let data = entry.get("_data");
    // Some releases prefix attributes with an underscore.
    let field = |name: &str| {
        let found = data.and_then(|data| data.get(name).or_else(|| data.get(format!("_{name}"))));
        found.map(inner)
    };
    let dtype = |name: &str| {
        let text = field(name)?.as_str()?;
        DType::parse_in(Ecosystem::Torch, text.trim_start_matches("torch.")).ok()
    };
    let block = match field("block_size") {
        Some(Value::Array(sizes)) => sizes.iter().filter_map(|size| inner(size).as_u64()).collect(),
        Some(Value::Number(size)) => size.as_u64().into_iter().collect(),
        _ => Vec::new(),
    };
    Some(Torchao {
        class: class.to_owned(),
        block,
        element: dtype("elem_dtype"),
        original: dtype("orig_dtype").or_else(|| dtype("dtype")),
        is_swizzled: field("is_swizzled_scales").and_then(Value::as_bool).unwrap_or(false),
    })
    .filter(|torchao| torchao.class != "Tensor")
}

/// Innermost value of nested `{"_type": .., "_data": ..}`.
fn inner(value: &Value) -> &Value {
    value.get("_data").map_or(value, inner)
}

type Describe = fn(&Found<'_>, &Torchao) -> Result<Described, Error>;

/// Readable classes. Integers of fewer than 8 bits take a byte each.
const CLASSES: &[(&str, Describe)] = &[
    ("Float8Tensor", floats),
    ("Int8Tensor", integers),
    ("IntxUnpackedToInt8Tensor", integers),
    ("MXTensor", mx),
    ("NVFP4Tensor", nvfp4),
];

pub(crate) fn is_read(class: &str) -> bool {
    CLASSES.iter().any(|(name, _)| *name == class)
}

fn describe(found: &Found<'_>) -> Result<Described, Error> {
    let torchao =
        found.setting.torchao.as_ref().ok_or_else(|| found.unknown("the class", "the header does not state it"))?;
    match CLASSES.iter().find(|(name, _)| *name == torchao.class) {
        Some((_, describe)) => describe(found, torchao),
        None => Err(Error::Refused {
            place: format!("tensor {}", truecast_io::Escaped(found.name)),
            what: format!("torchao {}", truecast_io::Escaped(&torchao.class)),
            why: "truecast does not know its packing; torchao reads it",
        }),
    }
}

fn fit(found: &Found<'_>, torchao: &Torchao, stack: &Stack, scales: &Tensor) -> Result<Fit, Error> {
    let block = match torchao.block.as_slice() {
        [lead @ .., rows, cols] if *rows != 0 && *cols != 0 && lead.iter().all(|n| *n == 1) => [*rows, *cols],
        _ => return Err(found.unknown("the block", format!("block_size is {:?}", torchao.block))),
    };
    let is_row = block[0] == 1 && block[1] == stack.cols;
    let is_all = block == [stack.rows, stack.cols];
    match (is_all, is_row) {
        (true, _) => stack.fit(found, scales, &[ScaleGrid::Block(block), ScaleGrid::Tensor]),
        (_, true) => stack.fit(found, scales, &[ScaleGrid::Block(block), ScaleGrid::Channel]),
        _ => stack.fit(found, scales, &[ScaleGrid::Block(block)]),
    }
}

fn floats(found: &Found<'_>, torchao: &Torchao) -> Result<Described, Error> {
    let codes = found.codes().dtype;
    if ![F8E4M3Fn, F8E5M2].contains(&codes) {
        return Err(found.bad_shape(format!("a Float8Tensor cannot have codes of type {codes}")));
    }
    let (stack, scales) = (Stack::of_codes(found, 1)?, found.scales()?);
    let fit = fit(found, torchao, &stack, scales)?;
    Ok(stack.times(fit, Plane::of(codes), Plane::of(scales.dtype)))
}

fn integers(found: &Found<'_>, torchao: &Torchao) -> Result<Described, Error> {
    let (stack, scales) = (Stack::of_codes(found, 1)?, found.scales()?);
    if found.codes().dtype != I8 {
        return Err(found.bad_shape(format!("{} cannot have codes of type {}", torchao.class, found.codes().dtype)));
    }
    let fit = fit(found, torchao, &stack, scales)?;
    signed_bytes(found, &stack, fit)
}

fn groups(found: &Found<'_>, torchao: &Torchao, stack: &Stack, group: u64) -> Result<(Fit, Packing), Error> {
    let scales = found.scales()?;
    if !torchao.is_swizzled {
        return Ok((stack.fit_groups(found, scales, group)?, Packing::BYTES));
    }
    let (rows, cols) = (stack.rows.div_ceil(128) * 128, stack.cols.div_ceil(group).div_ceil(4) * 4);
    let is_tiled = scales.shape.iter().product::<u64>() == rows * cols;
    if !stack.lead.is_empty() || !is_tiled || !stack.cols.is_multiple_of(group) {
        return Err(found.bad_grid(scales, &stack.shape(), &[vec![rows, cols], vec![rows * cols]]));
    }
    Ok((Fit { block: [1, group], is_common: false }, Packing::Swizzled))
}

fn mx(found: &Found<'_>, torchao: &Torchao) -> Result<Described, Error> {
    let (code, per_byte) = match (found.codes().dtype, torchao.element) {
        (stored @ (F8E4M3Fn | F8E5M2), None) => (stored, 1),
        (stored @ (F8E4M3Fn | F8E5M2), Some(element)) if element == stored => (stored, 1),
        (U8, Some(F4E2M1)) => (F4E2M1, 2),
        (stored, element) => {
            let element = element.map_or("no element type".to_owned(), |element| element.to_string());
            return Err(found.bad_shape(format!("an MXTensor of {element} stored as {stored} is not supported")));
        }
    };
    let group = torchao.block.first().copied().filter(|group| *group != 0).unwrap_or(MX_GROUP);
    let stack = Stack::of_codes(found, per_byte)?;
    let (fit, packing) = groups(found, torchao, &stack, group)?;
    Ok(stack.times(fit, Plane::of(code), Plane::of(F8E8M0).packed(packing)))
}

fn nvfp4(found: &Found<'_>, torchao: &Torchao) -> Result<Described, Error> {
    let stack = Stack::of_codes(found, 2)?;
    let group = torchao.block.first().copied().filter(|group| *group != 0).unwrap_or(16);
    let (fit, packing) = groups(found, torchao, &stack, group)?;
    let planes = Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn).packed(packing), fit.block);
    let Some(global) = found.part(Part::Global) else { return Ok(stack.described(fit, planes)) };
    let whole = stack.fit(found, global, &[ScaleGrid::Tensor])?;
    let global = Some(Global { rule: GlobalRule::Times, block: whole.block });
    Ok(stack.described(Fit { is_common: whole.is_common, ..fit }, Planes { global, ..planes }))
}
