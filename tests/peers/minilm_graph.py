"""The embeddings and the first encoder layer of all-MiniLM-L6-v2 as an ONNX graph, around the published weights.

Weights keep their names, layout and bytes: a matrix is transposed by a node, as the layer that trained it does.
Opset 17 is the first with LayerNormalization; Gelu is spelled out with Erf. Not here: the other five layers, which are
the same operators again, and pooling.
"""

import math

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET, IR = 17, 8
WORDS, HIDDEN, HEADS = 30522, 384, 12
EPSILON = 1e-12
MASKED = -10_000.0
"""Added to the scores of padding, as BERT does."""


class Builder:
    """Nodes in order, and the initializers that they use."""

    def __init__(self, weights: dict[str, np.ndarray]):
        self.weights = weights
        self.nodes = []
        self.initializers = {}

    def weight(self, name: str) -> str:
        self.initializers[name] = self.weights[name]
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        self.initializers[name] = np.asarray(value)
        return name

    def node(self, op: str, *inputs: str, output: str | None = None, **attributes) -> str:
        """Adds a node; its one output, which takes the name of the node unless it is named."""
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output or name], name=name, **attributes))
        return output or name

    def dense(self, x: str, scope: str) -> str:
        matrix = self.node("Transpose", self.weight(f"{scope}.weight"), perm=[1, 0])
        return self.node("Add", self.node("MatMul", x, matrix), self.weight(f"{scope}.bias"))

    def norm(self, x: str, scope: str, output: str | None = None) -> str:
        scale, bias = self.weight(f"{scope}.weight"), self.weight(f"{scope}.bias")
        return self.node("LayerNormalization", x, scale, bias, output=output, axis=-1, epsilon=EPSILON)

    def embeddings(self, output: str) -> str:
        length = self.node("Shape", "input_ids", start=1, end=2)
        begin, axis = self.constant("begin", np.int64([0])), self.constant("axis", np.int64([1]))
        positions = self.node("Slice", self.weight("embeddings.position_ids"), begin, length, axis)
        looked_up = [
            self.node("Gather", self.weight(f"embeddings.{kind}_embeddings.weight"), indices)
            for kind, indices in [("word", "input_ids"), ("token_type", "token_type_ids"), ("position", positions)]
        ]
        added = self.node("Add", self.node("Add", *looked_up[:2]), looked_up[2])
        return self.norm(added, "embeddings.LayerNorm", output)

    def encoder_layer(self, x: str, scope: str, output: str) -> str:
        attended = self.dense(self.attention(x, f"{scope}.attention.self"), f"{scope}.attention.output.dense")
        x = self.norm(self.node("Add", attended, x), f"{scope}.attention.output.LayerNorm")
        wide = self.gelu(self.dense(x, f"{scope}.intermediate.dense"))
        narrow = self.dense(wide, f"{scope}.output.dense")
        return self.norm(self.node("Add", narrow, x), f"{scope}.output.LayerNorm", output)

    def attention(self, x: str, scope: str) -> str:
        split = self.constant("split", np.int64([0, 0, HEADS, HIDDEN // HEADS]))
        query, key, value = (
            self.node("Transpose", self.node("Reshape", self.dense(x, f"{scope}.{part}"), split), perm=perm)
            for part, perm in [("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])]
        )
        scale = self.constant("scale", np.float32(math.sqrt(HIDDEN // HEADS)))
        scores = self.node("Div", self.node("MatMul", query, key), scale)
        shares = self.node("Softmax", self.node("Add", scores, self.padding()), axis=-1)
        heads = self.node("Transpose", self.node("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self.node("Reshape", heads, self.constant("join", np.int64([0, 0, HIDDEN])))

    def padding(self) -> str:
        """What is added to scores: 0 where the mask is 1, `MASKED` where it is 0."""
        mask = self.node("Cast", "attention_mask", to=TensorProto.FLOAT)
        absent = self.node("Sub", self.constant("one", np.float32(1)), mask)
        added = self.node("Mul", absent, self.constant("masked", np.float32(MASKED)))
        return self.node("Unsqueeze", added, self.constant("heads_and_queries", np.int64([1, 2])))

    def gelu(self, x: str) -> str:
        erf = self.node("Erf", self.node("Div", x, self.constant("sqrt_2", np.float32(math.sqrt(2)))))
        doubled = self.node("Mul", x, self.node("Add", erf, self.constant("one", np.float32(1))))
        return self.node("Mul", doubled, self.constant("half", np.float32(0.5)))


def model(weights: dict[str, np.ndarray]) -> ModelProto:
    """Outputs: `embeddings`, and `hidden` after the layer."""
    made = Builder(weights)
    made.encoder_layer(made.embeddings("embeddings"), "encoder.layer.0", "hidden")
    inputs, outputs = (
        [helper.make_tensor_value_info(name, kind, ["batch", "length", *last]) for name in names]
        for names, kind, last in [
            (["input_ids", "token_type_ids", "attention_mask"], TensorProto.INT64, []),
            (["embeddings", "hidden"], TensorProto.FLOAT, [HIDDEN]),
        ]
    )
    initializers = [numpy_helper.from_array(array, name) for name, array in made.initializers.items()]
    graph = helper.make_graph(made.nodes, "minilm", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
