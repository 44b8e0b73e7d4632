"""OpenVINO's Convert: the reference evaluator and the CPU plugin beside `--spec openvino`.

The witnesses that `explain` knows are what the package gives today, and IR that the package writes is run with the same
values but for those differences (docs/spec/openvino.md §7 to §9, §11).
"""

import itertools

import container
import ml_dtypes
import numpy as np
import openvino as ov
import pytest
from openvino import opset14, opset16

# truecast's name, OpenVINO's name, bits. Types narrower than a byte last.
TYPES = {
    "bool": ("boolean", 8), "u8": ("u8", 8), "u16": ("u16", 16), "u32": ("u32", 32), "u64": ("u64", 64),
    "i8": ("i8", 8), "i16": ("i16", 16), "i32": ("i32", 32), "i64": ("i64", 64),
    "f8e4m3fn": ("f8e4m3", 8), "f8e5m2": ("f8e5m2", 8), "f8e8m0": ("f8e8m0", 8), "bf16": ("bf16", 16),
    "f16": ("f16", 16), "f32": ("f32", 32), "f64": ("f64", 64),
    "u1": ("u1", 1), "u2": ("u2", 2), "u3": ("u3", 3), "u4": ("u4", 4), "u6": ("u6", 6), "i4": ("i4", 4),
    "f4e2m1": ("f4e2m1", 4), "nf4": ("nf4", 4),
}  # fmt: skip
WHOLE = [name for name, (_, bits) in TYPES.items() if bits >= 8]
LEN = 13
"""Odd for every packing, and not a multiple of four."""


def ov_type(name: str) -> ov.Type:
    return getattr(ov.Type, TYPES[name][0])


def raw(tensor: ov.Tensor) -> np.ndarray:
    """The bytes of a tensor, to be read and written."""
    return np.frombuffer(tensor.data, np.uint8) if tensor.data.size else np.zeros(0, np.uint8)


def tensor_of(name: str, data: bytes, len: int) -> ov.Tensor:
    tensor = ov.Tensor(ov_type(name), ov.Shape([len]))
    tensor.data.view(np.uint8).reshape(-1)[:] = np.frombuffer(data, np.uint8)
    return tensor


def reference(src: str, dst: str, elements: list[int]) -> list[int] | None:
    """Elements of whole bytes through the operator's evaluator; None if it refuses the pair."""
    size = TYPES[src][1] // 8
    parameter = opset14.parameter(ov.PartialShape([len(elements)]), ov_type(src))
    node = opset16.convert(parameter, TYPES[dst][0])
    model = ov.Model([opset14.result(node)], [parameter], "m")
    out = ov.Tensor(ov_type(dst), ov.Shape([len(elements)]))
    data = b"".join(e.to_bytes(size, "little") for e in elements)
    try:
        assert model.evaluate([out], [tensor_of(src, data, len(elements))])
    except RuntimeError:
        return None
    return items(out.data.view(np.uint8).tobytes(), TYPES[dst][1] // 8)


def cpu(src: str, dst: str, elements: list[int]) -> list[int] | None:
    size = TYPES[src][1] // 8
    parameter = opset14.parameter(ov.PartialShape([len(elements)]), ov_type(src))
    model = ov.Model([opset14.result(opset16.convert(parameter, TYPES[dst][0]))], [parameter], "m")
    data = b"".join(e.to_bytes(size, "little") for e in elements)
    try:
        request = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
        request.set_input_tensor(tensor_of(src, data, len(elements)))
        request.infer()
    except RuntimeError:
        return None
    return items(request.get_output_tensor().data.view(np.uint8).tobytes(), TYPES[dst][1] // 8)


def items(data: bytes, size: int) -> list[int]:
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


def differences(truecast, src: str, dst: str, value: str = "0x0") -> list[dict]:
    return truecast.json("explain", value, "--from", src, "--to", dst, "--spec", "openvino")["known_differences"]


def code(element: dict) -> int:
    return int(element["bits"], 16)


def test_witnesses(truecast):
    """What `explain` says of an implementation is what it does."""
    seen = 0
    for src, dst in itertools.product(WHOLE, WHOLE):
        for difference in differences(truecast, src, dst):
            witness = difference["witness"]
            if witness is None or src == "bool":  # any byte may be a boolean; explain has codes
                continue
            value, given = code(witness["input"]), [code(e) for e in witness["given"]]
            evaluate = reference if difference["implementation"] == "reference evaluator" else cpu
            if len(given) == 2:
                assert evaluate(src, dst, [value] * 5) == [given[0]] * 4 + [given[1]], (src, dst, difference)
            else:
                assert evaluate(src, dst, [value]) == given, (src, dst, difference)
            assert given[0] != code(witness["exact"])
            seen += 1
    assert seen > 40


def sample(src: str, count: int = 4096) -> list[int]:
    """Every code of 16 bits or fewer; of wider types small integers, values around powers of two, and random codes."""
    bits = TYPES[src][1]
    if src == "bool":
        return [0, 1]
    if bits <= 16:
        return list(range(1 << bits))
    random = np.random.default_rng(1)
    codes = [int(x) for x in random.integers(0, 1 << bits, count, dtype=np.uint64 if bits == 64 else np.uint32)]
    if src.startswith("f"):
        kind = np.float32 if bits == 32 else np.float64
        values = [s * (2.0**e + d) for e in range(-30, 66) for d in (0, 0.5, -1, 1) for s in (1, -1)]
        values += [float(x) for x in random.normal(0, 300, count)] + [np.inf, -np.inf, np.nan]
        codes += items(np.array(values, kind).tobytes(), bits // 8)
    else:
        codes += [(s * ((1 << e) + d)) % (1 << bits) for e in range(bits) for d in (-1, 0, 1) for s in (1, -1)]
        codes += [s * n % (1 << bits) for n in range(70_000) for s in (1, -1)]
    return codes


FLOATS = ["f8e4m3fn", "f8e5m2", "f8e8m0", "bf16", "f16", "f32", "f64"]


def is_nan(name: str, values: np.ndarray) -> np.ndarray:
    dtypes = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
    dtypes |= {"f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "f8e8m0": ml_dtypes.float8_e8m0fnu}
    if name not in FLOATS:
        return np.zeros(len(values), bool)
    array = values.view(dtypes[name])
    return np.isnan(array.astype(np.float32) if array.itemsize < 4 else array)


def write(path, src: str, elements: list[int]):
    bits = TYPES[src][1]
    descr = {"bf16": "<V2", "f16": "<f2", "f32": "<f4", "f64": "<f8", "bool": "|b1"}.get(src)
    descr = descr or ("<V1" if src.startswith("f") else f"{'|' if bits == 8 else '<'}{src[0]}{bits // 8}")
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(elements)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = b"".join(e.to_bytes(bits // 8, "little") for e in elements)
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data)
    return path


def cpu_flags() -> set[str]:
    """What the first processor can do, as the kernel names it."""
    with open("/proc/cpuinfo") as info:
        return set(next((line.split(":")[1] for line in info if line.startswith("flags")), "").split())


CPU_FEATURE = {"AVX512-FP16": "avx512_fp16"}
"""Features on which a known difference depends, as `explain` writes them, with the flag of the kernel."""


def depends_on(difference: dict) -> str | None:
    """The CPU feature without which the implementation differs."""
    return next((f for f in CPU_FEATURE if f"on CPUs without {f}" in difference["what"]), None)


@pytest.mark.parametrize("src", [name for name in WHOLE if name != "bool"])  # differs in bytes that are no codes
@pytest.mark.parametrize("implementation, evaluate", [("reference evaluator", reference), ("CPU plugin", cpu)])
def test_every_pair(truecast, tmp_path, src, implementation, evaluate):
    """Every pair that the implementation has: its values are truecast's, or `explain` knows a difference for the pair. A
    pair for which one is listed does differ somewhere, unless the difference is one of other CPUs than this."""
    elements = sample(src)
    path = write(tmp_path / "in.npy", src, elements)
    wrong = []
    for dst in WHOLE:
        theirs = evaluate(src, dst, elements)
        known = [d for d in differences(truecast, src, dst) if d["implementation"] == implementation]
        listed = bool(known)
        if theirs is None:
            assert not listed, (src, dst)
            continue
        out = tmp_path / f"{dst}.npy"
        truecast("convert", path, out, "--from", src, "--to", dst, "--spec", "openvino", "--force")
        start = container.payload_start(out)
        width = np.dtype(f"u{TYPES[dst][1] // 8}")
        ours, expected = np.frombuffer(out.read_bytes()[start:], width), np.array(theirs, width)
        differ = np.flatnonzero((ours != expected) & ~(is_nan(dst, ours) & is_nan(dst, expected)))
        features = [depends_on(d) for d in known]
        if features and all(features):
            # NaN 0x7f81 of bf16 becomes Inf without the instructions, and stays NaN with them.
            witness = elements.index(0x7F81)
            has = [CPU_FEATURE[f] in cpu_flags() for f in features]
            seen = f"{src} 0x7f81 to {dst} gives {expected[witness]:#x} with {dict(zip(features, has))}"
            print(seen)
            assert bool(differ.size) == (not all(has)), seen
            assert is_nan(dst, expected)[witness] == all(has), seen
        elif bool(differ.size) != listed:
            wrong.append((dst, listed, [(hex(elements[i]), hex(ours[i]), hex(expected[i])) for i in differ[:3]]))
    assert not wrong, src


def constants(rng) -> dict[str, tuple[bytes, int]]:
    sizes = {name: -(-LEN * bits // 8) for name, (_, bits) in TYPES.items()} | {"u3": 6, "u6": 12}
    data = {name: rng.integers(0, 256, size, dtype=np.uint8).tobytes() for name, size in sizes.items()}
    data["bool"] = bytes(rng.integers(0, 2, LEN, dtype=np.uint8))
    return data


def save(tmp_path, name: str, outputs, parameters=()):
    model = ov.Model([opset14.result(o) for o in outputs], list(parameters), name)
    ov.save_model(model, tmp_path / f"{name}.xml", compress_to_fp16=False)
    return model, tmp_path / f"{name}.xml"


def outputs_of(truecast, path, tmp_path, *inputs) -> list[dict]:
    return truecast.json("run", path, *inputs, "--output-dir", tmp_path / "out", "--force")["outputs"]


def payload(output: dict) -> bytes:
    path = output["path"]
    data = open(path, "rb").read()
    return data[10 + int.from_bytes(data[8:10], "little") :]


@pytest.mark.parametrize("src", [name for name in TYPES if name != "f8e8m0"] + ["f8e8m0"])
def test_constants_of_every_type(truecast, tmp_path, src):
    """A Const of each type, saved by the package, converted to f32 (where the reference is exact) and to itself."""
    data = constants(np.random.default_rng(7))[src]
    constant = ov.op.Constant(tensor_of(src, data, LEN))
    model, path = save(tmp_path, "m", [opset16.convert(constant, "f32").output(0)])
    expected = ov.Tensor(ov.Type.f32, ov.Shape([LEN]))
    assert model.evaluate([expected], [])
    [output] = outputs_of(truecast, path, tmp_path)
    ours = np.frombuffer(payload(output), np.float32)
    np.testing.assert_array_equal(ours, expected.data)


PAIRS = [
    ("u4", "f8e4m3fn", False, False), ("bf16", "f16", True, False), ("f8e4m3fn", "f8e5m2", True, False),
    ("u8", "i8", True, False), ("bool", "i64", False, False), ("u1", "u8", False, False), ("i4", "f32", False, False),
    ("u32", "i64", False, False), ("f32", "f64", False, False), ("i8", "f16", False, True), ("u64", "i8", True, False),
    ("u16", "f32", False, False), ("i16", "bf16", True, False), ("f16", "f32", False, False),
]  # fmt: skip


@pytest.mark.parametrize("a, b, unsafe, torch", PAIRS)
def test_promoted_constants(truecast, tmp_path, a, b, unsafe, torch):
    """ConvertPromoteTypes over constants: the package's two Converts give the same values, but for differences that
    `explain` knows for the pair."""
    data = constants(np.random.default_rng(11))
    left, right = (ov.op.Constant(tensor_of(t, data[t], LEN)) for t in (a, b))
    node = opset14.convert_promote_types(left, right, unsafe, torch, "f32")
    common = node.get_output_element_type(0)
    _, path = save(tmp_path, "m", node.outputs())
    ours = outputs_of(truecast, path, tmp_path)
    assert len(ours) == 2
    for src, output, constant in zip((a, b), ours, (left, right)):
        dst = output["dtype"]
        assert TYPES[dst][0] == common.to_string()
        expected = ov.Tensor(common, ov.Shape([LEN]))
        converted = ov.Model([opset14.result(opset16.convert(constant, common.to_string()))], [], "m")
        assert converted.evaluate([expected], [])
        width = np.dtype(f"u{TYPES[dst][1] // 8}")
        x, y = np.frombuffer(payload(output), width), expected.data.view(width).reshape(-1)
        differ = (x != y) & ~(is_nan(dst, x) & is_nan(dst, y))
        if differ.any():
            known = [d["implementation"] for d in differences(truecast, src, dst)]
            assert "reference evaluator" in known, (src, dst, x[differ], y[differ])


def test_parameters(truecast, tmp_path):
    """Shapes and ranks that the model leaves open are settled by what is fed."""
    x = opset14.parameter(ov.PartialShape([-1, ov.Dimension(2, 5), 4]), ov.Type.i16, name="x")
    y = opset14.parameter(ov.PartialShape.dynamic(), ov.Type.u64, name="y")
    node = opset14.convert_promote_types(x, y, True, True, "f64")
    _, path = save(tmp_path, "m", node.outputs(), [x, y])
    fed = {"x": np.arange(24, dtype=np.int16).reshape(2, 3, 4) - 9, "y": np.uint64(5)}
    for name, array in fed.items():
        np.save(tmp_path / f"{name}.npy", array)
    inputs = [part for name in fed for part in ("--input", f"{name}={tmp_path / name}.npy")]
    first, second = outputs_of(truecast, path, tmp_path, *inputs)
    assert (first["dtype"], first["shape"], second["dtype"], second["shape"]) == ("i16", [2, 3, 4], "i16", [])
    np.testing.assert_array_equal(np.load(first["path"]), fed["x"])
    assert np.load(second["path"]) == 5
    # Two tensors of known rank: u64 with a signed integer goes to the target.
    np.save(tmp_path / "y.npy", np.array([5], np.uint64))
    first, second = outputs_of(truecast, path, tmp_path, *inputs)
    assert (first["dtype"], second["dtype"]) == ("f64", "f64")
    # Out of the declared range 2..5.
    np.save(tmp_path / "x.npy", np.zeros((1, 6, 4), np.int16))
    truecast("run", path, *inputs, "--output-dir", tmp_path / "out", code=3)
