"""Tiny models of every type that truecast writes for llama.cpp, made by transformers, each with its own tokenizer.

    folder = write(MODELS["llama"], parent)

Weights are random and not small: norms, biases and attention sinks differ from their initial values, so that a tensor
that is lost or misplaced changes the logits.
"""

import inspect
import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import sentencepiece
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers, processors, trainers

TABLE = Path(__file__).resolve().parents[3] / "crates/truecast/src/files/convert/llamacpp/pre_tokenizers.json"
# llama.cpp's names of pre-tokenizers, and what they are in `tokenizer.json`.
PRE_TOKENIZERS = {row["name"]: row["steps"] for row in json.loads(TABLE.read_text())}
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
TEXT = (
    "The harbour's ferry left at 7:45, wasn't full, and I'M NOT SURE they'll be back before 12345 nights.\n\n  Ünï"
    "code, 日本語のテキスト, Привет мир; 3.14159 + 2 = x\t(tabs)  \r\n and   spaces 🦙🚀 don't /split/ [here]…"
)


def corpus():
    return [line for module in (json, inspect, tokenizers) for line in inspect.getsource(module).splitlines()] + [TEXT]


def byte_level(folder, pre, specials, bos, size=500, adds_bos=True, config=None):
    """A `tokenizer.json` of bytes, and what transformers keeps beside it."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=pre == "llama-bpe"))
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    steps = PRE_TOKENIZERS[pre]
    digits = pre_tokenizers.Digits(individual_digits=True)
    splits = [digits if step == "Digits" else pre_tokenizers.Split(Regex(step), "isolated")
              for step in steps if step != "ByteLevel"]
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex="ByteLevel" in steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, last]) if splits else last
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet))
    tokenizer.add_special_tokens(specials)
    # One that is not special, and one that has spaces and is not normalized.
    tokenizer.add_tokens([AddedToken("<tool▁call>", normalized=False), "[[note]]"])
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 128, **(config or {})}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False))
    (folder / "chat_template.jinja").write_text(TEMPLATE)


def llama3(folder):
    specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
    names = {"bos_token": specials[0], "eos_token": specials[2], "pad_token": specials[1]}
    byte_level(folder, "llama-bpe", specials, specials[0], config=names)


def qwen(folder):
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    names = {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": False,
             "add_prefix_space": False, "chat_template": TEMPLATE}
    byte_level(folder, "qwen2", specials, None, adds_bos=False, config=names)


def tekken(folder):
    specials = ["<s>", "</s>", "[INST]", "[/INST]"]
    bos = {"__type": "AddedToken", "content": "<s>", "lstrip": False, "rstrip": False, "normalized": False,
           "single_word": False}
    names = {"bos_token": bos, "eos_token": "</s>", "add_prefix_space": False}
    byte_level(folder, "tekken", specials, "<s>", config=names)


def o200k(folder):
    specials = ["<|startoftext|>", "<|endoftext|>", "<|return|>"]
    names = {"bos_token": specials[0], "eos_token": specials[2], "pad_token": specials[1]}
    byte_level(folder, "gpt-4o", specials, None, adds_bos=False, config=names)


def deepseek(folder):
    specials = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"]
    names = {"bos_token": specials[0], "eos_token": specials[1], "pad_token": specials[2], "add_bos_token": True,
             "add_eos_token": False}
    byte_level(folder, "deepseek-v3", specials, specials[0], config=names)


def pieces(folder, **options):
    """A `tokenizer.model` of SentencePiece, as the models of Llama 2 and of Gemma have one."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_prefix=str(folder / "tokenizer"), model_type="bpe", vocab_size=560,
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2,
        **options,
    )
    (folder / "tokenizer.vocab").unlink()


def declare(folder, names, added, **config):
    """`tokenizer_config.json`: names of special tokens, and (id, text, special) of added ones."""
    decoder = {
        str(number): {"content": text, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
                      "special": is_special}
        for number, text, is_special in added
    }
    config = {**config, **names, "added_tokens_decoder": decoder, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False))


def llama2(folder):
    pieces(folder, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>"}
    added = [(0, "<unk>", True), (1, "<s>", True), (2, "</s>", True), (560, "<|im_end|>", False), (561, "a▁b", False)]
    declare(folder, names, added, tokenizer_class="LlamaTokenizer", add_bos_token=True, add_eos_token=False)


def gemma(folder):
    symbols = ["<start_of_turn>", "<end_of_turn>", "\n\n", "▁▁"]
    pieces(folder, pad_id=0, eos_id=1, bos_id=2, unk_id=3, user_defined_symbols=symbols, add_dummy_prefix=False,
           pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>")
    names = {"bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>"}
    added = [(0, "<pad>", True), (1, "<eos>", True), (2, "<bos>", True), (3, "<unk>", True),
             (4, "<start_of_turn>", True), (5, "<end_of_turn>", True), (6, "\n\n", False), (7, "▁▁", False)]
    declare(folder, names, added, tokenizer_class="GemmaTokenizer", add_bos_token=True, add_eos_token=False)


def fallback(folder, pieces_of=llama2):
    """A vocabulary of SentencePiece as the BPE of `tokenizer.json`, as transformers writes it."""
    pieces_of(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for file in folder.iterdir():
        file.unlink()
    tokenizer.save_pretrained(folder)
    assert not (folder / "tokenizer.model").exists()


@dataclass(frozen=True)
class Model:
    name: str
    config: str
    tokenizer: object
    pre: str | None = None
    fields: dict = field(default_factory=dict)
    dtype: torch.dtype = torch.bfloat16
    is_mxfp4: bool = False
    # Whether the converter makes a file of it that llama.cpp loads.
    has_control: bool = True
    # Largest difference of llama.cpp's logits from those of transformers, as a part of the largest logit.
    distance: float = 1e-4


def rope(kind, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **more}}


# llama.cpp's table of GELU is in f16.
GELU = 1e-3
# It multiplies MXFP4 with activations in Q8_0.
BLOCKS = 3e-2
MLA = dict(kv_lora_rank=256, qk_rope_head_dim=32, qk_nope_head_dim=64, v_head_dim=64, num_key_value_heads=4)
MOE = dict(n_routed_experts=8, num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=256)
YARN = dict(factor=4.0, original_max_position_embeddings=64)
# llama.cpp always rounds the dimensions between which YaRN interpolates: `truncate`, which gpt-oss does not.
OSS = dict(num_local_experts=4, num_experts_per_tok=2, intermediate_size=256, sliding_window=8, head_dim=64,
           **rope("yarn", beta_fast=32.0, beta_slow=1.0, truncate=True, **YARN))
GEMMA = dict(head_dim=128, query_pre_attn_scalar=128, sliding_window=8, num_hidden_layers=7)
VISION = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, image_size=28)
ROWS = [
    Model("llama", "LlamaConfig", llama3, "llama-bpe", dtype=torch.float32,
          fields=rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                      original_max_position_embeddings=64)),
    Model("llama_pieces", "LlamaConfig", llama2, fields=dict(tie_word_embeddings=True, num_key_value_heads=4)),
    Model("llama_fallback", "LlamaConfig", fallback, fields=dict(vocab_size=562, **rope("linear", factor=2.0))),
    Model("mistral", "MistralConfig", tekken, "tekken", fields=dict(head_dim=128, sliding_window=None)),
    Model("qwen2", "Qwen2Config", qwen, "qwen2", fields=dict(tie_word_embeddings=True)),
    Model("qwen3", "Qwen3Config", qwen, "qwen2", fields=dict(head_dim=128, **rope("yarn", **YARN))),
    Model("qwen3_moe", "Qwen3MoeConfig", qwen, "qwen2",
          fields=dict(head_dim=64, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=256,
                      norm_topk_prob=True)),
    Model("gemma2", "Gemma2Config", gemma, distance=GELU,
          fields={**GEMMA, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0}),
    Model("gemma3_text", "Gemma3TextConfig", gemma, distance=GELU, fields=GEMMA),
    # A model that also sees, of which the text is written.
    Model("gemma3", "Gemma3Config", gemma, distance=GELU, fields=dict(text_config=GEMMA, vision_config=VISION)),
    Model("gemma3_fallback", "Gemma3TextConfig", partial(fallback, pieces_of=gemma), distance=GELU, has_control=False,
          fields=GEMMA),
    Model("gpt_oss", "GptOssConfig", o200k, "gpt-4o", fields=OSS),
    Model("gpt_oss_mxfp4", "GptOssConfig", o200k, "gpt-4o", distance=BLOCKS, is_mxfp4=True,
          fields={**OSS, "num_experts_per_tok": 4}),
    Model("deepseek_v2", "DeepseekV2Config", deepseek, "deepseek-v3",
          fields=dict(q_lora_rank=256, first_k_dense_replace=1, routed_scaling_factor=1.0, **MLA, **MOE)),
    # llama.cpp knows models without `q_lora_rank` by their 27 layers.
    Model("deepseek_v2_lite", "DeepseekV2Config", deepseek, "deepseek-v3",
          fields=dict(q_lora_rank=None, first_k_dense_replace=1, num_hidden_layers=27,
                      **MLA, **{**MOE, "moe_intermediate_size": 64})),
    Model("deepseek_v3", "DeepseekV3Config", deepseek, "deepseek-v3",
          fields=dict(q_lora_rank=256, first_k_dense_replace=1, n_group=2, topk_group=1, num_nextn_predict_layers=0,
                      scoring_func="sigmoid", **MLA, **MOE,
                      **rope("yarn", beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, **YARN))),
    # llama.cpp aborts with the converter's file, which has as many groups of experts as are taken. Of two experts, Q8_0
    # changes the choice for 2 of 32 tokens.
    Model("deepseek_v3_all_groups", "DeepseekV3Config", deepseek, "deepseek-v3", has_control=False,
          fields=dict(q_lora_rank=256, first_k_dense_replace=1, n_group=2, topk_group=2, num_nextn_predict_layers=0,
                      scoring_func="sigmoid", **MLA, **{**MOE, "num_experts_per_tok": 4})),
]
MODELS = {row.name: row for row in ROWS}
CONTROLLED = [row for row in ROWS if row.has_control]


def marked(folder, pre):
    byte_level(folder, pre, ["<s>", "</s>"], "<s>", config={"bos_token": "<s>", "eos_token": "</s>"})


# One model for each pre-tokenizer.
SPLITTING = [
    Model(pre, "LlamaConfig", partial(marked, pre=pre), pre, fields=dict(num_hidden_layers=1)) for pre in PRE_TOKENIZERS
]
SAMPLING = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [1, 2]}
COMMON = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
              vocab_size=600, max_position_embeddings=256, initializer_range=0.05)


def blocks_of(values):
    """MXFP4 of rows of whole blocks as gpt-oss keeps it: nibbles of neighbors in a byte, one exponent for 32 values."""
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    values = values.float().numpy().reshape(*values.shape[:-1], -1, 32)
    amax = np.abs(values).max(-1, keepdims=True)
    exponent = np.clip(np.floor(np.log2(np.where(amax == 0, 1, amax))) - 2, -127, 127).astype(np.float32)
    codes = np.abs(values[..., None] / np.exp2(exponent)[..., None] - table).argmin(-1).astype(np.uint8)
    back = table[codes] * np.exp2(exponent)
    packed = codes[..., 0::2] | (codes[..., 1::2] << 4)
    scales = (exponent[..., 0] + 127).astype(np.uint8)
    whole = torch.from_numpy(back.reshape(*back.shape[:-2], -1))
    return torch.from_numpy(packed), torch.from_numpy(scales), whole


def randomize(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.dim() == 1 or name.endswith(("_bias", "sinks")):
                value += 0.2 * torch.randn(value.shape, generator=generator)
        for name, value in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                value += 0.2 * torch.randn(value.shape, generator=generator)


def write(row, parent):
    """The folder of a model, as transformers saves it."""
    folder = Path(parent) / "model"
    folder.mkdir(parents=True)
    row.tokenizer(folder)
    torch.manual_seed(7)
    fields = {**COMMON, **special_ids(folder), **row.fields}
    if "text_config" in row.fields:
        common = {name: value for name, value in fields.items() if name not in row.fields}
        fields = {**row.fields, "text_config": {**common, **row.fields["text_config"]}}
    config = getattr(transformers, row.config)(**fields)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager")
    randomize(model, 11)
    model.to(row.dtype).save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps(SAMPLING))
    if row.is_mxfp4:
        quantize(folder)
    return folder


def special_ids(folder):
    """Numbers of special tokens for `config.json`."""
    names = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = {}
    for kind in ("bos", "eos", "pad"):
        token = names.get(f"{kind}_token")
        token = token["content"] if isinstance(token, dict) else token
        ids[f"{kind}_token_id"] = tokenizer.convert_tokens_to_ids(token) if token else None
    return ids


def quantize(folder):
    """Experts of gpt-oss in MXFP4, as OpenAI publishes them."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for name in [name for name in tensors if name.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
        packed, scales, _ = blocks_of(tensors.pop(name).transpose(1, 2))
        tensors[f"{name}_blocks"], tensors[f"{name}_scales"] = packed.contiguous(), scales.contiguous()
    save_file(tensors, path, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    excluded = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": excluded}
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def tokens(row, count=32):
    return np.random.default_rng(3).integers(0, 500, count).tolist()


@torch.no_grad()
def logits(folder, ids):
    """What transformers computes in f32 from the weights of a folder."""
    options = {}
    config = json.loads((folder / "config.json").read_text())
    if "quantization_config" in config:
        options["quantization_config"] = transformers.Mxfp4Config(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", **options
    )
    return model.float().eval()(torch.tensor([ids])).logits[0].float().numpy()
