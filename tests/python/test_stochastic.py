"""`cast(.., seed=N)`: random bits by seed and index alone."""

import numpy as np
import pytest

tc = pytest.importorskip("truecast")


def codes(x, to, **options):
    return tc.cast(x, to, layout="codes", **options)


def test_seed_decides():
    x = np.linspace(-3, 3, 100_001, dtype=np.float32)
    first = codes(x, "f8e4m3fn", seed=5)
    assert (first == codes(x, "f8e4m3fn", seed=5)).all()
    assert (first != codes(x, "f8e4m3fn", seed=6)).any()
    assert (first != codes(x, "f8e4m3fn")).any()


def test_order_of_memory_does_not_matter():
    x = np.random.default_rng(1).normal(size=(300, 70)).astype(np.float32)
    expected = codes(x, "bf16", seed=9)
    assert (codes(np.asfortranarray(x), "bf16", seed=9) == expected).all()


def test_the_mean_is_the_value():
    x = np.full(1 << 18, 0.3, np.float32)
    rounded = tc.cast(tc.cast(x, "i8", seed=1), "f32")
    assert set(np.unique(rounded)) == {0, 1}
    assert abs(rounded.mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / x.size)


def test_exact_values_stay():
    x = np.array([1, -2, 448, np.inf, 0], np.float32)
    assert (codes(x, "f8e4m3fn", seed=3, spec="torch@2.15") == codes(x, "f8e4m3fn", spec="torch@2.15")).all()


def test_a_file_has_the_same_codes(tmp_path):
    x = np.linspace(-3, 3, 70_000, dtype=np.float32)
    np.save(tmp_path / "a.npy", x)
    tc.convert(tmp_path / "a.npy", tmp_path / "b.npy", "f8e4m3fn", seed=11)
    assert (np.load(tmp_path / "b.npy").view(np.uint8) == codes(x, "f8e4m3fn", seed=11)).all()
    assert tc.verify(tmp_path / "a.npy", tmp_path / "b.npy", "f8e4m3fn", seed=11)
    assert not tc.verify(tmp_path / "a.npy", tmp_path / "b.npy", "f8e4m3fn", seed=12)


def test_another_rounding_is_refused():
    with pytest.raises(tc.UsageError, match="omit the other rounding"):
        tc.cast(np.array([1.5], np.float32), "f16", spec="ieee", rounding="up", seed=1)


def test_the_same_type_is_copied():
    x = np.array([True, False])
    assert (tc.cast(x, "bool", seed=1) == x).all()


def test_text_is_refused():
    with pytest.raises(tc.UsageError):
        tc.cast(np.array([1.5], np.float32), "string", seed=1)
