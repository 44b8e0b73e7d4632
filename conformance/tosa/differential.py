"""truecast beside Arm's reference model: random legal RESCALEs and every plain CAST, bit for bit (docs/spec/tosa.md §9).

    python conformance/tosa/differential.py [--elements N] [--sweep f8e4m3|f8e5m2]

Needs tosa-tools==2026.8.0 and truecast (TRUECAST_BIN or on the path). Both evaluate the same `.tosa` file. Rules of §9.8: any
NaN equals any NaN, NaN to an integer is skipped, and i32 to bf16 where the model rounds twice. i48 and INEXACT_ROUND are
not here: the model's binding lacks the former, and the latter is an interval. --sweep casts all 2^32 codes of fp32.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tosa_reference_model
import tosa_serializer as ts

TRUECAST = os.environ.get("TRUECAST_BIN", "truecast")
D, MODE = ts.DType, ts.RoundingMode
BITS = {D.BOOL: 8, D.INT8: 8, D.INT16: 16, D.INT32: 32, D.FP16: 16, D.BF16: 16, D.FP32: 32, D.FP8E4M3: 8, D.FP8E5M2: 8}
CARRIER = {D.BOOL: "?", D.INT8: "i1", D.INT16: "<i2", D.INT32: "<i4", D.FP16: "<f2", D.BF16: "<u2", D.FP32: "<f4"}
INTEGERS = (D.INT8, D.INT16, D.INT32)
FLOATS = {D.FP8E4M3: (4, 3), D.FP8E5M2: (5, 2), D.FP16: (5, 10), D.BF16: (8, 7), D.FP32: (8, 23)}

# §3.2: destinations of each source.
CASTS = {
    D.BOOL: INTEGERS,
    D.INT8: (D.BOOL, D.INT16, D.INT32, D.FP16, D.BF16, D.FP32),
    D.INT16: (D.BOOL, D.INT8, D.INT32, D.FP16, D.BF16, D.FP32),
    D.INT32: (D.BOOL, D.INT8, D.INT16, D.FP16, D.BF16, D.FP32),
    D.FP8E4M3: (D.FP16, D.BF16, D.FP32),
    D.FP8E5M2: (D.FP16, D.BF16, D.FP32),
    D.FP16: (*INTEGERS, D.FP8E4M3, D.FP8E5M2, D.FP32),
    D.BF16: (*INTEGERS, D.FP8E4M3, D.FP8E5M2, D.FP32),
    D.FP32: (*INTEGERS, D.FP8E4M3, D.FP8E5M2, D.FP16, D.BF16),
}


def array(codes, dtype):
    """Unsigned codes as the arrays that both sides read."""
    unsigned = codes.astype(f"<u{BITS[dtype] // 8}")
    return (unsigned != 0) if dtype == D.BOOL else unsigned.view(CARRIER.get(dtype, "u1"))


def codes_of(raw, dtype):
    return np.frombuffer(raw, f"<u{BITS[dtype] // 8}")


def is_nan(codes, dtype):
    if dtype not in FLOATS:
        return np.zeros(codes.shape, bool)
    exponent, fraction = FLOATS[dtype]
    magnitude = codes.astype(np.uint64) & ((1 << (exponent + fraction)) - 1)
    infinity = (1 << (exponent + fraction)) - 1 - 1 if dtype == D.FP8E4M3 else ((1 << exponent) - 1) << fraction
    return magnitude > infinity


def ours(graph, inputs, folder):
    """Status and raw output bytes of `truecast run`."""
    (folder / "g.tosa").write_bytes(graph)
    command = [TRUECAST, "run", str(folder / "g.tosa"), "--output-dir", str(folder), "--force", "--quiet"]
    for name, value in inputs.items():
        np.save(folder / f"in_{name}.npy", value)
        command += ["--input", f"{name}={folder / f'in_{name}.npy'}"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode == 0:
        return "valid", np.load(folder / "y.npy").tobytes()
    return ("unpredictable" if "unpredictable" in run.stderr else "error"), run.stderr


def theirs(graph, inputs):
    outputs, status = tosa_reference_model.run(bytes(graph), list(inputs.values()), tosa_level="NONE")
    words = {"TOSA_VALID": "valid", "TOSA_UNPREDICTABLE": "unpredictable"}
    word = words.get(str(status).split(".")[-1], "error")
    return word, outputs[0].tobytes() if word == "valid" else None


def graph_of(op, attribute, tensors, output):
    serializer = ts.TosaSerializer("")
    for name, (value, dtype) in tensors.items():
        serializer.addInputTensor(ts.TosaSerializerTensor(name, list(value.shape), dtype))
    shape = list(next(iter(tensors.values()))[0].shape)
    serializer.currRegion.currBasicBlock.addTensor("y", shape, output)
    serializer.currRegion.currBasicBlock.addOutput("y")
    serializer.addOperator(op, inputs=list(tensors), outputs=["y"], attributes=attribute)
    return bytes(serializer.serialize())


def compare(op, attribute, tensors, output, folder, skip=None):
    """Elements compared; exits at the first difference."""
    graph = graph_of(op, attribute, tensors, output)
    inputs = {name: value for name, (value, _) in tensors.items()}
    (status, raw), (their_status, their_raw) = ours(graph, inputs, folder), theirs(graph, inputs)
    if status != their_status:
        sys.exit(f"{op} to {output}: {status}, the model says {their_status}: {raw if status != 'valid' else ''}")
    if status != "valid":
        return 0
    a, b = codes_of(raw, output), codes_of(their_raw, output)
    differs = (a != b) & ~(is_nan(a, output) & is_nan(b, output))
    if skip is not None:
        differs &= ~skip
    if differs.any():
        at = int(np.flatnonzero(differs)[0])
        first = next(iter(inputs.values())).reshape(-1)[at]
        sys.exit(f"{op} to {output}: element {at}, {first!r}: {a[at]:#x}, the model says {b[at]:#x}")
    return a.size


def rescale(rng, mode, n, folder):
    """One random legal RESCALE."""
    src, dst = (INTEGERS[i] for i in rng.integers(0, 3, 2))
    narrow = src != D.INT32 and dst != D.INT32
    unsigned_in, unsigned_out = ((False, False), (True, False), (False, True))[rng.integers(0, 3) if narrow else 0]
    scale32 = mode == MODE.DOUBLE_ROUND or bool(rng.integers(0, 2))
    per_channel = bool(rng.integers(0, 2))
    channels = int(rng.integers(1, 9)) if per_channel else 1
    x = array(rng.integers(0, 1 << BITS[src], (n // channels, channels), dtype=np.uint64), src)

    def zero_point(dtype, unsigned):
        if dtype == D.INT8:
            return array(rng.integers(0, 256, 1), dtype)
        return array(np.array([32768 * int(rng.integers(0, 2)) if unsigned else 0]), dtype)

    width = 31 if scale32 else 15
    multiplier = rng.integers(0, 1 << width, channels) >> rng.integers(0, width, channels)
    lowest = {D.INT8: 10, D.INT16: 18, D.INT32: 32 if scale32 else 16}[src]
    shift = rng.integers(lowest, 63, channels).astype(np.int8)
    attribute = ts.TosaSerializerAttribute()
    attribute.RescaleAttribute(scale32, mode, per_channel, unsigned_in, unsigned_out)
    tensors = {
        "x": (x, src),
        "m": (multiplier.astype(np.int32 if scale32 else np.int16), D.INT32 if scale32 else D.INT16),
        "s": (shift, D.INT8),
        "iz": (zero_point(src, unsigned_in), src),
        "oz": (zero_point(dst, unsigned_out), dst),
    }
    return compare(ts.Op.RESCALE, attribute, tensors, dst, folder)


def cast(codes, src, dst, folder):
    attribute = ts.TosaSerializerAttribute()
    attribute.CastAttribute()
    skip = None
    if src in FLOATS and dst in INTEGERS:
        skip = is_nan(codes, src)
    if (src, dst) == (D.INT32, D.BF16):
        skip = rounds_twice(codes.astype(np.uint32).view(np.int32))
    return compare(ts.Op.CAST, attribute, {"x": (array(codes, src), src)}, dst, folder, skip)


def rounds_twice(values):
    """Where rounding to fp32 makes a tie of what is none: the lower 16 bits become exactly one half, and were not."""
    single = values.astype(np.float32)
    return ((single.view(np.uint32) & 0xFFFF) == 0x8000) & (single.astype(np.int64) != values)


def cast_inputs(rng, dtype, n):
    """Every code of 16 bits or fewer; random codes, values of all sizes and neighbours of powers of two of wider types."""
    bits = BITS[dtype]
    if dtype == D.BOOL:
        return np.arange(2, dtype=np.uint64)
    if bits <= 16:
        return np.arange(1 << bits, dtype=np.uint64)
    random = rng.integers(0, 1 << 32, n, dtype=np.uint64)
    powers = (1 << np.arange(32, dtype=np.int64))[:, None] + np.arange(-40, 41)
    ties = (rng.integers(0, 1 << 16, n, dtype=np.uint64) << 16) + rng.choice([0x7FFF, 0x8000, 0x8001], n).astype(np.uint64)
    small = random >> rng.integers(0, 31, n, dtype=np.uint64)
    return np.concatenate([random, small, ties, (powers.ravel() & 0xFFFFFFFF).astype(np.uint64)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=100_000, help="of each rounding mode")
    parser.add_argument("--sweep", choices=["f8e4m3", "f8e5m2"])
    args = parser.parse_args()
    rng = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for mode in (MODE.SINGLE_ROUND, MODE.DOUBLE_ROUND):
            done = cases = 0
            while done < args.elements:
                done += rescale(rng, mode, 840, folder)
                cases += 1
            print(f"RESCALE {'SINGLE' if mode == MODE.SINGLE_ROUND else 'DOUBLE'}: {done} elements in {cases} graphs agree")
        pairs = done = 0
        for src, destinations in CASTS.items():
            for dst in destinations:
                done += cast(cast_inputs(rng, src, args.elements), src, dst, folder)
                pairs += 1
        print(f"CAST: {done} elements of {pairs} pairs agree")
        if args.sweep:
            dst = D.FP8E4M3 if args.sweep == "f8e4m3" else D.FP8E5M2
            for chunk in range(256):
                cast(np.arange(chunk << 24, (chunk + 1) << 24, dtype=np.uint64), D.FP32, dst, folder)
            print(f"CAST fp32 to {args.sweep}: all 2^32 codes agree")


if __name__ == "__main__":
    main()
