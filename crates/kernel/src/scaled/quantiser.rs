//! [`Quantiser`]: plain elements to scaled ones, planned once. Formally equivalent to [`Planes::quantise`] and
//! [`BlockType::quantise`], block after block.
//!
//! Rows are widened to f32, the largest magnitude of each block is taken, scales are made for all blocks of a row of the
//! grid at once, and then every row is divided by them and encoded.

use super::cut::{Cut, Read};
use super::scales::Scaler;
use super::values::{Decoder, pipeline, spread};
use crate::environment;
use crate::level::{Level, Task};
use crate::options::CastOptions;
use crate::pack;
use crate::pipeline::{Pipeline, Scratch, Stores};
use crate::plan::plan;
use crate::stage::slot_bytes;
use std::ops::Range;
use truecast_core::policy::{IntOverflow, NanToInt, Overflow};
use truecast_core::scaled::{
    BlockType, Code, Coding, GlobalRule, Layout, Packing, Part, Plane, Planes, Quantisation, ScaledError, Search, Zero,
    amax,
};
use truecast_core::{CastPolicy, CastSpec, DType, Layout as Elements, Rounding};

/// Room for the parts of rows that are quantised, in the order of [`Quantiser::writes`].
#[derive(Debug, Default)]
#[allow(missing_docs)] // Named as in [`Part`].
pub struct PartsMut<'a> {
    pub codes: &'a mut [u8],
    pub scales: &'a mut [u8],
    pub zeros: &'a mut [u8],
}

/// A planned quantisation: immutable, to be used from any number of threads, each for rows of its own.
///
/// # Examples
/// ```
/// use truecast_core::{DType, scaled::{Coding, Layout, Plane, Planes}};
/// use truecast_kernel::{CastOptions, scaled::{PartsMut, Quantiser}};
/// let planes = Planes::times(Plane::of(DType::F8E4M3Fn), Plane::of(DType::F32), [128, 128]);
/// let layout = Layout::new(1, [1, 2], Coding::Planes(planes));
/// let quantiser = Quantiser::new(&layout, DType::F32, &Default::default(), &CastOptions::default())?;
/// let src: Vec<u8> = [896.0f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
/// let (mut codes, mut scales) = ([0; 2], [0; 4]);
/// let parts = PartsMut { codes: &mut codes, scales: &mut scales, ..PartsMut::default() };
/// let amax = if quantiser.needs_amax() { quantiser.amax(&src)? } else { 0.0 };
/// quantiser.run(0, 0..1, &src, amax, parts)?;
/// assert_eq!((codes, f32::from_le_bytes(scales)), ([0x7e, 0xb8], 2.0)); // 448 and -1, times 2
/// # Ok::<(), truecast_core::scaled::ScaledError>(())
/// ```
#[derive(Debug)]
pub struct Quantiser {
    layout: Layout,
    how: Quantisation,
    src: DType,
    level: Level,
    to_f32: Pipeline,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Planes(Box<OfPlanes>),
    Q8_0 { to_int: Pipeline, to_half: Pipeline },
    Mxfp4,
}

#[derive(Debug)]
struct OfPlanes {
    planes: Planes,
    scaler: Scaler,
    decoder: Decoder,
    element: Element,
}

/// How elements are coded.
#[derive(Debug)]
enum Element {
    Float {
        dtype: DType,
        encode: Pipeline,
    },
    /// Codes are `q + half`, of `bits`; `q` lies in the signed range.
    Int {
        bits: u32,
        half: u8,
        encode: Pipeline,
    },
}

/// f32 to an element type: beyond the largest finite value is that value; integers to the nearest, of ties the even one or,
/// for `away`, that away from zero.
pub(super) fn saturating(dst: DType, away: bool, level: Level) -> Result<Pipeline, ScaledError> {
    let policy = CastPolicy {
        to_int: if away { Rounding::NearestAway } else { Rounding::NearestEven },
        overflow: Overflow::Saturate,
        inf: Overflow::Saturate,
        int_overflow: IntOverflow::Saturate,
        nan_to_int: NanToInt::Zero,
        ..CastPolicy::IEEE
    };
    let spec = CastSpec { src: DType::F32, dst, policy, undefined: &[], clause: "docs/spec/checkpoints.md §7" };
    plan(&spec, level).map(|(_, pipeline)| pipeline).map_err(|_| NOT_WRITTEN)
}

/// A layout that is only read.
pub(super) const NOT_WRITTEN: ScaledError = ScaledError::Layout { why: "such scales are read, but not written" };

impl Quantiser {
    /// Plans a quantisation of elements of type `src` (f32, f16, bf16 or f64, which is rounded to f32 first).
    ///
    /// # Errors
    /// [`ScaledError::Layout`] for a layout that is only read, and what [`Layout::check`] says.
    pub fn new(layout: &Layout, src: DType, how: &Quantisation, exec: &CastOptions) -> Result<Quantiser, ScaledError> {
        layout.check()?;
        let level = exec.level;
        if !matches!(src, DType::F32 | DType::F16 | DType::Bf16 | DType::F64) {
            return Err(ScaledError::Layout { why: "only f32, f16, bf16 and f64 are quantised" });
        }
        if layout.transposed || layout.kept != [layout.rows, layout.cols] {
            return Err(ScaledError::Layout { why: "transposed and padded tensors are read, but not written" });
        }
        let target = match layout.coding {
            Coding::Planes(planes) => Target::Planes(Box::new(OfPlanes::new(planes, how, level)?)),
            Coding::Blocks { block: BlockType::Q8_0, factor: false } => Target::Q8_0 {
                to_int: saturating(DType::I8, true, level)?,
                to_half: pipeline(DType::F32, DType::F16, level)?,
            },
            Coding::Blocks { block: BlockType::Mxfp4, factor: false } => Target::Mxfp4,
            _ => return Err(NOT_WRITTEN),
        };
        Ok(Quantiser { layout: *layout, how: *how, src, level, to_f32: pipeline(src, DType::F32, level)?, target })
    }

    /// What is written.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// One scale serves a whole matrix, and depends on nothing but its largest magnitude.
    fn has_one_scale(&self) -> bool {
        let Target::Planes(of) = &self.target else { return false };
        let [rows, cols] = of.planes.scales.block;
        let formula = self.how.search == Search::Formula && !matches!(of.planes.zero, Zero::Grid { .. });
        formula && rows > 1 && rows >= self.layout.rows && cols >= self.layout.cols
    }

    /// Rows are quantised in multiples of so many, but for the last of a matrix.
    #[must_use]
    pub fn granule(&self) -> u64 {
        let Target::Planes(of) = &self.target else { return 1 };
        if self.has_one_scale() {
            return 1;
        }
        let of_plane = |packing: Packing| match packing {
            Packing::Swizzled => 128 * of.planes.scales.block[0],
            Packing::Columns { .. } | Packing::PaddedColumns => 32 * of.planes.scales.block[0],
            _ => of.planes.scales.block[0],
        };
        let mut granule = of_plane(of.planes.scales.plane.packing);
        if let Zero::Grid { plane, .. } = of.planes.zero {
            granule = granule.max(of_plane(plane.packing));
        }
        granule.min(self.layout.rows.max(1))
    }

    /// Whether [`Quantiser::run`] needs the largest magnitude of the tensor (of the matrix, where each has scales of its own;
    /// of several tensors, where they share a second scale): for a second scale, or for one scale of a whole matrix.
    #[must_use]
    pub fn needs_amax(&self) -> bool {
        self.rule().is_some() || self.has_one_scale()
    }

    fn rule(&self) -> Option<GlobalRule> {
        match &self.target {
            Target::Planes(of) => of.planes.global.map(|global| global.rule),
            _ => None,
        }
    }

    /// The second scale of a tensor with this largest magnitude, to be written as [`Part::Global`].
    #[must_use]
    pub fn global(&self, amax: f32) -> Option<f32> {
        self.rule().and_then(|rule| rule.of_amax(amax.to_bits()).ok()).map(f32::from_bits)
    }

    /// The largest magnitude of the finite elements; that of a tensor is the largest of its parts.
    ///
    /// # Errors
    /// [`ScaledError::NotFinite`] with the index in `src`.
    pub fn amax(&self, src: &[u8]) -> Result<f32, ScaledError> {
        const TILE: usize = 4096;
        let size = slot_bytes(self.src);
        let (mut scratch, mut tile) = (Scratch::default(), vec![0; 4 * TILE]);
        let mut all = 0;
        environment::default(|| {
            for (i, src) in src.chunks(TILE * size).enumerate() {
                let x = &mut tile[..4 * (src.len() / size)];
                self.widen(src, x, &mut scratch);
                let mut largest = [0];
                self.level.run(Largest { x: x.as_chunks().0, block: TILE, largest: &mut largest });
                all = all.max(if largest[0] < INF { largest[0] } else { self.finite_amax(x, i * TILE)? });
            }
            Ok(f32::from_bits(all))
        })
    }

    /// Where the parts of some rows lie in the tensors that are written: one piece each.
    #[must_use]
    pub fn writes(&self, matrix: u64, rows: Range<u64>) -> Vec<Read> {
        self.cuts(rows).iter().flatten().map(|(part, cut)| cut.read(*part, matrix)).collect()
    }

    fn cuts(&self, rows: Range<u64>) -> [Option<(Part, Cut)>; 3] {
        let Layout { cols, rows: n_rows, .. } = self.layout;
        match (&self.target, self.layout.coding) {
            (Target::Planes(of), _) => {
                let block = of.planes.scales.block;
                let grid = self.layout.grid(block);
                let on_grid =
                    |plane| Cut::new(plane, grid, rows.start / block[0]..rows.end.div_ceil(block[0]), 0..grid[1]);
                let zeros = match of.planes.zero {
                    Zero::Grid { plane, .. } => Some((Part::Zeros, on_grid(plane))),
                    _ => None,
                };
                let codes = Cut::new(of.planes.codes, [n_rows, cols], rows.clone(), 0..cols);
                [Some((Part::Codes, codes)), Some((Part::Scales, on_grid(of.planes.scales.plane))), zeros]
            }
            (_, Coding::Blocks { block, .. }) => {
                let bytes = cols / block.elements() * block.bytes();
                let plane = Plane { code: Code::unsigned(8), packing: Packing::BYTES };
                [Some((Part::Codes, Cut::new(plane, [n_rows, bytes], rows, 0..bytes))), None, None]
            }
            _ => [None, None, None],
        }
    }

    /// Quantises whole rows of a matrix. `src` holds their elements; `amax` is what [`Quantiser::needs_amax`] says, where it
    /// does. The parts have the bytes of [`Quantiser::writes`] and are written whole.
    ///
    /// Result: that of the definition. Cost: memory for a few rows, with [`Search::Mse`] for [`Quantiser::granule`]; one
    /// thread.
    ///
    /// # Errors
    /// [`ScaledError::NotFinite`] with the index in `src`; [`ScaledError::Size`], [`ScaledError::Results`] and
    /// [`ScaledError::Layout`] if rows and buffers do not fit.
    pub fn run(
        &self,
        matrix: u64,
        rows: Range<u64>,
        src: &[u8],
        amax: f32,
        parts: PartsMut<'_>,
    ) -> Result<(), ScaledError> {
        let Layout { matrices, rows: n_rows, cols, .. } = self.layout;
        let whole = rows.start.is_multiple_of(self.granule())
            && (rows.end.is_multiple_of(self.granule()) || rows.end == n_rows)
            && rows.end <= n_rows
            && matrix < matrices;
        if !whole {
            return Err(ScaledError::Layout { why: "rows do not begin and end with blocks" });
        }
        let expected = rows.end.saturating_sub(rows.start) * cols * slot_bytes(self.src) as u64;
        if src.len() as u64 != expected {
            return Err(ScaledError::Results { expected, got: src.len() as u64 });
        }
        if src.is_empty() {
            return Ok(());
        }
        let cuts = self.cuts(rows.clone());
        let PartsMut { codes, scales, zeros } = parts;
        for (cut, got) in cuts.iter().zip([codes.len(), scales.len(), zeros.len()]) {
            if let Some((part, cut)) = cut
                && cut.bytes() != got as u64
            {
                return Err(ScaledError::Size { part: *part, expected: cut.bytes(), got: got as u64 });
            }
        }
        environment::default(|| match &self.target {
            Target::Planes(of) => {
                codes.fill(0);
                scales.fill(0);
                zeros.fill(0);
                let [Some((_, code_cut)), Some((_, scale_cut)), zero_cut] = &cuts else { return Err(NOT_WRITTEN) };
                let mut strip = Strip {
                    quantiser: self,
                    of,
                    src,
                    first_row: rows.start,
                    one_scale: self.has_one_scale().then_some(amax),
                    global: self.global(amax).unwrap_or(1.0),
                    x: vec![0; 4 * cols as usize],
                    spread: vec![0; 4 * cols as usize],
                    zeros: Vec::new(),
                    codes: vec![0; cols as usize],
                    has_nan: false,
                    scratch: Scratch::default(),
                };
                let step = of.planes.scales.block[0];
                let mut row = rows.start;
                while row < rows.end {
                    let end = rows.end.min(row.saturating_add(step));
                    let zeros = zero_cut.as_ref().map(|(_, cut)| (cut, &mut *zeros));
                    strip.run(row..end, (code_cut, codes), (scale_cut, scales), zeros)?;
                    row = end;
                }
                Ok(())
            }
            Target::Q8_0 { to_int, to_half } => self.q8_0(src, to_int, to_half, codes),
            Target::Mxfp4 => self.mxfp4(src, codes),
        })
    }

    fn widen(&self, src: &[u8], x: &mut [u8], scratch: &mut Scratch) {
        let len = x.len() / 4;
        let _ = self.to_f32.run((Elements::Packed, src), (Elements::Packed, x), len, Stores::PLAIN, scratch, None);
    }

    /// The largest magnitude of the finite values of `x`, some of which are not; or the error that names the first.
    fn finite_amax(&self, x: &[u8], first: usize) -> Result<u32, ScaledError> {
        let values: Vec<u32> = x.as_chunks::<4>().0.iter().map(|x| u32::from_le_bytes(*x)).collect();
        amax(self.how.nonfinite, &values).map_err(|error| match error {
            ScaledError::NotFinite { index } => ScaledError::NotFinite { index: index + first as u64 },
            error => error,
        })
    }

    /// Blocks of 32 elements, widened, with the largest magnitude of each. Blocks with a value that is not finite are the
    /// definition's.
    fn blocks(
        &self,
        block: BlockType,
        src: &[u8],
        dst: &mut [u8],
        mut each: impl FnMut(&mut [u8], &[u32], &mut [u8]),
    ) -> Result<(), ScaledError> {
        const BLOCKS: usize = 64;
        let (size, bytes) = (slot_bytes(self.src), block.bytes() as usize);
        let (mut scratch, mut tile) = (Scratch::default(), vec![0; 4 * 32 * BLOCKS]);
        for (i, (src, dst)) in src.chunks(32 * BLOCKS * size).zip(dst.chunks_mut(BLOCKS * bytes)).enumerate() {
            let x = &mut tile[..4 * (src.len() / size)];
            self.widen(src, x, &mut scratch);
            let mut largest = [0; BLOCKS];
            self.level.run(Largest { x: x.as_chunks().0, block: 32, largest: &mut largest });
            let n = x.len() / 128;
            let odd: Vec<(usize, Vec<u32>)> = (0..n)
                .filter(|b| largest[*b] >= INF)
                .map(|b| (b, x[128 * b..][..128].as_chunks::<4>().0.iter().map(|x| u32::from_le_bytes(*x)).collect()))
                .collect();
            each(x, &largest[..n], dst);
            for (b, values) in odd {
                let quantised = block.quantise(self.how.nonfinite, &values, &mut dst[b * bytes..][..bytes]);
                quantised.map_err(|error| match error {
                    ScaledError::NotFinite { index } => {
                        ScaledError::NotFinite { index: index + ((i * BLOCKS + b) * 32) as u64 }
                    }
                    error => error,
                })?;
            }
        }
        Ok(())
    }

    /// `docs/spec/checkpoints.md §9.3`.
    fn q8_0(&self, src: &[u8], to_int: &Pipeline, to_half: &Pipeline, dst: &mut [u8]) -> Result<(), ScaledError> {
        let mut scratch = Scratch::default();
        let (mut inverses, mut halves, mut codes) = ([0; 4 * 64], [0; 2 * 64], [0; 32 * 64]);
        let mut spread_out = vec![0; 4 * 32 * 64];
        self.blocks(BlockType::Q8_0, src, dst, |x, largest, dst| {
            let n = largest.len();
            let mut scales = [0; 4 * 64];
            for (i, largest) in largest.iter().enumerate() {
                let d = f32::from_bits(*largest) / 127.0;
                let id = if d == 0.0 { 0.0 } else { 1.0 / d };
                scales[4 * i..][..4].copy_from_slice(&d.to_le_bytes());
                inverses[4 * i..][..4].copy_from_slice(&id.to_le_bytes());
            }
            let to = (Elements::Packed, &mut halves[..2 * n]);
            let _ = to_half.run((Elements::Packed, &scales[..4 * n]), to, n, Stores::PLAIN, &mut scratch, None);
            spread(&inverses[..4 * n], 32, 0, &mut spread_out[..4 * 32 * n]);
            self.level.run(Ratio::<true> { x: x.as_chunks_mut().0, t: spread_out.as_chunks().0 });
            let to = (Elements::Packed, &mut codes[..32 * n]);
            let _ = to_int.run((Elements::Packed, x), to, 32 * n, Stores::PLAIN, &mut scratch, None);
            for (i, block) in dst.chunks_mut(34).enumerate() {
                block[..2].copy_from_slice(&halves[2 * i..][..2]);
                block[2..].copy_from_slice(&codes[32 * i..][..32]);
            }
        })
    }

    /// `docs/spec/checkpoints.md §9.4`.
    fn mxfp4(&self, src: &[u8], dst: &mut [u8]) -> Result<(), ScaledError> {
        let mut codes = [0; 32];
        self.blocks(BlockType::Mxfp4, src, dst, |x, largest, dst| {
            for ((x, largest), block) in x.chunks(128).zip(largest).zip(dst.chunks_mut(17)) {
                let exponent = (largest >> 23) as i32;
                let log2 = if exponent == 0 { -118 - largest.leading_zeros() as i32 } else { exponent - 127 };
                let e = if *largest == 0 { 0 } else { (log2 + 125).clamp(0, 254) as u32 };
                // 2^(127 - e), of which the last is subnormal.
                let inverse = f32::from_bits(if e == 254 { 0x0040_0000 } else { (254 - e) << 23 });
                self.level.run(NearestDoubled { x: x.as_chunks().0, inverse, codes: &mut codes });
                block[0] = e as u8;
                for i in 0..16 {
                    block[1 + i] = codes[i] | codes[16 + i] << 4;
                }
            }
        })
    }
}

/// The first magnitude that is not finite.
const INF: u32 = 0x7f80_0000;

impl OfPlanes {
    fn new(planes: Planes, how: &Quantisation, level: Level) -> Result<OfPlanes, ScaledError> {
        // The definition says whether there is such a quantisation at all.
        planes.quantise(how, 1.0f32.to_bits(), &[1.0f32.to_bits()])?;
        let minus = if let Zero::Constant(zero) = planes.zero { zero } else { 0 };
        let element = match planes.codes.code {
            Code::Float(dtype) => Element::Float { dtype, encode: saturating(dtype, false, level)? },
            Code::Int(f) => Element::Int {
                bits: f.bits.into(),
                half: if f.signed { 0 } else { 1 << (f.bits - 1) },
                encode: saturating(DType::I8, false, level)?,
            },
        };
        if !matches!(planes.codes.packing, Packing::Rows { .. } | Packing::HighFirst) {
            return Err(ScaledError::Layout { why: "such a packing is read, but not written" });
        }
        let decoder = Decoder::new(planes.codes.code, minus, level)?;
        Ok(OfPlanes { planes, scaler: Scaler::new(&planes, how, level)?, decoder, element })
    }
}

/// The rows of a row of the grid, one after the other.
struct Strip<'a> {
    quantiser: &'a Quantiser,
    of: &'a OfPlanes,
    src: &'a [u8],
    /// Of the matrix, that `src` begins with.
    first_row: u64,
    /// The largest magnitude, where one scale serves the matrix.
    one_scale: Option<f32>,
    global: f32,
    /// A row in f32.
    x: Vec<u8>,
    /// An operand of each element of a row.
    spread: Vec<u8>,
    zeros: Vec<u8>,
    /// Codes of a row, one in each byte.
    codes: Vec<u8>,
    has_nan: bool,
    scratch: Scratch,
}

impl Strip<'_> {
    fn widen(&mut self, row: u64) {
        let bytes = self.x.len() / 4 * slot_bytes(self.quantiser.src);
        let src = &self.src[(row - self.first_row) as usize * bytes..][..bytes];
        self.quantiser.widen(src, &mut self.x, &mut self.scratch);
        if self.has_nan {
            self.quantiser.level.run(NanToZero { x: self.x.as_chunks_mut().0 });
        }
    }

    fn run(
        &mut self,
        rows: Range<u64>,
        (code_cut, codes): (&Cut, &mut [u8]),
        (scale_cut, scales): (&Cut, &mut [u8]),
        zeros: Option<(&Cut, &mut [u8])>,
    ) -> Result<(), ScaledError> {
        let Quantiser { layout, level, how, .. } = self.quantiser;
        let OfPlanes { planes, scaler, .. } = self.of;
        let block = usize::try_from(planes.scales.block[1]).unwrap_or(usize::MAX);
        let n_blocks = layout.grid(planes.scales.block)[1] as usize;
        let (mut largest, mut ranges) = (vec![0; n_blocks], Vec::new());
        if zeros.is_some() {
            ranges = vec![[0.0f32; 2]; n_blocks];
        }
        self.has_nan = false;
        for row in rows.clone() {
            self.widen(row);
            level.run(Largest { x: self.x.as_chunks().0, block, largest: &mut largest });
            if largest.iter().any(|largest| *largest >= INF) {
                self.has_nan = true;
                let first = (row - self.first_row) as usize * layout.cols as usize;
                self.quantiser.finite_amax(&self.x, first)?;
                self.widen(row); // NaN is zero
            }
            if zeros.is_some() {
                low_and_high(&self.x, block, &mut ranges);
            }
        }
        if self.has_nan {
            largest.fill(0);
            for row in rows.clone() {
                self.widen(row);
                level.run(Infinite { x: self.x.as_chunks_mut().0 });
                level.run(Largest { x: self.x.as_chunks().0, block, largest: &mut largest });
            }
        }
        if let Some(amax) = self.one_scale {
            largest = vec![amax.to_bits()];
        }
        let made = scaler.scales(&largest, &ranges, self.global);
        let mut best = self.operands(&made, &ranges);
        let grid_row = rows.start / planes.scales.block[0];
        if how.search == Search::Mse {
            best = self.search(rows.clone(), best, &ranges, code_cut, codes);
        } else {
            for row in rows {
                self.widen(row);
                self.encode(&best);
                self.store(row, code_cut, codes);
            }
        }
        let size = planes.scales.plane.code.bits() as usize / 8;
        for (i, scale) in best.scales.chunks_exact(size).enumerate() {
            let at = scale_cut.byte_of([grid_row, i as u64]);
            scales[at..at + size].copy_from_slice(scale);
        }
        if let (Some((cut, bytes)), Code::Int(f)) = (zeros, planes.codes.code) {
            let half = if f.signed { 0.0 } else { f32::from(1u8 << (f.bits - 1)) };
            for (i, zero) in best.zeros.as_chunks::<4>().0.iter().enumerate() {
                let stored = (f32::from_le_bytes(*zero) + half) as i32 as u64;
                cut.set([grid_row, i as u64], bytes, stored);
            }
        }
        Ok(())
    }

    /// What elements are divided by, and zero points, of every block.
    fn operands(&self, scales: &[u8], ranges: &[[f32; 2]]) -> Operands {
        let (divisors, inverse) = self.of.scaler.divisors(scales, self.global);
        let zeros = match self.of.element {
            Element::Int { bits, .. } if !ranges.is_empty() => {
                let low = -((1 << (bits - 1)) as f32);
                let zero = |(s, [lowest, _]): (&[u8; 4], &[f32; 2])| {
                    let z = low - lowest / f32::from_le_bytes(*s);
                    z.clamp(low, -low - 1.0).round_ties_even().to_le_bytes()
                };
                divisors.as_chunks::<4>().0.iter().zip(ranges).flat_map(zero).collect()
            }
            _ => Vec::new(),
        };
        Operands { scales: scales.to_vec(), divisors, inverse, zeros }
    }

    /// Codes of the row in `x`.
    fn encode(&mut self, operands: &Operands) {
        let level = self.quantiser.level;
        let block = usize::try_from(self.of.planes.scales.block[1]).unwrap_or(usize::MAX);
        let n = self.codes.len();
        spread(&operands.divisors, block, 0, &mut self.spread);
        let (x, t) = (self.x.as_chunks_mut().0, self.spread.as_chunks().0);
        if operands.inverse {
            level.run(Ratio::<true> { x, t });
        } else {
            level.run(Ratio::<false> { x, t });
        }
        match &self.of.element {
            Element::Float { dtype, encode } => {
                let layout = if dtype.code_bits() < 8 { Elements::Bytes } else { Elements::Packed };
                let to = (layout, &mut self.codes[..]);
                let _ = encode.run((Elements::Packed, &self.x), to, n, Stores::PLAIN, &mut self.scratch, None);
            }
            Element::Int { bits, half, encode } => {
                if !operands.zeros.is_empty() {
                    self.zeros.resize(4 * n, 0);
                    spread(&operands.zeros, block, 0, &mut self.zeros);
                    level.run(Plus { x: self.x.as_chunks_mut().0, z: self.zeros.as_chunks().0 });
                }
                let to = (Elements::Packed, &mut self.codes[..]);
                let _ = encode.run((Elements::Packed, &self.x), to, n, Stores::PLAIN, &mut self.scratch, None);
                level.run(Stored { codes: &mut self.codes, bits: *bits, half: *half });
            }
        }
    }

    /// Packs the codes of a row.
    fn store(&mut self, row: u64, cut: &Cut, bytes: &mut [u8]) {
        let Plane { code, packing } = self.of.planes.codes;
        let (bits, n) = (code.bits(), self.codes.len());
        let packed = (n * bits as usize).div_ceil(8);
        let to = &mut bytes[cut.byte_of([row, 0])..][..packed];
        match bits {
            8 => to.copy_from_slice(&self.codes),
            5 | 7 => pack_words(bits as usize, &self.codes, to),
            _ => pack::pack(self.quantiser.level, bits, &self.codes, to, n),
        }
        if packing == Packing::HighFirst {
            to.iter_mut().for_each(|byte| *byte = byte.rotate_left(4));
        }
    }

    /// Tries scales near those of the formula, all blocks at once, and keeps the best of each (§7.7).
    fn search(
        &mut self,
        rows: Range<u64>,
        formula: Operands,
        ranges: &[[f32; 2]],
        cut: &Cut,
        codes: &mut [u8],
    ) -> Operands {
        let (planes, how) = (self.of.planes, self.quantiser.how);
        let size = planes.scales.plane.code.bits() as usize / 8;
        let code = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
        let near: Vec<Vec<u64>> = formula.scales.chunks_exact(size).map(|s| planes.near(&how, code(s))).collect();
        let n_cols = self.codes.len();
        let mut best_codes = vec![0; (rows.end - rows.start) as usize * n_cols];
        let mut tried_codes = best_codes.clone();
        let mut least = self.attempt(rows.clone(), &formula, &mut best_codes);
        let mut best = formula.scales.clone();
        for k in 0..near.iter().map(Vec::len).max().unwrap_or(0) {
            let mut scales = formula.scales.clone();
            for (scale, near) in scales.chunks_exact_mut(size).zip(&near) {
                if let Some(code) = near.get(k) {
                    scale.copy_from_slice(&code.to_le_bytes()[..size]);
                }
            }
            let operands = self.operands(&scales, ranges);
            let errors = self.attempt(rows.clone(), &operands, &mut tried_codes);
            let block = usize::try_from(planes.scales.block[1]).unwrap_or(usize::MAX).min(n_cols);
            for (i, (error, least)) in errors.iter().zip(&mut least).enumerate() {
                if error < least {
                    *least = *error;
                    best[i * size..][..size].copy_from_slice(&scales[i * size..][..size]);
                    let cols = i * block..((i + 1) * block).min(n_cols);
                    for (best, tried) in best_codes.chunks_mut(n_cols).zip(tried_codes.chunks(n_cols)) {
                        best[cols.clone()].copy_from_slice(&tried[cols.clone()]);
                    }
                }
            }
        }
        for (row, of_row) in rows.zip(best_codes.chunks(n_cols)) {
            self.codes.copy_from_slice(of_row);
            self.store(row, cut, codes);
        }
        self.operands(&best, ranges)
    }

    /// Codes of all rows with some scales, and the sum of squared errors of each block.
    fn attempt(&mut self, rows: Range<u64>, operands: &Operands, codes: &mut [u8]) -> Vec<f64> {
        let n_cols = self.codes.len();
        let block = usize::try_from(self.of.planes.scales.block[1]).unwrap_or(usize::MAX).min(n_cols);
        let multipliers = self.of.scaler.multipliers(&operands.scales, self.global);
        let mut errors = vec![0.0; operands.scales.len() / (self.of.planes.scales.plane.code.bits() as usize / 8)];
        let mut values = vec![0; 4 * n_cols];
        let (mut of_columns, mut zeros) = (vec![0; 4 * n_cols], Vec::new());
        spread(&multipliers, block, 0, &mut of_columns);
        if let (Code::Int(f), false) = (self.of.planes.codes.code, operands.zeros.is_empty()) {
            zeros = vec![0; 4 * n_cols];
            spread(&operands.zeros, block, 0, &mut zeros);
            let half = if f.signed { 0.0 } else { f32::from(1u8 << (f.bits - 1)) };
            zeros.as_chunks_mut::<4>().0.iter_mut().for_each(|z| *z = (f32::from_le_bytes(*z) + half).to_le_bytes());
        }
        for (row, codes) in rows.zip(codes.chunks_mut(n_cols)) {
            self.widen(row);
            let x: Vec<f32> = self.x.as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
            self.encode(operands);
            codes.copy_from_slice(&self.codes);
            self.of.decoder.run(codes, &mut values, &mut self.scratch);
            for (i, x) in x.iter().enumerate() {
                let of = |values: &[u8]| {
                    f32::from_le_bytes([values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]])
                };
                let c = if zeros.is_empty() { of(&values) } else { of(&values) - of(&zeros) };
                let error = f64::from(c * of(&of_columns)) - f64::from(*x);
                errors[i / block] += if x.is_finite() { error * error } else { 0.0 };
            }
        }
        errors
    }
}

/// What a row of blocks is quantised with.
struct Operands {
    /// As they are stored.
    scales: Vec<u8>,
    /// f32: what elements are divided by, or with `inverse` multiplied.
    divisors: Vec<u8>,
    inverse: bool,
    /// f32.
    zeros: Vec<u8>,
}

fn low_and_high(x: &[u8], block: usize, ranges: &mut [[f32; 2]]) {
    for (x, range) in x.as_chunks::<4>().0.chunks(block).zip(ranges) {
        for x in x.iter().map(|x| f32::from_le_bytes(*x)).filter(|x| x.is_finite()) {
            *range = [if x < range[0] { x } else { range[0] }, if x > range[1] { x } else { range[1] }];
        }
    }
}

/// Widths that no element type has.
fn pack_words(bits: usize, codes: &[u8], to: &mut [u8]) {
    for (codes, bytes) in codes.chunks(8).zip(to.chunks_mut(bits)) {
        let word = codes.iter().rev().fold(0u64, |word, code| word << bits | u64::from(*code));
        let n = bytes.len();
        bytes.copy_from_slice(&word.to_le_bytes()[..n]);
    }
}

/// The largest magnitude of each block, as bits; what was larger stays.
struct Largest<'a> {
    x: &'a [[u8; 4]],
    block: usize,
    largest: &'a mut [u32],
}

impl Task for Largest<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Largest { x, block, largest } = self;
        match block {
            16 => of_blocks(x.as_chunks::<16>(), largest),
            32 => of_blocks(x.as_chunks::<32>(), largest),
            _ => {
                for (x, largest) in x.chunks(block).zip(largest) {
                    *largest = x.iter().fold(*largest, |most, x| most.max(u32::from_le_bytes(*x) & 0x7fff_ffff));
                }
            }
        }
    }
}

#[inline(always)]
fn of_blocks<const N: usize>((blocks, rest): (&[[[u8; 4]; N]], &[[u8; 4]]), largest: &mut [u32]) {
    let magnitude = |x: &[u8; 4]| u32::from_le_bytes(*x) & 0x7fff_ffff;
    for (x, largest) in blocks.iter().zip(&mut *largest) {
        let mut most = [*largest; 16];
        for (i, x) in x.iter().enumerate() {
            most[i % 16] = most[i % 16].max(magnitude(x));
        }
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                most[i] = most[i].max(most[i + half]);
            }
        }
        *largest = most[0];
    }
    if let (Some(last), false) = (largest.get_mut(blocks.len()), rest.is_empty()) {
        *last = rest.iter().fold(*last, |most, x| most.max(magnitude(x)));
    }
}

struct NanToZero<'a> {
    x: &'a mut [[u8; 4]],
}

impl Task for NanToZero<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for x in self.x {
            let bits = u32::from_le_bytes(*x);
            *x = (if bits & 0x7fff_ffff > INF { 0 } else { bits }).to_le_bytes();
        }
    }
}

/// Infinities to zero, so that they are not counted among magnitudes.
struct Infinite<'a> {
    x: &'a mut [[u8; 4]],
}

impl Task for Infinite<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for x in self.x {
            let bits = u32::from_le_bytes(*x);
            *x = (if bits & 0x7fff_ffff >= INF { 0 } else { bits }).to_le_bytes();
        }
    }
}

/// `x / t`, or `x * t`.
struct Ratio<'a, const INVERSE: bool> {
    x: &'a mut [[u8; 4]],
    t: &'a [[u8; 4]],
}

impl<const INVERSE: bool> Task for Ratio<'_, INVERSE> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, t) in self.x.iter_mut().zip(self.t) {
            let (value, t) = (f32::from_le_bytes(*x), f32::from_le_bytes(*t));
            *x = (if INVERSE { value * t } else { value / t }).to_le_bytes();
        }
    }
}

struct Plus<'a> {
    x: &'a mut [[u8; 4]],
    z: &'a [[u8; 4]],
}

impl Task for Plus<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, z) in self.x.iter_mut().zip(self.z) {
            *x = (f32::from_le_bytes(*x) + f32::from_le_bytes(*z)).to_le_bytes();
        }
    }
}

/// Nearest integers of 8 bits to codes of fewer.
struct Stored<'a> {
    codes: &'a mut [u8],
    bits: u32,
    half: u8,
}

impl Task for Stored<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (low, high) = ((-128i32 >> (8 - self.bits)) as i8, (127i32 >> (8 - self.bits)) as i8);
        let (half, mask) = (self.half, (0xffu32 >> (8 - self.bits)) as u8);
        for code in self.codes {
            *code = ((*code as i8).max(low).min(high) as u8).wrapping_add(half) & mask;
        }
    }
}

/// The code of the nearest doubled value of E2M1, of ties the smaller magnitude: thresholds are half of the middles between
/// the doubled values, since `inverse` gives half of `x / h`.
struct NearestDoubled<'a> {
    x: &'a [[u8; 4]],
    inverse: f32,
    codes: &'a mut [u8; 32],
}

impl Task for NearestDoubled<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        const THRESHOLDS: [f32; 7] = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];
        let NearestDoubled { x, inverse, codes } = self;
        for (code, x) in codes.iter_mut().zip(x) {
            let value = f32::from_le_bytes(*x);
            let magnitude = (value * inverse).abs();
            let mut n = 0u32;
            for threshold in THRESHOLDS {
                n += u32::from(magnitude > threshold);
            }
            let sign = if value < 0.0 && n > 0 { 8 } else { 0 };
            *code = (n | sign) as u8;
        }
    }
}
