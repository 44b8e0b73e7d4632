"""Mixtures and block types of a model's folder, folders that are quantized, files of the same model, and the way back."""

import json
import shutil

import control
import ggml_write
import gguf
import numpy as np
import pytest
import torch
import transformers
from llama import Model
from models import CONTROLLED, MODELS, ROWS, qwen, tokens
from models import Model as Row
from models import write as write_model
from safetensors.torch import load_file
from shared import each, read, truecast
from test_control import distance
from test_mixtures import MIXTURES

DENSE = [row for row in CONTROLLED if not row.is_mxfp4]
MIXED = ["q8_0", "q6_k", "q4_k_m", "mxfp4"]


@each(DENSE)
@pytest.mark.parametrize("name", MIXED)
def test_mixtures_of_a_folder(row, name, folder, controls, tmp_path):
    """Types, bytes and logits are those of the converter's file after llama.cpp quantized it."""
    theirs, ours = tmp_path / "theirs.gguf", tmp_path / "ours.gguf"
    is_made, said = ggml_write.quantize_model(controls(row, "f32"), theirs, MIXTURES[name])
    assert is_made, said
    truecast("quantize", folder(row), ours, name)
    (keys, mine), (their_keys, its) = read(ours), read(theirs)
    assert keys["general.file_type"] == their_keys["general.file_type"]
    assert {name: tensor[:2] for name, tensor in mine.items()} == {name: tensor[:2] for name, tensor in its.items()}
    assert not [name for name in its if mine[name][2] != its[name][2]]
    logits = []
    for path in (ours, theirs):
        with Model(path) as model:
            logits.append(model.logits(tokens(row)))
    assert np.array_equal(*logits)


@each(ROWS)
@pytest.mark.parametrize("name, least", [("q8_0", 0.99), ("q4_k_m", 0.8), ("mxfp4", 0.7), ("nvfp4", 0.7)])
def test_logits_of_mixtures(row, name, least, folder, reference, tmp_path):
    """Logits of transformers and of the blocks correlate, as far as the type allows for random weights."""
    ids, expected = reference(row)
    truecast("quantize", folder(row), tmp_path / "out.gguf", name)
    with Model(tmp_path / "out.gguf") as model:
        found = model.logits(ids)[:, : expected.shape[1]]
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > least


def test_experts_in_mxfp4_keep_their_values(folder, controls, tmp_path):
    row = MODELS["gpt_oss_mxfp4"]
    truecast("quantize", folder(row), tmp_path / "out.gguf", "mxfp4")
    ours, theirs = ({t.name: t for t in gguf.GGUFReader(path).tensors} for path in (tmp_path / "out.gguf", controls(row, "f32")))
    experts = [name for name, tensor in theirs.items() if tensor.tensor_type.name == "MXFP4"]
    assert len(experts) == 9
    for name in experts:
        assert ours[name].tensor_type.name == "MXFP4"
        a, b = (gguf.dequantize(tensors[name].data, tensors[name].tensor_type) for tensors in (ours, theirs))
        assert np.array_equal(a, b)
    said = truecast("convert", folder(row), tmp_path / "none.gguf", code=2).stderr
    assert "--to" in said and not (tmp_path / "none.gguf").exists()


@each([MODELS[name] for name in ("llama", "qwen3_moe", "deepseek_v3")])
@pytest.mark.parametrize("scheme", ["fp8-block", "nvfp4", "fp8-channel"])
def test_a_quantized_folder_is_as_the_dense_one(row, scheme, folder, tmp_path):
    """The file from the quantized folder equals the file from the folder that is made dense."""
    quantized, dense = tmp_path / "quantized", tmp_path / "dense"
    truecast("quantize", folder(row), quantized, scheme)
    truecast("dequantize", quantized, dense, "--to", "f32")
    for to in ("f32", "bf16"):
        truecast("convert", quantized, tmp_path / "a.gguf", "--to", to, "--force")
        truecast("convert", dense, tmp_path / "b.gguf", "--to", to, "--force")
        a, b = (read(tmp_path / name) for name in ("a.gguf", "b.gguf"))
        assert a[1] == b[1]
        # The dense folder is another folder.
        assert {k: v for k, v in a[0].items() if k not in ("general.name", "truecast.options")} == {
            k: v for k, v in b[0].items() if k not in ("general.name", "truecast.options")
        }
    with Model(tmp_path / "a.gguf"):
        pass


@each([row for row in DENSE if row.name != "gemma3"])
def test_back_and_forth(row, folder, tmp_path):
    """A file of f32 gives the weights of the folder, byte for byte."""
    file, again, named = tmp_path / "model.gguf", tmp_path / "again", tmp_path / "named"
    truecast("convert", folder(row), file, "--to", "f32")
    truecast("convert", file, again, "--like", folder(row))
    assert (again / "model.safetensors").read_bytes() == (folder(row) / "model.safetensors").read_bytes()
    truecast("verify", file, again)
    # Without weights, names follow from the configuration.
    bare = shutil.copytree(folder(row), tmp_path / "bare", ignore=shutil.ignore_patterns("*.safetensors"))
    truecast("convert", file, named, "--like", bare / "config.json", "--to", "f32")
    ours, theirs = load_file(named / "model.safetensors"), load_file(folder(row) / "model.safetensors")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name].float()) for name in theirs)
    _, info = transformers.AutoModelForCausalLM.from_pretrained(again, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info


@each([MODELS[name] for name in ("qwen3", "gpt_oss_mxfp4")])
def test_dequantized_under_other_names(row, folder, tmp_path):
    """A quantized folder becomes a dense file, and a quantized file, in a folder of its own, a dense folder."""
    quantized, file = folder(row), tmp_path / "dense.gguf"
    if not row.is_mxfp4:
        truecast("quantize", folder(row), quantized := tmp_path / "quantized", "fp8-block")
    truecast("dequantize", quantized, file)
    truecast("convert", quantized, tmp_path / "same.gguf", "--to", "bf16")
    assert read(file)[1] == read(tmp_path / "same.gguf")[1]
    with Model(file):
        pass
    (tmp_path / "held").mkdir()
    truecast("quantize", folder(row), tmp_path / "held/model.gguf", "q8_0")
    truecast("dequantize", tmp_path / "held", tmp_path / "back", "--like", folder(row))
    truecast("verify", tmp_path / "held", tmp_path / "back")
    _, info = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info


def test_images_have_no_way_back(folder, tmp_path):
    row = MODELS["gemma3"]
    truecast("convert", folder(row), tmp_path / "model.gguf", "--to", "f32")
    said = truecast("convert", tmp_path / "model.gguf", tmp_path / "again", "--like", folder(row), code=2).stderr
    assert "encodes images" in said


def test_back_from_mxfp4(folder, controls, tmp_path):
    """A folder of gpt-oss whose configuration declares MXFP4 becomes dense."""
    row = MODELS["gpt_oss_mxfp4"]
    truecast("convert", controls(row, "f32"), tmp_path / "dense", "--like", folder(row), "--to", "bf16")
    assert "quantization_config" not in json.loads((tmp_path / "dense/config.json").read_text())
    _, info = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "dense", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info


@each(DENSE)
@pytest.mark.parametrize("to", ["q8_0", "f32"])
def test_like_gives_the_same_file(row, to, folder, controls, tmp_path):
    truecast("convert", folder(row), tmp_path / "out.gguf", "--like", controls(row, to), "--to", "f32")
    (_, ours), (their_keys, theirs) = read(tmp_path / "out.gguf"), read(controls(row, "f32"))
    assert {name: tensor for name, tensor in ours.items()} == {name: tensor for name, tensor in theirs.items()}
    keys, _ = read(tmp_path / "out.gguf")
    changed = {"general.file_type", "general.quantization_version", "truecast.options"}
    assert {k: v for k, v in keys.items() if k not in changed} == {
        k: v for k, v in their_keys.items() if k not in changed
    }


# Families without a table of names: the reference and the values decide.
OTHERS = [
    Row("olmo2", "Olmo2Config", qwen, "qwen2"),
    Row("granite", "GraniteConfig", qwen, "qwen2"),
    Row("starcoder2", "Starcoder2Config", qwen, "qwen2"),
    Row("stablelm", "StableLmConfig", qwen, "qwen2"),
    Row("cohere", "CohereConfig", qwen, "qwen2"),
    Row("olmoe", "OlmoeConfig", qwen, "qwen2", fields=dict(num_experts=8, num_key_value_heads=4)),
    Row("exaone4", "Exaone4Config", qwen, "qwen2"),
]


@each(OTHERS)
def test_like_of_a_family_that_is_not_known(row, tmp_path):
    made = write_model(row, tmp_path / "folder")
    reference = control.write(made, tmp_path / "reference.gguf", row.pre, "q8_0")
    theirs = read(control.write(made, tmp_path / "theirs.gguf", row.pre, "bf16"))[1]
    refused = truecast("convert", made, tmp_path / "none.gguf", code=2).stderr
    assert "--like MODEL.gguf" in refused
    truecast("convert", made, tmp_path / "out.gguf", "--like", reference, "--to", "bf16")
    assert read(tmp_path / "out.gguf")[1] == theirs
    ids = np.arange(32) * 7 % 400
    logits = []
    for path in ("out.gguf", "theirs.gguf"):
        with Model(tmp_path / path) as model:
            logits.append(model.logits(ids.tolist()))
    assert distance(*logits) == 0
