"""A small model with random weights of every model type that transformers registers, made from its configuration."""

import importlib
import inspect
import json
import re

import torch
from torch import nn
from transformers import CONFIG_MAPPING, GenerationConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import model_type_to_module_name

# Heads, the one that people publish first.
HEADS = ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "SPEECH_SEQ_2_SEQ", "SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM", "CAUSAL_LM",
         "PRETRAINING", "CTC", "RNNT", "TDT", "OBJECT_DETECTION", "ZERO_SHOT_OBJECT_DETECTION", "UNIVERSAL_SEGMENTATION",
         "SEMANTIC_SEGMENTATION", "IMAGE_SEGMENTATION", "DEPTH_ESTIMATION", "ZERO_SHOT_IMAGE_CLASSIFICATION", "IMAGE_CLASSIFICATION",
         "VIDEO_CLASSIFICATION", "TEXT_TO_WAVEFORM", "TEXT_TO_SPECTROGRAM", "AUDIO_CLASSIFICATION",
         "VISUAL_QUESTION_ANSWERING", "QUESTION_ANSWERING", "TEXT_RECOGNITION", "TABLE_RECOGNITION", "MASK_GENERATION",
         "KEYPOINT_DETECTION", "KEYPOINT_MATCHING", "TIME_SERIES_PREDICTION", "IMAGE_TO_IMAGE", "POSE_ESTIMATION")
# Further heads of types that have been built with another one.
MORE_HEADS = ("BertForSequenceClassification", "BertModel", "BertForNextSentencePrediction", "BartForConditionalGeneration",
              "MBartForConditionalGeneration", "PegasusForConditionalGeneration", "MarianMTModel", "LlamaModel",
              "LlamaForSequenceClassification", "MistralModel", "Qwen2ForSequenceClassification", "Qwen3Model",
              "Qwen3ForTokenClassification", "Gemma2ForSequenceClassification", "GPTNeoXModel", "T5EncoderModel",
              "RobertaForSequenceClassification", "XLMRobertaModel", "XLMRobertaForTokenClassification",
              "DebertaV2ForSequenceClassification", "ModernBertForSequenceClassification", "CLIPVisionModelWithProjection",
              "Wav2Vec2ForSequenceClassification", "DPRContextEncoder", "BlenderbotForConditionalGeneration")
# Where the first of the classes listed takes another configuration.
CLASSES = {"musicgen": "MusicgenForConditionalGeneration", "musicgen_melody": "MusicgenMelodyForConditionalGeneration"}
# Keys whose values are not sizes of matrices, or follow from others.
WIDTH = re.compile(r"(^|_)(dims?|widths?|(d|n)_?(model|ff|kv|embd|inner)|rank|channels|features|(?<!\w)\w*(hidden|embed\w*|intermediate|ffn|"
                   r"inner|projection|proj|output|mlp|model|bottleneck|adapter|pooler|entity_emb|expert|layers?)_size|embd)$")
NOT_WIDTH = re.compile(r"image|patch|kernel|window|chunk|block|codebook|conv|num_channels|^in_|temporal|grid|mel|"
                       r"input_(channels|dim)|in_channels|group|time|freq|rotary_dim|rope|gate_logit|per_head")
TOKEN = re.compile(r"(token|tokens)_(id|ids|index)$|^(bos|eos|pad|sep|cls|mask|unk)_\w*(id|index)$|_(id|idx|index)$")
LAYERS = re.compile(r"(layers?|blocks|depth|n_layer|num_layers|layers_count)$")
NOT_LAYERS = re.compile(r"dense|kv_shared|out_|every|interval|from|to_|selected|per|skip|period|first|last|^num_feat|conv_|"
                        r"input_proj|return|feature|drop|idx|mtp|nextn|scale|norm|init|(?<!num_hidden_)layers_block")
HEAD_COUNTS = re.compile(r"((?<!d_)heads?|num_key_value_heads|n_head|num_heads)$")
EXPERTS = re.compile(r"(num|n)_\w*experts?$|^num_experts\w*$|moe_num_experts")
WIDE, HEAD = 256, 64
# Values for keys that checkpoints have and classes leave out; keys that follow from others.
ABSENT = {"n_routed_experts": 4, "shared_expert_intermediate_size": 128, "num_local_experts": 4, "head_dim": 64, "n_shared_experts": 1, "decoder_hidden_size": 128}
FOLLOWS = ("out_features", "stage_names")
COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
DEPTHS = ("depths", "layer_depths", "num_block_repeats", "stage_numb_of_layers")


class Unbuilt(Exception):
    """Why there is no model."""


def heads_of(kind):
    """The class to build for a model type: one with a head if there is one."""
    if kind in CLASSES:
        return CLASSES[kind]
    for task in HEADS:
        if name := getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES").get(kind):
            return name if isinstance(name, str) else name[0]
    name = modeling_auto.MODEL_MAPPING_NAMES.get(kind)
    if name is None:
        name = unlisted(kind)
    return name if isinstance(name, str) else name[0]


def unlisted(kind):
    """A class of the type's module that takes its configuration: the automatic classes do not list every one."""
    config = CONFIG_MAPPING[kind]
    package = config.__module__.rpartition(".")[0]
    stem = config.__module__.rpartition(".")[2].replace("configuration_", "modeling_")
    found = [name for name, item in vars(module(f"{package}.{stem}")).items()
             if inspect.isclass(item) and issubclass(item, PreTrainedModel) and item.config_class is config
             and not name.endswith("PreTrainedModel")]
    if not found:
        raise Unbuilt("no class of a model takes the configuration")
    return max(found, key=lambda name: ("For" in name, name.endswith("Model"), -len(name)))


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unbuilt(f"ImportError: {error}") from None


def class_of(kind, name):
    """The class called `name`, from the module of the type or anywhere else in transformers."""
    import transformers

    config = CONFIG_MAPPING[kind]
    stem = config.__module__.replace("configuration_", "modeling_")
    found = getattr(transformers, name, None) or getattr(module(stem), name, None)
    if found is None:
        raise Unbuilt(f"no class {name}")
    return found


def all_of():
    """Every model to be built: its name, its type and its class (None: `heads_of` chooses)."""
    known = {kind: (kind, None) for kind in CONFIG_MAPPING}
    owners = {}
    for table in vars(modeling_auto).items():
        if table[0].endswith("_MAPPING_NAMES"):
            for kind, names in table[1].items():
                for name in [names] if isinstance(names, str) else names:
                    owners.setdefault(name, kind)
    known.update({f"{owners[name]}@{name}": (owners[name], name) for name in MORE_HEADS if name in owners})
    return known


def shrunk(given, level, config_class, widest=None):
    """A configuration's values with every size made small. Higher levels leave more as it is."""
    widest = widest or max([value for key, value in sizes(given) if re.search(r"(hidden_size|d_model|n_embd|dim)$", key)],
                           default=WIDE)
    layers = None if "depths" in given else next((given[key] for key in COUNTS if isinstance(given.get(key), int)), None)
    stages = len(given.get("out_indices") or ())
    picked = representatives(given, layers, stages)
    defaults = {field: spec.default for field, spec in getattr(config_class, "__dataclass_fields__", {}).items()}
    made = {}
    for key, value in given.items():
        if key in ("transformers_version", "dtype", "architectures", "_name_or_path", "id2label", "label2id"):
            continue
        if not isinstance(key, str):
            made[key] = value
        elif key == "out_indices" and layers:
            made[key] = list(range(1, stages + 1))
        elif key == "per_layer_config":
            made[key] = {picked.index(int(index)): shrunk(item, level, None, widest) for index, item in value.items()
                         if int(index) in picked}
        elif isinstance(value, dict):
            inner = CONFIG_MAPPING[value["model_type"]] if value.get("model_type") in CONFIG_MAPPING else None
            made[key] = shrunk(value, level, inner, widest) if inner or "hidden_size" in value else rotary(value, level)
        elif key in DEPTHS and isinstance(value, list):
            made[key] = [min(item, 2) if type(item) is int else item for item in value]
        elif value is None and key in ABSENT:
            made[key] = ABSENT[key]
        elif (key in FOLLOWS and layers or defaults.get(key, value) is None and not isinstance(value, list)) and level < 3:
            continue  # follows from other keys
        elif isinstance(value, list) and layers and len(value) == layers and layers > 2:
            made[key] = [value[index] for index in picked]
            if value and isinstance(value[0], int) and not isinstance(value[0], bool):
                made[key] = [number(key, item, given, level, widest, len(picked)) for item in made[key]]
        elif isinstance(value, list) and value and all(type(item) is int for item in value) and TOKEN.search(key):
            made[key] = [number(key, item, given, level, widest, len(picked)) for item in value]
        elif type(value) is int:
            made[key] = number(key, value, given, level, widest, len(picked))
        else:
            made[key] = value
    return made


def sizes(given):
    for key, value in given.items():
        if isinstance(value, dict):
            yield from sizes(value)
        elif type(value) is int and isinstance(key, str):
            yield key, value


def rotary(value, level):
    """Positions of several axes have parts that fill half of a head."""
    if level == 0 and isinstance(value.get("mrope_section"), list):
        return {**value, "mrope_section": [8, 12, 12]}
    return {key: rotary(item, level) if isinstance(item, dict) else item for key, item in value.items()}


def representatives(given, layers, least):
    """The layers that stay: two or more, every kind among them."""
    lists = [value for value in given.values() if isinstance(value, list) and len(value) == layers
             and value and isinstance(value[0], str)]
    rows = list(zip(*lists)) if lists else [()] * (layers or 2)
    firsts = sorted({rows.index(row) for row in rows})[:4]
    others = [index for index in range(len(rows)) if index not in firsts]
    return sorted([*firsts, *others][:max(2, least, len(firsts))])


def number(key, value, given, level, widest, layers):
    """What becomes of one number."""
    if "vocab" in key and value > 512:
        return 512
    if TOKEN.search(key):
        return value if 0 <= value < 500 else 511 - sum(map(ord, key)) % 11 if value > 0 else value
    if re.search(r"max_\w*position\w*|n_positions|n_ctx|max_\w*length", key) and value > 128 and level < 2:
        return 128 if level == 0 else 512
    if LAYERS.search(key) and not ("depths" in given and key in COUNTS) and not NOT_LAYERS.search(key) and value > layers:
        return layers if key in COUNTS else 2
    if re.search(r"first_k_dense|num_dense_layers|n_dense_layers", key) and value >= 1:
        return 1
    if EXPERTS.search(key) and not re.search(r"tok|shared|zero|group|activated|top|null|limited", key) and value > 4:
        return 4
    if re.search(r"experts_per_tok|(moe_|experts?_)top_?k|num_selected_experts|num_experts_per_token|moe_k$", key) and value > 2:
        return 2
    if re.search(r"^n_group$|num_expert_group", key):
        return min(value, 2)
    if key in ("topk_group", "num_limited_groups"):
        return 1
    if level >= 2:
        return value
    if level == 0 and re.search(r"mamba_(n|num)_heads", key):
        return 2 * WIDE // HEAD
    if HEAD_COUNTS.search(key) and level == 0:
        return heads(key, value, given, widest)
    if level == 0 and (WIDTH.search(key) and not NOT_WIDTH.search(key) or key in ("upsample_groups", "mamba_d_ssm")):
        return width(key, value, widest)
    if level == 1 and value > 1024 and re.search(r"intermediate|ffn|mlp", key):
        return 1024
    return value


def width(key, value, widest):
    if "head_dim" in key:
        return min(value, HEAD)
    if value <= 64:
        return value
    if value > widest:
        return min(2 * WIDE, -(-value * WIDE // widest // 128) * 128)
    return max(64 if value < 128 else 128, -(-value * WIDE // widest // 64) * 64) if value < widest else WIDE


def heads(key, value, given, widest):
    """As many heads as the shrunk width has room for; fewer of keys and values if there were fewer."""
    side = re.sub(r"(attention_heads|heads?|num_heads)$", "", key).removesuffix("num_")
    whole = next((given[name] for name in (f"{side}hidden_size", "hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim")
                  if isinstance(given.get(name), int)), None)
    if whole is None:
        return min(value, 4)
    own = given.get("head_dim")
    count = max(1, width("", whole, widest) // (min(own, HEAD) if type(own) is int and own * value == whole else HEAD))
    queries = max([number for name, number in given.items() if HEAD_COUNTS.search(name) and type(number) is int], default=value)
    if value < queries and re.search(r"key_value|kv", key):
        return max(1, count // 2)
    return count if value >= count else value


# What a type's configuration needs beside that.
OVERRIDES = {
    "autoformer": {"prediction_length": 8}, "informer": {"prediction_length": 8},
    "time_series_transformer": {"prediction_length": 8},
    "chameleon": {"vocabulary_map": {"<image>": 500}}, "emu3": {"vocabulary_map": {"<image>": 500}},
    "pix2struct_text_model": {"initializer_range": 0.02}, "wav2vec2-bert": {"vocab_size": 512},
    "beit": {"num_hidden_layers": 4, "out_indices": [1, 2, 3, 4]},
    "data2vec-vision": {"num_hidden_layers": 4, "out_indices": [1, 2, 3, 4]},
    "lfm2_moe": {"layer_types": ["full_attention", "conv"], "num_dense_layers": 1}, "esm": {"vocab_size": 512, "pad_token_id": 0, "mask_token_id": 5},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense", "sparse"]},
    "deepseek_ocr2": {"text_config": {"mlp_layer_types": ["dense", "sparse"]}},
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2}},
    "cohere_compass_text": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 10000.0}}},
    "cohere_compass": {"text_config": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 10000.0}}}},
    "gemma3n_text": {"num_kv_shared_layers": 0}, "gemma3n": {"text_config": {"num_kv_shared_layers": 0}},
    "molmo2": {"adapter_config": {"vision_feature_layer": [1, 0]}},
    "moonshine_streaming": {"num_key_value_heads": 4}, "hiera": {"decoder_depth": 2, "decoder_num_heads": 2, "decoder_hidden_size": 128},
    "nemotron_h_omni": {"vision_config": {"video_temporal_patch_size": 2}},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 128},
    "qwen3_omni_moe": {"talker_config": {"text_config": {"shared_expert_intermediate_size": 128}}},
    "t5gemma2_text": {"dropout_rate": 0.0}, "t5gemma2_decoder": {"dropout_rate": 0.0},
    "t5gemma2_encoder": {"text_config": {"dropout_rate": 0.0}},
    "ernie4_5_vl_moe_text": {"rope_parameters": {"mrope_section": [11, 11, 10]}},
    "ernie4_5_vl_moe": {"text_config": {"rope_parameters": {"mrope_section": [11, 11, 10]}}},
    "wavtokenizer": {"hidden_size": 512}, "wavtokenizer_encoder": {"hidden_size": 512},
    "diffusion_gemma_text": {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 128},
    "diffusion_gemma": {"text_config": {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 128}},
    "granite4_vision": {"deepstack_layer_map": [[0, 0], [1, 1]], "downsample_rate": "4/8"},
    "dory": {"num_hidden_layers": 8, "layer_types": ["sliding_attention", "mlp", "full_attention", "mlp"] * 2},
    "dots3_note_text": {"head_dim": 128}, "dots3_note_audio_encoder": {"adapter_input_size": 256},
    "dots3_note": {"text_config": {"head_dim": 128}, "audio_config": {"adapter_input_size": 128}},
    "gemma4_assistant": {"text_config": {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0, "num_kv_shared_layers": 0}},
    "gemma4_unified_assistant": {"text_config": {"num_kv_shared_layers": 0}},
    "qwen4_exp_text": {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 64, "indexer_budget": 16, "indexer_compress_ratio": 4}, "qwen4_exp": {"text_config": {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 64, "indexer_budget": 16, "indexer_compress_ratio": 4}},
    "mamba2": {"num_heads": 8}, "falcon_h1": {"mamba_d_ssm": 512, "mamba_n_heads": 8, "mamba_d_head": 64},
    "nemotron": {"num_key_value_heads": 2, "head_dim": 64, "n_shared_experts": 1, "decoder_hidden_size": 128},
    "efficientnet": {"width_coefficient": 0.5, "depth_coefficient": 0.5, "hidden_dim": 640},
    "align": {"vision_config": {"width_coefficient": 0.5, "depth_coefficient": 0.5, "hidden_dim": 640}},
    "align_vision_model": {"width_coefficient": 0.5, "depth_coefficient": 0.5, "hidden_dim": 640},
}


def configuration(kind, level):
    config_class = CONFIG_MAPPING[kind]
    try:
        given = config_class().to_dict()
    except Exception:
        given = config_class(**OVERRIDES.get(kind, {})).to_dict()
    made = merged(shrunk(given, level, config_class), OVERRIDES.get(kind, {}))
    made.pop("model_type", None)
    return config_class(**made)


def merged(base, changes):
    out = dict(base)
    for key, value in changes.items():
        out[key] = merged(out.get(key) or {}, value) if isinstance(value, dict) and isinstance(out.get(key, {}), dict) else value
    return out


LARGEST = (48e6, 48e6, 48e6, 48e6)


def build(kind, name, folder):
    """Writes the checkpoint in bf16: every parameter random, none as the class would start with."""
    reasons = []
    try:
        model_class = class_of(kind, name or heads_of(kind))
    except Exception as error:
        raise Unbuilt(f"{type(error).__name__}: {error}") from None
    for level, largest in enumerate(LARGEST):
        try:
            config = configuration(kind, level)
            with torch.device("meta"):
                count = sum(item.numel() for item in model_class(config).parameters())
        except Exception:
            count = None  # not every class can be made without storage
        try:
            if count is not None and count > largest:
                raise Unbuilt(f"{count / 1e6:.0f} million parameters")
            config = configuration(kind, level)
            torch.manual_seed(sum(map(ord, kind)))
            model = model_class(config)
            count = sum(item.numel() for item in model.parameters())
            if count > largest:
                raise Unbuilt(f"{count / 1e6:.0f} million parameters")
            model = model.to(torch.bfloat16).eval()
            fill(model)
            if getattr(model, "generation_config", None) is not None:
                model.generation_config = GenerationConfig()
            model.save_pretrained(folder)
            return model, level
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {' '.join(str(error).split())[-200:]}")
    raise Unbuilt(" | ".join(dict.fromkeys(reasons)))


def fill(model):
    """Random values, near 1 where a norm multiplies by them; buffers that a checkpoint has too, if they are all 0."""
    with torch.no_grad():
        for path, item in model.named_parameters():
            spread = 0.02 if item.ndim > 1 else 0.1
            item.copy_(torch.randn(item.shape) * spread + (1 if item.ndim == 1 and "norm" in path.lower() and "bias" not in path else 0))
        saved = model.state_dict().keys()
        for path, item in model.named_buffers():
            if path in saved and item.is_floating_point() and not bool(item.any()):
                item.copy_(torch.randn(item.shape) * 0.1)
