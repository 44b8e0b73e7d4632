"""truecast beside Arm's reference model: every legal kind of RESCALE on random operands, and every plain CAST (docs/spec/tosa.md §9).

    python conformance/tosa/differential.py [--elements N] [--sweep f8e4m3|f8e5m2 [--chunks A:B]]

Needs tosa-tools==2026.8.0 and truecast (TRUECAST_BIN or on the path). Both evaluate the same `.tosa` file, bit for bit under
the rules of §9.8: any NaN equals any NaN, NaN to an integer is skipped, and i32 to bf16 where the model rounds twice.
INEXACT_ROUND is an interval: what truecast computes lies within the model's, and `truecast check` draws the same bounds.
--sweep casts all 2^32 codes of fp32 instead, in 256 chunks of which A to B - 1 are taken.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
import tosa_reference_model
import tosa_serializer as ts

TRUECAST = os.environ.get("TRUECAST_BIN", "truecast")
MODEL = Path(sysconfig.get_paths()["purelib"]) / "bin"
D, MODE = ts.DType, ts.RoundingMode
BITS = {D.BOOL: 8, D.INT8: 8, D.INT16: 16, D.INT32: 32, D.FP16: 16, D.BF16: 16, D.FP32: 32, D.FP8E4M3: 8, D.FP8E5M2: 8}
CARRIER = {D.BOOL: "?", D.INT8: "i1", D.INT16: "<i2", D.INT32: "<i4", D.FP16: "<f2", D.BF16: "<u2", D.FP32: "<f4"}
NAMES = {D.INT8: "INT8", D.INT16: "INT16", D.INT32: "INT32"}
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
    """Unsigned codes as the arrays that both sides read; i48 is sign-extended in 64 bits."""
    if dtype == D.INT48:
        return (codes.astype(np.int64) << 16) >> 16
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


def theirs(graph, inputs, folder):
    """As `ours`, in process; by the command where the binding lacks the type."""
    if any(value.dtype == np.int64 for value in inputs.values()):
        return model(graph, inputs, folder, ["--precise_mode", "0"])
    outputs, status = tosa_reference_model.run(bytes(graph), list(inputs.values()), tosa_level="NONE")
    words = {"TOSA_VALID": "valid", "TOSA_UNPREDICTABLE": "unpredictable"}
    word = words.get(str(status).split(".")[-1], "error")
    return word, outputs[0].tobytes() if word == "valid" else None


def model(graph, inputs, folder, options, meta=None):
    """The model's command on a test descriptor (§9.3, §9.4)."""
    place = folder / "model"
    place.mkdir(exist_ok=True)
    (place / "test.tosa").write_bytes(graph)
    for name, value in inputs.items():
        np.save(place / f"{name}.npy", value)
    description = {"tosa_file": "test.tosa", "version": "1.2", "expected_failure": False, "ifm_name": list(inputs)}
    description |= {"ifm_file": [f"{name}.npy" for name in inputs], "ofm_name": ["y"], "ofm_file": ["out.npy"]}
    requirements = {"profiles_supported": ["tosa-pro-int"], "bounds_file_required": meta is not None}
    description |= {"meta": meta or {}, "test_requirements": requirements | {"extensions_required": []}}
    (place / "desc.json").write_text(json.dumps(description))
    command = [MODEL / "tosa_reference_model", "--test_desc", place / "desc.json", "--tosa_level", "NONE"]
    run = subprocess.run([*command, "--operator_fbs", MODEL / "tosa.fbs", *options], capture_output=True, text=True)
    word = {0: "valid", 1: "unpredictable"}.get(run.returncode, "error")
    return word, np.load(place / "out.npy").tobytes() if word == "valid" else run.stderr


def bounds(graph, inputs, output, unsigned, folder):
    """The interval of an INEXACT_ROUND: status, the model's lower and upper codes."""
    shape = list(inputs["x"].shape)
    tensor = {"mode": "RESCALE_INEXACT", "data_type": NAMES[output], "shape": shape}
    tensor["rescale_inexact_info"] = {"unsigned_data": unsigned}
    meta = {"compliance": {"version": "1.2", "tensors": {"y": tensor}}}
    status, low = model(graph, inputs, folder, ["--precise_mode", "1"], meta)
    high = np.load(folder / "model" / "bounds_out.npy").tobytes() if status == "valid" else None
    return status, low, high


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
    (status, raw), (their_status, their_raw) = ours(graph, inputs, folder), theirs(graph, inputs, folder)
    if status != their_status:
        sys.exit(f"{op} to {output}: {status}, the model says {their_status}: {raw if status != 'valid' else ''}")
    if status != "valid":
        return 0
    a, b = codes_of(raw, output), codes_of(their_raw, output)
    differs = np.flatnonzero(a != b)
    differs = differs[~(is_nan(a[differs], output) & is_nan(b[differs], output))]
    if skip is not None:
        differs = differs[~skip[differs]]
    if differs.size:
        at = int(differs[0])
        first = next(iter(inputs.values())).reshape(-1)[at]
        sys.exit(f"{op} to {output}: element {at}, {first!r}: {a[at]:#x}, the model says {b[at]:#x}")
    return a.size


def kinds(mode):
    """Every legal (input, output, input_unsigned, output_unsigned, scale32, per_channel) of a mode (§4.2)."""
    pairs = itertools.product((*INTEGERS, D.INT48), INTEGERS, (False, True), (False, True), (False, True), (False, True))
    for src, dst, unsigned_in, unsigned_out, scale32, per_channel in pairs:
        narrow = src in (D.INT8, D.INT16) and dst in (D.INT8, D.INT16)
        signs = not (unsigned_in or unsigned_out) or (narrow and unsigned_in != unsigned_out)
        widths = scale32 or mode != MODE.DOUBLE_ROUND
        if signs and widths and not (src == D.INT48 and scale32):
            yield src, dst, unsigned_in, unsigned_out, scale32, per_channel


def rescale(rng, mode, kind, n, folder):
    """One random legal RESCALE of a kind."""
    src, dst, unsigned_in, unsigned_out, scale32, per_channel = kind
    channels = int(rng.integers(1, 9)) if per_channel else 1
    width = 31 if scale32 else 15
    multiplier = rng.integers(0, 1 << width, channels) >> rng.integers(0, width, channels)
    if src == D.INT48:
        bits = int(rng.integers(2, 49))
        x = rng.integers(-1 << (bits - 1), 1 << (bits - 1), (n // channels, channels))
        lowest = max(2, bits - 16)
    else:
        x = array(rng.integers(0, 1 << BITS[src], (n // channels, channels), dtype=np.uint64), src)
        lowest = {D.INT8: 10, D.INT16: 18, D.INT32: 32 if scale32 else 16}[src]
    shift = rng.integers(lowest, 63, channels).astype(np.int8)

    def zero_point(dtype, unsigned):
        if dtype == D.INT8:
            return array(rng.integers(0, 256, 1), dtype)
        return array(np.array([32768 * int(rng.integers(0, 2)) if unsigned else 0]), dtype)

    attribute = ts.TosaSerializerAttribute()
    attribute.RescaleAttribute(scale32, mode, per_channel, unsigned_in, unsigned_out)
    tensors = {
        "x": (x, src),
        "m": (multiplier.astype(np.int32 if scale32 else np.int16), D.INT32 if scale32 else D.INT16),
        "s": (shift, D.INT8),
        "iz": (zero_point(src, unsigned_in), src),
        "oz": (zero_point(dst, unsigned_out), dst),
    }
    if mode == MODE.INEXACT_ROUND:
        return compare_interval(attribute, tensors, kind, folder)
    return compare(ts.Op.RESCALE, attribute, tensors, dst, folder)


def compare_interval(attribute, tensors, kind, folder):
    """What truecast computes is in the model's interval, and truecast's checker has the same ends."""
    src, dst, unsigned_in, unsigned_out, scale32, per_channel = kind
    graph = graph_of(ts.Op.RESCALE, attribute, tensors, dst)
    inputs = {name: value for name, (value, _) in tensors.items()}
    (status, raw), (their_status, low, high) = ours(graph, inputs, folder), bounds(graph, inputs, dst, unsigned_out, folder)
    if (status, their_status) != ("valid", "valid"):
        sys.exit(f"RESCALE {kind} INEXACT: {status}, the model says {their_status}: {raw if status != 'valid' else low}")
    value = f"<{'u' if unsigned_out else 'i'}{BITS[dst] // 8}"
    result, low, high = (np.frombuffer(part, value).astype(np.int64) for part in (raw, low, high))
    if ((result < low) | (high < result)).any():
        at = int(np.flatnonzero((result < low) | (high < result))[0])
        sys.exit(f"RESCALE {kind} INEXACT: element {at}: {result[at]} is not in {low[at]}..{high[at]}")

    flags = [("--scale32", scale32), ("--per-channel", per_channel)]
    flags += [("--input-unsigned", unsigned_in), ("--output-unsigned", unsigned_out)]
    command = [TRUECAST, "check", "rescale", "--spec", "tosa", "--rounding", "inexact", "--to", NAMES[dst].replace("INT", "i")]
    command += ["--json", "--show", "0", "--input", folder / "in_x.npy", "--actual", folder / "actual.npy"]
    command += ["--multiplier", folder / "in_m.npy", "--shift", folder / "in_s.npy", *(f for f, given in flags if given)]
    for flag, name, dtype, unsigned in (("--input-zp", "iz", src, unsigned_in), ("--output-zp", "oz", dst, unsigned_out)):
        code = int(inputs[name][0])
        command += [flag, str(code + (1 << BITS[dtype]) if unsigned and code < 0 else code)]
    limits = np.iinfo(value)
    for ends, legal in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
        # An end of the type has no neighbour beyond it: the result stands there, which is right.
        neighbours = (ends >= limits.min) & (ends <= limits.max)
        actual = np.where(neighbours, ends, result).astype(value).view(f"<i{BITS[dst] // 8}")
        np.save(folder / "actual.npy", actual.reshape(inputs["x"].shape))
        run = subprocess.run(command, capture_output=True, text=True)
        wrong = json.loads(run.stdout)["wrong"] if run.returncode in (0, 1) else run.stderr
        expected = 0 if legal else int(neighbours.sum())
        if wrong != expected:
            sys.exit(f"check RESCALE {kind} INEXACT: {wrong} of {expected} are wrong")
    return result.size


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
    parser.add_argument("--chunks", default="0:256", help="of the sweep, 2^24 codes each")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if args.sweep:
            sweep(D.FP8E4M3 if args.sweep == "f8e4m3" else D.FP8E5M2, range(*map(int, args.chunks.split(":"))), Path(name))
        else:
            random_operands(args.elements, Path(name))


def random_operands(elements, folder):
    rng = np.random.default_rng(7)
    for mode, name in ((MODE.SINGLE_ROUND, "SINGLE"), (MODE.DOUBLE_ROUND, "DOUBLE"), (MODE.INEXACT_ROUND, "INEXACT")):
        every = list(kinds(mode))
        done = graphs = 0
        while done < elements or graphs < len(every):
            done += rescale(rng, mode, every[graphs % len(every)], 1680, folder)
            graphs += 1
        print(f"RESCALE {name}: {done} elements of {len(every)} kinds in {graphs} graphs agree", flush=True)
    pairs = done = 0
    for src, destinations in CASTS.items():
        for dst in destinations:
            done += cast(cast_inputs(rng, src, elements), src, dst, folder)
            pairs += 1
    print(f"CAST: {done} elements of {pairs} pairs agree")


def sweep(dst, chunks, folder):
    done = 0
    for chunk in chunks:
        done += cast(np.arange(chunk << 24, (chunk + 1) << 24, dtype=np.uint64), D.FP32, dst, folder)
        print(f"CAST fp32 to {dst}: chunk {chunk}, {done} codes agree", flush=True)


if __name__ == "__main__":
    main()
