"""The relative error of casts over the range of a type, with matplotlib."""

# %%
import matplotlib.pyplot as plt
import numpy as np
import truecast as tc

# %%
x = np.geomspace(2.0**-12, 2.0**10, 20_000).astype(np.float32)
figure, axes = plt.subplots(figsize=(9, 5))
for name in ("f8e4m3fn", "f8e5m2", "bf16"):
    y = tc.cast(tc.cast(x, name), "f32")
    axes.plot(x, np.abs(y - x) / x, ".", markersize=1, label=name)
    info = tc.finfo(name)
    if info.max is not None and info.max < x[-1]:
        axes.axvline(info.max, linewidth=0.5, color="grey")
axes.set(xscale="log", yscale="log", xlabel="value", ylabel="relative error", title="ONNX Cast, to nearest even")
axes.legend(markerscale=10)
figure.tight_layout()
figure.savefig("error.png", dpi=120)
print("error.png")
