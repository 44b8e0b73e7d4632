"""Counts and error figures of `convert` and `compare` against `naive.py`.

Exact to the last bit, sums included: docs/spec/checkpoints.md §10 fixes the order of every addition. `sqnr_db` alone
may differ by one unit in the last place, because log10 is a library function.
"""

import json
import math

import container
import numpy as np
import pytest
from dtypes import F8, FINITE, INTEGERS, TYPES, to_f64
from naive import Sums, errors, report, sums
from values import inputs, weights

COUNTS = [
    "elements", "exact", "inexact", "saturated", "wrapped", "to_inf", "to_nan", "nan_in", "inf_in", "zero_in",
    "nan_out", "inf_out", "flushed_to_zero", "subnormal", "sign_of_zero_lost", "undefined", "index_max_abs",
    "lossless",
]  # fmt: skip
FIGURES = ["max_abs_error", "max_rel_error", "rmse", "cosine"]


def number(value) -> float:
    """docs/interfaces.md §6: what JSON cannot hold is a string."""
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value, value)


def assert_figures(actual: dict, expected: dict) -> None:
    for name in FIGURES:
        if name in expected:
            got, want = number(actual[name]), expected[name]
            same = got == want or (math.isnan(got) and math.isnan(want))
            assert same, f"{name}: {got!r}, expected {want!r}"
    got, want = number(actual["sqnr_db"]), expected["sqnr_db"]
    near = got == want or abs(got - want) <= math.ulp(want) or (math.isnan(got) and math.isnan(want))
    assert near, f"sqnr_db: {got!r}, expected {want!r}"


def assert_counts(actual: dict, expected: dict, names=COUNTS) -> None:
    found = {name: actual[name] for name in names}
    assert found == {name: expected[name] for name in names}


def convert(truecast, tmp_path, tensors: dict[str, np.ndarray], dst: str, *options):
    """Report rows by name, the total, and the result's tensors."""
    path = container.write_safetensors(
        tmp_path / "in.safetensors", {name: (TYPES["f32"], array) for name, array in tensors.items()}
    )
    out = tmp_path / "out.safetensors"
    said = truecast.convert(path, out, "--to", dst, *options)
    return said, container.read_safetensors(out)[0], path, out


@pytest.mark.parametrize("dst", ["f16", "bf16", "f64", *F8, "f8e8m0", *FINITE])
def test_floats(truecast, tmp_path, dst):
    """Every special value; more than one chunk of sums."""
    source = inputs("f32", dst, n_random=70_000)
    said, results, _, _ = convert(truecast, tmp_path, {"x": source}, dst)
    expected, _ = report(source, results["x"], dst)
    row = said["tensors"][0]
    assert_counts(row, expected)
    assert_figures(row, expected)


@pytest.mark.parametrize("infinite", [False, True], ids=["finite", "with-inf"])
@pytest.mark.parametrize("dst", [name for name in INTEGERS if TYPES[name].bits <= 32])
def test_integers(truecast, tmp_path, dst, infinite):
    source = inputs("f32", dst)
    source = source if infinite else source[~np.isinf(source)]
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    row = truecast.convert(path, out, "--to", dst)["tensors"][0]
    expected, _ = report(source, container.read_npy(out, TYPES[dst])[0], dst)
    assert_counts(row, expected)
    assert_figures(row, expected)


@pytest.mark.parametrize("src", ["f16", "bf16", "f64"])
@pytest.mark.parametrize("dst", ["f32", "f8e4m3fn", "i8"])
def test_other_sources(truecast, tmp_path, src, dst):
    source = inputs(src, dst)
    source = source[np.isfinite(to_f64(source))] if dst == "i8" else source
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    row = truecast.convert(path, out, "--to", dst)["tensors"][0]
    expected, _ = report(source, container.read_npy(out, TYPES[dst])[0], dst)
    assert_counts(row, expected)
    assert_figures(row, expected)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(np.zeros(0, dtype=np.float32), id="empty"),
        pytest.param(np.full(5, np.nan, dtype=np.float32), id="all-nan"),
        pytest.param(np.zeros(4, dtype=np.float32), id="all-zero"),
        pytest.param(np.full(3, -0.0, dtype=np.float32), id="negative-zero"),
        pytest.param(np.array([1e-45], dtype=np.float32), id="one-subnormal"),
    ],
)
@pytest.mark.parametrize("dst", ["f16", "f8e4m3fnuz"])
def test_degenerate(truecast, tmp_path, source, dst):
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    row = truecast.convert(path, out, "--to", dst)["tensors"][0]
    expected, _ = report(source, container.read_npy(out, TYPES[dst])[0], dst)
    assert_counts(row, expected)
    assert_figures(row, expected)


def test_no_signal_but_noise(truecast, tmp_path):
    """sqnr_db is "-Infinity"; only `compare` can get there."""
    zeros = container.write_npy(tmp_path / "a.npy", np.zeros(3, dtype="f4"))
    ones = container.write_npy(tmp_path / "b.npy", np.ones(3, dtype="f4"))
    row = truecast.json("compare", zeros, ones)["tensors"][0]
    assert row["sqnr_db"] == "-Infinity" and row["rmse"] == 1.0 and row["max_abs_error"] == 1.0
    assert row["max_rel_error"] == 0.0


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [15, 16, 17, 65_535, 65_536, 65_537, 65_552, 300_001])
def test_order_of_sums(truecast, tmp_path, n, threads):
    """Around the ends of lanes and chunks; the result does not depend on the number of threads."""
    source = weights(n)
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    row = truecast.json("convert", path, out, "--to", "bf16", "--threads", threads)["tensors"][0]
    expected, _ = report(source, container.read_npy(out, TYPES["bf16"])[0], "bf16")
    assert_figures(row, expected)


def expected_total(before: dict, after: dict, names: list[str]) -> dict:
    """§10: maxima of the rows, figures of the summed sums of inexact tensors, added in the order of the rows."""
    total, rows = Sums(), []
    for name in names:
        x, y = to_f64(before[name]).reshape(-1), to_f64(after[name]).reshape(-1)
        found = sums(x, y)
        if found.noise > 0:
            total.add(found)
        rows.append(errors(x, y))
    return total.figures() | {k: max(row[k] for row in rows) for k in ("max_abs_error", "max_rel_error")}


@pytest.mark.parametrize("dst", ["f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e8m0", "f4e2m1", "i8"])
def test_sample_and_totals(truecast, sample, tmp_path, dst):
    out, report_file = tmp_path / "out.safetensors", tmp_path / "report.json"
    said = truecast.json("convert", sample, out, "--to", dst, "--report", report_file)
    truecast("verify", sample, out, "--to", dst)
    assert said == json.loads(report_file.read_text())
    before, after = container.read_safetensors(sample)[0], container.read_safetensors(out)[0]
    assert [row["name"] for row in said["tensors"]] == list(before)
    added = dict.fromkeys(n for n in COUNTS if n not in ("index_max_abs", "lossless"))
    for row in said["tensors"]:
        name = row["name"]
        to = "i64" if before[name].dtype == np.int64 else dst
        expected, _ = report(before[name], after[name], to)
        if to == "i64":
            expected |= {"saturated": 0, "wrapped": 0, "undefined": 0}
        assert_counts(row, expected)
        assert_figures(row, expected)
        assert (row["shape"], row["to"]) == (list(before[name].shape), to)
        assert row["bytes_in"] == before[name].nbytes
        assert row["bytes_out"] == before[name].size * TYPES[to].bits // 8
        for count in added:
            added[count] = (added[count] or 0) + expected[count]
    assert {count: said["total"][count] for count in added} == added
    converted = [name for name in before if before[name].dtype != np.int64]
    integers = [name for name in before if before[name].dtype == np.int64]
    assert_figures(said["total"]["converted"], expected_total(before, after, converted))
    assert_figures(said["total"]["integers"], expected_total(before, after, integers))
    assert not set(FIGURES) & set(said["total"]), "errors of weights and integers are not mixed"

    compared = truecast.json("compare", sample, out)
    assert not compared["only_first"] and not compared["only_second"] and not compared["incomparable"]
    assert [row["name"] for row in compared["tensors"]] == list(before)
    for row in compared["tensors"]:
        name = row["name"]
        assert_figures(row, report(before[name], after[name], "i64" if name.endswith("ids") else dst)[0])
    assert_totals_agree(said["total"], compared["total"])


GROUPS = ["converted", "kept", "integers"]


def assert_totals_agree(converted: dict, compared: dict) -> None:
    """docs/interfaces.md §6: one definition of what totals cover; `compare` knows less, and nothing else."""
    for name, value in compared.items():
        if name in GROUPS:
            assert value.items() <= converted[name].items(), name
        else:
            assert converted[name] == value, name
    assert {"saturated", "wrapped", "undefined"} == set(converted) - set(compared)


def in_f64(before: dict, after: dict, names: list[str]) -> dict:
    """The figures as anyone would compute them with NumPy, without a word about the order of sums."""
    x = np.concatenate([to_f64(before[name]).reshape(-1) for name in names])
    y = np.concatenate([to_f64(after[name]).reshape(-1) for name in names])
    e, nonzero = y - x, x != 0
    return {
        "max_abs_error": np.abs(e).max(),
        "max_rel_error": (np.abs(e[nonzero]) / np.abs(x[nonzero])).max(initial=0.0),
        "rmse": np.sqrt((e * e).mean()),
        "sqnr_db": 10 * np.log10((x * x).sum() / (e * e).sum()) if e.any() else math.inf,
        "cosine": (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()),
    }


@pytest.mark.parametrize("dst", ["f8e4m3fn", "bf16"])
def test_totals_are_those_of_numpy(truecast, sample, tmp_path, dst):
    """Some tensors kept, integers among them: every group is what NumPy says, in `convert` and `compare` alike."""
    out = tmp_path / "out.safetensors"
    said = truecast.json("convert", sample, out, "--to", dst, "--keep", "*LayerNorm*")["total"]
    compared = truecast.json("compare", sample, out)["total"]
    assert_totals_agree(said, compared)
    before, after = container.read_safetensors(sample)[0], container.read_safetensors(out)[0]
    is_integer = {name: array.dtype == np.int64 for name, array in before.items()}
    names = {
        "converted": [name for name in before if not is_integer[name] and "LayerNorm" not in name],
        "kept": [name for name in before if "LayerNorm" in name],
        "integers": [name for name in before if is_integer[name]],
    }
    for group in GROUPS:
        assert names[group], "the sample has tensors of each group"
        for total in (said[group], compared[group]):
            assert total["tensors"] == len(names[group])
            assert total["elements"] == sum(before[name].size for name in names[group])
            assert total["bytes_in"] == sum(before[name].nbytes for name in names[group])
            assert total["bytes_out"] == sum(after[name].nbytes for name in names[group])
            assert total["left_out"] == 0
            for figure, value in in_f64(before, after, names[group]).items():
                # NumPy adds in another order than docs/spec/checkpoints.md §10 demands.
                got = number(total[figure])
                assert got == value or abs(got / value - 1) < 1e-9, (group, figure, got, value)
    assert said["tensors"] == len(before)
    assert said["exact"] == sum(said[group]["exact"] for group in GROUPS)


def test_totals_of_a_model_agree(truecast, tmp_path):
    """Values of a model count under their own names, whatever they are stored as."""
    from onnx import TensorProto, helper, numpy_helper, save

    weight, ids = weights(4096).reshape(64, 64), np.arange(2048)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Gather", ["y", "ids"], ["z"])]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(ids, "ids")],
    )  # fmt: skip
    path, out = tmp_path / "a.onnx", tmp_path / "b.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    said = truecast.json("convert", path, out, "--to", "f8e4m3fn")["total"]
    assert_totals_agree(said, truecast.json("compare", path, out)["total"])
    assert (said["converted"]["elements"], said["integers"]["elements"]) == (4096, 2048)


def test_left_out_of_measures(truecast, tmp_path):
    """Pairs with an Inf or NaN are in no measure: how many is said, and what became so is named."""
    source = np.array([1e6, -3e38, np.nan, np.inf, 1.0001, 2.0], dtype="f4")
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    rows = [truecast.convert(path, out, "--to", "f16")["tensors"][0], truecast.json("compare", path, out)["tensors"][0]]
    for row in rows:
        assert (row["left_out"], row["to_inf"], row["to_nan"], row["nan_in"], row["inf_in"]) == (4, 2, 0, 1, 1)
        x, y = to_f64(source), to_f64(np.array([np.inf, -np.inf, np.nan, np.inf, 1.0001, 2.0], dtype="f2"))
        assert_figures(row, errors(x, y) | sums(x, y).figures())


PAIRS = [("f16", "bf16"), ("f8e4m3fn", "f8e5m2"), ("i8", "f32"), ("f64", "f8e4m3fnuz")]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_compare_across_types(truecast, tmp_path, pair):
    """Two unrelated arrays."""
    a, b = inputs(pair[0], "f16"), inputs(pair[1], "f16")
    n = min(len(a), len(b))
    a, b = a[:n], np.random.default_rng(9).permutation(b)[:n]
    paths = [container.write_npy(tmp_path / f"{i}.npy", array) for i, array in enumerate([a, b])]
    row = truecast.json("compare", *paths, "--from", pair[0], "--to", pair[1])["tensors"][0]
    x, y = to_f64(a), to_f64(b)
    assert_figures(row, errors(x, y) | sums(x, y).figures())
    assert row["index_max_abs"] == errors(x, y)["index_max_abs"]


def test_fail_on(truecast, tmp_path):
    """docs/interfaces.md §3 and §5: exit code 1 above the limit, and the output is kept."""
    source = np.array([1.0, 1e9, -1e9, 1e-9, np.inf], dtype=np.float32)
    path = container.write_npy(tmp_path / "in.npy", source)
    cases = [
        ("to_inf", "f16", 1), ("to_inf=2", "f16", 0), ("flushed_to_zero", "f16", 1), ("left_out=2", "f16", 1),
        ("inf", "f16", 1), ("inf=1", "f16", 1), ("inf=2", "f16", 0), ("flushed", "f16", 1), ("flushed=1", "f16", 0),
        ("saturated=2", "f8e4m3fn", 1), ("saturated=3", "f8e4m3fn", 0), ("nan", "f8e4m3fn", 0), ("inexact", "f64", 0),
    ]  # fmt: skip
    for i, (what, dst, code) in enumerate(cases):
        out = tmp_path / f"{i}.npy"
        truecast("convert", path, out, "--to", dst, "--fail-on", what, code=code)
        assert out.exists()


def powers(array: np.ndarray) -> dict:
    """Values by power of two, from NumPy's exponents."""
    values = to_f64(array)
    finite = np.abs(values[np.isfinite(values) & (values != 0)])
    exponents = np.frexp(finite)[1] - 1
    first = int(exponents.min()) if exponents.size else 0
    return {
        "first": first,
        "counts": np.bincount(exponents - first).tolist() if exponents.size else [],
        **{name: int(is_such.sum()) for name, is_such in (("zero", values == 0), ("nan", np.isnan(values)), ("inf", np.isinf(values)))},
    }


def counted(truecast, folder, arrays: dict[str, np.ndarray], *options):
    """The report with magnitudes, and the two files."""
    tensors = {name: (TYPES["f32"], array) for name, array in arrays.items()}
    path, out = container.write_safetensors(folder / "in.safetensors", tensors), folder / "out.safetensors"
    return truecast.json("convert", path, out, "--magnitudes", "--force", *options), path, out


@pytest.mark.parametrize("dst", ["f16", "bf16", "f8e4m3fn", "f8e5m2"])
def test_magnitudes(truecast, tmp_path, dst):
    """Every special value, subnormals of both types, a kept tensor, several blocks."""
    arrays = {"x": inputs("f32", dst, n_random=70_000), "w": weights(200_000), "one": np.float32([1.5])}
    said, path, out = counted(truecast, tmp_path, arrays, "--to", dst, "--keep", "one", "--measure", "full")
    compared = truecast.json("compare", path, out, "--magnitudes")
    results = container.read_safetensors(out)[0]
    for report in (said, compared):
        rows = {row["name"]: row["magnitudes"] for row in report["tensors"]}
        for name, array in arrays.items():
            assert rows[name] == {"from": powers(array), "to": powers(to_f64(results[name]))}, name


def test_magnitudes_of_a_sample(truecast, tmp_path):
    """Of a large tensor, some blocks of 65,536 elements are counted; with `--measure full`, all."""
    array = np.full(1 << 20, 1.5, np.float32)
    for measure, some in (("sample", 1 << 18), ("full", 1 << 20)):
        said, *_ = counted(truecast, tmp_path, {"x": array}, "--to", "bf16", "--measure", measure)
        assert said["tensors"][0]["magnitudes"]["from"] == {"first": 0, "counts": [some], "zero": 0, "nan": 0, "inf": 0}
