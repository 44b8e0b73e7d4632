//! Arrays of other libraries as elements in memory, and new arrays.
//!
//! NumPy arrays are read through `__array_struct__`, which is fast and exists in every release. torch tensors are read
//! through their methods (`torch`). Every other object is first converted to a NumPy array. For a JAX array, this
//! conversion makes no copy.

use crate::dtypes::{self, Form, imported, numpy};
use crate::error::{Class, raise};
use crate::memory::Memory;
use crate::pages::Pages;
use crate::torch;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::ffi::{c_char, c_int, c_void};
use truecast::DType;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Numpy,
    Torch,
    Jax,
}

/// Array of any library, with accessible memory.
pub struct Given<'py> {
    /// NumPy array or torch tensor.
    pub array: Bound<'py, PyAny>,
    pub library: Library,
}

/// Order of contiguous elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last index varies fastest.
    C,
    /// The first index varies fastest.
    Fortran,
    /// Another order: strides in elements.
    Strides(Vec<usize>),
}

/// Orders that a reader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    OnlyC,
    Any,
}

impl Order {
    /// Returns the order of elements with these distances, if they are contiguous and do not overlap.
    pub fn of_strides(shape: &[usize], strides: &[usize]) -> Option<Order> {
        let axes = || shape.iter().zip(strides).filter(|(n, _)| **n != 1);
        if is_dense(axes().rev()) {
            return Some(Order::C);
        }
        if is_dense(axes()) {
            return Some(Order::Fortran);
        }
        let mut sorted: Vec<_> = axes().collect();
        sorted.sort_by_key(|(_, stride)| **stride);
        is_dense(sorted.into_iter()).then(|| Order::Strides(strides.to_vec()))
    }

    pub fn strides(&self, shape: &[usize]) -> Vec<usize> {
        let mut next = 1;
        let mut stride = |n: &usize| {
            let after = next * n;
            std::mem::replace(&mut next, after)
        };
        match self {
            Order::C => {
                let mut strides: Vec<usize> = shape.iter().rev().map(&mut stride).collect();
                strides.reverse();
                strides
            }
            Order::Fortran => shape.iter().map(&mut stride).collect(),
            Order::Strides(strides) => strides.clone(),
        }
    }
}

/// True if each stride is the product of the preceding dimensions.
fn is_dense<'a>(axes: impl Iterator<Item = (&'a usize, &'a usize)>) -> bool {
    let mut axes = axes;
    axes.try_fold(1usize, |next, (n, stride)| if *stride == next { next.checked_mul(*n) } else { None }).is_some()
}

pub struct Dense<'py> {
    pub memory: Memory<'py>,
    pub order: Order,
}

fn ndarray<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Ok(CLASS.get_or_try_init(py, || numpy(py)?.getattr("ndarray").map(Bound::unbind))?.bind(py))
}

impl<'py> Given<'py> {
    pub fn of(x: &Bound<'py, PyAny>) -> PyResult<Given<'py>> {
        let py = x.py();
        let given = Given::find(x)?;
        if given.library == Library::Torch && torch::is_recorded(&given.array)? {
            let instead = "use x.detach(), or truecast.torch.cast(x, .., gradient=\"straight-through\")";
            return Err(raise(
                py,
                Class::Usage,
                format_args!("the tensor requires a gradient, which a cast would lose: {instead}"),
            ));
        }
        Ok(given)
    }

    pub fn of_out(out: &Bound<'py, PyAny>) -> PyResult<Given<'py>> {
        let py = out.py();
        let given = Given::find(out)?;
        if given.library == Library::Torch && torch::is_recorded(&given.array)? {
            let instead = "write under torch.no_grad(), or to out.detach()";
            return Err(raise(py, Class::Usage, format_args!("out requires a gradient: {instead}")));
        }
        // Results in a copy would be lost. If a second conversion has the same address, the first did not copy.
        let is_itself = given.library != Library::Numpy || given.array.is(out) || {
            let (first, second) = (Interface::of(&given.array)?, Interface::of(&Given::find(out)?.array)?);
            first.bytes == 0 || first.data == second.data
        };
        if !is_itself {
            let message =
                format_args!("out is a {}, whose memory cannot be written; it takes an array", out.get_type().name()?);
            return Err(raise(py, Class::Type, message));
        }
        Ok(given)
    }

    /// Returns the array of an argument whose gradient does not matter.
    pub fn find(x: &Bound<'py, PyAny>) -> PyResult<Given<'py>> {
        let py = x.py();
        if x.get_type().is(ndarray(py)?) {
            return Ok(Given { array: x.clone(), library: Library::Numpy });
        }
        if let Some(tensor) = torch::plain(x)? {
            return Ok(Given { array: tensor, library: Library::Torch });
        }
        let is_jax = match imported(py, "jax")? {
            Some(jax) => x.is_instance(&jax.getattr(intern!(py, "Array"))?)?,
            None => false,
        };
        let library = if is_jax { Library::Jax } else { Library::Numpy };
        match as_numpy(x, is_jax).and_then(|array| Ok((array, lost_in_numpy(x)?))) {
            Ok((array, None)) => Ok(Given { array, library }),
            Ok((_, Some(what))) => Err(raise(py, Class::Input, what)),
            Err(error) => {
                let name = x.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
                let message = format_args!("truecast cannot read {name} as an array: {error}");
                let raised = raise(py, Class::Type, message);
                raised.set_cause(py, Some(error));
                Err(raised)
            }
        }
    }

    pub fn dtype(&self) -> PyResult<Bound<'py, PyAny>> {
        self.array.getattr(intern!(self.array.py(), "dtype"))
    }

    pub fn shape(&self) -> PyResult<Bound<'py, PyTuple>> {
        Ok(self.array.getattr(intern!(self.array.py(), "shape"))?.cast_into()?)
    }

    /// Memory of the array, or of a contiguous copy.
    pub fn read(&self, orders: Orders) -> PyResult<Dense<'py>> {
        let py = self.array.py();
        let fits = |order: &Order| orders == Orders::Any || *order == Order::C;
        if self.library == Library::Torch {
            return torch::read(&self.array, fits);
        }
        let dense = |array: &Bound<'py, PyAny>| {
            let found = Interface::of(array)?;
            let order = found.order().filter(|order| found.is_native() && fits(order));
            PyResult::Ok(order.map(|order| Dense { memory: found.memory(array), order }))
        };
        if let Some(dense) = dense(&self.array)? {
            return Ok(dense);
        }
        let native = self.dtype()?.call_method1(intern!(py, "newbyteorder"), ("=",))?;
        let copy = self.array.call_method1(intern!(py, "astype"), (native, "C"))?;
        dense(&copy)?.ok_or_else(|| raise(py, Class::Type, "the array has no memory of its own"))
    }

    pub fn write(&self, order: &Order) -> PyResult<Option<Memory<'py>>> {
        if self.library == Library::Torch {
            let place = torch::Place::of(&self.array)?;
            return Ok(place.dense().filter(|dense| dense.order == *order).map(|dense| dense.memory));
        }
        let found = Interface::of(&self.array)?;
        let fits = found.has_order(order) && found.is_native() && found.has(WRITEABLE);
        Ok(fits.then(|| found.memory(&self.array)))
    }

    pub fn mark_written(&self) -> PyResult<()> {
        if self.library == Library::Torch { torch::mark_written(&self.array) } else { Ok(()) }
    }
}

fn as_numpy<'py>(x: &Bound<'py, PyAny>, is_jax: bool) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let is_array = || PyResult::Ok(x.is_instance(ndarray(py)?)? || x.hasattr(intern!(py, "__array__"))?);
    if is_jax || is_array()? {
        return numpy(py)?.call_method1(intern!(py, "asarray"), (x,));
    }
    if x.hasattr(intern!(py, "__dlpack__"))? {
        return numpy(py)?.call_method1(intern!(py, "from_dlpack"), (x,));
    }
    match x.getattr_opt(intern!(py, "__array_interface__"))? {
        Some(interface) if !x.hasattr(intern!(py, "__array_struct__"))? => on_buffer(x, &interface),
        _ => numpy(py)?.call_method1(intern!(py, "asarray"), (x,)),
    }
}

/// Makes an array over the buffer of an array interface. NumPy neither checks that the array fits into the buffer nor
/// keeps the buffer alive, so this function does both. An address without a buffer cannot be checked and is trusted.
fn on_buffer<'py>(x: &Bound<'py, PyAny>, interface: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let part = |name| interface.call_method1(intern!(py, "get"), (name,));
    let data = part("data")?;
    if data.is_none() || data.is_instance_of::<PyTuple>() {
        return numpy(py)?.call_method1(intern!(py, "asarray"), (x,));
    }
    let dtype = numpy(py)?.call_method1(intern!(py, "dtype"), (part("typestr")?,))?;
    if dtypes::has_objects(&dtype)? {
        return Err(raise(py, Class::Type, "Python objects are not stored in a buffer"));
    }
    let bytes = numpy(py)?.call_method1(intern!(py, "frombuffer"), (data, "u1"))?;
    let (shape, len) = (part("shape")?.extract::<Vec<i64>>()?, bytes.len()?);
    let offset: i64 = interface.call_method1(intern!(py, "get"), ("offset", 0))?.extract()?;
    let strides: Option<Vec<i64>> = part("strides")?.extract()?;
    let width: i64 = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    let strides = strides.unwrap_or_else(|| {
        let mut next = width;
        let mut strides = Vec::new();
        for n in shape.iter().rev() {
            strides.insert(0, next);
            next = next.saturating_mul(*n);
        }
        strides
    });
    if !lies_within(&shape, &strides, offset, width, len) {
        let message = format_args!("shape {shape:?} with strides {strides:?} from {offset} on exceeds {len} bytes");
        return Err(raise(py, Class::Type, message));
    }
    if shape.contains(&0) {
        return ndarray(py)?.call1((PyTuple::new(py, shape)?, dtype));
    }
    ndarray(py)?.call1((PyTuple::new(py, shape)?, dtype, bytes, offset, PyTuple::new(py, strides)?))
}

/// True if all elements are inside a buffer of `len` bytes; the first is at `offset`. NumPy's own check fails for
/// negative offsets, empty buffers and overflowing strides.
fn lies_within(shape: &[i64], strides: &[i64], offset: i64, width: i64, len: usize) -> bool {
    if shape.len() != strides.len() || shape.iter().any(|n| *n < 0) {
        return false;
    }
    let reaches = shape.iter().zip(strides).map(|(n, stride)| i128::from(n - 1) * i128::from(*stride));
    let span = reaches.fold((i128::from(offset), i128::from(offset) + i128::from(width)), |(low, high), reach| {
        (low.saturating_add(reach.min(0)), high.saturating_add(reach.max(0)))
    });
    shape.contains(&0) || (span.0 >= 0 && span.1 <= len as i128)
}

/// Information that a conversion to a NumPy array would lose, such as masks and nulls.
fn lost_in_numpy(x: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let py = x.py();
    if x.is_instance(ndarray(py)?)? {
        let is_masked = numpy(py)?.getattr(intern!(py, "ma"))?.call_method1(intern!(py, "is_masked"), (x,))?;
        let why = "the array masks some of its elements: use x.filled(value), or x.data to ignore the mask";
        return Ok(is_masked.is_truthy()?.then(|| why.into()));
    }
    // polars has a method for the count, pyarrow a property.
    let Some(nulls) = x.getattr_opt(intern!(py, "null_count"))? else { return Ok(None) };
    let nulls = if nulls.is_callable() { nulls.call0()? } else { nulls };
    let nulls = numpy(py)?.call_method1(intern!(py, "asarray"), (nulls,))?.call_method0(intern!(py, "sum"))?;
    let unreadable = |error| raise(py, Class::Type, format_args!("its null_count is not a number of nulls: {error}"));
    let nulls: u64 = nulls.extract().map_err(unreadable)?;
    Ok((nulls > 0).then(|| format!("{nulls} elements are null: give them a value, for example with fill_null")))
}

pub struct New<'py> {
    pub array: Given<'py>,
    pub memory: Memory<'py>,
    /// True if the pages may be cleared by the system at the first write.
    pub is_untouched: bool,
}

/// Properties of a new array.
pub struct Wanted<'a, 'py> {
    pub library: Library,
    pub shape: &'a Bound<'py, PyTuple>,
    pub dtype: &'a Bound<'py, PyAny>,
    pub order: &'a Order,
}

impl<'py> Wanted<'_, 'py> {
    /// Makes an array of `bytes` bytes.
    pub fn make(&self, bytes: usize) -> PyResult<New<'py>> {
        let pages = Pages::of(bytes);
        let is_untouched = pages.as_ref().is_none_or(|pages| pages.is_new);
        let array = pages.map_or_else(|| self.empty(), |pages| self.on_pages(pages))?;
        let array = Given { array, library: self.library };
        let memory = array.write(self.order)?;
        let memory = memory.ok_or_else(|| raise(self.shape.py(), Class::System, "a new array has no memory"))?;
        Ok(New { array, memory, is_untouched })
    }

    /// Makes an array on these pages; the array keeps the pages alive.
    fn on_pages(&self, pages: Pages) -> PyResult<Bound<'py, PyAny>> {
        let Wanted { library, shape, dtype, order } = *self;
        let py = shape.py();
        let bytes = numpy(py)?.call_method1(intern!(py, "asarray"), (Bound::new(py, pages)?,))?;
        match (library, order) {
            (Library::Torch, _) => torch::on_bytes(&bytes, shape, dtype, order),
            (_, Order::C) => ndarray(py)?.call1((shape, dtype, bytes)),
            _ => ndarray(py)?.call1((shape, dtype, bytes, 0, self.byte_strides()?)),
        }
    }

    fn empty(&self) -> PyResult<Bound<'py, PyAny>> {
        let Wanted { library, shape, dtype, order } = *self;
        let py = shape.py();
        if library == Library::Torch {
            return torch::empty(py, shape, dtype, order);
        }
        static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let empty = EMPTY.get_or_try_init(py, || numpy(py)?.getattr("empty").map(Bound::unbind))?.bind(py);
        match order {
            Order::C => empty.call1((shape, dtype)),
            Order::Fortran => empty.call1((shape, dtype, "F")),
            Order::Strides(_) => ndarray(py)?.call1((shape, dtype, py.None(), 0, self.byte_strides()?)),
        }
    }

    /// Strides in bytes, as NumPy expects them.
    fn byte_strides(&self) -> PyResult<Bound<'py, PyTuple>> {
        let Wanted { shape, dtype, order, .. } = *self;
        let width: usize = dtype.getattr(intern!(dtype.py(), "itemsize"))?.extract()?;
        let strides = order.strides(&shape.extract::<Vec<usize>>()?);
        PyTuple::new(dtype.py(), strides.into_iter().map(|stride| stride * width))
    }
}

/// Converts the result to an array of the argument's library.
pub fn hand_back<'py>(result: Given<'py>, to: Library) -> PyResult<Bound<'py, PyAny>> {
    let py = result.array.py();
    match to {
        Library::Jax => {
            let jax = py.import("jax")?;
            let array = jax.getattr("numpy")?.call_method1("asarray", (&result.array,))?;
            let (made, asked) = (array.getattr("dtype")?, result.dtype()?);
            if !made.eq(&asked)? {
                let hint = "enable jax_enable_x64, or pass numpy.asarray(x)";
                return Err(raise(py, Class::Type, format_args!("JAX converts an array of {asked} to {made}; {hint}")));
            }
            Ok(array)
        }
        _ => Ok(result.array),
    }
}

pub fn new_dtype<'py>(py: Python<'py>, library: Library, dtype: DType, form: Form) -> PyResult<Bound<'py, PyAny>> {
    match library {
        Library::Torch => dtypes::to_torch(&torch::module(py)?, dtype, form),
        _ => dtypes::to_numpy(py, dtype, form),
    }
}

/// Structure of NumPy's array interface, version 3.
#[repr(C)]
struct PyArrayInterface {
    /// 2, the version of the structure.
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

/// No program has memory below this address.
const FIRST_PAGE: usize = 4096;

struct Interface {
    data: *mut u8,
    bytes: usize,
    flags: c_int,
    /// Bytes per element.
    width: c_int,
    /// Order of the elements if the flags state neither C nor Fortran order.
    other: Option<Order>,
}

impl Interface {
    /// Reads the interface of an array of exactly NumPy's class, whose attributes cannot be overridden.
    fn of(array: &Bound<'_, PyAny>) -> PyResult<Interface> {
        let py = array.py();
        let not_ours = || raise(py, Class::Type, "this is not a NumPy array");
        if !array.get_type().is(ndarray(py)?) {
            return Err(not_ours());
        }
        let capsule = array.getattr(intern!(py, "__array_struct__"))?;
        // SAFETY: `capsule` is an object that is alive; it is expected to have no name, and every error makes the
        // function set an exception and return null.
        let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()) };
        if pointer.is_null() {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: `array` is of the class `numpy.ndarray` itself, so that the capsule is NumPy's own. It holds a
        // `PyArrayInterface` of version 3 (`two` is 2), and lives until the end of this function.
        let found = unsafe { &*pointer.cast::<PyArrayInterface>() };
        let (true, Ok(width), Ok(rank)) = (found.two == 2, usize::try_from(found.itemsize), usize::try_from(found.nd))
        else {
            return Err(not_ours());
        };
        let numbers = |first: *mut ffi::Py_ssize_t| match rank {
            0 => &[],
            // SAFETY: `shape` and `strides` of an array of NumPy point to `nd` numbers; `nd` is not 0, and the numbers
            // live as long as the structure.
            rank => unsafe { std::slice::from_raw_parts(first, rank) },
        };
        let (shape, strides) = (numbers(found.shape), numbers(found.strides));
        let bytes = shape.iter().try_fold(width, |bytes, n| bytes.checked_mul(usize::try_from(*n).ok()?));
        // If a DLPack capsule has no memory but an offset, NumPy makes an array with an invalid address.
        if bytes.is_some_and(|bytes| bytes > 0) && (found.data as usize) < FIRST_PAGE {
            return Err(raise(py, Class::Type, "the array has no memory"));
        }
        let flags = found.flags;
        let other = if flags & (C_CONTIGUOUS | F_CONTIGUOUS) == 0 { order_of(shape, strides, width) } else { None };
        Ok(Interface {
            data: found.data.cast(),
            bytes: bytes.ok_or_else(not_ours)?,
            flags,
            width: found.itemsize,
            other,
        })
    }

    fn has(&self, flag: c_int) -> bool {
        self.flags & flag != 0
    }

    /// True for native byte order. One byte has no order, whatever the flag says.
    fn is_native(&self) -> bool {
        self.has(NOT_SWAPPED) || self.width == 1
    }

    /// True if the elements have this order. A one-dimensional array has several orders.
    fn has_order(&self, order: &Order) -> bool {
        match order {
            Order::C => self.has(C_CONTIGUOUS),
            Order::Fortran => self.has(F_CONTIGUOUS),
            Order::Strides(_) => self.other.as_ref() == Some(order),
        }
    }

    fn order(&self) -> Option<Order> {
        [Order::C, Order::Fortran].into_iter().find(|order| self.has_order(order)).or_else(|| self.other.clone())
    }

    fn memory<'py>(&self, array: &Bound<'py, PyAny>) -> Memory<'py> {
        assert!(self.order().is_some(), "the array has gaps");
        // SAFETY: the elements of an array of NumPy without gaps, by its flags or by its strides, none of which is
        // negative, are the `bytes` from `data` on as long as it lives, and may be written if its flags say so.
        unsafe { Memory::new(self.data, self.bytes, self.has(WRITEABLE), array.clone()) }
    }
}

fn order_of(shape: &[ffi::Py_ssize_t], strides: &[ffi::Py_ssize_t], width: usize) -> Option<Order> {
    let shape: Vec<usize> = shape.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>()?;
    let in_elements = |stride: &ffi::Py_ssize_t| {
        let stride = usize::try_from(*stride).ok()?;
        (stride.checked_rem(width)? == 0).then(|| stride / width)
    };
    let strides: Vec<usize> = strides.iter().map(in_elements).collect::<Option<_>>()?;
    Order::of_strides(&shape, &strides)
}
