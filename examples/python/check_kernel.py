"""A kernel of yours against TOSA: what is wrong with it, and which known convention it follows."""

# %%
import numpy as np
import truecast as tc


def my_kernel(x: np.ndarray) -> np.ndarray:
    """f32 to i8 as many write it: add a half, drop the fraction, clamp."""
    clamped: np.ndarray = np.clip(np.trunc(x + np.copysign(0.5, x)), -128, 127)
    return clamped.astype(np.int8)


# %% [markdown]
# Where implementations differ: ties, the ends of the range, what lies beyond them.

# %%
x = np.concatenate([np.arange(-130, 130, 0.5), np.nextafter(np.arange(-130, 130, 0.5), np.inf)]).astype(np.float32)

found = tc.tosa.check(x, my_kernel(x))
print(found)
assert not found.passes  # ties go to even in TOSA

# %% [markdown]
# In a test suite:

# %%
tc.testing.assert_allowed(np.clip(np.rint(x), -128, 127).astype(np.int8), x, spec="tosa")
