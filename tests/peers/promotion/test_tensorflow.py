"""`promote --system tensorflow` against TensorFlow's NumPy behavior, modes `all` and `safe`."""

import pytest
import tensorflow as tf
from promotions import NUMBERS, REFUSED, by_system, table
from tensorflow.python.framework import flexible_dtypes


@pytest.fixture(params=["all", "safe"])
def mode(request):
    tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=request.param)
    return request.param


CANONICAL = {
    tf.bool: "bool", tf.bfloat16: "bf16", tf.float16: "f16", tf.float32: "f32", tf.float64: "f64",
    tf.uint8: "u8", tf.uint16: "u16", tf.uint32: "u32", tf.uint64: "u64",
    tf.int8: "i8", tf.int16: "i16", tf.int32: "i32", tf.int64: "i64",
}  # fmt: skip


def promoted(*operands) -> str:
    try:
        result, weak = flexible_dtypes.result_type(*operands)
    except (TypeError, NotImplementedError):
        return REFUSED
    return CANONICAL[result] + "*" * weak


def test_every_pair(truecast, mode):
    ours = table(truecast, "--system", "tensorflow", "--tensorflow-mode", mode)
    assert len(ours) == 23 * 23
    for (a, b), outcome in ours.items():
        assert outcome == promoted(tf.as_dtype(a), tf.as_dtype(b)), (a, b)


def test_python_numbers(truecast, mode):
    for number, value in NUMBERS.items():
        for t, name in CANONICAL.items():
            assert by_system(truecast, name, number)["tensorflow", mode] == promoted(t, value), (name, number)
        for other, other_value in NUMBERS.items():
            ours = by_system(truecast, number, other)["tensorflow", mode]
            assert ours == promoted(value, other_value), (number, other)
