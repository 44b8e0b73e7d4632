"""`convert model.onnx` on trained weights: the result computes, in onnxruntime, what the same graph computes when its
weights were rounded by ml_dtypes or NumPy beforehand; equal in every bit.

The graph is that of minilm_graph.py. Its inputs hold every word once, and every position, so every row of every
embedding counts. No weight is beyond the range of a type (checked), so saturation plays no part.

Not here: each rule of docs/spec/onnx.md §3.10 (tests/python/test_onnx_models.py), speed and memory
(tests/acceptance/model.py).
"""

import math

import minilm_graph
import minilm_weights
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from container import read_safetensors
from dtypes import TYPES
from engines import session
from onnx import TensorProto, numpy_helper

FLOATS = {TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16}
MIN_ELEMENTS = 1024
LENGTH = 512
# A Cast and its names, per weight.
MOST_ADDED_BYTES = 256
# First opset whose Cast has the type, and the IR version of its release: docs/spec/onnx.md §1.2, §1.6.
NEEDS = {"bf16": (13, 7), "f16": (1, 3), "f8e4m3fn": (19, 9)}
# Fused kernels round differently from the nodes they replace (by up to 6e-6 here), so each level is compared with itself.
LEVELS = [ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    weights, _, _ = read_safetensors(minilm_weights.fetch())
    path = tmp_path_factory.mktemp("minilm") / "source.onnx"
    onnx.save(minilm_graph.model(weights), path)
    onnx.checker.check_model(str(path), full_check=True)
    return path


@pytest.fixture(scope="module", params=NEEDS)
def converted(request, truecast, source):
    """The type, the report, and the result, which `verify` has accepted."""
    path = source.with_name(f"{request.param}.onnx")
    report = truecast.convert(source, path, "--to", request.param)
    return request.param, report, path


def chosen(report) -> list[str]:
    """What the report says was converted."""
    return [row["name"] for row in report["tensors"] if row["converted"]]


def rounded_by_hand(model, names, to):
    """The model with these weights rounded to a type, as f32."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in model.graph.initializer:
        if tensor.name in names:
            narrow = numpy_helper.to_array(tensor).astype(TYPES[to].numpy).astype(np.float32)
            assert np.isfinite(narrow).all(), tensor.name
            tensor.raw_data = narrow.tobytes()
    return model


def batches():
    """Every word once, in sequences of full length of which the last is padded; then one word alone."""
    rng = np.random.default_rng(1)
    words = rng.permutation(minilm_graph.WORDS)
    ids = np.zeros((-(-words.size // LENGTH), LENGTH), np.int64)
    ids.flat[: words.size] = words
    present = (np.arange(ids.size) < words.size).astype(np.int64).reshape(ids.shape)
    kinds = rng.integers(0, 2, ids.shape)
    rows = [slice(i, i + 4) for i in range(0, len(ids), 4)]
    inputs = {"input_ids": ids, "token_type_ids": kinds, "attention_mask": present}
    return [{name: array[row] for name, array in inputs.items()} for row in rows] + [
        {name: array[:1, :1] for name, array in inputs.items()}
    ]


def outputs(model, level):
    """What the model gives for all batches, in one array of f32."""
    opened = session(model, level)
    return np.concatenate([y.ravel() for batch in batches() for y in opened.run(None, batch)])


def test_weights_chosen(source, converted):
    """Matrices of 1024 elements or more. Just missed: the token types (2 x 384), a bias (1536), positions (integers)."""
    to, report, _ = converted
    assert chosen(report) == [
        t.name
        for t in onnx.load(source).graph.initializer
        if t.data_type in FLOATS and len(t.dims) >= 2 and math.prod(t.dims) >= MIN_ELEMENTS
    ]
    assert {row["to"] for row in report["tensors"] if row["converted"]} == {to}


def test_only_weights_change(source, converted):
    to, report, path = converted
    onnx.checker.check_model(str(path), full_check=True)
    before, after = onnx.load(source), onnx.load(path)
    opset, ir = NEEDS[to]
    assert (after.opset_import[0].version, after.ir_version) == (max(minilm_graph.OPSET, opset), max(minilm_graph.IR, ir))

    stored = {f"{name}.{to}": name for name in chosen(report)}
    casts = [node for node in after.graph.node if node.input[0] in stored]
    assert [node for node in after.graph.node if node not in casts] == list(before.graph.node)
    assert {node.input[0]: node.output[0] for node in casts} == stored
    assert {(node.op_type, node.attribute[0].i) for node in casts} == {("Cast", TensorProto.FLOAT)}

    for old, new in zip(before.graph.initializer, after.graph.initializer, strict=True):
        if new.name not in stored:
            assert old == new, old.name
    for field in ("input", "output", "value_info"):
        assert getattr(before.graph, field) == getattr(after.graph, field)


def test_size(source, converted):
    """Smaller by what the weights are narrower."""
    to, report, path = converted
    rows = [row for row in report["tensors"] if row["converted"]]
    saved = sum(row["elements"] * (32 - TYPES[to].bits) // 8 for row in rows)
    added = path.stat().st_size - (source.stat().st_size - saved)
    assert 0 < added <= MOST_ADDED_BYTES * len(rows)


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_outputs(source, converted, level):
    to, report, path = converted
    before = onnx.load(source)
    by_hand = outputs(rounded_by_hand(before, chosen(report), to), level)
    ours = outputs(onnx.load(path), level)
    assert np.isfinite(by_hand).all()
    assert np.array_equal(ours.view(np.uint32), by_hand.view(np.uint32)), np.abs(ours - by_hand).max()


def test_rounding_matters(source, converted):
    """Outputs of the weights as they were are others, so equality above says something."""
    _, _, path = converted
    batch = batches()[-1]
    for before, after in zip(*(session(onnx.load(p)).run(None, batch) for p in (source, path)), strict=True):
        assert not np.array_equal(before, after)
