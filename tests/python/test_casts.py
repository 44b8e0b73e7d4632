"""`convert` against NumPy and ml_dtypes, bit for bit, over every kind of value, through safetensors and .npy.

f64 sources only where the peer rounds once (docs/style.md §15: NumPy to f16 and f32; ml_dtypes goes through f32).
The onnx reference evaluator has its own file. NaN: see `dtypes.assert_same`.
"""

import container
import numpy as np
import pytest
from dtypes import F8, FINITE, IEEE_ONLY, INTEGERS, TYPES, assert_same, bounds, to_f64
from values import inputs, random_bits, weights

NARROW = ["f32", "f16", "bf16"]
UNSATURATED = ("--saturate", "false")


def peer(array: np.ndarray, to: str) -> np.ndarray:
    """The cast of NumPy, or of ml_dtypes inside NumPy."""
    with np.errstate(all="ignore"):
        return array.astype(TYPES[to].numpy)


def through_safetensors(truecast, tmp_path, source, src, dst, *options) -> np.ndarray:
    path = container.write_safetensors(tmp_path / "in.safetensors", {"x": (TYPES[src], source)})
    out = tmp_path / "out.safetensors"
    truecast.convert(path, out, "--to", dst, *options)
    return container.read_safetensors(out)[0]["x"]


def through_npy(truecast, tmp_path, source, src, dst, *options) -> np.ndarray:
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    reinterpret = () if src in ("f32", "f16", "bf16", "f64", "f8e5m2") else ("--from", src)
    truecast.convert(path, out, "--to", dst, *reinterpret, *options)
    return container.read_npy(out, TYPES[dst])[0]


def through_npy_array(truecast, tmp_path, source, dst, *options) -> np.ndarray:
    """For sources that NumPy's header describes."""
    path, out = container.write_npy(tmp_path / "in.npy", source), tmp_path / "out.npy"
    truecast.convert(path, out, "--to", dst, *options)
    return container.read_npy(out, TYPES[dst])[0]


THROUGH = {"safetensors": through_safetensors, "npy": through_npy}


@pytest.mark.parametrize("via", THROUGH)
@pytest.mark.parametrize("dst", ["f16", "bf16"])
@pytest.mark.parametrize("src", NARROW)
def test_half_types(truecast, tmp_path, src, dst, via):
    source = inputs(src, dst)
    result = THROUGH[via](truecast, tmp_path, source, src, dst)
    assert_same(result, peer(source, dst), TYPES[dst], source)


@pytest.mark.parametrize("dst", ["f16", "f32"])
def test_double_to_narrower(truecast, tmp_path, dst):
    source = inputs("f64", dst)
    result = through_safetensors(truecast, tmp_path, source, "f64", dst)
    assert_same(result, peer(source, dst), TYPES[dst], source)


def round_to_odd_f32(x: np.ndarray) -> np.ndarray:
    """f64 to f32, inexact values to the neighbor with an odd code. A second rounding to a type with at least two bits
    fewer then gives what one rounding of the f64 would, which makes f32 peers usable for f64."""
    with np.errstate(all="ignore"):
        nearest = x.astype(np.float32)
        too_large = np.abs(nearest.astype(np.float64)) > np.abs(x)
        toward_zero = np.where(too_large, np.nextafter(nearest, np.float32(0)), nearest)
    inexact = (toward_zero.astype(np.float64) != x) & np.isfinite(x)
    return (toward_zero.view(np.uint32) | inexact.astype(np.uint32)).view(np.float32)


@pytest.mark.parametrize("dst", ["bf16", *F8, *FINITE])
def test_double_is_rounded_once(truecast, tmp_path, dst):
    """ml_dtypes takes f64 through f32 and rounds twice (docs/style.md §15); here f32 is reached by rounding to odd."""
    source = inputs("f64", dst)
    finite_or_infinite = source[~np.isnan(source)]
    source = finite_or_infinite[: len(finite_or_infinite) // 4 * 4]
    result = through_safetensors(truecast, tmp_path, source, "f64", dst, *(UNSATURATED if dst in F8 else ()))
    assert_same(result, peer(round_to_odd_f32(source), dst), TYPES[dst], source)


@pytest.mark.parametrize(
    "src, value, dst, code, options",
    [
        ("f64", 0.0009765625000000002, "f8e4m3fn", 0x01, ()),
        ("f64", 464.00000000000006, "f8e4m3fn", 0x7F, UNSATURATED),
        ("f64", 65519.99999999999, "f16", 0x7BFF, ()),
        ("f64", 2.0**-25 * (1 + 2.0**-52), "f16", 0x0001, ()),
        ("f64", 1.0625 + 2.0**-30, "f8e4m3fn", 0x39, ()),
        ("i32", 16842753, "bf16", 0x4B81, ()),
        ("i64", 2**40 + 2**32 + 1, "bf16", 0x5381, ()),
        ("i64", 65519, "f16", 0x7BFF, ()),
        ("i64", 65520, "f16", 0x7C00, ()),
    ],
)
def test_double_rounding_witnesses(truecast, tmp_path, src, value, dst, code, options):
    """Values for which engines round twice: docs/spec/onnx.md §4.3, §5 row 11 and docs/style.md §15.1."""
    source = np.array([value], dtype=TYPES[src].numpy)
    result = through_npy_array(truecast, tmp_path, source, dst, *options)
    assert TYPES[dst].codes(result).tolist() == [code]


@pytest.mark.parametrize("dst", F8)
@pytest.mark.parametrize("src", NARROW)
def test_float8_unsaturated(truecast, tmp_path, src, dst):
    """docs/spec/onnx.md §9: ONNX with saturate = 0 equals ml_dtypes for the four float8 types."""
    source = inputs(src, dst)
    result = through_safetensors(truecast, tmp_path, source, src, dst, *UNSATURATED)
    assert_same(result, peer(source, dst), TYPES[dst], source)


@pytest.mark.parametrize("dst", F8)
@pytest.mark.parametrize("src", NARROW)
def test_float8_saturated_is_clamped_then_unsaturated(truecast, tmp_path, src, dst):
    """docs/style.md §15.3; Inf becomes the maximum too (docs/spec/onnx.md §4.6)."""
    source = inputs(src, dst)
    codes = TYPES[dst].from_codes(np.arange(256))
    values = to_f64(codes)
    limit = values[np.isfinite(values)].max()
    with np.errstate(invalid="ignore"):
        clamped = np.clip(source.astype(np.float32), np.float32(-limit), np.float32(limit))
    result = through_safetensors(truecast, tmp_path, source, src, dst)
    assert_same(result, peer(clamped, dst), TYPES[dst], source)


@pytest.mark.parametrize("via", THROUGH)
@pytest.mark.parametrize("dst", FINITE)
@pytest.mark.parametrize("src", NARROW)
def test_finite_types(truecast, tmp_path, src, dst, via):
    """Both clamp, NaN becomes a zero of the other sign (docs/spec/onnx.md §4.8, §9)."""
    source = inputs(src, dst)
    result = THROUGH[via](truecast, tmp_path, source, src, dst)
    assert_same(result, peer(source, dst), TYPES[dst], source)


@pytest.mark.parametrize("src", NARROW)
def test_e8m0_where_the_rules_agree(truecast, tmp_path, src):
    """docs/spec/onnx.md §9: ml_dtypes rounds to nearest, ties up, and gives FF to zero, negative values and Inf, as
    ONNX does with saturate = 0. Left out, because the rules differ there:

    - 0 < x < 1.5 * 2^-127: below 2^-127 ONNX has FF, and just above it ml_dtypes rounds to 01 (§5 rows 9, 10);
    - 2^127 < x < 1.5 * 2^127: ONNX tests the range on x, ml_dtypes on the rounded value (§5 row 19).
    """
    source = inputs(src, "f8e8m0")
    x = to_f64(source)
    low, high = 2.0**-127, 2.0**127
    differs = ((x > 0) & (x < 1.5 * low)) | ((x > high) & (x < 1.5 * high))
    source = source[~differs]
    source = source[: len(source) // 4 * 4]
    result = through_safetensors(truecast, tmp_path, source, src, "f8e8m0", *UNSATURATED, "--round-mode", "nearest")
    assert_same(result, peer(source, "f8e8m0"), TYPES["f8e8m0"], source)


@pytest.mark.parametrize("dst", IEEE_ONLY)
@pytest.mark.parametrize("src", NARROW)
def test_types_outside_onnx(truecast, tmp_path, src, dst):
    """`--spec ieee`: nearest even, overflow to Inf or NaN, which is the rule of ml_dtypes."""
    source = inputs(src, dst)
    result = through_npy(truecast, tmp_path, source, src, dst, "--spec", "ieee")
    assert_same(result, peer(source, dst), TYPES[dst], source)


WIDENING = [(s, d) for s in [*F8, *FINITE, "f8e8m0", *IEEE_ONLY, "f16", "bf16"] for d in ("f32", "f64")]


@pytest.mark.parametrize("src, dst", [*WIDENING, ("f32", "f64")])
def test_widening(truecast, tmp_path, src, dst):
    """Exact from every type: all codes of the types of 16 bits or fewer."""
    source = inputs(src, dst)
    options = ("--spec", "ieee") if src in IEEE_ONLY else ()
    result = through_npy(truecast, tmp_path, source, src, dst, *options)
    # FNUZ NaN is negative (docs/spec/onnx.md §4.3).
    expected = peer(source.astype(np.float32), dst)
    assert_same(result, expected, TYPES[dst], source)


@pytest.mark.parametrize("name", [*F8, *FINITE, "f8e8m0", "f16", "bf16", "f32", "f64"])
def test_same_type_is_a_copy(truecast, tmp_path, name):
    """docs/spec/onnx.md §4.10: NaN payloads included. Not so E5M2 with saturate = 1, hence `--saturate false`."""
    source = inputs(name, name)
    result = through_npy(truecast, tmp_path, source, name, name, *(UNSATURATED if name == "f8e5m2" else ()))
    assert (TYPES[name].codes(result) == TYPES[name].codes(source)).all()


def test_e5m2_to_itself_saturates(truecast, tmp_path):
    """docs/spec/onnx.md §4.10: 7C to 7B, FC to FB, NaN to 7E and FE."""
    source = inputs("f8e5m2", "f8e5m2")
    result = TYPES["f8e5m2"].codes(through_npy(truecast, tmp_path, source, "f8e5m2", "f8e5m2"))
    expected = np.arange(256)
    expected[[0x7C, 0xFC]] = [0x7B, 0xFB]
    expected[[0x7D, 0x7F, 0xFD, 0xFF]] = [0x7E, 0x7E, 0xFE, 0xFE]
    assert (result == expected).all()


@pytest.mark.parametrize("dst", [name for name in INTEGERS if TYPES[name].bits >= 8])
@pytest.mark.parametrize("src", ["f32", "f64", "bf16"])
def test_float_to_integer_in_range(truecast, tmp_path, src, dst):
    """Toward zero. Out of range, NumPy's result depends on the position in the array (docs/style.md §15): left out."""
    source = inputs(src, dst)
    low, high = bounds(TYPES[dst])
    with np.errstate(invalid="ignore"):
        t = np.trunc(to_f64(source))
    source = source[np.isfinite(t) & (t >= float(low)) & (t < float(high + 1))]
    result = through_npy(truecast, tmp_path, source, src, dst)
    expected = to_f64(source).astype(TYPES[dst].numpy)
    assert_same(result, expected, TYPES[dst], source)


@pytest.mark.parametrize("dst", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
@pytest.mark.parametrize("src", ["i8", "u16", "i32", "u32", "i64", "u64"])
def test_integer_to_integer_wraps(truecast, tmp_path, src, dst):
    t = TYPES[src]
    source = np.concatenate([random_bits(t, 4096), np.array(bounds(t), dtype=t.numpy)])
    result = through_npy_array(truecast, tmp_path, source, dst)
    assert_same(result, source.astype(TYPES[dst].numpy), TYPES[dst], source)


@pytest.mark.parametrize("dst", ["f32", "f64"])
@pytest.mark.parametrize("src", ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_integer_to_float(truecast, tmp_path, src, dst):
    """The machine's own conversions round once. (To f16 and bf16 the peers go through f32.)"""
    t = TYPES[src]
    if src == "bool":
        source = np.array([True, False, True])
    else:
        # All magnitudes, and around the first integers that f32 and f64 do not hold.
        wide = random_bits(t, 4096)
        shifted = wide >> np.random.default_rng(3).integers(0, t.bits, len(wide)).astype(t.numpy)
        near = [v for p in (24, 53) for v in range(2**p - 3, 2**p + 4) if v <= bounds(t)[1]]
        source = np.concatenate([wide, shifted, np.array([*bounds(t), *near], dtype=t.numpy)])
    result = through_npy_array(truecast, tmp_path, source, dst)
    assert_same(result, source.astype(TYPES[dst].numpy), TYPES[dst], source)


def test_float_to_bool(truecast, tmp_path):
    """NaN, Inf and subnormals are true, both zeros are false (docs/spec/onnx.md §4.4)."""
    source = inputs("f32", "f16")
    result = through_npy_array(truecast, tmp_path, source, "bool")
    assert (result == peer(source, "bool")).all()


@pytest.mark.parametrize("dst", ["f16", "bf16", "f8e4m3fn", "f4e2m1", "f6e3m2", "i8"])
def test_threads_and_memory_change_nothing(truecast, tmp_path, dst):
    """More elements than one buffer holds, an odd number of them, and every cut of the work gives the same file."""
    n = 3_000_004 - (1 if TYPES[dst].bits >= 8 else 0)
    source = weights(n)
    path = container.write_safetensors(tmp_path / "in.safetensors", {"x": (TYPES["f32"], source)})
    results = []
    for i, options in enumerate([("--threads", 1), ("--threads", 3, "--max-memory", "4MiB"), ("--threads", 2)]):
        out = tmp_path / f"out{i}.safetensors"
        truecast("convert", path, out, "--to", dst, *options)
        results.append(out.read_bytes())
    assert results[0] == results[1] == results[2]
    if TYPES[dst].is_float:
        assert_same(container.read_safetensors(out)[0]["x"], peer(source, dst), TYPES[dst], source)


@pytest.mark.parametrize("dst", [*F8, *FINITE, "f16", "bf16"])
def test_sample(truecast, sample, tmp_path, dst):
    """Real weights; no value of the sample overflows, so saturation plays no part."""
    out = tmp_path / "out.safetensors"
    truecast.convert(sample, out, "--to", dst)
    before, after = container.read_safetensors(sample)[0], container.read_safetensors(out)[0]
    assert list(before) == list(after)
    for name, tensor in before.items():
        if tensor.dtype == np.int64:
            assert (after[name] == tensor).all() and after[name].dtype == np.int64
        else:
            assert_same(after[name], peer(tensor, dst), TYPES[dst], tensor)
