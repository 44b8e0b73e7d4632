//! `vectors`: test vectors of a cast, as arrays.

use crate::array::{Library, New, Order, Wanted, hand_back, new_dtype};
use crate::dtypes::{self, Form};
use crate::error::{self, Class, raise};
use crate::{pool, request};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use truecast::vectors::{Extent, Vector, VectorError, cast_vectors};
use truecast::{DType, ElementsMut, Layout};

const EXTENTS: [(&str, Extent); 2] = [("boundary", Extent::Boundary), ("exhaustive", Extent::Exhaustive)];

/// Lists the vectors of a pair. Returns the request as text, the clause, the arrays, and for each open result its
/// index, the reason, and the accepted codes (`None` for any).
#[pyfunction]
#[pyo3(signature = (from_, to, level, seed, layout, spec, attributes))]
#[allow(clippy::too_many_arguments)] // as in Python
pub fn vectors<'py>(
    py: Python<'py>,
    from_: &Bound<'py, PyAny>,
    to: &Bound<'py, PyAny>,
    level: &str,
    seed: Option<u64>,
    layout: Option<&str>,
    spec: Option<&str>,
    attributes: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (src, dst) = (dtypes::of_object(from_)?, dtypes::of_object(to)?);
    let form = Form::parse(py, layout)?;
    if form == Form::Packed {
        return Err(raise(py, Class::Usage, "layout is \"values\" or \"codes\"; vectors are not packed"));
    }
    let Some((_, extent)) = EXTENTS.into_iter().find(|(name, _)| *name == level) else {
        return Err(raise(py, Class::Usage, format_args!("level {level:?}: expected boundary or exhaustive")));
    };
    let request = request::parse(py, spec, attributes)?;
    request::refuse_rounding_with_seed(py, &request, seed)?;
    let cast = request::resolve(py, &request, src, dst)?;
    let vectors = pool::run(py, usize::MAX, || cast_vectors(&cast, extent, seed));
    let vectors = vectors.map_err(|error| match error {
        VectorError::Plan(error) => error::to_py_err(py, &truecast::Error::from(error).into()),
        error => error::with_code(py, error.error_code(), raise(py, Class::Usage, error)),
    })?;
    let array = |dtype: DType, form, code: &dyn Fn(&Vector) -> u64| array(py, (dtype, form), &vectors, code);
    let listed = PyDict::new(py);
    let seed_text = seed.map_or(String::new(), |seed| format!(" seed={seed}"));
    listed.set_item("spec", request.to_string() + &seed_text)?;
    listed.set_item("from_", src.name())?;
    listed.set_item("to", dst.name())?;
    listed.set_item("clause", cast.clause)?;
    listed.set_item("input", array(src, form, &|vector| vector.input)?)?;
    listed.set_item("output", array(dst, form, &|vector| vector.output.unwrap_or(0))?)?;
    listed.set_item("undefined", array(DType::Bool, Form::Values, &|vector| vector.open.is_some().into())?)?;
    listed.set_item("refused", array(DType::Bool, Form::Values, &|vector| vector.output.is_none().into())?)?;
    let bits = |vector: &Vector| vector.random.map_or(0, |random| random.bits());
    let random = seed.map(|_| array(DType::U32, Form::Values, &bits)).transpose()?;
    listed.set_item("random", random)?;
    let open = vectors.iter().enumerate().filter_map(|(index, vector)| vector.open.as_ref().map(|open| (index, open)));
    let open: Vec<_> = open.map(|(index, open)| (index, open.reason, open.accepted.clone())).collect();
    listed.set_item("open", open)?;
    Ok(listed)
}

fn array<'py>(
    py: Python<'py>,
    (dtype, form): (DType, Form),
    vectors: &[Vector],
    code: &dyn Fn(&Vector) -> u64,
) -> PyResult<Bound<'py, PyAny>> {
    // Arrays hold i48 in 64 bits (docs/spec/tosa.md §7.1).
    let is_i48 = dtype == DType::I48;
    let dtype = if is_i48 { DType::I64 } else { dtype };
    let extended = |code: u64| if is_i48 { ((code << 16) as i64 >> 16) as u64 } else { code };
    let numpy_dtype = new_dtype(py, Library::Numpy, dtype, form)?;
    let bytes = dtype.bytes_in(Layout::Bytes, vectors.len() as u64).unwrap_or(0) as usize;
    let shape = PyTuple::new(py, [vectors.len()])?;
    let wanted = Wanted { library: Library::Numpy, shape: &shape, dtype: &numpy_dtype, order: &Order::C };
    let New { array, mut memory, .. } = wanted.make(bytes)?;
    let room = ElementsMut::with_layout(dtype, Layout::Bytes, vectors.len(), memory.bytes_mut());
    let mut room = room.map_err(|error| error::to_py_err(py, &truecast::Error::from(error).into()))?;
    vectors.iter().enumerate().for_each(|(at, vector)| room.set(at, extended(code(vector))));
    drop(memory);
    hand_back(array, Library::Numpy)
}
