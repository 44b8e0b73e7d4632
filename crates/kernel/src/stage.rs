//! Stages: passes over a tile in L1. A conversion has at most four stages: unpack, load into an intermediate, encode,
//! pack (`docs/kernels.md §2`).
//!
//! The stage [`Scalar`] is the definition. Other stages are in `lane`, `table` and hand-written kernels.

use std::fmt::Debug;
use truecast_core::policy::Condition;
use truecast_core::{CastSpec, DType, Outcome, cast_one};

/// An `error` policy refused an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Index of the first refused element.
    pub index: usize,
    pub condition: Condition,
}

/// Path of results past the caches (`docs/kernels.md §8`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streaming {
    /// Results go through a tile if they are wider than their sources, or if they are a quarter as wide.
    ByWidth,
    /// By stores of the stage, for any width.
    Itself,
}

/// Pass over unpacked elements of 1, 2, 4 or 8 bytes.
pub(crate) trait Stage: Debug + Send + Sync {
    /// Bytes per source element and per result.
    fn widths(&self) -> (usize, usize);
    /// Converts `src.len() / widths().0` elements.
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal>;
    /// Prepares a conversion of `len` elements; called once before the conversion. A stage may fill a table.
    fn prepare(&self, _len: usize) {}
    fn streaming(&self) -> Streaming {
        Streaming::ByWidth
    }
    /// Whether the stage reads packed elements of this width without unpacking.
    fn reads_packed(&self, _bits: u32) -> bool {
        false
    }
    /// Whether the stage packs its results to this width.
    fn writes_packed(&self, _bits: u32) -> bool {
        false
    }
    /// Converts `n` elements. The stage must refuse no value. The number in `_src` and in `_dst` is the bits per
    /// element: a width of [`Stage::widths`], or the width of a packed element.
    ///
    /// With `streams`, results are stored past the caches ([`Streaming::Itself`]). Returns false, without any effect,
    /// if such stores are impossible in these buffers.
    fn run_in_place(&self, _src: (u32, &[u8]), _dst: (u32, &mut [u8]), _n: usize, _streams: bool) -> bool {
        unreachable!("only for a stage that streams itself, or reads or writes packed elements")
    }
}

/// Bytes of an unpacked element.
///
/// # Panics
/// For text.
pub(crate) fn slot_bytes(dtype: DType) -> usize {
    dtype.storage_bits().expect("text is never planned").next_power_of_two().max(8) as usize / 8
}

/// Product of an f64 and a power of two. Every product must be normal or zero.
#[derive(Debug)]
pub(crate) struct Multiply(pub f64);

impl Stage for Multiply {
    fn widths(&self) -> (usize, usize) {
        (8, 8)
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        for (s, d) in src.as_chunks().0.iter().zip(dst.as_chunks_mut().0) {
            *d = (f64::from_le_bytes(*s) * self.0).to_le_bytes();
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Scalar(pub CastSpec);

impl Stage for Scalar {
    fn widths(&self) -> (usize, usize) {
        (slot_bytes(self.0.src), slot_bytes(self.0.dst))
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        let (src_bytes, dst_bytes) = self.widths();
        for (index, (s, d)) in src.chunks_exact(src_bytes).zip(dst.chunks_exact_mut(dst_bytes)).enumerate() {
            let mut wide = [0; 8];
            wide[..src_bytes].copy_from_slice(s);
            let result = scalar(&self.0, u64::from_le_bytes(wide)).map_err(|condition| Refusal { index, condition })?;
            d.copy_from_slice(&result.to_le_bytes()[..dst_bytes]);
        }
        Ok(())
    }
}

pub(crate) fn scalar(spec: &CastSpec, storage: u64) -> Result<u64, Condition> {
    match cast_one(spec, spec.src.code_of_storage(storage)) {
        Outcome::Defined(code) | Outcome::Undefined { code, .. } => Ok(spec.dst.storage_of_code(code)),
        Outcome::Refused { condition } => Err(condition),
    }
}
