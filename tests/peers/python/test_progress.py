"""Bars of tqdm."""

import io

import numpy as np
import truecast as tc
from tqdm import tqdm


def test_a_bar_is_filled(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.ones(100_000, np.float32), b=np.ones(50_000, np.float32))
    with tqdm(file=io.StringIO(), unit="B") as bar:
        tc.convert(tmp_path / "a.npz", tmp_path / "b.npz", "bf16", progress=bar)
        assert bar.n == bar.total == 600_000
    with tqdm(file=io.StringIO()) as bar:
        assert tc.verify(tmp_path / "a.npz", tmp_path / "b.npz", "bf16", progress=bar)
        assert bar.n == bar.total
