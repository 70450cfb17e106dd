"""From a tensor to Python values."""

from ..errors import refuse


#: method; PyTorch item -> bool | int | float | str
def item(x):
    """The one element of x as a Python number, bool or str. Raises ShapeError unless x has exactly one element."""
    if x.size != 1:
        refuse("one element", x.shape)
    return x.backend.to_list(x)[0]


#: method; PyTorch tolist -> Any
def tolist(x):
    """The elements as nested lists (a plain number for a 0-D tensor). Raises ShapeError for more than 2**24 lists of
    nothing."""
    flat = x.backend.to_list(x)
    shape = x.shape
    if not shape:
        return flat[0]
    for axis in range(len(shape) - 1, 0, -1):
        n = shape[axis]
        if not n:
            count = 1
            for before in shape[: shape.index(0)]:
                count *= before
            if count > 1 << 24:
                refuse("empty lists", shape)
            return _empty(shape)
        flat = [flat[i : i + n] for i in range(0, len(flat), n)]
    return flat


def _empty(shape):
    return [_empty(shape[1:]) for _ in range(shape[0])] if shape else None
