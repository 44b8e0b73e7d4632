//! The array of a result: a new array, or `out`.

use crate::array::{Dense, Given, Library, New, Orders, Wanted, new_dtype};
use crate::dtypes::{self, Form};
use crate::error::{Class, raise};
use crate::memory::Memory;
use crate::source::{Call, Source};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use truecast::{DType, Layout};

pub struct Target<'a, 'py> {
    out: Option<(&'a Bound<'py, PyAny>, Given<'py>)>,
    library: Library,
    dtype: Bound<'py, PyAny>,
    shape: Bound<'py, PyTuple>,
    pub layout: Layout,
    bytes: usize,
}

impl<'a, 'py> Target<'a, 'py> {
    /// `library`: the library of a new array.
    ///
    /// # Errors
    /// An `out` of another type or shape, or of JAX.
    pub fn new(source: &Source<'py>, library: Library, call: &Call<'a, 'py>) -> PyResult<Target<'a, 'py>> {
        let py = source.shape.py();
        let out = call.out.map(|out| PyResult::Ok((out, Given::of_out(out)?))).transpose()?;
        let library = out.as_ref().map_or(library, |(_, given)| given.library);
        if library == Library::Jax && out.is_some() {
            return Err(raise(py, Class::Type, "JAX arrays cannot be written; omit out="));
        }
        let is_paired_f4 = library == Library::Torch && call.to == DType::F4E2M1 && call.form == Form::Values;
        let layout = if is_paired_f4 { Layout::Packed } else { call.form.layout() };
        let bytes = call.to.bytes_in(layout, source.len as u64).unwrap_or(0) as usize;
        let shape = match call.form {
            _ if is_paired_f4 => halved(&source.shape)?,
            Form::Packed => PyTuple::new(py, [bytes])?,
            _ => source.shape.clone(),
        };
        let dtype = new_dtype(py, library, call.to, call.form);
        // An array of unsigned integers may hold codes of a type that its library lacks.
        let codes = (call.form == Form::Values && !is_paired_f4).then_some(call.to);
        let dtype = match &out {
            Some((_, given)) => check_out(given, dtype, &shape, codes)?,
            None => dtype?,
        };
        Ok(Target { out, library, dtype, shape, layout, bytes })
    }

    /// Memory orders in which elements may be converted.
    pub fn orders(&self) -> Orders {
        if self.layout == Layout::Bytes { Orders::Any } else { Orders::OnlyC }
    }

    /// Fills the array. `write` receives the bytes of source and result, which do not overlap, and whether the result's
    /// memory is untouched.
    pub fn fill<T>(
        &self,
        py: Python<'py>,
        source: &Dense<'py>,
        write: impl FnOnce(&[u8], &mut [u8], bool) -> PyResult<T>,
    ) -> PyResult<(Given<'py>, T)> {
        let Some((out, given)) = &self.out else { return self.fill_new(source, write) };
        let done = match given.write(&source.order)? {
            Some(memory) => {
                given.mark_written()?;
                fill_in_place(source, memory, write)?
            }
            None => self.fill_and_copy(py, source, given, write)?,
        };
        Ok((Given { array: (*out).clone(), library: self.library }, done))
    }

    fn fill_new<T>(
        &self,
        source: &Dense<'py>,
        write: impl FnOnce(&[u8], &mut [u8], bool) -> PyResult<T>,
    ) -> PyResult<(Given<'py>, T)> {
        let (shape, dtype) = (&self.shape, &self.dtype);
        let created = Wanted { library: self.library, shape, dtype, order: &source.order }.make(self.bytes)?;
        let New { array, mut memory, is_untouched } = created;
        let done = write(source.memory.bytes(), memory.bytes_mut(), is_untouched)?;
        Ok((array, done))
    }

    /// Computes a result that is not contiguous, or in another order, in new memory. NumPy or torch then copies the
    /// elements, and refuses read-only arrays.
    fn fill_and_copy<T>(
        &self,
        py: Python<'py>,
        source: &Dense<'py>,
        given: &Given<'py>,
        write: impl FnOnce(&[u8], &mut [u8], bool) -> PyResult<T>,
    ) -> PyResult<T> {
        let (array, done) = self.fill_new(source, write)?;
        given.array.set_item(py.Ellipsis(), array.array).map_err(|cause| {
            let error = raise(py, Class::Usage, format_args!("out cannot be written: {cause}"));
            error.set_cause(py, Some(cause));
            error
        })?;
        Ok(done)
    }
}

fn fill_in_place<T>(
    source: &Dense<'_>,
    mut memory: Memory<'_>,
    write: impl FnOnce(&[u8], &mut [u8], bool) -> PyResult<T>,
) -> PyResult<T> {
    if source.memory.overlaps(&memory) {
        let copy = source.memory.bytes().to_vec();
        return write(&copy, memory.bytes_mut(), false);
    }
    write(source.memory.bytes(), memory.bytes_mut(), false)
}

/// Returns the type of `out`. `expected` is the type of a new array; arrays of unsigned integers are accepted too if
/// they may hold `codes`.
fn check_out<'py>(
    out: &Given<'py>,
    expected: PyResult<Bound<'py, PyAny>>,
    shape: &Bound<'py, PyTuple>,
    codes: Option<DType>,
) -> PyResult<Bound<'py, PyAny>> {
    let (out_dtype, out_shape) = (out.dtype()?, out.shape()?);
    let dtype = match (expected, codes) {
        (Ok(dtype), _) if out_dtype.is(&dtype) => dtype,
        (_, Some(codes)) if dtypes::holds_codes(&out_dtype, codes)? => out_dtype.clone(),
        (expected, _) => expected?,
    };
    if !out_dtype.eq(&dtype)? || !out_shape.eq(shape)? {
        let message =
            format_args!("out has type {out_dtype} and shape {out_shape}; expected {dtype} and shape {shape}");
        return Err(raise(shape.py(), Class::Usage, message));
    }
    Ok(dtype)
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
