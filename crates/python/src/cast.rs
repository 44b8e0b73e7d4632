//! `cast`: conversions of arrays.
//!
//! Small arrays must be fast, so types, plans and result types are cached.

use crate::array::{Given, Library, Orders, hand_back};
use crate::caster_cache::{Conversion, caster};
use crate::error::{self, Class, raise};
use crate::source::{Call, Source, call};
use crate::target::Target;
use crate::{pool, request, text};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use truecast::{Counts, DType, Elements, ElementsMut, StochasticCaster};

/// Returns the result, and its counts if they are requested. Rounding by random bits is not counted.
pub fn convert<'py>(x: &Bound<'py, PyAny>, call: &Call<'_, 'py>) -> PyResult<(Bound<'py, PyAny>, Counts)> {
    let given = Given::of(x)?;
    let library = given.library;
    let source = Source::new(given, call.from, call.shape.as_deref())?;
    if [source.dtype, call.to].contains(&DType::String) {
        return text::convert(source, call);
    }
    let (result, counts) = match call.seed {
        None => cast_elements(x.py(), &source, library, call)?,
        Some(seed) => (cast_seeded(x.py(), &source, library, call, seed)?, Counts::default()),
    };
    let result = if call.out.is_some() { result.array } else { hand_back(result, library)? };
    Ok((result, counts))
}

fn cast_elements<'py>(
    py: Python<'py>,
    source: &Source<'py>,
    library: Library,
    call: &Call<'_, 'py>,
) -> PyResult<(Given<'py>, Counts)> {
    let Call { to: dst, request, counting, .. } = *call;
    let conversion = Conversion { src: source.dtype, dst, request, counting, is_untouched: false };
    let cached = caster(py, conversion)?;
    let target = Target::new(source, library, call)?;
    let dense = source.read(target.orders())?;
    target.fill(py, &dense, |src, dst, is_untouched| {
        let cached = if is_untouched { caster(py, Conversion { is_untouched, ..conversion })? } else { cached };
        run(py, source, &target, call.to, (src, dst), |src, dst| Ok(cached.cast(src, dst)?))
    })
}

fn cast_seeded<'py>(
    py: Python<'py>,
    source: &Source<'py>,
    library: Library,
    call: &Call<'_, 'py>,
    seed: u64,
) -> PyResult<Given<'py>> {
    let spec = request::resolve(py, &call.request, source.dtype, call.to)?;
    let target = Target::new(source, library, call)?;
    // Random bits depend on the index of an element, not on its position in memory.
    let dense = source.read(Orders::OnlyC)?;
    let filled = target.fill(py, &dense, |src, dst, _| {
        let exec = pool::options_for(src.len().max(dst.len()));
        run(py, source, &target, call.to, (src, dst), |src, dst| {
            StochasticCaster::new(&spec, seed, &exec)?.cast_parts(src, dst, 0)?;
            Ok(())
        })
    })?;
    Ok(filled.0)
}

/// Runs a conversion of the bytes of source and result. A large one releases the interpreter.
fn run<T: Send>(
    py: Python<'_>,
    source: &Source<'_>,
    target: &Target<'_, '_>,
    to: DType,
    (src, dst): (&[u8], &mut [u8]),
    convert: impl FnOnce(Elements<'_>, ElementsMut<'_>) -> Result<T, truecast::Error> + Send,
) -> PyResult<T> {
    let (len, from, src_layout, dst_layout) = (source.len, source.dtype, source.layout, target.layout);
    let bytes = src.len().max(dst.len());
    let work = || {
        let src = Elements::with_layout(from, src_layout, len, src)?;
        convert(src, ElementsMut::with_layout(to, dst_layout, len, dst)?)
    };
    pool::run(py, bytes, work).map_err(|error| error::to_py_err(py, &error.into()))
}

/// Converts an array. `truecast.cast` documents the arguments.
#[pyfunction]
#[pyo3(signature = (x, to, spec, out, from_, shape, layout, seed, attributes))]
#[allow(clippy::too_many_arguments)] // as in Python
pub fn cast<'py>(
    x: &Bound<'py, PyAny>,
    to: &Bound<'py, PyAny>,
    spec: Option<&str>,
    out: Option<&Bound<'py, PyAny>>,
    from_: Option<&Bound<'py, PyAny>>,
    shape: Option<&Bound<'py, PyAny>>,
    layout: Option<&str>,
    seed: Option<u64>,
    attributes: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let call = Call { seed, ..call(x.py(), to, spec, out, from_, shape, layout, attributes)? };
    request::refuse_rounding_with_seed(x.py(), &call.request, seed)?;
    if seed.is_some() && [call.from, Some(call.to)].contains(&Some(DType::String)) {
        return Err(raise(x.py(), Class::Usage, "text is not rounded stochastically; omit seed="));
    }
    Ok(convert(x, &call)?.0)
}
