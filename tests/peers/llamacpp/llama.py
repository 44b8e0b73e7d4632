"""llama.cpp's library, called through ctypes.

The library is that of the npm package of node-llama-cpp, built from release v0.5.0 of llama.cpp. The parameters are two
structures of which the library gives the defaults; a few fields are set by their offsets, and the defaults at these
offsets are checked, so that a library of another layout is noticed.
"""

import ctypes
import os
import struct
from ctypes import c_bool, c_char_p, c_float, c_int, c_int8, c_int32, c_void_p

import numpy as np
from ggml_base import load

LOG = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_void_p)
WARNING = 3


class ModelParams(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 10)]


class ContextParams(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 20)]


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", c_int32), ("token", ctypes.POINTER(c_int32)), ("embd", c_void_p), ("pos", ctypes.POINTER(c_int32)),
        ("n_seq_id", ctypes.POINTER(c_int32)), ("seq_id", ctypes.POINTER(ctypes.POINTER(c_int32))),
        ("logits", ctypes.POINTER(c_int8)),
    ]


# Offset, format, defaults, values.
N_GPU_LAYERS = (0x10, "<i", (-1,), (0,))
USE_EXTRA_BUFFERS = (0x4A, "<B", (1,), (0,))
SIZES = (0x00, "<III", (512, 2048, 512), (256, 256, 256))
FLASH_ATTENTION = (0x34, "<i", (-1,), (0,))
TYPES_OF_CACHE = (0x68, "<ii", (1, 1), (0, 0))


def change(params, *fields):
    for offset, form, default, value in fields:
        size = struct.calcsize(form)
        at = ctypes.addressof(params) + offset
        found = struct.unpack(form, ctypes.string_at(at, size))
        assert found == default, f"the library has another layout: {found} at {offset:#x}"
        ctypes.memmove(at, struct.pack(form, *value), size)
    return params


class Library:
    def __init__(self):
        base, self.ggml, self.llama = map(load, ("libggml-base.so", "libggml.v*.so", "libllama.v*.so"))
        self.said = []
        self.log = LOG(lambda level, text, _: self.said.append((level, text.decode(errors="replace"))))
        for library, name in ((base, "ggml_log_set"), (self.llama, "llama_log_set")):
            getattr(library, name)(self.log, None)
        self.ggml.ggml_backend_load_all_from_path(c_char_p(os.environ["LLAMA_LIBRARIES"].encode()))
        self.declare()
        self.llama.llama_backend_init()

    def declare(self):
        pointer = c_void_p
        rows = {
            "llama_model_default_params": (ModelParams, []),
            "llama_context_default_params": (ContextParams, []),
            "llama_model_load_from_file": (pointer, [c_char_p, ModelParams]),
            "llama_init_from_model": (pointer, [pointer, ContextParams]),
            "llama_model_get_vocab": (pointer, [pointer]),
            "llama_vocab_n_tokens": (c_int32, [pointer]),
            "llama_batch_init": (Batch, [c_int32, c_int32, c_int32]),
            "llama_batch_free": (None, [Batch]),
            "llama_decode": (c_int32, [pointer, Batch]),
            "llama_get_logits_ith": (ctypes.POINTER(c_float), [pointer, c_int32]),
            "llama_tokenize": (
                c_int32,
                [pointer, c_char_p, c_int32, ctypes.POINTER(c_int32), c_int32, c_bool, c_bool],
            ),
            "llama_free": (None, [pointer]),
            "llama_model_free": (None, [pointer]),
        }
        for name, (result, arguments) in rows.items():
            function = getattr(self.llama, name)
            function.restype, function.argtypes = result, arguments


_library = None


def library():
    global _library
    _library = _library or Library()
    return _library


class Model:
    """A GGUF file that llama.cpp has loaded. All of it is computed in f32 on the CPU, cache included."""

    def __init__(self, path):
        self.library = library()
        self.c = self.library.llama
        self.library.said.clear()
        params = change(self.c.llama_model_default_params(), N_GPU_LAYERS, USE_EXTRA_BUFFERS)
        self.model = self.c.llama_model_load_from_file(str(path).encode(), params)
        assert self.model, f"llama.cpp does not load {path}:\n{self.warnings() or self.output()}"
        self.vocab = self.c.llama_model_get_vocab(self.model)

    def output(self):
        return "".join(text for _, text in self.library.said)

    def warnings(self):
        return "".join(text for level, text in self.library.said if level >= WARNING)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.c.llama_model_free(self.model)

    def logits(self, tokens):
        """Logits after each of the tokens, which are the first of a sequence."""
        params = self.c.llama_context_default_params()
        change(params, SIZES, FLASH_ATTENTION, TYPES_OF_CACHE)
        context = self.c.llama_init_from_model(self.model, params)
        assert context, self.output()
        batch = self.c.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
            batch.seq_id[i][0] = 0
        assert self.c.llama_decode(context, batch) == 0, self.output()
        width = self.c.llama_vocab_n_tokens(self.vocab)
        rows = [np.ctypeslib.as_array(self.c.llama_get_logits_ith(context, i), (width,)) for i in range(len(tokens))]
        result = np.stack(rows).copy()
        self.c.llama_batch_free(batch)
        self.c.llama_free(context)
        return result

    def tokenize(self, text, special=True):
        """Token ids of a text; with `special`, of special tokens in it and of those that are added at its ends."""
        data = text.encode()
        room = (c_int32 * (len(data) + 8))()
        count = self.c.llama_tokenize(self.vocab, data, len(data), room, len(room), special, special)
        assert count >= 0, self.output()
        return list(room[:count])
