//! Values before and after codes and scales were carried over, both by the definition (`truecast_core::scaled`): they are the
//! same bits. That the bytes are those that they should be is proved as of any tensor that is copied.

use super::dense::Quantised;
use super::prove::Values;
use super::relayout::Relaid;
use super::stored::Stored;
use crate::error::Error;
use crate::verify::difference::{FileDifference, WrongElement};
use std::sync::atomic::{AtomicBool, Ordering};
use truecast_core::DType;
use truecast_io::folder::Folder;

/// Elements that are made together.
const PIECE: u64 = 1 << 18;

/// A tensor of the source and what became of it.
pub(super) struct RelaidProof<'a> {
    pub folder: &'a Folder,
    pub relaid: &'a Relaid,
    /// The result.
    pub result: &'a Folder,
}

impl RelaidProof<'_> {
    /// What differs in the elements, all or the first of them, and how many those are. `shard` is the file of the result.
    pub fn compare(
        &self,
        shard: usize,
        is_sample: bool,
        stop: &AtomicBool,
    ) -> Result<(Option<FileDifference>, u64), Error> {
        let Relaid { quantised, layout, parts, .. } = self.relaid;
        let source = &self.result.shards()[shard].source;
        let stored = |name: &str| {
            let tensor = source.tensors().iter().position(|tensor| tensor.name == *name)?;
            Some(Stored { shard, tensor })
        };
        let found = parts.iter().map(|(part, name)| Some((*part, stored(name)?))).collect::<Option<Vec<_>>>();
        // What is missing or of another size was told.
        let is_right = |(part, at): &(_, Stored)| {
            layout.part_bytes(*part).is_ok_and(|bytes| bytes == Some(source.tensors()[at.tensor].bytes()))
        };
        let Some(parts) = found.filter(|parts| parts.iter().all(is_right)) else { return Ok((None, 0)) };
        let made = Quantised { layout: *layout, parts, ..quantised.clone() };
        let sides = [Values { folder: self.folder, quantised }, Values { folder: self.result, quantised: &made }];
        let all = if is_sample { PIECE.min(layout.elements()) } else { layout.elements() };
        let (mut first, mut count, mut wrong) = (0, 0, None);
        while first < all {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let end = (first + PIECE).min(all);
            let (expected, actual) = (sides[0].of(first..end)?, sides[1].of(first..end)?);
            for (index, (expected, actual)) in (first..).zip(expected.into_iter().zip(actual)) {
                if expected != actual {
                    let (expected, actual) = (u64::from(expected), u64::from(actual));
                    wrong = wrong.or(Some(WrongElement { index, source: expected, expected, actual }));
                    count += 1;
                }
            }
            first = end;
        }
        let (tensor, types) = (quantised.name.clone(), (DType::F32, DType::F32));
        Ok((wrong.map(|first| FileDifference::Elements { tensor, count, first, types }), all))
    }
}
