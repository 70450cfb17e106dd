"""Promotion of two dtypes, by the array API standard and beyond it (see __init__.py)."""

from ..errors import DTypeError
from . import BY_NAME, float32


def promoted(a, b):
    """The dtype that can represent both a and b. Raises DTypeError if there is none."""
    if a.kind == "string" or b.kind == "string":
        raise DTypeError("string and {} do not mix; convert one".format(a if b.kind == "string" else b))
    if a.kind == "complex" or b.kind == "complex":
        return __import__("emberlet.host.complex_tensors", None, None, ("*",)).promoted(a, b)
    if a.is_float or b.is_float:
        if not b.is_float:
            return a
        if not a.is_float:
            return b
        if a.bits == b.bits or max(a.bits, b.bits) < 16:
            return float32
        return a if a.bits > b.bits else b
    if a.is_bool:
        return b
    if b.is_bool:
        return a
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned.bits == 64:
        raise DTypeError("no integer dtype holds both {} and {}; convert one with .astype()".format(a, b))
    return BY_NAME["int" + str(unsigned.bits * 2)]
