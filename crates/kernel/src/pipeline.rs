//! Chains of stages over tiles, with packing and unpacking.

use crate::caches::Caches;
use crate::level::Level;
use crate::options::CastOptions;
use crate::pack;
use crate::stage::{Refusal, Stage, Streaming, slot_bytes};
use crate::stream;
use truecast_core::{DType, Layout};

/// Elements per tile: two 8-byte tiles, and two tiles for measuring, fit in L1 (`docs/kernels.md §1`).
pub(crate) const TILE: usize = 2048;

/// Maximum size of a tile without measuring.
const TILE_BYTES: usize = 16 << 10;

/// Maximum size of a tile whose results are stored past the caches. In a small tile, the CPU begins the next tile while
/// results are stored.
const STREAMED_TILE_BYTES: usize = 4 << 10;

/// Callback for every tile in L1: number of elements, source bytes, destination bytes.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(usize, &[u8], &[u8]);

#[derive(Debug)]
pub(crate) struct Pipeline {
    src: DType,
    dst: DType,
    /// Level of packing and unpacking.
    level: Level,
    /// Empty for a byte copy.
    stages: Vec<Box<dyn Stage>>,
    /// Pipeline from bytes of packed elements to bytes of packed results.
    bytes: Option<Box<Pipeline>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub layout: Layout,
    pub bytes: &'a [u8],
}

#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub layout: Layout,
    pub bytes: &'a mut [u8],
}

/// Number of bytes of an array, and number of bytes of one unpacked element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArraySize {
    pub element: usize,
    pub total: usize,
}

/// Two tiles that stages write alternately, and a tile for results to be stored past the caches. Memory is allocated at
/// the first use.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    tiles: [Vec<u8>; 2],
    results: Vec<u8>,
}

/// First `bytes` bytes of a tile, which grows if necessary.
pub(crate) fn room(tile: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if tile.len() < bytes {
        tile.resize(bytes, 0);
    }
    &mut tile[..bytes]
}

/// Stores that bypass the caches: non-temporal stores (`docs/kernels.md §8`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stores {
    /// Whether a single stage writes with non-temporal stores.
    pub by_stage: bool,
    /// Whether results are staged in an L1 tile, which is then copied with non-temporal stores.
    pub by_tile: bool,
}

impl Stores {
    pub const PLAIN: Stores = Stores { by_stage: false, by_tile: false };

    /// Source: `docs/kernels.md §8`.
    pub fn new(exec: &CastOptions, src: ArraySize, dst: ArraySize, streaming: Streaming) -> Stores {
        /// Size that fits in any last-level cache, so that the size of the cache need not be read.
        const SURELY_CACHED: usize = 1 << 20;
        let large = match exec.stream_above_bytes {
            Some(limit) => dst.total > limit,
            None => {
                dst.total > SURELY_CACHED
                    && stream::is_faster()
                    && leaves_cache(src.total, dst.total, Caches::of_this_machine().counted_on())
            }
        };
        let wider = dst.total > src.total;
        let quarter = src.element == 4 && dst.element == 1;
        Stores { by_stage: large && streaming == Streaming::Itself, by_tile: large && (wider || quarter) }
    }
}

/// Whether most results leave a last-level cache of `llc` bytes before the last result is written. True if the results
/// are larger than the cache, or source and results are at least four times larger.
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

    /// Adds a pipeline from the bytes of eight packed elements to the bytes of packed results.
    pub fn with_bytes(self, bytes: Option<Pipeline>) -> Self {
        Self { bytes: bytes.map(Box::new), ..self }
    }

    pub fn prepare(&self, len: usize) {
        self.stages.iter().for_each(|s| s.prepare(len));
    }

    /// [`Stage::streaming`] of the first stage.
    pub fn streaming(&self) -> Streaming {
        self.stages.first().map_or(Streaming::ByWidth, |stage| stage.streaming())
    }

    pub fn only_stage(&self) -> Option<&dyn Stage> {
        if let [stage] = &*self.stages { Some(&**stage) } else { None }
    }

    /// Converts `len` packed elements to packed results, stored in the caches. The policy must refuse no value.
    pub fn run_packed(&self, src: &[u8], dst: &mut [u8], len: usize, scratch: &mut Scratch) {
        let layout = Layout::Packed;
        self.run_total(Source { layout, bytes: src }, Target { layout, bytes: dst }, len, scratch);
    }

    /// Converts `len` elements; results are stored in the caches. The policy must refuse no value.
    pub fn run_total(&self, src: Source<'_>, dst: Target<'_>, len: usize, scratch: &mut Scratch) {
        self.run(src, dst, len, Stores::PLAIN, scratch, None).expect("the policy refuses no value");
    }

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

#[derive(Debug)]
struct Ends {
    src_bits: usize,
    dst_bits: usize,
    /// Mask of a code, for a copy of elements that are narrower than a byte and take a byte each. All ones for other
    /// work.
    code_mask: u8,
    /// Width of packed source elements that need unpacking.
    unpack: Option<u32>,
    first_unpacks: bool,
    pack: Option<u32>,
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

    fn are_packed(&self) -> bool {
        self.src_bits < 8 && self.dst_bits < 8
    }

    /// Byte range of `n` source elements. `first` must be a multiple of 8: the range then starts at a byte.
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

    /// Conversion from f32 to 4 bits. The results of 64 Mi elements are as large as a cache of 32 MiB, and the source
    /// is eight times larger.
    #[test]
    fn few_results_of_many_sources_leave_the_cache() {
        let (llc, mi) = (32 << 20, 1 << 20);
        assert!(leaves_cache(4 * 64 * mi, 64 * mi / 2, llc));
        assert!(!leaves_cache(4 * 16 * mi, 16 * mi / 2, llc));
        // Results larger than the cache always leave; with equal widths, smaller results never leave.
        assert!(leaves_cache(mi, 33 * mi, llc));
        assert!(!leaves_cache(32 * mi, 32 * mi, llc));
    }
}
