"""Arrays of JAX in and out."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import truecast as tc


@pytest.mark.parametrize("to", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "int8", "int4", "float4_e2m1fn"])
def test_arrays_stay_arrays(to):
    x = jnp.array([[1.0, -2.0, 3.0]])
    y = tc.cast(x, to)
    assert isinstance(y, jax.Array) and y.dtype == np.dtype(getattr(ml_dtypes, to, to)) and y.shape == x.shape
    back = tc.cast(y, jnp.float32)
    assert isinstance(back, jax.Array) and back.tolist() == [[1, -2, 3]]


def test_types_of_jax():
    assert tc.cast(np.float32([1]), jnp.bfloat16).dtype == ml_dtypes.bfloat16


def test_results_cannot_be_written_into():
    x = jnp.ones(3)
    with pytest.raises(tc.DTypeError, match="JAX"):
        tc.cast(x, "bf16", out=jnp.zeros(3, jnp.bfloat16))
    out = np.zeros(3, ml_dtypes.bfloat16)
    assert tc.cast(x, "bf16", out=out) is out


def test_large_arrays_are_read_where_they_lie():
    """No more memory than the result is taken: the array is not copied on its way in."""
    import tracemalloc

    x = jnp.ones(4_000_000, jnp.float32)
    tc.cast(x, "f8e4m3fn")
    tracemalloc.start()
    y = tc.cast(x, "f8e4m3fn")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert y.shape == x.shape and peak < 8_100_000


def test_types_that_jax_narrows():
    """Without jax_enable_x64 it has no type of 64 bits, and takes the one of 32 without a word."""
    x = jnp.ones(3)
    with pytest.raises(tc.DTypeError, match="jax_enable_x64"):
        tc.cast(x, "f64")
    assert tc.cast(np.asarray(x), "f64").dtype == np.float64
    with jax.enable_x64(True):
        assert tc.cast(x, "f64").dtype == jnp.float64


def test_arrays_without_memory():
    gone = jnp.ones(3)
    gone.delete()
    for call in (lambda: tc.cast(gone, "f16"), lambda: jax.jit(lambda x: tc.cast(x, "f16"))(jnp.ones(3)), lambda: tc.cast(jax.random.key(0), "f16")):
        with pytest.raises(tc.DTypeError):
            call()
