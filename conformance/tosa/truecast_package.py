"""Adapter of Arm's test runner (`tosa_verif_run_tests --sut-module truecast_package`): the functions of the Python package,
one for each operator of a graph, as the system under test. For TOSA 1.0; block-scaled types are left to `truecast_sut.py`.

Reference: docs/spec/tosa.md §10.
"""

from pathlib import Path

import numpy as np
import truecast as tc
from runner.tosa_test_runner import TosaTestRunner
from tosa.DType import DType
from tosa.Op import Op
from tosa.RescaleAttribute import RescaleAttribute
from tosa.RoundingMode import RoundingMode
from tosa.TosaGraph import TosaGraph

# What the package calls the types, and their storage in the files of Arm's tools (docs/spec/tosa.md section 7.1).
TYPES = {
    DType.BOOL: ("bool", np.bool_),
    DType.INT4: ("i4", np.int8),
    DType.INT8: ("i8", np.int8),
    DType.INT16: ("i16", np.int16),
    DType.INT32: ("i32", np.int32),
    DType.INT48: ("i48", np.int64),
    DType.FP16: ("f16", np.float16),
    DType.BF16: ("bf16", np.uint16),
    DType.FP32: ("f32", np.float32),
    DType.FP8E4M3: ("f8e4m3fn", np.uint8),
    DType.FP8E5M2: ("f8e5m2", np.uint8),
}
# The runner reads these only as opaque bytes.
OPAQUE = {DType.BF16: "<V2", DType.FP8E4M3: "<V1"}
ROUNDING = {RoundingMode.SINGLE_ROUND: "single", RoundingMode.DOUBLE_ROUND: "double", RoundingMode.INEXACT_ROUND: "inexact"}
VERSION = "1.0"


class TosaSUTRunner(TosaTestRunner):
    """Runs one test: a graph, its inputs and outputs as `desc.json` names them."""

    def runTestGraph(self):
        result = TosaTestRunner.TosaGraphResult
        try:
            run(self.testDesc, Path(self.testDir))
        except tc.InputError as error:
            return result.TOSA_UNPREDICTABLE, str(error)
        except (tc.TruecastError, TypeError) as error:
            return result.TOSA_ERROR, str(error)
        return result.TOSA_VALID, ""


def run(description: dict, folder: Path) -> None:
    """Evaluates the operators in their order."""
    graph = TosaGraph.GetRootAs((folder / description["tosa_file"]).read_bytes())
    block = graph.Regions(0).Blocks(0)
    tensors = [block.Tensors(i) for i in range(block.TensorsLength())]
    types = {tensor.Name().decode(): tensor.Type() for tensor in tensors}
    values = {tensor.Name().decode(): constant(tensor) for tensor in tensors if tensor.DataLength()}
    for name, file in zip(description["ifm_name"], description["ifm_file"]):
        values[name] = np.load(folder / file).view(TYPES[types[name]][1])
    for i in range(block.OperatorsLength()):
        operator = block.Operators(i)
        inputs = [operator.Inputs(k).decode() for k in range(operator.InputsLength())]
        outputs = [operator.Outputs(k).decode() for k in range(operator.OutputsLength())]
        if operator.Op() in (Op.CONST, Op.CONST_SHAPE):
            continue
        expected = {Op.CAST: 1, Op.RESCALE: 5}[operator.Op()]
        if (len(inputs), len(outputs)) != (expected, 1):
            raise tc.UsageError(f"{len(inputs)} inputs and {len(outputs)} outputs; expected {expected} and 1")
        to = types[outputs[0]]
        values[outputs[0]] = OPERATORS[operator.Op()](operator, [(values[name], types[name]) for name in inputs], to)
    for name, file in zip(description["ofm_name"], description["ofm_file"]):
        save(folder / file, values[name], types[name])


def cast(operator, inputs, to):
    """CAST: codes of one type to codes of another."""
    (x, of), *_ = inputs
    storage = TYPES[to][1]
    codes = x.view(np.dtype(f"u{x.itemsize}"))
    y = tc.tosa.cast(codes, TYPES[to][0], from_=TYPES[of][0], layout="codes", version=VERSION)
    return y.view(storage)


def rescale(operator, inputs, to):
    """RESCALE, whose multipliers, shifts and zero points are operands."""
    table = RescaleAttribute()
    attribute = operator.Attribute()
    table.Init(attribute.Bytes, attribute.Pos)
    (x, _), (multiplier, _), (shift, _), (input_zp, _), (output_zp, _) = inputs
    unsigned = table.InputUnsigned(), table.OutputUnsigned()
    y = tc.tosa.rescale(
        x,
        TYPES[to][0],
        multiplier=multiplier.tolist(),
        shift=shift.tolist(),
        input_zp=zero_point(input_zp, unsigned[0]),
        output_zp=zero_point(output_zp, unsigned[1]),
        scale32=table.Scale32(),
        rounding=ROUNDING[table.RoundingMode()],
        per_channel=table.PerChannel(),
        input_unsigned=unsigned[0],
        output_unsigned=unsigned[1],
        version=VERSION,
    )
    return y.view(TYPES[to][1])


def zero_point(value: np.ndarray, is_unsigned: bool) -> int:
    """A zero point by the sign of its side."""
    return int((value.view(np.dtype(f"u{value.itemsize}")) if is_unsigned else value).reshape(-1)[0])


OPERATORS = {Op.CAST: cast, Op.RESCALE: rescale}


def constant(tensor) -> np.ndarray:
    """The value that a graph has for a tensor."""
    storage = np.dtype(TYPES[tensor.Type()][1])
    shape = tensor.ShapeAsNumpy() if tensor.ShapeLength() else ()
    data = tensor.DataAsNumpy().tobytes()
    if tensor.Type() == DType.INT48:
        # Six bytes each, and then two of the sign.
        raw = np.frombuffer(data[: len(data) // 6 * 6], np.uint8).reshape(-1, 6)
        data = (np.pad(raw, ((0, 0), (2, 0))).view(np.int64) >> 16).tobytes()
    n = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(data[: n * storage.itemsize], storage).reshape(shape)


def save(path: Path, values: np.ndarray, dtype: int) -> None:
    """As Arm's tools write arrays."""
    with path.open("wb") as file:
        descr = OPAQUE.get(dtype, values.dtype.str)
        header = {"descr": descr, "fortran_order": False, "shape": values.shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(np.ascontiguousarray(values).tobytes())
