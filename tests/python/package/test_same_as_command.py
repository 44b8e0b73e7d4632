"""`differ`, `schemes`, `show`, `vectors` and `promote_types` answer as the command does, which is another program here."""

import itertools
import json
from typing import get_args

import ml_dtypes
import numpy as np
import pytest
import truecast as tc
from truecast import _ask, typing

SYSTEMS = get_args(typing.System)


def answered(truecast, *args, code=0):
    """The command's object, without the names of program and command."""
    found = truecast.json(*args, code=code)
    return {name: value for name, value in found.items() if name not in ("truecast", "command")}


@pytest.mark.parametrize("names", [("onnx", "tosa"), ("torch@2.15", "onnx:saturate=false"), ()])
@pytest.mark.parametrize("pair", [("f16", "f8e4m3fn"), ("f16", "i8")])
def test_differ(truecast, names, pair):
    found = tc.differ(*names, from_=pair[0], to=pair[1])
    assert found.to_dict() == answered(truecast, "differ", *names, "--from", pair[0], "--to", pair[1])
    assert len(found["pairs"]) == 1 and repr(found) and "--" not in repr(found)


def test_differ_knows_what_saturates():
    """Above 464 the cast of ONNX gives 448 and that of TOSA NaN, as do infinities (docs/spec/onnx.md, tosa.md)."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    (pair,) = tc.differ("onnx", "tosa", from_=np.float16, to=ml_dtypes.float8_e4m3fn)["pairs"]
    assert (pair["inputs"], pair["different"]) == (x.size, np.count_nonzero(np.abs(x) > 464))
    (same,) = tc.differ("onnx", "onnx@28", from_="f16", to="f8e4m3fn")["pairs"]
    assert (same["different"], same["ranges"]) == (0, [])


def test_differ_compares_boundary_values_of_wide_types():
    found = tc.differ("onnx", "numpy", from_="f64", to="f16")
    assert not found["pairs"][0]["every_input"] and "boundary inputs" in repr(found) and "--" not in repr(found)


def test_differ_refuses():
    with pytest.raises(tc.UsageError, match="did you mean onnx"):
        tc.differ("onxn", "tosa", from_="f16", to="f8e4m3fn")
    with pytest.raises(tc.InputError, match="docs/spec/tosa.md"):
        tc.differ("onnx", "tosa", from_="f64", to="f8e4m3fn")
    with pytest.raises(TypeError, match="to"):
        tc.differ("onnx", "tosa", from_="f16")


def test_schemes(truecast):
    assert tc.schemes().to_dict() == answered(truecast, "schemes")
    for name in ("fp8-block", "mxfp4", "awq"):
        assert tc.schemes(name).to_dict() == answered(truecast, "schemes", name)
    assert "--" not in repr(tc.schemes()) and tc.schemes()["goals"][-1]["loads_in"] == "llama.cpp"
    assert "llama.cpp" in repr(tc.schemes()) and "parameters" in repr(tc.schemes("awq"))
    with pytest.raises(tc.UsageError, match="fp8-block"):
        tc.schemes("fp8-blok")


@pytest.mark.parametrize("part", ["", "[1]", "[::2, -1]", "[0, 0]"])
def test_show(truecast, tmp_path, part):
    x = np.array([[1, np.nan, -0.5], [np.inf, 0.1, 3]], np.float32)
    np.save(tmp_path / "x.npy", x)
    found = tc.show(tmp_path / "x.npy", part)
    assert found.to_dict() == answered(truecast, "show", tmp_path / "x.npy", part)
    expected = eval(f"x{part}" if part else "x")  # NumPy's slices
    assert (found["shape"], found["shown"]) == ([2, 3], list(expected.shape))
    values = np.array(found["values"], dtype=object).astype(np.float64)
    np.testing.assert_array_equal(values.astype(np.float32), expected)
    assert repr(found).startswith("data f32")


def test_show_reads_no_values_that_are_not_asked_for(tmp_path, monkeypatch):
    """The text of a large tensor omits its middle, and the nested lists are made when they are used."""
    np.save(tmp_path / "x.npy", np.zeros((1000, 1000), np.float16))
    asked = []
    data = _ask.data
    monkeypatch.setattr(_ask, "data", lambda *args: asked.append(args) or data(*args))
    found = tc.show(tmp_path / "x.npy")
    assert "..." in repr(found) and not asked
    assert len(found["values"]) == 1000 and found["shape"] == [1000, 1000] and len(asked) == 1


def test_show_of_checkpoints(sample):
    with pytest.raises(tc.UsageError, match="inspect"):
        tc.show(sample)
    name = tc.inspect(sample)["tensors"][0]["name"]
    values = tc.show(sample, f"{name}[:2]")
    np.testing.assert_array_equal(np.float32(values["values"]), tc.load(sample, name, "f32")[:2])
    with pytest.raises(tc.UsageError, match="does not exist"):
        tc.show(sample, "no.such.tensor")
    with pytest.raises(tc.MissingFileError):
        tc.show("missing.npy")


@pytest.mark.parametrize(
    "pair, options",
    [
        (("f32", "f8e4m3fn"), {}),
        (("f16", "i8"), {"spec": "tosa", "level": "exhaustive"}),
        (("f32", "i8"), {"spec": "ieee", "overflow": "error", "int_overflow": "error"}),
        (("f32", "bf16"), {"seed": 7}),
        (("f16", "i48"), {"spec": "ieee"}),
        (("i48", "f16"), {"spec": "ieee"}),
        (("f32", "f8e8m0"), {"spec": "onnx", "round_mode": "down"}),
        (("f8e5m2", "f16"), {"spec": "tile@13.4"}),
    ],
)
def test_vectors(truecast, pair, options):
    found = tc.vectors(*pair, layout="codes", **options)
    words = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), value)]
    said = answered(truecast, "vectors", "cast", "--from", pair[0], "--to", pair[1], *words)
    assert (said["spec"], said["from"], said["to"], said["clause"]) == (found.spec, found.from_, found.to, found.clause)
    rows = said["vectors"]
    widths = [tc.finfo(dtype).bits for dtype in pair]
    codes = [(array.astype(np.uint64) & np.uint64((1 << bits) - 1)).tolist() for array, bits in zip((found.input, found.output), widths)]
    assert codes[0] == [int(row["input"], 16) for row in rows]
    assert [None if refused else code for code, refused in zip(codes[1], found.refused)] == [
        row["output"] and int(row["output"], 16) for row in rows
    ]
    assert found.undefined.tolist() == ["undefined" in row for row in rows] and len(found) == len(rows)
    for index, (reason, accepted) in found.open.items():
        theirs = rows[index]["accepted"]
        assert reason == rows[index]["undefined"]
        assert accepted == (None if theirs == "any" else [int(code, 16) for code in theirs])
    assert set(found.open) == set(np.flatnonzero(found.undefined))
    random = [int(row["random"], 16) for row in rows if "random" in row]
    assert (found.random is None and not random) or found.random.tolist() == random


def test_vectors_in_types_of_their_own():
    found = tc.vectors("f32", "f8e4m3fn")
    assert (found.input.dtype, found.output.dtype) == (np.float32, ml_dtypes.float8_e4m3fn)
    assert found.undefined.dtype == found.refused.dtype == np.bool_
    assert tc.check(found.input, found.output, exact_nan=True)
    # Independent of truecast: ml_dtypes rounds once from f32, and differs only in what does not saturate.
    with np.errstate(all="ignore"):
        theirs = found.input.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    finite = np.abs(found.input) <= 448
    np.testing.assert_array_equal(found.output.astype(np.float32)[finite], theirs[finite])
    for x in (448, 464, np.nextafter(np.float32(464), np.float32(500)), np.inf):
        assert (found.input == x).any()


def test_vectors_round_by_random_bits():
    """The seed of a cast of the same array draws the same bits."""
    found = tc.vectors("f32", "bf16", seed=3)
    cast = tc.cast(found.input, "bf16", seed=3)
    assert cast.tobytes() == found.output.tobytes() and found.random.dtype == np.uint32
    assert found.spec.endswith(" seed=3")


def test_vectors_refuse():
    for wrong, match in [
        (lambda: tc.vectors("f32", "f16", level="all"), "boundary"),
        (lambda: tc.vectors("f32", "f16", level="exhaustive"), "16 bits"),
        (lambda: tc.vectors("string", "f16"), "no codes"),
        (lambda: tc.vectors("f32", "f16", layout="packed"), "not packed"),
        (lambda: tc.vectors("f32", "f16", seed=1, spec="ieee", rounding="up"), "stochastically"),
    ]:
        with pytest.raises(tc.UsageError, match=match):
            wrong()
    with pytest.raises(tc.DTypeError, match='layout="codes"'):
        tc.vectors("f32", "nf4", spec="openvino")
    with pytest.raises(tc.SpecError, match="docs/spec/tosa.md"):
        tc.vectors("f64", "f8e4m3fn", spec="tosa")
    with pytest.raises(tc.SpecError, match="bool"):
        tc.vectors("f32", "bool", seed=1)


TYPES = ["bool", "u8", "i8", "i32", "u64", "f16", "bf16", "f32", "f8e4m3fn", "py:int", "py:float"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_promote_types(truecast, system):
    for a, b in itertools.combinations(TYPES, 2):
        done = truecast.run("promote", a, b, "--system", system, "--json")
        if done.returncode == 0:
            assert tc.promote_types(a, b, system=system) == json.loads(done.stdout)["dtype"]
        else:
            with pytest.raises(tc.TruecastError) as found:
                tc.promote_types(a, b, system=system)
            assert found.value.code == json.loads(done.stderr)["code"]


def test_promotion_has_no_default_system():
    with pytest.raises(TypeError, match="system"):
        tc.promote_types("i8", "f32")
