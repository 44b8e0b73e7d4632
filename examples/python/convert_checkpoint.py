"""A checkpoint to fp8: rules, what each tensor lost, proof. Then a folder of shards, and codes with scales."""

# %% [markdown]
# Random weights stand for a checkpoint; put the name of yours here.

# %%
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import truecast as tc

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
source, small = folder / "model.npz", folder / "small.npz"
rng = np.random.default_rng(1)
arrays: dict[str, Any] = {"final.LayerNorm.weight": np.ones(256, np.float32)}
for i in range(4):
    arrays[f"layer.{i}.weight"] = rng.standard_normal((256, 512), np.float32) * 0.02
    arrays[f"layer.{i}.bias"] = rng.standard_normal(256, np.float32) * 1e-3
np.savez(source, **arrays)

# %% [markdown]
# Everything to fp8 but the LayerNorms; biases to bf16.

# %%
report = tc.convert(source, small, "f8e4m3fn", keep=["*LayerNorm*"], rules=[("*.bias", "bf16")])
print(report)

# %% [markdown]
# The rows are ready for `pandas.DataFrame` or `polars.DataFrame`.

# %%
rows = report.to_dict()
noise = [(decibels, name) for decibels, name in zip(rows["sqnr_db"], rows["name"]) if decibels is not None]
print(f"the most noise has {min(noise)[1]}: {min(noise)[0]:.1f} dB")

# %% [markdown]
# The result is recomputed by code that shares nothing with what converted.

# %%
proof = tc.verify(source, small, report=report)
print(proof)
assert proof

# %% [markdown]
# A plain cast does not scale. With a scale for each block small weights keep their digits.

# %%
x = arrays["layer.0.weight"]
for scheme in ("fp8-tensor", "fp8-block", "mxfp8", "nvfp4", "mxfp4", "int4-group"):
    q = tc.quantize(x, scheme)
    error = tc.dequantize(q) - x
    print(f"{scheme:>10}: {8 * q.nbytes / x.size:5.2f} bits, SQNR {10 * np.log10((x**2).sum() / (error**2).sum()):.1f} dB")
