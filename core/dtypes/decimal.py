"""The shortest decimal that a number of a dtype can be written as: 0.1 for the float32 nearest to it."""


def shortest(value, dtype):
    """The float with the fewest digits that `dtype` rounds to what it rounds `value` to; value itself for what is no
    narrow float, infinities and NaN.

    `str` of the result is the text to write. 8 bits and fewer are exact: most of their numbers have few digits anyway,
    and where they saturate any larger number would do.
    """
    if not dtype.is_float or dtype.bits == 64 or dtype.bits <= 8 or value - value != 0:
        return value
    value = _rounded(value, dtype)
    # 9 digits tell any float32 apart.
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
