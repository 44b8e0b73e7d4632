"""Scaled tensors in memory. Expectations are arithmetic of NumPy and ml_dtypes, written from docs/spec/checkpoints.md."""

import ml_dtypes
import numpy as np
import pytest
import truecast as tc

F8, F4, E8M0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu
F32 = np.float32


def weights(*shape, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * np.exp2(rng.integers(-6, 3, (*shape[:-1], 1)))
    return x.astype(F32)


def blocks(x, n):
    """The elements of each group of n in a row, and the largest magnitude of each."""
    groups = x.reshape(*x.shape[:-1], -1, n)
    return groups, np.abs(groups).max(axis=-1)


def saturated(x, dtype):
    limit = F32(ml_dtypes.finfo(dtype).max)
    return np.clip(x, -limit, limit).astype(dtype)


def pairs(codes):
    """Codes of four bits as bytes, the first in the low ones."""
    return codes[..., ::2] | codes[..., 1::2] << 4


def mx_exponents(amax, largest):
    """Rule `rceil`: the smallest power of two that is no less than amax / largest."""
    mantissa, exponent = np.frexp(amax / F32(largest))
    return np.where(amax == 0, 0, np.clip(exponent - (mantissa == 0.5) + 127, 0, 254)).astype(np.uint8)


@pytest.mark.parametrize("shape", [(8, 64), (2, 3, 4, 96)])
def test_mxfp8(shape):
    x = weights(*shape)
    x.reshape(-1, 32)[1] = 0
    q = tc.quantize(x, "mxfp8")
    groups, amax = blocks(x, 32)
    scales = mx_exponents(amax, 448)
    assert q.scales.dtype == E8M0 and np.array_equal(q.scales.view(np.uint8), scales)
    codes = saturated(groups * np.exp2(127.0 - scales[..., None]).astype(F32), F8)
    assert q.codes.dtype == F8 and q.codes.tobytes() == codes.tobytes()
    back = codes.astype(F32) * np.exp2(scales[..., None] - 127.0).astype(F32)
    assert tc.dequantize(q).tobytes() == back.astype(F32).tobytes()
    assert (q.scheme, q.shape, q.dtype, q.global_scale, q.zeros) == ("mxfp8", shape, "f32", None, None)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_mxfp4(dtype):
    x = weights(16, 128).astype(dtype)
    q = tc.quantize(x, "mxfp4", mx_scale="rceil")
    groups, amax = blocks(x.astype(F32), 32)
    scales = mx_exponents(amax, 6)
    codes = saturated(groups * np.exp2(127.0 - scales[..., None]).astype(F32), F4).reshape(16, 128)
    assert np.array_equal(q.codes, pairs(codes.view(np.uint8))) and q.codes.shape == (16, 64)
    assert np.array_equal(q.scales.view(np.uint8), scales)
    back = codes.astype(F32) * np.repeat(np.exp2(scales - 127.0).astype(F32), 32, axis=1)
    assert q.dequantize().tobytes() == back.astype(dtype).tobytes() and q.dequantize().dtype == dtype


def test_nvfp4():
    x = weights(16, 64)
    x[3, 16:32] = 0
    q = tc.quantize(x, "modelopt:W4A16_NVFP4")
    groups, amax = blocks(x, 16)
    g = np.abs(x).max() / F32(2688)
    scales = np.clip(amax / (F32(6) * g), F32(2**-9), F32(448)).astype(F8)
    scales[amax == 0] = 1
    effective = scales.astype(F32) * g
    codes = saturated(groups / effective[..., None], F4).reshape(16, 64)
    assert q.global_scale.dtype == F32 and q.global_scale == g
    assert q.scales.dtype == F8 and q.scales.tobytes() == scales.tobytes()
    assert np.array_equal(q.codes, pairs(codes.view(np.uint8)))
    assert q.dequantize().tobytes() == (codes.astype(F32) * np.repeat(effective, 16, axis=1)).tobytes()


@pytest.mark.parametrize(
    "scheme, block", [("fp8-block", (128, 128)), ("fp8-block:64x32", (64, 32)), ("fp8-channel", (1, 192)), ("fp8-tensor", (256, 192))]
)
def test_fp8(scheme, block):
    x = weights(256, 192)
    q = tc.quantize(x, scheme)
    (m, k), grid = block, (-(-256 // block[0]), -(-192 // block[1]))
    scales = np.empty(grid, F32)
    for i, j in np.ndindex(grid):
        scales[i, j] = np.abs(x[i * m : (i + 1) * m, j * k : (j + 1) * k]).max() / F32(448)
    spread = np.repeat(np.repeat(scales, m, axis=0)[:256], k, axis=1)[:, :192]
    codes = saturated(x / spread, F8)
    assert q.codes.tobytes() == codes.tobytes() and q.scales.dtype == F32
    assert q.scales.tobytes() == scales.tobytes() and q.scales.size == scales.size
    assert q.dequantize("bf16").tobytes() == (codes.astype(F32) * spread).astype(ml_dtypes.bfloat16).tobytes()


def test_int8_channel():
    x = weights(32, 48)
    q = tc.quantize(x, "int8-channel")
    scales = np.abs(x).max(axis=1, keepdims=True) / F32(127.5)
    codes = np.rint(np.clip(x / scales, -128, 127)).astype(np.int8)
    assert q.codes.dtype == np.int8 and np.array_equal(q.codes, codes) and np.array_equal(q.scales, scales)
    assert np.array_equal(q.dequantize(), codes * scales)


@pytest.mark.parametrize("symmetric", [True, False])
def test_int4_group(symmetric):
    x = weights(32, 128)
    q = tc.quantize(x, f"int4-group,group=32,symmetric={str(symmetric).lower()}")
    groups, amax = blocks(x, 32)
    if symmetric:
        scales, zeros = amax / F32(7.5), np.zeros_like(amax)
    else:
        low, high = np.minimum(groups.min(axis=-1), 0), np.maximum(groups.max(axis=-1), 0)
        scales = (high - low) / F32(15)
        zeros = np.rint(np.clip(F32(-8) - low / scales, -8, 7)).astype(F32)
    codes = np.rint(np.clip(groups / scales[..., None] + zeros[..., None], -8, 7)).astype(np.int64)
    stored = (codes.reshape(32, 128) + 8).astype(np.uint32).reshape(32, -1, 8)
    words = (stored << (4 * np.arange(8, dtype=np.uint32))).sum(axis=-1, dtype=np.uint32)
    assert q.codes.dtype == np.int32 and np.array_equal(q.codes.view(np.uint32), words)
    assert np.array_equal(q.scales, scales) and (q.zeros is None) == symmetric
    back = (codes - zeros[..., None].astype(np.int64)).astype(F32) * scales[..., None]
    assert q.dequantize().tobytes() == back.tobytes()


@pytest.mark.parametrize("rule, shift", [("auto", 0), ("floor", 0), ("rceil", 1), ("even", 0), ("ct", 0)])
def test_mx_scale(rule, shift):
    """Of 1.5 times a power of two only `rceil` clips nothing above 1.5 (docs/spec/checkpoints.md section 7.3)."""
    x = np.full((1, 32), 1.625, F32)
    assert tc.quantize(x, "mxfp4", mx_scale=rule).scales.view(np.uint8).item() == 127 - 2 + shift


def test_scale_search_is_no_worse():
    x = weights(64, 128)
    for scheme in ("nvfp4", "mxfp4", "fp8-block"):
        error = {
            how: float(((tc.quantize(x, scheme, scale_search=how).dequantize("f64") - x) ** 2).sum()) for how in (None, "mse")
        }
        assert error["mse"] < error[None]


def test_not_finite():
    x = weights(4, 32)
    x[2, 5], x[3, 0] = np.nan, -np.inf
    with pytest.raises(tc.InputError, match="element 69 is NaN.*; nonfinite=\"saturate\" replaces it"):
        tc.quantize(x, "mxfp8")
    q = tc.quantize(x, "mxfp8", nonfinite="saturate")
    assert q.codes[2, 5] == 0 and q.codes[3, 0] == -448


def test_codes_and_arrays_from_elsewhere():
    x = weights(128, 256)
    q, codes = tc.quantize(x, "fp8-block"), tc.quantize(x, "fp8-block", layout="codes")
    assert codes.scales.dtype == np.float32 and np.array_equal(codes.scales, q.scales)
    assert codes.codes.dtype == np.uint8 and np.array_equal(codes.codes, q.codes.view(np.uint8))
    again = tc.Quantized("fp8-block", x.shape, codes=codes.codes, scales=q.scales)
    assert again.dequantize().tobytes() == q.dequantize().tobytes()
    strided = tc.Quantized("fp8-block", x.shape, codes=np.asfortranarray(codes.codes), scales=q.scales)
    assert strided.dequantize().tobytes() == q.dequantize().tobytes()
    with pytest.raises(tc.DTypeError, match="scales are float64"):
        tc.Quantized("fp8-block", x.shape, codes=q.codes, scales=q.scales.astype(np.float64)).dequantize()
    with pytest.raises(tc.DTypeError, match=r"codes are .*\[256, 128\]"):
        tc.Quantized("fp8-block", x.shape, codes=q.codes.T, scales=q.scales).dequantize()
    with pytest.raises(tc.UsageError, match="global_scale"):
        tc.Quantized("nvfp4", (1, 32), codes=np.zeros((1, 16), np.uint8), scales=np.zeros((1, 2), np.uint8)).dequantize()


def test_nvfp4_of_compressed_tensors():
    x = weights(16, 64)
    x[3, 16:32] = 0
    q = tc.quantize(x, "nvfp4")
    groups, amax = blocks(x, 16)
    g = F32(2688) / np.abs(x).max()
    scales = np.clip(g * (amax / F32(6)), F32(2**-9), F32(448)).astype(F8)
    scales[amax == 0] = 0.125
    codes = saturated(groups / (scales.astype(F32) / g)[..., None], F4).reshape(16, 64)
    assert q.global_scale.dtype == F32 and q.global_scale == g
    assert q.scales.tobytes() == scales.tobytes()
    assert np.array_equal(q.codes, pairs(codes.view(np.uint8)))


def test_what_it_says():
    q = tc.quantize(weights(4, 64), "nvfp4")
    assert repr(q).startswith("ct:nvfp4-pack-quantized of (4, 64), 4.625 bits an element: codes uint8 (4, 32)")
    assert q.nbytes == 4 * 32 + 16 + 4 and list(q.arrays()) == ["codes", "scales", "global_scale"]


@pytest.mark.parametrize(
    "x, scheme, options, words",
    [
        (np.zeros((2, 40), F32), "mxfp4", {}, "not a whole number of groups of 32"),
        (np.zeros(64, F32), "mxfp4", {}, "fewer than two dimensions"),
        (np.zeros((2, 0), F32), "fp8-tensor", {}, "no elements"),
        (np.zeros((2, 32), F32), "mxfp5", {}, "unknown scheme"),
        (np.zeros((2, 32), F32), "awq", {}, "can be read, not written"),
        (np.zeros((2, 32), F32), "int4", {}, "int4-group or int4-channel"),
        (np.zeros((2, 32), F32), "mxfp4", {"mx_scale": "round"}, "auto, floor, rceil, even, ct"),
        (np.zeros((2, 32), F32), "mxfp6", {"mx_scale": "ct", "layout": "packed"}, "layout"),
        (np.zeros((2, 32), F32), "mxfp4", {"scale_search": "best"}, "mse"),
    ],
)
def test_errors_of_quantize(x, scheme, options, words):
    with pytest.raises(tc.UsageError, match=words):
        tc.quantize(x, scheme, **options)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.bool_, ml_dtypes.float8_e4m3fn])
def test_types_that_are_not_quantized(dtype):
    with pytest.raises(tc.DTypeError, match="only f32, f16, bf16 and f64 are quantized, not"):
        tc.quantize(np.zeros((2, 32), dtype), "mxfp4")


def test_short_names_are_documented():
    for name, _ in tc._truecast.scheme_names():
        assert f'``"{name}"``' in tc.quantize.__doc__
        group = ",group=32" if name.endswith("group") else ""
        assert tc.quantize(np.ones((2, 64), F32), name + group).dequantize().shape == (2, 64)


def test_as_convert_does(tmp_path):
    """What is quantized in memory is read from a folder as the same values."""
    from container import read_safetensors, write_safetensors
    from dtypes import TYPES

    q = tc.quantize(weights(256, 128), "fp8-block")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "config.json").write_text('{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}')
    arrays = {"w.weight": (TYPES["f8e4m3fn"], q.codes), "w.weight_scale_inv": (TYPES["f32"], q.scales)}
    write_safetensors(tmp_path / "a" / "model.safetensors", arrays)
    tc.convert(tmp_path / "a", tmp_path / "b", "bf16")
    tensors, _, _ = read_safetensors(tmp_path / "b" / "model.safetensors")
    assert tensors["w.weight"].tobytes() == q.dequantize("bf16").tobytes()


def test_errors_say_what_is_wrong():
    x = np.ones((4, 32), np.float32)
    with pytest.raises(tc.UsageError, match=r'unknown scheme "mxfp5"; did you mean mxfp4\? `truecast schemes` lists') as found:
        tc.quantize(x, "mxfp5")
    assert "awq" not in str(found.value) and "gguf" not in str(found.value)
    with pytest.raises(tc.UsageError, match=r"x has shape \(3,\): fp8-block: .*fewer than two dimensions"):
        tc.quantize(np.ones(3, np.float32), "fp8-block")


@pytest.mark.parametrize("scheme", ["mxfp4", "nvfp4", "fp8-block", "int4-group,group=32"])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_error(scheme, dtype):
    """Against arithmetic in f64."""
    w = weights(128, 256).astype(dtype)
    q = tc.quantize(w, scheme)
    found = q.error(w)
    x, y = w.astype(np.float64), tc.dequantize(q, "f32").astype(np.float64)
    assert found.elements == w.size and found.inexact == np.count_nonzero(x != y) == w.size - found.exact
    assert found.max_abs_error == np.abs(x - y).max() == np.abs(x - y).flat[found.index_max_abs]
    assert found.rmse == pytest.approx(np.sqrt(np.mean((x - y) ** 2)), rel=1e-9)
    assert found.sqnr_db == pytest.approx(10 * np.log10((x**2).sum() / ((x - y) ** 2).sum()), rel=1e-9)
    assert found.cosine == pytest.approx((x * y).sum() / np.sqrt((x**2).sum() * (y**2).sum()), rel=1e-9)


def test_error_is_that_of_the_files(tmp_path):
    """What `convert` measures of every element, and what `compare` says of its result."""
    import json

    from safetensors.numpy import save_file

    w = weights(256, 512)
    (tmp_path / "model").mkdir()
    save_file({"model.layers.0.mlp.up_proj.weight": w}, tmp_path / "model" / "model.safetensors")
    (tmp_path / "model" / "config.json").write_text(json.dumps({"model_type": "llama"}))
    report = tc.convert(tmp_path / "model", tmp_path / "small", scheme="fp8-block", measure="full")
    (row,) = report.tensors
    (compared,) = tc.compare(tmp_path / "model", tmp_path / "small").tensors
    found = tc.quantize(w, "fp8-block").error(w)
    names = ["elements", *tc._report.MEASURES]
    assert [found[name] for name in names] == [row[name] for name in names] == [compared[name] for name in names]
    counts = [name for name in tc._report.COUNTS if name in compared]
    assert {name: found[name] for name in counts} == {name: compared[name] for name in counts}


def test_error_refuses():
    w = weights(2, 64)
    q = tc.quantize(w, "mxfp8")
    assert q.error(q.dequantize()).lossless
    with pytest.raises(tc.UsageError, match="shape"):
        q.error(w[:, :32])
    with pytest.raises(tc.DTypeError, match="string"):
        q.error(w.astype("U"))
