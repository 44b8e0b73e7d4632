"""What several tests need: the command, and small GGUF files."""

import os
import subprocess

import gguf
import numpy as np
import pytest


def each(rows):
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


def truecast(*arguments, code=0):
    """Runs the command, which must end with the exit code; `None` takes any."""
    command = [os.environ["TRUECAST_BIN"], *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert code in (None, ran.returncode), (command, ran.returncode, ran.stdout, ran.stderr)
    return ran


def write(path, tensors, architecture="any", keys=()):
    """Writes arrays by name; a pair is bytes in rows and the name of their type. Keys are (method, arguments)."""
    writer = gguf.GGUFWriter(path, architecture)
    for kind, *arguments in keys:
        getattr(writer, f"add_{kind}")(*arguments)
    for name, tensor in tensors.items():
        data, kind = tensor if isinstance(tensor, tuple) else (tensor, None)
        writer.add_tensor(name, np.ascontiguousarray(data), raw_dtype=kind and gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_imatrix(path, values, counts=None):
    """Writes an importance matrix as llama-imatrix does. `values` has a row for each matrix of a stack."""
    tensors = {}
    for name, rows in values.items():
        rows = np.atleast_2d(np.asarray(rows, np.float32))
        of_name = np.ones(len(rows)) if counts is None else counts[name]
        tensors[f"{name}.in_sum2"] = rows
        tensors[f"{name}.counts"] = np.asarray(of_name, np.float32).reshape(-1, 1)
    keys = [("type", "imatrix"), ("array", "imatrix.datasets", ["calibration.txt"]),
            ("uint32", "imatrix.chunk_count", 7), ("uint32", "imatrix.chunk_size", 512)]
    return write(path, tensors, "imatrix", keys)


def read(path):
    """Keys with their types and values, and tensors as (type, shape, bytes)."""
    reader = gguf.GGUFReader(path)
    keys = {
        name: ([kind.name for kind in field.types], field.contents())
        for name, field in reader.fields.items()
        if not name.startswith("GGUF.")
    }
    shape = lambda tensor: [int(n) for n in reversed(tensor.shape)]
    tensors = {t.name: (t.tensor_type.name, shape(t), np.asarray(t.data).tobytes()) for t in reader.tensors}
    return keys, tensors
