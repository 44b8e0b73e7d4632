"""Takes the time of all contenders on the same arrays, in turns.

Both buffers are NumPy's (which asks the system for huge pages), taken once for all pairs and written once before
anything is measured. Every contender reads the same source, but for NumPy with types narrower than a byte, and writes
the same destination. In each round everyone does one pass, and the best pass counts, the first included.
"""

import sys
import time

import numpy as np
from arrays import Arrays, fill, packed_bytes
from contenders import Memcpy, Truecast

# Whoever takes longer than so many seconds does fewer passes than the others.
LONG_PASS = 0.25
LONG_SAMPLES = 3
# What no result begins with.
UNTOUCHED = 0xA5


def race(pairs: list[tuple[str, str, int]], peers: dict[str, object], threads: int, samples: int) -> list[dict]:
    """Pairs have the elements of their arrays. For each its types, elements, bytes, and for each contender the seconds of its best pass, None where it
    does not convert the pair."""
    sizes = [(n, packed_bytes(src, n), packed_bytes(dst, n)) for src, dst, n in pairs]
    src_pool = np.zeros(max(max(s, (s + d) // 2) for _, s, d in sizes), np.uint8)
    dst_pool = np.zeros(max(max(n, d, (s + d) // 2) for n, s, d in sizes), np.uint8)
    dst_pool[:] = UNTOUCHED
    contenders = {"truecast": Truecast(threads), "memcpy": Memcpy(threads), **peers}
    rows, filled = [], None
    for (src, dst, _), (n, src_bytes, dst_bytes) in zip(pairs, sizes):
        if filled != src:
            fill(src, src_pool)
            filled = src
        arrays = Arrays(src, dst, n, src_pool[:src_bytes], dst_pool[:dst_bytes], src_pool, dst_pool)
        best = _race(arrays, contenders, samples)
        rows.append({"src": src, "dst": dst, "elements": n, "bytes": arrays.bytes, "seconds": best})
        shown = "  ".join(f"{name} {'-' if t is None else f'{1e3 * t:.1f} ms'}" for name, t in best.items())
        print(f"{src} -> {dst}: {shown}", file=sys.stderr)
    return rows


def _race(arrays: Arrays, contenders: dict[str, object], samples: int) -> dict[str, float | None]:
    passes, best = {}, dict.fromkeys(contenders)
    for name, contender in contenders.items():
        try:
            passes[name], best[name] = _first_pass(contender, arrays)
        except Exception as refusal:
            if name in ("truecast", "memcpy"):
                raise
            print(f"  {name}: {' '.join(str(refusal).split())[:200]}", file=sys.stderr)
    for turn in range(1, samples):
        for name, one in passes.items():
            if turn < LONG_SAMPLES or best[name] <= LONG_PASS:
                best[name] = min(best[name], _seconds(one))
    return best


def _first_pass(contender, arrays: Arrays):
    """What does a pass, and the seconds of the first."""
    one = contender.prepare(arrays)
    arrays.dst_pool[:64] = UNTOUCHED
    seconds = _seconds(one)
    if (arrays.dst_pool[:64] == UNTOUCHED).all():
        raise RuntimeError("it did not write its result where it was told to")
    return one, seconds


def _seconds(one) -> float:
    with np.errstate(all="ignore"):
        begin = time.perf_counter()
        one()
        return time.perf_counter() - begin
