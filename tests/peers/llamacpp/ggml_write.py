"""How a build of llama.cpp quantizes: `ggml_quantize_chunk` for rows, `llama_model_quantize` for files.

`LLAMA_LIBRARIES` names the folder with its libraries: that of a build of llama.cpp, or `bins/linux-x64` of the npm package
`@node-llama-cpp/linux-x64`. The rules compared are those of `libggml-base.so`, which is compiled for any x86-64 CPU. `ggml_write.py --testdata` writes `testdata/ggml-blocks.bin`.
"""

import ctypes
import functools
import pathlib
import sys

import gguf
import ggml_base
import numpy as np
from ggml_base import load

LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class QuantizeParams(ctypes.Structure):
    _fields_ = [
        ("nthread", ctypes.c_int32),
        ("ftype", ctypes.c_int),
        ("output_tensor_type", ctypes.c_int),
        ("token_embedding_type", ctypes.c_int),
        ("allow_requantize", ctypes.c_bool),
        ("quantize_output_tensor", ctypes.c_bool),
        ("only_copy", ctypes.c_bool),
        ("pure", ctypes.c_bool),
        ("keep_split", ctypes.c_bool),
        ("dry_run", ctypes.c_bool),
        ("imatrix", ctypes.c_void_p),
        ("pointers", ctypes.c_void_p * 7),
    ]


class Imatrix(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


SAID = []


@functools.cache
def llama():
    ggml_base.library()
    load("libggml.v*.so")
    library = load("libllama.v*.so")
    library.llama_model_quantize_default_params.restype = QuantizeParams
    library.llama_model_quantize.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(QuantizeParams)]
    library.log = LOG(lambda level, text, _: SAID.append(text.decode(errors="replace")))
    library.llama_log_set(library.log, None)
    return library


def quantize_rows(name, rows, importance=None):
    """Bytes of f32 rows in blocks. The importance is that of the columns."""
    block = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[block]
    rows = np.ascontiguousarray(rows, np.float32)
    columns = None if importance is None else np.ascontiguousarray(importance, np.float32)
    assert columns is None or columns.shape == rows.shape[1:]
    pointer = None if columns is None else columns.ctypes.data
    out = np.zeros(rows.size // elements * size, np.uint8)
    made = ggml_base.library().ggml_quantize_chunk(block, rows.ctypes.data, out.ctypes.data, 0, *rows.shape, pointer)
    assert made == out.size
    return out.tobytes()


def quantize_model(src, dst, file_type, threads=2, imatrix=None, **fields):
    """Quantizes a file; returns whether llama.cpp did, and what it said. `imatrix` has means of squares by name."""
    params = llama().llama_model_quantize_default_params()
    # A library of another layout would have other defaults here.
    assert (params.ftype, params.quantize_output_tensor, params.pure) == (7, True, False)
    assert params.output_tensor_type == params.token_embedding_type
    for field, value in {"nthread": threads, "ftype": file_type, **fields}.items():
        setattr(params, field, value)
    if imatrix is not None:
        values = {name.encode(): np.ascontiguousarray(value, np.float32) for name, value in imatrix.items()}
        entries = [Imatrix(name, value.ctypes.data, value.size) for name, value in values.items()]
        entries = (Imatrix * (len(entries) + 1))(*entries)
        params.imatrix = ctypes.addressof(entries)
    SAID.clear()
    failed = llama().llama_model_quantize(str(src).encode(), str(dst).encode(), ctypes.byref(params))
    return not failed, "".join(SAID)


# Types whose blocks ggml's rule makes (docs/spec/checkpoints.md §9.11), in the order of their numbers.
TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "NVFP4"]


def testdata():
    """Eight rows of 256 f32, and the blocks of these rows in each type; then the importance of the columns of each row,
    and the blocks that go by it."""
    random = np.random.default_rng(11)
    normal = lambda: random.standard_normal(256)
    half_zero = np.where(np.arange(256) // 16 % 3 == 0, 0, normal())
    rows = [
        normal(), normal() * 0.02 + 0.01, half_zero, np.full(256, -0.75), np.zeros(256), random.integers(-8, 9, 256) / 2,
        normal() * np.repeat(10.0 ** random.integers(-20, 20, 16), 16), np.where(np.arange(256) == 77, 1e30, normal()),
    ]
    rows = np.array(rows, np.float32)
    importance = random.standard_normal(rows.shape) ** 2 * 10.0 ** random.integers(-3, 4, rows.shape)
    importance[1], importance[3, ::5], importance[6, :100] = 1, 0, 1e-30
    importance = importance.astype(np.float32)
    weighted = lambda name: b"".join(quantize_rows(name, *row) for row in zip(rows[:, None], importance))
    plain = [quantize_rows(name, rows) for name in TYPES]
    by_importance = [weighted(name) for name in TYPES if name != "NVFP4"]
    return b"".join([rows.tobytes(), *plain, importance.tobytes(), *by_importance])


if __name__ == "__main__" and sys.argv[1:] == ["--testdata"]:
    pathlib.Path(__file__).parents[3].joinpath("testdata/ggml-blocks.bin").write_bytes(testdata())
