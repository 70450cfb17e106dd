"""Tensors from objects other than numbers and lists of numbers."""

from ... import dtypes
from ...backend import get_backend
from ...errors import refuse
from ...lookup import function

_from_array = []  # interop's, once it was needed: an import statement takes as long as a small array's tensor


def from_object(obj, dtype, backend, copy):
    """See `asarray`."""
    if _from_array and hasattr(type(obj), "__array_interface__") and not isinstance(obj, str):
        return _from_array[0](obj, dtype, get_backend(backend), copy)
    if hasattr(obj, "dequantize") and hasattr(obj, "zero_point"):  # Quantized
        from .transfer import converted

        return converted(obj.dequantize(), dtype, backend, copy)
    target = get_backend(backend)
    if isinstance(obj, str):
        if copy is False:
            refuse("copy")
        if dtype not in (None, dtypes.string):
            refuse("string")
        return target.from_list([obj], dtypes.string, ())
    if hasattr(obj, "to_tensor"):  # TensorData
        x = obj.to_tensor(target)
        return x if dtype is None or dtype is x.dtype else x.backend.cast(x, dtype)
    if isinstance(obj, range):
        return function("asarray")(list(obj), dtype=dtype, backend=target)
    try:
        from ...host.sharing.interop import from_array
    except ImportError:
        refuse("no tensor", type(obj).__name__)
    _from_array[:] = [from_array]
    return from_array(obj, dtype, target, copy)


def stacked(values, dtype, target):
    """Nested lists of arrays or tensors of one shape as one tensor on backend `target`."""
    asarray = function("asarray")
    x = function("stack")([asarray(v, backend=target) for v in values])
    return x if dtype is None or dtype is x.dtype else x.backend.cast(x, dtype)
