//! Arrays of other libraries as elements in memory: whose they are, where they lie, and new ones of the same kind.
//!
//! NumPy tells by `__array_struct__`, which its types, ml_dtypes' and every release of NumPy have, and takes no time; torch
//! by its tensors' methods. Everything else becomes an array of NumPy first, JAX's without a copy.

use crate::dtypes::{self, Form, imported, numpy};
use crate::error::{Class, raise};
use crate::memory::Memory;
use crate::pages::Pages;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::{c_char, c_int, c_void};
use truecast::DType;

/// Whose array it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Numpy,
    Torch,
    Jax,
}

/// An array of any library, as one whose memory can be asked for.
pub struct Given<'py> {
    /// Of NumPy or torch.
    pub array: Bound<'py, PyAny>,
    /// Where it came from.
    pub library: Library,
}

/// The order of elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last index moves fastest.
    C,
    /// The first one does.
    Fortran,
}

/// Elements without gaps.
pub struct Dense<'py> {
    pub memory: Memory<'py>,
    pub order: Order,
}

fn ndarray<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Ok(CLASS.get_or_try_init(py, || numpy(py)?.getattr("ndarray").map(Bound::unbind))?.bind(py))
}

impl<'py> Given<'py> {
    /// What an argument is.
    pub fn of(x: &Bound<'py, PyAny>) -> PyResult<Given<'py>> {
        let py = x.py();
        if x.get_type().is(ndarray(py)?) {
            return Ok(Given { array: x.clone(), library: Library::Numpy });
        }
        if let Some(torch) = imported(py, "torch")?
            && x.is_instance(&torch.getattr(intern!(py, "Tensor"))?)?
        {
            let device = x.getattr(intern!(py, "device"))?.getattr(intern!(py, "type"))?.str()?;
            if device.to_cow()? != "cpu" {
                let message = format_args!("the tensor is on device {device}; truecast converts on the CPU: x.cpu()");
                return Err(raise(py, Class::Type, message));
            }
            return Ok(Given { array: x.clone(), library: Library::Torch });
        }
        let is_jax = match imported(py, "jax")? {
            Some(jax) => x.is_instance(&jax.getattr(intern!(py, "Array"))?)?,
            None => false,
        };
        let has_dlpack = || x.hasattr(intern!(py, "__dlpack__"));
        let is_array = x.is_instance(ndarray(py)?)? || x.hasattr(intern!(py, "__array__"))?;
        let array = match !is_jax && !is_array && has_dlpack()? {
            true => numpy(py)?.call_method1(intern!(py, "from_dlpack"), (x,)),
            false => numpy(py)?.call_method1(intern!(py, "asarray"), (x,)),
        };
        let array = array.map_err(|error| {
            let name = x.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
            let raised = raise(py, Class::Type, format_args!("{name} is no array that truecast can read: {error}"));
            raised.set_cause(py, Some(error));
            raised
        })?;
        Ok(Given { array, library: if is_jax { Library::Jax } else { Library::Numpy } })
    }

    /// The type of its elements, as its library has it.
    pub fn dtype(&self) -> PyResult<Bound<'py, PyAny>> {
        self.array.getattr(intern!(self.array.py(), "dtype"))
    }

    /// Its shape.
    pub fn shape(&self) -> PyResult<Bound<'py, PyTuple>> {
        Ok(self.array.getattr(intern!(self.array.py(), "shape"))?.cast_into()?)
    }

    /// Its memory: its own, or that of a copy without gaps and in this machine's order of bytes. Only in the order `C`
    /// unless `any_order`.
    pub fn read(&self, any_order: bool) -> PyResult<Dense<'py>> {
        let py = self.array.py();
        if self.library == Library::Torch {
            let mut tensor = self.array.clone();
            for resolve in [intern!(py, "resolve_conj"), intern!(py, "resolve_neg"), intern!(py, "contiguous")] {
                tensor = tensor.call_method0(resolve)?;
            }
            return torch_memory(tensor);
        }
        let dense = |array: &Bound<'py, PyAny>| {
            let found = Interface::of(array)?;
            match found.order().filter(|order| any_order || *order == Order::C) {
                Some(order) if found.is_native() => PyResult::Ok(Some(Dense { memory: found.memory(array), order })),
                _ => Ok(None),
            }
        };
        if let Some(dense) = dense(&self.array)? {
            return Ok(dense);
        }
        let native = self.dtype()?.call_method1(intern!(py, "newbyteorder"), ("=",))?;
        let copy = self.array.call_method1(intern!(py, "astype"), (native, "C"))?;
        dense(&copy)?.ok_or_else(|| raise(py, Class::Type, "the array has no memory of its own"))
    }

    /// Its own memory, to be written: `None` if it has gaps, or another order than this.
    pub fn write(&self, order: Order) -> PyResult<Option<Memory<'py>>> {
        let py = self.array.py();
        if self.library == Library::Torch {
            let is_dense = self.array.call_method0(intern!(py, "is_contiguous"))?.is_truthy()?;
            return Ok((is_dense && order == Order::C)
                .then(|| torch_memory(self.array.clone()))
                .transpose()?
                .map(|d| d.memory));
        }
        let found = Interface::of(&self.array)?;
        let fits = found.has(order.flag()) && found.is_native() && found.has(WRITEABLE);
        Ok(fits.then(|| found.memory(&self.array)))
    }
}

/// A new array of a library.
pub struct New<'py> {
    pub array: Given<'py>,
    /// Its memory, without gaps.
    pub memory: Memory<'py>,
    /// Its pages may still have to be cleared by the system, when they are first written.
    pub is_untouched: bool,
}

/// A new array of so many bytes.
pub fn new<'py>(
    py: Python<'py>,
    library: Library,
    shape: &Bound<'py, PyTuple>,
    dtype: &Bound<'py, PyAny>,
    order: Order,
    bytes: usize,
) -> PyResult<New<'py>> {
    let (array, is_untouched) = match Pages::of(bytes) {
        Some((pages, is_new)) => (on_pages(py, library, shape, dtype, order, pages)?, is_new),
        None => (empty(py, library, shape, dtype, order)?, true),
    };
    let memory = array.write(order)?;
    let memory = memory.ok_or_else(|| raise(py, Class::System, "a new array has no memory"))?;
    Ok(New { array, memory, is_untouched })
}

/// An array whose memory these pages are, which it keeps alive.
fn on_pages<'py>(
    py: Python<'py>,
    library: Library,
    shape: &Bound<'py, PyTuple>,
    dtype: &Bound<'py, PyAny>,
    order: Order,
    pages: Pages,
) -> PyResult<Given<'py>> {
    let bytes = numpy(py)?.call_method1(intern!(py, "asarray"), (Bound::new(py, pages)?,))?;
    let array = match library {
        Library::Torch => {
            // A tensor of its own, no view of one of bytes.
            let torch = torch(py)?;
            let storage = torch.call_method1(intern!(py, "from_numpy"), (bytes,))?;
            let storage = storage.call_method0(intern!(py, "untyped_storage"))?;
            let options = PyDict::new(py);
            options.set_item(intern!(py, "dtype"), dtype)?;
            let none = torch.call_method(intern!(py, "empty"), (0,), Some(&options))?;
            none.call_method1(intern!(py, "set_"), (storage, 0, shape))?
        }
        _ => {
            let order = if order == Order::C { "C" } else { "F" };
            ndarray(py)?.call1((shape, dtype, bytes, 0, py.None(), order))?
        }
    };
    Ok(Given { array, library })
}

fn empty<'py>(
    py: Python<'py>,
    library: Library,
    shape: &Bound<'py, PyTuple>,
    dtype: &Bound<'py, PyAny>,
    order: Order,
) -> PyResult<Given<'py>> {
    if library == Library::Torch {
        let options = PyDict::new(py);
        options.set_item(intern!(py, "dtype"), dtype)?;
        let array = torch(py)?.call_method(intern!(py, "empty"), (shape,), Some(&options))?;
        return Ok(Given { array, library });
    }
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let empty = EMPTY.get_or_try_init(py, || numpy(py)?.getattr("empty").map(Bound::unbind))?.bind(py);
    let array = match order {
        Order::C => empty.call1((shape, dtype)),
        Order::Fortran => empty.call1((shape, dtype, "F")),
    }?;
    Ok(Given { array, library })
}

/// The result as an array of the library that the argument came from.
pub fn hand_back<'py>(result: Given<'py>, to: Library) -> PyResult<Bound<'py, PyAny>> {
    let py = result.array.py();
    match to {
        Library::Jax => {
            let jax = py.import("jax")?;
            jax.getattr("numpy")?.call_method1("asarray", (result.array,))
        }
        _ => Ok(result.array),
    }
}

/// The `dtype` of new arrays of a library.
pub fn new_dtype<'py>(py: Python<'py>, library: Library, dtype: DType, form: Form) -> PyResult<Bound<'py, PyAny>> {
    match library {
        Library::Torch => dtypes::to_torch(&torch(py)?, dtype, form),
        _ => dtypes::to_numpy(py, dtype, form),
    }
}

/// torch, which whoever has a tensor has imported.
fn torch(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    imported(py, "torch")?.ok_or_else(|| raise(py, Class::Type, "torch is not imported"))
}

fn torch_memory<'py>(tensor: Bound<'py, PyAny>) -> PyResult<Dense<'py>> {
    let py = tensor.py();
    let data: usize = tensor.call_method0(intern!(py, "data_ptr"))?.extract()?;
    let elements: usize = tensor.call_method0(intern!(py, "numel"))?.extract()?;
    let width: usize = tensor.call_method0(intern!(py, "element_size"))?.extract()?;
    // SAFETY: a contiguous tensor on the CPU has `numel` elements of `element_size` bytes from `data_ptr` on, as long as it
    // lives; torch has no read-only tensors. Both callers have made sure that it is contiguous.
    let memory = unsafe { Memory::new(data as *mut u8, elements * width, true, tensor) };
    Ok(Dense { memory, order: Order::C })
}

/// `PyArrayInterface` of NumPy's array interface, version 3.
#[repr(C)]
struct Struct {
    two: c_int,
    nd: c_int,
    typekind: c_char,
    itemsize: c_int,
    flags: c_int,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    data: *mut c_void,
    descr: *mut ffi::PyObject,
}

const C_CONTIGUOUS: c_int = 0x1;
const F_CONTIGUOUS: c_int = 0x2;
const NOT_SWAPPED: c_int = 0x200;
const WRITEABLE: c_int = 0x400;

impl Order {
    fn flag(self) -> c_int {
        if self == Order::C { C_CONTIGUOUS } else { F_CONTIGUOUS }
    }
}

/// What `__array_struct__` says of an array.
struct Interface {
    data: *mut u8,
    bytes: usize,
    flags: c_int,
    /// NumPy does not call types of one byte, or of other libraries, native.
    width: c_int,
}

impl Interface {
    /// Of an array of NumPy.
    fn of(array: &Bound<'_, PyAny>) -> PyResult<Interface> {
        let capsule = array.getattr(intern!(array.py(), "__array_struct__"))?;
        // SAFETY: `capsule` is an object that is alive; a capsule without a name is asked for, and everything else makes
        // the function set an exception and return null.
        let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()) };
        if pointer.is_null() {
            return Err(PyErr::fetch(array.py()));
        }
        // SAFETY: the capsule of `__array_struct__` holds a `PyArrayInterface` of version 3 (`two` is 2), and lives until
        // the end of this function.
        let found = unsafe { &*pointer.cast::<Struct>() };
        assert!(found.two == 2 && found.itemsize >= 0, "this is no array interface of version 3");
        let dimensions = match found.nd {
            1.. => {
                // SAFETY: `shape` points to `nd` numbers, of which there are some, and lives as the structure does.
                unsafe { std::slice::from_raw_parts(found.shape, found.nd as usize) }
            }
            _ => &[],
        };
        let elements: usize = dimensions.iter().map(|&n| n as usize).product();
        let bytes = elements * found.itemsize as usize;
        Ok(Interface { data: found.data.cast(), bytes, flags: found.flags, width: found.itemsize })
    }

    fn has(&self, flag: c_int) -> bool {
        self.flags & flag != 0
    }

    fn is_native(&self) -> bool {
        self.has(NOT_SWAPPED) || self.width == 1
    }

    fn order(&self) -> Option<Order> {
        [Order::C, Order::Fortran].into_iter().find(|order| self.has(order.flag()))
    }

    /// The memory of the array, which has no gaps.
    fn memory<'py>(&self, array: &Bound<'py, PyAny>) -> Memory<'py> {
        assert!(self.order().is_some(), "the array has gaps");
        // SAFETY: an array whose flags say that it is contiguous has its elements, `bytes` in all, from `data` on as long as
        // it lives, and they may be written if its flags say so.
        unsafe { Memory::new(self.data, self.bytes, self.has(WRITEABLE), array.clone()) }
    }
}
