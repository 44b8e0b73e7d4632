"""Writes `testdata/gguf-blocks.bin`: random blocks of GGUF files, and what the package `gguf` or ggml makes of them.

    pip install gguf==0.19.0 numpy
    LLAMACPP_LIBS=FOLDER python tests/peers/checkpoints/gguf_blocks.py testdata/gguf-blocks.bin

For each of the first block types: number, blocks, elements (u32 each), the bytes of the blocks, their f32 values by
`gguf`. For each type that truecast writes: number + 2^31, blocks, elements, f32 values, the bytes of the blocks made of
them by `gguf`. Then, as the first, the other block types of `libggml-base.so`, with values by ggml
(`../llamacpp/ggml_base.py` says where it is).
"""

import pathlib
import struct
import sys

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize, quantize

FIRST = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K MXFP4 NVFP4".split()
# Types that `gguf` decodes.
READ = FIRST + "IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ1_S IQ1_M IQ4_NL IQ4_XS TQ1_0 TQ2_0".split()
WRITTEN = "Q8_0 MXFP4".split()
# Where the f16 of a block lie, if not in the first two bytes.
HALVES = {"Q4_1": [0, 2], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2]}
HALVES |= {"Q6_K": [208], "MXFP4": [], "NVFP4": [], "Q8_K": [2], "IQ1_M": [], "TQ1_0": [52], "TQ2_0": [64]}


def blocks(random, name, n, sizes=None):
    elements, size = sizes or GGML_QUANT_SIZES[Type[name]]
    data = random.integers(0, 256, (n, size), dtype=np.uint8)
    for at in HALVES.get(name, [0]):
        # Any finite half in the first blocks, ordinary ones in the others; no NaN and no infinity.
        half = random.integers(0, 0x7C00, n, dtype=np.uint16)
        half[4:] = random.standard_normal(n - 4).astype(np.float16).view(np.uint16) & 0x7FFF
        half |= random.integers(0, 2, n, dtype=np.uint16) << 15
        data[:, at : at + 2] = half.view(np.uint8).reshape(n, 2)
    if name == "MXFP4":
        data[:, 0] = np.linspace(0, 254, n).astype(np.uint8)
    if name == "IQ1_M":
        data[:, 55] &= 0xBF  # the highest bit of the exponent
    return elements, data


def main(path):
    sys.path.append(str(pathlib.Path(__file__).parents[1] / "llamacpp"))
    import ggml_base

    random = np.random.default_rng(20260803)
    out = bytearray()

    def read(number, elements, data, values):
        head = struct.pack("<III", number, len(data), elements)
        return head + data.tobytes() + values.astype("<f4").tobytes()

    for name in FIRST:
        elements, data = blocks(random, name, 6 if name.endswith("K") else 16)
        out += read(Type[name], elements, data, dequantize(data, Type[name]))
    for name in WRITTEN:
        n, elements = 24, 32
        values = random.standard_normal((n, elements)).astype("<f4")
        values *= np.exp2(random.integers(-40, 16, (n, 1))).astype("<f4")
        values[0] = 0
        values[1] = np.linspace(-8, 8, elements)  # ties
        values[2, ::3] = -0.0
        data = quantize(values, Type[name])
        out += struct.pack("<III", Type[name] + 2**31, n, elements) + values.tobytes() + data.tobytes()
    for block in ggml_base.block_types():
        if block.name not in FIRST:
            n, sizes = 6 if block.elements == 256 else 16, (block.elements, block.bytes)
            _, data = blocks(random, block.name, n, sizes)
            out += read(block.number, block.elements, data, ggml_base.values(block, data))
    with open(path, "wb") as file:
        file.write(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
