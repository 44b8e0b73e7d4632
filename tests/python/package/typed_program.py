"""A program that mypy reads in strict mode; it is not run."""

from typing import Any

import numpy as np
import numpy.typing as npt
import truecast as tc


def use(x: npt.NDArray[np.float32], out: npt.NDArray[np.float16]) -> None:
    y: npt.NDArray[Any] = tc.cast(x, "f8e4m3fn", saturate=False)
    z: npt.NDArray[np.float16] = tc.cast(y, "f16", out=out)
    w, counts = tc.cast_with_report(z, "bf16", spec="ieee")
    number: float = counts["sqnr_db"]
    rows: dict[str, list[Any]] = tc.convert("a.npy", "b.npy", "bf16").to_dict()
    largest: float | None = tc.finfo("f16").max
    common: str = tc.promote_types("i32", np.float32, system="torch")
    passes: bool = tc.check(x, w).passes
    tc.testing.assert_allowed(w, x, spec="tosa")
    print(number, rows, largest, common, passes, tc.tosa.cast(x, "i8"), tc.explain(1.5, "i4")["results"])
