//! Cache of casters: planning takes longer than the conversion of a small array.

use crate::{error, pool, request};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use truecast::request::Request;
use truecast::{CastOptions, Caster, Counting, DType};

/// Most recent first.
static CASTERS: Mutex<Vec<(Conversion, NonZeroUsize, Arc<Caster>)>> = Mutex::new(Vec::new());
/// Largest number of cached casters; more than a program uses repeatedly.
const MAX_CASTERS: usize = 64;

#[derive(Clone, Copy, PartialEq)]
pub struct Conversion {
    pub src: DType,
    pub dst: DType,
    pub request: Request,
    pub counting: Counting,
    /// True if the result gets new pages. There are no streaming stores to such pages: the system has just cleared them
    /// through the caches.
    pub is_untouched: bool,
}

/// Returns the caster of a conversion, for the current number of threads.
pub fn caster(py: Python<'_>, conversion: Conversion) -> PyResult<Arc<Caster>> {
    let Conversion { src, dst, counting, is_untouched, .. } = conversion;
    let exec = CastOptions { counting, stream_above_bytes: is_untouched.then_some(usize::MAX), ..pool::options() };
    let mut casters = CASTERS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known =
        |(known, threads, _): &(Conversion, NonZeroUsize, _)| (known, threads) == (&conversion, &exec.threads);
    if let Some(at) = casters.iter().position(is_known) {
        casters[..=at].rotate_right(1);
        return Ok(casters[0].2.clone());
    }
    drop(casters);
    let spec = request::resolve(py, &conversion.request, src, dst)?;
    let caster = Arc::new(Caster::new(&spec, &exec).map_err(|error| error::to_py_err(py, &error.into()))?);
    let mut casters = CASTERS.lock().unwrap_or_else(PoisonError::into_inner);
    casters.truncate(MAX_CASTERS - 1);
    casters.insert(0, (conversion, exec.threads, caster.clone()));
    Ok(caster)
}
