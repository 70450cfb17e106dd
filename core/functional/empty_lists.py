"""The lists of a tensor without elements; in a file of its own, since few models need them."""

from ..errors import refuse


def empty_lists(shape):
    """Nested lists of this shape, one axis of which is 0. Raises ShapeError for more than 2**24 of them."""
    count = 1
    for size in shape[: shape.index(0)]:
        count *= size
    if count > 1 << 24:
        refuse("empty lists", shape)
    return _nested(shape)


def _nested(shape):
    return [_nested(shape[1:]) for _ in range(shape[0])] if shape else None
