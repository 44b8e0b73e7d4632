"""Uses an installed truecast: arrays, questions, scales, and unless `--no-threads` is given also files. Needs NumPy."""

import platform
import sys
import tempfile
from pathlib import Path

import numpy as np
import truecast as tc


def expect(found: object, right: object) -> None:
    if found != right:
        raise SystemExit(f"{found} where {right} is right")


x = np.array([1, 465, -np.inf, np.nan, 0.3, 2.0**-20], np.float32)
expect(tc.cast(x, "f8e4m3fn", layout="codes").tolist(), [56, 126, 254, 127, 42, 0])
expect(tc.cast(x, "f8e4m3fn", spec="tosa", layout="codes").tolist()[1], 127)
expect(tc.cast(x, "bf16", layout="codes").tolist(), [0x3F80, 0x43E8, 0xFF80, 0x7FC0, 0x3E9A, 0x3580])
halves = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
wide = tc.cast(halves, "f32")
expect(np.array_equal(wide, halves.astype(np.float32), equal_nan=True), True)
back = tc.cast(wide, "f16")
expect(np.array_equal(back, halves, equal_nan=True), True)
expect(tc.cast(np.float64([1e5, -0.5]), "string").tolist(), ["100000.0", "-0.5"])
expect(tc.promote_types("i32", "f32", system="torch"), "f32")
expect(tc.explain(465.0, to="f8e4m3fn")["source"]["bits"], "0x43e88000")
q = tc.quantize(np.float32([[448, 1, -3, 0]]), "fp8-tensor", layout="codes")
expect((q.codes.tolist(), q.scales.tolist()), ([[126, 56, 196, 0]], 1.0))
try:
    tc.cast(x, "f9")
except tc.DTypeError:
    pass
else:
    raise SystemExit("f9 is a type")
if "--no-threads" not in sys.argv:
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "a.npy"), Path(folder, "b.npy")
        np.save(source, np.linspace(-4, 4, 1 << 20, dtype=np.float32))
        report = tc.convert(source, result, "f16")
        expect(bool(tc.verify(source, result, report=report)), True)
print(f"truecast {tc.__version__}, Python {platform.python_version()}, {platform.machine()}, NumPy {np.__version__}: right")
