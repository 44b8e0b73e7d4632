//! `quantize` and `dequantize`: arrays to the parts of a scaled tensor and back, with `truecast::scaled`.

use crate::array::{Given, Library, New, Order, Orders, Wanted, hand_back, new_dtype};
use crate::dtypes::{self, Form as Words};
use crate::error::{self, Class, raise};
use crate::keywords::Keywords;
use crate::memory::Memory;
use crate::source::{Source, shape_of};
use crate::{pool, request};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use truecast::files::Error;
use truecast::scaled::{Array, Code, Dequantizer, Form, Packing, Part, Plane, Quantization, Quantizer, Scheme, scheme};
use truecast::select::quantize_options::{MxScale, NONFINITE, SEARCHES};
use truecast::{CastSpec, DType, Layout};
use truecast_cli::unknown_scheme;

const fn name_of(part: Part) -> &'static str {
    match part {
        Part::Codes => "codes",
        Part::Scales => "scales",
        Part::Global => "global_scale",
        Part::Zeros => "zeros",
        Part::Biases => "biases",
        Part::Index => "index",
        Part::Book => "book",
    }
}

pub fn how(asked: &mut Keywords<'_>) -> PyResult<Quantization> {
    Ok(Quantization {
        mx: asked.word("mx_scale", MxScale::ALL)?.unwrap_or_default(),
        search: asked.word("scale_search", SEARCHES)?.unwrap_or_default(),
        nonfinite: asked.word("nonfinite", NONFINITE)?.unwrap_or_default(),
        ..Quantization::default()
    })
}

fn scheme_of(py: Python<'_>, name: &str) -> PyResult<Scheme> {
    scheme(name).map_err(|error| raise(py, Class::Usage, error))
}

/// Type of a part's array. torch has a type for pairs of f4e2m1.
fn dtype_of<'py>(py: Python<'py>, library: Library, array: &Array, words: Words) -> PyResult<Bound<'py, PyAny>> {
    const PAIRS: Plane = Plane { code: Code::Float(DType::F4E2M1), packing: Packing::BYTES };
    if library == Library::Torch && array.plane == PAIRS && words == Words::Values {
        let pairs = new_dtype(py, library, DType::F4E2M1, words);
        return pairs.or_else(|_| new_dtype(py, library, array.dtype, words));
    }
    // Types that every library has.
    let is_common = matches!(array.dtype, DType::F32 | DType::F16 | DType::U8 | DType::I8 | DType::I32);
    new_dtype(py, library, array.dtype, if is_common { Words::Values } else { words })
}

/// Quantizes an array; returns the scheme, the name of its type, and its parts by name.
#[pyfunction]
#[pyo3(signature = (x, scheme, from_, layout, keywords))]
pub fn quantize<'py>(
    x: &Bound<'py, PyAny>,
    scheme: &str,
    from_: Option<&Bound<'py, PyAny>>,
    layout: Option<&str>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<(String, Bound<'py, PyTuple>, &'static str, Bound<'py, PyDict>)> {
    let py = x.py();
    let usage = |why: String| raise(py, Class::Usage, why);
    let known = truecast::scaled::written();
    let scheme = self::scheme(scheme).map_err(|error| usage(unknown_scheme(&error, &known)))?;
    let words = Words::parse(py, layout)?;
    if words == Words::Packed {
        return Err(raise(py, Class::Usage, "layout is \"values\" or \"codes\"; the scheme determines the packing"));
    }
    let how = how(&mut Keywords::of(keywords)?)?;
    // Codes and scales have no gradient.
    let given = Given::find(x)?;
    let library = given.library;
    let source = Source::new(given, from_.map(dtypes::of_object).transpose()?, None)?;
    let shape: Vec<u64> = source.shape.extract()?;
    let fail = |error: Error| error::to_py_err(py, &error);
    let form = Form::new(scheme, &shape)
        .map_err(|error| raise(py, Class::Usage, format_args!("x has shape {}: {error}", source.shape)))?;
    let dense = source.read(Orders::OnlyC)?;
    let exec = pool::options_for(dense.memory.bytes().len());
    let quantizer = Quantizer::new(&form, source.dtype, &how, &exec).map_err(fail)?;
    let (mut made, mut room): (Vec<Given<'_>>, Vec<Memory<'_>>) = Default::default();
    for array in form.arrays() {
        let shape = PyTuple::new(py, &array.shape)?;
        let bytes = array.bytes();
        let dtype = dtype_of(py, library, array, words)?;
        let wanted = Wanted { library, shape: &shape, dtype: &dtype, order: &Order::C };
        let New { array, memory, .. } = wanted.make(bytes)?;
        made.push(array);
        room.push(memory);
    }
    let mut rooms: Vec<&mut [u8]> = room.iter_mut().map(Memory::bytes_mut).collect();
    let src = dense.memory.bytes();
    pool::run(py, src.len(), || quantizer.run(src, &mut rooms)).map_err(fail)?;
    drop(room);
    let parts = PyDict::new(py);
    for (array, made) in form.arrays().iter().zip(made) {
        parts.set_item(name_of(array.part), hand_back(made, library)?)?;
    }
    Ok((scheme.to_string(), source.shape, source.dtype.name(), parts))
}

/// Dequantizes a scaled tensor.
#[pyfunction]
#[pyo3(signature = (scheme, shape, parts, to, spec, attributes))]
pub fn dequantize<'py>(
    py: Python<'py>,
    scheme: &str,
    shape: &Bound<'py, PyAny>,
    parts: &Bound<'py, PyDict>,
    to: &Bound<'py, PyAny>,
    spec: Option<&str>,
    attributes: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let fail = |error: Error| error::to_py_err(py, &error);
    let shape = shape_of(shape)?;
    let form = Form::new(scheme_of(py, scheme)?, &shape).map_err(fail)?;
    let to = dtypes::of_object(to)?;
    let request = request::parse(py, spec, attributes)?;
    let cast = match to {
        DType::F32 => CastSpec::copy(DType::F32),
        to => request::resolve(py, &request, DType::F32, to)?,
    };
    let mut read = Vec::new();
    let mut library = Library::Numpy;
    for array in form.arrays() {
        let name = name_of(array.part);
        let found = parts.get_item(name)?.filter(|found| !found.is_none());
        let Some(found) = found else {
            return Err(raise(py, Class::Usage, format_args!("{} needs {name}, but none are given", form.scheme())));
        };
        let given = Given::of(&found)?;
        if array.part == Part::Codes {
            library = given.library;
        }
        check(&given, array)?;
        read.push(given.read(Orders::OnlyC)?);
    }
    let elements = shape.iter().product();
    let shape = PyTuple::new(py, &shape)?;
    let dtype = new_dtype(py, library, to, Words::Values)?;
    let bytes = to.bytes_in(Layout::Bytes, elements).unwrap_or(0) as usize;
    let wanted = Wanted { library, shape: &shape, dtype: &dtype, order: &Order::C };
    let New { array: made, mut memory, .. } = wanted.make(bytes)?;
    let arrays: Vec<&[u8]> = read.iter().map(|dense| dense.memory.bytes()).collect();
    let room = memory.bytes_mut();
    let dequantizer = Dequantizer::new(&form, &cast, &pool::options_for(room.len())).map_err(fail)?;
    pool::run(py, room.len(), || dequantizer.run(&arrays, room)).map_err(fail)?;
    hand_back(made, library)
}

/// Checks type and shape of an array; dimensions of size 1 are ignored.
fn check(given: &Given<'_>, array: &Array) -> PyResult<()> {
    let py = given.array.py();
    let (found, shape): (_, Vec<u64>) = (given.dtype()?, given.shape()?.extract()?);
    let is_pairs = given.library == Library::Torch
        && array.plane.code == Code::Float(DType::F4E2M1)
        && dtypes::of_object(&found).is_ok_and(|of| of == DType::F4E2M1);
    let is_type = is_pairs
        || dtypes::of_object(&found).is_ok_and(|of| of == array.dtype)
        || dtypes::holds_codes(&found, array.dtype)?;
    let long = |shape: &[u64]| shape.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
    if is_type && long(&shape) == long(&array.shape) {
        return Ok(());
    }
    let (part, expected) = (name_of(array.part), &array.shape);
    let dtype = array.dtype;
    let message = format_args!("{part} are {found} of shape {shape:?}; expected {dtype} of shape {expected:?}");
    Err(raise(py, Class::Type, message))
}

/// Names of schemes that belong to no package.
#[pyfunction]
pub fn scheme_names() -> Vec<(&'static str, &'static str)> {
    truecast::scaled::NAMES.to_vec()
}
