"""Quantizes every model with every scheme and no other option, loads the results, and prints how each ends."""

import argparse
import contextlib
import fnmatch
import logging
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import loguru
import transformers

import controls
import every
import loading
import models
import page

# Schemes that transformers loads; whether it has modules of its own for them on a GPU.
SCHEMES = {
    "fp8-block": True, "fp8-tensor": True, "mxfp8": True, "fp8-channel": False, "ct:float-quantized": False,
    "ct:int-quantized": False, "ct:pack-quantized,bits=4,group=32": False, "ct:pack-quantized": False,
    "ct:pack-quantized,bits=4,group=32,symmetric=false": False, "ct:pack-quantized,bits=8": False,
    "ct:nvfp4-pack-quantized": False, "ct:mxfp4-pack-quantized": False, "ct:mxfp6-pack-quantized": False,
    "ct:mxfp8-quantized": False, "gpt-oss": False,
}
# Schemes that only others load.
MODELOPT = ("modelopt:W4A16_NVFP4", "modelopt:FP8_PER_CHANNEL_PER_TOKEN", "modelopt:FP8_PB_WO", "modelopt:MXFP8",
            "modelopt:FP8", "modelopt:NVFP4")
VLLM_FAMILIES = ("Llama", "Llama (tied)", "Llama (odd sizes)", "Qwen3 (tied)", "Qwen3-MoE", "Qwen2-MoE", "Gemma 2",
                 "Gemma 3 (text)", "Mistral", "Mixtral", "gpt-oss", "DeepSeek V3", "Llama 4", "Phi-3")
# What truecast may refuse: static scales of inputs that nobody gave it; rows that are no whole groups or blocks, all of
# them in one model (compressed-tensors: "tensor column shape must be divisble by the given group_size").
REFUSALS = (
    (None, "needs? the largest (magnitude of the inputs|input magnitude)"),
    (("Llama (odd sizes)",), "quantizes no tensor"),
)
# What vLLM has no place for, by scheme and message. Its parameters are made by the running package: that it has none of
# the name, or of another shape, is the witness.
VLLM_LIMITS = (
    ("fp8-tensor", r".*(no attribute 'data'|weight_scale_inv)",
     "the one scale is called weight_scale, in transformers weight_scale_inv"),
    ("mxfp8", r".*(no attribute 'data'|weight_scale_inv|w13_bias)",
     "scales are called weight_scale, in transformers weight_scale_inv"),
    ("ct:mxfp6-pack-quantized", r".*No compressed-tensors compatible scheme", "no layer for MXFP6"),
    ("fp8-block", r".*exceeds dimension size", "each part of a fused layer must be whole blocks"),
    ("modelopt:FP8_PB_WO", r".*requires in divisible by 128", "rows must be whole blocks"),
    ("modelopt:FP8_PER_CHANNEL_PER_TOKEN", r".*shape '\[\]' is invalid", "experts have one scale each"),
    ("modelopt:FP8_PB_WO", r".*shape '\[\]' is invalid", "experts have one scale each"),
    # Llama 4's loader changes the order of the rows of q and k.
    ("modelopt:FP8_PB_WO", r".*too many values to unpack", "scales of q and k must have two dimensions in Llama 4"),
    ("ct:pack-quantized,bits=4,group=32,symmetric=false", r"weights differ: model\.layers\.\d\.self_attn\.qkv_proj",
     "Llama 4's rows of q and k change places, but not their zero points"),
)


def truecast(*words):
    """The command, or `Wrong` with its first line."""
    ran = subprocess.run([os.environ["TRUECAST_BIN"], *map(str, words), "--quiet"], capture_output=True, text=True,
                         timeout=300)
    if ran.returncode != 0:
        raise loading.Wrong(f"exit {ran.returncode}", re.sub(r"^truecast: (/\S+: )?", "", ran.stderr.split("\n")[0]))


def convert(family, scheme, source, folder):
    """Writes the folder and its dequantized weights; says so where truecast refuses."""
    try:
        truecast("convert", source, folder / "quantized", "--scheme", scheme)
    except loading.Wrong as wrong:
        expected = any(re.search(pattern, str(wrong)) and family in (of or models.SIZES) for of, pattern in REFUSALS)
        return f"refused: {wrong}" if expected else f"WRONG: refused: {wrong}"
    try:
        truecast("convert", folder / "quantized", folder / "dense", "--to", "bf16")
    except loading.Wrong as wrong:
        return f"WRONG: back to bf16: {wrong}"
    return None


def in_transformers(family, scheme, source, folder):
    """How a folder loads: "equal", "limit: .." or "WRONG: ..", with what was seen."""
    quantized, dense = folder / "quantized", folder / "dense"
    of = models.model_class(family), models.inputs(family)
    try:
        loading.check(*of, quantized, dense)
    except loading.Wrong as wrong:
        return explained(wrong, family, scheme, source, folder)
    if SCHEMES[scheme]:
        try:
            loading.check_on_accelerator(of[0], quantized, dense)
        except loading.Wrong as wrong:
            return f"WRONG: on a GPU: {wrong}"
    return "equal"


def explained(wrong, family, scheme, source, folder):
    """"limit" if a file of the same model made by compressed-tensors ends in the same way."""
    if scheme not in controls.PRESETS:
        return f"WRONG: {wrong}"
    control, dense = folder / "control", folder / "control-dense"
    # The dense copy of a file with fused experts may have a tensor for each of their layers.
    controls.write(scheme, folder / "dense" if family == "Llama 4" else source, control, dense)
    try:
        loading.check(models.model_class(family), models.inputs(family), control, dense)
    except loading.Wrong as same:
        if (same.kind, same.names) == (wrong.kind, wrong.names):
            return f"limit: {wrong}"
        return f"WRONG: {wrong}; the control: {same}"
    return f"WRONG: {wrong}; the control loads"


def in_vllm(source, folders):
    """How vLLM loads folders of one family, by scheme; "not run" where it does not load the dense model either."""
    if not folders:
        return {}
    here = pathlib.Path(__file__).with_name("vllm_loading.py")
    pairs = [source, source, *(part for folder in folders.values() for part in (folder / "quantized", folder / "dense"))]
    ran = subprocess.run([sys.executable, here, *pairs], capture_output=True, text=True, timeout=900)
    lines = dict(line.split("\t") for line in ran.stdout.splitlines() if "\t" in line)
    plain = lines.get(str(source), f"exit {ran.returncode}: {ran.stderr.splitlines()[-1:]}")
    if not plain.startswith("equal"):
        return {scheme: f"not run: the dense model: {plain}" for scheme in folders}
    return {scheme: judged(scheme, lines.get(str(folder / "quantized"), "no result"))
            for scheme, folder in folders.items()}


def judged(scheme, result):
    if result.startswith("equal"):
        return "equal"
    for of, pattern, cause in VLLM_LIMITS:
        if scheme == of and re.match(pattern, result):
            return f"limit: {cause}"
    return f"WRONG: {result}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", default="*", metavar="GLOB")
    parser.add_argument("--scheme", default="*", metavar="GLOB")
    parser.add_argument("--page", metavar="FILE", type=pathlib.Path, help="also write the page of results")
    parser.add_argument("--all", action="store_true", help="a model of every type of transformers, not those of models.py")
    parser.add_argument("--sample", metavar="DATE", help="of --all, 30 models drawn by the date")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE", help="of --all: records; a later run continues")
    parser.add_argument("--models", type=pathlib.Path, metavar="DIR", help="of --all: where built models stay")
    options = parser.parse_args()
    quiet()
    if options.all or options.sample:
        return all_types(options)
    started, results = time.monotonic(), {}
    for family in models.SIZES:
        if fnmatch.fnmatchcase(family, options.family):
            with tempfile.TemporaryDirectory() as place, contextlib.redirect_stderr(open(os.devnull, "w")):
                for key, found in of_family(family, options.scheme, pathlib.Path(place)):
                    results[key] = found
                    print(f"{key[0]:12} {family:17} {key[2]:50} {found}", flush=True)
    words = ("equal", "limit", "refused", "not run", "WRONG")
    counts = {word: sum(found.split(":")[0] == word for found in results.values()) for word in words}
    print(f"{len(results)} cells: " + ", ".join(f"{count} {word}" for word, count in counts.items())
          + f"; {time.monotonic() - started:.0f} s")
    if options.page:
        page.write(options.page, results=results)
    return 1 if counts["WRONG"] else 0


def of_family(family, wanted, place):
    """Cells of a family, as (program, family, scheme) and how it ends."""
    source, ends = place / "source", {}
    models.build(family, source)
    for scheme in (*SCHEMES, *MODELOPT):
        if not fnmatch.fnmatchcase(scheme, wanted) or scheme == "gpt-oss" != family:
            continue
        folder = place / named(scheme)
        folder.mkdir()
        refused = convert(family, scheme, source, folder)
        if scheme in SCHEMES:
            yield ("transformers", family, scheme), refused or in_transformers(family, scheme, source, folder)
        if family in VLLM_FAMILIES:
            ends[scheme] = refused
    found = in_vllm(source, {scheme: place / named(scheme) for scheme, end in ends.items() if not end})
    for scheme, end in ends.items():
        yield ("vLLM", family, scheme), end or found[scheme]


def all_types(options):
    """Every type, or a sample of them."""
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stderr(open(os.devnull, "w")):
        options.results = options.results or pathlib.Path(place) / "results"
        options.models = options.models or pathlib.Path(place) / "models"
        options.models.mkdir(parents=True, exist_ok=True)
        records = list(every.run(options).cells.values())
    print(every.summary(records))
    if options.page:
        page.write(options.page, records=records)
    return 1 if any(page.outcome(record) == "WRONG" for record in records if record["scheme"] != "build") else 0


def named(scheme):
    """The name of its folder."""
    return re.sub(r"\W", "-", scheme)


def quiet():
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity(logging.CRITICAL)
    loguru.logger.remove()


if __name__ == "__main__":
    sys.exit(main())
