"""Blocks that truecast writes beside those of ggml: equal in all bytes."""

import gguf
import ggml_write
import numpy as np
import pytest
from shared import truecast, write, write_imatrix

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4",
         "NVFP4"]
ROW = 256 * 64


def kinds():
    """Rows of f32 by kind."""
    random = np.random.default_rng(7)
    normal = lambda: random.standard_normal(ROW)
    bits = lambda mask: (random.integers(0, 2**32, ROW, dtype=np.uint64).astype(np.uint32) & np.uint32(mask)).view(np.float32)
    yield "normal", normal()
    for exponent in (-30, -20, -15, -14.5, -10, -7, -5, 5, 10, 18, 20, 30, 37, 38.5):
        yield f"times 10^{exponent}", np.clip(normal() * 10.0**exponent, -3.4e38, 3.4e38)
    yield "constant blocks", np.repeat(normal()[: ROW // 256], 256)
    yield "constant groups", np.repeat(normal()[: ROW // 16], 16)
    yield "zero", np.zeros(ROW)
    yield "minus zero", -np.zeros(ROW)
    yield "mostly zero", np.where(random.random(ROW) < 0.8, 0, normal())
    yield "groups of zeros", np.where(np.arange(ROW) // 16 % 3 == 0, 0, normal())
    yield "positive", np.abs(normal())
    yield "negative", -np.abs(normal())
    yield "far from zero", normal() * 0.01 + 1
    yield "ties", random.integers(-8, 9, ROW)
    yield "ties at halves", random.integers(-31, 32, ROW) / 2
    yield "few values", random.integers(-1, 2, ROW)
    yield "one outlier", np.where(np.arange(ROW) % 97 == 0, 100, normal() * 0.01)
    yield "one large outlier", np.where(np.arange(ROW) % 256 == 0, -1000, normal() * 1e-6)
    yield "alternating", np.tile([1, -1], ROW // 2) * np.repeat(random.random(ROW // 32), 32)
    yield "monotone", np.tile(np.arange(256), ROW // 256) * np.repeat(normal()[: ROW // 256], 256)
    yield "groups of many scales", normal() * np.repeat(np.exp(random.standard_normal(ROW // 16) * 8), 16)
    yield "one element", np.where(np.arange(ROW) % 32 == np.repeat(random.integers(0, 32, ROW // 32), 32), 1.0, 0)
    yield "any bits", np.where(np.isfinite(x := bits(0xFFFFFFFF)), x, bits(0xBFFFFFFF))
    yield "subnormal", bits(0x807FFFFF)


def of_type(rows, dtype):
    """The rows as elements of a type, and the f32 values of these elements."""
    if dtype == "f32":
        return rows, rows
    if dtype == "f16":
        half = np.clip(rows, -65504, 65504).astype(np.float16)
        return half, half.astype(np.float32)
    bits = rows.view(np.uint32) & np.uint32(0xFFFF0000)
    return (bits >> np.uint32(16)).astype(np.uint16), bits.view(np.float32)


@pytest.fixture(scope="module")
def rows():
    return {kind: np.ascontiguousarray(row, np.float32) for kind, row in kinds()}


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("name", TYPES)
def test_blocks_are_those_of_ggml(name, dtype, rows, tmp_path):
    stored, values = of_type(np.stack(list(rows.values())), dtype)
    as_stored = lambda row: (row.view(np.uint8), "BF16") if dtype == "bf16" else row
    src, dst = tmp_path / "in.gguf", tmp_path / "out.gguf"
    write(src, {f"{kind}.weight": as_stored(stored[at : at + 1]) for at, kind in enumerate(rows)})
    truecast("quantize", src, dst, name.lower(), "--quantize", "*")
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(dst).tensors}
    wrong = []
    for at, kind in enumerate(rows):
        tensor = found[f"{kind}.weight"]
        assert tensor.tensor_type.name == name
        # Tiny blocks differ on purpose (docs/spec/checkpoints.md §9.3, §9.4): ggml casts NaN, and its exponent wraps.
        tiny = {"Q8_0": 127 / 3.4e38, "MXFP4": 2.0**-124}.get(name, 0)
        elements, size = gguf.GGML_QUANT_SIZES[tensor.tensor_type]
        blocks = values[at].reshape(-1, elements)
        most = np.abs(blocks).max(axis=1)
        expected = np.frombuffer(ggml_write.quantize_rows(name, values[at : at + 1]), np.uint8).reshape(-1, size)
        differs = (tensor.data.reshape(-1, size) != expected).any(axis=1) & ((most >= tiny) | (most == 0))
        if differs.any():
            wrong.append((kind, int(differs.sum()), int(differs.argmax())))
    assert not wrong


def importances():
    """Importance of 4096 columns by kind."""
    random = np.random.default_rng(8)
    square = lambda: random.standard_normal(4096) ** 2
    powers = lambda least, most: 10.0 ** random.integers(least, most, 4096)
    yield "as measured", square() * np.exp(random.standard_normal(4096))
    yield "equal", np.ones(4096)
    yield "zero", np.zeros(4096)
    yield "mostly zero", np.where(random.random(4096) < 0.7, 0, square())
    yield "groups of zeros", np.where(np.arange(4096) // 16 % 3 == 1, 0, square())
    yield "one column of a group", np.where(np.arange(4096) % 32 == 9, 1, 0)
    yield "one large column", np.where(np.arange(4096) % 97 == 5, 1e6, square())
    yield "many scales", square() * powers(-12, 12)
    yield "any scale", square() * powers(-30, 30)
    yield "tiny", square() * 1e-30
    yield "subnormal", square() * 1e-41
    yield "huge", np.minimum(square() * 1e37, 3e38)


# Other rules take no importance.
WEIGHED = [name for name in TYPES if name not in ("Q8_0", "MXFP4", "NVFP4")]


@pytest.mark.parametrize("kind", dict(importances()))
@pytest.mark.parametrize("name", WEIGHED)
def test_blocks_by_importance_are_those_of_ggml(name, kind, rows, tmp_path):
    of_columns = dict(importances())[kind].astype(np.float32)
    src, dst, matrix = (tmp_path / file for file in ("in.gguf", "out.gguf", "imatrix.gguf"))
    # Rows that are shorter, and longer, than what is computed at once.
    shaped = {f"{kind}.weight": row.reshape(-1, [512, 4096, ROW][at % 3]) for at, (kind, row) in enumerate(rows.items())}
    of_tensor = {name: np.resize(of_columns, row.shape[1]) for name, row in shaped.items()}
    write(src, shaped)
    write_imatrix(matrix, of_tensor)
    truecast("quantize", src, dst, name.lower(), "--quantize", "*", "--imatrix", matrix)
    found = {tensor.name: np.asarray(tensor.data).tobytes() for tensor in gguf.GGUFReader(dst).tensors}
    expected = {tensor: ggml_write.quantize_rows(name, row, of_tensor[tensor]) for tensor, row in shaped.items()}
    assert [tensor for tensor in shaped if found[tensor] != expected[tensor]] == []


@pytest.mark.parametrize("name", ["Q4_0", "Q3_K", "Q6_K", "IQ4_XS"])
def test_each_matrix_of_a_stack_has_its_importance(name, rows, tmp_path):
    """A matrix that was never used has none: all columns are alike. Counts divide sums."""
    random = np.random.default_rng(9)
    stack, sums = random.standard_normal((3, 8, 512)).astype(np.float32), random.random((3, 512)).astype(np.float32)
    counts = [37, 0, 3]
    src, dst, matrix = (tmp_path / file for file in ("in.gguf", "out.gguf", "imatrix.gguf"))
    write(src, {"a.weight": stack})
    write_imatrix(matrix, {"a.weight": sums}, {"a.weight": counts})
    truecast("quantize", src, dst, name.lower(), "--quantize", "*", "--imatrix", matrix)
    means = [sums[0] / np.float32(37), np.ones(512), sums[2] / np.float32(3)]
    expected = b"".join(ggml_write.quantize_rows(name, *each) for each in zip(stack, means))
    (found,) = gguf.GGUFReader(dst).tensors
    assert np.asarray(found.data).tobytes() == expected
    truecast("verify", src, dst, "--full")
    # The older file has a number of calls for the whole stack.
    entry = b"".join([np.int32(8).tobytes(), b"a.weight", np.int32(4).tobytes(), np.int32(sums.size).tobytes(), sums.tobytes()])
    matrix.write_bytes(np.int32(1).tobytes() + entry)
    truecast("quantize", src, dst, name.lower(), "--quantize", "*", "--imatrix", matrix, "--force")
    expected = b"".join(ggml_write.quantize_rows(name, *each) for each in zip(stack, sums / np.float32(4)))
    (found,) = gguf.GGUFReader(dst).tensors
    assert np.asarray(found.data).tobytes() == expected
