// JavaScript's typed arrays for dtypes; for bfloat16, and for float16 without Float16Array, they hold the bits.

export const ARRAYS = {
  float64: Float64Array,
  float32: Float32Array,
  float16: globalThis.Float16Array ?? Uint16Array,
  bfloat16: Uint16Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

// Others are bytes, with two 4-bit integers in a byte.
export const arrayOf = (dtype) => ARRAYS[dtype] ?? Uint8Array;
