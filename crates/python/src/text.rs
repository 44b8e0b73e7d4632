//! Conversions between lists of `str` and elements.

use crate::array::{Library, Order, Orders, Wanted};
use crate::dtypes::{self, Form, numpy};
use crate::error::{self, Class, raise};
use crate::request::resolve;
use crate::source::{Call, Source};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use truecast::text::{TextCaster, Texts};
use truecast::{CastOptions, CastSpec, Caster, Counting, Counts, DType, Elements, ElementsMut, Layout};

pub fn convert<'py>(source: Source<'py>, call: &Call<'_, 'py>) -> PyResult<(Bound<'py, PyAny>, Counts)> {
    let py = source.shape.py();
    if source.given.library != Library::Numpy {
        return Err(raise(py, Class::Type, "text is converted from and to arrays of NumPy only"));
    }
    if call.counting == Counting::Full {
        return Err(raise(py, Class::Usage, "truecast does not count text in memory; convert a file"));
    }
    let spec = resolve(py, &call.request, source.dtype, call.to)?;
    let len = source.len;
    let result = match (source.dtype, call.to) {
        (DType::String, DType::String) => strings(py, &source.shape, list(&source)?)?,
        (DType::String, to) => {
            let texts = read(&list(&source)?)?;
            let caster = planned(py, &spec)?;
            let mut codes = vec![0; len * bytes_of(to)];
            let parsed = py.detach(|| caster.parse(&texts, &mut codes));
            parsed.map_err(|error| error::to_py_err(py, &error.into()))?;
            elements(py, &source.shape, to, call.form, codes)?
        }
        (from, _) => {
            let dense = source.read(Orders::OnlyC)?;
            let codes = dense.memory.bytes();
            let loose = relaid(from, codes, (source.layout, Layout::Bytes), len);
            let caster = planned(py, &spec)?;
            let mut texts = Texts::default();
            let printed = py.detach(|| caster.print(loose.as_deref().unwrap_or(codes), &mut texts));
            printed.map_err(|error| error::to_py_err(py, &error.into()))?;
            let texts = texts.iter().map(|text| PyString::new(py, &String::from_utf8_lossy(text)));
            strings(py, &source.shape, PyList::new(py, texts.collect::<Vec<_>>())?)?
        }
    };
    let Some(out) = call.out else { return Ok((result, Counts::default())) };
    if !out.getattr(intern!(py, "shape"))?.eq(result.getattr(intern!(py, "shape"))?)? {
        return Err(raise(py, Class::Usage, format_args!("out has another shape than {}", source.shape)));
    }
    out.set_item(py.Ellipsis(), result).map_err(|cause| {
        let error = raise(py, Class::Usage, format_args!("out cannot be written: {cause}"));
        error.set_cause(py, Some(cause));
        error
    })?;
    Ok((out.clone(), Counts::default()))
}

fn planned(py: Python<'_>, spec: &CastSpec) -> PyResult<TextCaster> {
    TextCaster::new(spec).map_err(|error| raise(py, Class::Spec, error))
}

/// Bytes per element, at least one.
fn bytes_of(dtype: DType) -> usize {
    dtype.bits_in(Layout::Bytes).map_or(1, |bits| bits as usize / 8)
}

/// Elements of an array of text in C order.
fn list<'py>(source: &Source<'py>) -> PyResult<Bound<'py, PyList>> {
    let py = source.shape.py();
    let flat = source.given.array.call_method0(intern!(py, "ravel"))?;
    Ok(flat.call_method0(intern!(py, "tolist"))?.cast_into()?)
}

fn read(list: &Bound<'_, PyList>) -> PyResult<Vec<Vec<u8>>> {
    let one = |(index, text): (usize, Bound<'_, PyAny>)| match (text.cast::<PyString>(), text.cast::<PyBytes>()) {
        (Ok(text), _) => Ok(text.to_cow()?.as_bytes().to_vec()),
        (_, Ok(bytes)) => Ok(bytes.as_bytes().to_vec()),
        _ => {
            let name = text.get_type().name()?;
            let hint = "an array of objects must hold strings; np.asarray(x, float) converts other objects to numbers";
            Err(raise(list.py(), Class::Type, format_args!("element {index} is {name}: {hint}")))
        }
    };
    list.iter().enumerate().map(one).collect()
}

fn strings<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyTuple>,
    texts: Bound<'py, PyList>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtypes::to_numpy(py, DType::String, Form::Values)?;
    let flat = numpy(py)?.call_method1(intern!(py, "empty"), (texts.len(), dtype))?;
    flat.set_item(py.Ellipsis(), texts)?;
    flat.call_method1(intern!(py, "reshape"), (shape,))
}

/// Makes an array from codes of one byte each.
fn elements<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyTuple>,
    dtype: DType,
    form: Form,
    codes: Vec<u8>,
) -> PyResult<Bound<'py, PyAny>> {
    let len = codes.len() / bytes_of(dtype);
    let packed = relaid(dtype, &codes, (Layout::Bytes, form.layout()), len);
    let bytes = packed.unwrap_or(codes);
    let shape = if form == Form::Packed { PyTuple::new(py, [bytes.len()])? } else { shape.clone() };
    let dtype = dtypes::to_numpy(py, dtype, form)?;
    let wanted = Wanted { library: Library::Numpy, shape: &shape, dtype: &dtype, order: &Order::C };
    let mut made = wanted.make(bytes.len())?;
    made.memory.bytes_mut().copy_from_slice(&bytes);
    Ok(made.array.array)
}

/// The elements in another layout; `None` if the layouts are equal.
pub fn relaid(dtype: DType, codes: &[u8], (from, to): (Layout, Layout), len: usize) -> Option<Vec<u8>> {
    if dtype.bits_in(from) == dtype.bits_in(to) {
        return None;
    }
    let mut moved = vec![0; dtype.bytes_in(to, len as u64)? as usize];
    let caster = Caster::new(&CastSpec::copy(dtype), &CastOptions { ..*crate::pool::DEFAULTS }).ok()?;
    let source = Elements::with_layout(dtype, from, len, codes).ok()?;
    caster.cast(source, ElementsMut::with_layout(dtype, to, len, &mut moved).ok()?).ok()?;
    Some(moved)
}
