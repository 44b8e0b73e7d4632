"""A model for onnxruntime whose constant Casts are replaced by exact results: it rounds f64 to fp8 twice, through f32."""

import numpy as np
import onnx
import onnxruntime
import truecast as tc
from onnx import TensorProto, helper, numpy_helper

OPSET = 21


def model() -> onnx.ModelProto:
    """Weights of f64 are cast to fp8 and back to f32 where they are used."""
    # 1.0625 is a tie of fp8, and this weight lies above it by less than f32 can tell.
    weights = np.array([[1.0625 + 2.0**-30, 0.3], [-1.0625 - 2.0**-30, 500.0]])
    nodes = [
        helper.make_node("Cast", ["weights"], ["narrow"], to=TensorProto.FLOAT8E4M3FN),
        helper.make_node("Cast", ["narrow"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 2]) for name in "xy")
    graph = helper.make_graph(nodes, "fold", [x], [y], [numpy_helper.from_array(weights, "weights")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def fold(model: onnx.ModelProto) -> int:
    """Replaces every Cast of an initializer by its result. Gives their number."""
    graph = model.graph
    opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    casts = [node for node in graph.node if node.op_type == "Cast"]
    for node in casts:
        if node.input[0] not in constants:
            continue
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        to = attributes.pop("to")
        x = constants[node.input[0]]
        constants[node.output[0]] = tc.onnx.cast(x, to, opset=opset, **attributes)
        bits = tc.onnx.cast(x, to, opset=opset, layout="packed", **attributes)
        graph.initializer.append(helper.make_tensor(node.output[0], to, x.shape, bits.tobytes(), raw=True))
        graph.node.remove(node)
    used = {name for node in graph.node for name in node.input}
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in used]:
        graph.initializer.remove(tensor)
    return len(casts)


def run(model: onnx.ModelProto) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": np.eye(2, dtype=np.float32)})[0])


original = model()
folded = onnx.ModelProto.FromString(original.SerializeToString())
print(f"{fold(folded)} Casts are folded, {len(folded.graph.node)} node is left")
theirs, ours = run(original), run(folded)
print("onnxruntime:", theirs.tolist())
print("folded:     ", ours.tolist())
# 1.0625 + 2^-30 is nearer to 1.125 than to 1.
assert ours.tolist() == [[1.125, 0.3125], [-1.125, 448.0]]
