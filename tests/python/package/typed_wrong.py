"""Calls of which mypy finds each one wrong; none is run. A line that ends in `# wrong` is one."""

import ml_dtypes
import numpy as np
import truecast as tc

x = np.zeros(3, np.float32)

tc.cast(x, "bf61")  # wrong
tc.cast(x, "bf16", spec="oonx")  # wrong
tc.cast(x, "bf16", satrate=True)  # wrong
tc.cast(x, "bf16", form_="f32")  # wrong
tc.cast(x)  # wrong
tc.cast(x, "i8", spec="ieee", rounding="nearest")  # wrong
tc.cast(x, "i8", layout="code")  # wrong
tc.cast(x, "i8", shape=3)  # wrong
tc.cast_with_report(x, "bf61")  # wrong
tc.cast_with_report(x, "bf16", overfow="saturate")  # wrong
tc.convert("a.npy", "b.npy", "bf61")  # wrong
tc.convert("a.npy", "b.npy", "bf16", max_memmory=1)  # wrong
tc.convert("a.npy", "b.npy", "bf16", force="yes")  # wrong
tc.convert("a.npy", "b.npy", "bf16", rules=["*=bf16"])  # wrong
tc.convert("a.npy", "b.npy", "bf16", mx_scale="round")  # wrong
tc.convert("a.npy", "b.npy", "bf16", keep_preset=["norm"])  # wrong
tc.verify("a.npy", "b.npy", "bf16", force=True)  # wrong
tc.verify("a.npy", "b.npy", sample="all")  # wrong
tc.compare("a.npy", "b.npy", to="f23")  # wrong
tc.inspect("a.npy", from_="f23")  # wrong
tc.explain(1.5, to="bf61")  # wrong
tc.explain(1.5, to="bf16", spec="tsoa")  # wrong
tc.finfo("bf61")  # wrong
tc.promote_types("i8", "f23", system="torch")  # wrong
tc.promote_types("i8", "f32")  # wrong
tc.promote_types("i8", "f32", system="pytorch")  # wrong
tc.promotions("i8", "f32", jax_x46=True)  # wrong
tc.check(x, x, spec="ieee", exactnan=True)  # wrong
tc.testing.assert_allowed(x, x, form_="f32")  # wrong
tc.differ("onnx", "tosa", from_="f16")  # wrong
tc.differ("onnx", "tosa", from_="f16", to="f8e4m4")  # wrong
tc.show("a.npy", tensor=3)  # wrong
tc.schemes(name=4)  # wrong
tc.vectors("f32", "bf61")  # wrong
tc.vectors("f32", "bf16", level="all")  # wrong
tc.vectors("f32", "bf16", layout="packed")  # wrong
tc.quantize(x, "mxfp4").error()  # wrong
tc.quantize(x, "mxfp4", mx_scale="round")  # wrong
tc.quantize(x, "mxfp4").dequantize("bf61")  # wrong
tc.onnx.cast(x, "bf16", satrate=1)  # wrong
tc.onnx.cast(x, "bf16", round_mode="nearst")  # wrong
tc.tosa.cast(x, "i8", saturate=True)  # wrong
tc.tosa.rescale(x, "i8", scale=0.5, rounding="duoble")  # wrong
tc.openvino.convert(x, "f8e4m4")  # wrong
tc.tile.ftof(x, ml_dtypes.bfloat16, rounding="nearest")  # wrong
