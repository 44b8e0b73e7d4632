//! Element types in Python: names, types of NumPy, ml_dtypes and torch, numbers of ONNX.
//!
//! ml_dtypes is imported when a result needs one of its types. torch is taken from `sys.modules` and never imported.

use crate::error::{Class, raise};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyType};
use std::sync::{Mutex, PoisonError};
use truecast::dtype::ParseTypeError;
use truecast::spec::onnx::DataType;
use truecast::{DType, Ecosystem, Layout};

/// Object with a known type. The reference keeps the object alive, so its address stays unique.
struct Known {
    object: Py<PyAny>,
    dtype: DType,
}

/// Largest number of known objects; more than all types in their usual spellings.
const MOST_KNOWN: usize = 200;
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

pub fn imported<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let modules = MODULES.get_or_try_init(py, || {
        let modules = py.import("sys")?.getattr("modules")?;
        PyResult::Ok(modules.cast_into::<PyDict>()?.unbind())
    })?;
    Ok(modules.bind(py).get_item(name)?.filter(|module| !module.is_none()))
}

pub fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Ok(NUMPY.get_or_try_init(py, || py.import("numpy").map(Bound::unbind))?.bind(py))
}

/// Element type of an object: a name of any ecosystem, a type of NumPy, ml_dtypes or torch, or a number of ONNX.
pub fn of_object(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    let pointer = object.as_ptr();
    let known = |all: &Vec<Known>| all.iter().find(|known| known.object.as_ptr() == pointer).map(|known| known.dtype);
    if let Some(dtype) = known(&KNOWN.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(dtype);
    }
    let dtype = read(object)?;
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() < MOST_KNOWN {
        all.push(Known { object: object.clone().unbind(), dtype });
    }
    Ok(dtype)
}

fn read(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = object.py();
    if let Ok(text) = object.cast::<PyString>() {
        return of_name(py, &text.to_cow()?);
    }
    let numpy = numpy(py)?;
    let dtype_class = numpy.getattr(intern!(py, "dtype"))?;
    if object.is_instance(&dtype_class)? {
        return of_numpy(object);
    }
    if let Some(torch) = imported(py, "torch")?
        && object.is_instance(&torch.getattr(intern!(py, "dtype"))?)?
    {
        return of_torch(object);
    }
    if object.is_exact_instance_of::<PyInt>() {
        let row = object.extract::<i64>().ok().and_then(DataType::of_code);
        let unknown = || raise(py, Class::Type, format_args!("{object} is not the number of an ONNX type"));
        return row.and_then(|row| row.dtype).ok_or_else(unknown);
    }
    // A class, for example `numpy.float32`, `ml_dtypes.bfloat16`, `jax.numpy.bfloat16` or `float`.
    match dtype_class.call1((object,)) {
        Ok(dtype) if object.is_instance_of::<PyType>() || object.hasattr(intern!(py, "dtype"))? => of_numpy(&dtype),
        _ => Err(raise(py, Class::Type, format_args!("{} is not an element type", object.repr()?))),
    }
}

pub fn of_name(py: Python<'_>, name: &str) -> PyResult<DType> {
    // NumPy's name with a byte order.
    if name.starts_with(['<', '>', '=', '|'])
        && let Ok(dtype) = numpy(py)?.getattr(intern!(py, "dtype"))?.call1((name,))
    {
        return of_numpy(&dtype);
    }
    DType::parse(name).map_err(|error| {
        // An ambiguous name gets no suggestion.
        let is_unknown = matches!(error, ParseTypeError::Unknown { .. });
        let meant = truecast_cli::nearest_type(name).filter(|_| is_unknown);
        let meant = meant.map_or(String::new(), |dtype| format!("; did you mean {dtype}?"));
        raise(py, Class::Type, format_args!("{error}{meant}"))
    })
}

fn of_numpy(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = dtype.py();
    let name = dtype.getattr(intern!(py, "name"))?;
    let name = name.cast::<PyString>()?.to_cow()?;
    if ["object", "str", "StringDType"].iter().any(|text| name.starts_with(text)) {
        return Ok(DType::String);
    }
    let known = DType::ALL.into_iter().find(|dtype| dtype.names_in(Ecosystem::Numpy).any(|known| known == name));
    known.ok_or_else(|| {
        let hint = if name.starts_with("bytes") || name.starts_with("void") {
            "; if it holds codes, name their type with from_=, and the tensor's shape= if they are packed"
        } else {
            ""
        };
        raise(py, Class::Type, format_args!("truecast does not know arrays of {name}{hint}"))
    })
}

/// Element type of a `torch.dtype`, from its `repr`.
fn of_torch(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
    let text = dtype.repr()?;
    let text = text.to_cow()?;
    let name = text.strip_prefix("torch.").unwrap_or(&text);
    let known = DType::ALL.into_iter().find(|dtype| dtype.names_in(Ecosystem::Torch).any(|known| known == name));
    known.ok_or_else(|| raise(dtype.py(), Class::Type, format_args!("truecast does not know tensors of {text}")))
}

/// Representation of the result's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Values, in an array that has the library's type for these values.
    Values,
    /// Codes, one per element, in unsigned integers of the same width.
    Codes,
    /// Bytes; narrow elements are packed from the lowest bit up.
    Packed,
}

impl Form {
    /// Reads the argument `layout`.
    pub fn parse(py: Python<'_>, layout: Option<&str>) -> PyResult<Form> {
        match layout {
            None | Some("values") => Ok(Form::Values),
            Some("codes") => Ok(Form::Codes),
            Some("packed") => Ok(Form::Packed),
            Some(other) => {
                let known = "known layouts are 'values', 'codes' and 'packed'";
                Err(raise(py, Class::Usage, format_args!("unknown layout {other:?}; {known}")))
            }
        }
    }

    pub fn layout(self) -> Layout {
        if self == Form::Packed { Layout::Packed } else { Layout::Bytes }
    }
}

fn is_of_numpy(dtype: DType) -> bool {
    use DType::*;
    matches!(dtype, Bool | I8 | U8 | I16 | U16 | I32 | U32 | I64 | U64 | F16 | F32 | F64 | C64)
}

fn code_name(dtype: DType) -> Option<&'static str> {
    match dtype.bits_in(Layout::Bytes)? {
        8 => Some("uint8"),
        16 => Some("uint16"),
        32 => Some("uint32"),
        64 => Some("uint64"),
        _ => None,
    }
}

type Cells = Mutex<Vec<((DType, u8), Py<PyAny>)>>;

/// Object that is made only once per type and representation.
fn cached<'py>(
    py: Python<'py>,
    cells: &Cells,
    key: (DType, Form),
    make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let key = (key.0, key.1 as u8);
    let found = |all: &Vec<((DType, u8), Py<PyAny>)>| {
        all.iter().find(|(known, _)| *known == key).map(|(_, object)| object.bind(py).clone())
    };
    if let Some(object) = found(&cells.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(object);
    }
    let made = make()?;
    cells.lock().unwrap_or_else(PoisonError::into_inner).push((key, made.clone().unbind()));
    Ok(made)
}

pub fn to_numpy(py: Python<'_>, dtype: DType, form: Form) -> PyResult<Bound<'_, PyAny>> {
    static CELLS: Cells = Mutex::new(Vec::new());
    cached(py, &CELLS, (dtype, form), || {
        let class = match (form, dtype) {
            (Form::Packed, _) => "uint8".into_pyobject(py)?.into_any(),
            (Form::Codes, _) => {
                code_name(dtype).ok_or_else(|| no_type(py, "NumPy", dtype))?.into_pyobject(py)?.into_any()
            }
            // Every value of tf32 is a value of f32, and is stored as f32.
            (_, DType::Tf32) => "float32".into_pyobject(py)?.into_any(),
            (_, DType::String) => "object".into_pyobject(py)?.into_any(),
            _ if is_of_numpy(dtype) => first_name(dtype, Ecosystem::Numpy).into_pyobject(py)?.into_any(),
            _ => of_ml_dtypes(py, dtype)?,
        };
        numpy(py)?.getattr(intern!(py, "dtype"))?.call1((class,))
    })
}

fn first_name(dtype: DType, ecosystem: Ecosystem) -> &'static str {
    dtype.names_in(ecosystem).next().unwrap_or(dtype.name())
}

fn of_ml_dtypes(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    if dtype.names_in(Ecosystem::Numpy).next().is_none() {
        return Err(no_type(py, "NumPy", dtype));
    }
    let name = first_name(dtype, Ecosystem::Numpy);
    let module = py.import("ml_dtypes").map_err(|_| {
        let instead = "install ml_dtypes, or ask for layout=\"codes\"";
        raise(py, Class::Type, format_args!("NumPy has no type for {dtype}, but ml_dtypes has one: {instead}"))
    })?;
    module.getattr(name).map_err(|_| no_type(py, "this release of ml_dtypes", dtype))
}

fn no_type(py: Python<'_>, library: &str, dtype: DType) -> PyErr {
    let narrow = dtype.bits_in(Layout::Bytes).is_some_and(|bits| matches!(bits, 8 | 16 | 32 | 64));
    let codes = if narrow { "layout=\"codes\" (an unsigned integer for each element) or " } else { "" };
    let instead = format!("ask for {codes}layout=\"packed\" (bytes)");
    raise(py, Class::Type, format_args!("{library} has no type for {dtype}; {instead}"))
}

pub fn to_torch<'py>(torch: &Bound<'py, PyAny>, dtype: DType, form: Form) -> PyResult<Bound<'py, PyAny>> {
    static CELLS: Cells = Mutex::new(Vec::new());
    let py = torch.py();
    cached(py, &CELLS, (dtype, form), || {
        let name = match (form, dtype) {
            (Form::Packed, _) => "uint8",
            (Form::Codes, _) => code_name(dtype).ok_or_else(|| no_type(py, "torch", dtype))?,
            (_, DType::Tf32) => "float32",
            // An element of torch holds two codes. torch's other narrow types are not usable yet.
            (_, DType::F4E2M1) => "float4_e2m1fn_x2",
            _ if dtype.storage_bits().is_none_or(|bits| bits < 8) => return Err(no_type(py, "torch", dtype)),
            _ => dtype.names_in(Ecosystem::Torch).next().ok_or_else(|| no_type(py, "torch", dtype))?,
        };
        torch.getattr(name).map_err(|_| no_type(py, "this release of torch", dtype))
    })
}

/// True if arrays of `found` hold Python objects, which are never codes.
pub fn has_objects(found: &Bound<'_, PyAny>) -> PyResult<bool> {
    found.getattr_opt(intern!(found.py(), "hasobject"))?.map_or(Ok(false), |has| has.is_truthy())
}

/// True if arrays of `found` can hold codes of `dtype`: unsigned integers or bytes of the same width.
pub fn holds_codes(found: &Bound<'_, PyAny>, dtype: DType) -> PyResult<bool> {
    let name = found.str()?;
    let name = name.to_cow()?;
    let name = name.strip_prefix("torch.").unwrap_or(&name);
    let Some(code) = code_name(dtype) else { return Ok(false) };
    let is_void = matches!((name, code), ("|V1", "uint8") | ("|V2", "uint16"));
    // Types of other names hold these elements: float32 holds tf32, int8 holds bytes.
    let is_stand_in = matches!((name, dtype), ("float32", DType::Tf32) | ("int8", DType::I8));
    Ok(name == code || is_void || is_stand_in)
}

/// The canonical names of the types, in the order of `docs/interfaces.md` section 1.
#[pyfunction]
pub fn type_names(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, DType::ALL.map(DType::name))
}

/// Canonical name of a type given in any form that `cast` accepts.
#[pyfunction]
pub fn type_name(object: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    Ok(of_object(object)?.name())
}

/// `torch.dtype` for tensors of a type.
#[pyfunction]
pub fn torch_dtype<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let torch = object.py().import("torch")?;
    to_torch(torch.as_any(), of_object(object)?, Form::Values)
}
