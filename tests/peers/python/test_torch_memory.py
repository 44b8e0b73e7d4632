"""Tensors without memory, or with less than their shape says, are refused. torch's own operators refuse them too, or read
what lies behind."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import truecast as tc
from torch._subclasses.fake_tensor import FakeTensorMode


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.randn(64, 64)


def left(bytes_: int, shape: tuple[int, ...] = (64, 64), view=lambda x: x) -> torch.Tensor:
    """A view of a tensor of which the storage keeps so many bytes; FSDP leaves none."""
    x = torch.ones(shape)
    seen = view(x)
    x.untyped_storage().resize_(bytes_)
    return seen


def nested(layout: torch.layout) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)


WITHOUT = {
    "FakeTensor": fake,
    "released": lambda: left(0),
    "shrunk": lambda: left(4 * 64 * 64 - 1),
    "shrunk below a transpose": lambda: left(16, view=torch.t),
    "shrunk below gaps": lambda: left(4 * (128 * 64 - 1), (128, 64), lambda x: x[1::2]),
    "shrunk below an offset": lambda: left(4 * 64 * 64, (128, 64), lambda x: x[64:]),
    "expanded from nothing": lambda: left(0, (64,), lambda x: x.expand(64, 64)),
    "zero": lambda: torch._efficientzerotensor((64, 64)),
    "sparse": lambda: torch.eye(64).to_sparse(),
    "compressed": lambda: torch.eye(64).to_sparse_csr(),
    "mkldnn": lambda: torch.ones(64, 64).to_mkldnn(),
    "nested": lambda: nested(torch.strided),
    "jagged": lambda: nested(torch.jagged),
    "meta": lambda: torch.ones(64, 64, device="meta"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", WITHOUT.values(), ids=WITHOUT)
def test_tensors_without_their_memory(make):
    for call in (
        lambda: tc.cast(make(), "bf16"),
        lambda: tc.cast_with_report(make(), "f64"),
        lambda: tc.cast(make(), "f32", out=torch.zeros(64, 64)),
        lambda: tc.cast(torch.ones(64, 64), "f32", out=make()),
        lambda: tc.cast(torch.ones(64, 64).t(), "f32", out=make()),
        lambda: tc.quantize(make(), "mxfp4"),
        lambda: tc.Quantized("fp8-tensor", (64, 64), codes=make(), scales=torch.ones(1)).dequantize(),
        lambda: tc.dequantize(tc.Quantized("fp8-tensor", (64, 64), codes=np.zeros((64, 64), np.uint8), scales=left(0, (1,)))),
    ):
        with pytest.raises(tc.DTypeError):
            call()


def test_fake_tensors_have_their_own_function():
    with FakeTensorMode(), pytest.raises(tc.DTypeError, match="FakeTensor.*truecast.torch.cast"):
        tc.cast(torch.randn(3), "bf16")


def test_new_tensors_that_are_fake():
    real = torch.ones(3)
    with FakeTensorMode(), pytest.raises(tc.DTypeError):
        tc.cast(real, "bf16")


def test_another_default_device():
    with torch.device("meta"):
        for elements in (3, 1 << 20):
            assert tc.cast(torch.ones(elements, device="cpu"), "bf16").device.type == "cpu"


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.vmap, torch.func.functionalize])
def test_transforms(transform):
    with pytest.raises(tc.TruecastError):
        transform(lambda x: tc.cast(x, "f32").sum())(torch.ones(3, 2)[0] if transform is torch.func.grad else torch.ones(3, 2))


class Mine(torch.Tensor):
    """A subclass with memory."""


class Liar(torch.Tensor):
    """A subclass that answers what it likes."""

    def data_ptr(self):
        return 8

    def numel(self):
        return 1 << 30

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs) if func is torch.Tensor.as_subclass else 8


class Pretender:
    """No tensor at all."""

    __class__ = torch.Tensor
    device, is_cpu, dtype, shape, nbytes = torch.device("cpu"), True, torch.float32, (1 << 30,), 1 << 32

    def data_ptr(self):
        return 8

    def __getattr__(self, name):
        return lambda *given: 1 << 30 if name == "numel" else 4 if name == "element_size" else self


def test_subclasses():
    for kind in (Mine, Liar):
        y = tc.cast(torch.ones(3).as_subclass(kind), "bf16")
        assert type(y) is torch.Tensor and y.tolist() == [1, 1, 1]
    with torch.no_grad():
        assert type(tc.cast(torch.nn.Parameter(torch.ones(3)), "bf16")) is torch.Tensor
    out = torch.zeros(3).as_subclass(Mine)
    assert tc.cast(torch.ones(3), "f32", out=out) is out and out.tolist() == [1, 1, 1]
    with pytest.raises(tc.TruecastError):
        tc.cast(Pretender(), "bf16")


def test_attributes_of_a_tensor_are_no_methods():
    x = torch.ones(3)
    x.data_ptr, x.numel = (lambda: 8), (lambda: 1 << 30)
    assert tc.cast(x, "bf16").tolist() == [1, 1, 1]


def test_memory_outlives_the_tensor():
    """A result on kept memory belongs to the storage, whichever tensor or array holds it."""
    for _ in range(20):
        y = tc.cast(torch.full((1 << 20,), 3.0), "bf16")
        view, array = y[5:], y.view(torch.uint16).numpy()
        del y
        tc.cast(torch.zeros(1 << 20), "bf16")
        assert (view == 3).all() and (array == 0x4040).all()
        with pytest.raises(RuntimeError, match="resize|not resizable"):
            view.untyped_storage().resize_(0)


def test_memory_of_every_kind():
    """The cases of tests/python/package, with those of torch."""
    program = Path(__file__).parents[2] / "python" / "package" / "memory_fuzz.py"
    seconds = os.environ.get("TRUECAST_FUZZ_SECONDS", "10")
    done = subprocess.run([sys.executable, program, "--torch", "--seconds", seconds], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
