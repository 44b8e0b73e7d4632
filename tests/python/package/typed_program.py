"""A program that mypy reads in strict mode; it is not run."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import truecast as tc
from truecast.typing import TypeLike


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
    half: npt.NDArray[np.float16] = tc.cast(x, np.float16)
    tc.cast(x, ml_dtypes.bfloat16, spec="ieee", rounding="toward-zero", subnormals=None)
    tc.cast([1.5], 10, spec="onnx@19", from_="torch:float32")
    tc.cast(half, tc.finfo("i8").name == "i8" and "i8" or "u8", spec="tile", tile_option=["preserve_inf"])
    rules: dict[str, TypeLike | None] = {"*norm*": None, "*bias": np.float32}
    tc.convert("a", "b", scheme="mxfp4", keep="lm_head*", rules=rules, part=(1, 2), max_memory="1GiB", progress=print)
    pairs: list[tuple[str, TypeLike | None]] = [("*", "f32"), ("x", None)]
    report = tc.convert("a", "b", "bf16", keep_preset=["norms"], spec="ieee", overflow="saturate", rules=pairs)
    tc.verify("a", "b", report=report, full=True, progress=lambda done, total, name: None)
    tc.onnx.cast(x, 17, saturate=0, layout="codes")
    tc.openvino.convert(x, "f8e4m3")
    tc.tile.ftoi(x, "i8", saturating=True, profile="hw")
    tc.quantize(x, "int4-group,group=32", nonfinite="saturate").dequantize(np.float32)
    found: tc.Vectors = tc.vectors("f32", "bf16", spec="onnx@19", seed=1, layout="codes")
    ties: npt.NDArray[Any] = found.input[found.undefined]
    noise: float = tc.quantize(x, "mxfp8").error(x).sqnr_db
    print(ties, noise, tc.differ("onnx", "tosa", from_=np.float32, to="f16")["pairs"], tc.schemes(), tc.show("a", "w[0]"))
    tc.explain(np.float64(1), to="float16", spec="tosa@1.1")
    try:
        tc.cast(x, "i8", spec="ieee", overflow="error")
    except tc.InputError as error:
        at: int | None = error.index
        print(at, error.value, error.tensor)
    print(number, rows, largest, common, passes, tc.tosa.cast(x, "i8"), tc.explain(1.5, "i4")["results"])
