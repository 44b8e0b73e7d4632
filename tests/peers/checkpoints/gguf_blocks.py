"""Writes `testdata/gguf-blocks.bin`: random blocks of GGUF files, and what the package `gguf` makes of them.

    pip install gguf==0.19.0 numpy
    python tests/peers/checkpoints/gguf_blocks.py testdata/gguf-blocks.bin

For each block type: number, blocks, elements (u32 each), the bytes of the blocks, their f32 values. Then for each type
that truecast writes: number + 2^31, blocks, elements, f32 values, the bytes of the blocks made of them.
"""

import struct
import sys

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize, quantize

READ = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K MXFP4 NVFP4".split()
WRITTEN = "Q8_0 MXFP4".split()
# Where the f16 of a block lie.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108]}
HALVES |= {"Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}


def blocks(random, name, n):
    elements, size = GGML_QUANT_SIZES[Type[name]]
    data = random.integers(0, 256, (n, size), dtype=np.uint8)
    for at in HALVES.get(name, []):
        # Any finite half in the first blocks, ordinary ones in the others; no NaN and no infinity.
        half = random.integers(0, 0x7C00, n, dtype=np.uint16)
        half[4:] = random.standard_normal(n - 4).astype(np.float16).view(np.uint16) & 0x7FFF
        half |= random.integers(0, 2, n, dtype=np.uint16) << 15
        data[:, at : at + 2] = half.view(np.uint8).reshape(n, 2)
    if name == "MXFP4":
        data[:, 0] = np.linspace(0, 254, n).astype(np.uint8)
    return elements, data


def main(path):
    random = np.random.default_rng(20260803)
    out = bytearray()
    for name in READ:
        n = 6 if name.endswith("K") else 16
        elements, data = blocks(random, name, n)
        values = dequantize(data, Type[name]).astype("<f4").reshape(n, elements)
        out += struct.pack("<III", Type[name], n, elements) + data.tobytes() + values.tobytes()
    for name in WRITTEN:
        n, elements = 24, 32
        values = random.standard_normal((n, elements)).astype("<f4")
        values *= np.exp2(random.integers(-40, 16, (n, 1))).astype("<f4")
        values[0] = 0
        values[1] = np.linspace(-8, 8, elements)  # ties
        values[2, ::3] = -0.0
        data = quantize(values, Type[name])
        out += struct.pack("<III", Type[name] + 2**31, n, elements) + values.tobytes() + data.tobytes()
    with open(path, "wb") as file:
        file.write(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
