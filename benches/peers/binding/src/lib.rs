//! truecast as a Python module, so that peers and truecast convert the same memory in one process. Only what
//! `benches/peers` needs: the data, lengths and memcpy of `truecast bench`, and a planned conversion.
#![forbid(unsafe_code)]

use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use truecast::bench::{self, Arrays, Size, data, pairs};
use truecast::request::Request;
use truecast::{Caches, Caster, Elements, ElementsMut, DType, CastOptions};

fn invalid(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn dtype(name: &str) -> PyResult<DType> {
    name.parse().map_err(invalid)
}

/// The pairs that `truecast bench` measures by default.
#[pyfunction]
fn representative_pairs() -> Vec<(&'static str, &'static str)> {
    pairs::REPRESENTATIVE.iter().map(|(src, dst)| (src.name(), dst.name())).collect()
}

/// Elements of a pair at size `dram`, and the bytes of source and destination.
#[pyfunction]
fn dram_arrays(src: &str, dst: &str) -> PyResult<(usize, usize, usize)> {
    let arrays = Arrays::new(dtype(src)?, dtype(dst)?, Size::Dram, &Caches::of_this_machine());
    let arrays = arrays.ok_or_else(|| invalid("text has no fixed width"))?;
    Ok((arrays.len, arrays.src_bytes, arrays.dst_bytes))
}

/// Fills bytes with the data of `truecast bench`.
#[pyfunction]
fn fill(name: &str, mut bytes: PyReadwriteArray1<'_, u8>) -> PyResult<()> {
    data::fill(dtype(name)?, bytes.as_slice_mut().map_err(invalid)?);
    Ok(())
}

/// The memcpy of `truecast bench`.
#[pyfunction]
fn memcpy(src: PyReadonlyArray1<'_, u8>, mut dst: PyReadwriteArray1<'_, u8>, threads: NonZeroUsize) -> PyResult<()> {
    bench::memcpy(src.as_slice().map_err(invalid)?, dst.as_slice_mut().map_err(invalid)?, threads);
    Ok(())
}

/// A planned conversion under the command line's default rules.
#[pyclass(frozen)]
struct Cast(Caster);

#[pymethods]
impl Cast {
    #[new]
    fn new(src: &str, dst: &str, threads: NonZeroUsize) -> PyResult<Self> {
        let spec = Request::default().resolve(dtype(src)?, dtype(dst)?).map_err(invalid)?;
        Ok(Cast(Caster::new(&spec, &CastOptions { threads, ..CastOptions::default() }).map_err(invalid)?))
    }

    /// Converts `len` packed elements.
    fn __call__(&self, len: usize, src: PyReadonlyArray1<'_, u8>, mut dst: PyReadwriteArray1<'_, u8>) -> PyResult<()> {
        let spec = self.0.spec();
        let src = Elements::new(spec.src, len, src.as_slice().map_err(invalid)?).map_err(invalid)?;
        let dst = ElementsMut::new(spec.dst, len, dst.as_slice_mut().map_err(invalid)?).map_err(invalid)?;
        self.0.cast(src, dst).map_err(invalid)?;
        Ok(())
    }
}

/// truecast for benches/peers.
#[pymodule]
mod truecast_peers {
    #[pymodule_export]
    use super::{Cast, dram_arrays, fill, memcpy, representative_pairs};
}
