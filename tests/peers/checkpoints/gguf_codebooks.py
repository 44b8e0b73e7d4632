"""Writes the codebooks of GGUF block types, as the package `gguf` has them, for `truecast-core`.

    pip install gguf==0.19.0 numpy
    python tests/peers/checkpoints/gguf_codebooks.py crates/core/src/scaled/codebooks

A file has an entry in each little-endian u16: the indices of eight values in 2 bits each, or of four values in 4 bits
each, the first in the lowest bits. IQ1_M has the codebook of IQ1_S.
"""

import pathlib
import sys

import gguf.quants
import numpy as np


def main(folder):
    for name in ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"):
        quant = getattr(gguf.quants, name)
        quant.init_grid()
        values = quant.grid.reshape(quant.grid_shape)
        indices = np.searchsorted(quant.grid_map, values)
        assert (np.array(quant.grid_map)[indices] == values).all()
        bits = 16 // values.shape[1]
        entries = (indices << (bits * np.arange(values.shape[1]))).sum(axis=1).astype("<u2")
        pathlib.Path(folder, f"{name.lower()}.bin").write_bytes(entries.tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
