//! Stages chained over tiles, with the packing at their ends.

use crate::caches::Caches;
use crate::level::Level;
use crate::options::CastOptions;
use crate::pack;
use crate::stage::{Refusal, Stage, Streaming, slot_bytes};
use crate::stream;
use truecast_core::{DType, Layout};

/// Elements per tile: two 8-byte tiles and two more for measuring fit L1 (`docs/kernels.md §1`).
pub(crate) const TILE: usize = 2048;

/// Bytes of the widest tile where nothing is measured.
const TILE_BYTES: usize = 16 << 10;

/// Bytes of the widest tile for results that go past the caches. Such a tile is so small that the CPU looks ahead to
/// the next tile while results leave.
const STREAMED_TILE_BYTES: usize = 4 << 10;

/// Callback for every tile while it is in L1: the number of elements, their bytes in the source and in the destination.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(usize, &[u8], &[u8]);

/// A chain of stages with the packing at its ends.
#[derive(Debug)]
pub(crate) struct Pipeline {
    src: DType,
    dst: DType,
    /// Level of the passes that pack and unpack.
    level: Level,
    /// Empty for a byte copy.
    stages: Vec<Box<dyn Stage>>,
    /// Conversion of the bytes of packed elements directly to the bytes of packed results.
    bytes: Option<Box<Pipeline>>,
}

/// Elements to be converted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub layout: Layout,
    pub bytes: &'a [u8],
}

/// Room for results.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub layout: Layout,
    pub bytes: &'a mut [u8],
}

/// Bytes of an array, and of one of its elements when it is not packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArraySize {
    pub element: usize,
    pub total: usize,
}

/// Two tiles that stages write alternately, and one for results on their way past the caches. They take no memory
/// before they are used.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    tiles: [Vec<u8>; 2],
    results: Vec<u8>,
}

/// Returns the first `bytes` bytes of a tile, which grows if necessary.
pub(crate) fn room(tile: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if tile.len() < bytes {
        tile.resize(bytes, 0);
    }
    &mut tile[..bytes]
}

/// Destination of results: the caches, or memory past them (`docs/kernels.md §8`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stores {
    /// Whether results go past the caches by the stage's own stores, if there is only one stage and it has such stores.
    pub by_stage: bool,
    /// Whether results go past the caches through a tile that stays in L1, unless the stage stores them past the
    /// caches.
    pub by_tile: bool,
}

impl Stores {
    pub const PLAIN: Stores = Stores { by_stage: false, by_tile: false };

    /// Chooses the stores for arrays of these sizes. Source: `docs/kernels.md §8`.
    pub fn new(exec: &CastOptions, src: ArraySize, dst: ArraySize, streaming: Streaming) -> Stores {
        /// Bytes that fit any last-level cache, so that its size need not be read.
        const SURELY_CACHED: usize = 1 << 20;
        let large = match exec.stream_above_bytes {
            Some(limit) => dst.total > limit,
            None => {
                dst.total > SURELY_CACHED && leaves_cache(src.total, dst.total, Caches::of_this_machine().counted_on())
            }
        };
        let wider = dst.total > src.total;
        let quarter = src.element == 4 && dst.element == 1;
        Stores { by_stage: large && streaming == Streaming::Itself, by_tile: large && (wider || quarter) }
    }
}

/// Whether most results would leave a last-level cache of `llc` bytes before the last result is written. This is so if
/// results are larger than the cache, or if source and results together are at least four times its size.
fn leaves_cache(src_bytes: usize, dst_bytes: usize, llc: u64) -> bool {
    dst_bytes as u64 > llc || src_bytes as u64 + dst_bytes as u64 >= 4 * llc
}

impl Pipeline {
    pub fn new(src: DType, dst: DType, level: Level, stages: Vec<Box<dyn Stage>>) -> Self {
        debug_assert!(stages.windows(2).all(|w| w[0].widths().1 == w[1].widths().0), "{src} to {dst}: {stages:?}");
        debug_assert!(stages.first().is_none_or(|s| s.widths().0 == slot_bytes(src)), "{src} to {dst}: {stages:?}");
        debug_assert!(stages.last().is_none_or(|s| s.widths().1 == slot_bytes(dst)), "{src} to {dst}: {stages:?}");
        Self { src, dst, level, stages, bytes: None }
    }

    /// Adds a conversion, if there is one, from the bytes of eight packed elements to the bytes of their packed
    /// results.
    pub fn with_bytes(self, bytes: Option<Pipeline>) -> Self {
        Self { bytes: bytes.map(Box::new), ..self }
    }

    pub fn prepare(&self, len: usize) {
        self.stages.iter().for_each(|s| s.prepare(len));
    }

    /// As [`Stage::streaming`] of the stage that reads the source.
    pub fn streaming(&self) -> Streaming {
        self.stages.first().map_or(Streaming::ByWidth, |stage| stage.streaming())
    }

    /// Returns the stage if there is only one.
    pub fn only_stage(&self) -> Option<&dyn Stage> {
        if let [stage] = &*self.stages { Some(&**stage) } else { None }
    }

    /// Converts `len` packed elements to packed results, which go into the caches.
    pub fn run_packed(&self, src: &[u8], dst: &mut [u8], len: usize, scratch: &mut Scratch) -> Result<(), Refusal> {
        let layout = Layout::Packed;
        let (src, dst) = (Source { layout, bytes: src }, Target { layout, bytes: dst });
        self.run(src, dst, len, Stores::PLAIN, scratch, None)
    }

    /// Converts `len` elements from one buffer to another, tile by tile.
    pub fn run(
        &self,
        src: Source<'_>,
        dst: Target<'_>,
        len: usize,
        stores: Stores,
        scratch: &mut Scratch,
        mut observer: Option<Observer<'_>>,
    ) -> Result<(), Refusal> {
        let ends = Ends::new(self, src.layout, dst.layout);
        let (src, dst) = (src.bytes, dst.bytes);
        let mut done = 0;
        if let (Some(bytes), None) = (&self.bytes, &observer)
            && ends.are_packed()
        {
            done = len - len % 8;
            let (src, dst) = (&src[ends.src_range(0, done)], &mut dst[ends.dst_range(0, done)]);
            let layout = Layout::Packed;
            let (from, to) = (Source { layout, bytes: src }, Target { layout, bytes: dst });
            bytes.run(from, to, src.len(), stores, scratch, None)?;
        }
        if let [stage] = &*self.stages
            && stores.by_stage
            && done == 0
            && ends.is_plain()
            && observer.is_none()
            && stage.run_in_place((ends.src_bits as u32, src), (ends.dst_bits as u32, dst), len, true)
        {
            stream::fence();
            return Ok(());
        }
        let single = ends.is_plain() && self.stages.len() <= 1 && observer.is_none() && !stores.by_tile;
        let step = match observer {
            _ if single => len.max(1),
            Some(_) => TILE,
            None if stores.by_tile => STREAMED_TILE_BYTES / self.widest(),
            None => TILE_BYTES / self.widest(),
        };
        let Scratch { tiles, results } = scratch;
        for first in (done..len).step_by(step) {
            let n = step.min(len - first);
            let s = &src[ends.src_range(first, n)];
            let d = &mut dst[ends.dst_range(first, n)];
            let result = if stores.by_tile { room(results, d.len()) } else { &mut *d };
            self.tile(&ends, s, result, n, tiles).map_err(|r| Refusal { index: r.index + first, ..r })?;
            if let Some(observer) = &mut observer {
                observer(n, s, result);
            }
            if stores.by_tile {
                stream::copy(self.level, &results[..d.len()], d);
            }
        }
        if stores.by_tile {
            stream::fence();
        }
        Ok(())
    }

    /// Bytes of the widest element of any stage.
    fn widest(&self) -> usize {
        let ends = slot_bytes(self.src).max(slot_bytes(self.dst));
        self.stages.iter().map(|s| s.widths().1).fold(ends, usize::max)
    }

    fn tile(
        &self,
        ends: &Ends,
        src: &[u8],
        dst: &mut [u8],
        n: usize,
        [a, b]: &mut [Vec<u8>; 2],
    ) -> Result<(), Refusal> {
        let (mut front, mut back) = (a, b);
        let mut left = self.stages.len() + ends.unpack.is_some() as usize + ends.pack.is_some() as usize;
        if left == 0 {
            match ends.code_mask {
                u8::MAX => dst.copy_from_slice(src),
                mask => dst.iter_mut().zip(src).for_each(|(d, s)| *d = s & mask),
            }
            if let (Some(last), used @ 1..) = (dst.last_mut(), n * ends.dst_bits % 8) {
                *last &= (1 << used) - 1;
            }
            return Ok(());
        }
        let mut input: Option<usize> = None; // bytes of the current tile in `front`; None: still in `src`
        if let Some(bits) = ends.unpack {
            left -= 1;
            let bytes = n * slot_bytes(self.src);
            if left == 0 {
                pack::unpack(self.level, bits, src, dst, n);
                return Ok(());
            }
            pack::unpack(self.level, bits, src, room(front, bytes), n);
            input = Some(bytes);
        }
        for (i, stage) in self.stages.iter().enumerate() {
            left -= 1;
            let bytes = n * stage.widths().1;
            let from: &[u8] = match input {
                Some(bytes) => &front[..bytes],
                None => src,
            };
            let to: &mut [u8] = if left == 0 { &mut *dst } else { room(back, bytes) };
            let (src_packed, dst_packed) =
                (i == 0 && ends.first_unpacks, i + 1 == self.stages.len() && ends.last_packs);
            if src_packed || dst_packed {
                let (src_bytes, dst_bytes) = stage.widths();
                let src_bits = if src_packed { ends.src_bits } else { 8 * src_bytes };
                let dst_bits = if dst_packed { ends.dst_bits } else { 8 * dst_bytes };
                let done = stage.run_in_place((src_bits as u32, from), (dst_bits as u32, to), n, false);
                assert!(done, "a stage that reads or writes packed elements does so in any buffer");
            } else {
                stage.run(from, to)?;
            }
            std::mem::swap(&mut front, &mut back);
            input = Some(bytes);
        }
        if let Some(bits) = ends.pack {
            let from: &[u8] = match input {
                Some(bytes) => &front[..bytes],
                None => src,
            };
            pack::pack(self.level, bits, from, dst, n);
        }
        Ok(())
    }
}

/// Packing of the elements at the two ends of a conversion.
#[derive(Debug)]
struct Ends {
    src_bits: usize,
    dst_bits: usize,
    /// Mask of the bits of a code, for a copy of narrow elements that take a byte each; otherwise all bits.
    code_mask: u8,
    /// Width of the packed source elements, if they need unpacking.
    unpack: Option<u32>,
    /// Whether the first stage reads packed elements in place.
    first_unpacks: bool,
    pack: Option<u32>,
    /// Whether the last stage packs its results.
    last_packs: bool,
}

impl Ends {
    fn new(pipeline: &Pipeline, src_layout: Layout, dst_layout: Layout) -> Self {
        let Pipeline { src, dst, ref stages, .. } = *pipeline;
        let bits = |dtype: DType, layout| dtype.bits_in(layout).expect("text is never planned");
        let packed = |bits: u32| (!bits.is_power_of_two() || bits < 8).then_some(bits);
        let (src_bits, dst_bits) = (bits(src, src_layout), bits(dst, dst_layout));
        let copy = stages.is_empty() && src_layout == dst_layout;
        let unpack = packed(src_bits).filter(|_| !copy);
        let pack = packed(dst_bits).filter(|_| !copy);
        let first_unpacks = unpack.is_some_and(|bits| stages.first().is_some_and(|s| s.reads_packed(bits)));
        let last_packs = pack.is_some_and(|bits| stages.last().is_some_and(|s| s.writes_packed(bits)));
        Self {
            src_bits: src_bits as usize,
            dst_bits: dst_bits as usize,
            code_mask: match src.storage_bits() {
                Some(bits @ 1..8) if src_layout == Layout::Bytes => (1 << bits) - 1,
                _ => u8::MAX,
            },
            unpack: unpack.filter(|_| !first_unpacks),
            first_unpacks,
            pack: pack.filter(|_| !last_packs),
            last_packs,
        }
    }

    fn is_plain(&self) -> bool {
        self.unpack.is_none() && self.pack.is_none()
    }

    /// Whether several elements share a byte, at both ends.
    fn are_packed(&self) -> bool {
        self.src_bits < 8 && self.dst_bits < 8
    }

    /// Returns the byte range of `n` source elements. `first` must be a multiple of 8, so that the range starts on a
    /// byte.
    fn src_range(&self, first: usize, n: usize) -> std::ops::Range<usize> {
        first * self.src_bits / 8..((first + n) * self.src_bits).div_ceil(8)
    }

    fn dst_range(&self, first: usize, n: usize) -> std::ops::Range<usize> {
        first * self.dst_bits / 8..((first + n) * self.dst_bits).div_ceil(8)
    }
}

#[cfg(test)]
mod tests {
    use super::leaves_cache;

    /// f32 to 4 bits: the results of 64 Mi elements are as large as a cache of 32 MiB, their sources eight times that.
    #[test]
    fn few_results_of_many_sources_leave_the_cache() {
        let (llc, mi) = (32 << 20, 1 << 20);
        assert!(leaves_cache(4 * 64 * mi, 64 * mi / 2, llc));
        assert!(!leaves_cache(4 * 16 * mi, 16 * mi / 2, llc));
        // Results above the cache always do; equal widths below it never.
        assert!(leaves_cache(mi, 33 * mi, llc));
        assert!(!leaves_cache(32 * mi, 32 * mi, llc));
    }
}
