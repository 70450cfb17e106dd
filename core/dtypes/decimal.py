"""The shortest decimal that represents a number of a dtype: 0.1 for the float32 nearest to it."""


def shortest(value, dtype):
    """The float with the fewest digits that rounds to the same number in `dtype` as `value` does; `str` of it is the
    text to write.

    Returns value itself for infinities, NaN and dtypes other than narrow floats. Floats of 8 bits or fewer are returned
    exactly: most of them have few digits, and larger numbers saturate.
    """
    if dtype.kind != "float" or dtype.bits == 64 or dtype.bits <= 8 or value - value != 0:
        return value
    value = _rounded(value, dtype)
    # 9 digits distinguish all float32 values.
    for digits in range(1, 10):
        short = float("{:.{}g}".format(value, digits))
        if _rounded(short, dtype) == value:
            return short
    return value


def _rounded(value, dtype):
    if dtype.bits == 32:
        from array import array

        return array("f", (value,))[0]
    from .narrow import decode, encode

    return decode(dtype, encode(dtype, value, False))
