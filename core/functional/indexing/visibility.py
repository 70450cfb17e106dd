"""Which indices can be read without waiting for a GPU, and an error for those outside their axis."""

from ...backend import operation
from ...errors import IndexingError

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
        refuse(low, high, lowest, end, message, axis)
    return index


def refuse(low, high, lowest, end, message, axis):
    """Raise IndexingError if the lowest or the highest of some indices is outside; `message` names the first that is
    (index), both (low, high), the axis, its end and the last index (last)."""
    if low < lowest or high >= end:
        index = low if low < lowest else high
        # Not str.format: the message of a saved plan comes from its file.
        values = {"index": index, "low": low, "high": high, "axis": axis, "end": end, "last": end - 1}
        for name in values:
            message = message.replace("{" + name + "}", str(values[name]))
        raise IndexingError(message)
