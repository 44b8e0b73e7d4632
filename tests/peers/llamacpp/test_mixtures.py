"""Mixtures of block types beside `llama_model_quantize`: every tensor has the same type and bytes."""

import re
from typing import NamedTuple

import ggml_write
import numpy as np
import pytest
import shared
from shared import truecast, write_imatrix

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
    keys = [("uint32", f"{model.architecture}.{name}", value) for name, value in {
        "context_length": 128, "embedding_length": model.width, "block_count": model.layers,
        "feed_forward_length": model.ffn, "attention.head_count": model.heads,
        "attention.head_count_kv": model.kv_heads, "rope.dimension_count": model.width // model.heads,
        "expert_count": model.experts, "expert_used_count": min(2, model.experts),
    }.items()]
    epsilons = "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"
    keys += [("float32", f"{model.architecture}.{name}", 1e-5) for name in epsilons]
    keys += [("tokenizer_model", "llama"), ("token_list", [f"t{i}" for i in range(64)]),
             ("token_scores", [0.0] * 64), ("token_types", [1] * 64)]
    tensors = {}

    def add(name, *shape, dtype=None):
        dtype = dtype or (model.dtype if len(shape) > 1 else np.float32)
        tensors[name] = (random.standard_normal(shape) * 0.05).astype(dtype)

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
            add(at + "ffn_gate_inp.weight", model.experts, width, dtype=np.float32)
            for name, shape in {"gate": (ffn, width), "up": (ffn, width), "down": (width, ffn)}.items():
                add(f"{at}ffn_{name}_exps.weight", model.experts, *shape)
                add(f"{at}ffn_{name}_shexp.weight", *shape)
        else:
            add(at + "ffn_gate.weight", ffn, width)
            add(at + "ffn_up.weight", ffn, width)
            add(at + "ffn_down.weight", width, ffn)
    return shared.write(path, tensors, model.architecture, keys)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: write(folder / f"{name}.gguf", model) for name, model in MODELS.items()}


def read(path):
    keys, tensors = shared.read(path)
    tensors = {name: (kind, data) for name, (kind, _, data) in tensors.items()}
    return tensors, [int(keys[f"general.{key}"][1]) for key in ("file_type", "quantization_version")]


def importance(path):
    """Means of squares for all matrices of a model but the table of tokens, as llama-imatrix has them."""
    random = np.random.default_rng(4)
    shapes = {name: shape for name, (_, shape, _) in shared.read(path)[1].items()}
    matrices = {name: shape for name, shape in shapes.items() if len(shape) > 1 and name != "token_embd.weight"}
    means = lambda shape: random.standard_normal(shape[:-2] + shape[-1:]).astype(np.float32) ** 2
    return {name: means(shape) for name, shape in matrices.items()}


def differing(ours, theirs):
    """Tensors whose type or bytes differ, of files with the same names and numbers."""
    (ours, mine), (theirs, its) = read(ours), read(theirs)
    assert ours.keys() == theirs.keys() and mine == its
    return [(name, ours[name][0], theirs[name][0]) for name in theirs if ours[name] != theirs[name]]


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("model", MODELS)
def test_mixtures_are_those_of_llama_cpp(model, name, files, tmp_path):
    src = files[model]
    is_made, said = ggml_write.quantize_model(src, tmp_path / "theirs.gguf", MIXTURES[name])
    ran = truecast("quantize", src, tmp_path / "ours.gguf", name, code=None)
    if not is_made:
        # No type has smaller blocks than 32; truecast keeps such a tensor.
        assert "no tensor type fallback" in said and "is not quantized" in ran.stderr, said + ran.stderr
        return
    assert ran.returncode == 0, ran.stderr
    assert differing(tmp_path / "ours.gguf", tmp_path / "theirs.gguf") == []


# Mixtures that choose other types with an importance, and one of each rule.
BY_IMPORTANCE = {**{name: MIXTURES[name] for name in (
    "q4_0", "q5_0", "q4_1", "q5_1", "iq4_nl", "iq4_xs", "q2_k", "q3_k_m", "q4_k_m", "q5_k_s", "q6_k", "mxfp4_moe")}, "q2_k_s": 21}


# Types that weigh no columns.
UNWEIGHED = {"F32", "F16", "BF16", "Q8_0", "MXFP4"}


@pytest.mark.parametrize("name", BY_IMPORTANCE)
@pytest.mark.parametrize("model", ["llama", "groups", "tied", "8 experts", "4 experts", "falcon", "288 columns"])
def test_mixtures_by_importance_are_those_of_llama_cpp(model, name, files, tmp_path):
    src, ours, theirs = files[model], tmp_path / "ours.gguf", tmp_path / "theirs.gguf"
    means, matrix = importance(src), tmp_path / "imatrix.gguf"
    is_made, said = ggml_write.quantize_model(src, theirs, BY_IMPORTANCE[name], imatrix=means)
    assert is_made, said
    ran = truecast("quantize", src, ours, name, "--imatrix", write_imatrix(matrix, means), code=None)
    if {kind for kind, *_ in read(theirs)[0].values()} <= UNWEIGHED:
        assert ran.returncode == 2 and "imatrix has no effect" in ran.stderr, ran.stderr
        return
    assert ran.returncode == 0, ran.stderr
    assert "importance" not in ran.stderr, ran.stderr
    assert differing(ours, theirs) == []
    keys, _ = shared.read(ours)
    keys = {name.removeprefix("quantize.imatrix."): value for name, (_, value) in keys.items() if "imatrix" in name}
    assert keys == {"file": str(matrix), "dataset": "calibration.txt", "entries_count": len(means), "chunks_count": 7}
    if name in ("q4_0", "q4_k_m"):
        truecast("verify", src, ours, "--full")


def test_tensors_without_importance(files, tmp_path):
    """llama.cpp quantizes them as if there were none. Of a wrong size it takes none, but for the table of tokens."""
    src, ours, theirs = files["groups"], tmp_path / "ours.gguf", tmp_path / "theirs.gguf"
    means, matrix = importance(src), tmp_path / "imatrix.gguf"
    del means["blk.3.attn_k.weight"], means["output.weight"]
    means["token_embd.weight"] = np.ones(7, np.float32)
    assert ggml_write.quantize_model(src, theirs, 15, imatrix=means)[0]
    ran = truecast("quantize", src, ours, "q4_k_m", "--imatrix", write_imatrix(matrix, means))
    assert "\"output.weight\" and 1 other have no importance" in ran.stderr, ran.stderr
    assert differing(ours, theirs) == []
    # It refuses Q2_K without importance in a mixture that it calls Q2_K_S.
    is_made, said = ggml_write.quantize_model(src, theirs, 21, imatrix=means)
    assert not is_made and "Missing importance matrix" in said
    means["blk.4.attn_q.weight"] = np.ones(7, np.float32)
    is_made, said = ggml_write.quantize_model(src, theirs, 15, imatrix=means)
    assert not is_made and "imatrix size 7 is different from tensor size 256" in said
    write_imatrix(matrix, means)
    ran = truecast("quantize", src, ours, "q4_k_m", "--imatrix", matrix, "--force", code=2)
    assert "\"blk.4.attn_q.weight\" has 256 columns" in ran.stderr and "has 7" in ran.stderr, ran.stderr


@pytest.mark.parametrize("value", [np.nan, np.inf, -1])
def test_values_that_are_no_means_of_squares(value, files, tmp_path):
    """llama.cpp refuses NaN and infinities, too."""
    src, means = files["groups"], importance(files["groups"])
    means["blk.4.attn_q.weight"][9] = value
    is_made, said = ggml_write.quantize_model(src, tmp_path / "theirs.gguf", 15, imatrix=means)
    assert is_made == (value == -1) and ("non-finite" in said) != is_made
    matrix = write_imatrix(tmp_path / "imatrix.gguf", means)
    ran = truecast("quantize", src, tmp_path / "ours.gguf", "q4_k_m", "--imatrix", matrix, code=3)
    assert "blk.4.attn_q.weight" in ran.stderr and "not a mean of squares" in ran.stderr, ran.stderr


def test_nvfp4_is_no_mixture_there(files, tmp_path):
    """llama.cpp has a number for such files and does not make them. Blocks are those of ggml."""
    src = files["tied"]
    is_made, said = ggml_write.quantize_model(src, tmp_path / "theirs.gguf", 39)
    assert not is_made and "invalid output file type 39" in said
    truecast("quantize", src, tmp_path / "ours.gguf", "nvfp4")
    (ours, file_type), (dense, _) = (read(path) if path != src else (shared.read(path)[1], None) for path in (tmp_path / "ours.gguf", src))
    assert file_type == [39, 2] and ours["token_embd.weight"][0] == "Q6_K"
    blocks = {name: data for name, (kind, data) in ours.items() if kind == "NVFP4"}
    assert len(blocks) == 14
    for name, data in blocks.items():
        _, shape, elements = dense[name]
        assert data == ggml_write.quantize_rows("NVFP4", np.frombuffer(elements, np.float32).reshape(shape))


def test_q2_k_s_needs_an_importance_matrix_there(files, tmp_path):
    """llama.cpp does not write it without one. It says the types that it would write, and truecast writes these."""
    for model in ("llama", "groups", "tied", "8 experts", "falcon", "70b"):
        src = files[model]
        is_made, said = ggml_write.quantize_model(src, tmp_path / "theirs.gguf", 21)
        assert not is_made and "requires an imatrix" in said
        is_made, said = ggml_write.quantize_model(src, tmp_path / "theirs.gguf", 21, dry_run=True)
        assert is_made
        truecast("quantize", src, tmp_path / f"{model}.gguf", "q2_k_s")
        ours, file_type = read(tmp_path / f"{model}.gguf")
        assert file_type == [21, 2]
        named = re.findall(r"\] *(\S+) +- \[[^]]*\].*->.*\((\w+)\)", said)
        expected = {name: kind.upper() for name, kind in named}
        assert expected and {name: ours[name][0] for name in expected} == expected


def test_a_mixture_needs_llama_cpp_names(tmp_path):
    src = shared.write(tmp_path / "in.gguf", {"double_blocks.0.img_attn.proj.weight": np.ones((2, 256), np.float32)}, "flux")
    ran = truecast("quantize", src, tmp_path / "out.gguf", "q4_k_m", code=2)
    assert "gguf:Q4_K gives every matrix one type" in ran.stderr
    truecast("quantize", src, tmp_path / "out.gguf", "q4_k")
    tensors, keys = read(tmp_path / "out.gguf")
    assert [kind for kind, _ in tensors.values()] == ["Q4_K"] and keys == [14, 2]


@pytest.mark.parametrize("name", ["q4_k_m", "q6_k", "q4_0"])
def test_verify_computes_them_again(name, files, tmp_path):
    src, dst = files["groups"], tmp_path / "out.gguf"
    truecast("quantize", src, dst, name)
    truecast("verify", src, dst, "--scheme", name, "--full")
    changed = bytearray(dst.read_bytes())
    changed[-40] ^= 1
    dst.write_bytes(changed)
    truecast("verify", src, dst, "--scheme", name, "--full", code=1)
