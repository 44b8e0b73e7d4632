"""Where NumPy, JAX, PyTorch, TensorFlow and OpenVINO promote two types alike, and where they do not."""

# %%
import itertools

import truecast as tc
from truecast.typing import DTypeName, System

SYSTEMS: tuple[System, ...] = ("numpy", "jax", "torch", "tensorflow", "openvino")
TYPES: tuple[DTypeName, ...] = ("bool", "u8", "i8", "i32", "i64", "f16", "bf16", "f32")


def promoted(a: DTypeName, b: DTypeName, system: System) -> str:
    try:
        return tc.promote_types(a, b, system=system, unsafe=system == "openvino")
    except tc.TruecastError:
        return "refused"


print("", *(f"{name:>12}" for name in SYSTEMS), sep="\t")
for a, b in itertools.combinations(TYPES, 2):
    answers = [promoted(a, b, system) for system in SYSTEMS]
    if len(set(answers)) > 1:
        print(f"{a} + {b}", *(f"{answer:>12}" for answer in answers), sep="\t")

# %% [markdown]
# One pair with the releases whose rules these are, and why a system refuses.

# %%
print(tc.promotions("i64", "bf16"))
