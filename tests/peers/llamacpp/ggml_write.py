"""How a build of llama.cpp quantizes: `ggml_quantize_chunk` for rows, `llama_model_quantize` for files.

`LLAMA_LIBRARIES` names the folder with its libraries: that of a build of llama.cpp, or `bins/linux-x64` of the npm package
`@node-llama-cpp/linux-x64`. The rules compared are those of `libggml-base.so`, which is compiled for any x86-64 CPU. `ggml_write.py --testdata` writes `testdata/ggml-blocks.bin`.
"""

import ctypes
import functools
import os
import pathlib
import sys

import gguf
import numpy as np

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
        ("pointers", ctypes.c_void_p * 8),
    ]


def load(pattern):
    (path,) = pathlib.Path(os.environ["LLAMA_LIBRARIES"]).glob(pattern)
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


@functools.cache
def base():
    library = load("libggml-base.so")
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer, number, number, number, pointer]
    return library


SAID = []


@functools.cache
def llama():
    base()
    load("libggml.v*.so")
    library = load("libllama.v*.so")
    library.llama_model_quantize_default_params.restype = QuantizeParams
    library.llama_model_quantize.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(QuantizeParams)]
    library.log = LOG(lambda level, text, _: SAID.append(text.decode(errors="replace")))
    library.llama_log_set(library.log, None)
    return library


def quantize_rows(name, rows):
    """Bytes of f32 rows in blocks, without an importance matrix."""
    block = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[block]
    rows = np.ascontiguousarray(rows, np.float32)
    out = np.zeros(rows.size // elements * size, np.uint8)
    made = base().ggml_quantize_chunk(block, rows.ctypes.data, out.ctypes.data, 0, *rows.shape, None)
    assert made == out.size
    return out.tobytes()


def quantize_model(src, dst, file_type, threads=2, **fields):
    """Quantizes a file; returns whether llama.cpp did, and what it said."""
    params = llama().llama_model_quantize_default_params()
    # A library of another layout would have other defaults here.
    assert (params.ftype, params.quantize_output_tensor, params.pure) == (7, True, False)
    assert params.output_tensor_type == params.token_embedding_type
    for field, value in {"nthread": threads, "ftype": file_type, **fields}.items():
        setattr(params, field, value)
    SAID.clear()
    failed = llama().llama_model_quantize(str(src).encode(), str(dst).encode(), ctypes.byref(params))
    return not failed, "".join(SAID)


# Types whose blocks ggml's rule makes (docs/spec/checkpoints.md §9.11), in the order of their numbers.
TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]


def testdata():
    """Eight rows of 256 f32, then the blocks of these rows in each type."""
    random = np.random.default_rng(11)
    normal = lambda: random.standard_normal(256)
    half_zero = np.where(np.arange(256) // 16 % 3 == 0, 0, normal())
    rows = [
        normal(), normal() * 0.02 + 0.01, half_zero, np.full(256, -0.75), np.zeros(256), random.integers(-8, 9, 256) / 2,
        normal() * np.repeat(10.0 ** random.integers(-20, 20, 16), 16), np.where(np.arange(256) == 77, 1e30, normal()),
    ]
    rows = np.array(rows, np.float32)
    return rows.tobytes() + b"".join(quantize_rows(name, rows) for name in TYPES)


if __name__ == "__main__" and sys.argv[1:] == ["--testdata"]:
    pathlib.Path(__file__).parents[3].joinpath("testdata/ggml-blocks.bin").write_bytes(testdata())
