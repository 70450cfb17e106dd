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
    none."""
    flat = x.backend.to_list(x)
    shape = x.shape
    if not shape:
        return flat[0]
    for axis in range(len(shape) - 1, 0, -1):
        n = shape[axis]
        if not n:
            from .empty_lists import empty_lists

            return empty_lists(shape)
        flat = [flat[i : i + n] for i in range(0, len(flat), n)]
    return flat
