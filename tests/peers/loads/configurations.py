"""Configurations of any model type with every size made small."""

import pathlib
import re
import tomllib

from transformers import CONFIG_MAPPING

TABLES = tomllib.loads(pathlib.Path(__file__).with_name("kinds.toml").read_text())
# The largest width, and that of a head; other widths keep their order.
WIDE, HEAD = 256, 64
WIDTH = re.compile(r"(^|_)(dims?|widths?|[dn]_?(model|ff|kv|embd|inner)|embd|rank|channels|features)$|"
                   r"(hidden|embed\w*|intermediate|ffn|inner|proj(ection)?|output|mlp|model|bottleneck|adapter|pooler|"
                   r"entity_emb|expert|layers?)_size$|^(upsample_groups|mamba_d_ssm)$")
NOT_WIDTH = re.compile(r"image|patch|kernel|window|chunk|block|codebook|conv|num_channels|^in_|input_(channels|dim)|"
                       r"in_channels|temporal|grid|mel|(?<!upsample_)group|time|freq|rotary_dim|rope|gate_logit|per_head")
TOKEN = re.compile(r"tokens?_(ids?|index)$|_(id|idx|index)$")
LAYERS = re.compile(r"(layers?|blocks|depth|layers_count)$")
NOT_LAYERS = re.compile(r"dense|kv_shared|out_|every|interval|from|to_|selected|per|skip|period|first|last|^num_feat|"
                        r"conv_|input_proj|return|feature|drop|idx|mtp|nextn|scale|norm|init|layers_block")
HEADS = re.compile(r"(?<!d_)heads?$")
EXPERTS = re.compile(r"(num|n)_\w*experts?$|^num_experts")
NOT_EXPERTS = re.compile(r"tok|shared|zero|group|activated|top|null|limited")
CHOSEN = re.compile(r"experts_per_tok|(moe_|experts?_)top_?k|num_selected_experts|moe_k$")
COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
WHOLE = ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim")
# Lists of numbers of layers; keys that follow from others; keys of no use here.
DEPTHS = ("depths", "layer_depths", "num_block_repeats", "stage_numb_of_layers")
FOLLOWS = ("out_features", "stage_names")
LEFT_OUT = ("transformers_version", "dtype", "architectures", "_name_or_path", "id2label", "label2id")


def small(kind, narrow):
    """The configuration of a model type with few layers, tokens and experts; `narrow`: with small widths as well."""
    config_class, changes = CONFIG_MAPPING[kind], TABLES["changes"].get(kind, {})
    try:
        given = config_class().to_dict()
    except Exception:  # the class's own defaults do not go together
        given = config_class(**changes).to_dict()
    made = merged(Shrunk(given, config_class, narrow).values(), changes)
    made.pop("model_type", None)
    return config_class(**made)


def merged(values, changes):
    """The values with the changes in them, dictionaries part by part."""
    return {**values, **{key: merged(values.get(key) or {}, change) if isinstance(change, dict) else change
                         for key, change in changes.items()}}


class Shrunk:
    """The values of one configuration, or of a part of one, made small."""

    def __init__(self, given, config_class, narrow, widest=None):
        self.given, self.narrow = given, narrow
        fields = getattr(config_class, "__dataclass_fields__", {})
        self.defaults = {name: field.default for name, field in fields.items()}
        self.widest = widest or max([value for key, value in numbers(given)
                                     if re.search(r"(hidden_size|d_model|n_embd|dim)$", key)], default=WIDE)
        counts = [given[key] for key in COUNTS if type(given.get(key)) is int and "depths" not in given]
        self.layers = counts[0] if counts else None
        self.stages = len(given.get("out_indices") or ())
        self.kept = self.representatives()

    def values(self):
        return {key: self.value(key, value) for key, value in self.given.items()
                if key not in LEFT_OUT and not self.follows(key, value)}

    def follows(self, key, value):
        """Whether the class works the value out: keys that it declares without one."""
        if not self.narrow or value is None and key in TABLES["absent"]:
            return False
        return key in FOLLOWS and self.layers or \
            not isinstance(value, list | dict) and self.defaults.get(key, value) is None

    def value(self, key, value):
        if not isinstance(key, str):
            return value
        if value is None:
            return TABLES["absent"].get(key)
        if key == "per_layer_config":
            return {self.kept.index(int(index)): self.part(item, None).values() for index, item in value.items()
                    if int(index) in self.kept}
        if isinstance(value, dict):
            kind = CONFIG_MAPPING[value["model_type"]] if value.get("model_type") in CONFIG_MAPPING else None
            return self.part(value, kind).values() if kind or "hidden_size" in value else self.rotary(value)
        if isinstance(value, list):
            return self.items(key, value)
        return self.number(key, value) if type(value) is int else value

    def part(self, given, config_class):
        return Shrunk(given, config_class, self.narrow, self.widest)

    def items(self, key, value):
        whole = all(type(item) is int for item in value)
        if key == "out_indices" and self.layers:
            return list(range(1, self.stages + 1))
        if key in DEPTHS:
            return [min(item, 2) if type(item) is int else item for item in value]
        if self.layers and self.layers > 2 and len(value) == self.layers:
            return [self.number(key, value[index]) if whole else value[index] for index in self.kept]
        return [self.number(key, item) for item in value] if whole and TOKEN.search(key) else value

    def rotary(self, value):
        """Positions of several axes have parts that fill half of a head."""
        if self.narrow and isinstance(value.get("mrope_section"), list):
            return {**value, "mrope_section": [8, 12, 12]}
        return {key: self.rotary(item) if isinstance(item, dict) else item for key, item in value.items()}

    def representatives(self):
        """The layers that stay: two or more, of four kinds at most."""
        lists = [value for value in self.given.values()
                 if isinstance(value, list) and value and len(value) == self.layers and isinstance(value[0], str)]
        rows = list(zip(*lists)) if lists else [()] * (self.layers or 2)
        firsts = sorted({rows.index(row) for row in rows})[:4]
        others = [index for index in range(len(rows)) if index not in firsts]
        return sorted([*firsts, *others][:max(2, self.stages, len(firsts))])

    def number(self, key, value):
        if "vocab" in key:
            return min(value, 512)
        if TOKEN.search(key):
            return value if value < 500 else 511 - sum(map(ord, key)) % 11
        if LAYERS.search(key) and not NOT_LAYERS.search(key) and value > len(self.kept):
            return value if key in COUNTS and "depths" in self.given else len(self.kept) if key in COUNTS else 2
        if re.search(r"first_k_dense|num_dense_layers|n_dense_layers|^topk_group$|num_limited_groups", key):
            return min(value, 1)
        if EXPERTS.search(key) and not NOT_EXPERTS.search(key):
            return min(value, 4)
        if CHOSEN.search(key) or re.search(r"^n_group$|num_expert_group", key):
            return min(value, 2)
        if not self.narrow:
            return value
        if re.search(r"max_\w*(position|length)|n_positions|n_ctx", key):
            return min(value, 128)
        if re.search(r"mamba_(n|num)_heads", key):
            return 2 * WIDE // HEAD
        if HEADS.search(key):
            return self.heads(key, value)
        stem = key == "embed_dim" and isinstance(self.given.get("num_heads"), list)  # of heads that double
        if WIDTH.search(key) and not NOT_WIDTH.search(key) and not stem:
            return min(value, HEAD) if "head_dim" in key else self.width(value)
        return value

    def width(self, value):
        if value <= 64:
            return value
        scaled = value * WIDE / self.widest
        if value > self.widest:
            return min(2 * WIDE, -int(-scaled // 128) * 128)
        return max(64 if value < 128 else 128, -int(-scaled // 64) * 64)

    def heads(self, key, value):
        """As many heads as the new width has room for; fewer of keys and values if there were fewer."""
        side = re.sub(r"(attention_)?heads?$", "", key).removesuffix("num_")
        wholes = [self.given[name] for name in (f"{side}hidden_size", *WHOLE) if type(self.given.get(name)) is int]
        if not wholes:
            return min(value, 4)
        whole = wholes[0]
        own = self.given.get("head_dim")
        count = max(1, self.width(whole) // (min(own, HEAD) if type(own) is int and own * value == whole else HEAD))
        queries = max([number for name, number in self.given.items() if type(number) is int and HEADS.search(name)])
        return max(1, count // 2) if value < queries and "kv" in key.replace("key_value", "kv") else min(count, value)


def numbers(given):
    for key, value in given.items():
        if isinstance(value, dict):
            yield from numbers(value)
        elif type(value) is int and isinstance(key, str):
            yield key, value
