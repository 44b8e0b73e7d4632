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


def measure(pairs: list[tuple[str, str]], threads: int, samples: int) -> dict:
    """Rows by what was measured: `one` (L2 and DRAM, one thread), `llc` (one thread, with counting), `all` (DRAM, all
    threads) and `levels` (DRAM, one thread)."""
    common = ["--pairs", ",".join(f"{src}:{dst}" for src, dst in pairs), "--best-of", str(samples)]
    one = bench(*common, "--threads", "1", "--sizes", "l2,dram")
    best = one["rows"][0]["level"]
    results = {
        "caches": {"l2": one["l2_bytes"], "llc": one["llc_bytes"]},
        "one": one["rows"],
        "llc": bench(*common, "--threads", "1", "--sizes", "llc", "--counts")["rows"],
        "levels": {best: [row for row in one["rows"] if row["size"] == "dram"]},
    }
    if threads > 1:
        results["all"] = bench(*common, "--threads", str(threads), "--sizes", "dram")["rows"]
    for level in LEVELS:
        if level != best and (result := bench(*common, "--threads", "1", "--sizes", "dram", "--level", level)):
            results["levels"][level] = result["rows"]
    return results
