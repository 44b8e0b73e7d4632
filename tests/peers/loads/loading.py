"""Gives a quantized folder to transformers as anyone would, and compares it with the model of the dequantized weights."""

import contextlib
import re
from unittest import mock

import torch
from transformers.integrations.finegrained_fp8 import FP8Experts, FP8Linear
from transformers.models.llama4.modeling_llama4 import Llama4TextMoe
from transformers.quantizers.base import MODULES_TO_PATCH_FOR_QUANTIZATION
from transformers.quantizers.quantizer_finegrained_fp8 import FineGrainedFP8HfQuantizer

import controls

ERROR = re.compile(r"\w*Error\b.*")


class Wrong(Exception):
    """What differs: `kind` in a few words and the names of tensors, to be compared with a control's; and the details."""

    def __init__(self, kind, detail="", names=()):
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind, self.names = kind, sorted(names)


def load(model_class, folder, **options):
    """The model, with every parameter from the folder, or `Wrong`."""
    reports = []
    try:
        # The function prints what is wrong with what was loaded, and raises an error without the cause.
        with mock.patch("transformers.modeling_utils.log_state_dict_report",
                        lambda loading_info, **_: reports.append(loading_info)):
            model = model_class.from_pretrained(folder, **options)
    except Exception as error:
        raise Wrong(f"{type(error).__name__}: {first_line(error)}") from error
    report = reports[0]
    if report.conversion_errors:
        name, cause = min(report.conversion_errors.items())
        raise Wrong(next(line for line in cause.splitlines() if ERROR.match(line)), name, report.conversion_errors)
    for kind in ("error_msgs", "mismatched_keys", "missing_keys", "unexpected_keys"):
        names = sorted(map(str, getattr(report, kind)))
        if names:
            raise Wrong(kind.replace("_", " "), f"{len(names)}, such as {names[0]}", names)
    return model


@contextlib.contextmanager
def layers_of_experts(folder):
    """Lets models have a layer for each expert where a quantizer replaces fused experts, if the folder has them so."""
    if not any(".experts.0." in name for name in controls.tensors_of(folder)):
        yield
        return
    make = Llama4TextMoe.__init__

    def make_with_layers(self, config):
        make(self, config)
        self.experts = MODULES_TO_PATCH_FOR_QUANTIZATION["Llama4TextExperts"]["module_name"](config)

    with mock.patch.object(Llama4TextMoe, "__init__", make_with_layers):
        yield


def fused(tensors):
    """The tensors with the layers of Llama 4's experts in one tensor, as its own files have them."""
    layers, others = {}, {}
    for name, item in tensors.items():
        part = re.fullmatch(r"(.*\.feed_forward\.experts)\.(\d+)\.(gate_proj|up_proj|down_proj)\.weight", name)
        if part:
            layers.setdefault(part[1], {})[part[3], int(part[2])] = item.T
        else:
            others[name] = item
    for name, of in layers.items():
        experts = range(len(of) // 3)
        both = [torch.cat([of["gate_proj", i], of["up_proj", i]], 1) for i in experts]
        others[f"{name}.gate_up_proj"] = torch.stack(both)
        others[f"{name}.down_proj"] = torch.stack([of["down_proj", i] for i in experts])
    return others


def first_line(error):
    return (str(error).strip().splitlines() or [""])[0]


def run(model, inputs):
    """The tensors that the model computes; the first call decompresses what compressed-tensors left compressed."""
    given = {name: value.to(torch.bfloat16) if value.is_floating_point() else value for name, value in inputs.items()}
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            return list(tensors_in(model(**given)))
    except Exception as error:
        raise Wrong(f"in use: {type(error).__name__}: {first_line(error)}") from error


def tensors_in(output):
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, (dict, list, tuple)):
        for part in output.values() if isinstance(output, dict) else output:
            yield from tensors_in(part)


def state(model):
    """Every parameter and buffer, also those that no file has."""
    return {**dict(model.named_buffers()), **model.state_dict()}


def same_bits(ours, theirs):
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and torch.equal(bits(ours), bits(theirs))


def bits(tensor):
    return tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


def compare_weights(found, dense):
    """Every parameter and buffer of the dense model, bit for bit."""
    differ = [name for name, value in dense.items() if name not in found or not same_bits(found[name], value)]
    if differ:
        name = differ[0]
        raise Wrong("weights differ",
                    f"{len(differ)} of {len(dense)}: {name}, {distance(found.get(name), dense[name])}", differ)


def distance(ours, theirs):
    if ours is None or ours.shape != theirs.shape:
        return f"not of shape {list(theirs.shape)}"
    ours, theirs = ours.double(), theirs.double()
    return f"by {((ours - theirs).norm() / theirs.norm()).item():.2g} of its norm"


def check(model_class, inputs, folder, dense_folder):
    """`Wrong` unless the folder loads with the values and computes what the dense model does; no inputs: values only."""
    with layers_of_experts(dense_folder):
        dense = load(model_class, dense_folder)
    model = load(model_class, folder)
    if inputs:
        found = run(model, inputs)
    elif compressor := getattr(getattr(model, "hf_quantizer", None), "compressor", None):
        compressor.decompress_model(model)
    # On the CPU every loader ends with dense weights, whose state also has scales that are no longer used.
    compare_weights(state(model), state(dense))
    if not inputs:
        return
    with activations_of(model, dense):
        expected = run(dense, inputs)
    if not all(bool(torch.isfinite(value).all()) for value in found):
        raise Wrong("outputs not finite")
    for ours, theirs in zip(found, expected, strict=True):
        if not same_bits(ours, theirs):
            raise Wrong("outputs differ", distance(ours, theirs))


@contextlib.contextmanager
def activations_of(model, dense):
    """Lets linear layers of the dense model quantize their inputs as those of the loaded one do."""
    from compressed_tensors.quantization.lifecycle.forward import forward_quantize

    hooks = []
    for name, module in model.named_modules():
        scheme = getattr(module, "quantization_scheme", None)
        if scheme is not None and scheme.input_activations is not None:
            def quantize(layer, given, scheme=scheme, module=module):
                return (forward_quantize(module, given[0], "input", scheme.input_activations), *given[1:])
            hooks.append(dense.get_submodule(name).register_forward_pre_hook(quantize))
    yield
    for hook in hooks:
        hook.remove()


def check_on_accelerator(model_class, folder, dense_folder):
    """What transformers does where it finds a GPU: codes and scales stay as they are, in modules of its own."""
    with mock.patch.object(FineGrainedFP8HfQuantizer, "validate_environment", lambda *_, **__: None):
        model = load(model_class, folder, device_map={"": "cpu"})
    found = dict(model.state_dict())
    for path, module in model.named_modules():
        if isinstance(module, (FP8Linear, FP8Experts)):
            names = ["weight"] if isinstance(module, FP8Linear) else ["gate_up_proj", "down_proj"]
            for name in names:
                codes, scale = getattr(module, name), getattr(module, f"{name}_scale_inv")
                if codes.dtype != torch.float8_e4m3fn:
                    raise Wrong("on a GPU: no codes", f"{path}.{name} is {codes.dtype}")
                found[f"{path}.{name}"] = times_blocks(codes, scale, module.block_size).to(torch.bfloat16)
    try:
        compare_weights(found, load(model_class, dense_folder).state_dict())
    except Wrong as wrong:
        raise Wrong(f"on a GPU: {wrong.kind}", str(wrong).removeprefix(f"{wrong.kind}: "), wrong.names) from None


def times_blocks(codes, scale, block):
    """Codes times the scale of their block, the last blocks of rows and columns cut off."""
    scale = scale.float()
    if scale.ndim >= 2:
        rows, columns = block or (codes.shape[-2] // scale.shape[-2], codes.shape[-1])
        scale = scale.repeat_interleave(rows, -2).repeat_interleave(columns, -1)
        scale = scale[..., :codes.shape[-2], :codes.shape[-1]]
    return codes.float() * scale
