"""Possible names in arguments, for type checkers. `tests/python/package/test_types.py` compares them with the
library's tables."""

from typing import Literal

# fmt: off
CanonicalName = Literal[
    "bool", "string", "i1", "u1", "i2", "u2", "u3", "i4", "u4", "u6", "i8", "u8", "i16", "u16", "i32", "u32", "i48",
    "i64", "u64", "f4e2m1", "f6e2m3", "f6e3m2", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f8e3m4",
    "f8e4m3ieee", "f8e4m3b11fnuz", "f8e5m3fnu", "f16", "bf16", "tf32", "f32", "f64", "mxint8", "nf4", "c64",
]
OtherName = Literal[
    "BF16", "BFLOAT16", "BOOL", "C64", "COMPLEX64", "DOUBLE", "F16", "F32", "F64", "F6_E2M3", "F6_E3M2", "F8_E4M3",
    "F8_E4M3FNUZ", "F8_E5M2", "F8_E5M2FNUZ", "F8_E8M0", "FLOAT16", "FLOAT4E2M1", "FLOAT6E2M3", "FLOAT6E3M2",
    "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "I16", "I32", "I64", "I8", "INT16",
    "INT2", "INT32", "INT4", "INT64", "INT8", "STRING", "U16", "U32", "U64", "U8", "UINT16", "UINT2", "UINT32",
    "UINT4", "UINT64", "UINT8", "bf16_t", "bfloat16", "bin", "bool_", "bool_t", "boolean", "cfloat", "complex64",
    "complex<f32>", "double", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3B11FNUZ", "f8E4M3FN", "f8E4M3FNUZ",
    "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU", "float16", "float32", "float4_e2m1fn", "float4_e2m1fn_x2", "float64",
    "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "fnv8E5M3FNU", "fp16", "fp16_t", "fp32", "fp32_t", "fp4e2m1",
    "fp4e2m1_t", "fp4e2m1fn", "fp64", "fp64_t", "fp6e2m3", "fp6e2m3_t", "fp6e3m2", "fp6e3m2_t", "fp8e4m3_t",
    "fp8e4m3fn", "fp8e5m2_t", "fp8e8m0fnu", "fp8ue8m0", "fp8ue8m0_t", "half", "i16_t", "i32_t", "i48_t", "i4_t",
    "i64_t", "i8_t", "int1", "int16", "int2", "int32", "int4", "int48", "int64", "int8", "long", "mxint8_t", "short",
    "si16", "si32", "si64", "si8", "str", "ui1", "ui16", "ui2", "ui3", "ui32", "ui4", "ui6", "ui64", "ui8", "uint1",
    "uint16", "uint2", "uint3", "uint32", "uint4", "uint6", "uint64", "uint8",
]
PrefixedName = Literal[
    "mlir:bf16", "mlir:complex<f32>", "mlir:f16", "mlir:f32", "mlir:f4E2M1FN", "mlir:f64", "mlir:f6E2M3FN",
    "mlir:f6E3M2FN", "mlir:f8E3M4", "mlir:f8E4M3", "mlir:f8E4M3B11FNUZ", "mlir:f8E4M3FN", "mlir:f8E4M3FNUZ",
    "mlir:f8E5M2", "mlir:f8E5M2FNUZ", "mlir:f8E8M0FNU", "mlir:i1", "mlir:i16", "mlir:i2", "mlir:i32", "mlir:i4",
    "mlir:i48", "mlir:i64", "mlir:i8", "mlir:si16", "mlir:si32", "mlir:si64", "mlir:si8", "mlir:tf32", "mlir:ui1",
    "mlir:ui16", "mlir:ui2", "mlir:ui3", "mlir:ui32", "mlir:ui4", "mlir:ui6", "mlir:ui64", "mlir:ui8",
    "numpy:bfloat16", "numpy:bool", "numpy:bool_", "numpy:complex64", "numpy:double", "numpy:f8e4m3", "numpy:float",
    "numpy:float16", "numpy:float32", "numpy:float4_e2m1fn", "numpy:float64", "numpy:float6_e2m3fn",
    "numpy:float6_e3m2fn", "numpy:float8_e3m4", "numpy:float8_e4m3", "numpy:float8_e4m3b11fnuz", "numpy:float8_e4m3fn",
    "numpy:float8_e4m3fnuz", "numpy:float8_e5m2", "numpy:float8_e5m2fnuz", "numpy:float8_e8m0fnu", "numpy:half",
    "numpy:int1", "numpy:int16", "numpy:int2", "numpy:int32", "numpy:int4", "numpy:int64", "numpy:int8", "numpy:short",
    "numpy:str", "numpy:uint1", "numpy:uint16", "numpy:uint2", "numpy:uint32", "numpy:uint4", "numpy:uint64",
    "numpy:uint8", "onnx:BFLOAT16", "onnx:BOOL", "onnx:COMPLEX64", "onnx:DOUBLE", "onnx:FLOAT", "onnx:FLOAT16",
    "onnx:FLOAT4E2M1", "onnx:FLOAT6E2M3", "onnx:FLOAT6E3M2", "onnx:FLOAT8E4M3FN", "onnx:FLOAT8E4M3FNUZ",
    "onnx:FLOAT8E5M2", "onnx:FLOAT8E5M2FNUZ", "onnx:FLOAT8E8M0", "onnx:INT16", "onnx:INT2", "onnx:INT32", "onnx:INT4",
    "onnx:INT64", "onnx:INT8", "onnx:STRING", "onnx:UINT16", "onnx:UINT2", "onnx:UINT32", "onnx:UINT4", "onnx:UINT64",
    "onnx:UINT8", "ov:bf16", "ov:bin", "ov:boolean", "ov:f16", "ov:f32", "ov:f4e2m1", "ov:f64", "ov:f8e4m3",
    "ov:f8e5m2", "ov:f8e8m0", "ov:fp16", "ov:fp32", "ov:fp64", "ov:i16", "ov:i32", "ov:i4", "ov:i64", "ov:i8",
    "ov:nf4", "ov:string", "ov:u1", "ov:u16", "ov:u2", "ov:u3", "ov:u32", "ov:u4", "ov:u6", "ov:u64", "ov:u8",
    "st:BF16", "st:BOOL", "st:C64", "st:F16", "st:F32", "st:F4", "st:F64", "st:F6_E2M3", "st:F6_E3M2", "st:F8_E4M3",
    "st:F8_E4M3FNUZ", "st:F8_E5M2", "st:F8_E5M2FNUZ", "st:F8_E8M0", "st:I16", "st:I32", "st:I64", "st:I8", "st:U16",
    "st:U32", "st:U64", "st:U8", "st:f8e4m3", "tile:bf16", "tile:f16", "tile:f32", "tile:f4E2M1FN", "tile:f64",
    "tile:f8E4M3FN", "tile:f8E5M2", "tile:f8E8M0FNU", "tile:fnv8E5M3FNU", "tile:fp4e2m1fn", "tile:fp8e4m3fn",
    "tile:fp8e5m2", "tile:fp8e8m0fnu", "tile:i1", "tile:i16", "tile:i32", "tile:i4", "tile:i64", "tile:i8",
    "tile:tf32", "torch:bfloat16", "torch:bool", "torch:cfloat", "torch:complex64", "torch:double", "torch:float",
    "torch:float16", "torch:float32", "torch:float4_e2m1fn_x2", "torch:float64", "torch:float8_e4m3fn",
    "torch:float8_e4m3fnuz", "torch:float8_e5m2", "torch:float8_e5m2fnuz", "torch:float8_e8m0fnu", "torch:half",
    "torch:int", "torch:int1", "torch:int16", "torch:int2", "torch:int32", "torch:int4", "torch:int64", "torch:int8",
    "torch:long", "torch:short", "torch:uint1", "torch:uint16", "torch:uint2", "torch:uint3", "torch:uint32",
    "torch:uint4", "torch:uint6", "torch:uint64", "torch:uint8", "tosa:bf16_t", "tosa:bool_t", "tosa:f8e4m3",
    "tosa:fp16", "tosa:fp16_t", "tosa:fp32", "tosa:fp32_t", "tosa:fp4e2m1", "tosa:fp4e2m1_t", "tosa:fp64_t",
    "tosa:fp6e2m3", "tosa:fp6e2m3_t", "tosa:fp6e3m2", "tosa:fp6e3m2_t", "tosa:fp8e4m3", "tosa:fp8e4m3_t",
    "tosa:fp8e5m2", "tosa:fp8e5m2_t", "tosa:fp8ue8m0", "tosa:fp8ue8m0_t", "tosa:i16_t", "tosa:i32_t", "tosa:i48_t",
    "tosa:i4_t", "tosa:i64_t", "tosa:i8_t", "tosa:int4", "tosa:int48", "tosa:mxint8_t",
]
DTypeName = Literal[CanonicalName, OtherName, PrefixedName]
Specification = Literal[
    "onnx", "onnx@1", "onnx@2", "onnx@3", "onnx@4", "onnx@5", "onnx@6", "onnx@7", "onnx@8", "onnx@9", "onnx@10",
    "onnx@11", "onnx@12", "onnx@13", "onnx@14", "onnx@15", "onnx@16", "onnx@17", "onnx@18", "onnx@19", "onnx@20",
    "onnx@21", "onnx@22", "onnx@23", "onnx@24", "onnx@25", "onnx@26", "onnx@27", "onnx@28", "tosa", "tosa@1.0",
    "tosa@1.1", "openvino", "openvino@2026.4", "tile", "tile@13.1", "tile@13.2", "tile@13.3", "tile@13.4", "tile@13.5",
    "ieee", "c", "rust", "wasm", "mlir", "spirv", "stablehlo", "wgsl", "ptx", "ptx@9", "arm", "avx10", "avx10@10.2",
    "riscv", "amd", "amd@cdna3", "amd@rdna4", "amd@cdna4", "torch", "torch@2.11", "torch@2.15", "jax", "jax@0.10",
    "ml_dtypes", "ml_dtypes@0.6", "numpy", "numpy@2", "tflite", "tflite@2.1", "tflite@2.3",
]
Rounding = Literal[
    "nearest-even", "nearest-away", "nearest-up", "toward-zero", "away", "up", "down", "odd", "nearest_even", "zero",
    "negative_inf", "positive_inf", "approx", "full", "nearest_int_to_zero", "nearest_away",
]
