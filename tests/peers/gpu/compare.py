"""Every conversion of the GPU beside truecast's. `README.md` says which; the last line printed has the totals."""

import ctypes
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

import inputs
import numpy as np
import tile
import truecast
from driver import THREADS, DriverError, Gpu
from forms import BITS, form, forms, target_of
from kernels import storage, text

SAMPLE = int(os.environ.get("GPU_SAMPLE", "1"))
"""Of this many blocks of a source, one is converted."""
KEPT_BITS = {"tf32": np.uint32(0xFFFFE000)}
"""Of a result: PTX leaves the others open."""
LARGEST_NUMBER = {
    "f16": (0x7FFF, 0x7C00), "bf16": (0x7FFF, 0x7F80),
    "f32": (0x7FFFFFFF, 0x7F800000), "tf32": (0x7FFFFFFF, 0x7F800000), "f64": ((1 << 63) - 1, 0x7FF << 52),
    "f8e4m3fn": (0x7F, 0x7E), "f8e5m2": (0x7F, 0x7C), "f8e8m0": (0xFF, 0xFE),
}  # fmt: skip
"""Bits of the magnitude, and the largest of them that is not NaN."""
SMALLEST_E8M0 = {"f32": 1 << 22, "bf16": 1 << 6}
"""2^-127."""


def is_nan(name: str, codes: np.ndarray) -> np.ndarray:
    if name not in LARGEST_NUMBER:
        return np.zeros(len(codes), bool)
    magnitude, largest = (codes.dtype.type(value) for value in LARGEST_NUMBER[name])
    return codes & magnitude > largest


def is_open(source: str, to: str, codes: np.ndarray) -> np.ndarray:
    """Where PTX says nothing (`docs/spec/ptx.md` §2.4)."""
    if to != "f8e8m0":
        return np.zeros(len(codes), bool)
    sign = codes.dtype.type(1 << BITS[source] - 1)
    return ~is_nan(source, codes) & ((codes >= sign) | (codes < SMALLEST_E8M0[source]))


@dataclass
class Conversion:
    label: str
    source: str
    to: str
    expected: Callable[[np.ndarray, np.ndarray], None]
    """Of codes, into an array of codes."""
    launch: Callable[..., None]
    """With the addresses of sources and results, and how many elements."""


@dataclass
class Comparison:
    """What was found about one conversion, added up by several threads."""

    inputs: int = 0
    differ: int = 0
    open: int = 0
    nan_bits: int = 0
    witness: dict[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def add(self, conversion: Conversion, codes: np.ndarray, actual: np.ndarray, expected: np.ndarray) -> None:
        if kept := KEPT_BITS.get(conversion.to):
            actual, expected = actual & kept, expected & kept
        where = np.flatnonzero(actual != expected)
        x, actual, expected = codes[where], actual[where], expected[where]
        both_nan = is_nan(conversion.to, actual) & is_nan(conversion.to, expected)
        is_free = is_open(conversion.source, conversion.to, x) & ~both_nan
        kinds = {"differ": ~both_nan & ~is_free, "open": is_free, "nan_bits": both_nan}
        with self.lock:
            self.inputs += len(codes)
            for kind, mask in kinds.items():
                setattr(self, kind, getattr(self, kind) + int(np.count_nonzero(mask)))
                if mask.any() and kind not in self.witness:
                    at = int(np.argmax(mask))
                    self.witness[kind] = f"{int(x[at]):#x}: GPU {int(actual[at]):#x}, truecast {int(expected[at]):#x}"


def conversions(gpu: Gpu, some, notes: list[str]) -> list[Conversion]:
    """Those forms that the driver loads and truecast takes."""
    target, there = target_of(gpu.number), []
    for one in some:
        try:
            kernel = gpu.kernel(text(one, target).encode(), "convert")
        except DriverError as error:
            notes.append(f"not compared: {one.instruction()}: {error}")
            continue

        def expected(codes, out, one=one):
            settings = {"spec": "ptx", **one.settings}
            truecast.cast(codes, one.to, from_=one.source, layout="codes", out=out, **settings)

        def launch(source, result, count, kernel=kernel, lanes=one.lanes):
            groups = count // lanes
            kernel.launch(-(-groups // THREADS), THREADS, source, result, ctypes.c_uint32(groups))

        there.append(Conversion(one.instruction(), one.source, one.to, expected, launch))
    return there


def sweep(gpu: Gpu, source: str, some: list[Conversion]) -> list[Comparison]:
    """Every block of a source through each of its conversions; blocks are divided among threads."""
    found = [Comparison() for _ in some]
    largest = max(storage(one.to) for one in some)

    def convert(begin: int) -> None:
        gpu.use()
        codes = inputs.block(source, begin)
        with gpu.memory(codes.nbytes) as sources, gpu.memory(len(codes) * largest) as results:
            gpu.upload(sources, codes)
            for one, comparison in zip(some, found, strict=True):
                actual, expected = (np.empty(len(codes), inputs.codes_of(one.to)) for _ in range(2))
                gpu.fill(results, actual.nbytes)
                one.launch(sources, results, len(codes))
                gpu.download(results, actual)
                one.expected(codes, expected)
                comparison.add(one, codes, actual, expected)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(convert, inputs.blocks(source)[::SAMPLE]):
            pass
    return found


def control(gpu: Gpu) -> None:
    """A wrong expectation has to be found: f16 rounded up where `.rn` is expected."""
    some = conversions(gpu, [form("bf16", "f16", ["rp"]) if gpu.number >= 90 else form("i16", "f16", ["rp"])], [])
    nearest = {"spec": "ptx", "rounding": "nearest-even"}

    def expected(codes, out):
        truecast.cast(codes, "f16", from_=some[0].source, layout="codes", out=out, **nearest)

    right = sweep(gpu, some[0].source, some)[0]
    some[0].expected = expected
    wrong = sweep(gpu, some[0].source, some)[0]
    assert wrong.differ > right.differ, "a wrong expectation was not noticed"


def show(label: str, found: Comparison) -> None:
    texts = {"differ": "differ", "open": "differ where PTX says nothing", "nan_bits": "have other bits of NaN"}
    for kind, what in texts.items():
        if count := getattr(found, kind):
            sign = "" if kind == "differ" else "(permitted) "
            print(f"{sign}{label}: {count} of {found.inputs} {what}; {found.witness[kind]}", flush=True)


def main() -> int:
    try:
        gpu = Gpu()
    except (OSError, DriverError):
        print("no GPU: nothing was compared")
        return 0
    truecast.set_num_threads(1)
    gpu.use()
    target, notes, found = target_of(gpu.number), [], []
    print(f"{gpu.name}, {target.name}", flush=True)
    control(gpu)
    ptx = conversions(gpu, [one for one in forms() if one.exists_on(target)], notes)
    for source in sorted({one.source for one in ptx}, key=lambda name: BITS[name]):
        begin, some = time.monotonic(), [one for one in ptx if one.source == source]
        results = sweep(gpu, source, some)
        for one, result in zip(some, results, strict=True):
            show(one.label, result)
        found += results
        print(f"{source}: {len(some)} conversions, {results[0].inputs} inputs each, {time.monotonic() - begin:.0f} s")
    for label, result in tile.compare(gpu, Conversion, Comparison, notes):
        show(label, result)
        found.append(result)
    print(*notes, sep="\n", end="\n" if notes else "")
    left_out = sum(note.startswith("not compared: ") for note in notes)
    total, differ = sum(one.inputs for one in found), sum(one.differ for one in found)
    rest = f"; {left_out} conversions were not compared" if left_out else ""
    print(f"{len(found)} conversions, {total} inputs compared{rest}; {differ} results differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
