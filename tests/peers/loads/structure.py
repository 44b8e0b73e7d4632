"""Which layers a model has and under which names its file has them, told from the loaded model itself."""

import inspect

import torch
from torch import nn

import controls
import loading


def of(model, folder):
    """The tensors of the folder by the kind of layer that takes them, and names that differ between file and memory."""
    files, memory = controls.tensors_of(folder), model.state_dict(keep_vars=True)
    owners = {name: model.get_submodule(name.rpartition(".")[0]) for name in memory}
    found, parts = places(files, memory)
    facts = {"linear": [], "embedding": [], "other": [], "classes": {}, "memory": {}, "unplaced": []}
    for name in files:
        place = found.get(name)
        if place is None:
            facts["unplaced"].append(name)
            continue
        owner = owners[place]
        kind = "linear" if isinstance(owner, nn.Linear) else "embedding" if isinstance(owner, nn.Embedding) else "other"
        facts[kind].append(name)
        facts["classes"][name] = type(owner).__name__
        if place != name:
            facts["memory"][name] = place
    linear = [path for path, layer in model.named_modules(remove_duplicate=False) if isinstance(layer, nn.Linear)]
    taken = {*found.values(), *parts}
    facts["tied"] = [path for path in linear if f"{path}.weight" not in taken]
    facts["file_to_memory"] = {name.rpartition(".")[0]: place.rpartition(".")[0]
                               for name, place in facts.pop("memory").items()}
    # For every linear layer the layer of the file that it comes from.
    names = {place: name for name, place in found.items()}
    names = {**parts, **names}
    facts["linear_modules"] = {path: names.get(f"{path}.weight", f"{path}.weight").rpartition(".")[0] for path in linear}
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    facts["head"] = [path for path in linear if model.get_submodule(path) is head]
    facts["keep_in_fp32"] = sorted({*(model._keep_in_fp32_modules or ()), *(model._keep_in_fp32_modules_strict or ())})
    return facts


def places(files, memory):
    """For each tensor of the file the parameter in memory that holds its values, whole or as rows or columns; and for
    parameters that are a part of a tensor of the file that tensor."""
    whole, rows, given = {}, {}, {content(item) for item in files.values()}
    for name, item in memory.items():
        whole.setdefault(content(item), []).append(name)
        if item.ndim > 1 and content(item) not in given:
            item = item.detach()
            for line in (*item.reshape(-1, item.shape[-1]), *item.transpose(-1, -2).reshape(-1, item.shape[-2])):
                if line.numel() > 7:
                    rows.setdefault(content(line), name)
    found = {}
    for name, item in files.items():
        same = whole.get(content(item))
        if same:
            found[name] = name if name in same else closest(name, same)
        elif item.ndim > 1:
            lines = (item.reshape(-1, item.shape[-1])[0], item.transpose(-1, -2).reshape(-1, item.shape[-2])[0])
            found[name] = next((rows[content(line)] for line in lines if content(line) in rows), None)
    # What is left is the file's part of a tensor that was split or joined in one dimension, such as biases.
    parts = {value: name for name, item in memory.items() if item.ndim == 1
             for value in [content(item.detach()[:8])] if len(item) >= 8}
    for name, item in files.items():
        if found.get(name) is None and item.numel() >= 8:
            found[name] = parts.get(content(item.flatten()[:8]))
    # The other way: parameters that are rows of a tensor of the file, whose first such parameter stands for it.
    begins, parts = {}, {}
    for name, item in files.items():
        if content(item) not in whole and item.ndim > 1:
            begins.update((content(line), name) for line in item.reshape(-1, item.shape[-1]))
    for place, item in memory.items():
        if item.ndim > 1 and content(item) not in given:
            name = begins.get(content(item.detach().reshape(-1, item.shape[-1])[0]))
            if name:
                parts[place] = name
                found[name] = found.get(name) or place
    return {name: place for name, place in found.items() if place}, parts


def closest(name, places):
    return max(places, key=lambda place: sum(a == b for a, b in zip(reversed(name), reversed(place))))


def content(item):
    return loading.bits(item.to(torch.bfloat16)).numpy().tobytes()


def inputs(model):
    """The first of some usual inputs with which the model gives the same finite outputs twice, or None."""
    for given in candidates(model):
        try:
            first, second = loading.run(model, given), loading.run(model, given)
        except loading.Wrong:
            continue
        finite = all(bool(torch.isfinite(item).all()) for item in first)
        if first and finite and all(map(loading.same_bits, first, second)):
            return given
    return None


def candidates(model):
    """Tokens, images, sound and its features, of sizes that the configuration names."""
    taken, config = inspect.signature(model.forward).parameters, values(model.config)

    def size(default, *keys):
        return next((config[key] for key in keys if type(config.get(key)) is int), default)

    def draw(*shape):
        return torch.randn(shape, generator=torch.Generator().manual_seed(1))

    tokens = torch.arange(3, 27).reshape(2, 12) * 7 % 480
    sides = config.get("image_size") or config.get("input_size") or config.get("img_size") or 64
    image = draw(1, size(3, "num_channels", "in_channels", "in_chans"), *(sides[:2] if isinstance(sides, list | tuple)
                                                                        else (sides, sides)))
    sound, frames = draw(1, 8000), 2 * size(32, "max_source_positions")
    mels = size(80, "num_mel_bins", "feature_size", "input_feat_per_channel", "input_dim")
    more = {"decoder_input_ids": tokens[:1, :5]} if "decoder_input_ids" in taken else {}
    tries = [dict(input_ids=tokens, decoder_input_ids=tokens[:, :5]), dict(input_ids=tokens), dict(pixel_values=image),
             dict(pixel_values=image, input_ids=tokens[:1]), dict(pixel_values=image, **more),
             dict(pixel_values=image[None].repeat(1, 8, 1, 1, 1)), dict(input_values=sound, **more),
             dict(input_values=sound[None]), dict(audio_values=sound[None]), dict(input_values=draw(1, 1024, mels)),
             dict(input_features=draw(1, mels, frames), **more), dict(input_features=draw(1, 64, mels), **more),
             dict(inputs_embeds=draw(1, 8, size(256, "hidden_size")))]
    return [given for given in tries if all(name in taken for name in given)]


def values(config):
    """A configuration's values and, where it has none of the name, those of its parts."""
    found = {}
    for key, value in vars(config).items():
        if hasattr(value, "to_dict"):
            for inner, item in values(value).items():
                found.setdefault(inner, item)
    return {**found, **{key: value for key, value in vars(config).items() if value is not None}}
