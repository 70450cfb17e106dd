"""The identity element of a reduction: its result for no elements, and the value of padding."""


def identity(op, dtype):
    """The result of op for no elements."""
    if op == "prod" or op == "all":
        return 1
    if op == "sum" or op == "any":
        return 0
    smallest = op != "max"
    if smallest and op != "min":
        from .lacking import reduction

        reduction(op)
    if dtype.is_float:
        return float("inf" if smallest else "-inf")
    return smallest if dtype.is_bool else dtype.range[smallest]
