"""The identity element of a reduction: its result for no elements, and the value of padding."""

from ..errors import refuse

INF = float("inf")


def identity(op, dtype):
    """The result of op for no elements."""
    if op == "prod" or op == "all":
        return 1
    if op == "sum" or op == "any":
        return 0
    if op not in ("max", "min"):
        refuse("no kernel", "reduce " + op, "the python")
    if dtype.is_float:
        return -INF if op == "max" else INF
    if dtype.is_bool:
        return op == "min"
    return dtype.range[op != "max"]


def outside(op, dtype):
    """The value around a pooled tensor."""
    if op not in ("max", "sum"):
        refuse("no kernel", "pool " + op, "the python")
    return identity(op, dtype)
