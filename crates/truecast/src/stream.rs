//! Reading, working and writing at the same time, in bounded memory.
//!
//! A chunk of a tensor goes from a reading thread to the caller's thread (which converts it, on every core) to a writing
//! thread, in buffers that circulate. Nothing here knows what is converted.

use crate::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use truecast_io::{Source, Writer};

/// Chunks in flight: one being read, one converted, one written.
const SLOTS: usize = 3;
/// A chunk's elements are a multiple of this, so that counts do not depend on chunks (`docs/spec/checkpoints.md §10`).
const CHUNK_UNIT: u64 = 65_536;
/// Larger chunks gain nothing and leave the cache.
const MAX_CHUNK_BYTES: u64 = 4 << 20;
/// One unit of the widest elements on both sides, in every slot.
pub(crate) const LEAST_MEMORY: u64 = SLOTS as u64 * 2 * 8 * CHUNK_UNIT;

/// A tensor to be streamed.
pub(crate) struct Item {
    /// Index in the source.
    pub index: usize,
    /// Elements.
    pub len: u64,
    /// Bits of an element on either side.
    pub src_bits: u32,
    pub dst_bits: u32,
}

impl Item {
    /// Elements per chunk, so that all slots together stay within `max_memory` bytes.
    fn chunk(&self, max_memory: u64) -> u64 {
        let per_unit = |bits: u32| CHUNK_UNIT * bits as u64 / 8;
        let both = per_unit(self.src_bits) + per_unit(self.dst_bits);
        let wider = per_unit(self.src_bits).max(per_unit(self.dst_bits));
        let units = (max_memory / SLOTS as u64 / both).min(MAX_CHUNK_BYTES / wider).max(1);
        units * CHUNK_UNIT
    }
}

/// A chunk on its way.
#[derive(Default)]
struct Slot {
    item: usize,
    len: u64,
    src: Vec<u8>,
    dst: Vec<u8>,
}

/// Streams every item through `work`, which is given (position of the item, elements, source bytes, result bytes) for
/// one chunk after the other, in order.
///
/// # Errors
/// The first of reading, working or writing to fail; [`Error::Interrupted`] once `stop` is set.
pub(crate) fn run(
    source: &Source,
    writer: Writer,
    items: &[Item],
    max_memory: u64,
    stop: &AtomicBool,
    mut work: impl FnMut(usize, u64, &[u8], &mut [u8]) -> Result<(), Error>,
) -> Result<Writer, Error> {
    let (to_reader, free) = channel::<Slot>();
    let (to_worker, filled) = channel::<Slot>();
    let (to_writer, done) = channel::<Slot>();
    for _ in 0..SLOTS {
        // The receiver is alive in this function.
        to_reader.send(Slot::default()).ok();
    }
    thread::scope(|scope| {
        let reading = scope.spawn(move || read(source, items, max_memory, &free, &to_worker));
        let writing = scope.spawn(move || write(writer, &done, &to_reader));
        let mut worked = Ok(());
        for mut slot in filled {
            if stop.load(Ordering::Relaxed) {
                worked = Err(Error::Interrupted);
                break;
            }
            let bytes = (slot.len * items[slot.item].dst_bits as u64).div_ceil(8);
            fit(&mut slot.dst, bytes);
            worked = work(slot.item, slot.len, &slot.src, &mut slot.dst);
            if worked.is_err() || to_writer.send(slot).is_err() {
                break;
            }
        }
        drop(to_writer);
        let written = writing.join().expect("writing does not panic");
        let read = reading.join().expect("reading does not panic");
        worked.and(read)?;
        Ok(written?)
    })
}

/// Sets a buffer's length without the spare capacity that growing in place would take.
fn fit(buffer: &mut Vec<u8>, bytes: u64) {
    if buffer.capacity() < bytes as usize {
        *buffer = Vec::with_capacity(bytes as usize);
    }
    buffer.resize(bytes as usize, 0);
}

/// Ends early when the worker is gone.
fn read(
    source: &Source,
    items: &[Item],
    max_memory: u64,
    free: &Receiver<Slot>,
    to_worker: &Sender<Slot>,
) -> Result<(), Error> {
    for (at, item) in items.iter().enumerate() {
        let chunk = item.chunk(max_memory);
        let mut reader = source.reader(item.index)?;
        let mut left = item.len;
        while left > 0 {
            let Ok(mut slot) = free.recv() else { return Ok(()) };
            slot.item = at;
            slot.len = left.min(chunk);
            fit(&mut slot.src, (slot.len * item.src_bits as u64).div_ceil(8));
            reader.read(&mut slot.src)?;
            left -= slot.len;
            if to_worker.send(slot).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn write(mut writer: Writer, done: &Receiver<Slot>, to_reader: &Sender<Slot>) -> Result<Writer, truecast_io::Error> {
    for slot in done {
        writer.write(&slot.dst)?;
        to_reader.send(slot).ok(); // The reader may have read everything.
    }
    Ok(writer)
}
