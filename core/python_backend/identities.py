"""The identity element of a reduction: its result for no elements, and the value of padding."""

INF = float("inf")


def identity(op, dtype):
    """The result of op for no elements."""
    if op == "prod" or op == "all":
        return 1
    if op == "sum" or op == "any":
        return 0
    if dtype.is_float:
        return -INF if op == "max" else INF
    if dtype.is_bool:
        return op == "min"
    return dtype.range[op != "max"]
