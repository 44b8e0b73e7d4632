//! Proof that carried-over codes and scales give the same values, by the definition (`truecast_core::scaled`) on both
//! sides. The bytes are proved separately, like those of a copied tensor.

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::recompute::pieces::{of_elements, prove};
use crate::files::convert::recompute::{HeldRows, Recomputed};
use crate::files::convert::relayout::Relaid;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::verify::difference::{FileDifference, WrongElement};
use crate::files::verify::found::Found;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use truecast_core::DType;
use truecast_io::folder::Folder;

/// Elements per piece.
const PIECE: u64 = 1 << 16;

/// A tensor of the source and its result.
pub(crate) struct RelaidProof<'a> {
    pub folder: &'a Folder,
    pub relaid: &'a Relaid,
    pub result: &'a Folder,
}

impl RelaidProof<'_> {
    /// Differences in the elements, all or the first, and the number of elements. `shard` is the file of the result.
    pub fn compare(
        &self,
        shard: usize,
        is_sample: bool,
        stop: &AtomicBool,
    ) -> Result<(Option<FileDifference>, u64), Error> {
        let Relaid { quantized, layout, parts, .. } = self.relaid;
        let source = &self.result.shards()[shard].source;
        let stored = |name: &str| {
            let tensor = source.tensors().iter().position(|tensor| &*tensor.name == name)?;
            Some(Stored { shard, tensor })
        };
        let found = parts.iter().map(|(part, name)| Some((*part, stored(name)?))).collect::<Option<Vec<_>>>();
        // Missing and wrongly sized parts are reported elsewhere.
        let is_whole = |(part, at): &(_, Stored)| {
            layout.part_bytes(*part).is_ok_and(|bytes| bytes == Some(source.tensors()[at.tensor].bytes()))
        };
        let Some(parts) = found.filter(|parts| parts.iter().all(is_whole)) else { return Ok((None, 0)) };
        let made = Quantized { layout: *layout, parts, ..quantized.clone() };
        let sides =
            [Recomputed { folder: self.folder, quantized }, Recomputed { folder: self.result, quantized: &made }];
        let all = if is_sample { PIECE.min(layout.elements()) } else { layout.elements() };
        let matrix = sides.iter().find_map(Recomputed::together).unwrap_or(all.max(1));
        let mut found = Found::new();
        for (number, first) in (0..).zip((0..all).step_by(matrix as usize)) {
            let held = [hold(&sides[0], number)?, hold(&sides[1], number)?];
            let values = |i: usize, elements: Range<u64>| match &held[i] {
                Some(held) => held.of(elements),
                None => sides[i].of(elements),
            };
            let end = (first + matrix).min(all);
            let of_piece = |&first: &u64| {
                let mut found = Found::new();
                let elements = first..(first + PIECE).min(end);
                let (expected, actual) = (values(0, elements.clone())?, values(1, elements)?);
                for (index, (expected, actual)) in (first..).zip(expected.into_iter().zip(actual)) {
                    if expected != actual {
                        let (expected, actual) = (u64::from(expected), u64::from(actual));
                        found.wrong(index, || WrongElement { index, source: expected, expected, actual });
                    }
                }
                Ok::<_, Error>(found)
            };
            let pieces = (first..end).step_by(PIECE as usize);
            found = prove(pieces, found, of_piece, Found::merge, |_| {
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        }
        Ok((of_elements(&quantized.name, found, (DType::F32, DType::F32)), all))
    }
}

/// Loads a matrix, if rows cannot be read alone.
fn hold<'a>(side: &Recomputed<'a>, matrix: u64) -> Result<Option<HeldRows<'a>>, Error> {
    side.together().map(|_| side.matrix(matrix)).transpose()
}
