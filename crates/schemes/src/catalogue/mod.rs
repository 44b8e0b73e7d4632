//! Every scheme that is read, a file each: what its tensors are called, and the layout that they have together
//! (`docs/spec/checkpoints.md §4`).
//!
//! Which tensors a scheme may claim is decided in [`crate::detect`], what a configuration says in [`crate::declared`].

mod awq;
mod bitnet;
mod comfy;
mod compressed_tensors;
mod deepseek_v4;
mod fp8;
mod gpt_oss;
mod gptq;
mod mlx;
mod modelopt;
mod torchao;

pub(crate) use comfy::SCALED_FP8_MARKER;
pub(crate) use gpt_oss::has_input_rows;
pub(crate) use torchao::attributes as torchao_attributes;

use crate::scheme::Family;
use crate::table::Entry;

/// The entry of a family; `None` of tensors without a scheme.
pub(crate) fn entry(family: Family) -> Option<&'static Entry> {
    const TABLES: [&[Entry]; 11] = [
        fp8::ENTRIES,
        deepseek_v4::ENTRIES,
        gpt_oss::ENTRIES,
        compressed_tensors::ENTRIES,
        modelopt::ENTRIES,
        comfy::ENTRIES,
        awq::ENTRIES,
        gptq::ENTRIES,
        bitnet::ENTRIES,
        mlx::ENTRIES,
        torchao::ENTRIES,
    ];
    TABLES.into_iter().flatten().find(|entry| entry.family == family)
}
