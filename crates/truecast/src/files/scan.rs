//! Reads tensors of equal length in parallel, in bounded memory.
//!
//! Each worker takes the next chunk and processes it while it is in the cache. Chunks are assigned in no fixed order,
//! so results must not depend on the order.

use crate::files::error::Error;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use truecast_core::{DType, Layout};
use truecast_io::{Source, TensorReader};
use truecast_kernel::Elements;
use truecast_kernel::parallel;

/// A tensor of a file. Its elements count as elements of another type with the same width.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub source: &'a Source,
    pub index: usize,
    pub dtype: DType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Index of the first element; a multiple of [`UNIT`].
    pub first: u64,
    pub len: u64,
}

impl Stretch {
    pub fn whole(len: u64) -> Vec<Stretch> {
        vec![Stretch { first: 0, len }]
    }
}

/// Number of elements that fill whole bytes at any width.
pub(crate) const UNIT: u64 = 64;

/// Number of bits of the largest chunk of the file that has the wider elements. It is half of a core's cache.
const CHUNK_BITS: u64 = 8 << 19;

const LEAST_CHUNK: u64 = 16_384;

/// A chunk is (index of the first element, elements on each side).
pub(crate) type Chunk<'a, const N: usize> = (u64, [Elements<'a>; N]);

/// Passes every chunk to `work`, and returns the result of each worker. The stretches must ascend without overlap.
/// `work` updates the worker's result, which begins as `start()`. `progress` gets the bytes read on the first side;
/// false stops.
///
/// # Errors
/// An unreadable file; [`Error::Interrupted`].
pub(crate) fn scan<const N: usize, T: Send>(
    sides: [Side<'_>; N],
    stretches: &[Stretch],
    start: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, Chunk<'_, N>) + Sync,
    progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
) -> Result<Vec<T>, Error> {
    let layouts = sides.map(|side| side.source.tensors()[side.index].layout);
    let bits = |i: usize| sides[i].dtype.bits_in(layouts[i]).unwrap_or(64) as u64;
    let widest = (0..N).map(bits).max().unwrap_or(1).max(1);
    let (len, threads) =
        (stretches.iter().map(|stretch| stretch.len).sum::<u64>(), rayon::current_num_threads() as u64);
    // Each thread gets one share, unless shares become too small.
    let share = len.div_ceil(threads).max(LEAST_CHUNK);
    let chunk = (share.min(CHUNK_BITS / widest) / UNIT * UNIT).max(UNIT);
    let mut readers = Vec::new();
    for side in sides {
        readers.push(side.source.reader(side.index)?);
    }
    let chunks: u64 = stretches.iter().map(|stretch| stretch.len.div_ceil(chunk)).sum();
    let input = Input { readers, stretches: stretches.to_vec(), next: 0, position: 0, chunk, progress };
    let input = Mutex::new(input);
    let worker = || {
        let (mut seen, mut buffers) = (start(), vec![Vec::new(); N]);
        let bytes =
            |i: usize, len| sides[i].dtype.bytes_in(layouts[i], len).expect("a container's layout fits its type");
        loop {
            // A panic ends all workers, so state under a poisoned lock is never used.
            let taken = input.lock().unwrap_or_else(PoisonError::into_inner).take(&mut buffers, &bytes);
            let Some(Stretch { first, len }) = taken? else { return Ok(seen) };
            let codes = std::array::from_fn(|i| elements(sides[i].dtype, layouts[i], len, &buffers[i]));
            work(&mut seen, (first, codes));
        }
    };
    match chunks.min(threads) {
        0 | 1 => Ok(vec![worker()?]),
        workers => parallel::map(workers as usize, |_| worker()).into_iter().collect(),
    }
}

fn elements(dtype: DType, layout: Layout, len: u64, bytes: &[u8]) -> Elements<'_> {
    Elements::with_layout(dtype, layout, len as usize, bytes).expect("the buffer was made for these elements")
}

struct Input<'a> {
    readers: Vec<TensorReader>,
    stretches: Vec<Stretch>,
    /// Index of the current stretch. `take` shortens the stretch by each chunk.
    next: usize,
    position: u64,
    chunk: u64,
    progress: &'a mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
}

impl Input<'_> {
    /// `None` at the end, and after an error.
    fn take(&mut self, buffers: &mut [Vec<u8>], bytes: &impl Fn(usize, u64) -> u64) -> Result<Option<Stretch>, Error> {
        while self.stretches.get(self.next).is_some_and(|stretch| stretch.len == 0) {
            self.next += 1;
        }
        let Some(Stretch { first, len: left }) = self.stretches.get(self.next).copied() else { return Ok(None) };
        let len = left.min(self.chunk);
        let skipped = first - self.position;
        let result = self.readers.iter_mut().zip(&mut *buffers).enumerate().try_for_each(|(i, (reader, buffer))| {
            if skipped > 0 {
                reader.skip(bytes(i, skipped))?;
            }
            buffer.resize(bytes(i, len) as usize, 0);
            reader.read(buffer)
        });
        if let Err(error) = result {
            self.stretches.clear();
            return Err(error.into());
        }
        self.position = first + len;
        self.stretches[self.next] = Stretch { first: first + len, len: left - len };
        if (self.progress)(bytes(0, len)).is_break() {
            self.stretches.clear();
            return Err(Error::Interrupted);
        }
        Ok(Some(Stretch { first, len }))
    }
}
