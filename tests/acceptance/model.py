"""Converts an ONNX model of gigabytes with external data and checks memory and result.

    python tests/acceptance/model.py [--binary FILE] [--work DIR] [--mib 3072]

Outside CI: it needs 5 GiB of disk, Linux (`/proc`), Python 3.11 or later, NumPy, ml_dtypes and onnx
(tests/python/requirements.txt). The model is made here: f32 weights in one file of external data, from a few KiB to a
quarter of it, each taken by a MatMul. Checked:

- memory: to bf16 with --max-memory 32MiB; the peak resident set (VmHWM) minus that of `truecast formats` is at most
  64 MiB;
- the result passes onnx's checker, which infers all shapes, and holds the weights that ml_dtypes rounds;
- files: the model and one file of external data, nothing else.

Exit code 1 if the limit is missed. Not here: small models and every rule (tests/python/test_onnx_models.py).
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper
from processes import MIB, TARGET, add_binary, idle_kib, peak_kib
from weights import Weights

MAX_MEMORY_MIB = 32
MEMORY_LIMIT_MIB = 64
WIDTH = 1024
ALIGNMENT = 4096
# Shares of the data, in 4096ths; the last weight takes what is left.
SHARES = [1024, 768, 512, 512, 256, 256, 64, 16, 1]


def external(name: str, shape: list[int], offset: int, length: int) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "model.data", "offset": offset, "length": length}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def write_model(path: Path, data_bytes: int) -> None:
    row = 4 * WIDTH
    rows = [data_bytes * share // 4096 // row for share in SHARES] + [8] * 64
    rows.append(data_bytes // row - sum(rows))
    weights, tensors, nodes, values, offset = Weights(), [], [], [], 0
    with open(path.with_suffix(".data"), "wb") as data:
        for i, n in enumerate(rows):
            data.write(bytes(offset - data.tell()))
            weights.write(data, n * row)
            tensors.append(external(f"layers.{i}.weight", [WIDTH, n], offset, n * row))
            nodes.append(helper.make_node("MatMul", ["x", f"layers.{i}.weight"], [f"y{i}"]))
            values.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, ["n", n]))
            offset = -(-data.tell() // ALIGNMENT) * ALIGNMENT
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])
    graph = helper.make_graph(nodes, "large", [x], values, tensors)
    imports = [helper.make_opsetid("", 17)]
    path.write_bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())


def elements(path: Path, tensor: TensorProto, dtype, most: int = 1 << 22) -> np.ndarray:
    """The first elements of an external tensor."""
    where = {entry.key: entry.value for entry in tensor.external_data}
    n = min(most, int(where["length"]) // np.dtype(dtype).itemsize)
    return np.fromfile(path.parent / where["location"], dtype=dtype, count=n, offset=int(where["offset"]))


def check_result(source: Path, result: Path) -> None:
    onnx.checker.check_model(str(result), full_check=True)
    before = onnx.load(source, load_external_data=False).graph.initializer
    after = onnx.load(result, load_external_data=False).graph.initializer
    assert [t.name for t in after] == [f"{t.name}.bf16" for t in before]
    for old, new in zip(before, after, strict=True):
        rounded = elements(source, old, np.float32).astype(ml_dtypes.bfloat16)
        assert np.array_equal(elements(result, new, np.uint16), rounded.view(np.uint16)), new.name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_binary(parser)
    parser.add_argument("--work", type=Path, default=TARGET, help="disk to write to; default the target folder")
    parser.add_argument("--mib", type=int, default=3072, help="of tensor data")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        source, result = Path(folder) / "model.onnx", Path(folder) / "out" / "model.onnx"
        result.parent.mkdir()
        write_model(source, args.mib * MIB)
        command = [args.binary, "convert", source, result, "--to", "bf16", "--max-memory", f"{MAX_MEMORY_MIB}MiB"]
        begin = time.perf_counter()
        memory = (peak_kib(*command, "--quiet") - idle_kib(args.binary)) / 1024
        seconds = time.perf_counter() - begin
        check_result(source, result)
        assert sorted(p.name for p in result.parent.iterdir()) == ["model.onnx", "model.onnx.data"]
        good = memory <= MEMORY_LIMIT_MIB
        verdict = "ok" if good else "MISSED"
        print(f"{args.mib} MiB: {memory:.1f} MiB of memory, limit {MEMORY_LIMIT_MIB}: {verdict}; {seconds:.1f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
