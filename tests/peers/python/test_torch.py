"""Tensors of torch in and out. Expectations come from torch's own widening of every code, which is exact, and from
ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest
import torch
import truecast as tc

FLOATS = ["bfloat16", "float16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]


def every_code(name: str) -> torch.Tensor:
    dtype = getattr(torch, name)
    codes = torch.arange(1 << (8 * dtype.itemsize), dtype=torch.int32)
    return codes.to(torch.uint8 if dtype.itemsize == 1 else torch.uint16).view(dtype)


@pytest.mark.parametrize("name", FLOATS)
def test_every_code_widens_as_torch_says(name):
    codes = every_code(name)
    wide = tc.cast(codes, torch.float32, spec="ieee")
    assert isinstance(wide, torch.Tensor) and wide.dtype == torch.float32
    torch.testing.assert_close(wide, codes.float(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", FLOATS[:-1])
def test_the_same_bits_as_from_numpy(name):
    x = np.random.default_rng(3).standard_normal(100_000).astype(np.float32) * 300
    ours = tc.cast(torch.from_numpy(x), name)
    same = tc.cast(x, name, layout="codes")
    np.testing.assert_array_equal(ours.view(torch.uint8 if same.itemsize == 1 else torch.uint16).numpy(), same)


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int16", "int32", "int64", "float64", "uint16", "uint32", "uint64"])
def test_integers(name):
    x = torch.tensor([0.0, 1.0])
    y = tc.cast(x, getattr(torch, name), spec="ieee")
    assert y.dtype == getattr(torch, name)
    assert tc.cast(y, torch.float32, spec="ieee").tolist() == [0, 1]


def test_packed_pairs():
    x = torch.tensor([[1.0, 0.5, -6.0, 3.0]])
    y = tc.cast(x, "f4e2m1")
    assert str(y.dtype) == "torch.float4_e2m1fn_x2" and list(y.shape) == [1, 2]
    # The first of a pair in the low bits: 1 is 2, 0.5 is 1, -6 is 15, 3 is 5 (docs/spec/onnx.md section 2).
    assert y.view(torch.uint8).tolist() == [[0x12, 0x5F]]
    back = tc.cast(y, torch.float32)
    assert back.tolist() == x.tolist()
    assert tc.cast(y, torch.float32, from_="f4e2m1").tolist() == x.tolist()
    with pytest.raises(tc.DTypeError, match="even last dimension"):
        tc.cast(torch.ones(3), "f4e2m1")
    assert tc.cast(torch.ones(3), "f4e2m1", layout="codes").tolist() == [2, 2, 2]
    assert tc.cast(torch.ones(3), "f4e2m1", layout="packed").tolist() == [0x22, 0x02]


def test_types_that_torch_lacks():
    with pytest.raises(tc.DTypeError, match="layout"):
        tc.cast(torch.ones(3), "i4")


LAYOUTS = [
    lambda t: t,
    lambda t: t.t(),
    lambda t: t[::2, 1:],
    lambda t: t.expand(3, *t.shape),
    lambda t: t.flip(0),
    lambda t: t.reshape(-1, 2, 2, 3).contiguous(memory_format=torch.channels_last),
    lambda t: t.reshape(-1, 2, 3).permute(2, 0, 1),
    lambda t: t.reshape(-1, 2, 3).permute(1, 0, 2),
    lambda t: t.reshape(1, -1, 1, 6).permute(2, 3, 0, 1),
    lambda t: t.as_strided((3, 4), (1, 2)),
    lambda t: torch._neg_view(t),
    lambda t: torch.complex(t, -t).conj().imag,
    lambda t: torch._lazy_clone(t),
]


@pytest.mark.parametrize("rows", [4, 200_000])
@pytest.mark.parametrize("view", LAYOUTS)
def test_layouts(view, rows):
    """Where the elements have no gaps, the strides are those that torch's own conversion gives."""
    x = view((torch.arange(6 * rows) % 200).float().reshape(rows, 6))
    y, theirs = tc.cast(x, "bf16"), x.bfloat16()
    assert torch.equal(y, theirs)
    if x.numel() == 1 + sum((n - 1) * stride for n, stride in zip(x.shape, x.stride())) and not x.is_neg():
        assert [s for s, n in zip(y.stride(), y.shape) if n > 1] == [s for s, n in zip(theirs.stride(), y.shape) if n > 1]
    for out in (torch.zeros_like(y), torch.zeros(y.shape, dtype=y.dtype), torch._neg_view(torch.zeros_like(y))):
        assert tc.cast(x, "bf16", out=out) is out and torch.equal(out, theirs)
    array = np.zeros(y.shape, ml_dtypes.bfloat16)
    assert np.array_equal(tc.cast(x, "bf16", out=array).astype(np.float32), theirs.float().numpy())


def test_out_and_no_copy():
    x, out = torch.ones(4), torch.zeros(4, dtype=torch.bfloat16)
    at = out.data_ptr()
    assert tc.cast(x, "bf16", out=out) is out
    assert out.data_ptr() == at and out.tolist() == [1] * 4
    wide = torch.zeros(8, dtype=torch.bfloat16)
    tc.cast(x, "bf16", out=wide[::2])
    assert wide.tolist() == [1, 0] * 4
    array = np.zeros(4, ml_dtypes.bfloat16)
    assert tc.cast(x, "bf16", out=array) is array


def test_gradients_are_not_cut_off_silently():
    x = torch.ones(3, requires_grad=True)
    q = tc.quantize(torch.nn.Parameter(torch.ones(2, 32)), "fp8-tensor")  # codes have none
    q = tc.Quantized("fp8-tensor", (2, 32), codes=q.codes, scales=torch.nn.Parameter(q.scales))
    for call in (lambda: tc.cast(x, "bf16"), lambda: tc.dequantize(q)):
        with pytest.raises(tc.UsageError, match="detach"):
            call()
    assert tc.cast(x.detach(), "bf16").tolist() == [1, 1, 1]
    with torch.no_grad():
        assert not tc.cast(torch.nn.Parameter(torch.ones(3)), "bf16").requires_grad
    assert tc.check(x, x.detach().bfloat16()).passes and tc.check(x, x.bfloat16()).passes


@pytest.mark.parametrize("view", [lambda h: h, lambda h: h[::2]], ids=["whole", "with gaps"])
def test_out_tells_autograd(view):
    """torch's own writing to what a gradient needs makes the backward pass an error."""
    w = torch.randn(6, requires_grad=True)
    h = w * 1.0
    y = (h * h).sum()
    out = view(h.detach())
    tc.cast(torch.zeros(out.shape), "f32", out=out)
    with pytest.raises(RuntimeError, match="inplace operation"):
        y.backward()


def test_out_that_requires_a_gradient():
    out = torch.zeros(3, requires_grad=True)
    with pytest.raises(tc.UsageError, match="out requires a gradient"):
        tc.cast(torch.ones(3), "f32", out=out)
    with torch.no_grad():
        tc.cast(torch.ones(3), "f32", out=out)
    assert out.tolist() == [1, 1, 1]
    with torch.inference_mode():
        assert tc.cast(torch.ones(3), "f32", out=torch.zeros(3)).tolist() == [1, 1, 1]


def test_other_devices_are_refused():
    with pytest.raises(tc.DTypeError, match="device meta"):
        tc.cast(torch.ones(3, device="meta"), "bf16")


def test_operator():
    x = torch.tensor([1.0, 465.0, 0.3])
    torch.library.opcheck(tc.torch._cast, (x, "bf16", "onnx", ""))
    torch.library.opcheck(tc.torch._round_trip, (x, "i4", "ieee", "rounding=up"))
    for view in (torch.ones(3, 4).t(), torch.ones(4, 6)[::2, 1:5]):
        torch.library.opcheck(tc.torch._cast, (view, "bf16", "onnx", ""))
        torch.library.opcheck(tc.torch._round_trip, (view, "i4", "ieee", ""))
    y = tc.torch.cast(x, "f8e4m3fn", saturate=False)
    assert y.dtype == torch.float8_e4m3fn and y.view(torch.uint8).tolist() == [0x38, 0x7F, 0x2A]


def test_straight_through():
    x = torch.tensor([1.0, 0.3, 100.0], requires_grad=True)
    y = tc.torch.round_trip(x, "f8e4m3fn")
    assert y.dtype == x.dtype and y.tolist() == [1, 0.3125, 96]
    (y * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [1, 2, 3]
    z = tc.torch.cast(x, "bf16", gradient="straight-through")
    x.grad = None
    z.float().sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    assert not tc.torch.cast(x, "bf16").requires_grad
    assert tc.torch.round_trip(x, "nf4", spec="openvino").tolist()[0] == 1
    with pytest.raises(tc.UsageError, match="straight-through"):
        tc.torch.cast(x, "bf16", gradient="maybe")


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(3, 4)
        y = tc.torch.cast(x, "f8e5m2")
        assert y.dtype == torch.float8_e5m2 and list(y.shape) == [3, 4]
        assert list(tc.torch.cast(x, "f4e2m1").shape) == [3, 2]


def test_compile():
    @torch.compile(backend="aot_eager", fullgraph=True)
    def f(x):
        return tc.torch.round_trip(x * 2, "f8e4m3fn") + 1

    x = torch.tensor([0.15, 3.0], requires_grad=True)
    y = f(x)
    assert y.tolist() == [1.3125, 7]
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
