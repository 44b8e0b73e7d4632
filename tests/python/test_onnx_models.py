"""ONNX files against the onnx package: models converted, checked, evaluated; tensors in every storage form.

Models are made with the package and judged by its checker and its reference evaluator; the values that a converted
tensor must have come from ml_dtypes. Not here: the bytes that must not change (crates/io/tests/onnx_models.rs).
"""

import json
import shutil
import subprocess

import kill
import numpy as np
import onnx
import pytest
from container import pack
from dtypes import TYPES, assert_same
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data
from onnx.reference import ReferenceEvaluator
from values import weights

FLOAT = TensorProto.FLOAT
W, C, B = weights(64 * 48).reshape(64, 48), weights(48 * 32, seed=2).reshape(48, 32), weights(32, seed=3)
X = weights(2 * 64, seed=4).reshape(2, 64) * 16


def perceptron(opset=21, ir=10, more_inputs=(), more_nodes=(), **fields) -> onnx.ModelProto:
    """Two layers: the weight of one is an initializer, that of the other a Constant."""
    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["h"], name="first"),
        helper.make_node("Constant", [], ["C"], value=numpy_helper.from_array(C, "inner")),
        helper.make_node("MatMul", ["h", "C"], ["z"], name="second"),
        *more_nodes,
        helper.make_node("Add", ["z", "B"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["n", 64]), *more_inputs]
    outputs = [helper.make_tensor_value_info("y", FLOAT, ["n", 32])]
    initializers = [numpy_helper.from_array(W, "W"), numpy_helper.from_array(B, "B")]
    infos = [helper.make_tensor_value_info("C", FLOAT, [48, 32])]
    graph = helper.make_graph(nodes, "perceptron", inputs, outputs, initializers, value_info=infos)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir, **fields)
    model.metadata_props.add(key="author", value="nobody")
    return model


def save(model, path, **external):
    onnx.save(model, path, **external)
    onnx.checker.check_model(str(path), full_check=True)
    return path


def load(path) -> onnx.ModelProto:
    onnx.checker.check_model(str(path), full_check=True)
    return onnx.load(path)


def run(model, **inputs):
    return ReferenceEvaluator(model).run(None, {"x": X, **inputs})[0]


def narrowed(array, to):
    """What becomes of f32 values that are stored as a type."""
    return array.astype(TYPES[to].numpy).astype(np.float32)


def expected(to):
    """The outputs of a model that was made with the narrowed weights in the first place."""
    model = perceptron()
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(narrowed(W, to), "W"))
    model.graph.node[1].attribute[0].t.CopyFrom(numpy_helper.from_array(narrowed(C, to), "inner"))
    return run(model)


@pytest.mark.parametrize("to, opset, ir", [("bf16", 21, 10), ("f16", 21, 10), ("f8e4m3fn", 21, 10), ("f8e5m2", 21, 10)])
def test_weights_are_stored_and_cast_back(truecast, tmp_path, to, opset, ir):
    src, dst = save(perceptron(), tmp_path / "a.onnx"), tmp_path / "b.onnx"
    report = truecast.convert(src, dst, "--to", to)
    assert [(t["name"], t["converted"]) for t in report["tensors"]] == [("W", True), ("B", False), ("C", True)]
    assert report["total"]["converted"]["tensors"] == 2
    model = load(dst)
    assert (model.ir_version, model.opset_import[0].version) == (ir, opset)
    stored = {t.name: t for t in model.graph.initializer}
    assert set(stored) == {f"W.{to}", "B"} and stored[f"W.{to}"].data_type == getattr(TensorProto, TYPES[to].onnx)
    assert [n.op_type for n in model.graph.node] == ["Cast", "MatMul", "Constant", "Cast", "MatMul", "Add"]
    assert np.array_equal(run(model), expected(to))
    # Nothing but the stored weights and their casts differs.
    for node in [n for n in model.graph.node if n.op_type == "Cast"]:
        model.graph.node.remove(node)
    original = onnx.load(src)
    model.graph.initializer[0].CopyFrom(original.graph.initializer[0])
    model.graph.node[1].CopyFrom(original.graph.node[1])
    assert model == original


def test_converted_twice(truecast, tmp_path):
    src, dst = save(perceptron(), tmp_path / "a.onnx"), tmp_path / "c.onnx"
    truecast.convert(src, tmp_path / "b.onnx", "--to", "f16")
    truecast.convert(tmp_path / "b.onnx", dst, "--to", "f8e4m3fn")
    half = narrowed(W, "f16").astype(np.float16)
    model = load(dst)
    stored = next(t for t in model.graph.initializer if t.name == "W.f16.f8e4m3fn")
    t = TYPES["f8e4m3fn"]
    assert stored.raw_data == pack(half.astype(t.numpy), t)
    run(model)


def test_compare_by_value(truecast, tmp_path):
    src, dst = save(perceptron(), tmp_path / "a.onnx"), tmp_path / "b.onnx"
    truecast.convert(src, dst, "--to", "bf16")
    said = truecast.json("compare", src, dst)
    assert {t["name"]: (t["from"], t["to"]) for t in said["tensors"]}["W"] == ("f32", "bf16")
    assert said["only_first"] == said["only_second"] == []


def test_verify_finds_every_difference(truecast, tmp_path):
    """One flipped bit anywhere in the file: an element, a name, a shape, a length."""
    src, dst = save(perceptron(), tmp_path / "a.onnx"), tmp_path / "b.onnx"
    truecast.convert(src, dst, "--to", "f16")
    good = dst.read_bytes()
    rng = np.random.default_rng(5)
    places = [*range(0, 200, 7), *rng.integers(0, len(good), 40), *range(len(good) - 60, len(good), 3)]
    for at in places:
        bad = bytearray(good)
        bad[at] ^= 1 << int(rng.integers(8))
        dst.write_bytes(bad)
        command = [truecast.binary, "verify", src, dst, "--to", "f16"]
        done = subprocess.run([str(c) for c in command], capture_output=True, timeout=60)
        assert done.returncode in (1, 3), (at, done.stdout, done.stderr)


@pytest.mark.parametrize("opset, ir", [(13, 7), (17, 8)])
def test_opset_and_ir_are_raised_only_as_needed(truecast, tmp_path, opset, ir):
    src = save(perceptron(opset, ir), tmp_path / "a.onnx")
    for to, needed, version in [("bf16", opset, ir), ("f8e4m3fn", 19, 9), ("f8e8m0", 24, 12), ("f6e2m3", 28, 14)]:
        dst = tmp_path / f"{to}.onnx"
        if to == "f6e2m3":  # no version of Constant has it
            truecast("convert", src, dst, "--to", to, code=3)
        truecast.convert(src, dst, "--to", to, *(["--keep", "C"] if to == "f6e2m3" else []))
        model = load(dst)
        assert (model.opset_import[0].version, model.ir_version) == (needed, version), to
        run(model)


def test_a_raise_that_would_change_a_node_is_refused(truecast, tmp_path):
    softmax = helper.make_node("Softmax", ["z"], ["s"], name="attention")
    src = save(perceptron(11, 6, more_nodes=[softmax]), tmp_path / "a.onnx")
    said = truecast("convert", src, tmp_path / "b.onnx", "--to", "bf16", code=3)
    assert not (tmp_path / "b.onnx").exists(), said
    # f16 exists in every opset.
    truecast.convert(src, tmp_path / "b.onnx", "--to", "f16")
    assert load(tmp_path / "b.onnx").opset_import[0].version == 11


def test_old_models_list_their_weights_as_inputs(truecast, tmp_path):
    infos = [helper.make_tensor_value_info("W", FLOAT, W.shape), helper.make_tensor_value_info("B", FLOAT, B.shape)]
    old = perceptron(8, 3, more_inputs=infos)
    src, dst = save(old, tmp_path / "a.onnx"), tmp_path / "b.onnx"
    truecast.convert(src, dst, "--to", "f16")
    model = load(dst)
    assert [i.name for i in model.graph.input] == ["x", "W.f16", "B"]
    assert model.graph.input[1].type.tensor_type.elem_type == TensorProto.FLOAT16
    # From IR version 4 on such an input is the model's interface.
    new = save(perceptron(8, 4, more_inputs=infos), tmp_path / "c.onnx")
    report = truecast.convert(new, tmp_path / "d.onnx", "--to", "f16")
    assert [t["converted"] for t in report["tensors"]] == [False, False, True]


def test_rules_and_sizes(truecast, tmp_path):
    src = save(perceptron(), tmp_path / "a.onnx")

    def kept(*options):
        dst = tmp_path / "b.onnx"
        report = truecast.convert(src, dst, "--to", "bf16", *options)
        load(dst)
        dst.unlink()
        return {t["name"]: t["to"] for t in report["tensors"]}

    assert kept("--keep", "W") == {"W": "f32", "B": "f32", "C": "bf16"}
    assert kept("--rule", "B=f16") == {"W": "bf16", "B": "f16", "C": "bf16"}
    assert kept("--min-elements", "2000") == {"W": "bf16", "B": "f32", "C": "f32"}
    assert kept("--rule", "*=f8e4m3fn") == {"W": "f8e4m3fn", "B": "f8e4m3fn", "C": "f8e4m3fn"}
    truecast("convert", src, tmp_path / "b.onnx", "--rule", "nothing*=bf16", code=2)
    truecast("convert", src, tmp_path / "b.npz", "--from", "f16", "--to", "bf16", code=2)


def test_subgraphs(truecast, tmp_path):
    """A branch uses a weight of the outer graph and one of its own."""
    add = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["m"]), helper.make_node("MatMul", ["m", "V"], ["t"])],
        "add",
        [],
        [helper.make_tensor_value_info("t", FLOAT, ["n", 32])],
        [numpy_helper.from_array(C, "V")],
    )
    other = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["m"]), helper.make_node("MatMul", ["m", "V"], ["t"])],
        "other",
        [],
        [helper.make_tensor_value_info("t", FLOAT, ["n", 32])],
        [numpy_helper.from_array(-C, "V")],
    )
    nodes = [helper.make_node("If", ["b"], ["y"], name="choice", then_branch=add, else_branch=other)]
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["n", 64]), helper.make_tensor_value_info("b", TensorProto.BOOL, [])]
    outputs = [helper.make_tensor_value_info("y", FLOAT, ["n", 32])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(W, "W")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    src, dst = save(model, tmp_path / "a.onnx"), tmp_path / "b.onnx"
    report = truecast.convert(src, dst, "--to", "f8e5m2")
    names = ["W", "choice/then_branch/V", "choice/else_branch/V"]
    assert sorted(t["name"] for t in report["tensors"]) == sorted(names) and report["total"]["converted"]["tensors"] == 3
    result = load(dst)
    for b, sign in ((True, 1), (False, -1)):
        wide = X @ narrowed(W, "f8e5m2") @ (sign * narrowed(C, "f8e5m2"))
        np.testing.assert_allclose(run(result, b=np.array(b)), wide, rtol=1e-5)


def test_functions(truecast, tmp_path):
    body = [
        helper.make_node("Constant", [], ["K"], value=numpy_helper.from_array(W, "inner")),
        helper.make_node("MatMul", ["a", "K"], ["b"]),
    ]
    opset = helper.make_opsetid("", 17)
    function = helper.make_function("local", "Layer", ["a"], ["b"], body, [opset])
    node = helper.make_node("Layer", ["x"], ["y"], domain="local")
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["n", 64])]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", FLOAT, ["n", 48])])
    imports = [opset, helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=8)
    src, dst = save(model, tmp_path / "a.onnx"), tmp_path / "b.onnx"
    report = truecast.convert(src, dst, "--to", "f8e4m3fn")
    assert [(t["name"], t["converted"]) for t in report["tensors"]] == [("local:Layer/K", True)]
    result = load(dst)
    assert result.opset_import[0].version == result.functions[0].opset_import[0].version == 19
    np.testing.assert_allclose(run(result), X @ narrowed(W, "f8e4m3fn"), rtol=1e-5)


def test_tensors_that_attributes_need_are_kept(truecast, tmp_path):
    """ConstantOfShape's value is no weight, and a quantized node's scale is not touched."""
    scale = weights(64 * 48).reshape(64, 48) ** 2 + 1
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["d"], block_size=1, axis=0),
        helper.make_node("ConstantOfShape", ["n"], ["f"], value=numpy_helper.from_array(np.float32([2]), "v")),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    initializers = [
        numpy_helper.from_array(np.arange(64 * 48, dtype=np.int8).reshape(64, 48), "q"),
        numpy_helper.from_array(scale, "s"),
        numpy_helper.from_array(np.int64([3]), "n"),
    ]
    inputs = [helper.make_tensor_value_info("x", FLOAT, ["n", 64])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", FLOAT, ["n", 48])], initializers)
    src = save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "a.onnx")
    report = truecast.convert(src, tmp_path / "b.onnx", "--to", "bf16")
    assert report["total"]["converted"]["tensors"] == 0
    assert (tmp_path / "b.onnx").read_bytes() == src.read_bytes()
    truecast("convert", src, tmp_path / "c.onnx", "--rule", "ConstantOfShape1/value=bf16", code=2)


class TestExternalData:
    def source(self, tmp_path, **options):
        (tmp_path / "in").mkdir()
        layout = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 100} | options
        return save(perceptron(), tmp_path / "in" / "a.onnx", **layout)

    def test_it_stays_external(self, truecast, tmp_path):
        src, dst = self.source(tmp_path), tmp_path / "b.onnx"
        truecast.convert(src, dst, "--to", "bf16")
        assert sorted(p.name for p in tmp_path.iterdir()) == ["b.onnx", "b.onnx.data", "in"]
        model = load(dst)
        entries = {e.key: e.value for e in onnx.load(dst, load_external_data=False).graph.initializer[0].external_data}
        assert entries == {"location": "b.onnx.data", "offset": "0", "length": str(2 * W.size)}
        assert np.array_equal(run(model), expected("bf16"))

    def test_one_file_for_each(self, truecast, tmp_path):
        src, dst = self.source(tmp_path, all_tensors_to_one_file=False), tmp_path / "b.onnx"
        truecast.convert(src, dst, "--to", "f16")
        assert np.array_equal(run(load(dst)), expected("f16"))

    def test_replacing_keeps_every_moment_whole(self, truecast, tmp_path):
        """The new model's data takes another name; the old data goes last."""
        src, dst = self.source(tmp_path), tmp_path / "b.onnx"
        truecast.convert(src, dst, "--to", "bf16")
        truecast("convert", src, dst, "--to", "f16", code=2)
        assert np.array_equal(run(load(dst)), expected("bf16"))
        truecast.convert(src, dst, "--to", "f16", "--force")
        assert sorted(p.name for p in tmp_path.iterdir()) == ["b.onnx", "b.onnx.1.data", "in"]
        assert np.array_equal(run(load(dst)), expected("f16"))

    def test_what_the_source_reads_stays(self, truecast, tmp_path):
        """The data of a replaced model goes, but not where the source is a copy of that model."""
        dst = tmp_path / "b.onnx"
        truecast.convert(self.source(tmp_path), dst, "--to", "bf16")
        copy = shutil.copy(dst, tmp_path / "copy.onnx")
        truecast.convert(copy, dst, "--to", "f16", "--force")
        assert (tmp_path / "b.onnx.data").exists()
        assert np.array_equal(run(load(copy)), expected("bf16"))

    def test_nothing_else_is_overwritten(self, truecast, tmp_path):
        src, dst = self.source(tmp_path), tmp_path / "b.onnx"
        (tmp_path / "b.onnx.data").write_bytes(b"precious")
        truecast.convert(src, dst, "--to", "bf16", "--force")
        assert (tmp_path / "b.onnx.data").read_bytes() == b"precious"
        truecast("convert", src, src.parent / "w.bin", "--to", "bf16", "--force", code=2)
        truecast("convert", src, src, "--to", "bf16", "--force", code=2)

    @pytest.mark.parametrize("signal", ["SIGKILL", "SIGTERM"])
    def test_killed_at_random_moments(self, truecast, tmp_path, signal):
        """Model and data fit together at every moment; tests/acceptance/kill.py does it in earnest."""
        campaign = kill.ModelCampaign(truecast.binary, tmp_path, megabytes=4, seed=7)
        assert sum(campaign.run(signal, 8).values()) == 8

    def test_bad_places(self, truecast, tmp_path):
        src = self.source(tmp_path)
        data = src.parent / "w.bin"
        good = data.read_bytes()
        for spoil in (lambda: data.write_bytes(good[:-1]), lambda: data.unlink()):
            spoil()
            truecast("convert", src, tmp_path / "b.onnx", "--to", "bf16", code=3)
            truecast("inspect", src, code=3)
        (tmp_path / "elsewhere").write_bytes(good)
        data.symlink_to(tmp_path / "elsewhere")
        truecast("convert", src, tmp_path / "b.onnx", "--to", "bf16", code=3)
        truecast.convert(src, tmp_path / "b.onnx", "--to", "bf16", "--follow-links")


def test_inspect(truecast, tmp_path):
    src = save(perceptron(), tmp_path / "a.onnx")
    said = truecast.json("inspect", src, "--stats")
    assert [t["name"] for t in said["tensors"]] == ["W", "B", "C"]
    assert said["tensors"][0]["stats"]["max"] == float(W.max())
    model = said["model"]
    assert model["ir_version"] == 10 and model["opset_imports"] == [{"domain": "", "version": 21}]
    assert model["operators"] == {"Add": 1, "Constant": 1, "MatMul": 2} and model["nodes"] == 4
    assert "opset ai.onnx 21" in truecast("inspect", src)


def test_dry_run(truecast, tmp_path):
    src = save(perceptron(), tmp_path / "a.onnx")
    said = truecast.json("convert", src, tmp_path / "b.onnx", "--to", "bf16", "--dry-run")
    assert [t["bytes_out"] for t in said["tensors"]] == [2 * W.size, 4 * B.size, 2 * C.size]
    assert [p.name for p in tmp_path.iterdir()] == ["a.onnx"]


def test_out_of_a_model(truecast, tmp_path):
    """Weights go to other containers; a model is only made from a model."""
    src = save(perceptron(), tmp_path / "a.onnx")
    truecast("convert", src, tmp_path / "b.npz", "--to", "f16")
    with np.load(tmp_path / "b.npz") as arrays:
        assert sorted(arrays) == ["B", "C", "W"] and np.array_equal(arrays["W"], W.astype(np.float16))
    truecast("convert", tmp_path / "b.npz", tmp_path / "c.onnx", "--to", "bf16", code=2)


ONNX_TYPES = [t for t in TYPES.values() if t.onnx]


@pytest.mark.parametrize("t", ONNX_TYPES, ids=str)
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
def test_pb_is_read(truecast, tmp_path, t, raw):
    """As the package writes it: `raw_data`, or the typed field of the type."""
    codes = np.arange(2 if t.name == "bool" else min(1 << t.bits, 300), dtype=np.uint64)
    array = t.from_codes(codes)
    kind = getattr(TensorProto, t.onnx)
    message = TensorProto(name="t", data_type=kind, dims=[len(codes)])
    if raw:
        message.raw_data = pack(array, t) if t.name != "bool" else array.tobytes()
    else:
        with np.errstate(invalid="ignore"):
            message = helper.make_tensor("t", kind, [len(codes)], array)
        array = numpy_helper.to_array(message).astype(t.numpy)  # the package saturates Inf of float8_e5m2
    onnx.checker.check_tensor(message)
    src, dst = tmp_path / "a.pb", tmp_path / "b.pb"
    src.write_bytes(message.SerializeToString())
    truecast("convert", src, dst, "--to", t.name, "--spec", "ieee")
    result = onnx.load_tensor(dst)
    onnx.checker.check_tensor(result)
    assert (result.name, result.data_type, list(result.dims)) == ("t", kind, [len(codes)])
    found = numpy_helper.to_array(result)
    assert_same(found.astype(t.numpy), array, t)
    said = truecast.json("inspect", src)
    assert said["tensors"] == [{"name": "t", "dtype": t.name, "shape": [len(codes)], "elements": len(codes),
                                "bytes": said["tensors"][0]["bytes"], "offset": said["tensors"][0]["offset"]}]


def test_pb_and_npy(truecast, tmp_path):
    np.save(tmp_path / "a.npy", W)
    truecast.convert(tmp_path / "a.npy", tmp_path / "b.pb", "--to", "f8e4m3fn")
    found = numpy_helper.to_array(onnx.load_tensor(tmp_path / "b.pb"))
    t = TYPES["f8e4m3fn"]
    assert_same(found, W.astype(t.numpy), t)
    truecast.convert(tmp_path / "b.pb", tmp_path / "c.npy", "--to", "f32")
    assert np.array_equal(np.load(tmp_path / "c.npy"), narrowed(W, "f8e4m3fn"))
    assert truecast.json("compare", tmp_path / "b.pb", tmp_path / "c.npy")["equal"]


def test_pb_with_text(truecast, tmp_path):
    """Text is read into numbers and written from them; it is string_data on both sides."""
    texts = ["1.5", "-inf", "0.1", "1e400", "NaN"]
    message = helper.make_tensor("t", TensorProto.STRING, [5], [t.encode() for t in texts])
    (tmp_path / "a.pb").write_bytes(message.SerializeToString())
    truecast.convert(tmp_path / "a.pb", tmp_path / "b.pb", "--to", "f32")
    numbers = numpy_helper.to_array(onnx.load_tensor(tmp_path / "b.pb"))
    assert np.array_equal(numbers, np.float32([1.5, -np.inf, np.float32(0.1), np.inf, np.nan]), equal_nan=True)
    truecast.convert(tmp_path / "b.pb", tmp_path / "c.pb", "--to", "string")
    result = onnx.load_tensor(tmp_path / "c.pb")
    onnx.checker.check_tensor(result)
    assert list(result.string_data) == [b"1.5", b"-inf", b"0.1", b"inf", b"nan"]  # docs/spec/onnx.md §6.2
    assert len((tmp_path / "c.pb").read_bytes()) == len(result.SerializeToString())


def test_pb_with_external_data(truecast, tmp_path):
    message = numpy_helper.from_array(W, "t")
    (tmp_path / "w").write_bytes(b"\0" * 16 + message.raw_data)
    set_external_data(message, "w", offset=16, length=W.nbytes)
    message.ClearField("raw_data")
    (tmp_path / "a.pb").write_bytes(message.SerializeToString())
    truecast.convert(tmp_path / "a.pb", tmp_path / "b.npy", "--to", "f32")
    assert np.array_equal(np.load(tmp_path / "b.npy"), W)


@pytest.mark.parametrize("name", ["a.onnx", "a.pb"])
@pytest.mark.parametrize("content", [b"\x08", b"\xff" * 30, b"\x4a\xff\xff\xff\xff\x7f", b"not protobuf at all"], ids=repr)
def test_bad_files(truecast, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    for command in (["inspect"], ["convert", tmp_path / f"out{name[1:]}", "--to", "f16"]):
        truecast(command[0], tmp_path / name, *command[1:], code=3)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_report_file(truecast, tmp_path):
    src, report = save(perceptron(), tmp_path / "a.onnx"), tmp_path / "report.json"
    truecast("convert", src, tmp_path / "b.onnx", "--to", "f8e4m3fn", "--fail-on", "inexact", "--report", report, code=1)
    rows = {t["name"]: t for t in json.loads(report.read_text())["tensors"]}
    assert rows["W"]["inexact"] == int((narrowed(W, "f8e4m3fn") != W).sum())
    assert rows["B"]["inexact"] == 0
    load(tmp_path / "b.onnx")


def test_types_are_those_of_shape_inference(truecast, tmp_path):
    """What `check` knows of values between nodes is what ONNX's own inference finds."""
    f32, f16, i64, b = "f32", "f16", "i64", "b"
    one = numpy_helper.from_array(np.ones(1, np.float16))
    nodes = [
        ("Add", [f32, f32], 1, {}), ("MatMul", [f16, f16], 1, {}), ("Gemm", [f32, f32], 1, {}), ("Relu", [f16], 1, {}),
        ("Conv", ["image", "kernel"], 1, {}), ("MaxPool", ["image"], 2, {"kernel_shape": [1, 1]}),
        ("Reshape", [f32, "shape"], 1, {}), ("Transpose", [i64], 1, {}), ("Concat", [f16, f16], 1, {"axis": 0}),
        ("Gather", [f16, i64], 1, {}), ("Softmax", [f32], 1, {}), ("LayerNormalization", [f16, "f16_row"], 1, {}),
        ("Equal", [f32, f32], 1, {}), ("Shape", [f16], 1, {}), ("Where", [b, f16, f16], 1, {}), ("Pow", [f32, i64], 1, {}),
        ("ConstantOfShape", ["shape"], 1, {}), ("ConstantOfShape", ["shape"], 1, {"value": one}),
        ("TopK", [f32, "k"], 2, {}), ("Split", [f16], 2, {"num_outputs": 2}), ("ArgMax", [f32], 1, {}),
        ("DynamicQuantizeLinear", [f32], 3, {}), ("QuantizeLinear", [f32, "scale"], 1, {"output_dtype": TensorProto.INT8}),
        ("EyeLike", [f32], 1, {}), ("EyeLike", [f32], 1, {"dtype": TensorProto.FLOAT16}), ("NonZero", [f32], 1, {}),
        ("RandomUniform", [], 1, {"shape": [2], "dtype": TensorProto.DOUBLE}), ("ReduceMean", [f16], 1, {}),
    ]  # fmt: skip
    all_nodes, names = [], []
    for at, (operator, inputs, outputs, attributes) in enumerate(nodes):
        results = [f"{operator}_{at}_{i}" for i in range(outputs)]
        all_nodes.append(helper.make_node(operator, inputs, results, **attributes))
        all_nodes += [helper.make_node("Cast", [name], [f"cast_{name}"], to=TensorProto.FLOAT) for name in results]
        names += results
    inputs = {
        f32: ("FLOAT", [2, 2]), f16: ("FLOAT16", [2, 2]), i64: ("INT64", [2, 2]), b: ("BOOL", [2, 2]),
        "f16_row": ("FLOAT16", [2]), "image": ("FLOAT", [1, 1, 2, 2]), "kernel": ("FLOAT", [1, 1, 1, 1]),
        "shape": ("INT64", [1]), "k": ("INT64", [1]), "scale": ("FLOAT", []),
    }  # fmt: skip
    infos = [helper.make_tensor_value_info(n, getattr(TensorProto, t), shape) for n, (t, shape) in inputs.items()]
    outputs = [helper.make_tensor_value_info(f"cast_{names[0]}", TensorProto.FLOAT, None)]
    model = helper.make_model(
        helper.make_graph(all_nodes, "g", infos, outputs), opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    onnx.save(model, tmp_path / "m.onnx")
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.value_info
    types = {info.name: helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type) for info in inferred}
    found = json.loads(truecast("inspect", tmp_path / "m.onnx", "--json"))["model"]["conversions"]
    short = {"float32": "f32", "float16": "f16", "float64": "f64", "bool": "bool"}
    expected = [str(types[name]) for name in names]
    expected = [short.get(t, t.replace("uint", "u").replace("int", "i")) for t in expected]
    assert [conversion["from"] for conversion in found] == expected
