//! Reading tensors of as many elements in step, on every core and in bounded memory, for work that looks but does not
//! write.
//!
//! Each worker takes the next chunk and works on it while it is in its core's cache. Which worker gets which chunk is not
//! determined, so what they see must add up in any order; work that needs an order reads `parts`.

use crate::files::error::Error;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use truecast_core::{DType, Layout};
use truecast_io::{Source, TensorReader};
use truecast_kernel::Elements;
use truecast_kernel::parallel;

/// A tensor of a file, its payload read as elements of a type of its width.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub source: &'a Source,
    pub index: usize,
    pub dtype: DType,
}

/// Elements of a tensor that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The first of them: a multiple of [`UNIT`].
    pub first: u64,
    /// How many.
    pub len: u64,
}

impl Stretch {
    /// All elements of a tensor.
    pub fn whole(len: u64) -> Vec<Stretch> {
        vec![Stretch { first: 0, len }]
    }
}

/// As many elements of any width fill whole bytes.
pub(crate) const UNIT: u64 = 64;

/// Bits of a chunk on its wider side: half of what a core's cache holds, or less.
const CHUNK_BITS: u64 = 8 << 19;

/// Elements that are not divided among several threads.
const LEAST_CHUNK: u64 = 16_384;

/// The first element of a chunk, and its elements on each side.
pub(crate) type Chunk<'a, const N: usize> = (u64, [Elements<'a>; N]);

/// Gives every chunk of the stretches, which ascend and do not overlap, to `work` with what its worker has seen so far, at
/// first `start()`. `progress` is told the bytes of the first side, and says whether to go
/// on.
///
/// # Errors
/// Reading; [`Error::Interrupted`].
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
    // Something for everybody, if it is worth the trouble.
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
            // A worker that panics takes the others with it, so what it leaves locked is never used.
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

/// Where reading has come to.
struct Input<'a> {
    readers: Vec<TensorReader>,
    stretches: Vec<Stretch>,
    /// The stretch that is read, of which the beginning may be gone.
    next: usize,
    /// The next element of the readers.
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
