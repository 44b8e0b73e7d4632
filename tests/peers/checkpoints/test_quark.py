"""AMD Quark: tiny models that it quantizes and exports become what its own importer makes of them, bit for bit.

Shapes and orders of every scheme are thus the package's; what it quantizes them to when it runs a model is compared too.
"""

import os

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from folders import convert

os.environ["TORCHDYNAMO_DISABLE"] = "1"
quark = pytest.importorskip("quark.torch")
from quark.torch.quantization.config import config as specs  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

MIN_MAX = {"observer_method": "min_max", "is_dynamic": False}
INTEGERS = {"scale_type": "float", "round_method": "half_even", **MIN_MAX}
CHANNEL = {"ch_axis": 0, "is_dynamic": False}
GROUP = {"ch_axis": -1, "group_size": 32, "is_dynamic": False}
MX = {"ch_axis": -1, "is_dynamic": False}
WEIGHTS = {
    "mxfp4": ("OCP_MXFP4Spec", MX),
    "mxfp6_e2m3": ("OCP_MXFP6E2M3Spec", MX),
    "mxfp6_e3m2": ("OCP_MXFP6E3M2Spec", MX),
    "fp8_tensor": ("FP8E4M3PerTensorSpec", MIN_MAX),
    "fp8_channel": ("FP8E4M3PerChannelSpec", CHANNEL),
    **{
        f"{kind}_{name}{end}": (f"{kind.capitalize()}Per{name.capitalize()}Spec", {**arguments, "symmetric": symmetric})
        for kind in ("int4", "uint4", "int8", "uint8")
        for name, arguments in (("tensor", INTEGERS), ("channel", CHANNEL), ("group", GROUP))
        for symmetric, end in ((True, ""), (False, "_asymmetric"))
        # Quark has no negative values then.
        if not (kind.startswith("u") and symmetric)
    },
}


def spec(name, **more):
    kind, arguments = WEIGHTS[name]
    return getattr(specs, kind)(**{**arguments, **more}).to_quantization_spec()


def model(dtype):
    torch.manual_seed(7)
    config = LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=64, tie_word_embeddings=False, max_position_embeddings=32,
    )
    made = LlamaForCausalLM(config).to(dtype).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim == 2:
                parameter.normal_(0.02, 0.3)
    return made


def export(folder, layers, dtype=torch.float32, order="reorder"):
    """Quantizes and exports a model; what Quark makes of each weight while it runs the model."""
    config = specs.QConfig(exclude=["lm_head"], **layers)
    quantizer = quark.ModelQuantizer(config)
    made = quantizer.freeze(quantizer.quantize_model(model(dtype), [torch.arange(16)[None]]))
    with torch.no_grad():
        modules = {name: module for name, module in made.named_modules() if getattr(module, "_weight_quantizer", None)}
        fake = {f"{name}.weight": module._weight_quantizer(module.weight).clone() for name, module in modules.items()}
        quark.export_safetensors(made, str(folder), custom_mode="quark", pack_method=order)
    return fake


def check(folder, fake):
    out = folder.parent / "result"
    ran = convert(folder, out, to="f32")
    assert ran.returncode == 0, ran.stderr
    found = load_file(out / "model.safetensors")
    config = LlamaConfig.from_pretrained(folder)
    del config.quantization_config
    read = quark.import_model_from_safetensors(LlamaForCausalLM(config).float().eval(), model_dir=str(folder))
    plain = LlamaForCausalLM(config).state_dict()
    assert found.keys() == plain.keys() and fake
    for name, running in fake.items():
        module = read.get_submodule(name.removesuffix(".weight"))
        with torch.no_grad():
            imported = module.weight_quantizer(module.weight).float().contiguous()
        assert np.array_equal(found[name].view(torch.int32).numpy(), imported.view(torch.int32).numpy()), name
        assert torch.equal(found[name].to(running.dtype), running), name


# The order of words matters for four bits alone.
ORDERS = [(name, order) for name in WEIGHTS for order in (("reorder", "order") if "int4" in name else ("reorder",))]


@pytest.mark.parametrize("name,order", ORDERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights(tmp_path, name, order, dtype):
    layers = {"global_quant_config": specs.QLayerConfig(weight=spec(name))}
    check(tmp_path / "source", export(tmp_path / "source", layers, dtype, order))


def test_activations_and_layers(tmp_path):
    """Scales of activations and caches go; single layers, layers of a class and those that are left alone are told apart."""
    fp8, int8 = spec("fp8_tensor"), spec("int8_tensor")
    layers = {
        "global_quant_config": specs.QLayerConfig(weight=spec("mxfp4"), input_tensors=spec("mxfp4", is_dynamic=True)),
        "layer_quant_config": {
            "*k_proj": specs.QLayerConfig(weight=fp8, input_tensors=fp8, output_tensors=fp8),
            "*v_proj": specs.QLayerConfig(weight=fp8, input_tensors=fp8, output_tensors=fp8),
            "*down_proj": specs.QLayerConfig(weight=int8, input_tensors=int8),
            "*o_proj": specs.QLayerConfig(weight=spec("int4_group")),
        },
        "kv_cache_quant_config": {
            "*k_proj": specs.QLayerConfig(weight=fp8, input_tensors=fp8, output_tensors=fp8),
            "*v_proj": specs.QLayerConfig(weight=fp8, input_tensors=fp8, output_tensors=fp8),
        },
    }
    check(tmp_path / "source", export(tmp_path / "source", layers))


def test_classes_of_layers(tmp_path):
    layers = {
        "global_quant_config": specs.QLayerConfig(weight=spec("fp8_channel")),
        "layer_type_quant_config": {torch.nn.Linear: specs.QLayerConfig(weight=spec("mxfp6_e3m2"))},
    }
    check(tmp_path / "source", export(tmp_path / "source", layers))


@pytest.mark.parametrize("name", ["int4_group", "uint4_channel_asymmetric", "int8_group_asymmetric"])
def test_relayout(tmp_path, name):
    """Integers go to compressed-tensors as they are."""
    export(tmp_path / "source", {"global_quant_config": specs.QLayerConfig(weight=spec(name))})
    scheme = "ct:int-quantized" if name.startswith("int8") else "ct:pack-quantized"
    carried = convert(tmp_path / "source", tmp_path / "other", "--scheme", scheme, "--relayout", "exact", to=None)
    assert carried.returncode == 0, carried.stderr
    for folder in ("source", "other"):
        assert convert(tmp_path / folder, tmp_path / f"{folder}-f32", to="f32").returncode == 0
    one, other = (load_file(tmp_path / f"{folder}-f32" / "model.safetensors") for folder in ("source", "other"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key].view(torch.int32), other[key].view(torch.int32)) for key in one)


@pytest.mark.parametrize("weights,named", [
    (lambda: specs.FP8E5M2PerTensorSpec(**MIN_MAX).to_quantization_spec(), "quark:fp8_e5m2"),
    (lambda: [spec("fp8_tensor"), spec("int4_channel")], "quark:[fp8_e4m3, int4]"),
])
def test_what_is_refused(tmp_path, weights, named):
    """By name: other formats, and weights that are quantized twice."""
    export(tmp_path / "source", {"global_quant_config": specs.QLayerConfig(weight=weights())})
    ran = convert(tmp_path / "source", tmp_path / "result")
    assert ran.returncode == 3 and named in ran.stderr, ran.stderr
    assert not (tmp_path / "result").exists()
