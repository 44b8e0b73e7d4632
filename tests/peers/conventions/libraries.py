"""The packages as functions from arrays to arrays.

Arrays are those of NumPy and ml_dtypes, also for torch, whose tensors hold the same codes. A conversion that a package
does not have is `None`. Not here: any expectation.
"""

import numpy as np
import torch
from dtypes import Type
from inputs import INTEGERS, TYPES

torch.set_num_threads(1)
OF_NUMPY = {t.numpy: t for t in TYPES.values()}
NUMPY = ["bool", *INTEGERS, "f16", "f32", "f64"]
TORCH = {
    name: getattr(torch, str(TYPES[name].numpy))
    for name in [*NUMPY, "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0"]
}
TORCH_CODES = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}
TORCH_RELEASE = ".".join(torch.__version__.split(".")[:2])


def by_torch(x: np.ndarray, to: Type, gaps: bool = False) -> np.ndarray | None:
    codes = torch.from_numpy(np.repeat(x.view(OF_NUMPY[x.dtype].uint), 2 if gaps else 1))
    tensor = codes.view(TORCH[OF_NUMPY[x.dtype].name])[:: 2 if gaps else 1]
    result = tensor.to(TORCH[to.name]).contiguous()
    return result.view(TORCH_CODES[to.numpy.itemsize]).numpy().view(to.numpy)


def by_numpy(x: np.ndarray, to: Type, gaps: bool = False) -> np.ndarray | None:
    with np.errstate(all="ignore"):
        try:
            return (np.repeat(x, 2)[::2] if gaps else x).astype(to.numpy)
        except TypeError:
            return None
