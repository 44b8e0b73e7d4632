"""What an error advises is fed back to the command, and must work: an option that is added, or takes the place of another.

Each input makes an error; the options in its message are those that the row names, and each is tried.
"""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from small_checkpoints import Make, awq, gptq, mlx, model, packed, safetensors, single
from command import ROOT, Truecast

FP8 = ["m.a.weight F8_E4M3 256x512", "m.a.weight_scale_inv F32 2x4"]
BLOCKS = {"quant_method": "fp8", "weight_block_size": [128, 128]}
NAN = np.float32("nan")
TO_BF16 = "convert model out --to bf16"
FILE_TO_BF16 = "convert a.safetensors out.safetensors --to bf16"


class Case(NamedTuple):
    make: Make
    command: str
    #: The options that the message names, with their values; `None`: it names none.
    advised: list[str] | None
    #: What is typed for a word of the message.
    words: dict[str, str] = {}
    #: Commands before it.
    before: tuple[str, ...] | list[str] = ()


def exists(folder: Path) -> None:
    single("w F32 8x8")(folder)
    (folder / "out.safetensors").write_bytes(b"")


def occupied(folder: Path) -> None:
    model("m.a.weight F32 64x64")(folder)
    (folder / "out").mkdir()
    (folder / "out/notes.txt").write_text("mine")


def stale(folder: Path) -> None:
    model("m.a.weight F32 64x64")(folder)
    safetensors(folder / "out/other.safetensors", "w F32 8x8")


def tensor_proto(folder: Path) -> None:
    tensor = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], bytes(8), raw=True)
    tensor.raw_data = bytes(12)
    (folder / "a.pb").write_bytes(tensor.SerializeToString())


def onnx_model(folder: Path) -> None:
    """A Cast of two numbers."""
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT16)
    inputs, outputs = value("x", onnx.TensorProto.FLOAT, [2]), value("y", onnx.TensorProto.FLOAT16, [2])
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "g", [inputs], [outputs])), folder / "m.onnx")
    np.save(folder / "x.npy", np.float32([1, 2]))


def linked(folder: Path) -> None:
    model("m.a.weight F32 64x64")(folder)
    (folder / "model/model.safetensors").rename(folder / "blob.safetensors")
    (folder / "model/model.safetensors").symlink_to(folder / "blob.safetensors")


def array(folder: Path) -> None:
    np.save(folder / "a.npy", np.zeros(8, "V1"))


def two_arrays(folder: Path) -> None:
    np.save(folder / "a.npy", np.zeros(8, np.float32))
    np.save(folder / "b.npy", np.zeros(8, np.float16))


CASES = {
    # Which scheme, by the shapes.
    "blocks are not declared": Case(model(*FP8), TO_BF16, ["--from-scheme fp8-block:128x128"]),
    "blocks are declared wrongly": Case(
        model(*FP8, quantization={**BLOCKS, "weight_block_size": [64, 64]}),
        TO_BF16,
        ["--from-scheme fp8-block:128x128"],
    ),
    "one scale, nothing declared": Case(
        single("m.a.weight F8_E4M3 64x64", "m.a.weight_scale F32"),
        FILE_TO_BF16,
        ["--from-scheme fp8-tensor"],
    ),
    "a scale for each row": Case(
        model("m.a.weight F8_E4M3 64x64", "m.a.weight_scale F32 64x1"),
        TO_BF16,
        ["--from-scheme fp8-channel"],
    ),
    "several blocks fit": Case(
        model("m.a.weight F8_E4M3 64x256", "m.a.weight_scale_inv F32 4x2"),
        TO_BF16,
        ["--from-scheme fp8-block:16x128"],
    ),
    "any block fits": Case(
        model("m.a.weight F8_E4M3 16x16", "m.a.weight_scale_inv F32 1x1x1"),
        TO_BF16,
        None,
    ),
    "a scale without a weight that has any": Case(
        model("m.a.weight BF16 64x64", "m.a.weight_scale_inv F32 1x1"), TO_BF16, None
    ),
    "nothing is quantized": Case(
        model("m.a.weight BF16 64x64", quantization=BLOCKS),
        TO_BF16,
        ["--from-scheme plain"],
    ),
    "a key that says who knows what": Case(
        model(*FP8, quantization={**BLOCKS, "rotation": "x"}),
        TO_BF16,
        ["--from-scheme fp8-block:128x128"],
    ),
    "a key beside shapes that do not fit": Case(
        model(
            *FP8,
            quantization={**BLOCKS, "weight_block_size": [64, 64], "rotation": "x"},
        ),
        TO_BF16,
        None,
    ),
    "GPTQ: other groups": Case(gptq(group_size=64), TO_BF16, ["--from-scheme gptq,bits=4,group=32"]),
    "GPTQ: other width": Case(gptq(bits=8), TO_BF16, ["--from-scheme gptq,bits=4,group=32"]),
    "GPTQ: no width": Case(
        gptq(),
        TO_BF16.replace("--to", "--from-scheme gptq_v2,group=32 --to"),
        ["--from-scheme gptq_v2,bits=4,group=32"],
    ),
    "GPTQ: only the family": Case(
        gptq(zeros=0x88888888, checkpoint_format="gptq_v2", bits=4),
        TO_BF16.replace("--to", "--from-scheme gptq,bits=8 --to"),
        ["--from-scheme gptq,bits=4,group=32"],
    ),
    "GPTQ: skipped modules": Case(gptq(dynamic={"-:.*x.*": {}}), TO_BF16, ["--from-scheme gptq,bits=4,group=32"]),
    "GPTQ: mixed widths": Case(
        model(
            *["m.a.qweight I32 16x32", "m.a.qzeros I32 4x4", "m.a.scales F16 4x32"],
            *["m.b.qweight I32 32x32", "m.b.qzeros I32 4x8", "m.b.scales F16 4x32"],
            quantization={
                "quant_method": "gptq",
                "bits": 4,
                "group_size": 32,
                "dynamic": {"+:.*b": {"bits": 8}},
            },
        ),
        TO_BF16,
        None,
    ),
    "GPTQ: zero points of the second format": Case(
        gptq(zeros=0x88888888, sym=True),
        TO_BF16,
        ["--from-scheme gptq_v2,bits=4,group=32"],
    ),
    "GPTQ: zero points of the first format": Case(
        gptq(sym=True, checkpoint_format="gptq_v2"),
        TO_BF16,
        ["--from-scheme gptq,bits=4,group=32"],
    ),
    "GPTQ: zero points of no format": Case(
        gptq(zeros=0x12345678, sym=True),
        TO_BF16,
        ["--from-scheme gptq,bits=4,group=32"],
    ),
    "AWQ: no group": Case(awq(), TO_BF16, ["--from-scheme awq,group=32"]),
    "AWQ: zero points": Case(awq(0x12345678, zero_point=False), TO_BF16, ["--from-scheme awq,group=32"]),
    "MLX: other width": Case(
        mlx(4, 128),
        TO_BF16,
        [f"--from-scheme mlx:affine,bits={bits},group={256 // bits}" for bits in (2, 4, 8)],
    ),
    "MLX: a module that is not there": Case(mlx(8, 32, **{"x.a": {"bits": 4, "group_size": 64}}), TO_BF16, None),
    "NVFP4: half of the scales": Case(
        model(
            *[
                "m.a.weight U8 32x32",
                "m.a.weight_scale F8_E4M3 32x2",
                "m.a.weight_scale_2 F32",
            ],
            quantization={"quant_method": "modelopt", "quant_algo": "NVFP4"},
            weight_scale_2=np.float32(0.01),
        ),
        TO_BF16,
        None,
    ),
    "CT: other groups": Case(
        packed(group_size=64),
        TO_BF16,
        ["--from-scheme ct:pack-quantized,bits=4,strategy=group,group=32,symmetric=true"],
    ),
    "CT: zero points": Case(
        packed(0x12345678, symmetric=True),
        TO_BF16,
        ["--from-scheme ct:pack-quantized,bits=4,strategy=group,group=32,symmetric=false"],
    ),
    "ModelOpt: a global scale of the other kind": Case(
        model(
            *[
                "m.a.weight U8 32x32",
                "m.a.weight_scale F8_E4M3 32x4",
                "m.a.weight_scale_2 F32",
            ],
            quantization={"quant_method": "modelopt", "quant_algo": "NVFP4"},
            weight_scale_2=np.float32(100),
        ),
        TO_BF16,
        ["--trust-scales"],
    ),
    # What becomes of quantized tensors.
    "a quantized tensor is kept": Case(
        model(*FP8, quantization=BLOCKS),
        "convert model out --keep *a*  --to bf16",
        ["--to bf16"],
    ),
    "a narrow type": Case(
        model(*FP8, quantization=BLOCKS),
        "convert model out --to i8",
        ["--scheme NAME", "--to bf16", "--rule '*=i8'"],
        {"NAME": "int8-channel"},
    ),
    "a scheme that is not written": Case(model("m.a.weight F32 64x64"), "convert model out --scheme mlx:mxfp4", None),
    "NaN is quantized": Case(
        model("m.a.weight F32 64x64", weight=NAN),
        "convert model out --scheme int8-channel",
        ["--nonfinite saturate"],
    ),
    "scales of activations are not known": Case(
        model("m.a.weight F32 64x64"),
        "convert model out --scheme modelopt:FP8",
        ["--activation-ranges FILE", "--scheme modelopt:FP8_PER_CHANNEL_PER_TOKEN"],
        {"FILE": "ranges.json"},
    ),
    # Files and folders.
    "the destination exists": Case(exists, FILE_TO_BF16, ["--force"]),
    "the folder holds something": Case(occupied, TO_BF16, ["--force"]),
    "a link": Case(linked, TO_BF16, ["--follow-links"]),
    "little memory": Case(single("w F32 64x64"), FILE_TO_BF16 + " --max-memory 1KiB", ["--max-memory 1048576"]),
    "an array without a type": Case(array, "convert a.npy b.npy --to f32", ["--from"], {"--from": "--from u8"}),
    "a result that records no options": Case(two_arrays, "verify a.npy b.npy", ["--to f16"]),
    "nothing to do": Case(
        single("w F32 8x8"),
        FILE_TO_BF16.replace("--to bf16", ""),
        ["--to TYPE", "--rule GLOB=TYPE"],
        {"TYPE": "bf16", "GLOB": "*"},
    ),
    "a specification without the type": Case(
        single("w F32 8x8"),
        FILE_TO_BF16.replace("bf16", "f64 --spec tosa"),
        ["--spec ieee"],
    ),
    # Files of other kinds.
    "a run that was never begun": Case(occupied, TO_BF16 + " --resume", ["--force"]),
    "a run with other options": Case(
        model("m.a.weight F32 64x64"), TO_BF16 + " --resume", ["--force"], before=["convert model out --to f16"]
    ),
    "a run that is done": Case(model("m.a.weight F32 64x64"), TO_BF16, ["--resume", "--force"], before=[TO_BF16]),
    "weights of another run": Case(stale, TO_BF16, None),
    "a tensor that the scheme cannot hold": Case(
        model("m.a.weight F32 64x64", "m.b.weight F32 64x40"),
        "convert model out --scheme mxfp4 --quantize *",
        ["--keep"],
        {"--keep": "--keep m.b.weight --quantize m.a.weight"},
    ),
    "nothing is read as another type": Case(
        single("w F32 8x8"), FILE_TO_BF16 + " --from f8e4m3fn", ["--from needs", "--rule"], {"--rule": "--rule w=bf16"}
    ),
    "a global scale without an inverse": Case(
        model(
            *["m.a.weight U8 32x32", "m.a.weight_scale F8_E4M3 32x4", "m.a.weight_scale_2 F32"],
            quantization={"quant_method": "modelopt", "quant_algo": "NVFP4"},
            weight_scale_2=np.float32(0.1),
        ),
        "convert model out --scheme ct:nvfp4-pack-quantized --relayout exact",
        ["--relayout lossy"],
    ),
    "a .pb tensor with more bytes": Case(tensor_proto, "convert a.pb b.npy --to f16", ["--lenient"]),
    "an input without its name": Case(onnx_model, "run m.onnx --input x.npy --output-dir out", ["--input x=x.npy"]),
    "a model without its input": Case(
        onnx_model,
        "run m.onnx --output-dir out",
        ["--input x=FILE"],
        {"FILE": "x.npy"},
    ),
}

#: Verbs and other words that follow an option without being its value.
NO_VALUE = (
    "reads|applies|accepts|takes|replaces|continues|starts|removes|dequantizes|ignores|needs|or|and|of|to|that|fits"
)
OPTION = re.compile(rf"--[a-z][a-z-]*(?:[ =](?!(?:{NO_VALUE})\b)('[^']*'|[^\s;()]+))?")


def run(truecast: Truecast, folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [truecast.binary, *command], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def prepare(truecast: Truecast, folder: Path, case: Case) -> str:
    """Runs the command, and returns its error."""
    case.make(folder)
    (folder / "ranges.json").write_text('{"m.a": 4.0}')
    for command in case.before:
        done = run(truecast, folder, shlex.split(command))
        assert done.returncode == 0, done.stderr
    failed = run(truecast, folder, shlex.split(case.command))
    assert failed.returncode in (2, 3), failed.stderr
    assert failed.stderr.startswith("truecast: ") and failed.stderr.count("\n") == 1, failed.stderr
    return failed.stderr


def with_option(command: list[str], option: list[str]) -> list[str]:
    """The command with options in place of what it has of the same name, or for the same."""
    instead = {"--scheme": {"--to"}, "--rule": {"--to", "--from"}, "--to": {"--keep"}, "--force": {"--resume"}}
    gone = {name for word in option if word.startswith("--") for name in {word, *instead.get(word, ())}}
    words: list[str] = []
    rest = iter(command)
    for word in rest:
        if word not in gone:
            words.append(word)
        elif word not in ("--resume", "--lenient"):
            next(rest)
    return words + option


def copied(folder: Path) -> Path:
    copy = folder / f"copy{len(list(folder.iterdir()))}"
    shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns("copy*"))
    return copy


@pytest.mark.parametrize("name", CASES)
def test_advice_works(truecast, tmp_path, name):
    case = CASES[name]
    said = prepare(truecast, tmp_path, case)
    said, *line = re.split(r"; (?:type|for example): truecast ", said)
    for words in line:
        worked = run(truecast, copied(tmp_path), shlex.split(words))
        assert worked.returncode == 0, (words, worked.stderr)
    advice = said.split("; ", 1)[1] if "; " in said else said
    found = list(dict.fromkeys(match.group().rstrip(".,;:") for match in OPTION.finditer(advice)))
    assert found == [option.removesuffix(" needs") for option in case.advised or []], said
    for option in found:
        if f"{option} needs" in (case.advised or []):
            continue
        text = option
        for word, value in case.words.items():
            text = text.replace(word, value)
        worked = run(truecast, copied(tmp_path), with_option(shlex.split(case.command), shlex.split(text)))
        assert worked.returncode == 0, (text, said, worked.stderr)


#: The beginnings of advice in `hint.rs` for which no row makes an input, and what one would need.
UNTRIED = {
    "give a file that `convert --report`": "a report, which is named",
    "take names, keys and vocabulary": "a model that llama.cpp knows",
    "lower --max-memory": "a machine without memory",
    "measure smaller --sizes": "a machine without memory",
    "give the other --nibbles": "a reference",
    "--from applies to arrays": "nothing: it says where an option belongs",
    "--from reads elements": "nothing: it says where an option belongs",
    "give the right --from": "the type, which is not known",
    "omit --from; --to": "an option less",
    "check --from": "an option less",
    "omit --keep-preset": "an option less",
    "omit --from-scheme": "an option less",
    "or omit --{}": "an option less",
    "--quantize GLOB quantizes": "a choice of tensors",
    "--json prints the report": "a stream, which crates/cli/tests/cli/sentences.rs has",
    "choose another --output-dir": "a folder, which is not known",
    "choose --output-format pb": "a model with texts",
    "name one with --entry": "a Tile IR module",
    "--spec {fitting}": "a Tile IR module",
    "give --input for every": "an OpenVINO model",
    "name it with --ir-layout": "an OpenVINO model",
    "add --input {}": "a TOSA graph that reads a file",
    "use that or --spec ieee": "another version",
    "choose {typed}": "two declarations that differ",
    "{typed} reads": "nothing: its options are in the text",
    "`truecast convert SRC DST --to TYPE` converts": "another command",
    "types without scales, such as a plain f8e4m3fn": "another command",
    "{typed} fits": "nothing: its options are in the text",
    "give that as --like FOLDER": "a model for llama.cpp, which crates/cli/tests/cli/llamacpp.rs has",
    "give it: --like FOLDER": "a model for llama.cpp, which crates/cli/tests/cli/llamacpp.rs has",
    "--like takes a .gguf file": "a model for llama.cpp, which crates/cli/tests/cli/llamacpp.rs has",
    "give --like a file": "another model for llama.cpp",
    "take names, keys and vocabulary": "a model for llama.cpp",
}


def test_every_advice_has_a_row(truecast, tmp_path):
    """Each text of the table of hints that has an option in it is in an error of a row above."""
    errors = []
    for number, case in enumerate(CASES.values()):
        (tmp_path / str(number)).mkdir()
        errors.append(prepare(truecast, tmp_path / str(number), case))
    source = (ROOT / "crates/cli/src/hint.rs").read_text().split("\nhints! {")[1].split("\n}\n")[0]
    source = re.sub(r"\\\n *", "", source)
    texts = [text for text in re.findall(r'"((?:[^"\\]|\\.)*)"', source) if re.search(r"--[a-z]|\{typed", text)]
    assert len(texts) > 30
    for text in texts:
        if any(text.startswith(known) for known in UNTRIED):
            continue
        words = re.sub(r"\\\{[^}]*\\\}", ".*", re.escape(text))
        assert any(re.search(words, error) for error in errors), text
