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
        refuse("no kernel", op, "the python")
    if dtype.is_float:
        return -INF if op == "max" else INF
    if dtype.is_bool:
        return op == "min"
    return dtype.range[op != "max"]
