//! Values of a tile, in the narrower of f32 and f64 that holds both types of a pair exactly. 64-bit integers come as the
//! nearest f64 and what it leaves over.

use crate::level::Level;
use crate::plan::{Hub, residual, values};
use crate::slot::Slot;
use crate::stage::{Pipeline, Scratch, Stores, TILE};
use truecast_core::{DType, Kind, Layout};

/// A value as it lies in a tile: the bits of an f32 or of an f64.
pub(super) trait Value: Slot {
    fn value(self) -> f64;
}

impl Value for u32 {
    #[inline(always)]
    fn value(self) -> f64 {
        f32::from_bits(self) as f64
    }
}

impl Value for u64 {
    #[inline(always)]
    fn value(self) -> f64 {
        f64::from_bits(self)
    }
}

/// No infinity and no NaN: an integer test, which nothing rewrites.
#[inline(always)]
pub(super) fn finite(v: f64) -> bool {
    v.to_bits() & 0x7ff0_0000_0000_0000 != 0x7ff0_0000_0000_0000
}

/// Every value of the type is an f32.
pub(super) fn fits_f32(dtype: DType) -> bool {
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
    /// `None` if the elements are the values.
    decode: Option<Pipeline>,
    /// Only for 64-bit integers.
    residual: Option<Pipeline>,
    value_bytes: usize,
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
        Self { values: vec![0; TILE * 8], residuals: vec![0; TILE * 8] }
    }
}

impl Values {
    pub fn new(dtype: DType, hub: Hub, level: Level) -> Self {
        let is_hub = dtype == hub.dtype();
        Self {
            decode: (!is_hub).then(|| values(dtype, hub, level)),
            residual: residual(dtype, level),
            value_bytes: hub.bytes(),
        }
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
                .run((layout, bytes), (Layout::Packed, &mut *residuals), n, Stores::Plain, scratch, None)
                .expect(infallible);
        }
        let Some(decode) = &self.decode else { return (bytes, residuals) };
        let values = &mut tile.values[..n * self.value_bytes];
        decode.run((layout, bytes), (Layout::Packed, &mut *values), n, Stores::Plain, scratch, None).expect(infallible);
        (values, residuals)
    }
}
