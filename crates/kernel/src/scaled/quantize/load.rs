//! Elements as f32, and the largest magnitude of a tensor.

use super::blocks::Blocks;
use super::source::is_source;
use crate::level::Level;
use crate::pipeline::{Pipeline, Scratch};
use crate::scaled::ahead::AHEAD;
use crate::scaled::rows::Rows;
use crate::scaled::values::pipeline;
use crate::stage::slot_bytes;
use truecast_core::DType;
use truecast_core::scaled::{NonFinite, ScaledError, amax};

#[derive(Debug)]
pub(super) struct Loader {
    pub src: DType,
    level: Level,
    to_f32: Pipeline,
}

impl Loader {
    pub fn new(src: DType, level: Level) -> Result<Loader, ScaledError> {
        if !is_source(src) && src != DType::F64 {
            return Err(ScaledError::Source { dtype: src });
        }
        Ok(Loader { src, level, to_f32: pipeline(src, DType::F32, level)? })
    }

    /// All elements of rows as f32, without gaps.
    pub fn all(&self, rows: &Rows<'_>, scratch: &mut Scratch) -> Vec<u8> {
        let mut all = vec![0; rows.n_rows * rows.cols * 4];
        for (row, x) in all.chunks_mut(rows.cols * 4).enumerate() {
            if rows.dtype == DType::F32 {
                x.copy_from_slice(rows.row(row));
            } else {
                self.to_f32.run_packed(rows.row(row), x, rows.cols, scratch);
            }
        }
        all
    }

    /// Largest magnitude of the finite elements.
    ///
    /// # Errors
    /// The first nonfinite element, under [`NonFinite::Error`].
    pub fn amax(&self, nonfinite: NonFinite, src: &[u8]) -> Result<f32, ScaledError> {
        const TILE: usize = 4096;
        let (size, mut blocks, mut all) = (slot_bytes(self.src), Blocks::default(), 0);
        for (i, src) in src.chunks(TILE * size).enumerate() {
            let rows = Rows::single(self.src, src, TILE);
            if is_source(self.src) {
                blocks.find(self.level, rows, AHEAD, false, &mut Vec::new());
            }
            if !is_source(self.src) || !blocks.is_finite {
                let x = self.all(&rows, &mut blocks.scratch);
                let values: Vec<u32> = x.as_chunks::<4>().0.iter().map(|x| u32::from_le_bytes(*x)).collect();
                blocks.amax = vec![amax(nonfinite, &values).map_err(|error| match error {
                    ScaledError::NotFinite { index } => ScaledError::NotFinite { index: index + (i * TILE) as u64 },
                    error => error,
                })?];
            }
            all = all.max(blocks.amax[0]);
        }
        Ok(f32::from_bits(all))
    }
}
