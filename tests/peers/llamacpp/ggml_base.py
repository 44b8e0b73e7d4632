"""The block types that a build of ggml knows, and its values of blocks.

`LLAMA_LIBRARIES` names the folder with `libggml-base.so`: that of a build of llama.cpp, or `bins/linux-x64` of the npm
package `@node-llama-cpp/linux-x64`.
"""

import ctypes
import functools
import os
import pathlib
from typing import NamedTuple

import numpy as np


class BlockType(NamedTuple):
    number: int
    name: str
    elements: int
    bytes: int


class _InitParams(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


class _Traits(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("elements", ctypes.c_int64),
        ("interleaved", ctypes.c_int64),
        ("bytes", ctypes.c_size_t),
        ("is_quantized", ctypes.c_bool),
        ("to_float", ctypes.c_void_p),
        ("from_float", ctypes.c_void_p),
    ]


# Number of types. ggml does not export its own count, and reads past its table for larger numbers.
TYPES = 43
TO_FLOAT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


@functools.cache
def library() -> ctypes.CDLL:
    base = ctypes.CDLL(str(pathlib.Path(os.environ["LLAMA_LIBRARIES"], "libggml-base.so")))
    base.ggml_get_type_traits.restype = ctypes.POINTER(_Traits)
    for name in ("ggml_init", "ggml_new_tensor_2d", "ggml_get_data", "gguf_init_empty"):
        getattr(base, name).restype = ctypes.c_void_p
    return base


def traits(number: int) -> _Traits:
    return library().ggml_get_type_traits(number).contents


def block_types() -> list[BlockType]:
    """Types with several elements in a block."""
    found = [(number, traits(number)) for number in range(TYPES)]
    return [BlockType(number, t.name.decode().upper(), t.elements, t.bytes) for number, t in found if t.is_quantized]


def values(block: BlockType, data: np.ndarray) -> np.ndarray:
    """f32 values of blocks, by the function `to_float` of the type.

    Q8_1 has neither: ggml multiplies such blocks and never decodes them. Its f16 scale times its integers is what the
    products use.
    """
    data = np.ascontiguousarray(data).reshape(-1, block.bytes)
    out = np.empty((len(data), block.elements), np.float32)
    if block.name == "Q8_1":
        scale = data[:, :2].copy().view(np.float16).astype(np.float32)
        with np.errstate(invalid="ignore"):
            return scale * data[:, 4:].view(np.int8)
    # Only Q8_K has the function but no entry in the table.
    to_float = TO_FLOAT(traits(block.number).to_float or ("dequantize_row_q8_K", library()))
    to_float(data.ctypes.data, out.ctypes.data, out.size)
    return out


def write_gguf(path: pathlib.Path, name: str, block: BlockType, columns: int, data: np.ndarray) -> None:
    """Writes a GGUF file of one matrix of blocks, with ggml's own writer."""
    base, data = library(), np.ascontiguousarray(data)
    pointer = ctypes.c_void_p
    context = pointer(base.ggml_init(_InitParams(data.nbytes + 2**16, None, False)))
    rows = data.nbytes // (columns // block.elements * block.bytes)
    sizes = ctypes.c_int64(columns), ctypes.c_int64(rows)
    tensor = pointer(base.ggml_new_tensor_2d(context, block.number, *sizes))
    base.ggml_set_name(tensor, name.encode())
    ctypes.memmove(base.ggml_get_data(tensor), data.ctypes.data, data.nbytes)
    file = pointer(base.gguf_init_empty())
    base.gguf_add_tensor(file, tensor)
    base.gguf_write_to_file(file, str(path).encode(), False)
    base.gguf_free(file)
    base.ggml_free(context)
