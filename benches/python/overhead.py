"""What the Python package adds to the engine: large arrays beside the command's own bench, the time of one call on a small
array, and of the import. Needs the package as releases are built (`pip install .`), and a machine that does nothing else.

    python benches/python/overhead.py [--rounds 11] [--pairs f32:bf16,..]

Both columns of parts compare with the command's bench, which writes to memory that was written before: `out=` does the
same, and a result that is made and dropped lies in the memory of the one before. `first` is a result that no memory is kept
for: the system clears each of its pages when it is first written. Beside it stands what clearing alone would leave: the sum
of a cast with `out=` and of one write to each page of as much memory, by as many threads.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import timeit
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import truecast as tc

PAIRS = ["f32:bf16", "f32:f8e4m3fn", "bf16:f32", "f8e4m3fn:bf16"]
ELEMENTS = 64 << 20
PAGE = 4096


def engine(pair: str, threads: int) -> float:
    """Elements a second of the command's bench, in one run: buffers of 64 Mi elements that it has used before."""
    options = ["--pairs", pair, "--sizes", "dram", "--threads", str(threads), "--best-of", "3", "--json"]
    done = subprocess.run([sys.executable, "-m", "truecast", "bench", *options], capture_output=True, text=True, check=True)
    row = json.loads(done.stdout)["rows"][0]
    width = (tc.finfo(row["src"]).storage_bits + tc.finfo(row["dst"]).storage_bits) / 8
    return row["gbps"] * 1e9 / width


def package(x: np.ndarray, to: str, out: np.ndarray | None, is_first: bool = False) -> float:
    best = 0.0
    for _ in range(3):
        if is_first:
            tc.release_memory()
        begin = time.perf_counter()
        tc.cast(x, to, out=out)
        best = max(best, x.size / (time.perf_counter() - begin))
    return best


def clearing(size: int, threads: int) -> float:
    """Seconds until each page of so many new bytes was written once."""

    def write(part: np.ndarray) -> None:
        part[::PAGE] = 0

    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(3):
            memory = np.empty(size, np.uint8)
            begin = time.perf_counter()
            list(pool.map(write, np.array_split(memory, threads)))
            best = min(best, time.perf_counter() - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--pairs", type=lambda pairs: pairs.split(","), default=PAIRS)
    asked = parser.parse_args()
    rounds = asked.rounds
    columns = "pair threads bench out= part made part first of_clearing".split()
    print(" ".join(f"{column:>11}" for column in columns), "  (10^9 elements a second)")
    for threads in (1, tc.get_num_threads()):
        tc.set_num_threads(threads)
        for pair in asked.pairs:
            src, dst = pair.split(":")
            x = tc.cast(np.random.default_rng(1).standard_normal(ELEMENTS, np.float32), src)
            out = tc.cast(x, dst)
            seen = []
            for _ in range(rounds):
                package(x, dst, None)
                bench, into, made = engine(pair, threads), package(x, dst, out), package(x, dst, None)
                first = package(x, dst, None, is_first=True)
                limit = x.size / (x.size / into + clearing(out.nbytes, threads))
                seen.append((bench / 1e9, into / 1e9, into / bench, made / 1e9, made / bench, first / 1e9, first / limit))
            medians = [statistics.median(column) for column in zip(*seen)]
            print(f"{pair:>11} {threads:11}", " ".join(f"{median:11.2f}" for median in medians), flush=True)
    tc.set_num_threads(None)

    small, out = np.ones(16, np.float32), np.ones(16, np.float16)
    for name, call in {
        "16 elements": lambda: tc.cast(small, "f16"),
        "16 elements, out=": lambda: tc.cast(small, "f16", out=out),
        "16 elements, to ml_dtypes": lambda: tc.cast(small, "f8e4m3fn"),
        "16 elements, spec=": lambda: tc.cast(small, "f8e4m3fn", spec="tosa"),
        "NumPy's astype": lambda: small.astype(np.float16),
    }.items():
        seconds = statistics.median(timeit.repeat(call, number=20_000, repeat=rounds)) / 20_000
        print(f"{name:>26}: {seconds * 1e6:.2f} us")

    code = "import time; b = time.perf_counter(); import truecast; print(time.perf_counter() - b)"
    taken = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(rounds)]
    print(f"{'import':>26}: {statistics.median(taken) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
