//! Values of a tile, in the narrower of f32 and f64 that holds the type exactly. 64-bit integers are the nearest f64
//! and a residual.

use crate::intermediate::Intermediate;
use crate::level::Level;
use crate::pipeline::{Pipeline, Scratch, Source, Target, room};
use crate::plan::{plan, residual, values};
use truecast_core::{CastSpec, DType, Kind, Layout};

fn fits_f32(dtype: DType) -> bool {
    match dtype.kind() {
        Kind::Bool | Kind::Book(_) | Kind::Fixed(_) => true,
        Kind::Int(f) => f.bits <= 24,
        Kind::Float(f) => f.embeds_in(&truecast_core::format::F32),
        Kind::Complex(_) | Kind::String => false,
    }
}

#[derive(Debug)]
pub(super) struct Values {
    pub intermediate: Intermediate,
    /// `None` if elements are stored as values.
    decode: Option<Pipeline>,
    /// Pipeline to the residuals of 64-bit integers; `None` for other types.
    residual: Option<Pipeline>,
}

/// Buffers of [`Values`], which grow to the longest tile: tensors of a checkpoint may be very small.
#[derive(Debug, Default)]
pub(super) struct Tile {
    values: Vec<u8>,
    /// Residuals as f64; all zero except for 64-bit integers.
    residuals: Vec<u8>,
}

/// Size of a cache line. A load of this size should not cross two lines.
const LINE: usize = 64;

/// First `len` bytes of a buffer from a line boundary.
fn aligned(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    let buffer = room(buffer, len + LINE);
    let start = buffer.as_ptr().align_offset(LINE) % LINE;
    &mut buffer[start..start + len]
}

impl Values {
    pub fn in_narrowest(dtype: DType, level: Level) -> Self {
        Values::new(dtype, if fits_f32(dtype) { Intermediate::F32 } else { Intermediate::F64 }, level)
    }

    pub fn new(dtype: DType, intermediate: Intermediate, level: Level) -> Self {
        let is_intermediate = dtype == intermediate.dtype();
        Self {
            intermediate,
            decode: (!is_intermediate).then(|| values(dtype, intermediate, level)),
            residual: residual(dtype, level),
        }
    }

    /// Reader of a conversion's source values as f64, after scaling. Exact for sources of at most 32 bits.
    pub fn scaled(spec: &CastSpec, level: Level) -> Self {
        let decode = plan(&spec.scaled_value(), level).expect("numbers become f64").1;
        Self { intermediate: Intermediate::F64, decode: Some(decode), residual: None }
    }

    pub fn has_residuals(&self) -> bool {
        self.residual.is_some()
    }

    /// Reads values and residuals of `n` elements, in the default floating-point environment.
    pub fn read<'a>(
        &self,
        src: Source<'a>,
        n: usize,
        tile: &'a mut Tile,
        scratch: &mut Scratch,
    ) -> (&'a [u8], &'a [u8]) {
        let residuals = room(&mut tile.residuals, n * 8);
        if let Some(residual) = &self.residual {
            let to = Target { layout: Layout::Packed, bytes: &mut *residuals };
            residual.run_total(src, to, n, scratch);
        }
        let Some(decode) = &self.decode else { return (src.bytes, residuals) };
        let values = aligned(&mut tile.values, n * self.intermediate.bytes());
        let to = Target { layout: Layout::Packed, bytes: &mut *values };
        decode.run_total(src, to, n, scratch);
        (values, residuals)
    }
}
