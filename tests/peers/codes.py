"""The engines on raw codes of numeric types (docs/spec/onnx.md §7.10): codes in, codes out, or `None` where an engine does
not run the pair.

Not here: what is right, and where an engine deviates.
"""

import ctypes

import numpy as np
from container import pack, unpack
from dtypes import Type
from engines import node_model, session
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator


def tensor(t: Type, codes: np.ndarray) -> TensorProto:
    raw = pack(t.from_codes(codes), t)
    return TensorProto(name="x", data_type=getattr(TensorProto, t.onnx), dims=[len(codes)], raw_data=raw)


def reference(src: Type, dst: Type, codes: np.ndarray, **attributes) -> np.ndarray | None:
    """The reference evaluator, which ignores the opset."""
    made = node_model(dst.onnx, tensor(src, codes), 28, 14, **attributes)
    with np.errstate(all="ignore"):
        try:
            y = ReferenceEvaluator(made).run(None, {})[0]
        except TypeError:
            return None
    return dst.codes(y)


def onnxruntime(src: Type, dst: Type, codes: np.ndarray, **attributes) -> np.ndarray | None:
    """ONNX Runtime. It knows opset 25; results are read from memory, since its Python interface does not know most of
    the types."""
    made = node_model(dst.onnx, tensor(src, codes), 25, 13, **attributes)
    try:
        opened = session(made)
    except Exception as error:  # noqa: BLE001: its exceptions have no common base of their own
        if "NOT_IMPLEMENTED" not in str(error):
            raise
        return None
    value = opened.run_with_ort_values(None, {})[0]
    raw = ctypes.string_at(value.data_ptr(), (len(codes) * dst.bits + 7) // 8)
    return dst.codes(unpack(raw, dst, len(codes)))
