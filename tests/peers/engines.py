"""The peers, on raw codes (docs/spec/onnx.md §7.10): codes in, codes out, or `None` where a peer does not run the pair.

Not here: what is right, and where a peer deviates.
"""

import ctypes

import numpy as np
import onnxruntime as ort
from container import pack, unpack
from dtypes import Type
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def tensor(name: str, t: Type, codes: np.ndarray) -> TensorProto:
    raw = pack(t.from_codes(codes), t)
    return TensorProto(name=name, data_type=getattr(TensorProto, t.onnx), dims=[len(codes)], raw_data=raw)


def model(src: Type, dst: Type, n: int, opset: int, ir: int, initializer: TensorProto | None, attributes: dict):
    node = helper.make_node("Cast", ["x"], ["y"], to=getattr(TensorProto, dst.onnx), **attributes)
    x = helper.make_tensor_value_info("x", getattr(TensorProto, src.onnx), [n])
    y = helper.make_tensor_value_info("y", getattr(TensorProto, dst.onnx), [n])
    graph = helper.make_graph([node], "g", [] if initializer else [x], [y], initializer=[initializer] if initializer else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def reference(src: Type, dst: Type, codes: np.ndarray, **attributes) -> np.ndarray | None:
    """The reference evaluator of onnx 1.23.2, which ignores the opset."""
    made = model(src, dst, len(codes), 28, 14, None, attributes)
    with np.errstate(all="ignore"):
        try:
            y = ReferenceEvaluator(made).run(None, {"x": numpy_helper.to_array(tensor("x", src, codes))})[0]
        except TypeError:
            return None
    return dst.codes(y)


def onnxruntime(src: Type, dst: Type, codes: np.ndarray, **attributes) -> np.ndarray | None:
    """ONNX Runtime 1.31.1 on the CPU. It knows opset 25; results are read from memory, since its Python interface does
    not know most of the types."""
    made = model(src, dst, len(codes), 25, 13, tensor("x", src, codes), attributes)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001: its exceptions have no common base of their own
        if "NOT_IMPLEMENTED" not in str(error) and "NotImplemented" not in type(error).__name__:
            raise
        return None
    value = session.run_with_ort_values(None, {})[0]
    raw = ctypes.string_at(value.data_ptr(), (len(codes) * dst.bits + 7) // 8)
    return dst.codes(unpack(raw, dst, len(codes)))
