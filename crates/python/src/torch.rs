//! Memory of torch tensors. A tensor with a shape may have no memory (FakeTensor, functional, batched, sparse, zero
//! tensors, or a storage that FSDP shrunk). A subclass may override any method. So only methods of `torch.Tensor` are
//! used, on tensors of exactly this class, and the storage must contain all elements.

use crate::array::{Dense, Order};
use crate::dtypes::imported;
use crate::error::{Class, raise};
use crate::memory::Memory;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

pub fn module(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    imported(py, "torch")?.ok_or_else(|| raise(py, Class::Type, "torch is not imported"))
}

fn class(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    module(py)?.getattr(intern!(py, "Tensor"))
}

/// A CPU tensor as a `torch.Tensor` on the same memory; `None` if the object is not a tensor.
pub fn plain<'py>(x: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = x.py();
    if imported(py, "torch")?.is_none() {
        return Ok(None);
    }
    let (class, found) = (class(py)?, x.get_type());
    let is_plain = found.is(&class);
    if !is_plain && !found.is_subclass(&class)? {
        return Ok(None);
    }
    // Tensors with their own operators may have no memory.
    let dispatch = intern!(py, "__torch_dispatch__");
    let tensor = if !is_plain && found.getattr(dispatch)?.is(&class.getattr(dispatch)?) {
        class.call_method1(intern!(py, "as_subclass"), (x, &class))?
    } else {
        x.clone()
    };
    if !tensor.get_type().is(&class) || tensor.getattr(intern!(py, "is_nested"))?.is_truthy()? {
        return Err(no_memory(x)?);
    }
    if !tensor.getattr(intern!(py, "is_cpu"))?.is_truthy()? {
        let device = tensor.getattr(intern!(py, "device"))?.getattr(intern!(py, "type"))?;
        let message = format_args!("the tensor is on device {device}; truecast converts on the CPU: x.cpu()");
        return Err(raise(py, Class::Type, message));
    }
    Ok(Some(tensor))
}

fn no_memory(x: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let (name, hint) = (x.get_type().name()?, "truecast.torch.cast takes a FakeTensor");
    Ok(raise(x.py(), Class::Type, format_args!("a {name} has no memory of its own that can be read; {hint}")))
}

/// True if autograd currently records operations on the tensor.
pub fn is_recorded(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = tensor.py();
    let requires = tensor.getattr(intern!(py, "requires_grad"))?.is_truthy()?;
    Ok(requires && module(py)?.call_method0(intern!(py, "is_grad_enabled"))?.is_truthy()?)
}

/// Notifies autograd of a write, so that no gradient uses overwritten elements.
pub fn mark_written(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = tensor.py();
    let graph = module(py)?.getattr(intern!(py, "autograd"))?.getattr(intern!(py, "graph"))?;
    graph.call_method1(intern!(py, "increment_version"), (tensor,)).map(drop)
}

fn refused(tensor: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = tensor.py();
    let layout = tensor.getattr(intern!(py, "layout")).map_or_else(|_| "?".into(), |layout| layout.to_string());
    let message = format_args!("torch does not expose the memory of a tensor of layout {layout}: {error}");
    let raised = raise(py, Class::Type, message);
    raised.set_cause(py, Some(error));
    raised
}

/// Memory of a plain tensor; all elements are inside the storage.
pub struct Place<'py> {
    tensor: Bound<'py, PyAny>,
    data: usize,
    bytes: usize,
    /// Order of the elements, if they are contiguous and stored directly.
    pub order: Option<Order>,
}

impl<'py> Place<'py> {
    pub fn of(tensor: &Bound<'py, PyAny>) -> PyResult<Place<'py>> {
        if !tensor.get_type().is(&class(tensor.py())?) {
            return Err(no_memory(tensor)?);
        }
        let said = Said::of(tensor).map_err(|error| refused(tensor, error))?;
        let tensor = tensor.clone();
        if said.shape.contains(&0) {
            return Ok(Place { tensor, data: 0, bytes: 0, order: Some(Order::C) });
        }
        let storage = if said.data == 0 { 0 } else { said.storage };
        if said.end().is_none_or(|end| end > storage) {
            let needed = said.end().map_or("more".into(), |end| end.to_string());
            let why = "released, resized or absent (FakeTensor)";
            let message = format_args!("the tensor needs {needed} bytes of its storage, which has {storage}: {why}");
            return Err(raise(tensor.py(), Class::Type, message));
        }
        let bytes = said.shape.iter().fold(said.width, |bytes, n| bytes.saturating_mul(*n));
        let order = Order::of_strides(&said.shape, &said.strides).filter(|_| said.is_as_it_is);
        Ok(Place { tensor, data: said.data, bytes, order })
    }

    pub fn dense(self) -> Option<Dense<'py>> {
        let order = self.order?;
        // SAFETY: `data` is the first element of a tensor of the class `torch.Tensor`; its elements have no gaps in
        // this `order`, so they are the `bytes` from there on, and `of` has found the last of them within the storage,
        // which lives as long as the tensor does. torch has no read-only tensors.
        let memory = unsafe { Memory::new(self.data as *mut u8, self.bytes, true, self.tensor) };
        Some(Dense { memory, order })
    }
}

/// Memory of a tensor, or of a contiguous copy if the order does not fit.
pub fn read<'py>(tensor: &Bound<'py, PyAny>, fits: impl Fn(&Order) -> bool) -> PyResult<Dense<'py>> {
    let py = tensor.py();
    let place = Place::of(tensor)?;
    if place.order.as_ref().is_some_and(fits)
        && let Some(dense) = place.dense()
    {
        return Ok(dense);
    }
    let class = class(py)?;
    let methods = [intern!(py, "resolve_conj"), intern!(py, "resolve_neg"), intern!(py, "contiguous")];
    let copy = methods.into_iter().try_fold(tensor.clone(), |tensor, method| class.call_method1(method, (tensor,)));
    let place = Place::of(&copy.map_err(|error| refused(tensor, error))?)?;
    place.dense().ok_or_else(|| raise(py, Class::Type, "torch cannot make this tensor contiguous"))
}

pub fn empty<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyTuple>,
    dtype: &Bound<'py, PyAny>,
    order: &Order,
) -> PyResult<Bound<'py, PyAny>> {
    let options = options(dtype)?;
    match order {
        Order::C => module(py)?.call_method(intern!(py, "empty"), (shape,), Some(&options)),
        order => {
            let strides = order.strides(&shape.extract::<Vec<usize>>()?);
            module(py)?.call_method(intern!(py, "empty_strided"), (shape, strides), Some(&options))
        }
    }
}

/// Makes a tensor on the memory of NumPy bytes.
pub fn on_bytes<'py>(
    bytes: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyTuple>,
    dtype: &Bound<'py, PyAny>,
    order: &Order,
) -> PyResult<Bound<'py, PyAny>> {
    let py = bytes.py();
    let storage = module(py)?.call_method1(intern!(py, "from_numpy"), (bytes,))?;
    let storage = storage.call_method0(intern!(py, "untyped_storage"))?;
    let none = module(py)?.call_method(intern!(py, "empty"), (0,), Some(&options(dtype)?))?;
    let strides = order.strides(&shape.extract::<Vec<usize>>()?);
    none.call_method1(intern!(py, "set_"), (storage, 0, shape, PyTuple::new(py, strides)?))
}

/// Options of a CPU tensor; a program may have another default device.
fn options<'py>(dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = dtype.py();
    let options = PyDict::new(py);
    options.set_item(intern!(py, "dtype"), dtype)?;
    options.set_item(intern!(py, "device"), intern!(py, "cpu"))?;
    Ok(options)
}

struct Said {
    shape: Vec<usize>,
    offset: usize,
    strides: Vec<usize>,
    width: usize,
    storage: usize,
    data: usize,
    /// False for negative and conjugate views.
    is_as_it_is: bool,
}

impl Said {
    fn of<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Said> {
        let py = tensor.py();
        let class = class(py)?;
        let ask = |method: &Bound<'py, PyString>| class.call_method1(method, (tensor,));
        let is = |method| ask(method)?.is_truthy();
        let number = |method| ask(method)?.extract::<usize>();
        let storage = ask(intern!(py, "untyped_storage"))?;
        Ok(Said {
            shape: tensor.getattr(intern!(py, "shape"))?.extract()?,
            strides: ask(intern!(py, "stride"))?.extract()?,
            offset: number(intern!(py, "storage_offset"))?,
            width: number(intern!(py, "element_size"))?,
            storage: storage.call_method0(intern!(py, "nbytes"))?.extract()?,
            data: number(intern!(py, "data_ptr"))?,
            is_as_it_is: !is(intern!(py, "is_neg"))? && !is(intern!(py, "is_conj"))?,
        })
    }

    /// Offset at which the last element ends in the storage, in bytes.
    fn end(&self) -> Option<usize> {
        let last = self
            .shape
            .iter()
            .zip(&self.strides)
            .try_fold(self.offset, |last, (n, stride)| last.checked_add(n.checked_sub(1)?.checked_mul(*stride)?));
        last?.checked_add(1)?.checked_mul(self.width)
    }
}
