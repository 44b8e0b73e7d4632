"""Tensors with scales in torch and JAX: the bits are those of NumPy, in the types that the libraries have."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch
import truecast as tc

SCHEMES = ["mxfp4", "mxfp6", "mxfp8", "nvfp4", "fp8-block", "fp8-channel", "fp8-tensor", "int4-group,group=32", "int8-channel"]


def weights() -> np.ndarray:
    return np.random.default_rng(2).standard_normal((64, 128)).astype(np.float32)


def of_torch(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.dim() else tensor.numpy().tobytes()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_torch(scheme, dtype):
    x = torch.from_numpy(weights()).to(dtype)
    q = tc.quantize(x, scheme)
    same = tc.quantize(x.float().numpy(), scheme)
    for name, array in q.arrays().items():
        assert isinstance(array, torch.Tensor)
        assert of_torch(array) == same.arrays()[name].tobytes(), name
    back = q.dequantize()
    assert isinstance(back, torch.Tensor) and back.dtype == dtype and back.shape == x.shape
    torch.testing.assert_close(q.dequantize("f32"), torch.from_numpy(same.dequantize()), rtol=0, atol=0)


def test_types_of_torch():
    x = torch.from_numpy(weights())
    four, eight = tc.quantize(x, "mxfp4"), tc.quantize(x, "mxfp8")
    assert str(four.codes.dtype) == "torch.float4_e2m1fn_x2" and list(four.codes.shape) == [64, 64]
    assert four.scales.dtype == torch.float8_e8m0fnu and eight.codes.dtype == torch.float8_e4m3fn
    assert tc.quantize(x, "int4-group,group=32").codes.dtype == torch.int32
    assert tc.quantize(x, "mxfp4", layout="codes").codes.dtype == torch.uint8


def test_not_contiguous_and_with_gradient():
    x = torch.from_numpy(weights())
    assert of_torch(tc.quantize(x.t()[:, :32], "mxfp8").codes) == of_torch(tc.quantize(x.t()[:, :32].contiguous(), "mxfp8").codes)
    tc.quantize(x.clone().requires_grad_(), "mxfp8")


def test_eight_bits_as_torch_computes_them():
    """Per row: torch's own division and conversion, which saturates nothing here."""
    x = torch.from_numpy(weights())
    scales = x.abs().amax(dim=1, keepdim=True) / 448
    codes = (x / scales).clamp(-448, 448).to(torch.float8_e4m3fn)
    q = tc.quantize(x, "fp8-channel")
    assert torch.equal(q.scales, scales) and of_torch(q.codes) == of_torch(codes)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_jax(scheme):
    q, same = tc.quantize(jnp.asarray(weights()), scheme), tc.quantize(weights(), scheme)
    for name, array in q.arrays().items():
        assert hasattr(array, "devices") and np.asarray(array).tobytes() == same.arrays()[name].tobytes(), name
    assert np.asarray(q.dequantize("bf16")).dtype == ml_dtypes.bfloat16
