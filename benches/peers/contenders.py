"""Who converts: truecast, memcpy, and the peers, each prepared for one pair over memory that all of them share.

Here: how each library is called. Not here: what is measured and how time is taken (race.py).

A contender is prepared once for a pair and is then called without arguments; a call converts the whole array. Whatever
a library needs to be told (types, sizes, models) it is told before. A pair that a library does not convert makes
`prepare` or the first call raise, whatever the exception.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Callable

import ml_dtypes
import numpy as np
import truecast as tc
from arrays import Arrays

Pass = Callable[[], object]

SUB_BYTE = {"i4": 4, "f4e2m1": 4, "f6e2m3": 6}


class Truecast:
    """The Python package, from the bytes of one buffer to those of the other."""

    title = "truecast"

    def __init__(self, threads: int):
        tc.set_num_threads(threads)

    def prepare(self, a: Arrays) -> Pass:
        of_src = {"from_": a.src_type, "shape": (a.len,)}
        return lambda: tc.cast(a.src, a.dst_type, **of_src, layout="packed", out=a.dst)


class Memcpy:
    """Reads and writes as many bytes as the conversion does, in the same buffers, each thread a part of them."""

    title = "memcpy"

    def __init__(self, threads: int):
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads)

    def prepare(self, a: Arrays) -> Pass:
        n = a.bytes // 2
        parts = [slice(n * i // self.threads, n * (i + 1) // self.threads) for i in range(self.threads)]
        pairs = [(a.dst_pool[part], a.src_pool[part]) for part in parts]
        if len(pairs) == 1:
            return lambda: np.copyto(*pairs[0])
        return lambda: list(self.pool.map(lambda pair: np.copyto(*pair), pairs))


class NumPy:
    """NumPy, with the types of ml_dtypes. Types narrower than a byte take a byte an element."""

    title = "NumPy + ml_dtypes"
    packages = ("numpy", "ml_dtypes")
    ML_DTYPES = {
        "bf16": ml_dtypes.bfloat16,
        "f8e4m3fn": ml_dtypes.float8_e4m3fn,
        "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
        "f8e5m2": ml_dtypes.float8_e5m2,
        "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
        "f8e8m0": ml_dtypes.float8_e8m0fnu,
        "f6e2m3": ml_dtypes.float6_e2m3fn,
        "f4e2m1": ml_dtypes.float4_e2m1fn,
        "i4": ml_dtypes.int4,
    }
    OWN = {
        "bool": np.bool_,
        "u8": np.uint8,
        "i8": np.int8,
        "i32": np.int32,
        "i64": np.int64,
        "u64": np.uint64,
        "f16": np.float16,
        "f32": np.float32,
        "f64": np.float64,
    }

    def __init__(self, threads: int):
        pass  # NumPy converts with one

    def _dtype(self, name: str) -> np.dtype:
        return np.dtype(self.ML_DTYPES.get(name) or self.OWN[name])

    def prepare(self, a: Arrays) -> Pass:
        src, dst = a.src, a.dst
        if bits := SUB_BYTE.get(a.src_type):
            # One code a byte, signed as the type is.
            kind = a.src_type[0].replace("f", "u")
            src = tc.cast(a.src, f"{kind}8", from_=f"{kind}{bits}", shape=(a.len,)).view(np.uint8)
        if a.dst_type in SUB_BYTE:
            dst = a.dst_pool[: a.len]
        src, dst = src.view(self._dtype(a.src_type)), dst.view(self._dtype(a.dst_type))
        return lambda: np.copyto(dst, src, casting="unsafe")


class Torch:
    title = "PyTorch"
    packages = ("torch",)
    TYPES = {
        "bool": "bool",
        "u8": "uint8",
        "i8": "int8",
        "i32": "int32",
        "i64": "int64",
        "u64": "uint64",
        "f8e4m3fn": "float8_e4m3fn",
        "f8e4m3fnuz": "float8_e4m3fnuz",
        "f8e5m2": "float8_e5m2",
        "f8e5m2fnuz": "float8_e5m2fnuz",
        "f8e8m0": "float8_e8m0fnu",
        "f16": "float16",
        "bf16": "bfloat16",
        "f32": "float32",
        "f64": "float64",
    }

    def __init__(self, threads: int):
        import torch

        torch.set_num_threads(threads)
        self.torch = torch

    def prepare(self, a: Arrays) -> Pass:
        def tensor(array: np.ndarray, name: str):
            return self.torch.from_numpy(array).view(getattr(self.torch, self.TYPES[name]))

        src, dst = tensor(a.src, a.src_type), tensor(a.dst, a.dst_type)
        return lambda: dst.copy_(src)


class OnnxRuntime:
    """A model of one Cast, bound to both buffers."""

    title = "onnxruntime"
    packages = ("onnxruntime",)
    TYPES = {
        "bool": "BOOL",
        "i4": "INT4",
        "u8": "UINT8",
        "i8": "INT8",
        "i32": "INT32",
        "i64": "INT64",
        "u64": "UINT64",
        "f4e2m1": "FLOAT4E2M1",
        "f8e4m3fn": "FLOAT8E4M3FN",
        "f8e4m3fnuz": "FLOAT8E4M3FNUZ",
        "f8e5m2": "FLOAT8E5M2",
        "f8e5m2fnuz": "FLOAT8E5M2FNUZ",
        "f8e8m0": "FLOAT8E8M0",
        "f16": "FLOAT16",
        "bf16": "BFLOAT16",
        "f32": "FLOAT",
        "f64": "DOUBLE",
    }
    OLDEST_OPSET = 21

    def __init__(self, threads: int):
        import onnx
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)  # that it refuses a pair is a result
        self.threads, self.onnx, self.runtime = threads, onnx, onnxruntime

    def prepare(self, a: Arrays) -> Pass:
        src, dst = (getattr(self.onnx.TensorProto, self.TYPES[name]) for name in (a.src_type, a.dst_type))
        session = self._session(src, dst, a.len)
        binding = session.io_binding()
        binding.bind_input("x", "cpu", 0, src, [a.len], a.src.ctypes.data)
        binding.bind_output("y", "cpu", 0, dst, [a.len], a.dst.ctypes.data)
        return lambda: session.run_with_iobinding(binding)

    def _session(self, src: int, dst: int, n: int):
        """At the newest opset that both packages know."""
        helper = self.onnx.helper
        x, y = helper.make_tensor_value_info("x", src, [n]), helper.make_tensor_value_info("y", dst, [n])
        graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=dst)], "cast", [x], [y])
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # not while others are measured
        for opset in range(self.onnx.defs.onnx_opset_version(), self.OLDEST_OPSET - 1, -1):
            opsets = [helper.make_opsetid("", opset)]
            ir = helper.find_min_ir_version_for(opsets, ignore_unknown=True)
            model = helper.make_model(graph, opset_imports=opsets, ir_version=ir).SerializeToString()
            try:
                return self.runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            except Exception as error:
                refused = error
        raise refused


class OpenVino:
    """A model of one Convert on the CPU device, bound to both buffers, told to compute in f32 and not in bf16."""

    title = "OpenVINO"
    packages = ("openvino",)
    TYPES = {
        "bool": "boolean",
        "i4": "i4",
        "u8": "u8",
        "i8": "i8",
        "i32": "i32",
        "i64": "i64",
        "u64": "u64",
        "f4e2m1": "f4e2m1",
        "f8e4m3fn": "f8e4m3",
        "f8e5m2": "f8e5m2",
        "f8e8m0": "f8e8m0",
        "f16": "f16",
        "bf16": "bf16",
        "f32": "f32",
        "f64": "f64",
    }

    def __init__(self, threads: int):
        import openvino

        self.openvino, self.core = openvino, openvino.Core()
        self.properties = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}

    def prepare(self, a: Arrays) -> Pass:
        ov = self.openvino
        src, dst = (getattr(ov.Type, self.TYPES[name]) for name in (a.src_type, a.dst_type))
        x = ov.opset13.parameter([a.len], src)
        model = ov.Model([ov.opset13.convert(x, dst)], [x], "convert")
        request = self.core.compile_model(model, "CPU", self.properties).create_infer_request()
        request.set_input_tensor(ov.Tensor(a.src, ov.Shape([a.len]), src))
        request.set_output_tensor(ov.Tensor(a.dst, ov.Shape([a.len]), dst))
        return request.infer


PEERS = {"numpy": NumPy, "torch": Torch, "onnxruntime": OnnxRuntime, "openvino": OpenVino}
