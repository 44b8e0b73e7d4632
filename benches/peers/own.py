"""What the command `truecast bench` says, at every size, level and number of threads."""

import json
import subprocess
import sys

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


def measure(pairs: list[tuple[str, str]], threads: int, samples: int, size: str) -> dict:
    """The level that ran, the sizes of caches, and rows by what was measured: `one` (L2 and out of cache, one thread),
    `llc` (one thread, with counting), `all` (out of cache, all threads) and `levels` (out of cache, one thread). `size`
    is what is out of cache."""
    common = ["--pairs", ",".join(f"{src}:{dst}" for src, dst in pairs), "--best-of", str(samples)]
    one = bench(*common, "--threads", "1", "--sizes", f"l2,{size}")
    best = one["rows"][0]["level"]
    results = {
        "level": best,
        "caches": {"l2": one["l2_bytes"], "llc": one["llc_bytes"]},
        "one": one["rows"],
        "llc": bench(*common, "--threads", "1", "--sizes", "llc", "--counts")["rows"],
        "levels": {best: [row for row in one["rows"] if row["size"] != "l2"]},
    }
    if threads > 1:
        results["all"] = bench(*common, "--threads", str(threads), "--sizes", size)["rows"]
    for level in LEVELS:
        if level != best and (result := bench(*common, "--threads", "1", "--sizes", size, "--level", level)):
            results["levels"][level] = result["rows"]
    return results
