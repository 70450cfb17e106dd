"""ONNX's numbers of element types."""

from .. import dtypes

# TensorProto.DataType
DTYPES = {
    1: dtypes.float32, 2: dtypes.uint8, 3: dtypes.int8, 4: dtypes.uint16, 5: dtypes.int16, 6: dtypes.int32,
    7: dtypes.int64, 8: dtypes.string, 9: dtypes.bool, 10: dtypes.float16, 11: dtypes.float64, 12: dtypes.uint32,
    13: dtypes.uint64, 16: dtypes.bfloat16, 17: dtypes.float8_e4m3fn, 18: dtypes.float8_e4m3fnuz,
    19: dtypes.float8_e5m2, 20: dtypes.float8_e5m2fnuz, 21: dtypes.uint4, 22: dtypes.int4, 23: dtypes.float4_e2m1fn,
    24: dtypes.float8_e8m0fnu, 25: dtypes.uint2, 26: dtypes.int2, 27: dtypes.float6_e2m3fn, 28: dtypes.float6_e3m2fn,
}  # fmt: skip
