"""What `truecast bench` says at every size, level and number of threads, and `verify bench` of counting."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEVELS = ["baseline", "avx2", "avx512"]
USAGE_ERROR = 2


def bench(*options: str) -> dict | None:
    """The object of one run, None for a level that this CPU lacks."""
    command = [sys.executable, "-m", "truecast", "bench", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == USAGE_ERROR and "--level" in options:
        return None
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)


def counting(pairs: str, samples: int, level: str) -> list[dict]:
    """For each pair GB/s with all counts, and the ratio to GB/s without, of the developers' program."""
    command = ["cargo", "run", "--quiet", "--release", "-p", "truecast-verify", "--", "--level", level, "bench", "counts"]
    command += ["--pairs", pairs, "--best-of", str(samples)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    numbers = [map(float, line.split()[-2:]) for line in done.stdout.splitlines()]
    return [{"counts_gbps": gbps, "counts_ratio": ratio} for gbps, ratio in numbers]


def measure(sized: list[tuple[str, str, int]], threads: int, samples: int, size: str) -> dict:
    """The level that ran, the sizes of caches, and rows by what was measured: `one` (L2 and out of cache, one thread),
    `llc` (one thread, with counting), `all` (out of cache, all threads) and `levels` (out of cache, one thread). `size`
    is what is out of cache."""
    pairs = ",".join(f"{src}:{dst}" for src, dst, _ in sized)
    common = ["--pairs", pairs, "--best-of", str(samples)]
    one = bench(*common, "--threads", "1", "--sizes", f"l2,{size}")
    best = one["rows"][0]["level"]
    llc = bench(*common, "--threads", "1", "--sizes", "llc")["rows"]
    results = {
        "level": best,
        "caches": {"l2": one["l2_bytes"], "llc": one["llc_bytes"]},
        "one": one["rows"],
        "llc": [row | counts for row, counts in zip(llc, counting(pairs, samples, best), strict=True)],
        "levels": {best: [row for row in one["rows"] if row["size"] != "l2"]},
    }
    if threads > 1:
        results["all"] = bench(*common, "--threads", str(threads), "--sizes", size)["rows"]
    for level in LEVELS:
        if level != best and (result := bench(*common, "--threads", "1", "--sizes", size, "--level", level)):
            results["levels"][level] = result["rows"]
    return results
