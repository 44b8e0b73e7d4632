"""An array to another type and back: specifications, codes, packed bytes, a place for the result."""

# %%
import numpy as np
import truecast as tc

x = np.array([1, 0.3, 465, -np.inf, np.nan], np.float32)

# %% [markdown]
# The default is ONNX Cast at its newest opset: out-of-range values of fp8 saturate.

# %%
print(tc.cast(x, "f8e4m3fn"))

# %% [markdown]
# Other specifications decide otherwise, and each has attributes of its own.

# %%
print(tc.cast(x, "f8e4m3fn", spec="onnx@28", saturate=False))
print(tc.cast(x, "i8", spec="tosa"))
print(tc.cast(x, "i8", spec="ieee", rounding="nearest-away", int_overflow="saturate"))

# %% [markdown]
# The bits, and the bytes of narrow types without gaps.

# %%
print(tc.cast(x, "f8e4m3fn", layout="codes"))
packed = tc.cast(x, "f4e2m1", layout="packed")
print(packed, tc.cast(packed, "f32", from_="f4e2m1", shape=x.shape))

# %% [markdown]
# Into a buffer of yours. Large results in a loop are faster so: new memory has to be cleared first.

# %%
out = np.empty(x.shape, np.float16)
tc.cast(x, "f16", out=out)

# %% [markdown]
# What was lost, counted in the same pass; and why one value became what it is.

# %%
y, counts = tc.cast_with_report(x, "f8e4m3fn")
print(counts)
print(tc.explain(x[2], to="f8e4m3fn"))
