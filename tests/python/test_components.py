"""Folders of several checkpoints, parts of checkpoints, adapters: docs/spec/checkpoints.md §2.3, §2.6, §2.7."""

import json
import shutil
import struct
import subprocess

import pytest

SINGLE = "model.safetensors"


def words(seed: int) -> list[int]:
    """The upper halves of f32 values whose lower halves are zero: their bf16."""
    return [0x3F80 + (seed + i) % 64 for i in range(64)]


def file(name: str, seed: int = 0) -> bytes:
    """A safetensors file with one f32 tensor."""
    data = struct.pack("<64I", *(word << 16 for word in words(seed)))
    header = json.dumps({name: {"dtype": "F32", "shape": [8, 8], "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


def tensors(path) -> dict[str, tuple[str, bytes]]:
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], data[begin:][slice(*t["data_offsets"])]) for name, t in header.items()}


def write(root, files: dict) -> None:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())


def tree(root) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def says(truecast, tmp_path):
    """Runs a command in the test's folder; returns the exit code and everything that it says."""

    def run(line: str, code: int, *needles: str) -> str:
        done = subprocess.run([truecast.binary, *line.split()], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        said = done.stdout + done.stderr
        assert done.returncode == code and "panicked" not in said, (line, done.returncode, said)
        for needle in needles:
            assert needle in said, (line, needle, said)
        return said

    return run


def parts(stem: str, of: int, *there: int) -> list[str]:
    return [f"{stem}-{number:05}-of-{of:05}.safetensors" for number in there or range(1, of + 1)]


# Weights, what is copied, what is left out with a warning.
KINDS = {
    "sentence-transformers": (
        [SINGLE, "2_Dense/model.safetensors", "3_Dense/model.safetensors"],
        {"modules.json": [{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}], "1_Pooling/config.json": {}},
        ["onnx/model.onnx", "openvino/openvino_model.bin", "pytorch_model.bin"],
    ),
    "modules without weights at the top": (
        ["0_CLIPModel/model.safetensors", "2_Dense/model.safetensors"],
        {"modules.json": [{"path": "0_CLIPModel"}, {"path": "2_Dense"}]},
        [],
    ),
    "pipeline": (
        [
            "text_encoder/model.safetensors",
            *(f"transformer/{name}" for name in parts("diffusion_pytorch_model", 2)),
            "unet/diffusion_pytorch_model.safetensors",
        ],
        {
            "model_index.json": {"_class_name": "P", "unet": ["diffusers", "U"], "scheduler": ["diffusers", "S"]},
            "scheduler/scheduler_config.json": {},
        },
        ["sd.safetensors", "unet/diffusion_pytorch_model.fp16.safetensors", "unet/model.onnx"],
    ),
    "adapters in folders": (
        [SINGLE, "speech-lora/adapter_model.safetensors", "vision/lora/adapter_model.safetensors"],
        {"speech-lora/adapter_config.json": {}},
        ["original/model.safetensors", "adapter_model.safetensors"],
    ),
    "parts and an adapter": (parts("model", 2), {"adapter_config.json": {}}, ["adapter_model.safetensors"]),
    "numbered from 0": (parts("model.fp16", 2, 0, 1), {}, []),
}


@pytest.fixture(params=KINDS)
def kind(request, tmp_path):
    weights, copied, left_out = KINDS[request.param]
    for seed, path in enumerate(weights):
        # Several components have tensors of one name.
        name = f"{seed}.weight" if "-of-" in path else "linear.weight"
        folder = path.rpartition("/")[0]
        write(tmp_path / "in", {path: file(name, seed), f"{folder}/config.json".lstrip("/"): {"a": {"dtype": "float32"}}})
    write(tmp_path / "in", {**copied, **{path: file("linear.weight", 9) for path in left_out}})
    return KINDS[request.param]


def test_all_weights_of_a_folder_are_converted(says, kind, tmp_path):
    weights, copied, left_out = kind
    said = says("convert in out --to bf16 --report r.json", 0, *left_out)
    assert said.count("warning") == len(left_out), said
    out = tree(tmp_path / "out")
    for seed, path in enumerate(weights):
        ((dtype, data),) = tensors(tmp_path / "out" / path).values()
        assert (dtype, data) == ("BF16", struct.pack("<64H", *words(seed))), path
        folder = path.rpartition("/")[0]
        assert json.loads(out[f"{folder}/config.json".lstrip("/")]) == {"a": {"dtype": "bfloat16"}}
    assert all(json.loads(out[path]) == text for path, text in copied.items())
    assert not set(left_out) & set(out)
    listed = [name["name"] for name in json.loads((tmp_path / "r.json").read_text())["shards"]]
    assert sorted(listed) == sorted(weights)
    for command in ["verify in out", "verify in out --full", "verify in out --report r.json"]:
        says(command, 0)
    # An existing result stays, unless it is to be replaced or continued.
    says("convert in out --to bf16", 2, "exists and holds")
    says("convert in out --to bf16 --resume", 0, "correct and kept")
    assert tree(tmp_path / "out") == out
    says("convert in out --to f16 --force --quiet", 0)
    says("verify in out", 0)
    says("convert in new --to bf16 --dry-run", 0, weights[-1])
    assert not (tmp_path / "new").exists()
    says("convert in new --to bf16 --resume --quiet", 0)
    assert tree(tmp_path / "new") == out
    # A run that ended before the last folder was written goes on.
    if "/" in weights[0]:
        for path in set(out) - {name for name in out if name.startswith(tuple(w.partition("/")[0] for w in weights))}:
            (tmp_path / "new" / path).unlink()
        shutil.rmtree(tmp_path / "new/scheduler", ignore_errors=True)
        says("convert in new --to bf16 --resume --quiet", 0)
        assert tree(tmp_path / "new") == out


def test_each_defect_of_a_component_is_found(says, kind, tmp_path):
    folder = kind[0][-1].rpartition("/")[0]
    if not folder:
        return
    says("convert in out --to bf16 --quiet", 0)
    says(f"verify in/{folder} out/{folder}", 0)
    path = tmp_path / "out" / kind[0][-1]
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 0x40]))
    says("verify in out", 1, f'tensor "{folder}/', "DIFFERENT")
    path.unlink()
    says("verify in out", 1, folder, "DIFFERENT")
    shutil.rmtree(path.parent)
    says("verify in out", 1, folder, "is missing")
    says("convert in out --to bf16 --resume --quiet", 0)
    write(tmp_path, {"out/more/model.safetensors": file("x")})
    says("verify in out", 1, "out/more", "did not write")


@pytest.mark.parametrize("kind", ["pipeline"], indirect=True)
def test_options_of_a_pipeline(says, kind, tmp_path):
    says("convert in out --to bf16 --keep 1.* --quiet", 0)
    assert tensors(tmp_path / "out" / kind[0][1])["1.weight"][0] == "F32"
    assert json.loads((tmp_path / "out/truecast-manifest.json").read_text())["options"]["rules"]
    says("verify in out", 0)
    says("convert in new --to bf16 --keep nothing*", 2, 'keep "nothing*" matches no tensor')
    for options in ["--part 1/2", "--merge", "--from-scheme gptq"]:
        named = '"text_encoder", "transformer" or "unet" by itself'
        says(f"convert in new --to bf16 {options}", 2, options.split()[0], "one model", named)
    says("convert in new.gguf --scheme gguf:q8_0", 2, "one model")
    says("inspect in", 0, "in/text_encoder", "in/transformer", "in/unet", "linear.weight")
    says("inspect in --check", 0, "in/unet: nothing found")
    says("compare in out", 0, "text_encoder/linear.weight", "transformer/1.weight", "unet/linear.weight", "equal")
    says("compare in in/unet", 2, "one model", named)
    says("quantize in new fp8-tensor", 0, "not quantized: text_encoder, transformer", "unet/config.json: quant")
    types = [next(iter(tensors(tmp_path / "new" / path).values()))[0] for path in kind[0]]
    assert types == ["F32", "F32", "F32", "F8_E4M3"]
    says("verify in new", 0)


@pytest.mark.parametrize("kind", ["sentence-transformers"], indirect=True)
def test_a_scheme_is_of_the_model_at_the_top(says, kind, tmp_path):
    says("quantize in out fp8-tensor", 0, "not quantized")
    types = [next(iter(tensors(tmp_path / "out" / path).values()))[0] for path in kind[0]]
    assert types == ["F8_E4M3", "F32", "F32"]
    says("verify in out", 0)
    says("inspect in", 0, "2_Dense: weights of its own")
    says("compare in out", 0, '"linear.weight"', "2_Dense/linear.weight", "different: ")
    says("compare in out/model.safetensors", 2, '"model.safetensors", "2_Dense" or "3_Dense" by itself')


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (parts("model", 3, 1, 3), "part 2 of 3 is missing"),
        (parts("model", 3, 2, 3), "part 1 of 3 is missing"),
        (parts("model", 3, 1, 2), "part 3 of 3 is missing"),
        (parts("model", 3, 0, 1), "part 2 of 3 is missing"),
        (["m-1-of-18446744073709551615.safetensors"], "part 2 of 18446744073709551615 is missing"),
        (["m_1_of_2.fp16.safetensors", "other.safetensors"], "part 2 of 2 is missing"),
        (parts("model", 2) + parts("model", 3, 3), "two sets of parts"),
        (["m-01-of-2.safetensors", "m-1-of-2.safetensors"], "two sets of parts"),
        (parts("model", 1, 1, 2), "two sets of parts"),
    ],
)
def test_parts_that_are_missing(says, tmp_path, names, said):
    write(tmp_path / "in", {name: file(str(seed), seed) for seed, name in enumerate(names)})
    says("convert in out --to bf16", 3, "in: ", said)
    assert not (tmp_path / "out").exists()
    alone = says(f"convert in/{names[0]} one.safetensors --to bf16", 0)
    assert ("only part " in alone) == ("of-00001." not in names[0])


@pytest.mark.parametrize(
    "names",
    [
        ["a-of-b.safetensors", "x-1-of-99999999999999999999.safetensors"],
        ["model-00001-of-000002.safetensors", "model-00002-of-000002.safetensors"],
        ["a-1-of-2.safetensors", "a-2-of-2.safetensors", "b-1-of-1.safetensors", "1-of-1.safetensors"],
    ],
)
def test_parts_that_are_complete(says, tmp_path, names):
    write(tmp_path / "in", {name: file(str(seed), seed) for seed, name in enumerate(names)})
    says("convert in out --to bf16 --quiet", 0)
    index = json.loads((tmp_path / "out/model.safetensors.index.json").read_text())["weight_map"]
    assert index == {str(seed): name for seed, name in enumerate(names)}


def test_an_index_decides(says, tmp_path):
    names = parts("model", 3, 1, 3)
    index = {"metadata": {"total_size": 600}, "weight_map": {"0": names[0], "1": names[1]}}
    write(tmp_path / "in", {"model.safetensors.index.json": index, names[0]: file("0"), names[1]: file("1")})
    says("convert in out --to bf16", 0, "total_size", "is 600", "take 512 bytes", "part 2 of 3")
    write(tmp_path / "two", {"m.fp16.safetensors": file("a"), "m.safetensors": file("a")})
    says("convert two new --to bf16", 3, "give one of the files by itself")
    says("convert two/m.fp16.safetensors new.safetensors --to bf16 --quiet", 0)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("__0_0.distcp", "dcp_to_torch_save"),
        ("tf_model.h5", "HDF5"),
        ("flax_model.msgpack", "MessagePack"),
        ("model.nemo", "NeMo"),
        ("pytorch_model.pt", "save_file"),
    ],
)
def test_other_weights_are_named(says, tmp_path, name, said):
    write(tmp_path, {f"in/{name}": b"x"})
    says("convert in out --to bf16", 2, "holds no .safetensors file", name, said)
    says(f"convert in/{name} out.safetensors --to bf16", 2, name, said)
    # A module is not left out because it is not read.
    for modules, lost in [(["", "2_Dense"], name), (["2_Dense", "3_Dense"], "in/3_Dense")]:
        described = [{"path": path} for path in modules]
        weights = {"in/2_Dense/model.safetensors": file("w"), f"in/3_Dense/{name}": b"x"}
        write(tmp_path, {"in/modules.json": described, **weights})
        says("convert in out --to bf16", 2, "holds no .safetensors file", lost, said)


def test_models_below_a_folder(says, tmp_path):
    write(tmp_path, {"in/a/b/model.safetensors": file("w")})
    says("convert in out --to bf16", 2, 'give "a/b" by itself')
    says("convert in/a/b out --to bf16 --quiet", 0)
    write(tmp_path, {"top/model.safetensors": file("w"), "else/model.safetensors": file("w")})
    (tmp_path / "top/linked").symlink_to("../else")
    says("convert top new --to bf16", 3, "linked", "symbolic link")
    says("convert top new --to bf16 --follow-links --quiet", 0)
    assert tensors(tmp_path / "new/linked/model.safetensors")["w"][0] == "BF16"


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("adapter_model.safetensors", "base_model.model.q_proj.hada_w1_a"),
        ("model.safetensors", "base_model.model.q_proj.lora_A.weight"),
        ("kohya.safetensors", "lora_unet_down_blocks_0.lora_down.weight"),
    ],
)
def test_adapters_are_not_quantized(says, tmp_path, name, tensor):
    write(tmp_path, {f"in/{name}": file(tensor)})
    says("quantize in out fp8-tensor", 2, "adapter", "merge it")
    says(f"quantize in/{name} out.safetensors comfy:float8_e4m3fn", 2, "adapter")
    says("convert in out --to bf16 --quiet", 0)


def test_types_of_a_configuration(says, tmp_path):
    def config(to: str) -> dict:
        return {
            "dtype": to,
            "thinker_config": {"dtype": f"torch.{to}" if to == "float32" else to, "text_config": {"torch_dtype": to}},
            "audio_config": {"dtype": "int8", "n": [{"dtype": "float32"}], "llm": {"a": {"b": {"torch_dtype": to}}}},
        }

    write(tmp_path, {"in/model.safetensors": file("w"), "in/config.json": config("float32")})
    for to, named in [("bf16", "bfloat16"), ("f16", "float16"), ("f64", "float64"), ("f8e4m3fn", "float32")]:
        says(f"convert in {to} --to {to} --quiet", 0)
        written = json.loads((tmp_path / to / "config.json").read_text())
        assert written == config(named), to
