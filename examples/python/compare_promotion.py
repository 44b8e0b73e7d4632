"""Where NumPy, JAX, PyTorch, TensorFlow and OpenVINO promote two types alike, and where they do not."""

# %%
import itertools

import truecast as tc

SYSTEMS = ("numpy", "jax", "torch", "tensorflow", "openvino")


def promoted(a: str, b: str, system: str) -> str:
    try:
        return tc.promote_types(a, b, system=system, **({"unsafe": True} if system == "openvino" else {}))
    except tc.TruecastError:
        return "refused"


print("", *(f"{name:>12}" for name in SYSTEMS), sep="\t")
for a, b in itertools.combinations(["bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32"], 2):
    answers = [promoted(a, b, system) for system in SYSTEMS]
    if len(set(answers)) > 1:
        print(f"{a} + {b}", *(f"{answer:>12}" for answer in answers), sep="\t")

# %% [markdown]
# One pair with the releases whose rules these are, and why a system refuses.

# %%
print(tc.promotions("i64", "bf16"))
