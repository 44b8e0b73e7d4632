//! Codes and scales of planes as blocks of NVFP4, fast. Formally equivalent to `truecast_core::scaled::Gathering`. Where they
//! are read from is not known here.

use crate::error::Cause;
use crate::stream::room;
use std::cell::RefCell;
use std::ops::Range;
use truecast_core::scaled::{Gathering, Part, Repacking, ScaledError};
use truecast_kernel::CastOptions;
use truecast_kernel::scaled::{Read, Repacker, gather};

thread_local! {
    /// Codes and scales that lay otherwise.
    static ROWS: RefCell<[Vec<u8>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// The planes of a tensor, codes and scales, as rows of nibbles and of bytes: what tensors have in common that are treated
/// alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Alike {
    pub how: [Repacking; 2],
    /// The bytes are those of rows already.
    pub is_same: [bool; 2],
}

/// The parts that blocks are made of.
pub(crate) const PARTS: [Part; 2] = [Part::Codes, Part::Scales];

/// What is planned for all tensors that are treated alike.
#[derive(Debug)]
pub(crate) struct Gatherer {
    alike: Alike,
    repackers: [Repacker; 2],
}

/// Rows of the whole tensor.
pub(crate) type Rows = Range<u64>;

impl Gatherer {
    /// Plans it.
    ///
    /// # Errors
    /// Planes that cannot be read row after row.
    pub fn new(alike: &Alike, exec: &CastOptions) -> Result<Gatherer, ScaledError> {
        let [codes, scales] = &alike.how;
        Ok(Gatherer { alike: *alike, repackers: [Repacker::new(codes, exec)?, Repacker::new(scales, exec)?] })
    }

    /// The bytes that some rows are made of.
    pub fn reads(&self, rows: &Rows) -> [Option<Read>; 2] {
        [0, 1].map(|plane| self.repackers[plane].read(PARTS[plane], 0, rows.clone()))
    }

    /// Calls `then` with the codes, the low nibble first, and the scales of rows that were read.
    pub fn planes<R>(
        &self,
        rows: &Rows,
        src: &[u8],
        then: impl FnOnce(&[u8], &[u8]) -> Result<R, Cause>,
    ) -> Result<R, Cause> {
        let [codes, _] = self.reads(rows);
        let src: [&[u8]; 2] = src.split_at(codes.map_or(0, |read| read.bytes()) as usize).into();
        ROWS.with_borrow_mut(|[codes, scales]| {
            then(self.plane(0, rows, src[0], codes)?, self.plane(1, rows, src[1], scales)?)
        })
    }

    fn plane<'a>(&self, plane: usize, rows: &Rows, src: &'a [u8], buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Cause> {
        if self.alike.is_same[plane] {
            return Ok(src);
        }
        let made = room(buffer, self.repackers[plane].bytes(rows.end - rows.start))?;
        self.repackers[plane].run(rows.clone(), src, made)?;
        Ok(made)
    }

    /// Makes the blocks of rows that were read. How many bytes `dst` begins with.
    pub fn run(&self, rows: &Rows, src: &[u8], dst: &mut Vec<u8>) -> Result<usize, Cause> {
        self.planes(rows, src, |codes, scales| {
            let dst = room(dst, codes.len() as u64 * 2 / Gathering::BLOCK.elements() * Gathering::BLOCK.bytes())?;
            gather(codes, scales, dst)?;
            Ok(dst.len())
        })
    }
}
