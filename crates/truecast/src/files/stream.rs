//! Reading, working and writing on every core, in bounded memory.
//!
//! Each worker takes the next chunk, works on it while it is in its core's cache, and writes it in turn. Reading and
//! writing are sequential and in order, so containers that can only be streamed need no special case. The kind of work
//! is up to the caller.

use crate::files::error::{Error, NoMemory};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A chunk's length is a multiple of this, so that counts do not depend on chunks (`docs/spec/checkpoints.md §10`);
/// wide text has a smaller unit.
const CHUNK_UNIT: u64 = 65_536;
/// Number of elements that fill whole bytes at any width.
const LEAST_UNIT: u64 = 8;
/// Limit on the bytes of a chunk: larger chunks exceed a core's cache.
const MAX_CHUNK_BYTES: u64 = 1 << 20;
/// Memory for one unit of the widest elements on both sides.
pub(crate) const LEAST_MEMORY: u64 = 2 * 8 * CHUNK_UNIT;

/// A tensor to be streamed.
pub(crate) struct Item {
    /// Index in the source.
    pub index: usize,
    /// Number of elements.
    pub len: u64,
    /// Bits per element on both sides.
    pub src_bits: u32,
    pub dst_bits: u32,
    /// Divisor of every chunk's length, independent of the memory limit.
    pub unit: u64,
    /// A chunk ends at every multiple of `period`, counted in elements.
    pub period: u64,
}

impl Item {
    /// Creates an item whose chunks may end wherever bytes and counts allow.
    pub fn new(index: usize, len: u64, src_bits: u32, dst_bits: u32) -> Item {
        let fitting = 8 * LEAST_MEMORY / (src_bits as u64 + dst_bits as u64).max(1);
        let power_of_two = 1 << fitting.max(1).ilog2();
        let unit = u64::clamp(power_of_two, LEAST_UNIT, CHUNK_UNIT);
        Item { index, len, src_bits, dst_bits, unit, period: u64::MAX }
    }

    /// Bytes per unit on both sides.
    pub fn least_memory(&self) -> u64 {
        self.unit * (self.src_bits as u64 + self.dst_bits as u64) / 8
    }

    /// Bytes of `len` source elements.
    pub fn src_bytes(&self, len: u64) -> u64 {
        (len * self.src_bits as u64).div_ceil(8)
    }

    /// Bytes of `len` results.
    pub fn dst_bytes(&self, len: u64) -> u64 {
        (len * self.dst_bits as u64).div_ceil(8)
    }

    /// Elements per chunk: both sides must fit in `memory`.
    fn chunk(&self, memory: u64) -> u64 {
        let wider = (self.unit * self.src_bits.max(self.dst_bits) as u64 / 8).max(1);
        let units = (memory / self.least_memory().max(1)).min(MAX_CHUNK_BYTES / wider).max(1);
        units * self.unit
    }
}

/// Limits of streaming.
pub(crate) struct Limits<'a> {
    pub threads: NonZeroUsize,
    /// Total bytes of buffers, at least [`LEAST_MEMORY`] and [`Item::least_memory`] of each item.
    pub max_memory: u64,
    /// Ends the work early once set.
    pub stop: &'a AtomicBool,
}

/// A chunk of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// Position of the item in the list.
    pub item: usize,
    /// Its first element.
    pub first: u64,
    /// Number of elements.
    pub len: u64,
    /// Number of chunks before it.
    number: u64,
}

/// Streams every item through `work`, in chunks. `work` runs on any worker. Its arguments are the chunk, its source
/// bytes, and a buffer. It returns a result and the number of result bytes at the start of the buffer. `read` fills the
/// start of a buffer with a chunk's source and returns the number of bytes. `write` takes a chunk's result bytes. `done`
/// gets the result of `work`, and the number of source bytes. Each of `read`, `write` and `done` runs in the order of
/// the data, one call at a time.
///
/// # Errors
/// The first error of reading, working or writing; [`Error::Interrupted`] once `stop` is set.
pub(crate) fn stream_chunks<W, E: From<Error> + Send>(
    read: impl FnMut(Chunk, &mut Vec<u8>) -> Result<usize, Error> + Send,
    write: impl FnMut(Chunk, &[u8]) -> Result<(), Error> + Send,
    items: &[Item],
    limits: &Limits<'_>,
    work: impl Fn(Chunk, &[u8], &mut Vec<u8>) -> Result<(W, usize), E> + Sync,
    done: impl FnMut(Chunk, W, u64) + Send,
) -> Result<(), E> {
    let least = items.iter().map(Item::least_memory).fold(LEAST_MEMORY, u64::max);
    let workers = (limits.max_memory / least).clamp(1, limits.threads.get() as u64);
    let memory = limits.max_memory / workers;
    let left = items.first().map_or(0, |item| item.len);
    let input = Mutex::new(Input { read, items, memory, at: 0, left, taken: 0 });
    let output = Mutex::new(Output { write, done, written: 0, failed: None, has_panicked: false });
    let turn = Condvar::new();
    let worker = || {
        let _alarm = Alarm { output: &output, turn: &turn };
        let (mut src, mut dst) = (Vec::new(), Vec::new());
        loop {
            let taken = locked(&input).take(&mut src, limits.stop);
            let (chunk, src) = match taken {
                Ok(Some(taken)) => taken,
                Ok(None) => return,
                Err(error) => {
                    locked(&output).failed.get_or_insert(error.into());
                    return turn.notify_all();
                }
            };
            let worked = work(chunk, src, &mut dst);
            let is_early = |output: &mut Output<_, _, _>| output.written != chunk.number && !output.is_over();
            let mut output = turn.wait_while(locked(&output), is_early).unwrap_or_else(PoisonError::into_inner);
            if output.is_over() {
                return;
            }
            output.put(chunk, worked, src, &dst);
            turn.notify_all();
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers {
            // If the system is out of threads, the existing ones do the work.
            if thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });
    let failed = output.into_inner().unwrap_or_else(PoisonError::into_inner).failed;
    failed.map_or(Ok(()), Err)
}

/// Guard that stops the other workers if its worker panics, because the worker's chunk will never be written. The scope
/// then panics too.
struct Alarm<'a, S, D, E> {
    output: &'a Mutex<Output<S, D, E>>,
    turn: &'a Condvar,
}

impl<S, D, E> Drop for Alarm<'_, S, D, E> {
    fn drop(&mut self) {
        if thread::panicking() {
            locked(self.output).has_panicked = true;
            self.turn.notify_all();
        }
    }
}

/// Locks a mutex, even a poisoned one: after a panic the other workers stop and do not use the state.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of reading.
struct Input<'a, F> {
    read: F,
    items: &'a [Item],
    memory: u64,
    at: usize,
    /// Unread elements of the item.
    left: u64,
    taken: u64,
}

impl<F: FnMut(Chunk, &mut Vec<u8>) -> Result<usize, Error>> Input<'_, F> {
    /// Reads the next chunk into `buffer` and returns its bytes; `None` at the end, and for all workers after an error.
    fn take<'a>(&mut self, buffer: &'a mut Vec<u8>, stop: &AtomicBool) -> Result<Option<(Chunk, &'a [u8])>, Error> {
        let taken = self.read_chunk(buffer, stop);
        if taken.is_err() {
            (self.at, self.left) = (self.items.len(), 0);
        }
        taken
    }

    fn read_chunk<'a>(
        &mut self,
        buffer: &'a mut Vec<u8>,
        stop: &AtomicBool,
    ) -> Result<Option<(Chunk, &'a [u8])>, Error> {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        while self.left == 0 {
            self.at = (self.at + 1).min(self.items.len());
            let Some(item) = self.items.get(self.at) else { return Ok(None) };
            self.left = item.len;
        }
        let item = &self.items[self.at];
        let first = item.len - self.left;
        let len = self.left.min(item.chunk(self.memory)).min(item.period - first % item.period);
        let chunk = Chunk { item: self.at, first, len, number: self.taken };
        let bytes = (self.read)(chunk, buffer)?;
        self.left -= len;
        self.taken += 1;
        Ok(Some((chunk, &buffer[..bytes])))
    }
}

/// State of writing.
struct Output<S, D, E> {
    write: S,
    done: D,
    written: u64,
    failed: Option<E>,
    has_panicked: bool,
}

impl<S, D, E> Output<S, D, E> {
    /// True if no more chunks will be written.
    fn is_over(&self) -> bool {
        self.failed.is_some() || self.has_panicked
    }

    /// Writes the results of a chunk whose turn it is.
    fn put<W>(&mut self, chunk: Chunk, worked: Result<(W, usize), E>, src: &[u8], dst: &[u8])
    where
        S: FnMut(Chunk, &[u8]) -> Result<(), Error>,
        D: FnMut(Chunk, W, u64),
        E: From<Error>,
    {
        let written = worked.and_then(|(result, bytes)| {
            (self.write)(chunk, &dst[..bytes])?;
            Ok(result)
        });
        match written {
            Ok(result) => (self.done)(chunk, result, src.len() as u64),
            Err(error) => self.failed = Some(error),
        }
        self.written += 1;
    }
}

/// Returns the first `bytes` of a buffer, which grows if it is shorter. A grown buffer is zeroed and has no spare
/// capacity.
pub(crate) fn room(buffer: &mut Vec<u8>, bytes: u64) -> Result<&mut [u8], NoMemory> {
    let denied = || NoMemory { bytes };
    let len = usize::try_from(bytes).map_err(|_| denied())?;
    if buffer.len() < len {
        // Free the old buffer first: only one counts against the limit.
        *buffer = Vec::new();
        buffer.try_reserve_exact(len).map_err(|_| denied())?;
        buffer.resize(len, 0);
    }
    Ok(&mut buffer[..len])
}

/// Allocates zeros. The number comes from a file, so too large a number is an error.
pub(crate) fn zeros(bytes: u64) -> Result<Vec<u8>, NoMemory> {
    truecast_io::zeros(bytes).map_err(|_| NoMemory { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_no_machine_has_is_an_error() {
        let mut buffer = vec![1; 3];
        let error = Error::from(room(&mut buffer, 1 << 60).unwrap_err());
        assert_eq!(error.kind(), crate::ErrorKind::System);
        assert!(error.to_string().contains("1152921504606846976 bytes"), "{error}");
        assert_eq!(room(&mut buffer, 2).unwrap(), [0, 0]);
    }

    /// A panic of one worker ends the others, which would otherwise wait for its chunk.
    #[test]
    fn a_panic_ends_all_workers() {
        let items: Vec<Item> = (0..64).map(|index| Item::new(index, 1000, 8, 8)).collect();
        let stop = AtomicBool::new(false);
        let limits = Limits { threads: NonZeroUsize::new(4).unwrap(), max_memory: 1 << 30, stop: &stop };
        let read = |chunk: Chunk, buffer: &mut Vec<u8>| Ok(room(buffer, chunk.len)?.len());
        let work = |chunk: Chunk, _: &[u8], dst: &mut Vec<u8>| {
            assert!(chunk.item != 5, "a panic on purpose");
            room(dst, 1000)?;
            Ok::<_, Error>(((), 1000))
        };
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            stream_chunks(read, |_, _| Ok(()), &items, &limits, work, |_, (), _| {}).is_ok()
        }));
        assert!(ran.is_err());
    }
}
