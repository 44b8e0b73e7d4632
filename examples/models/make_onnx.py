"""Writes casts.onnx: f32 through f8e4m3fn and back. Needs the package onnx."""

from onnx import TensorProto, checker, helper, save

shape = ["n"]
graph = helper.make_graph(
    [
        helper.make_node("Cast", ["x"], ["codes"], to=TensorProto.FLOAT8E4M3FN, saturate=1),
        helper.make_node("Cast", ["codes"], ["y"], to=TensorProto.FLOAT),
    ],
    "casts",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, producer_name="truecast")
checker.check_model(model)
save(model, "casts.onnx")
