"""A small model with random weights of every model type that transformers registers."""

import importlib
import inspect

import torch
import transformers
from transformers import CONFIG_MAPPING, GenerationConfig, PreTrainedModel
from transformers.models.auto import modeling_auto

import configurations
from configurations import TABLES

LARGEST = 48_000_000


class Unbuilt(Exception):
    """Why there is no model."""


def all_of():
    """Every model to be built: by its name its type, and its class where it is not the type's first."""
    listed = [(name, kind) for table, rows in vars(modeling_auto).items() if table.endswith("_MAPPING_NAMES")
              for kind, names in rows.items() for name in ([names] if isinstance(names, str) else names)]
    kinds_of = dict(reversed(listed))
    return {**{kind: (kind, None) for kind in CONFIG_MAPPING},
            **{f"{kinds_of[name]}@{name}": (kinds_of[name], name) for name in TABLES["heads"] if name in kinds_of}}


def class_of(kind, name=None):
    """The class of a type called `name`, or the one to build: with a head if there is one."""
    config = CONFIG_MAPPING[kind]
    rows = [getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES") for task in TABLES["tasks"]]
    names = name or TABLES["classes"].get(kind) or \
        next((row[kind] for row in (*rows, modeling_auto.MODEL_MAPPING_NAMES) if kind in row), None)
    if names:
        name = names if isinstance(names, str) else names[0]
        if hasattr(transformers, name):
            return getattr(transformers, name)
    module = importlib.import_module(config.__module__.replace("configuration_", "modeling_"))
    if name:
        return getattr(module, name)
    # The automatic classes do not list every one.
    found = [item for item in vars(module).values() if inspect.isclass(item) and issubclass(item, PreTrainedModel)
             and item.config_class is config and not item.__name__.endswith("PreTrainedModel")]
    if not found:
        raise Unbuilt("no class of a model takes the configuration")
    return max(found, key=lambda item: ("For" in item.__name__, item.__name__.endswith("Model"), -len(item.__name__)))


def build(kind, name, folder):
    """Writes the checkpoint in bf16: every parameter random, none as the class would start with."""
    reasons = []
    for narrow in (True, False):
        try:
            model = made(class_of(kind, name), kind, narrow)
            model.save_pretrained(folder)
            return model
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {' '.join(str(error).split())[-200:]}")
    raise Unbuilt(" | ".join(dict.fromkeys(reasons)))


def made(model_class, kind, narrow):
    with torch.device("meta"):
        try:
            count = parameters(model_class(configurations.small(kind, narrow)))
        except RuntimeError:
            count = 0  # not every class can be made without storage
    if count < LARGEST:
        torch.manual_seed(sum(map(ord, kind)))
        model = model_class(configurations.small(kind, narrow)).to(torch.bfloat16).eval()
        count = parameters(model)
    if count > LARGEST:
        raise Unbuilt(f"{count / 1e6:.0f} million parameters")
    fill(model)
    if getattr(model, "generation_config", None) is not None:
        model.generation_config = GenerationConfig()
    return model


def parameters(model):
    return sum(item.numel() for item in model.parameters())


def fill(model):
    """Random values, near 1 where a norm multiplies by them; also in buffers of the file that are all 0."""
    with torch.no_grad():
        for path, item in model.named_parameters():
            factor = item.ndim == 1 and "norm" in path.lower() and "bias" not in path
            item.copy_(torch.randn(item.shape) * (0.02 if item.ndim > 1 else 0.1) + factor)
        saved = model.state_dict().keys()
        for path, item in model.named_buffers():
            if path in saved and item.is_floating_point() and not bool(item.any()):
                item.copy_(torch.randn(item.shape) * 0.1)
