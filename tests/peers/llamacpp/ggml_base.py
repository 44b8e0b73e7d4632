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
def load(pattern: str) -> ctypes.CDLL:
    (path,) = pathlib.Path(os.environ["LLAMA_LIBRARIES"]).glob(pattern)
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


@functools.cache
def library() -> ctypes.CDLL:
    base = load("libggml-base.so")
    base.ggml_get_type_traits.restype = ctypes.POINTER(_Traits)
    base.ggml_quantize_chunk.restype = ctypes.c_size_t
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    base.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer, number, number, number, pointer]
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
