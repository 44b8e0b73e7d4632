"""Lets vLLM's model classes load folders, on a CPU and without its compiled kernels, and prints a line for each pair.

    vllm_loading.py FOLDER DENSE [FOLDER DENSE ..]

Every parameter of a linear layer or of experts must be written by the loader, and what vLLM makes of codes and scales
must be the dense model's weight.
"""

import os
import pathlib
import re
import sys
import tempfile
from unittest import mock

os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"

import torch
import vllm.platforms
from safetensors import safe_open
from vllm.platforms.cpu import CpuPlatform

vllm.platforms._current_platform = CpuPlatform()
import vllm.model_executor.kernels.linear as kernels

for name in dir(kernels):
    if name.startswith(("init_", "choose_")):
        setattr(kernels, name, lambda *_, **__: mock.MagicMock(__name__="none"))

# Which kernel multiplies experts is decided before their parameters are made: here that of GPUs without FP4 or FP8.
from vllm.model_executor.layers.fused_moe.oracle import int8, int_wna16, mxfp4, nvfp4

int8.select_int8_moe_backend = lambda *_, **__: (next(iter(int8.Int8MoeBackend)), mock.MagicMock())
int_wna16.select_wna16_moe_backend = lambda *_, **__: (int_wna16.WNA16MoEBackend.MARLIN, mock.MagicMock())
mxfp4.select_mxfp4_moe_backend = lambda *_, **__: (mxfp4.Mxfp4MoeBackend.MARLIN, mock.MagicMock())
nvfp4.select_nvfp4_moe_backend = lambda *_, **__: (nvfp4.NvFp4MoeBackend.MARLIN, mock.MagicMock())

from vllm.config import ModelConfig, VllmConfig, set_current_vllm_config
from vllm.distributed import init_distributed_environment, initialize_model_parallel
from vllm.model_executor.layers.linear import LinearBase
from vllm.model_executor.model_loader.utils import initialize_model

UNWRITTEN = 0xA5


def weights(folder):
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():
                yield name, file.get_tensor(name)


def load(folder):
    """The model with what its loader wrote, and the parameters that it did not write."""
    config = VllmConfig(model_config=ModelConfig(model=folder, tokenizer=folder, skip_tokenizer_init=True,
                                                 dtype="bfloat16", enforce_eager=True))
    torch.set_default_dtype(torch.bfloat16)
    with set_current_vllm_config(config):
        model = initialize_model(vllm_config=config)
        watched = parameters(model)
        for _, parameter in watched:
            parameter.data.reshape(-1).view(torch.uint8).fill_(UNWRITTEN)
        model.load_weights(weights(folder))
    return model, [name for name, parameter in watched
                   if bool((parameter.data.reshape(-1).view(torch.uint8) == UNWRITTEN).all())]


def parameters(model):
    """Those of layers with weights, but for what is never read: attention has scales of its cache, with values of their
    own; layers of NVFP4 whose inputs stay 16 bits wide have scales of inputs that are dropped, or given to no kernel."""
    unread = {f"{name}.{scale}" for name, module in model.named_modules()
              if getattr(getattr(module, "quant_method", None), "use_a16", False)
              for scale in ("w13_input_scale", "w2_input_scale", "w13_input_global_scale", "w2_input_global_scale")}
    return [(name, parameter) for name, parameter in model.named_parameters()
            if not re.search(r"attn\.([qkv]|prob)_(scale|zero_point)$", name)
            and name not in unread
            and not (name.endswith(".input_scale") and parameter.isnan().all())]


def values(layer):
    """The weight of a linear layer, as vLLM's kernels compute it from its parameters."""
    found = dict(layer.named_parameters())
    if "weight_packed" in found:
        codes = found["weight_packed"]
    else:
        codes = found["weight"]
    scale = found.get("weight_scale", found.get("weight_scale_inv"))
    if scale is None:
        return codes.data
    return decode(codes.data, scale.data, found, layer)


def decode(codes, scale, found, layer):
    rows = sum(layer.output_partition_sizes) if hasattr(layer, "output_partition_sizes") else layer.output_size
    if codes.dtype == torch.uint8:
        codes = nibbles(codes)
    elif codes.dtype == torch.int32:
        bits = codes.shape[1] * 32 // layer.input_size
        codes, zero = unpacked(codes, bits), 2 ** (bits - 1)
        if "weight_zero_point" in found:
            zero = unpacked(found["weight_zero_point"].data.T, bits).T
            zero = zero.repeat_interleave(codes.shape[1] // scale.shape[1], 1)
        codes = codes - zero
    if scale.dtype in (torch.uint8, torch.float8_e8m0fnu):
        scale = torch.exp2(scale.view(torch.uint8).double() - 127)
    scale, codes = scale.double(), codes.double()
    if scale.ndim == 4:
        scale = scale.squeeze(3).squeeze(1)
    parts = getattr(layer, "output_partition_sizes", [rows])
    if scale.ndim < 2 and scale.numel() == len(parts):
        # One scale for a fused layer: the largest, for all parts.
        scale = scale.max().reshape(1, 1)
    if scale.ndim < 2:
        scale = scale.reshape(-1, 1)
    block = getattr(layer, "weight_block_size", None) or (rows // scale.shape[0], layer.input_size // scale.shape[1])
    wide = scale.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:codes.shape[0], :codes.shape[1]]
    if "weight_global_scale" in found:
        wide = (wide.float() / found["weight_global_scale"].data.max()).double()
    if "weight_scale_2" in found:
        wide = (wide.float() * found["weight_scale_2"].data.max()).double()
    return (codes * wide).to(torch.float32).to(torch.bfloat16)


def unpacked(words, bits):
    """Integers of words, those of a row one after the other."""
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    return ((words[:, :, None] >> shifts) & (2 ** bits - 1)).reshape(words.shape[0], -1)


def nibbles(packed):
    table = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float32)
    return table[torch.stack([packed & 15, packed >> 4], -1).long()].reshape(packed.shape[0], -1)


def compare(folder, dense):
    """What differs, or how much was compared."""
    model, unwritten = load(folder)
    expected, _ = load(dense)
    if unwritten:
        return f"not written by the loader: {len(unwritten)}, such as {unwritten[0]}"
    compared = 0
    for name, layer in model.named_modules():
        if isinstance(layer, LinearBase):
            theirs, ours = values(layer), expected.get_submodule(name).weight.data
            if theirs.shape != ours.shape:
                return f"shapes differ: {name}"
            if not torch.equal(theirs.view(torch.uint8), ours.view(torch.uint8)):
                return f"weights differ: {name}, {(theirs != ours).double().mean().item():.0%} of its elements"
            compared += 1
    experts = sum(".experts." in name for name, _ in parameters(model))
    return f"equal: {compared} linear layers" + (f", {experts} parameters of experts written" if experts else "")


def main():
    with set_current_vllm_config(VllmConfig()):
        init_distributed_environment(1, 0, f"file://{tempfile.mktemp()}", 0, "gloo")
        initialize_model_parallel(1, 1)
    for folder, dense in zip(sys.argv[1::2], sys.argv[2::2]):
        try:
            result = compare(folder, dense)
        except Exception as error:
            result = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        print(f"{folder}\t{result}", flush=True)


if __name__ == "__main__":
    main()
