"""One Cast node with text on one side, run by truecast, the onnx reference evaluator and onnxruntime."""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

ort.set_default_logger_severity(4)

# ONNX name: (truecast's name, NumPy type)
TYPES = {
    "DOUBLE": ("f64", np.float64),
    "FLOAT": ("f32", np.float32),
    "FLOAT16": ("f16", np.float16),
    "BFLOAT16": ("bf16", ml_dtypes.bfloat16),
    "FLOAT8E4M3FN": ("f8e4m3fn", ml_dtypes.float8_e4m3fn),
    "FLOAT8E8M0": ("f8e8m0", ml_dtypes.float8_e8m0fnu),
    "INT8": ("i8", np.int8),
    "UINT8": ("u8", np.uint8),
    "INT32": ("i32", np.int32),
    "INT64": ("i64", np.int64),
    "UINT64": ("u64", np.uint64),
    "INT4": ("i4", ml_dtypes.int4),
    "UINT2": ("u2", ml_dtypes.uint2),
    "BOOL": ("bool", np.bool_),
}

ERROR = "error"
CANNOT = "cannot run"


def node_model(dst, tensor, opset, ir, **attributes):
    """A model of one Cast of a constant."""
    node = helper.make_node("Cast", ["x"], ["y"], to=getattr(TensorProto, dst), **attributes)
    y = helper.make_tensor_value_info("y", getattr(TensorProto, dst), list(tensor.dims))
    graph = helper.make_graph([node], "g", [], [y], initializer=[tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def _tensor(src, values):
    tensor = TensorProto(name="x", data_type=getattr(TensorProto, src), dims=[len(values)])
    if src == "STRING":
        tensor.string_data.extend(v.encode() for v in values)
    elif src in ("INT4", "UINT2"):
        bits = 4 if src == "INT4" else 2
        word = sum((int(v) & ((1 << bits) - 1)) << (bits * i) for i, v in enumerate(values))
        tensor.raw_data = word.to_bytes((len(values) * bits + 7) // 8, "little")
    else:
        tensor.raw_data = np.asarray(values, TYPES[src][1]).tobytes()
    return tensor


def session(model, optimization=ort.GraphOptimizationLevel.ORT_DISABLE_ALL):
    """On one thread; without graph optimization unless asked for."""
    options = ort.SessionOptions()
    options.graph_optimization_level = optimization
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Reference:
    """The reference evaluator; Python objects for text."""

    name = "reference"

    def __call__(self, src, dst, values, **attributes):
        model = node_model(dst, _tensor(src, values), 28, 14, **attributes)
        try:
            y = ReferenceEvaluator(model).run(None, {})[0]
        except TypeError:
            return CANNOT
        except Exception:  # noqa: BLE001 - what it raises for a bad text differs by type
            return ERROR
        return [str(v) for v in y] if dst == "STRING" else list(y)


class OnnxRuntime:
    """The CPU execution provider."""

    name = "onnxruntime"

    def __call__(self, src, dst, values, **attributes):
        model = node_model(dst, _tensor(src, values), 25, 13, **attributes)
        try:
            made = session(model)
            if dst == "STRING":
                return [str(v) for v in made.run(None, {})[0]]
            value = made.run_with_ort_values(None, {})[0]
        except Exception:  # noqa: BLE001
            return ERROR
        if dst == "INT4":
            raw = ctypes.string_at(value.data_ptr(), (len(values) + 1) // 2)
            nibbles = [raw[i // 2] >> (4 * (i % 2)) & 15 for i in range(len(values))]
            return [n - 16 if n > 7 else n for n in nibbles]
        dtype = np.dtype(TYPES[dst][1])
        return list(np.frombuffer(ctypes.string_at(value.data_ptr(), dtype.itemsize * len(values)), dtype))


class Truecast:
    """The binary, through `.npy`."""

    name = "truecast"

    def __init__(self):
        self.binary = Path(os.environ["TRUECAST_BIN"]).resolve()

    def __call__(self, src, dst, values, **attributes):
        options = []
        if "saturate" in attributes:
            options += ["--saturate", "true" if attributes["saturate"] else "false"]
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder, "in.npy"), Path(folder, "out.npy")
            if src == "STRING":
                np.save(source, np.array(values, dtype=str))
            else:
                np.save(source, np.asarray(values, TYPES[src][1]))
                options += ["--from", TYPES[src][0]]
            to = "string" if dst == "STRING" else TYPES[dst][0]
            done = subprocess.run([self.binary, "convert", source, out, "--to", to, *options], capture_output=True)
            assert done.returncode in (0, 3), done.stderr
            if done.returncode == 3:
                return ERROR
            found = np.load(out)
        if dst == "STRING":
            return [str(v) for v in found]
        return list(found.view(TYPES[dst][1]) if found.dtype.kind == "V" else found)
