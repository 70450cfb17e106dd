"""What a reduction gives for no elements at all, which padding must not change."""

INF = float("inf")


def identity(op, dtype):
    """What op gives for no elements at all."""
    if op == "prod" or op == "all":
        return 1
    if op == "sum" or op == "any":
        return 0
    if dtype.is_float:
        return -INF if op == "max" else INF
    if dtype.is_bool:
        return op == "min"
    return dtype.range[op != "max"]
