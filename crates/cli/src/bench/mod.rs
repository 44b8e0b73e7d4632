//! Throughput of conversions on this machine, and of memcpy on the same buffers in the same run.
//!
//! `docs/kernels.md §13` states the measurements and the reasons for them. This module depends neither on how a
//! conversion works nor on how a result is printed. Read in this order: [`pairs`], [`data`], [`pool`], [`clock`],
//! [`measure`].

pub mod clock;
pub mod data;
mod memory;
pub mod pairs;
pub mod pool;

pub use clock::memcpy;

use clock::Pass;
use pool::Pool;
use std::num::NonZeroUsize;
use std::str::FromStr;
use truecast::request::Request;
use truecast_core::spec::SpecError;
use truecast_core::{DType, Layout};
use truecast_kernel::{Caches, CastError, CastOptions, Caster, Elements, PlanError};

/// Memory of a conversion, source and destination together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// Half of a core's L2 cache.
    L2,
    /// Half of the last-level cache.
    Llc,
    /// Four times all last-level caches, and at least 64 Mi elements.
    Dram,
    /// This number of bytes.
    Bytes(u64),
}

/// Unit of lengths: a whole number of tiles, bytes and cache lines for every type.
const LEN_UNIT: u64 = 2048;

impl Size {
    /// Every size that has a name, smallest first.
    pub const ALL: [Size; 3] = [Size::L2, Size::Llc, Size::Dram];

    /// Returns the number of elements. One element takes `bits` bits in source and destination together.
    fn len(self, bits: u64, caches: &Caches) -> u64 {
        let within = |bytes: u64| (bytes.saturating_mul(8) / bits / LEN_UNIT).max(1) * LEN_UNIT;
        match self {
            Size::L2 => within(caches.l2 / 2),
            Size::Llc => within(caches.llc / 2),
            Size::Dram => (4 * caches.all_llcs * 8).div_ceil(bits).next_multiple_of(LEN_UNIT).max(64 << 20),
            Size::Bytes(bytes) => within(bytes),
        }
    }
}

/// The notation of the command line and of JSON: `l2`, `llc`, `dram`, or bytes such as `512MiB`.
impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Size::L2 => f.pad("l2"),
            Size::Llc => f.pad("llc"),
            Size::Dram => f.pad("dram"),
            Size::Bytes(bytes) if bytes % (1 << 20) == 0 => f.pad(&format!("{}MiB", bytes >> 20)),
            Size::Bytes(bytes) if bytes % (1 << 10) == 0 => f.pad(&format!("{}KiB", bytes >> 10)),
            Size::Bytes(bytes) => f.pad(&bytes.to_string()),
        }
    }
}

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Size, String> {
        let bytes = || crate::size::parse(text).ok().map(Size::Bytes);
        match Size::ALL.into_iter().find(|size| size.to_string() == text).or_else(bytes) {
            Some(Size::Bytes(0)) => Err("a size of 0 bytes holds no element".into()),
            Some(size) => Ok(size),
            None => Err(format!("unknown size {text:?}; known sizes are l2, llc, dram, and bytes such as 512MiB")),
        }
    }
}

/// The part of two buffers that a pair uses at a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrays {
    /// Elements.
    pub len: usize,
    /// Bytes of the packed source.
    pub src_bytes: usize,
    /// Bytes of the packed destination.
    pub dst_bytes: usize,
}

impl Arrays {
    /// Returns the arrays of a pair at a size; `None` for text, whose elements have no width.
    ///
    /// # Examples
    /// ```
    /// use truecast_cli::bench::{Arrays, Size};
    /// use truecast_core::DType;
    /// use truecast_kernel::Caches;
    /// let caches = Caches { l2: 1 << 20, llc: 32 << 20, all_llcs: 32 << 20 };
    /// let len = |src, dst, size| Arrays::new(src, dst, size, &caches).unwrap().len;
    /// assert_eq!(len(DType::F32, DType::I32, Size::L2), 65_536); // 256 KiB on either side
    /// assert_eq!(len(DType::F32, DType::I32, Size::Dram), 64 << 20);
    /// assert_eq!(len(DType::F4E2M1, DType::I4, Size::Dram), 128 << 20); // 64 Mi would be twice the cache only
    /// ```
    #[must_use]
    pub fn new(src: DType, dst: DType, size: Size, caches: &Caches) -> Option<Arrays> {
        let len = size.len((src.storage_bits()? + dst.storage_bits()?) as u64, caches);
        let bytes = |dtype: DType| Some(dtype.bytes_in(Layout::Packed, len)? as usize);
        Some(Arrays { len: len as usize, src_bytes: bytes(src)?, dst_bytes: bytes(dst)? })
    }

    /// Returns the number of bytes for which memcpy reads and writes as much as the conversion.
    #[must_use]
    pub fn copied_bytes(&self) -> usize {
        (self.src_bytes + self.dst_bytes) / 2
    }
}

/// Best times for the same buffers and as many threads, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Seconds {
    /// A conversion.
    pub conversion: f64,
    /// A memcpy that reads and writes as many bytes.
    pub memcpy: f64,
    /// The fastest plain pass, which only reads and writes blocks of 64 bytes, in the proportion of the pair. The
    /// variants differ in look-ahead and in stores past the caches; if the pair reads as much as it writes, memcpy is
    /// a variant too.
    pub limit: f64,
}

/// Error that prevents or stops a measurement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum BenchError {
    /// The specification does not allow a pair.
    #[error("{src} to {dst}: {cause}")]
    Spec {
        src: DType,
        /// Destination type.
        dst: DType,
        cause: SpecError,
    },
    /// A pair cannot be planned.
    #[error("{src} to {dst}: {cause}")]
    Plan {
        src: DType,
        /// Destination type.
        dst: DType,
        cause: PlanError,
    },
    /// The policy refuses a value of the data.
    #[error("{src} to {dst}: {cause}; choose another policy to measure it")]
    Value {
        src: DType,
        /// Destination type.
        dst: DType,
        cause: CastError,
    },
    /// The buffers do not fit into memory.
    #[error("buffers of {needed} bytes do not fit into memory")]
    Memory {
        /// Bytes of both buffers.
        needed: u64,
    },
}

/// Allocates a buffer to read from and a buffer to write to.
///
/// # Errors
/// [`BenchError::Memory`].
pub fn pools([src, dst]: [usize; 2]) -> Result<[Pool; 2], BenchError> {
    let needed = src as u64 + dst as u64;
    let too_large = || BenchError::Memory { needed };
    if memory::available().is_some_and(|available| needed > available) {
        return Err(too_large());
    }
    let pool = |bytes| Pool::new(bytes).map_err(|_| too_large());
    Ok([pool(src)?, pool(dst)?])
}

/// Plans a conversion.
///
/// # Errors
/// [`BenchError::Spec`] and [`BenchError::Plan`].
pub fn planned((src, dst): (DType, DType), request: &Request, exec: &CastOptions) -> Result<Caster, BenchError> {
    let spec = request.resolve(src, dst).map_err(|cause| BenchError::Spec { src, dst, cause })?;
    Caster::new(&spec, exec).map_err(|cause| BenchError::Plan { src, dst, cause })
}

/// Measures a conversion. Several threads come from the current rayon pool; the fastest of `samples` counts.
///
/// # Errors
/// Under an `error` policy only.
pub fn measure(
    caster: &Caster,
    exec: &CastOptions,
    samples: NonZeroUsize,
    arrays: Arrays,
    src: &[u8],
    dst: &mut [u8],
) -> Result<Seconds, CastError> {
    let (spec, n) = (caster.spec(), arrays.copied_bytes());
    let codes = Elements::new(spec.src, arrays.len, &src[..arrays.src_bytes])?;
    let copy: Pass<'_> = Box::new(|dst| {
        memcpy(&src[..n], &mut dst[..n], exec.threads);
        Ok(())
    });
    let shape = proportion(spec.src, spec.dst);
    let plain = clock::plain_passes(exec, shape, &src[..arrays.src_bytes], arrays.dst_bytes);
    let passes: Vec<_> = [copy, clock::conversion(caster, codes)].into_iter().chain(plain).collect();
    let seconds = clock::best_of(samples, &passes, dst)?;
    let copies = (shape == (1, 1)).then_some(seconds[0]);
    let limit = seconds[2..].iter().copied().chain(copies).fold(f64::INFINITY, f64::min);
    Ok(Seconds { memcpy: seconds[0], conversion: seconds[1], limit })
}

/// Returns the proportion of the element widths of both types, in lowest terms.
fn proportion(src: DType, dst: DType) -> (usize, usize) {
    let bits = |dtype: DType| dtype.storage_bits().expect("text is never planned") as usize;
    let (a, b) = (bits(src), bits(dst));
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor, b / divisor)
}
