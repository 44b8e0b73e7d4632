//! `cast`: plans the conversion and provides the memory of source and result.
//!
//! Small arrays must be fast, so types, plans and result types are cached.

use crate::array::{Dense, Given, Library, New, hand_back, new, new_dtype};
use crate::dtypes::{self, Form};
use crate::error::{self, Class, raise};
use crate::source::{Call, Source, call};
use crate::{pool, request, text};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use truecast::request::Request;
use truecast::{CastOptions, Caster, Counting, Counts, DType, Elements, ElementsMut, Layout, StochasticCaster};

/// Cached casters, most recent first.
static PLANNED: Mutex<Vec<(Key, Arc<Caster>)>> = Mutex::new(Vec::new());
/// Largest number of cached casters; more than a program uses repeatedly.
const MOST_PLANNED: usize = 64;

#[derive(Clone, Copy, PartialEq)]
struct Key {
    src: DType,
    dst: DType,
    request: Request,
    threads: NonZeroUsize,
    counting: Counting,
    is_untouched: bool,
}

/// Caster for a pair of types. Memory with new pages gets no streaming stores: the system has just cleared the pages
/// through the caches.
fn planned(
    py: Python<'_>,
    request: &Request,
    (src, dst): (DType, DType),
    counting: Counting,
    is_untouched: bool,
) -> PyResult<Arc<Caster>> {
    let exec = CastOptions { counting, stream_above_bytes: is_untouched.then_some(usize::MAX), ..pool::options() };
    let key = Key { src, dst, request: *request, threads: exec.threads, counting, is_untouched };
    let mut all = PLANNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = all.iter().position(|(known, _)| *known == key) {
        all[..=at].rotate_right(1);
        return Ok(all[0].1.clone());
    }
    drop(all);
    let spec = request::resolve(py, request, src, dst)?;
    let caster = Arc::new(Caster::new(&spec, &exec).map_err(|error| error::to_py_err(py, &error.into()))?);
    let mut all = PLANNED.lock().unwrap_or_else(PoisonError::into_inner);
    all.truncate(MOST_PLANNED - 1);
    all.insert(0, (key, caster.clone()));
    Ok(caster)
}

pub fn convert<'py>(x: &Bound<'py, PyAny>, call: &Call<'_, 'py>) -> PyResult<(Bound<'py, PyAny>, Counts)> {
    let py = x.py();
    let given = Given::of(x)?;
    let library = given.library;
    let source = Source::new(given, call.from, call.shape.as_deref())?;
    if [source.dtype, call.to].contains(&DType::String) {
        return text::convert(source, call);
    }
    let plan = |is_untouched| planned(py, &call.request, (source.dtype, call.to), call.counting, is_untouched);
    let caster = plan(false)?;
    let target = Target::new(&source, library, call)?;
    // Random bits depend on the index of an element, not on its position in memory.
    let dense = source.read(target.any_order() && call.seed.is_none())?;
    let (result, counts) = target.fill(py, &dense, |codes, room, is_untouched| {
        let caster = if is_untouched { plan(true)? } else { caster };
        let bytes = codes.len().max(room.len());
        let (len, from, to) = (source.len, (source.dtype, source.layout), (call.to, target.layout));
        let seed = call.seed;
        let work = || {
            let codes = Elements::with_layout(from.0, from.1, len, codes)?;
            let room = ElementsMut::with_layout(to.0, to.1, len, room)?;
            match seed {
                None => Ok(caster.cast(codes, room)?),
                Some(seed) => {
                    StochasticCaster::new(caster.spec(), seed, &pool::options_for(bytes))?
                        .cast_parts(codes, room, 0)?;
                    Ok(Counts::default())
                }
            }
        };
        pool::run(py, bytes, work).map_err(|error: truecast::Error| error::to_py_err(py, &error.into()))
    })?;
    let result = if call.out.is_some() { result.array } else { hand_back(result, library)? };
    Ok((result, counts))
}

pub struct Target<'a, 'py> {
    out: Option<(&'a Bound<'py, PyAny>, Given<'py>)>,
    library: Library,
    dtype: Bound<'py, PyAny>,
    shape: Bound<'py, PyTuple>,
    pub layout: Layout,
    bytes: usize,
}

impl<'a, 'py> Target<'a, 'py> {
    /// Returns a new array of the requested form as the destination, or the given array.
    pub fn new(source: &Source<'py>, library: Library, call: &Call<'a, 'py>) -> PyResult<Target<'a, 'py>> {
        let py = source.shape.py();
        let out = call.out.map(|out| PyResult::Ok((out, Given::of_out(out)?))).transpose()?;
        let of_out = out.as_ref().map_or(library, |(_, given)| given.library);
        if of_out == Library::Jax && out.is_some() {
            return Err(raise(py, Class::Type, "JAX arrays cannot be written; omit out="));
        }
        let pairs = of_out == Library::Torch && call.to == DType::F4E2M1 && call.form == Form::Values;
        let layout = if pairs { Layout::Packed } else { call.form.layout() };
        let bytes = call.to.bytes_in(layout, source.len as u64).unwrap_or(0) as usize;
        let shape = match call.form {
            _ if pairs => halved(&source.shape)?,
            Form::Packed => PyTuple::new(py, [bytes])?,
            _ => source.shape.clone(),
        };
        let dtype = || new_dtype(py, of_out, call.to, call.form);
        let Some((_, given)) = &out else {
            return Ok(Target { out, library: of_out, dtype: dtype()?, shape, layout, bytes });
        };
        let (found, has) = (given.dtype()?, given.shape()?);
        // An array of unsigned integers may hold codes of a type that its library lacks.
        let may_be_codes = call.form == Form::Values && !pairs;
        let dtype = match dtype() {
            Ok(dtype) if found.is(&dtype) => dtype,
            _ if may_be_codes && dtypes::holds_codes(&found, call.to)? => found.clone(),
            dtype => dtype?,
        };
        if !found.eq(&dtype)? || !has.eq(&shape)? {
            let message = format_args!("out has type {found} and shape {has}; expected {dtype} and shape {shape}");
            return Err(raise(py, Class::Usage, message));
        }
        Ok(Target { out, library: of_out, dtype, shape, layout, bytes })
    }

    /// True if elements may be converted in any memory order.
    pub fn any_order(&self) -> bool {
        self.layout == Layout::Bytes
    }

    /// Fills the destination. `write` receives the bytes of source and result, which do not overlap, and whether the
    /// result's memory is untouched.
    pub fn fill<T>(
        &self,
        py: Python<'py>,
        source: &Dense<'py>,
        write: impl FnOnce(&[u8], &mut [u8], bool) -> PyResult<T>,
    ) -> PyResult<(Given<'py>, T)> {
        let fresh = || new(py, self.library, &self.shape, &self.dtype, &source.order, self.bytes);
        let Some((out, given)) = &self.out else {
            let New { array, mut memory, is_untouched } = fresh()?;
            let done = write(source.memory.bytes(), memory.bytes_mut(), is_untouched)?;
            return Ok((array, done));
        };
        let out = Given { array: (*out).clone(), library: self.library };
        if let Some(mut memory) = given.write(&source.order)? {
            given.mark_written()?;
            if source.memory.overlaps(&memory) {
                let copy = source.memory.bytes().to_vec();
                let done = write(&copy, memory.bytes_mut(), false)?;
                return Ok((out, done));
            }
            let done = write(source.memory.bytes(), memory.bytes_mut(), false)?;
            return Ok((out, done));
        }
        // A result that is not contiguous, or in another order, is computed in new memory. NumPy or torch then copies
        // the elements, and refuses read-only arrays.
        let New { array, mut memory, is_untouched } = fresh()?;
        let done = write(source.memory.bytes(), memory.bytes_mut(), is_untouched)?;
        given.array.set_item(py.Ellipsis(), array.array).map_err(|cause| {
            let error = raise(py, Class::Usage, format_args!("out cannot be written: {cause}"));
            error.set_cause(py, Some(cause));
            error
        })?;
        Ok((out, done))
    }
}

/// Shape of a torch tensor with two codes per element.
fn halved<'py>(shape: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    let py = shape.py();
    let mut halved: Vec<usize> = shape.extract()?;
    match halved.last_mut() {
        Some(last) if *last % 2 == 0 => *last /= 2,
        _ => {
            let message =
                format_args!("torch packs pairs of f4e2m1, but shape {shape} does not have an even last dimension");
            return Err(raise(py, Class::Type, message));
        }
    }
    PyTuple::new(py, halved)
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
