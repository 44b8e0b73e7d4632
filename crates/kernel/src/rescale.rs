//! [`Rescaler`]: TOSA's RESCALE, planned once. Formally equivalent to mapping [`RescaleSpec::one`] over the elements.
//!
//! 8-bit inputs with one scale take the table of results of casts; everything else is one loop over `v * m + half >> s`,
//! compiled for each level, with multiplier and shift in registers or from arrays as long as several rows. What must not
//! happen (a requirement that fails) is gathered in the loop as bits, unless no input can make it happen, and looked up by
//! the definition afterwards. 8-bit inputs with many scales are calculated in 32 bits, if shorter multipliers are found
//! that give the same results.
//! Reference: `docs/kernels.md §4.19`.

use crate::buf::{Elements, ElementsMut};
use crate::error::CastError;
use crate::level::{Level, Task};
use crate::options::CastOptions;
use crate::pack;
use crate::parallel::{MIN_BYTES_PER_THREAD, Pieces, map_pieces};
use crate::pipeline::{Stores, TILE};
use crate::slot::Slot;
use crate::stage::{Stage, Streaming, slot_bytes};
use crate::stream;
use crate::table::table_of;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::OnceLock;
use truecast_core::rescale::{Channel, Requirement, RescaleSpec, Rescaled, RoundingMode};
use truecast_core::{DType, IntFormat};

/// What happened to the elements of a RESCALE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RescaleCounts {
    /// Elements.
    pub elements: u64,
    /// Elements whose value did not fit the output type.
    pub saturated: u64,
}

/// Why there is no result. The destination's content is then unspecified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RescaleError {
    /// The buffers do not fit.
    #[error(transparent)]
    Buffer(#[from] CastError),
    /// A tensor per channel ends within a row.
    #[error("{len} elements are no whole number of rows of {channels} channels")]
    Rows {
        /// Elements.
        len: usize,
        /// Channels.
        channels: usize,
    },
    /// An i64 is no i48.
    #[error("element {index} does not fit in 48 bits")]
    Wide {
        /// Index in the tensor of the first such element.
        index: u64,
    },
    /// The result of the whole tensor is unpredictable.
    #[error("unpredictable from element {index} on: {requirement}")]
    Unpredictable {
        /// Index in the tensor of the first element that says so.
        index: u64,
        /// The requirement that does not hold for it.
        requirement: Requirement,
    },
}

/// A planned RESCALE: immutable, to be used from any number of threads.
///
/// # Examples
/// ```
/// use truecast_core::{format::IntFormat, rescale::*, DType};
/// use truecast_kernel::{Elements, ElementsMut, CastOptions, Rescaler};
/// let int = |bits| IntFormat { bits, signed: true };
/// let spec = RescaleSpec {
///     input: int(32), output: int(8), scale32: true, rounding: RoundingMode::Single,
///     channels: vec![Channel { multiplier: 1 << 30, shift: 31 }], input_zp: 0, output_zp: 0,
/// };
/// let src: Vec<u8> = [3i32, -3, 1000].iter().flat_map(|v| v.to_le_bytes()).collect();
/// let mut dst = [0; 3];
/// let counts = Rescaler::new(&spec, &CastOptions::default())
///     .rescale(Elements::new(DType::I32, 3, &src)?, ElementsMut::new(DType::I8, 3, &mut dst)?)?;
/// assert_eq!((dst, counts.saturated), ([2, 0xff, 127], 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rescaler {
    spec: RescaleSpec,
    exec: CastOptions,
    input: DType,
    output: DType,
    /// `None` if the result is unpredictable whatever the elements are.
    pass: Option<Box<dyn Pass>>,
    /// What is worth its planning for many rows only.
    in_32_bits: OnceLock<Option<Box<dyn Pass>>>,
}

/// Rows from which on it pays to look for shorter multipliers.
const MANY_ROWS: usize = 512;

impl Rescaler {
    /// Plans a RESCALE.
    #[must_use]
    pub fn new(spec: &RescaleSpec, exec: &CastOptions) -> Rescaler {
        let (input, output) = (signless(spec.input), signless(spec.output));
        let pass = plan(spec, exec.level);
        Rescaler { spec: spec.clone(), exec: *exec, input, output, pass, in_32_bits: OnceLock::new() }
    }

    /// The fastest pass for so many elements.
    fn pass(&self, len: usize) -> Option<&dyn Pass> {
        let pass = self.pass.as_deref()?;
        if self.input != DType::I8 || len / self.spec.channels.len() < MANY_ROWS {
            return Some(pass);
        }
        Some(self.in_32_bits.get_or_init(|| in_32_bits(&self.spec, self.exec.level)).as_deref().unwrap_or(pass))
    }

    /// Rescales `src` into `dst`.
    ///
    /// Shapes: `src.len() == dst.len()`, in elements, a whole number of rows; types are signless (i8, i16, i32, i48), and
    /// i48 may also stand in i64. Result: the same bits on every level and number of threads.
    ///
    /// # Errors
    /// [`RescaleError::Buffer`] if the buffers do not fit; [`RescaleError::Unpredictable`] with the first element for
    /// which a requirement does not hold; [`RescaleError::Wide`].
    pub fn rescale(&self, src: Elements<'_>, dst: ElementsMut<'_>) -> Result<RescaleCounts, RescaleError> {
        let (len, channels) = (src.len(), self.spec.channels.len());
        match len.is_multiple_of(channels) {
            true => self.rescale_part(0, src, dst),
            false => Err(RescaleError::Rows { len, channels }),
        }
    }

    /// Rescales the elements of a tensor from `first` on: a part may begin and end within a row.
    ///
    /// # Errors
    /// As [`Rescaler::rescale`]; an index counts from the beginning of the tensor.
    pub fn rescale_part(
        &self,
        first: u64,
        src: Elements<'_>,
        dst: ElementsMut<'_>,
    ) -> Result<RescaleCounts, RescaleError> {
        let source = src.dtype();
        let input = if (self.input, source) == (DType::I48, DType::I64) { source } else { self.input };
        for (expected, got) in [(input, source), (self.output, dst.dtype())] {
            if expected != got {
                return Err(CastError::Type { expected, got }.into());
            }
        }
        if src.len() != dst.len() {
            return Err(CastError::Count { src: src.len(), dst: dst.len() }.into());
        }
        let len = src.len();
        if len == 0 {
            return Ok(RescaleCounts::default());
        }
        let row_at = self.spec.channel_of(first);
        let Some(pass) = self.pass(len) else { return self.by_definition(first, src, dst.into_bytes()) };
        let (src_bytes, dst_bytes) = (bytes_of(source), bytes_of(self.output));
        let stores = Stores::of(
            &self.exec,
            (slot_bytes(self.input), src.bytes().len()),
            (dst_bytes, dst.byte_len()),
            Streaming::ByWidth,
        );
        let piece = self.piece(len);
        let rescale = |room: &mut Room, i: usize, s: &[u8], d: &mut [u8]| {
            let codes = Elements::new(source, d.len() / dst_bytes, s).expect("a piece is of whole elements");
            let rescaled = self.piece_of(pass, (row_at, i * piece), (codes, d), stores, room);
            rescaled.map_err(|(at, n)| self.first_failure(first, src, at, n))
        };
        let pieces = Pieces {
            src: src.bytes(),
            dst: dst.into_bytes(),
            src_bytes: piece * src_bytes,
            dst_bytes: piece * dst_bytes,
        };
        let saturated: Result<Vec<u64>, RescaleError> = map_pieces(self.exec.threads, pieces, Room::default, rescale);
        Ok(RescaleCounts { elements: len as u64, saturated: saturated?.iter().sum() })
    }

    /// Elements that one thread takes in one go.
    fn piece(&self, len: usize) -> usize {
        let at_least = MIN_BYTES_PER_THREAD / slot_bytes(self.input).max(slot_bytes(self.output));
        len.div_ceil(self.exec.threads.get()).max(at_least).next_multiple_of(TILE)
    }

    /// Rescales a piece that begins at element `first` of a part that begins at index `row_at` of a row: how many
    /// saturated, or where and how long a tile is in which a requirement does not hold.
    fn piece_of(
        &self,
        pass: &dyn Pass,
        (row_at, first): (usize, usize),
        (src, dst): (Elements<'_>, &mut [u8]),
        stores: Stores,
        room: &mut Room,
    ) -> Result<u64, (usize, usize)> {
        let (src_bytes, dst_bytes) = (bytes_of(src.dtype()), bytes_of(self.output));
        let mut saturated = 0;
        let tiles = src.bytes().chunks(TILE * src_bytes).zip(dst.chunks_mut(TILE * dst_bytes));
        for (i, (s, d)) in tiles.enumerate() {
            let (at, n) = (first + i * TILE, d.len() / dst_bytes);
            let s = match src.dtype() {
                DType::I48 => {
                    let wide = &mut room.wide.get_or_insert_with(|| Box::new([0; 8 * TILE]))[..8 * n];
                    pack::unpack(self.exec.level, 48, s, wide, n);
                    &*wide
                }
                _ => s,
            };
            let tally = if stores.by_tile {
                let results = &mut room.results.get_or_insert_with(|| Box::new([0; 4 * TILE]))[..d.len()];
                let tally = pass.run(row_at + at, s, results);
                stream::copy(self.exec.level, results, d);
                tally
            } else {
                pass.run(row_at + at, s, d)
            };
            if tally.failed || (src.dtype() == DType::I64 && self.exec.level.run(AnyWide(s))) {
                return Err((at, n));
            }
            saturated += tally.saturated;
        }
        if stores.by_tile {
            stream::fence();
        }
        Ok(saturated)
    }

    /// The first element of a tile for which a requirement does not hold, by the definition. `first` is the index in the
    /// tensor of the part `src`, `at` that of the tile in the part.
    fn first_failure(&self, first: u64, src: Elements<'_>, at: usize, n: usize) -> RescaleError {
        let mut tile = (at..at + n).map(|i| self.one(first + i as u64, src, i));
        tile.find_map(Result::err).expect("a tile that failed has an element that does")
    }

    /// Element `i` of a part by the definition; `index` is that in the tensor.
    fn one(&self, index: u64, src: Elements<'_>, i: usize) -> Result<Rescaled, RescaleError> {
        let bytes = bytes_of(src.dtype());
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(&src.bytes()[i * bytes..][..bytes]);
        let code = u64::from_le_bytes(wide);
        if src.dtype() == DType::I64 && is_wide(code) {
            return Err(RescaleError::Wide { index });
        }
        let one = self.spec.one(self.spec.channel_of(index), code);
        one.map_err(|requirement| RescaleError::Unpredictable { index, requirement })
    }

    /// A part of a tensor of which some channel has no result: up to the first element that says so.
    fn by_definition(&self, first: u64, src: Elements<'_>, dst: &mut [u8]) -> Result<RescaleCounts, RescaleError> {
        let mut counts = RescaleCounts::default();
        for (i, d) in dst.chunks_exact_mut(bytes_of(self.output)).enumerate() {
            let Rescaled { code, saturated } = self.one(first + i as u64, src, i)?;
            d.copy_from_slice(&code.to_le_bytes()[..d.len()]);
            counts.elements += 1;
            counts.saturated += saturated as u64;
        }
        Ok(counts)
    }
}

/// Tiles of one thread.
#[derive(Default)]
struct Room {
    /// i48 elements in 8 bytes each.
    wide: Option<Box<[u8; 8 * TILE]>>,
    /// Results on their way past the caches.
    results: Option<Box<[u8; 4 * TILE]>>,
}

/// An i64 that is no i48.
#[inline(always)]
fn is_wide(code: u64) -> bool {
    code.wrapping_add(1 << 47) >> 48 != 0
}

struct AnyWide<'a>(&'a [u8]);

impl Task for AnyWide<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let each = self.0.as_chunks().0.iter().map(|bytes| is_wide(u64::from_le_bytes(*bytes)) as u64);
        each.fold(0, |any, one| any | one) != 0
    }
}

/// Bytes of an integer in a buffer.
fn bytes_of(dtype: DType) -> usize {
    dtype.storage_bits().expect("integers have a width") as usize / 8
}

/// The type of buffers, whatever the signedness in force.
fn signless(f: IntFormat) -> DType {
    match f.bits {
        8 => DType::I8,
        16 => DType::I16,
        32 => DType::I32,
        _ => DType::I48,
    }
}

/// What came of a tile.
#[derive(Clone, Copy, Default)]
struct Tally {
    saturated: u64,
    /// A requirement does not hold for some element.
    failed: bool,
}

/// A pass over a tile.
trait Pass: Debug + Send + Sync {
    /// Rescales the elements from `first` on.
    fn run(&self, first: usize, src: &[u8], dst: &mut [u8]) -> Tally;
}

/// `None` if no element of some channel has a result (R1, R2): every element is then left to the definition.
fn plan(spec: &RescaleSpec, level: Level) -> Option<Box<dyn Pass>> {
    if spec.channels.iter().any(|channel| channel.check().is_err()) {
        return None;
    }
    if let Some(pass) = OfTable::new(spec, level) {
        return Some(Box::new(pass));
    }
    Some(match (spec.input.bits, spec.output.bits) {
        (8, _) => to_output::<u8>(spec, level),
        (16, _) => to_output::<u16>(spec, level),
        (32, _) => to_output::<u32>(spec, level),
        // i48 has 16-bit multipliers only.
        (_, 8) => short::<u64, u8>(spec, level),
        (_, 16) => short::<u64, u16>(spec, level),
        _ => short::<u64, u32>(spec, level),
    })
}

fn to_output<S: Slot>(spec: &RescaleSpec, level: Level) -> Box<dyn Pass> {
    match spec.output.bits {
        8 => by_mode::<S, u8>(spec, level),
        16 => by_mode::<S, u16>(spec, level),
        _ => by_mode::<S, u32>(spec, level),
    }
}

/// How values are scaled.
mod mode {
    /// One rounding.
    pub const SINGLE: u8 = 0;
    /// 32-bit multipliers, rounded to bit 30 first if the shift is above 31.
    pub const DOUBLE: u8 = 1;
    /// As [`SINGLE`], with 16-bit multipliers, and tests of R4 and R5.
    pub const SHORT: u8 = 2;
    /// Values of 9 bits with multipliers so short that the products have 32.
    pub const IN_32_BITS: u8 = 3;
}

fn by_mode<S: Slot, D: Slot>(spec: &RescaleSpec, level: Level) -> Box<dyn Pass> {
    let pass: Box<dyn Pass> = match (spec.scale32, spec.rounding) {
        (false, _) if const { S::BYTES == 4 } => return short::<S, D>(spec, level),
        (true, RoundingMode::Double) => {
            Box::new(Arithmetic::<S, D, { mode::DOUBLE }>::new(spec, &spec.channels, level))
        }
        _ => Box::new(Arithmetic::<S, D, { mode::SINGLE }>::new(spec, &spec.channels, level)),
    };
    // 16-bit multipliers of values of 16 bits have no requirement.
    if !spec.scale32 || is_safe(spec) { pass } else { Box::new(WithR3::<S>::new(pass, spec, level)) }
}

/// 16-bit multipliers.
fn short<S: Slot, D: Slot>(spec: &RescaleSpec, level: Level) -> Box<dyn Pass> {
    match is_safe(spec) {
        true => Box::new(Arithmetic::<S, D, { mode::SINGLE }>::new(spec, &spec.channels, level)),
        false => Box::new(Arithmetic::<S, D, { mode::SHORT }>::new(spec, &spec.channels, level)),
    }
}

/// No input fails a requirement. RESCALE is monotone, so the two ends speak for all.
fn is_safe(spec: &RescaleSpec) -> bool {
    let ends = [spec.input.min(), spec.input.max()].map(|end| spec.input.code(end));
    (0..spec.channels.len()).all(|channel| ends.iter().all(|&end| spec.one(channel, end).is_ok()))
}

/// 8-bit inputs with many scales in 32 bits; `None` if some scale needs more, or some input fails a requirement.
fn in_32_bits(spec: &RescaleSpec, level: Level) -> Option<Box<dyn Pass>> {
    if spec.channels.len() == 1 || !is_safe(spec) {
        return None;
    }
    let shorter = |channel: &Channel| {
        let short = shortened(channel)?;
        let same = SameResults {
            scale: *channel,
            short,
            rounds_twice: spec.rounding == RoundingMode::Double,
            first: (spec.input.min() as i64) - spec.input_zp,
        };
        level.run(same).then_some(short)
    };
    let channels: Vec<Channel> = spec.channels.iter().map(shorter).collect::<Option<_>>()?;
    Some(match spec.output.bits {
        8 => Box::new(Arithmetic::<u8, u8, { mode::IN_32_BITS }>::new(spec, &channels, level)),
        16 => Box::new(Arithmetic::<u8, u16, { mode::IN_32_BITS }>::new(spec, &channels, level)),
        _ => Box::new(Arithmetic::<u8, u32, { mode::IN_32_BITS }>::new(spec, &channels, level)),
    })
}

/// The same scale with a multiplier of at most 22 bits and a shift of at most 30, rounded: with values of 9 bits, product and
/// half together stay below 2^31.
fn shortened(&Channel { multiplier, shift }: &Channel) -> Option<Channel> {
    let bits = 32 - multiplier.leading_zeros() as i32;
    let dropped = (bits - 22).max(i32::from(shift) - 30).max(0);
    let shift = i32::from(shift) - dropped;
    let half = if dropped == 0 { 0 } else { 1i64 << (dropped - 1) };
    let multiplier = (i64::from(multiplier) + half) >> dropped;
    (shift >= 1).then_some(Channel { multiplier: multiplier as i32, shift: shift as i8 })
}

/// Whether two scales give the same values for 256 inputs in a row.
struct SameResults {
    scale: Channel,
    short: Channel,
    rounds_twice: bool,
    first: i64,
}

impl Task for SameResults {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let rounded = |v: i64, Channel { multiplier, shift }: Channel, first: i64| {
            let half = (1i64 << (shift - 1)) + if v < 0 { -first } else { first };
            (v * i64::from(multiplier) + half) >> shift
        };
        let first = if self.rounds_twice && self.scale.shift > 31 { 1 << 30 } else { 0 };
        let differs = |v| (rounded(v, self.scale, first) != rounded(v, self.short, 0)) as u32;
        (0..256).fold(0, |any, i| any | differs(self.first + i)) == 0
    }
}

/// What all elements share.
#[derive(Clone, Copy, Debug)]
struct Params {
    /// Makes a sign-extended input a zero-extended one.
    mask: i32,
    input_zp: i32,
    output_zp: i32,
    min: i32,
    max: i32,
}

/// The result of one element.
struct One<D> {
    result: D,
    /// Not zero if a requirement does not hold.
    failed: u32,
    /// 1 if the value did not fit.
    saturated: u32,
}

impl Params {
    fn new(spec: &RescaleSpec) -> Self {
        Self {
            mask: if spec.input.signed { -1 } else { spec.input.mask() as i32 },
            input_zp: spec.input_zp as i32,
            output_zp: spec.output_zp as i32,
            min: spec.output.min() as i32,
            max: spec.output.max() as i32,
        }
    }

    /// An element of at most 32 bits less its zero point. Values of 33 bits do not exist: only inputs of 8 and 16 bits have
    /// zero points.
    #[inline(always)]
    fn narrow<S: Slot>(&self, x: S) -> i32 {
        (x.sign_extended() as i32 & self.mask).wrapping_sub(self.input_zp)
    }

    /// Source: `docs/spec/tosa.md §4.5`. A shift is in 2..=62, a multiplier is not negative.
    #[inline(always)]
    fn one<S: Slot, D: Slot, const MODE: u8>(&self, x: S, multiplier: i32, shift: u32) -> One<D> {
        let half = 1i64.wrapping_shl(shift.wrapping_sub(1));
        let narrow = self.narrow(x);
        let product = match (S::BYTES, MODE) {
            // A multiplier has no sign, and so no upper half.
            (8, _) => x.sign_extended().wrapping_mul(i64::from(multiplier as u32)),
            (_, mode::IN_32_BITS) => i64::from(narrow.wrapping_mul(multiplier)),
            _ => i64::from(narrow) * i64::from(multiplier),
        };
        let rounded = product.wrapping_add(half);
        let rounded = match MODE {
            mode::DOUBLE => {
                let first = if shift > 31 { 1i64 << 30 } else { 0 };
                rounded.wrapping_add(if narrow < 0 { -first } else { first })
            }
            _ => rounded,
        };
        let q = match MODE {
            mode::IN_32_BITS => i64::from((rounded as i32).wrapping_shr(shift)),
            _ => rounded.wrapping_shr(shift),
        };
        let failed = match MODE {
            // R4, R5: neither with nor without the zero point is there a bit beyond the 32 of the result.
            mode::SHORT => {
                let offset = q.wrapping_add(i64::from(self.output_zp));
                let beyond = |value: i64| i64::from(value as i32) ^ value;
                (beyond(q) | beyond(offset) != 0) as u32
            }
            _ => 0,
        };
        let offset = (q as i32).wrapping_add(self.output_zp);
        let clamped = offset.max(self.min).min(self.max);
        One { result: D::low(clamped as u32 as u64), failed, saturated: (clamped != offset) as u32 }
    }
}

/// The loops of one type pair and mode.
#[derive(Debug)]
struct Arithmetic<S, D, const MODE: u8> {
    level: Level,
    params: Params,
    scales: Scales,
    pair: PhantomData<(S, D)>,
}

#[derive(Debug)]
enum Scales {
    One(i32, u32),
    /// As many whole rows as make a loop worth its start.
    Rows {
        multipliers: Vec<i32>,
        shifts: Vec<u32>,
    },
}

/// Elements that a loop over scales from memory has at least.
const LONG_ENOUGH: usize = 512;

impl Scales {
    fn new(channels: &[Channel]) -> Self {
        if let [only] = channels {
            return Scales::One(only.multiplier, only.shift as u32);
        }
        let rows = LONG_ENOUGH.div_ceil(channels.len());
        let repeated = || std::iter::repeat_n(channels, rows).flatten();
        Scales::Rows {
            multipliers: repeated().map(|c| c.multiplier).collect(),
            shifts: repeated().map(|c| c.shift as u32).collect(),
        }
    }
}

impl<S, D, const MODE: u8> Arithmetic<S, D, MODE> {
    fn new(spec: &RescaleSpec, channels: &[Channel], level: Level) -> Self {
        Self { level, params: Params::new(spec), scales: Scales::new(channels), pair: PhantomData }
    }
}

impl<S: Slot, D: Slot, const MODE: u8> Pass for Arithmetic<S, D, MODE> {
    fn run(&self, first: usize, src: &[u8], dst: &mut [u8]) -> Tally {
        let params = self.params;
        let (src, dst) = (S::view(src), D::view_mut(dst));
        match &self.scales {
            Scales::One(multiplier, shift) => {
                self.level.run(OneScale::<S, D, MODE> { params, multiplier: *multiplier, shift: *shift, src, dst })
            }
            Scales::Rows { multipliers, shifts } => {
                self.level.run(ManyScales::<S, D, MODE> { params, multipliers, shifts, first, src, dst })
            }
        }
    }
}

struct OneScale<'a, S: Slot, D: Slot, const MODE: u8> {
    params: Params,
    multiplier: i32,
    shift: u32,
    src: &'a [S::Bytes],
    dst: &'a mut [D::Bytes],
}

impl<S: Slot, D: Slot, const MODE: u8> Task for OneScale<'_, S, D, MODE> {
    type Output = Tally;
    #[inline(always)]
    fn run(self) -> Tally {
        let (multiplier, shift) = (self.multiplier, self.shift);
        let scales = std::iter::repeat((&multiplier, &shift));
        each::<S, D, MODE>(&self.params, self.src, self.dst, scales)
    }
}

struct ManyScales<'a, S: Slot, D: Slot, const MODE: u8> {
    params: Params,
    multipliers: &'a [i32],
    shifts: &'a [u32],
    first: usize,
    src: &'a [S::Bytes],
    dst: &'a mut [D::Bytes],
}

impl<S: Slot, D: Slot, const MODE: u8> Task for ManyScales<'_, S, D, MODE> {
    type Output = Tally;
    #[inline(always)]
    fn run(self) -> Tally {
        let mut total = Tally::default();
        let (mut src, mut dst) = (self.src, self.dst);
        let mut at = self.first % self.multipliers.len();
        while !src.is_empty() {
            let n = (self.multipliers.len() - at).min(src.len());
            let (s_row, s_rest) = src.split_at(n);
            let (d_row, d_rest) = dst.split_at_mut(n);
            let scales = self.multipliers[at..at + n].iter().zip(&self.shifts[at..at + n]);
            let Tally { saturated, failed } = each::<S, D, MODE>(&self.params, s_row, d_row, scales);
            total = Tally { saturated: total.saturated + saturated, failed: total.failed | failed };
            (src, dst, at) = (s_rest, d_rest, 0);
        }
        total
    }
}

/// The loop over elements, each with its scale; `zip` proves the bounds.
#[inline(always)]
fn each<'a, S: Slot, D: Slot, const MODE: u8>(
    params: &Params,
    src: &[S::Bytes],
    dst: &mut [D::Bytes],
    scales: impl Iterator<Item = (&'a i32, &'a u32)>,
) -> Tally {
    // A copy of its own, which no store through `dst` can change: else the loop would not be vectorised.
    let params = *params;
    let (mut saturated, mut failed) = (0u32, 0u32);
    for ((d, s), (multiplier, shift)) in dst.iter_mut().zip(src).zip(scales) {
        let one = params.one::<S, D, MODE>(S::load(*s), *multiplier, *shift);
        *d = one.result.store();
        saturated += one.saturated;
        failed |= one.failed;
    }
    Tally { saturated: saturated.into(), failed: failed != 0 }
}

/// A pass and a test of R3: from bit s - 1 of a value on, all bits are the sign.
#[derive(Debug)]
struct WithR3<S> {
    pass: Box<dyn Pass>,
    level: Level,
    params: Params,
    scales: Scales,
    source: PhantomData<S>,
}

impl<S: Slot> WithR3<S> {
    fn new(pass: Box<dyn Pass>, spec: &RescaleSpec, level: Level) -> Self {
        let (params, scales) = (Params::new(spec), Scales::new(&spec.channels));
        Self { pass, level, params, scales, source: PhantomData }
    }
}

impl<S: Slot> Pass for WithR3<S> {
    fn run(&self, first: usize, src: &[u8], dst: &mut [u8]) -> Tally {
        let tally = self.pass.run(first, src, dst);
        let shifts = match &self.scales {
            Scales::One(_, shift) => std::slice::from_ref(shift),
            Scales::Rows { shifts, .. } => shifts,
        };
        let fails = self.level.run(FailsR3::<S> { params: self.params, shifts, first, src: S::view(src) });
        Tally { failed: tally.failed | fails, ..tally }
    }
}

struct FailsR3<'a, S: Slot> {
    params: Params,
    shifts: &'a [u32],
    first: usize,
    src: &'a [S::Bytes],
}

impl<S: Slot> Task for FailsR3<'_, S> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let fails = |s: &S::Bytes, shift: u32| {
            let narrow = self.params.narrow(S::load(*s));
            ((narrow ^ (narrow >> 31)) as u32).wrapping_shr(shift.wrapping_sub(1).min(31))
        };
        if let [shift] = *self.shifts {
            return self.src.iter().fold(0, |any, s| any | fails(s, shift)) != 0;
        }
        let (mut src, mut any) = (self.src, 0);
        let mut at = self.first % self.shifts.len();
        while !src.is_empty() {
            let (row, rest) = src.split_at((self.shifts.len() - at).min(src.len()));
            any |= row.iter().zip(&self.shifts[at..]).fold(0, |any, (s, shift)| any | fails(s, *shift));
            (src, at) = (rest, 0);
        }
        any != 0
    }
}

/// 256 results by the definition, for 8-bit inputs with one scale.
#[derive(Debug)]
struct OfTable {
    table: Box<dyn Stage>,
    level: Level,
    /// What counts elements whose value fits; `None` if every value does.
    within: Option<Within>,
}

/// Inputs in a range, in the order of their values. RESCALE is monotone, so those that fit the output are such a range.
#[derive(Clone, Copy, Debug)]
struct Within {
    /// Turns signed bytes into unsigned ones of the same order.
    flip: u8,
    low: u8,
    /// `None` if no input fits.
    span: Option<u8>,
}

impl OfTable {
    /// `None` for other inputs, and if a requirement does not hold for some value.
    fn new(spec: &RescaleSpec, level: Level) -> Option<Self> {
        if spec.input.bits != 8 || spec.channels.len() != 1 {
            return None;
        }
        let mut results = [0; 256];
        let flip = if spec.input.signed { 0x80 } else { 0 };
        let mut fitting: Option<(u8, u8)> = None;
        for value in 0..=255u8 {
            let code = value ^ flip;
            let one = spec.one(0, code.into()).ok()?;
            results[code as usize] = one.code;
            if !one.saturated {
                fitting = Some((fitting.map_or(value, |(low, _)| low), value));
            }
        }
        let within = match fitting {
            Some((0, 255)) => None,
            Some((low, high)) => Some(Within { flip, low, span: Some(high - low) }),
            None => Some(Within { flip, low: 0, span: None }),
        };
        let table = table_of(&results, spec.output.bits as usize / 8, level, 8);
        Some(Self { table, level, within })
    }
}

impl Pass for OfTable {
    fn run(&self, _first: usize, src: &[u8], dst: &mut [u8]) -> Tally {
        self.table.run(src, dst).expect("a table refuses nothing");
        let saturated = match self.within {
            None => 0,
            Some(Within { span: None, .. }) => src.len() as u64,
            Some(Within { flip, low, span: Some(span) }) => {
                self.level.run(CountOutside { flip, low, span, bytes: src })
            }
        };
        Tally { saturated, failed: false }
    }
}

struct CountOutside<'a> {
    flip: u8,
    low: u8,
    span: u8,
    bytes: &'a [u8],
}

impl Task for CountOutside<'_> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        /// Blocks after which a byte that counts could overflow.
        const FULL: usize = 255;
        let outside = |byte: u8| ((byte ^ self.flip).wrapping_sub(self.low) > self.span) as u8;
        let (blocks, rest) = self.bytes.as_chunks::<64>();
        let mut total: u64 = rest.iter().map(|&b| u64::from(outside(b))).sum();
        for blocks in blocks.chunks(FULL) {
            let mut counts = [0u8; 64];
            for block in blocks {
                for (count, &byte) in counts.iter_mut().zip(block) {
                    *count += outside(byte);
                }
            }
            total += counts.iter().map(|&c| u64::from(c)).sum::<u64>();
        }
        total
    }
}
