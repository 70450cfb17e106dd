"""The error for indices outside their axis."""

from . import IndexingError


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
