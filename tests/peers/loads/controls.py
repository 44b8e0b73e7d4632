"""The same models quantized by compressed-tensors itself: what of these does not load either is the loader's own limit."""

import json
import shutil

import torch
from compressed_tensors.compressors import BaseCompressor, ModelCompressor
from compressed_tensors.compressors.base import compress_module
from compressed_tensors.quantization import QuantizationConfig, preset_name_to_scheme
from compressed_tensors.quantization.lifecycle.initialize import initialize_module_for_quantization
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from compressed_tensors.utils import get_direct_state_dict
from compressed_tensors.utils.match import match_name
from safetensors import safe_open
from safetensors.torch import save_file

# The package's name of what a scheme writes, and the size of its groups where the preset has another.
PRESETS = {
    "fp8-block": ("FP8_BLOCK", None), "fp8-channel": ("FP8_DYNAMIC", None), "ct:float-quantized": ("FP8_DYNAMIC", None),
    "ct:int-quantized": ("W8A8", None), "ct:pack-quantized,bits=4,group=32": ("W4A16", 32),
    "ct:pack-quantized": ("W4A16", 128), "ct:pack-quantized,bits=8": ("W8A16", 128),
    "ct:nvfp4-pack-quantized": ("NVFP4A16", None), "ct:mxfp4-pack-quantized": ("MXFP4A16", None),
    "ct:mxfp6-pack-quantized": ("MXFP6A16", None), "ct:mxfp8-quantized": ("MXFP8A16", None),
    "ct:pack-quantized,bits=4,group=32,symmetric=false": ("W4A16_ASYM", 32),
}
# What recipes for the package leave alone, as its `ignore` says it, and weights that belong to no linear layer.
IGNORE = ["lm_head", "proj_out", "re:.*lm_head$", "re:.*shared_expert_gate$", "re:.*(visual|vision_tower|projector).*",
          "re:.*experts$", "re:.*classifier$", "re:.*predictions.decoder$", "re:.*DenseReluDense.wo$",
          "re:.*(predictions.transform|pooler).dense$"]
OTHERS = "re:.*(embed.*|shared|gate|router|relative_attention_bias)$"


def tensors_of(folder):
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            found.update({name: file.get_tensor(name) for name in file.keys()})
    return found


def write(scheme, source, folder, dense, wanted=None):
    """Quantizes the linear layers of `source`, or the tensors `wanted`, and writes what their codes stand for to `dense`.
    Gives the names of those that are whole groups, hence quantized."""
    preset, group = PRESETS[scheme]
    args = preset_name_to_scheme(preset, ["Linear"])
    if group:
        args.weights.group_size = group
    compressed, expected, done = {}, {}, []
    for name, tensor in tensors_of(source).items():
        module = name.removesuffix(".weight")
        kept = any(match_name(module, pattern) for pattern in (*IGNORE, OTHERS)) if wanted is None else \
            name not in wanted or tensor.shape[-1] % (args.weights.group_size or 1)
        if wanted is not None and not kept and tensor.ndim == 3 and scheme == "fp8-block":
            done.append(name)
            parts = [quantize(matrix, args) for matrix in tensor]
            values = [BaseCompressor.get_value_from_registry(args.format).decompress(part, args) for part in parts]
            compressed[name] = torch.stack([part["weight"] for part in parts])
            compressed[f"{name}_scale"] = torch.stack([part["weight_scale"] for part in parts])
            expected[name] = torch.stack([value["weight"] for value in values]).to(torch.bfloat16)
            continue
        if module == name or tensor.ndim != 2 or kept:
            compressed[name] = expected[name] = tensor
            continue
        done.append(name)
        codes = quantize(tensor, args)
        compressor = BaseCompressor.get_value_from_registry(args.format)
        expected[name] = tensor
        # The package cannot unpack zero points of one word (8 rows or fewer); no model with zero points gets that far.
        if args.weights.symmetric:
            expected[name] = compressor.decompress(codes, args)["weight"].to(torch.bfloat16)
        compressed.update({f"{module}.{part}": value for part, value in codes.items()})
    for place, tensors in ((folder, compressed), (dense, expected)):
        place.mkdir()
        shutil.copy(source / "config.json", place)
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, place / "model.safetensors",
                  metadata={"format": "pt"})
    config = QuantizationConfig(config_groups={"group_0": args}, ignore=IGNORE, format=args.format,
                                quantization_status="compressed")
    ModelCompressor(quantization_config=config).update_config(folder)
    if scheme == "fp8-block":
        as_deepseek(folder, {f"{name}_scale" for name in done})
    return done


def ignore(folder, modules):
    """Gives the folder's configuration another list of modules that are not quantized."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    quantization = config["quantization_config"]
    quantization["modules_to_not_convert" if quantization["quant_method"] == "fp8" else "ignore"] = modules
    path.write_text(json.dumps(config))


def quantize(weight, scheme):
    """Codes and scales of a matrix, by name."""
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype, device="meta")
    layer.weight = torch.nn.Parameter(weight, requires_grad=False)
    initialize_module_for_quantization(layer, scheme)
    args = scheme.weights
    shape = layer.weight_scale.shape
    second = None
    if hasattr(layer, "weight_global_scale"):
        second = generate_gparam(weight.amin().reshape(1), weight.amax().reshape(1))
        layer.weight_global_scale.data = second
    rows, columns = (args.block_structure if args.block_structure else
                     (weight.shape[0] // shape[0], weight.shape[1] // shape[1]) if len(shape) == 2 else weight.shape)
    down, across = -(-weight.shape[0] // rows), -(-weight.shape[1] // columns)
    padded = torch.zeros(down * rows, across * columns, dtype=weight.dtype)
    padded[:weight.shape[0], :weight.shape[1]] = weight
    blocks = padded.reshape(down, rows, across, columns)
    scale, zero = calculate_qparams(blocks.amin((1, 3)), blocks.amax((1, 3)), args, global_scale=second)
    layer.weight_scale.data = scale.reshape(shape)
    if hasattr(layer, "weight_zero_point"):
        layer.weight_zero_point.data = zero.reshape(shape)
    compress_module(layer)
    scheme.format = layer.quantization_scheme.format
    return {name: value for name, value in get_direct_state_dict(layer).items() if value is not None}


def as_deepseek(folder, scales):
    """The package's blocks of FP8 under the names of `quant_method: fp8`."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                                     "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]}
    path.write_text(json.dumps(config))
    tensors = {f"{name}_inv" if name in scales else name: tensor.float() if name in scales else tensor
               for name, tensor in tensors_of(folder).items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
