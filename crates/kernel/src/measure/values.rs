//! Values of a tile, in the narrower of f32 and f64 that holds their type exactly. 64-bit integers come as the nearest
//! f64 and what it leaves over.

use crate::hub::Hub;
use crate::level::Level;
use crate::pipeline::{Pipeline, Scratch, Stores, TILE};
use crate::plan::{residual, values};
use crate::slot::Slot;
use truecast_core::{DType, Kind, Layout};

/// A value as it lies in a tile: the bits of an f32 or of an f64.
pub(crate) trait Value: Slot {
    /// What the bits are.
    type Float: Copy + PartialOrd + Into<f64>;
    const ZERO: Self::Float;
    const INFINITY: Self::Float;

    fn float(bytes: Self::Bytes) -> Self::Float;
    fn magnitude(bytes: Self::Bytes) -> Self::Float;
    fn is_negative(bytes: Self::Bytes) -> bool;
    /// The least of these that is not below a number: a value lies below one exactly if it lies below the other.
    fn at_least(number: f64) -> Self::Float;
    /// The bytes of many.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only kernels written by hand take bytes"))]
    fn bytes(values: &[Self::Bytes]) -> &[u8];

    #[inline(always)]
    fn value(bytes: Self::Bytes) -> f64 {
        Self::float(bytes).into()
    }
}

macro_rules! value {
    ($($slot:ty, $float:ident;)*) => {$(
        impl Value for $slot {
            type Float = $float;
            const ZERO: $float = 0.0;
            const INFINITY: $float = $float::INFINITY;

            #[inline(always)]
            fn float(bytes: Self::Bytes) -> $float {
                $float::from_le_bytes(bytes)
            }
            #[inline(always)]
            fn magnitude(bytes: Self::Bytes) -> $float {
                Self::float(bytes).abs()
            }
            #[inline(always)]
            fn is_negative(bytes: Self::Bytes) -> bool {
                Self::float(bytes).is_sign_negative()
            }
            #[inline(always)]
            fn at_least(number: f64) -> $float {
                let near = number as $float;
                if (near as f64) < number { near.next_up() } else { near }
            }
            #[inline(always)]
            fn bytes(values: &[Self::Bytes]) -> &[u8] {
                values.as_flattened()
            }
        }
    )*};
}

value! {
    u32, f32;
    u64, f64;
}

/// No infinity and no NaN: an integer test, which nothing rewrites.
#[inline(always)]
pub(super) fn finite(v: f64) -> bool {
    v.to_bits() & 0x7ff0_0000_0000_0000 != 0x7ff0_0000_0000_0000
}

/// Every value of the type is an f32.
fn fits_f32(dtype: DType) -> bool {
    match dtype.kind() {
        Kind::Bool | Kind::Book(_) | Kind::Fixed(_) => true,
        Kind::Int(f) => f.bits <= 24,
        Kind::Float(f) => f.embeds_in(&truecast_core::format::F32),
        Kind::Complex(_) | Kind::String => false,
    }
}

/// Reads elements of one type as values, a tile at a time.
#[derive(Debug)]
pub(super) struct Values {
    pub hub: Hub,
    /// `None` if the elements are the values.
    decode: Option<Pipeline>,
    /// Only for 64-bit integers.
    residual: Option<Pipeline>,
}

/// What [`Values`] writes to.
#[derive(Debug)]
pub(super) struct Tile {
    values: Vec<u8>,
    /// As f64; all zero but for 64-bit integers.
    residuals: Vec<u8>,
}

impl Tile {
    pub fn new() -> Self {
        Self { values: vec![0; TILE * 8 + LINE], residuals: vec![0; TILE * 8] }
    }
}

/// Bytes of a cache line, which a load of as many should not straddle.
const LINE: usize = 64;

/// The first bytes of a buffer that begin a line.
fn aligned(buffer: &mut [u8], len: usize) -> &mut [u8] {
    let start = buffer.as_ptr().align_offset(LINE) % LINE;
    &mut buffer[start..start + len]
}

impl Values {
    /// In the narrowest hub.
    pub fn of(dtype: DType, level: Level) -> Self {
        Values::new(dtype, if fits_f32(dtype) { Hub::F32 } else { Hub::F64 }, level)
    }

    pub fn new(dtype: DType, hub: Hub, level: Level) -> Self {
        let is_hub = dtype == hub.dtype();
        Self { hub, decode: (!is_hub).then(|| values(dtype, hub, level)), residual: residual(dtype, level) }
    }

    pub fn has_residuals(&self) -> bool {
        self.residual.is_some()
    }

    /// The values of `n` elements and their residuals. Must run in the default floating-point environment.
    pub fn read<'a>(
        &self,
        (layout, bytes): (Layout, &'a [u8]),
        n: usize,
        tile: &'a mut Tile,
        scratch: &mut Scratch,
    ) -> (&'a [u8], &'a [u8]) {
        let infallible = "reading a value refuses nothing";
        let residuals = &mut tile.residuals[..n * 8];
        if let Some(residual) = &self.residual {
            residual
                .run((layout, bytes), (Layout::Packed, &mut *residuals), n, Stores::PLAIN, scratch, None)
                .expect(infallible);
        }
        let Some(decode) = &self.decode else { return (bytes, residuals) };
        let values = aligned(&mut tile.values, n * self.hub.bytes());
        decode.run((layout, bytes), (Layout::Packed, &mut *values), n, Stores::PLAIN, scratch, None).expect(infallible);
        (values, residuals)
    }
}
