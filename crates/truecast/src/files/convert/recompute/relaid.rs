//! Verifies that carried-over codes and scales give the same values, by the reference definition
//! (`truecast_core::scaled`) on both sides.

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::recompute::Recomputed;
use crate::files::convert::relayout::Relaid;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::verify::difference::WrongElement;
use crate::files::verify::seen::{Findings, Seen, compare_pieces};
use std::ops::ControlFlow;
use truecast_core::DType;
use truecast_io::folder::Folder;

pub(crate) const PIECE: u64 = 1 << 16;

/// Compares the first `most` elements of source and result. `folders`: source, result. `shard`: file of the result's
/// tensor.
pub(crate) fn compare(
    relaid: &Relaid,
    folders: [&Folder; 2],
    shard: usize,
    most: u64,
    progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
) -> Result<Findings, Error> {
    let Relaid { quantized, layout, parts, .. } = relaid;
    let source = &folders[1].shards()[shard].source;
    let stored = |name: &str| {
        let tensor = source.tensors().iter().position(|tensor| &*tensor.name == name)?;
        Some(Stored { shard, tensor })
    };
    let found = parts.iter().map(|(part, name)| Some((*part, stored(name)?))).collect::<Option<Vec<_>>>();
    // A missing part, and a part of a wrong size, are reported by other checks.
    let is_whole = |(part, at): &(_, Stored)| {
        layout.part_bytes(*part).is_ok_and(|bytes| bytes == Some(source.tensors()[at.tensor].bytes()))
    };
    let Some(parts) = found.filter(|parts| parts.iter().all(is_whole)) else {
        return Ok(Findings::default());
    };
    let made = Quantized { layout: *layout, parts, ..quantized.clone() };
    let [old, new] = [Recomputed::new(folders[0], quantized), Recomputed::new(folders[1], &made)];
    let all = layout.elements().min(most);
    let compare = |first: u64| {
        let (mut seen, elements) = (Seen::new(), first..(first + PIECE).min(all));
        seen.by.definition = elements.end - first;
        let (expected, actual) = (old.read(elements.clone())?, new.read(elements)?);
        for (index, (expected, actual)) in (first..).zip(expected.into_iter().zip(actual)) {
            if expected != actual {
                let (expected, actual) = (u64::from(expected), u64::from(actual));
                seen.elements.wrong(index, || WrongElement { index, source: expected, expected, actual });
            }
        }
        Ok(seen)
    };
    let seen = compare_pieces((0..all).step_by(PIECE as usize), compare, 0.0, progress)?;
    Ok(seen.findings([&quantized.name; 3], (DType::F32, DType::F32)))
}
