//! All readable schemes, one package per file. A scheme states the names of tensors and the layout
//! (`docs/spec/checkpoints.md §4`). [`crate::detect`] finds the tensors of a scheme; [`crate::declared`] reads
//! configurations.

mod awq;
mod bitnet;
mod bitsandbytes;
mod comfy;
mod compressed_tensors;
mod deepseek_v4;
mod fp8;
mod gpt_oss;
mod gptq;
mod mlx;
mod modelopt;
mod quark;
mod torchao;

pub(crate) use comfy::SCALED_FP8_MARKER;
pub(crate) use gpt_oss::has_input_rows;
pub(crate) use torchao::{attributes as torchao_attributes, is_read as reads_torchao};

use crate::declared::keys::Keys;
use crate::scheme::Family;
use crate::table::Entry;

fn entries() -> impl Iterator<Item = &'static Entry> {
    const TABLES: &[&[Entry]] = &[
        fp8::ENTRIES,
        deepseek_v4::ENTRIES,
        gpt_oss::ENTRIES,
        compressed_tensors::ENTRIES,
        modelopt::ENTRIES,
        comfy::ENTRIES,
        awq::ENTRIES,
        gptq::ENTRIES,
        bitnet::ENTRIES,
        bitsandbytes::ENTRIES,
        mlx::ENTRIES,
        torchao::ENTRIES,
        quark::ENTRIES,
    ];
    TABLES.iter().copied().flatten()
}

pub(crate) fn entry(family: Family) -> Option<&'static Entry> {
    entries().find(|entry| entry.family == family)
}

/// Family that a `quant_method` declares, and the keys allowed next to it.
pub(crate) fn declared_by(method: &str) -> Option<(Family, &'static Keys)> {
    entries().find_map(|entry| entry.method.filter(|(name, _)| *name == method).map(|(_, keys)| (entry.family, keys)))
}
