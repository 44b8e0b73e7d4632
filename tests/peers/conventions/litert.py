"""TensorFlow Lite (LiteRT): models with one operator, and its interpreter as a function from arrays to arrays."""

from importlib.metadata import version

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from dtypes import Type
from inputs import TYPES

RELEASE = ".".join(version("ai-edge-litert").split(".")[:2])
PACKED = ["i2", "i4", "u4"]
NAMES = {
    "bool": "BOOL",
    **{f"{sign}{bits}": f"{'U' * (sign == 'u')}INT{bits}" for sign in "iu" for bits in (8, 16, 32, 64)},
    **{"i2": "INT2", "i4": "INT4", "u4": "UINT4"},
    **{"f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64"},
    **{"f8e4m3fn": "FLOAT8_E4M3FN", "f8e5m2": "FLOAT8_E5M2"},
}
OF_NUMPY = {TYPES[name].numpy: name for name in NAMES}


def _packed(x: np.ndarray, t: Type) -> bytes:
    """The elements of a tensor, several in a byte if they are narrow, the first in its low bits."""
    if t.bits >= 8:
        return x.tobytes()
    per_byte = 8 // t.bits
    codes = np.concatenate([t.codes(x), np.zeros(-x.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(t.bits)
    return np.bitwise_or.reduce(codes << shifts, axis=1).tobytes()


def run(
    operator: str, x: np.ndarray, to: str, resolver: OpResolverType = OpResolverType.AUTO, quantized: bool = False
) -> np.ndarray:
    """The result of a model of one operator; it has a scale of 1 and a zero point of 0 if it is `quantized`."""
    source = OF_NUMPY[x.dtype]
    model = schema.ModelT()
    model.version, model.buffers = 3, [schema.BufferT(), schema.BufferT()]
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = getattr(schema.BuiltinOperator, operator)
    code.version, model.operatorCodes = 1, [code]
    graph, step = schema.SubGraphT(), schema.OperatorT()
    graph.tensors = [schema.TensorT(), schema.TensorT()]
    for tensor, name in zip(graph.tensors, (source, to), strict=True):
        tensor.shape, tensor.buffer, tensor.type = [x.size], 0, getattr(schema.TensorType, NAMES[name])
    if quantized:
        scale = graph.tensors[1].quantization = schema.QuantizationParametersT()
        scale.scale, scale.zeroPoint = [1.0], [0]
    step.opcodeIndex, step.inputs, step.outputs = 0, [0], [1]
    graph.inputs, graph.outputs, graph.operators = [0], [1], [step]
    model.subgraphs = [graph]
    # The interpreter takes no array of these types as an input.
    is_constant = source in (*PACKED, "f8e4m3fn", "f8e5m2")
    if is_constant:
        model.buffers[1].data = np.frombuffer(_packed(x, TYPES[source]), np.uint8)
        graph.tensors[0].buffer, graph.inputs = 1, []
    builder = flatbuffers.Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    content = bytes(builder.Output())
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver, num_threads=1)
    interpreter.allocate_tensors()
    if not is_constant:
        interpreter.set_tensor(0, x)
    interpreter.invoke()
    return interpreter.get_tensor(1)


def by_litert(x: np.ndarray, to: Type, resolver: OpResolverType = OpResolverType.AUTO) -> np.ndarray | None:
    """CAST; `None` for a pair that it refuses."""
    try:
        result = run("CAST", x, to.name, resolver)
    except RuntimeError as error:
        assert "is unsupported by op Cast" in str(error), error
        return None
    return to.from_codes(result.view(np.uint8) & np.uint8(to.mask)) if to.name in PACKED else result
