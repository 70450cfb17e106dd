"""New shapes for the same elements in the same order."""

from ..errors import refuse
from ..shapes import assume_equal, axis_of, size
from .operands import alias, tensor


#: method; array API; Burn reshape; more: int
def reshape(x, shape, *more, copy=None):
    """x in another shape, in row-major order; `shape` is a tuple, or the sizes one by one, and one size may be -1.
    Raises ShapeError if the number of elements differs."""
    x = tensor(x)
    shape = (shape,) + more if isinstance(shape, int) else tuple([d if isinstance(d, int) else int(d) for d in shape])
    n = x.size
    negative = [d for d in shape if d < 0]
    if negative:
        known = -size(shape)
        if negative != [-1] or not known or n % known:
            refuse("reshape", x.shape, n, shape)
        i = shape.index(-1)
        shape = shape[:i] + (n // known,) + shape[i + 1 :]
    elif not assume_equal(size(shape), n, "reshape"):
        refuse("reshape", x.shape, n, shape)
    if copy:
        from .creation.transfer import duplicate

        x = duplicate(x)
    return alias(x) if assume_equal(shape, x.shape, "reshape") else x.backend.reshape(x, shape)


#: method; ONNX Flatten; PyTorch flatten; Burn flatten
def flatten(x, start_dim=0, end_dim=-1):
    """Axes start_dim to end_dim (inclusive) merged into one."""
    x = tensor(x)
    if not x.shape:
        return reshape(x, (1,))
    start, end = axis_of(start_dim, x.ndim), axis_of(end_dim, x.ndim)
    if start > end:
        refuse("flatten", start_dim, end_dim)
    return reshape(x, x.shape[:start] + (size(x.shape[start : end + 1]),) + x.shape[end + 1 :])
