"""The public node tests of Cast and CastLike, through `truecast run`: every output code as published, NaN included
(docs/spec/onnx.md §7.1 to §7.6). Two sets: that of release 1.23, which exists only in memory, and the files in the wheel
of 1.22.0, which `./test` unpacks; the former asks for opset 28, the latter for opset 25. No expectation is ours.
"""

from pathlib import Path

import numpy as np
import onnx
import pytest
from command import ROOT
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_node_model_tests

FILES = ROOT / ".venv" / "onnx-1.22.0" / "onnx" / "backend" / "test" / "data" / "node"
PREFIXES = ("test_cast_", "test_castlike_")


def save(case, folder: Path) -> Path:
    """The layout of the files in a wheel (docs/spec/onnx.md §7.3)."""
    (data,) = case.data_sets
    (folder / "test_data_set_0").mkdir(parents=True)
    infos = (case.model.graph.input, case.model.graph.output)
    for kind, arrays, values in zip(("input", "output"), data, infos, strict=True):
        for i, array in enumerate(arrays):
            tensor = array if isinstance(array, TensorProto) else numpy_helper.from_array(array, values[i].name)
            (folder / "test_data_set_0" / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    return folder


with np.errstate(all="ignore"):  # making the cases overflows on purpose
    IN_MEMORY = {case.name: case for case in load_node_model_tests() if case.name.startswith(PREFIXES)}
IN_WHEEL = {path.name: path for path in sorted(FILES.glob("test_cast*")) if path.name.startswith(PREFIXES)}


@pytest.mark.parametrize("cases", [IN_MEMORY, IN_WHEEL], ids=["1.23", "1.22.0"])
def test_the_set_is_whole(cases):
    """§7.1: 60 of Cast, 56 of CastLike, 56 expanded."""
    assert cases, f"{FILES} is missing: pip install --no-deps --target .venv/onnx-1.22.0 onnx==1.22.0"
    cast = [name for name in cases if name.startswith("test_cast_")]
    expanded = [name for name in cases if name.endswith("_expanded")]
    assert (len(cast), len(cases) - len(cast) - len(expanded), len(expanded)) == (60, 56, 56)


@pytest.mark.parametrize("name", sorted(IN_MEMORY))
def test_release_1_23(truecast, tmp_path, name):
    run_case(truecast, save(IN_MEMORY[name], tmp_path / "case"), tmp_path / "out")


@pytest.mark.parametrize("name", sorted(IN_WHEEL))
def test_release_1_22(truecast, tmp_path, name):
    run_case(truecast, IN_WHEEL[name], tmp_path / "out")


def run_case(truecast, case: Path, out: Path) -> None:
    graph = onnx.load(case / "model.onnx", load_external_data=False).graph
    data = case / "test_data_set_0"
    inputs = [f"{value.name}={data / f'input_{i}.pb'}" for i, value in enumerate(graph.input)]
    options = [word for given in inputs for word in ("--input", given)]
    report = truecast.json("run", case / "model.onnx", *options, "--output-dir", out, "--output-format", "pb")
    assert report["status"] == "valid"
    for i, value in enumerate(graph.output):
        actual = onnx.load_tensor(out / f"{value.name}.pb")
        expected = onnx.load_tensor(data / f"output_{i}.pb")
        assert list(actual.dims) == list(expected.dims)
        assert actual.data_type == expected.data_type == value.type.tensor_type.elem_type
        assert codes(actual) == codes(expected), f"{case.name}: {value.name}"


def codes(tensor: TensorProto) -> bytes:
    """The elements, bit for bit. The published tensors are raw or empty (§7.2)."""
    assert tensor.raw_data or 0 in tensor.dims
    return tensor.raw_data
