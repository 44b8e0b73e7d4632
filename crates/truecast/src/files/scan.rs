//! Reads tensors of equal length in step, on every core and in bounded memory, for work that writes nothing.
//!
//! Each worker takes the next chunk and works on it while it is in its core's cache. The assignment is not
//! deterministic, so results must add up in any order; work that needs an order uses `parts`.

use crate::files::error::Error;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use truecast_core::{DType, Layout};
use truecast_io::{Source, TensorReader};
use truecast_kernel::Elements;
use truecast_kernel::parallel;

/// A tensor of a file, reinterpreted as a type of its width.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub source: &'a Source,
    pub index: usize,
    pub dtype: DType,
}

/// A run of consecutive elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// First element: a multiple of [`UNIT`].
    pub first: u64,
    /// Number of elements.
    pub len: u64,
}

impl Stretch {
    /// All elements of a tensor as one stretch.
    pub fn whole(len: u64) -> Vec<Stretch> {
        vec![Stretch { first: 0, len }]
    }
}

/// Number of elements that fill whole bytes at any width.
pub(crate) const UNIT: u64 = 64;

/// Bits of a chunk on its wider side: at most half of a core's cache.
const CHUNK_BITS: u64 = 8 << 19;

/// Minimum number of elements per thread.
const LEAST_CHUNK: u64 = 16_384;

/// The first element of a chunk, and its elements on each side.
pub(crate) type Chunk<'a, const N: usize> = (u64, [Elements<'a>; N]);

/// Passes every chunk of the stretches to `work`, and returns the result of each worker. The stretches must ascend
/// without overlap. `work` adds a chunk to its worker's result, which begins as `start()`. `progress` gets the bytes
/// read on the first side and decides whether to continue.
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
    // One share per thread, unless shares become too small.
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

/// State of reading.
struct Input<'a> {
    readers: Vec<TensorReader>,
    stretches: Vec<Stretch>,
    /// Index of the current stretch, which is shortened as chunks are taken from it.
    next: usize,
    /// Next element of the readers.
    position: u64,
    chunk: u64,
    progress: &'a mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
}

impl Input<'_> {
    /// Reads the next chunk; `None` at the end, and after an error.
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
