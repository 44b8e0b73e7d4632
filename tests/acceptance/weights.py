"""Numbers like those of a trained model, in files of gigabytes; NumPy only."""

from typing import BinaryIO

import numpy as np
from processes import MIB


class Weights:
    """A stream of normally distributed f32, each tensor with a scale of its own."""

    def __init__(self, seed: int = 7):
        self.random = np.random.default_rng(seed)
        self.pool = self.random.standard_normal(32 * MIB // 4, dtype=np.float32)

    def write(self, file: BinaryIO, size: int) -> None:
        """Appends one tensor of this many bytes."""
        scale = np.float32(self.random.uniform(0.01, 0.1))
        while size > 0:
            # Never the same stretch twice: another beginning, another scale.
            piece = self.pool[self.random.integers(self.pool.size // 2) :][: size // 4] * scale
            file.write(piece.data)
            size -= piece.nbytes
