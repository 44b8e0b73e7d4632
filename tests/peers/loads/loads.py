"""Quantizes every model with every scheme and no other option, loads the results, and prints how each cell ends."""

import argparse
import contextlib
import fnmatch
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import transformers

import controls
import loading
import models
import page
import tables

# Schemes that transformers loads; whether it has modules of its own for them on a GPU.
SCHEMES = {
    "fp8-block": True, "fp8-tensor": True, "mxfp8": True, "fp8-channel": False, "ct:float-quantized": False,
    "ct:int-quantized": False, "ct:pack-quantized,bits=4,group=32": False, "ct:pack-quantized": False,
    "ct:pack-quantized,bits=4,group=32,symmetric=false": False, "ct:pack-quantized,bits=8": False,
    "ct:nvfp4-pack-quantized": False, "ct:mxfp4-pack-quantized": False, "ct:mxfp6-pack-quantized": False,
    "ct:mxfp8-quantized": False, "gpt-oss": False,
}


def truecast(*words):
    """The command, or `Wrong` with its first line."""
    ran = subprocess.run([os.environ["TRUECAST_BIN"], *map(str, words), "--quiet"], capture_output=True, text=True,
                         timeout=300)
    if ran.returncode != 0:
        raise loading.Wrong(f"truecast exits with {ran.returncode}", ran.stderr.split("\n")[0])


def cell(family, scheme, source, folder):
    """How a model in a scheme loads: "equal", "limit: ..", "refused: .." or "WRONG: .."."""
    quantized, dense = folder / "quantized", folder / "dense"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        truecast("convert", source, quantized, "--scheme", scheme)
    except loading.Wrong as wrong:
        return f"refused: {wrong}"
    try:
        truecast("convert", quantized, dense, "--to", "bf16")
        if scheme in tables.SCHEMES:
            tables.check(scheme, family, source, quantized)
            return "equal"
        loading.check(family, quantized, dense)
    except loading.Wrong as wrong:
        return explained(wrong, family, scheme, source, folder)
    if SCHEMES[scheme]:
        try:
            loading.check_on_accelerator(family, quantized, dense)
        except loading.Wrong as wrong:
            return f"WRONG: on a GPU: {wrong}"
    return "equal"


def explained(wrong, family, scheme, source, folder):
    """"limit" if a file of the same model made by compressed-tensors ends in the same way."""
    if scheme not in controls.PRESETS:
        return f"WRONG: {wrong}"
    control, dense = folder / "control", folder / "control-dense"
    controls.write(scheme, source, folder / "quantized", control, dense)
    try:
        loading.check(family, control, dense)
    except loading.Wrong as same:
        if (same.kind, same.names) == (wrong.kind, wrong.names):
            return f"limit: {wrong}"
        return f"WRONG: {wrong}; the control: {same}"
    return f"WRONG: {wrong}; the control loads"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", default="*", metavar="GLOB")
    parser.add_argument("--scheme", default="*", metavar="GLOB")
    parser.add_argument("--page", metavar="FILE", type=pathlib.Path, help="also write the page of results")
    options = parser.parse_args()
    families = [name for name in models.SIZES if fnmatch.fnmatchcase(name, options.family)]
    schemes = [name for name in [*SCHEMES, *tables.SCHEMES] if fnmatch.fnmatchcase(name, options.scheme)]
    quiet()
    started, results = time.monotonic(), {}
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        for family in families:
            source = place / "source"
            shutil.rmtree(source, ignore_errors=True)
            with contextlib.redirect_stderr(open(os.devnull, "w")):
                models.build(family, source)
            for scheme in schemes:
                if scheme in ("gpt-oss",) and family != "gpt-oss":
                    continue
                with contextlib.redirect_stderr(open(os.devnull, "w")):
                    results[family, scheme] = cell(family, scheme, source, place / "cell")
                print(f"{family:17} {scheme:50} {results[family, scheme]}", flush=True)
    counts = {word: sum(found.split(":")[0] == word for found in results.values())
              for word in ("equal", "limit", "refused", "WRONG")}
    print(f"{len(results)} cells: " + ", ".join(f"{count} {word}" for word, count in counts.items())
          + f"; {time.monotonic() - started:.0f} s")
    if options.page:
        options.page.write_text(page.text(results, families, schemes))
    return 1 if counts["WRONG"] else 0


def quiet():
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity(logging.CRITICAL)
    logging.getLogger("compressed_tensors").setLevel(logging.CRITICAL)
    import loguru
    loguru.logger.remove()


if __name__ == "__main__":
    sys.exit(main())
