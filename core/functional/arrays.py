"""Tensors from numbers, nested lists and other arrays."""

from .. import dtypes
from ..backend import get_backend
from ..errors import refuse
from ..tensor import Tensor
from .operands import default_dtype


def _flatten(values, shape, depth, out):
    if depth == len(shape):
        if isinstance(values, Tensor):
            values = values.item()
        elif isinstance(values, (list, tuple)):
            refuse("ragged depth", values)
        elif not isinstance(values, (bool, int, float, str)):
            values = values.item() if hasattr(values, "item") else float(values)
        out.append(values)
        return
    if not isinstance(values, (list, tuple, Tensor)) and not hasattr(values, "__len__"):
        refuse("ragged list", values)
    if len(values) != shape[depth]:
        refuse("ragged length", len(values), shape[depth])
    for v in values:
        _flatten(v, shape, depth + 1, out)


def nested(values):
    """(flat list, shape) of nested lists or tuples. Raises ShapeError if it is ragged."""
    shape = []
    v = values
    while isinstance(v, (list, tuple)):
        shape.append(len(v))
        if not shape[-1]:
            break
        v = v[0]
    flat = []
    _flatten(values, shape, 0, flat)
    return flat, tuple(shape)


def _common(flat):
    """The dtype for a list of Python scalars, by the widest kind in it."""
    found = None
    for v in flat:
        kind = default_dtype(v)
        if kind is not found:
            found = kind if found is None else dtypes.promote(found, kind)
    return found or dtypes.float32


def _first(values):
    """The first element of nested lists."""
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    return values


#: function; array API; Burn from_floats, from_ints; obj: Any
def asarray(obj, *, dtype=None, device=None, backend=None, copy=None):
    """A tensor from a number, nested lists, a tensor, a TensorData, or anything NumPy, DLPack or the buffer protocol
    can describe. Without `dtype`, Python ints become int64, floats float32, bools bool; arrays keep theirs.

    copy: None shares memory where possible, False raises ValueError where sharing is impossible, True always copies.
    Raises ShapeError for ragged lists, and DTypeError for a dtype that emberlet does not have or a number out of an
    integer dtype's range.
    """
    backend = backend or device
    if dtype is not None:
        dtype = dtypes.dtype(dtype)
    if isinstance(obj, Tensor):
        from .creation.transfer import converted

        return converted(obj, dtype, backend, copy)
    target = get_backend(backend)
    plain = isinstance(obj, (bool, int, float))
    if copy is False and (plain or isinstance(obj, (list, tuple))):
        refuse("copy")
    if plain:
        dtype = dtype or default_dtype(obj)
        if dtype.is_integer:
            from .promotion import whole_numbers

            obj = whole_numbers((obj,), dtype)[0]
        return target.full((), obj, dtype)
    if isinstance(obj, (list, tuple)):
        first = _first(obj)
        if getattr(first, "shape", None):
            from .creation.objects import stacked

            return stacked(obj, dtype, target)
        flat, shape = nested(obj)
        found = first.dtype if isinstance(first, Tensor) else _common(flat)
        if dtype is not None and dtype.is_bool and found is not dtypes.bool:
            flat = [v != 0 for v in flat]
        dtype = dtype or found
        if found is dtypes.string and dtype is not found:
            refuse("string")
        if dtype.is_integer and flat:
            from .promotion import whole_numbers

            flat = whole_numbers(flat, dtype)
        return target.from_list(flat, dtype, shape)
    from .creation.objects import from_object

    return from_object(obj, dtype, backend, copy)
