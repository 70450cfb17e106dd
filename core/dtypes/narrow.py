"""Encoding and decoding of the narrow data types: 16-, 8-, 6- and 4-bit floats, 4- and 2-bit integers.

Formats: IEEE 754 binary16, bfloat16, and those of the OCP 8-bit specification, OCP microscaling (float4_e2m1fn,
float6_e2m3fn, float6_e3m2fn, float8_e8m0fnu) and the "fnuz" variants (no infinity, no negative zero) as ONNX defines
them.
"""

from math import copysign, frexp, ldexp

INF = float("inf")
NAN = float("nan")

# name -> (exponent bits, mantissa bits, bias, largest finite code, code of NaN, whether it has infinities)
FORMATS = {
    "float16": (5, 10, 15, 0x7BFF, 0x7E00, True),
    "bfloat16": (8, 7, 127, 0x7F7F, 0x7FC0, True),
    "float8_e4m3fn": (4, 3, 7, 0x7E, 0x7F, False),
    "float8_e4m3fnuz": (4, 3, 8, 0x7F, 0x80, False),
    "float8_e5m2": (5, 2, 15, 0x7B, 0x7E, True),
    "float8_e5m2fnuz": (5, 2, 16, 0x7F, 0x80, False),
    "float6_e2m3fn": (2, 3, 1, 0x1F, None, False),
    "float6_e3m2fn": (3, 2, 3, 0x1F, None, False),
    "float4_e2m1fn": (2, 1, 1, 0x7, None, False),
}


def encode(dtype, value, saturate=True):
    """The bits of `value` in a float dtype of at most 16 bits, rounded half to even.

    On overflow, 16-bit dtypes give infinity; narrower ones their largest value, or, unless `saturate`, infinity or NaN.
    """
    name = dtype.name
    if name == "float8_e8m0fnu":
        return _encode_exponent(value, saturate)
    exponent_bits, mantissa_bits, bias, largest, nan, has_inf = FORMATS[name]
    top = 1 << (exponent_bits + mantissa_bits)
    sign = top if copysign(1.0, value) < 0 else 0
    if value != value:
        return (top ^ sign) if nan is None else nan  # float6 and float4 have no NaN: -NaN is 0, NaN -0, as in ml_dtypes
    value = abs(value)
    if value == INF:
        code = largest + 1
    else:
        exponent = max(frexp(value)[1] - 1, 1 - bias) if value else 1 - bias
        # round(): half to even. A carry into the exponent gives the correct result.
        code = round(ldexp(value, mantissa_bits - exponent)) + ((exponent + bias - 1) << mantissa_bits)
    if code > largest:
        if nan is None or (saturate and dtype.bits < 16):
            code = largest
        elif has_inf:
            code = ((1 << exponent_bits) - 1) << mantissa_bits
        else:
            code = nan
            sign = 0 if nan == 0x80 else sign
    elif not code and nan == 0x80:
        return 0  # these formats have no negative zero
    return code | sign


def _encode_exponent(value, saturate):
    # An unsigned power of two: 2**(code - 127); 255 is NaN, and zero becomes the smallest.
    if value != value or value < 0 or value == INF:
        return 255
    mantissa, exponent = frexp(value)
    # Up to the next power, ONNX's default; mantissa lies in [0.5, 1).
    code = exponent + 126 + (mantissa > 0.5)
    if not value or code < 0:
        return 0
    return code if code < 255 else 254 if saturate else 255


def decode(dtype, code):
    """The value of the bits `code` in a float dtype of at most 16 bits."""
    name = dtype.name
    if name == "float8_e8m0fnu":
        return NAN if code == 255 else ldexp(1.0, code - 127)
    exponent_bits, mantissa_bits, bias, largest, nan, has_inf = FORMATS[name]
    top = 1 << (exponent_bits + mantissa_bits)
    if code == nan and nan == 0x80:
        return NAN
    size = code & (top - 1)
    if size > largest:
        if has_inf and size == largest + 1:
            return -INF if code & top else INF
        return NAN
    exponent = size >> mantissa_bits
    mantissa = size & ((1 << mantissa_bits) - 1)
    if exponent:
        mantissa += 1 << mantissa_bits
    else:
        exponent = 1
    value = ldexp(mantissa, exponent - bias - mantissa_bits)
    return -value if code & top else value


def rounder(dtype):
    """A function that rounds a float to the nearest value of `dtype`."""

    def nearest(value):
        return decode(dtype, encode(dtype, value))

    return nearest


def unpack(data, dtype, count):
    """`count` elements from packed bytes, as Python numbers (see Backend.from_bytes for the layout)."""
    bits = dtype.bits
    if bits == 16:
        codes = [data[i] | data[i + 1] << 8 for i in range(0, 2 * count, 2)]
    elif bits == 8:
        codes = data
    else:
        codes = _codes(data, bits, count)
    if dtype.is_float:
        if bits == 16:
            return [decode(dtype, c) for c in codes]
        table = [decode(dtype, c) for c in range(1 << bits)]
        return [table[c] for c in codes]
    if dtype.kind == "int":
        sign = 1 << (bits - 1)
        return [(c ^ sign) - sign for c in codes]
    return codes


def _codes(data, bits, count):
    # Fewer than 8 bits per element: a bit stream, lowest first. A 6-bit element may end in the next byte.
    mask = (1 << bits) - 1
    if 8 % bits:
        data = bytes(data) + b"\0"
        return [((data[b >> 3] | data[(b >> 3) + 1] << 8) >> (b & 7)) & mask for b in range(0, count * bits, bits)]
    return [(data[b >> 3] >> (b & 7)) & mask for b in range(0, count * bits, bits)]


def pack(values, dtype):
    """The bytes of values of a narrow dtype (rounded to it already: infinities stay); the inverse of `unpack`."""
    codes = [encode(dtype, v, False) for v in values] if dtype.is_float else values
    return pack_codes(codes, dtype.bits)


def pack_codes(codes, bits):
    """The lowest `bits` (2, 4, 6, 8 or 16) bits of each code as a stream, lowest first; zeros fill the last byte."""
    out = bytearray((len(codes) * bits + 7) // 8)
    mask = (1 << bits) - 1
    at = 0
    for code in codes:
        code = (code & mask) << (at & 7)
        out[at >> 3] |= code & 255
        if code > 255:  # a 6-bit element may end in the next byte, one of 16 bits does
            out[(at >> 3) + 1] = code >> 8
        at += bits
    return out
