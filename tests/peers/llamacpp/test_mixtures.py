"""Mixtures of block types beside `llama_model_quantize`: every tensor has the same type and bytes."""

import os
import re
import subprocess
from typing import NamedTuple

import gguf
import ggml_write
import numpy as np
import pytest

# Name, and number of the file type.
MIXTURES = {
    "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_k": 10, "q3_k_s": 11, "q3_k": 12, "q3_k_m": 12,
    "q3_k_l": 13, "q4_k_s": 14, "q4_k": 15, "q4_k_m": 15, "q5_k_s": 16, "q5_k": 17, "q5_k_m": 17, "q6_k": 18,
    "iq4_nl": 25, "iq4_xs": 30, "mxfp4": 38, "mxfp4_moe": 38,
}


class Model(NamedTuple):
    architecture: str = "llama"
    layers: int = 2
    width: int = 256
    ffn: int = 512
    heads: int = 8
    kv_heads: int = 8
    experts: int = 0
    tied: bool = False
    joined: bool = False
    dtype: type = np.float16


MODELS = {
    "llama": Model(layers=18),
    "groups": Model(layers=9, kv_heads=2),
    "tied": Model(tied=True, kv_heads=4, dtype=np.float32),
    "96 columns": Model(width=96, ffn=160, heads=4, kv_heads=4),
    "288 columns": Model(layers=8, width=288, ffn=288, heads=4, kv_heads=1),
    "8 experts": Model(layers=9, experts=8, kv_heads=2),
    "4 experts": Model(layers=9, experts=4),
    "70b": Model(layers=80, kv_heads=2),
    "65b": Model(layers=80),
    "qwen2": Model("qwen2", layers=80),
    "falcon": Model("falcon", layers=20, kv_heads=1, joined=True),
    "phi3": Model("phi3", layers=16, joined=True),
}


def write(path, model):
    random = np.random.default_rng(3)
    writer = gguf.GGUFWriter(path, model.architecture)
    for name, value in {
        "context_length": 128, "embedding_length": model.width, "block_count": model.layers,
        "feed_forward_length": model.ffn, "attention.head_count": model.heads,
        "attention.head_count_kv": model.kv_heads, "rope.dimension_count": model.width // model.heads,
        "expert_count": model.experts, "expert_used_count": min(2, model.experts),
    }.items():
        writer.add_uint32(f"{model.architecture}.{name}", value)
    for name in ("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"):
        writer.add_float32(f"{model.architecture}.{name}", 1e-5)
    tokens = [f"t{i}" for i in range(64)]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 64)
    writer.add_token_types([1] * 64)

    def add(name, *shape):
        dtype = model.dtype if len(shape) > 1 else np.float32
        writer.add_tensor(name, (random.standard_normal(shape) * 0.05).astype(dtype))

    width, ffn, of_kv = model.width, model.ffn, model.width // model.heads * model.kv_heads
    add("token_embd.weight", 64, width)
    if not model.tied:
        add("output.weight", 64, width)
    add("output_norm.weight", width)
    for layer in range(model.layers):
        at = f"blk.{layer}."
        add(at + "attn_norm.weight", width)
        add(at + "ffn_norm.weight", width)
        if model.joined:
            add(at + "attn_qkv.weight", width + 2 * of_kv, width)
        else:
            add(at + "attn_q.weight", width, width)
            add(at + "attn_k.weight", of_kv, width)
            add(at + "attn_v.weight", of_kv, width)
            add(at + "attn_v.bias", of_kv)
        add(at + "attn_output.weight", width, width)
        if model.experts:
            writer.add_tensor(at + "ffn_gate_inp.weight", random.standard_normal((model.experts, width)).astype(np.float32))
            for name, shape in {"gate": (ffn, width), "up": (ffn, width), "down": (width, ffn)}.items():
                add(f"{at}ffn_{name}_exps.weight", model.experts, *shape)
                add(f"{at}ffn_{name}_shexp.weight", *shape)
        else:
            add(at + "ffn_gate.weight", ffn, width)
            add(at + "ffn_up.weight", ffn, width)
            add(at + "ffn_down.weight", width, ffn)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: write(folder / f"{name}.gguf", model) for name, model in MODELS.items()}


def truecast(*arguments):
    command = [os.environ["TRUECAST_BIN"], *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def read(path):
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: (tensor.tensor_type.name, tensor.data.tobytes()) for tensor in reader.tensors}
    return tensors, [int(reader.fields[f"general.{key}"].parts[-1][0]) for key in ("file_type", "quantization_version")]


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("model", MODELS)
def test_mixtures_are_those_of_llama_cpp(model, name, files, tmp_path):
    src = files[model]
    is_made, said = ggml_write.quantize_model(src, tmp_path / "theirs.gguf", MIXTURES[name])
    ran = truecast("quantize", src, tmp_path / "ours.gguf", name)
    if not is_made:
        # No type has smaller blocks than 32; truecast keeps such a tensor.
        assert "no tensor type fallback" in said and "is not quantized" in ran.stderr, said + ran.stderr
        return
    assert ran.returncode == 0, ran.stderr
    ours, theirs = read(tmp_path / "ours.gguf"), read(tmp_path / "theirs.gguf")
    types = lambda tensors: {name: kind for name, (kind, _) in tensors.items()}
    assert types(ours[0]) == types(theirs[0])
    assert ours[1] == theirs[1]
    assert [name for name, tensor in theirs[0].items() if ours[0][name] != tensor] == []


def test_q2_k_s_needs_an_importance_matrix_there(files, tmp_path):
    """llama.cpp does not write it without one. It says the types that it would write, and truecast writes these."""
    for model in ("llama", "groups", "tied", "8 experts", "falcon", "70b"):
        src = files[model]
        is_made, said = ggml_write.quantize_model(src, tmp_path / "theirs.gguf", 21)
        assert not is_made and "requires an imatrix" in said
        is_made, said = ggml_write.quantize_model(src, tmp_path / "theirs.gguf", 21, dry_run=True)
        assert is_made
        ran = truecast("quantize", src, tmp_path / f"{model}.gguf", "q2_k_s")
        assert ran.returncode == 0, ran.stderr
        ours, file_type = read(tmp_path / f"{model}.gguf")
        assert file_type == [21, 2]
        named = re.findall(r"\] *(\S+) +- \[[^]]*\].*->.*\((\w+)\)", said)
        expected = {name: kind.upper() for name, kind in named}
        assert expected and {name: ours[name][0] for name in expected} == expected


def test_a_mixture_needs_llama_cpp_names(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "in.gguf", "flux")
    writer.add_tensor("double_blocks.0.img_attn.proj.weight", np.ones((2, 256), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    ran = truecast("quantize", tmp_path / "in.gguf", tmp_path / "out.gguf", "q4_k_m")
    assert ran.returncode == 2 and "gguf:Q4_K gives every matrix one type" in ran.stderr
    assert truecast("quantize", tmp_path / "in.gguf", tmp_path / "out.gguf", "q4_k").returncode == 0
    tensors, keys = read(tmp_path / "out.gguf")
    assert [kind for kind, _ in tensors.values()] == ["Q4_K"] and keys == [14, 2]


@pytest.mark.parametrize("name", ["q4_k_m", "q6_k", "q4_0"])
def test_verify_computes_them_again(name, files, tmp_path):
    src, dst = files["groups"], tmp_path / "out.gguf"
    assert truecast("quantize", src, dst, name).returncode == 0
    assert truecast("verify", src, dst, "--scheme", name, "--full").returncode == 0
    changed = bytearray(dst.read_bytes())
    changed[-40] ^= 1
    dst.write_bytes(changed)
    assert truecast("verify", src, dst, "--scheme", name, "--full").returncode == 1
