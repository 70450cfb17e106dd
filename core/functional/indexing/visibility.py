"""Which indices can be read without waiting for a GPU, and a check of those that can."""

from ...backend import operation

OUTSIDE = "index {index} is outside axis {axis} of length {end}"


def visible(x):
    """x, possibly on another backend, if its elements can be read without waiting for a GPU; else None. Bounds checks
    alone must not force a read-back."""
    if getattr(x.backend, "checks_indices", True):
        return x
    return x.backend.visible(x) if hasattr(x.backend, "visible") else None


def checked(index, lowest, end, message=OUTSIDE, axis=0):
    """index, whose elements are at least `lowest` and less than `end`; None if only a GPU knows them.

    While a model is compiled, the result is what to index with: the plan checks it in each call. Raises IndexingError,
    as `refuse` does.
    """
    known = visible(index)
    if known is None:
        later = operation(index.backend, "checked")
        return later(index, lowest, end, message, axis) if later else None
    if known.size:
        axes = tuple(range(known.ndim))
        low, high = [known.backend.reduce(op, known, axes, False).item() for op in ("min", "max")]
        if low < lowest or high >= end:
            from ...errors.indices import refuse

            refuse(low, high, lowest, end, message, axis)
    return index
