//! Arguments of a conversion: the array, and the other arguments.

use crate::array::{Dense, Given, Library, Orders};
use crate::dtypes::{self, Form};
use crate::error::{Class, raise};
use crate::request;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use truecast::request::Request;
use truecast::{Counting, DType, Layout};

pub struct Call<'a, 'py> {
    pub to: DType,
    pub request: Request,
    pub out: Option<&'a Bound<'py, PyAny>>,
    /// Type of the elements, if the array does not state it.
    pub from: Option<DType>,
    /// Shape of the tensor, if the array has its bytes.
    pub shape: Option<Vec<u64>>,
    pub form: Form,
    pub counting: Counting,
    pub seed: Option<u64>,
}

pub struct Source<'py> {
    pub given: Given<'py>,
    pub dtype: DType,
    pub layout: Layout,
    pub len: usize,
    /// Shape of the result in elements.
    pub shape: Bound<'py, PyTuple>,
    /// True if each byte is a code whose high bits must be zero.
    are_codes: bool,
}

impl<'py> Source<'py> {
    /// Returns the elements of an argument, of its own type or of `from`.
    pub fn new(given: Given<'py>, from: Option<DType>, shape: Option<&[u64]>) -> PyResult<Source<'py>> {
        let py = given.array.py();
        let found = given.dtype()?;
        let Some(dtype) = from else {
            let dtype = dtypes::of_object(&found)?;
            return match shape {
                None => Source::of_values(given, dtype),
                Some(_) => Err(raise(py, Class::Usage, "shape describes packed bytes: give their type with from_")),
            };
        };
        if let Some(shape) = shape {
            if dtypes::has_objects(&found)? {
                return Err(raise(
                    py,
                    Class::Type,
                    format_args!("an array of {found} holds Python objects, not codes"),
                ));
            }
            let len = shape.iter().try_fold(1u64, |n, &of| n.checked_mul(of)).unwrap_or(u64::MAX);
            let (expected, bytes) = (dtype.bytes_in(Layout::Packed, len), bytes_of(&given)?);
            if expected != Some(bytes as u64) {
                let needs = expected.map_or("no".into(), |expected| expected.to_string());
                let message =
                    format_args!("a {dtype} tensor of shape {shape:?} has {needs} bytes, the array has {bytes}");
                return Err(raise(py, Class::Usage, message));
            }
            let shape = PyTuple::new(py, shape)?;
            return Ok(Source { given, dtype, layout: Layout::Packed, len: len as usize, shape, are_codes: false });
        }
        if dtypes::of_object(&found).is_ok_and(|found| found == dtype) {
            return Source::of_values(given, dtype);
        }
        if !dtypes::holds_codes(&found, dtype)? {
            let message =
                format_args!("an array of {found} cannot hold codes of {dtype}; expected an array of its width");
            return Err(raise(py, Class::Type, message));
        }
        Ok(Source { are_codes: true, ..Source::of_elements(given, dtype)? })
    }

    /// Memory of the elements. Refuses invalid codes, because such bytes are probably packed.
    pub fn read(&self, orders: Orders) -> PyResult<Dense<'py>> {
        let dense = self.given.read(if self.layout == Layout::Bytes { orders } else { Orders::OnlyC })?;
        let bits = self.dtype.code_bits();
        let has_spare_bits = self.are_codes && bits < 8 && self.dtype != DType::Bool;
        if has_spare_bits && let Some(at) = dense.memory.bytes().iter().position(|code| code >> bits != 0) {
            let (py, dtype, code) = (self.shape.py(), self.dtype, dense.memory.bytes()[at]);
            let message = format_args!(
                "{code:#04x} at byte {at} is not a code of {dtype}, which has {bits} bits; bytes that hold several \
                 elements need shape="
            );
            return Err(raise(py, Class::Input, message));
        }
        Ok(dense)
    }

    fn of_values(given: Given<'py>, dtype: DType) -> PyResult<Source<'py>> {
        match (given.library, dtype) {
            (Library::Torch, DType::F4E2M1) => Source::of_pairs(given),
            _ => Source::of_elements(given, dtype),
        }
    }

    fn of_elements(given: Given<'py>, dtype: DType) -> PyResult<Source<'py>> {
        let shape = given.shape()?;
        // ml_dtypes ignores the high bits of narrow integers, but not of narrow floats.
        let are_codes = matches!(dtype, DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2);
        Ok(Source { len: len_of(&shape)?, shape, given, dtype, layout: Layout::Bytes, are_codes })
    }

    /// Elements of a torch tensor with two codes per element, the first in the low bits.
    fn of_pairs(given: Given<'py>) -> PyResult<Source<'py>> {
        let py = given.array.py();
        let mut shape: Vec<usize> = given.shape()?.extract()?;
        match shape.last_mut() {
            Some(last) => *last *= 2,
            None => return Err(raise(py, Class::Type, "a tensor of pairs has at least one dimension")),
        }
        let shape = PyTuple::new(py, shape)?;
        let len = len_of(&shape)?;
        Ok(Source { given, dtype: DType::F4E2M1, layout: Layout::Packed, len, shape, are_codes: false })
    }
}

fn len_of(shape: &Bound<'_, PyTuple>) -> PyResult<usize> {
    let dimensions: Vec<usize> = shape.extract()?;
    let some = dimensions.iter().fold(1usize, |len, n| len.saturating_mul(*n));
    Ok(if dimensions.contains(&0) { 0 } else { some })
}

fn bytes_of(given: &Given<'_>) -> PyResult<usize> {
    given.array.getattr(intern!(given.array.py(), "nbytes"))?.extract()
}

pub fn shape_of(shape: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    shape.extract().or_else(|_| {
        let message = format_args!("shape = {}: expected whole numbers, 0 or more, such as (2, 3)", shape.repr()?);
        Err(raise(shape.py(), Class::Usage, message))
    })
}

#[allow(clippy::too_many_arguments)] // as in Python
pub fn call<'a, 'py>(
    py: Python<'py>,
    to: &Bound<'py, PyAny>,
    spec: Option<&str>,
    out: Option<&'a Bound<'py, PyAny>>,
    from: Option<&Bound<'py, PyAny>>,
    shape: Option<&Bound<'py, PyAny>>,
    layout: Option<&str>,
    attributes: Option<&Bound<'py, PyDict>>,
) -> PyResult<Call<'a, 'py>> {
    Ok(Call {
        to: dtypes::of_object(to)?,
        request: match (spec, attributes) {
            (None, None) => Request::default(),
            (None, Some(attributes)) if attributes.is_empty() => Request::default(),
            _ => request::parse(py, spec, attributes)?,
        },
        out,
        from: from.map(dtypes::of_object).transpose()?,
        shape: shape.map(shape_of).transpose()?,
        form: Form::parse(py, layout)?,
        counting: Counting::Off,
        seed: None,
    })
}
