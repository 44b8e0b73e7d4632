"""Folders of checkpoints: what is converted is tested beside, with the command; here is what Python adds."""

import json
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import truecast as tc
from container import read_safetensors, write_safetensors
from dtypes import TYPES

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def codes_and_scales():
    rng = np.random.default_rng(5)
    codes = rng.standard_normal((256, 128)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    return codes, rng.random((2, 1)).astype(np.float32)


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    """Two shards: blocks of fp8, whose scales are in the other one, and a vector."""
    folder = tmp_path / "a"
    folder.mkdir()
    codes, scales = codes_and_scales()
    write_safetensors(folder / FIRST, {"l.weight": (TYPES["f8e4m3fn"], codes)})
    norm = np.linspace(-3, 3, 256, dtype=np.float32)
    write_safetensors(folder / SECOND, {"l.weight_scale_inv": (TYPES["f32"], scales), "n.weight": (TYPES["f32"], norm)})
    weight_map = {"l.weight": FIRST, "l.weight_scale_inv": SECOND, "n.weight": SECOND}
    index = {"metadata": {"total_size": 256 * 128 + 8 + 1024}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    quantization = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    (folder / "config.json").write_text(json.dumps({"torch_dtype": "float32", "quantization_config": quantization}))
    (folder / "tokenizer.json").write_text("{}")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_one_tensor_is_loaded_dense(checkpoint, tmp_path):
    codes, scales = codes_and_scales()
    expected = codes.astype(np.float32) * np.repeat(scales, 128, axis=0)
    found = tc.load(checkpoint, "l.weight")
    assert found.dtype == np.float32 and found.shape == expected.shape and found.tobytes() == expected.tobytes()
    half = tc.load(checkpoint, "l.weight", "f8e4m3fn", spec="tosa")
    assert half.tobytes() == tc.cast(expected, "f8e4m3fn", spec="tosa").tobytes()
    with pytest.raises(tc.UsageError, match=r'tensor "l.wieght" does not exist; the nearest are "l.weight" and'):
        tc.load(checkpoint, "l.wieght")
    # A stored type of four bits, an empty tensor and text.
    np.save(tmp_path / "a.npy", np.arange(-8, 7).astype(ml_dtypes.int4).reshape(3, 5))
    nibbles = tc.load(tmp_path / "a.npy", from_="i4")
    assert nibbles.dtype == ml_dtypes.int4 and nibbles.astype(int).tolist() == np.arange(-8, 7).reshape(3, 5).tolist()
    np.save(tmp_path / "b.npy", np.zeros((0, 4), np.float16))
    assert tc.load(tmp_path / "b.npy", to="f32").shape == (0, 4)
    np.save(tmp_path / "c.npy", np.array(["1", "2"]))
    with pytest.raises(tc.InputError, match="fixed-width"):
        tc.load(tmp_path / "c.npy")


def test_a_folder_becomes_dense(checkpoint, tmp_path):
    out = tmp_path / "b"
    report = tc.convert(checkpoint, out, "bf16")
    assert report.complete and [shard["state"] for shard in report.shards] == ["converted"] * 2
    codes, scales = codes_and_scales()
    expected = codes.astype(np.float32) * np.repeat(scales, 128, axis=0)
    tensors, _, _ = read_safetensors(out / FIRST)
    assert tensors["l.weight"].tobytes() == expected.astype(ml_dtypes.bfloat16).tobytes()
    assert {row["name"]: row.get("scheme") for row in report.tensors}["l.weight"] == "fp8-block:128x128"
    assert "fp8-block" in repr(report)
    config = json.loads((out / "config.json").read_text())
    assert config == {"torch_dtype": "bfloat16"} and (out / "tokenizer.json").exists()

    # By what the folder says of itself, by the report, by a file of it, and by what is typed.
    assert tc.verify(checkpoint, out)
    assert tc.verify(checkpoint, out, report=report)
    report.save(tmp_path / "report.json")
    assert tc.verify(checkpoint, out, report=tmp_path / "report.json").coverage == 1
    assert tc.verify(checkpoint, out, "bf16")
    assert not tc.verify(checkpoint, out, "f16")
    found = tc.compare(checkpoint, out)
    assert [row["name"] for row in found.tensors] == ["l.weight", "n.weight"] and not found.equal
    assert {row["name"] for row in tc.inspect(out)["tensors"]} == {"l.weight", "n.weight"}

    data = bytearray((out / FIRST).read_bytes())
    data[-1] ^= 1
    (out / FIRST).write_bytes(data)
    wrong = tc.verify(checkpoint, out, report=tmp_path / "report.json")
    assert [row["kind"] for row in wrong.differences] == ["elements", "digest", "digest"] and "DIFFERENT" in repr(wrong)


def test_parts_and_resume_give_the_same_bytes(checkpoint, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "parts"
    tc.convert(checkpoint, whole, "bf16")
    second = tc.convert(checkpoint, out, "bf16", part=(2, 2))
    assert not second.complete and [shard["state"] for shard in second.shards] == ["of_others", "converted"]
    assert tc.convert(checkpoint, out, "bf16", part="1/2").complete
    assert files(out) == files(whole)
    (out / SECOND).unlink()
    again = tc.convert(checkpoint, out, "bf16", resume=True)
    assert [shard["state"] for shard in again.shards] == ["resumed", "converted"] and files(out) == files(whole)
    assert any("does not match the manifest" in warning for warning in again.warnings)
    bare = tmp_path / "bare"
    tc.convert(checkpoint, bare, "bf16", sidecars=False)
    assert not (bare / "tokenizer.json").exists() and tc.verify(checkpoint, bare)


def test_merge_ends_the_work_of_parts(checkpoint, tmp_path):
    out = tmp_path / "b"
    tc.convert(checkpoint, out, "bf16", part="1/2")
    with pytest.raises(tc.UsageError, match="not finished"):
        tc.convert(checkpoint, out, "bf16", merge=True)
    tc.convert(checkpoint, tmp_path / "c", "bf16", part="2/2")
    for name in (SECOND, "truecast-manifest.2-of-2.json"):
        shutil.copy(tmp_path / "c" / name, out / name)
    assert tc.convert(checkpoint, out, "bf16", merge=True).complete and tc.verify(checkpoint, out)


def test_schemes_that_are_said(checkpoint, tmp_path):
    (checkpoint / "config.json").write_text("{}")
    report = tc.convert(checkpoint, tmp_path / "b", "bf16", from_scheme="fp8-block:128x128")
    assert report.options["from_scheme"] == "fp8-block:128x128"
    assert tc.verify(checkpoint, tmp_path / "b", report=report) and tc.verify(checkpoint, tmp_path / "b")


def test_dry_run_and_progress(checkpoint, tmp_path):
    planned = tc.convert(checkpoint, tmp_path / "b", "bf16", dry_run=True)
    assert [shard["state"] for shard in planned.shards] == ["planned"] * 2 and not (tmp_path / "b").exists()
    seen = []
    tc.convert(checkpoint, tmp_path / "b", "bf16", progress=lambda *now: seen.append(now))
    assert seen[-1][0] == seen[-1][1] > 0


def test_what_is_raised_leaves_shards_to_go_on_from(checkpoint, tmp_path):
    def stop(*now):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        tc.convert(checkpoint, tmp_path / "b", "bf16", progress=stop)
    tc.convert(checkpoint, tmp_path / "b", "bf16", resume=(tmp_path / "b").exists())
    assert tc.verify(checkpoint, tmp_path / "b")


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"part": "3/2"}, "part"),
        ({"part": "1/2", "merge": True}, "merge"),
        ({"from_scheme": "fp9"}, "unknown scheme"),
        ({"from_scheme": "awq"}, "from_scheme"),
        ({"keep": "l.weight"}, "quantized"),
        ({"max_memory": 1}, "bytes"),
    ],
)
def test_errors_of_folders(checkpoint, tmp_path, arguments, words):
    with pytest.raises((tc.UsageError, tc.InputError), match=words) as raised:
        tc.convert(checkpoint, tmp_path / "b", "bf16", **arguments)
    assert "--" not in str(raised.value) and not (tmp_path / "b").exists()


def test_a_folder_that_exists(checkpoint, tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").write_text("")
    with pytest.raises(tc.UsageError, match="mine"):
        tc.convert(checkpoint, tmp_path / "b", "bf16")
    assert tc.convert(checkpoint, tmp_path / "b", "bf16", force=True).complete


@pytest.mark.parametrize("name, value", [("resume", True), ("part", "1/2"), ("sidecars", False)])
def test_files_have_no_such_options(checkpoint, tmp_path, name, value):
    with pytest.raises(tc.UsageError, match=f"{name} belongs to checkpoint folders"):
        tc.convert(checkpoint / FIRST, tmp_path / "b.safetensors", "bf16", **{name: value})


@pytest.mark.parametrize("name, value", [("from_scheme", "fp8-block"), ("trust_scales", True)])
def test_arrays_have_no_scheme(tmp_path, name, value):
    np.save(tmp_path / "a.npy", np.zeros(3, np.float32))
    with pytest.raises(tc.UsageError, match=f"{name} belongs to"):
        tc.convert(tmp_path / "a.npy", tmp_path / "b.npy", "bf16", **{name: value})


# ---- schemes that are written ----


def weights(seed):
    return np.random.default_rng(seed).standard_normal((256, 128)).astype(np.float32)


@pytest.fixture
def dense(tmp_path) -> Path:
    """One shard: three matrices of a module, a norm, a head."""
    folder = tmp_path / "dense"
    folder.mkdir()
    names = ["l.0.attn.q_proj.weight", "l.0.attn.k_proj.weight", "l.0.o_proj.weight", "lm_head.weight"]
    tensors = {name: (TYPES["f32"], weights(seed) * (seed + 1)) for seed, name in enumerate(names)}
    tensors["l.0.input_norm.weight"] = (TYPES["f32"], np.ones(256, np.float32))
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({"torch_dtype": "float32"}))
    return folder


def test_a_folder_is_quantized_as_an_array_is(dense, tmp_path):
    out = tmp_path / "b"
    report = tc.convert(dense, out, scheme="fp8-block", keep_preset="lm_head")
    tensors, _, _ = read_safetensors(out / "model.safetensors")
    for name, seed in (("l.0.attn.q_proj.weight", 0), ("l.0.o_proj.weight", 2)):
        q = tc.quantize(weights(seed) * (seed + 1), "fp8-block")
        assert tensors[name].tobytes() == q.codes.tobytes()
        assert tensors[name + "_scale_inv"].tobytes() == q.scales.tobytes()
    assert tensors["lm_head.weight"].dtype == np.float32
    rows = {row["name"]: row for row in report.tensors}
    assert rows["l.0.o_proj.weight"]["to_scheme"].startswith("fp8-block") and "to_scheme" not in rows["lm_head.weight"]
    assert report.options["scheme"].startswith("fp8-block") and report.options["keep_preset"] == ["lm_head"]

    report.save(tmp_path / "report.json")
    for said in ({}, {"report": report}, {"report": tmp_path / "report.json"}, {"scheme": "fp8-block", "keep_preset": ["lm_head"]}):
        assert tc.verify(dense, out, **said), said
    assert not tc.verify(dense, out, scheme="fp8-block:64x64", keep_preset=["lm_head"])
    tc.convert(out, tmp_path / "c", "bf16")
    back, _, _ = read_safetensors(tmp_path / "c" / "model.safetensors")
    right = tc.quantize(weights(0), "fp8-block").dequantize("bf16")
    assert back["l.0.attn.q_proj.weight"].tobytes() == right.tobytes()


def test_a_scale_that_tensors_have_in_common(dense, tmp_path):
    share = "*q_proj*,*k_proj*"
    tc.convert(dense, tmp_path / "b", scheme="modelopt:W4A16_NVFP4", share_global=[share], mx_scale=None)
    tensors, _, _ = read_safetensors(tmp_path / "b" / "model.safetensors")
    scales = {name: array.item() for name, array in tensors.items() if name.endswith("weight_scale_2")}
    assert len(scales) == 3 and len(set(scales.values())) == 2
    q = tc.quantize(weights(2) * 3, "modelopt:W4A16_NVFP4")
    assert tensors["l.0.o_proj.weight_scale_2"].item() == q.global_scale
    assert tensors["l.0.o_proj.weight"].tobytes() == q.codes.tobytes()
    assert tc.verify(dense, tmp_path / "b")


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"scheme": "fp9"}, "unknown scheme"),
        ({"scheme": "awq"}, "can be read, not written"),
        ({"scheme": "mxfp4", "mx_scale": "round"}, "mx_scale"),
        ({"scheme": "mxfp4", "keep_preset": "norm"}, "norm"),
        ({"to": "bf16", "scale_search": "mse"}, "scale_search needs scheme"),
        ({"to": "bf16", "nibbles": "left"}, "nibbles"),
    ],
)
def test_errors_of_schemes(dense, tmp_path, arguments, words):
    with pytest.raises(tc.UsageError, match=words):
        tc.convert(dense, tmp_path / "b", **arguments)
    with pytest.raises(tc.UsageError, match="give a folder, or one of comfy:"):
        tc.convert(dense / "model.safetensors", tmp_path / "c.safetensors", scheme="mxfp4")


def test_one_file_is_quantized(dense, tmp_path):
    report = tc.convert(dense / "model.safetensors", tmp_path / "c.safetensors", scheme="comfy:float8_e4m3fn")
    assert "comfy" in report.options["scheme"]
    assert tc.verify(dense / "model.safetensors", tmp_path / "c.safetensors", report=report)


def test_attributes_beside_a_report_may_not_say_otherwise(checkpoint, tmp_path):
    report = tc.convert(checkpoint, tmp_path / "b", "bf16", spec="ieee", rounding="up")
    report.save(tmp_path / "report.json")
    said = {"report": tmp_path / "report.json", "spec": "ieee"}
    assert tc.verify(checkpoint, tmp_path / "b", rounding="up", **said)
    with pytest.raises(tc.UsageError, match="contradict"):
        tc.verify(checkpoint, tmp_path / "b", rounding="down", **said)


def test_a_quantized_file(tmp_path):
    """Scales beside the codes of one file; what has none is converted by value."""
    codes, scales = codes_and_scales()
    source = tmp_path / "a.safetensors"
    write_safetensors(source, {"l.weight": (TYPES["f8e4m3fn"], codes), "l.weight_scale_inv": (TYPES["f32"], scales)})
    report = tc.convert(source, tmp_path / "b.safetensors", "bf16", from_scheme="fp8-block:128x128")
    tensors, _, _ = read_safetensors(tmp_path / "b.safetensors")
    q = tc.Quantized("fp8-block", (256, 128), codes=codes, scales=scales)
    assert tensors["l.weight"].tobytes() == q.dequantize("bf16").tobytes()
    assert tc.verify(source, tmp_path / "b.safetensors", report=report)


def test_names_with_dashes_stay_as_they_are(tmp_path):
    with pytest.raises(tc.FileError, match="no--such--from-file.safetensors"):
        tc.convert(tmp_path / "no--such--from-file.safetensors", tmp_path / "b.safetensors", "bf16")
